//! Strictest match wins; guardrails and floors are added, never put in place of the group's verdict.

use std::time::Duration;

use super::model::Policy;
use crate::config::AllowSelf;
use crate::facet::path::Space;
use crate::facet::{Facet, Touched};
use crate::message::Value;
use crate::record::{Depth, FacetRecord, Rejection, RuleMatch, Severity, Source, Verdict};

/// Who calls what, as rules see it. `None` is "left out": taken to hold (examples only).
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The policy group.
    pub group: &'a str,
    /// The agent's name.
    pub agent: Option<&'a str>,
    /// Interactive or background.
    pub source: Option<Source>,
    /// Root or sub.
    pub depth: Option<Depth>,
    /// The configured upstream.
    pub upstream: Option<&'a str>,
    /// The tool's name, for `tools/call`.
    pub tool: Option<&'a str>,
    /// The catalogue's category of the tool.
    pub category: Option<&'a str>,
    /// The MCP method.
    pub method: &'a str,
    /// The arguments.
    pub arguments: Option<&'a Value>,
}

/// What the policy says of one call.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The strictest of all facets.
    pub verdict: Verdict,
    /// Each facet with its matches.
    pub facets: Vec<FacetJudgement>,
    /// Rules, `otherwise:GROUP`, `builtin:NAME`, `floor:WHY`, in a fixed order.
    pub decided_by: Vec<String>,
    /// The deciding rules' reasons, in the same order, without repeats.
    pub reasons: Vec<String>,
    /// For a deny: policy or guardrail.
    pub rejection: Option<Rejection>,
    /// For an ask: what must be met, merged to the strict side.
    pub requirement: Option<Requirement>,
    /// In plain English, what an allow would have needed; empty for an allow.
    pub needed_for_allow: Vec<String>,
}

/// One facet, judged.
#[derive(Clone, Debug)]
pub struct FacetJudgement {
    /// Its record: fields, floors, matches, verdict.
    pub record: FacetRecord,
}

/// What an ask needs, merged over all asks that matched.
#[derive(Clone, PartialEq, Debug)]
pub struct Requirement {
    /// The rules (or `otherwise:GROUP`, `floor:WHY`) that asked.
    pub asked_by: Vec<String>,
    /// When it ends undecided, if a rule says so.
    pub expires: Option<Duration>,
    /// How long a stream is held, if a rule says so.
    pub hold_for: Option<Duration>,
    /// Run at once on approval although nobody is attached.
    pub run_always: bool,
    /// Whether owners may decide; none: as configured.
    pub allow_self: Option<AllowSelf>,
    /// Whether a rejection needs a note.
    pub reason_required: bool,
    /// How urgent.
    pub severity: Severity,
}

/// Judges a call. Pure but for the walks below recursive facets ([`needs_walk`]), which block for up to 50 ms each.
pub fn judge(policy: &Policy, subject: &Subject<'_>, touched: &Touched, space: &Space) -> Judgement {
    let _ = (policy, subject, touched, space);
    unimplemented!()
}

/// Whether judging walks a file system and so must not run on an async thread.
pub fn needs_walk(touched: &Touched) -> bool {
    let _: Option<(&Facet, &RuleMatch)> = None;
    let _ = touched;
    unimplemented!()
}

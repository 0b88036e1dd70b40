//! A checked policy, compiled once: groups with all they inherit, and guardrails.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

use super::approval::Approval;
use super::fields::Fields;
use super::index::RuleSet;
use super::limit::Limit;
use crate::clock::Timestamp;
use crate::record::{RuleMatch, Verdict};

/// The method whose calls have a tool.
pub(super) const TOOLS_CALL: &str = "tools/call";

/// All rules in force, compiled once at load.
#[derive(Debug, Default)]
pub struct Policy {
    /// `sha256:…` over the files' names and bytes and the switched-off built-ins.
    pub version: String,
    pub(super) guardrails: RuleSet,
    pub(super) groups: BTreeMap<String, Group>,
    /// The top-level `approval`.
    pub(super) approval: Option<Approval>,
    pub(super) rules: Vec<Arc<Rule>>,
}

impl Policy {
    /// The names of the groups, sorted.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }

    /// Every rule and guardrail once, built-in ones first, then in file order.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }
}

/// A group with everything it inherits.
#[derive(Debug)]
pub(super) struct Group {
    /// The verdict where no rule matches.
    pub otherwise: Verdict,
    /// Its own `approval`, or the nearest ancestor's.
    pub approval: Option<Approval>,
    /// Its rules and those of what it extends.
    pub rules: RuleSet,
    /// Until when only guardrails are enforced, if it is in shadow mode.
    pub shadow_until: Option<Timestamp>,
}

impl Group {
    /// Whether its rules, its `otherwise` and floors are only logged.
    pub fn is_in_shadow(&self, at: Option<Timestamp>) -> bool {
        self.shadow_until.is_some_and(|until| !is_past(until, at))
    }
}

/// A date that has come. What no time is given for is before every date.
fn is_past(until: Timestamp, at: Option<Timestamp>) -> bool {
    at.is_some_and(|at| at >= until)
}

/// In which of two verdicts something counts: the one that is obeyed, and the one that would be if nothing were in shadow
/// mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Counts {
    /// In the one that is obeyed.
    pub now: bool,
    /// In the other.
    pub then: bool,
}

impl Counts {
    /// In both.
    pub const BOTH: Self = Self { now: true, then: true };
    /// In neither.
    pub const NEITHER: Self = Self { now: false, then: false };
    /// In what would be said without shadow mode.
    pub const THEN: Self = Self { now: false, then: true };

    /// In those in which both count.
    pub fn and(self, other: Self) -> Self {
        Self { now: self.now && other.now, then: self.then && other.then }
    }

    /// In those in which this does not.
    pub fn inverse(self) -> Self {
        Self { now: !self.now, then: !self.then }
    }

    /// In those in which either counts.
    pub fn or(self, other: Self) -> Self {
        Self { now: self.now || other.now, then: self.then || other.then }
    }

    /// Whether it counts anywhere.
    pub fn any(self) -> bool {
        self.now || self.then
    }

    /// Whether the two verdicts may differ by it.
    pub fn differ(self) -> bool {
        self.now != self.then
    }
}

/// A rule or a guardrail.
#[derive(Debug)]
pub struct Rule {
    /// Its name, `file:line` where it has none, `builtin:NAME` for a built-in guardrail.
    pub label: String,
    /// What it says.
    pub verdict: Verdict,
    /// Whether it is a guardrail.
    pub guardrail: bool,
    /// Whether it is judged and logged, but not obeyed.
    pub shadow: bool,
    /// The end of an allow, or of shadow mode: afterwards the allow is gone, the shadow enforced.
    pub until: Option<Timestamp>,
    /// Told to the model and to the approver.
    pub reason: Option<String>,
    /// The file it stands in, as the operator named it; none for a built-in.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: Option<usize>,
    /// Its column, from 1.
    pub column: Option<usize>,
    pub(super) limit: Option<Limit>,
    pub(super) fields: Fields,
    pub(super) except: Vec<Fields>,
    pub(super) approval: Option<Approval>,
    /// What [`Self::ground`] has found.
    pub(super) numbered: OnceLock<u64>,
}

impl Rule {
    /// The number of the places that it guards, whatever else it says: the same in every process, and exact in JSON.
    pub(super) fn ground(&self) -> u64 {
        *self.numbered.get_or_init(|| {
            let mut texts: Vec<&str> = self.fields.path.texts().collect();
            texts.sort_unstable();
            let hash = Sha256::digest(format!("{texts:?} {:?}", self.except));
            hash.iter().take(8).fold(0, |number, byte| (number << 8) | u64::from(*byte)) >> 11
        })
    }

    /// How it appears among a facet's matches, obeyed or in `shadow`.
    pub(super) fn record(&self, shadow: bool) -> RuleMatch {
        RuleMatch { rule: self.label.clone(), verdict: self.verdict, file: self.file.clone(), line: self.line, shadow }
    }

    /// Where it counts at a time, in a group that is in shadow mode or not; nowhere if it is gone.
    pub(super) fn counts(&self, at: Option<Timestamp>, in_shadow: bool) -> Option<Counts> {
        let past = self.until.is_some_and(|until| is_past(until, at));
        if past && self.verdict == Verdict::Allow {
            return None;
        }
        let shadow = (self.shadow && !past) || (in_shadow && !self.guardrail);
        Some(if shadow { Counts::THEN } else { Counts::BOTH })
    }

    /// Whether it guards paths beyond path arguments: a deny or ask that names a path other than `/`.
    pub(super) fn guards_paths(&self) -> bool {
        self.verdict != Verdict::Allow && self.fields.path.names_any()
    }
}

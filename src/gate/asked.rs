//! What the approval of a call takes: from the judgement and the configuration to what is stored and what is shown.

use std::time::Duration;

use super::inward::ASKS_FOR_SECRET;
use super::judged::Judged;
use super::shown;
use super::uses::FIRST_USE;
use crate::approval::{SELF_APPROVED, Script, Terms};
use crate::clock::Timestamp;
use crate::config::ApprovalsConfig;
use crate::facet::FloorWhy;
use crate::policy::Judgement;
use crate::record::ApprovalRecord;
use crate::store::{SAME_CALL_RAN, SAME_CALL_WAITING, SEVERAL_EXECUTORS};

/// The flag on an approval of a call that would run a file whose content is too large to be bound, or cannot be read.
const UNBOUND_SCRIPT: &str = "unbound_script";

/// The terms of an ask; none for a call that nothing asks about.
pub fn terms(judged: &Judged, configured: &ApprovalsConfig) -> Option<Terms> {
    let (judgement, agent) = (&judged.judgement, &judged.agent.config);
    let needed = judgement.requirement.as_ref()?;
    let terms = needed.terms(configured);
    Some(Terms {
        asked: asked(judgement),
        people: needed.people.clone(),
        group: agent.group.clone(),
        owner: agent.owner.clone(),
        severity: needed.severity,
        reason_required: needed.reason_required,
        allow_self: terms.allow_self,
        run_always: needed.run_always,
        expires_ms: millis(terms.expires),
        hold_for_ms: millis(terms.hold_for),
        hold_grace_ms: millis(configured.hold_grace),
        result_ttl_ms: millis(configured.result_ttl),
    })
}

/// Shows an approval on its terms: from `now` on it is a new question.
pub fn show(approval: &mut ApprovalRecord, terms: &Terms, scripts: &[Script], now: Timestamp) {
    approval.severity = terms.severity;
    approval.reason_required = terms.reason_required;
    approval.expires_at = now.after(Duration::from_millis(terms.expires_ms));
    approval.escalated_at = None;
    approval.requirements.clone_from(&terms.people);
    for more in approval.requirements.iter_mut().filter_map(|needed| needed.escalate.as_mut()) {
        more.due = Some(now.after(Duration::from_millis(more.after_ms)));
    }
    let floors = approval.call.facets.iter().flat_map(|facet| &facet.floors);
    // What was seen beside the call does not change with its terms.
    approval.flags.retain(|flag| {
        [SAME_CALL_WAITING, SAME_CALL_RAN, SEVERAL_EXECUTORS, ASKS_FOR_SECRET, FIRST_USE].contains(&flag.as_str())
    });
    approval.flags.extend(floors.map(|floor| floor.why.clone()));
    let unbound = scripts.iter().any(|script| script.content.is_none());
    approval.flags.extend(unbound.then(|| UNBOUND_SCRIPT.to_owned()));
    approval.flags.sort();
    approval.flags.dedup();
}

/// What a flag on an approval means, in a sentence without its full stop.
pub fn flag_sentence(flag: &str) -> String {
    let own = match flag {
        UNBOUND_SCRIPT => "the content of a script that it would run is not bound by your approval",
        FIRST_USE => "first use of this tool by this agent",
        SELF_APPROVED => "somebody approved a call of their own agent",
        ASKS_FOR_SECRET => "the upstream asks the user for what looks like a secret",
        SAME_CALL_WAITING => "the identical call waits beside it, for another client",
        SAME_CALL_RAN => "the identical call has run, and its client did not take the result",
        SEVERAL_EXECUTORS => "other calls to this upstream that wait would run elsewhere: look where this one runs",
        _ => return FloorWhy::sentence_of(flag).map_or_else(|| flag.replace('_', " "), str::to_owned),
    };
    own.to_owned()
}

/// Who asks. `decided_by` names floors by their word only: two hard links are two questions.
fn asked(judgement: &Judgement) -> Vec<String> {
    let rules = judgement.decided_by.iter().filter(|label| !label.starts_with("floor:")).cloned();
    let floors = judgement.facets.iter().flat_map(|facet| {
        let floors = facet.record.floors.iter();
        floors.map(|floor| {
            let detail = floor.detail.as_deref().unwrap_or_default();
            format!("floor:{}\0{detail}\0{}", floor.why, shown::place(&facet.record))
        })
    });
    let mut asked: Vec<String> = rules.chain(floors).collect();
    asked.sort();
    asked.dedup();
    asked
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

//! Edit, then approve: an approver puts other arguments in the place of the agent's.

use super::transition::Stage;
use super::{Held, Refused, Script, Terms};
use crate::clock::Timestamp;
use crate::record::{ApprovalRecord, ApprovalState, EditRecord};

/// A call with other arguments, judged again.
#[derive(Clone, PartialEq, Debug)]
pub struct Edit {
    /// Who changed them.
    pub by: String,
    /// The teams they belong to.
    pub teams: Vec<String>,
    /// Whether nobody else may decide this call.
    pub sole_approver: bool,
    /// The digest of what they were shown.
    pub seen: String,
    /// The approval as it is shown from now on.
    pub approval: ApprovalRecord,
    /// What it takes from now on.
    pub terms: Terms,
    /// The request with the other arguments.
    pub message: String,
    /// A digest of the places it touches.
    pub places: String,
    /// What it would run as a script.
    pub scripts: Vec<Script>,
}

impl Held {
    pub(super) fn edit(&mut self, edit: Edit, now: Timestamp) -> Result<(), Refused> {
        match (self.stage(), self.approval.state) {
            (Stage::Waiting, _) => {}
            (Stage::Approved | Stage::Running, _) | (_, ApprovalState::Rejected) => return Err(Refused::Decided),
            (Stage::Ended, _) => return Err(Refused::Ended),
        }
        if self.approval.call.digest.as_ref() != Some(&edit.seen) {
            return Err(Refused::Digest);
        }
        self.may_approve(&edit.by, &edit.teams, edit.sole_approver)?;
        if !self.is_of(&edit.approval) {
            return Err(Refused::NotNow);
        }
        let old = &self.approval;
        // Edited twice, it is still the agent's own call that the last one is compared with.
        let from = match old.edited_from.clone() {
            Some(first) => EditRecord { by: edit.by, at: now, ..first },
            None => EditRecord {
                by: edit.by,
                at: now,
                arguments: old.call.arguments.clone(),
                hidden: old.call.hidden.clone(),
                hidden_more: old.call.hidden_more,
                label: old.call.label.clone(),
                digest: old.call.digest.clone(),
            },
        };
        // Editing does not put off its end.
        let ends = old.expires_at.min(edit.approval.expires_at);
        self.ask_anew(edit.approval);
        self.approval.edited_from = Some(from);
        self.approval.expires_at = ends;
        self.terms = edit.terms;
        let sent = std::mem::replace(&mut self.intent.message, edit.message);
        self.intent.original.get_or_insert(sent);
        self.intent.places = edit.places;
        self.intent.scripts = edit.scripts;
        Ok(())
    }
}

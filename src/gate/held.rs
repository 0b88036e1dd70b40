//! What the gate knows of held calls without asking the store: which identical calls to look for, how many wait.

use dashmap::{DashMap, DashSet};

use crate::approval::Held;
use crate::record::ApprovalState;

/// Kept up from the store's changes, this process' and others'.
#[derive(Default)]
pub struct Mirror {
    /// Attach key → the held calls that an identical call may pick up.
    attachable: DashMap<String, Vec<String>>,
    waiting: DashSet<String>,
}

impl Mirror {
    /// Whether an identical call waits, runs, or left a result behind. May say yes where there is none any more; the
    /// store has the last word.
    pub fn knows(&self, attach_key: &str) -> bool {
        !self.attachable.is_empty() && self.attachable.contains_key(attach_key)
    }

    /// How many calls wait for a human.
    pub fn waiting(&self) -> i64 {
        i64::try_from(self.waiting.len()).unwrap_or(i64::MAX)
    }

    /// Takes a change in.
    pub fn changed(&self, held: &Held) {
        let call = held.call();
        let Some(key) = &call.attach_key else { return };
        if held.approval.state == ApprovalState::Waiting {
            self.waiting.insert(call.id.clone());
        } else {
            self.waiting.remove(&call.id);
        }
        let over = call.outcome.is_some() && held.kept.is_none() && held.delivered;
        if over {
            if let Some(mut ids) = self.attachable.get_mut(key) {
                ids.retain(|id| *id != call.id);
            }
            self.attachable.remove_if(key, |_, ids| ids.is_empty());
        } else {
            let mut ids = self.attachable.entry(key.clone()).or_default();
            if !ids.contains(&call.id) {
                ids.push(call.id.clone());
            }
        }
    }

    /// Forgets everything, to be told anew.
    pub fn clear(&self) {
        self.attachable.clear();
        self.waiting.clear();
    }
}

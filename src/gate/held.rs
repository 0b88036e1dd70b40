//! What the gate knows of held calls without asking the store: which identical calls to look for, how many wait.

use dashmap::{DashMap, DashSet};

use crate::approval::Held;
use crate::clock::Timestamp;
use crate::record::ApprovalState;

/// Kept up from the store's changes, this process' and others'.
#[derive(Default)]
pub struct Mirror {
    /// Attach key → the held calls that an identical call may pick up, each with until when.
    attachable: DashMap<String, Vec<(String, Timestamp)>>,
    waiting: DashSet<String>,
}

impl Mirror {
    /// Whether there is nothing to pick up.
    pub fn is_empty(&self) -> bool {
        self.attachable.is_empty()
    }

    /// Whether an identical call waits, runs, or left a result behind. May say yes where there is none any more; the
    /// store has the last word.
    pub fn knows(&self, attach_key: &str) -> bool {
        self.attachable.contains_key(attach_key)
    }

    /// How many calls wait for an approval.
    pub fn waiting(&self) -> i64 {
        i64::try_from(self.waiting.len()).unwrap_or(i64::MAX)
    }

    /// Takes a change in.
    pub fn changed(&self, held: &Held) {
        let call = held.call();
        let Some(key) = &call.attach_key else { return };
        if held.approval.state == ApprovalState::Waiting && held.question.is_none() {
            self.waiting.insert(call.id.clone());
        } else {
            self.waiting.remove(&call.id);
        }
        let mut ids = self.attachable.entry(key.clone()).or_default();
        ids.retain(|(id, _)| *id != call.id);
        ids.extend(held.attachable_until().map(|until| (call.id.clone(), until)));
        drop(ids);
        self.attachable.remove_if(key, |_, ids| ids.is_empty());
    }

    /// Forgets what nobody came back for in time.
    pub fn tidy(&self, now: Timestamp) {
        self.attachable.retain(|_, ids| {
            ids.retain(|(_, until)| *until > now);
            !ids.is_empty()
        });
    }

    /// Forgets everything, to be told anew.
    pub fn clear(&self) {
        self.attachable.clear();
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::approval::Event;
    use crate::record::Rejection;

    #[test]
    fn what_nobody_comes_back_for_is_forgotten() {
        let mirror = Mirror::default();
        let mut held = crate::approval::tests::held("call_1");
        let (key, now) = (held.call().attach_key.clone().unwrap(), held.call().created_at);
        mirror.changed(&held);
        mirror.tidy(now);
        assert!(mirror.knows(&key) && mirror.waiting() == 1);
        held.apply(Event::Refuse { reason: Rejection::Stale, detail: None }, now).unwrap();
        mirror.changed(&held);
        mirror.tidy(now);
        assert!(mirror.knows(&key) && mirror.waiting() == 0, "its end is still to be told");
        mirror.tidy(now.after(held.result_ttl()));
        assert!(!mirror.knows(&key));
        let mut held = crate::approval::tests::held("call_2");
        mirror.changed(&held);
        held.apply(Event::Cancel { detail: None }, now).unwrap();
        mirror.changed(&held);
        assert!(!mirror.knows(&key));
    }
}

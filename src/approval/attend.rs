//! What approvers do before they decide: show that they look, and put off the end.

use std::time::Duration;

use super::transition::Stage;
use super::{Held, Refused};
use crate::clock::Timestamp;
use crate::record::ClaimRecord;

/// How many times its own `expires` a call may wait in all, however often its end is put off.
const LONGEST: u64 = 4;

impl Held {
    pub(super) fn look(&mut self, by: String, until: Option<Timestamp>, now: Timestamp) -> Result<(), Refused> {
        self.must_wait()?;
        let claimed = &mut self.approval.claimed;
        match (until, claimed.as_ref().filter(|claim| claim.until > now)) {
            // Whoever looked first is named as long as they do.
            (_, Some(other)) if other.by != by => {}
            (Some(until), _) => *claimed = Some(ClaimRecord { by, until }),
            (None, _) => *claimed = None,
        }
        Ok(())
    }

    pub(super) fn extend(&mut self, to: Timestamp, now: Timestamp) -> Result<(), Refused> {
        self.must_wait()?;
        let own = Duration::from_millis(self.terms.expires_ms);
        let longest = Duration::from_millis(self.terms.expires_ms.saturating_mul(LONGEST));
        let to = to.min(now.after(own)).min(self.approval.call.created_at.after(longest));
        let by = to.since(self.approval.expires_at);
        if to <= self.approval.expires_at {
            return Err(Refused::NotNow);
        }
        self.approval.expires_at = to;
        self.approval.extended_ms += u64::try_from(by.as_millis()).unwrap_or_default();
        Ok(())
    }

    fn must_wait(&self) -> Result<(), Refused> {
        match self.stage() {
            Stage::Waiting => Ok(()),
            Stage::Approved | Stage::Running => Err(Refused::Decided),
            Stage::Ended => Err(Refused::Ended),
        }
    }
}

//! What each event does. Every handler checks first and changes after, so that a refusal leaves the call as it was.

use std::time::Duration;

use super::{Event, Held, Kept, Refused, Terms};
use crate::clock::Timestamp;
use crate::config::AllowSelf;
use crate::record::{
    ApprovalRecord, ApprovalState, CallState, ClientState, Decision, Escalation, NotifiedRecord, Outcome, Rejection,
    RequirementRecord, Vote, WillRun,
};

/// The flag on an approval whose approver owns the agent.
pub const SELF_APPROVED: &str = "self_approved";

/// What the two recorded states mean together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Waiting,
    Approved,
    Running,
    Ended,
}

impl Held {
    /// Applies an event. Once a tick is due that ends the call, every other event finds it ended.
    ///
    /// # Errors
    /// Why it does not apply; `self` is unchanged then.
    pub fn apply(&mut self, event: Event, now: Timestamp) -> Result<(), Refused> {
        // A clock that was set back must not make a call end before it began.
        let now = now.max(self.latest());
        let overdue = self.stage() != Stage::Ended && self.ends_at().is_some_and(|due| due <= now);
        if overdue && !matches!(event, Event::Tick | Event::Told(_)) {
            return Err(Refused::Ended);
        }
        if self.question.is_some() && is_of_an_approval(&event) {
            return Err(Refused::NotNow);
        }
        match event {
            Event::Attach { process, executor } => self.attach(process, &executor, now),
            Event::Orphan => {
                self.orphan(now);
                Ok(())
            }
            Event::Adopt { process, executor } => self.adopt(process, &executor),
            Event::Detach { handed_off } => {
                self.detach(handed_off, now);
                Ok(())
            }
            Event::Vote { vote, sole_approver } => self.vote(vote, sole_approver, now),
            Event::Disown { voters } => self.disown(&voters),
            Event::Answer { answer, teams, body } => self.answer(answer, &teams, body, now),
            Event::Edit(edit) => self.edit(*edit, now),
            Event::Look { by, until } => self.look(by, until, now),
            Event::Extend { to } => self.extend(to, now),
            Event::Rejudged { approval, terms } => self.rejudged(*approval, terms),
            Event::Claim { process, digest } => self.claim(process, digest.as_deref(), now),
            Event::Finish { outcome, kept, tool_error, detail, may_have_run } => {
                self.finish(outcome, kept, detail, now)?;
                self.approval.call.tool_error = tool_error;
                self.approval.call.may_have_run = may_have_run;
                Ok(())
            }
            Event::Refuse { reason, detail } => self.refuse(reason, detail, now),
            Event::Over { detail, room_at } => {
                self.refuse(Rejection::RateLimit, Some(detail), now)?;
                self.room_at = room_at;
                Ok(())
            }
            Event::Cancel { detail } => self.cancel(detail, now),
            Event::Tick => {
                self.tick(now);
                Ok(())
            }
            Event::Told(told) => {
                self.told(told);
                Ok(())
            }
            Event::Deliver => self.deliver(),
        }
    }

    /// When [`Event::Tick`] next changes something.
    pub fn next_tick(&self) -> Option<Timestamp> {
        self.ends_at().into_iter().chain(self.escalates_at()).chain(self.reminds_at()).min()
    }

    /// When those who were asked are reminded, once: at half of what it may wait.
    fn reminds_at(&self) -> Option<Timestamp> {
        let half = Duration::from_millis(self.terms.expires_ms / 2);
        let waits = self.stage() == Stage::Waiting && self.approval.reminded_at.is_none() && !half.is_zero();
        waits.then(|| self.approval.call.created_at.after(half))
    }

    /// When more people are asked.
    fn escalates_at(&self) -> Option<Timestamp> {
        let due = |needed: &RequirementRecord| needed.escalate.as_ref()?.due;
        let waits = self.stage() == Stage::Waiting;
        self.approval.requirements.iter().filter(|_| waits).filter_map(due).min()
    }

    /// When time alone ends it, or what it left behind.
    fn ends_at(&self) -> Option<Timestamp> {
        match self.stage() {
            Stage::Waiting => Some(self.approval.expires_at),
            Stage::Approved if self.is_attached() || self.runs_alone() => None,
            Stage::Approved => Some(self.grace_ends()),
            Stage::Running => None,
            Stage::Ended => self.kept.as_ref().map(|kept| kept.at.after(self.result_ttl())),
        }
    }

    /// Whether it was just made: waiting, undecided, never claimed. Only such a call may be put into the store.
    pub fn is_fresh(&self) -> bool {
        self.stage() == Stage::Waiting
            && self.approval.votes.is_empty()
            && self.approval.requirements.iter().all(|needed| needed.votes == 0)
            && self.claimed_by.is_none()
            && self.decided_at.is_none()
    }

    /// Until when a client that comes back with the identical call can be attached; none: no more. A live call can be
    /// until it ends; an ended one as long as there is something left to tell: a kept reply, a rejection, or that it may
    /// have run.
    pub fn attachable_until(&self) -> Option<Timestamp> {
        // Its client has a handle: whoever asks for the same is another.
        if self.intent.task.is_some() {
            return None;
        }
        let call = self.call();
        match self.stage() {
            Stage::Ended if self.delivered => None,
            Stage::Ended => {
                let rejected = call.state == CallState::Rejected;
                let unsure = call.state == CallState::Failed && call.may_have_run;
                let ended = self.kept.as_ref().map(|kept| kept.at);
                let told_from = ended.or(call.ended_at.filter(|_| rejected || unsure))?;
                Some(told_from.after(self.result_ttl()))
            }
            _ => Some(Timestamp::from_millis(i64::MAX)),
        }
    }

    pub(super) fn stage(&self) -> Stage {
        match (self.approval.call.state, self.approval.state) {
            (CallState::AwaitingApproval, ApprovalState::Waiting) => Stage::Waiting,
            (CallState::AwaitingApproval, ApprovalState::Approved) => Stage::Approved,
            (CallState::Running, ApprovalState::Consumed) => Stage::Running,
            // Also whatever cannot be: nothing runs from here.
            _ => Stage::Ended,
        }
    }

    fn is_attached(&self) -> bool {
        self.approval.client.state == ClientState::Attached
    }

    /// Whether it runs at once although nobody is attached: as long as a process serves it.
    fn runs_alone(&self) -> bool {
        self.runs_unattended() && self.intent.origin.process.is_some()
    }

    fn grace_ends(&self) -> Timestamp {
        let decided = self.decided_at.unwrap_or(self.approval.call.created_at);
        let orphaned = self.intent.origin.gone_since.filter(|_| self.runs_unattended());
        orphaned.map_or(decided, |since| since.max(decided)).after(Duration::from_millis(self.terms.hold_grace_ms))
    }

    fn latest(&self) -> Timestamp {
        let call = &self.approval.call;
        let gone = [self.approval.client.gone_since, self.intent.origin.gone_since];
        let times = gone.into_iter().chain([self.decided_at, call.released_at, call.ended_at]);
        times.flatten().fold(call.created_at, Timestamp::max)
    }

    fn attach(&mut self, process: String, executor: &str, now: Timestamp) -> Result<(), Refused> {
        if self.is_attached() || !self.is_like(executor) {
            return Err(Refused::NotNow);
        }
        if self.attachable_until().is_none_or(|until| until <= now) {
            return Err(Refused::Ended);
        }
        self.serve(process.clone());
        self.attached_at = Some(process);
        self.approval.client.state = ClientState::Attached;
        self.approval.client.gone_since = None;
        self.approval.client.will_run = self.will_run();
        Ok(())
    }

    /// Whether that executor is the one it was held for.
    fn is_like(&self, executor: &str) -> bool {
        !executor.is_empty() && self.intent.origin.executor == executor
    }

    fn serve(&mut self, process: String) {
        self.intent.origin.process = Some(process);
        self.intent.origin.gone_since = None;
    }

    fn orphan(&mut self, now: Timestamp) {
        if self.stage() == Stage::Ended || self.intent.origin.process.is_none() {
            return;
        }
        self.intent.origin.process = None;
        self.intent.origin.gone_since = Some(now);
        self.approval.client.will_run = self.will_run();
    }

    fn adopt(&mut self, process: String, executor: &str) -> Result<(), Refused> {
        match self.stage() {
            Stage::Waiting | Stage::Approved => {}
            Stage::Running => return Err(Refused::NotNow),
            Stage::Ended => return Err(Refused::Ended),
        }
        if self.intent.origin.process.is_some() || !self.is_like(executor) {
            return Err(Refused::NotNow);
        }
        self.serve(process);
        self.approval.client.will_run = self.will_run();
        Ok(())
    }

    fn detach(&mut self, handed_off: bool, now: Timestamp) {
        self.handed_off |= handed_off;
        if !self.is_attached() {
            return;
        }
        self.attached_at = None;
        self.approval.client.state = ClientState::Gone;
        self.approval.client.gone_since = Some(now);
        self.approval.client.will_run = self.will_run();
    }

    /// What an approval would do now.
    fn will_run(&self) -> WillRun {
        if self.is_attached() || self.runs_alone() { WillRun::Now } else { WillRun::WhenAttached }
    }

    fn vote(&mut self, mut vote: Vote, sole_approver: bool, now: Timestamp) -> Result<(), Refused> {
        if self.repeats(&vote) {
            return Err(Refused::Repeated);
        }
        match (self.stage(), self.approval.state) {
            (Stage::Waiting, _) => {}
            (Stage::Approved | Stage::Running, _) | (_, ApprovalState::Rejected) => return Err(Refused::Decided),
            (Stage::Ended, _) => return Err(Refused::Ended),
        }
        vote.at = now;
        match vote.decision {
            Decision::Approve => {
                if vote.digest.is_none() || vote.digest != self.approval.call.digest {
                    return Err(Refused::Digest);
                }
                self.may_approve(&vote.by, &vote.teams, sole_approver)?;
                if self.is_owned_by(&vote.by) {
                    self.flag(SELF_APPROVED);
                }
                self.approval.votes.push(vote);
                self.tally();
                if self.is_met() {
                    self.approval.state = ApprovalState::Approved;
                    self.decide(now);
                }
            }
            Decision::Reject => {
                let note = vote.note.as_deref().map(str::trim).filter(|note| !note.is_empty()).map(str::to_owned);
                if self.approval.reason_required && note.is_none() {
                    return Err(Refused::ReasonRequired);
                }
                self.approval.votes.push(vote);
                self.decide(now);
                self.reject(Rejection::Approver, note, now);
            }
        }
        Ok(())
    }

    /// Whether somebody's approval would count. (Anybody of the group may reject, also their own agent's call: that only
    /// tightens.)
    ///
    /// # Errors
    /// [`Refused::NotYours`], with the reason.
    pub fn may_approve(&self, by: &str, teams: &[String], sole_approver: bool) -> Result<(), Refused> {
        let needed = &self.approval.requirements;
        if needed.iter().any(|needed| needed.counts(by, teams)) {
            return if self.is_owned_by(by) { self.may_approve_own(sole_approver) } else { Ok(()) };
        }
        let mut may: Vec<&str> = needed.iter().flat_map(|needed| &needed.approvers).map(String::as_str).collect();
        may.sort_unstable();
        may.dedup();
        Err(Refused::NotYours(format!("this call can be approved by {} only; you may reject it", may.join(", "))))
    }

    /// The same approver says the same again, and it stands.
    fn repeats(&self, vote: &Vote) -> bool {
        let stands = match vote.decision {
            Decision::Approve => {
                matches!(
                    self.approval.state,
                    ApprovalState::Waiting | ApprovalState::Approved | ApprovalState::Consumed
                )
            }
            Decision::Reject => self.approval.state == ApprovalState::Rejected,
        };
        stands
            && self.approval.votes.iter().any(|earlier| {
                earlier.by == vote.by
                    && earlier.decision == vote.decision
                    && (vote.decision == Decision::Reject || earlier.digest == vote.digest)
            })
    }

    fn is_owned_by(&self, approver: &str) -> bool {
        self.approval.call.owner.as_deref() == Some(approver)
    }

    fn may_approve_own(&self, sole_approver: bool) -> Result<(), Refused> {
        match self.terms.allow_self {
            AllowSelf::Always => Ok(()),
            AllowSelf::Single if sole_approver => Ok(()),
            AllowSelf::Single => Err(Refused::NotYours("your own agent's call needs another approver".into())),
            AllowSelf::Never => Err(Refused::NotYours("nobody may approve their own agent's call".into())),
        }
    }

    pub(super) fn flag(&mut self, flag: &str) {
        if !self.approval.flags.iter().any(|known| known == flag) {
            self.approval.flags.push(flag.to_owned());
        }
    }

    /// Counts the approvals of what is shown now.
    fn tally(&mut self) {
        let counts: Vec<u32> = self.approval.requirements.iter().map(|needed| self.approvals(needed)).collect();
        for (needed, votes) in self.approval.requirements.iter_mut().zip(counts) {
            needed.votes = votes;
        }
    }

    /// How many have approved what is shown now and count for a requirement.
    fn approvals(&self, needed: &RequirementRecord) -> u32 {
        let ApprovalRecord { votes, call, .. } = &self.approval;
        let approvals = votes
            .iter()
            .filter(|vote| vote.decision == Decision::Approve && vote.digest == call.digest)
            .filter(|vote| needed.counts(&vote.by, &vote.teams));
        u32::try_from(approvals.count()).unwrap_or(u32::MAX)
    }

    fn is_met(&self) -> bool {
        let digest = &self.approval.call.digest;
        let approves = |vote: &Vote| vote.decision == Decision::Approve && vote.digest == *digest;
        digest.is_some()
            && self.approval.votes.iter().any(approves)
            && self.approval.requirements.iter().all(|needed| needed.votes >= needed.quorum)
    }

    pub(super) fn decide(&mut self, now: Timestamp) {
        self.decided_at = Some(now);
        self.stop_waiting(now);
    }

    fn stop_waiting(&mut self, now: Timestamp) {
        let call = &mut self.approval.call;
        call.waited_ms.get_or_insert(millis(now.since(call.created_at)));
    }

    fn disown(&mut self, voters: &[String]) -> Result<(), Refused> {
        match self.stage() {
            Stage::Waiting | Stage::Approved => {}
            Stage::Running => return Err(Refused::NotNow),
            Stage::Ended => return Err(Refused::Ended),
        }
        self.approval.votes.retain(|vote| vote.decision != Decision::Approve || !voters.contains(&vote.by));
        self.tally();
        if self.stage() == Stage::Approved && !self.is_met() {
            self.approval.state = ApprovalState::Waiting;
            self.approval.call.waited_ms = None;
            self.decided_at = None;
        }
        Ok(())
    }

    fn rejudged(&mut self, record: ApprovalRecord, terms: Terms) -> Result<(), Refused> {
        match self.stage() {
            Stage::Waiting | Stage::Approved => {}
            Stage::Running => return Err(Refused::NotNow),
            Stage::Ended => return Err(Refused::Ended),
        }
        if !self.is_of(&record) {
            return Err(Refused::NotNow);
        }
        let stands = self.stage() == Stage::Approved && self.votes_meet(&record, &terms);
        self.terms = terms;
        if stands {
            // What was approved stays as it was shown.
            self.approval.client.will_run = self.will_run();
            return Ok(());
        }
        self.ask_anew(record);
        Ok(())
    }

    /// Whether a record is of this very call.
    pub(super) fn is_of(&self, record: &ApprovalRecord) -> bool {
        let (old, new) = (&self.approval, record);
        new.id == old.id
            && new.call.id == old.call.id
            && new.call.agent == old.call.agent
            && new.call.attach_key == old.call.attach_key
    }

    /// Waits for votes on what the record shows; the earlier ones are void.
    pub(super) fn ask_anew(&mut self, record: ApprovalRecord) {
        let old = std::mem::replace(&mut self.approval, record);
        self.decided_at = None;
        let new = &mut self.approval;
        new.state = ApprovalState::Waiting;
        new.client = old.client;
        new.notified = old.notified;
        new.reminded_at = old.reminded_at;
        new.votes.clear();
        new.flags.retain(|flag| flag != SELF_APPROVED);
        for needed in &mut new.requirements {
            needed.votes = 0;
        }
        let call = &mut new.call;
        call.state = CallState::AwaitingApproval;
        call.outcome = None;
        call.reason = None;
        call.detail = None;
        call.may_have_run = false;
        call.created_at = old.call.created_at;
        call.released_at = None;
        call.ended_at = None;
        call.waited_ms = None;
        call.ran_ms = None;
        call.tool_error = None;
        call.approval = old.call.approval;
        self.approval.client.will_run = self.will_run();
    }

    /// Whether the votes that were given are enough on other terms, too: nothing asks that the voters were not shown, it
    /// is no more urgent, its agent is whose it was, and all of them may still decide.
    fn votes_meet(&self, record: &ApprovalRecord, terms: &Terms) -> bool {
        let own = self.approval.flags.iter().any(|flag| flag == SELF_APPROVED);
        terms.asked.iter().all(|asked| self.terms.asked.contains(asked))
            && terms.severity <= self.terms.severity
            && (&terms.group, &terms.owner) == (&self.terms.group, &self.terms.owner)
            && (!own || terms.allow_self >= self.terms.allow_self)
            && record.requirements.iter().all(|needed| self.approvals(needed) >= needed.quorum)
    }

    fn claim(&mut self, process: String, digest: Option<&str>, now: Timestamp) -> Result<(), Refused> {
        match self.stage() {
            Stage::Approved => {}
            Stage::Waiting | Stage::Running => return Err(Refused::NotNow),
            Stage::Ended => return Err(Refused::Ended),
        }
        // For its client, or for nobody where none is needed and none is there.
        let entitled = match &self.attached_at {
            Some(attached) => *attached == process,
            None => self.runs_unattended(),
        };
        let serves = self.intent.origin.process.as_ref() == Some(&process);
        let is_same = digest == self.approval.call.digest.as_deref();
        if !serves || !entitled || !is_same || !self.is_met() {
            return Err(Refused::NotNow);
        }
        self.claimed_by = Some(process);
        self.approval.state = ApprovalState::Consumed;
        self.approval.call.state = CallState::Running;
        self.approval.call.released_at = Some(now);
        Ok(())
    }

    fn finish(
        &mut self,
        outcome: Outcome,
        kept: Option<Kept>,
        detail: Option<String>,
        now: Timestamp,
    ) -> Result<(), Refused> {
        match self.stage() {
            Stage::Running => {}
            Stage::Waiting | Stage::Approved => return Err(Refused::NotNow),
            Stage::Ended => return Err(Refused::Ended),
        }
        let state = match outcome {
            Outcome::Completed => CallState::Completed,
            Outcome::Failed => CallState::Failed,
            Outcome::Cancelled => CallState::Cancelled,
            Outcome::Rejected => return Err(Refused::NotNow),
        };
        let started = self.approval.call.released_at.unwrap_or(now);
        self.approval.call.ran_ms = Some(millis(now.since(started)));
        self.kept = kept;
        self.end(state, ApprovalState::Consumed, detail, now);
        Ok(())
    }

    fn refuse(&mut self, reason: Rejection, detail: Option<String>, now: Timestamp) -> Result<(), Refused> {
        match self.stage() {
            Stage::Waiting | Stage::Approved => {}
            Stage::Running => return Err(Refused::NotNow),
            Stage::Ended => return Err(Refused::Ended),
        }
        self.reject(reason, detail, now);
        Ok(())
    }

    fn cancel(&mut self, detail: Option<String>, now: Timestamp) -> Result<(), Refused> {
        match self.stage() {
            Stage::Waiting | Stage::Approved => {
                self.end(CallState::Cancelled, ApprovalState::Withdrawn, detail, now);
                Ok(())
            }
            Stage::Running => {
                self.cancel_requested = true;
                let said = &mut self.approval.call.detail;
                *said = said.take().or(detail);
                Ok(())
            }
            Stage::Ended => Err(Refused::Ended),
        }
    }

    fn tick(&mut self, now: Timestamp) {
        if self.next_tick().is_none_or(|due| due > now) {
            return;
        }
        if self.ends_at().is_none_or(|due| due > now) {
            if self.reminds_at().is_some_and(|due| due <= now) {
                self.approval.reminded_at = Some(now);
            }
            return self.escalate(now);
        }
        match self.stage() {
            Stage::Waiting => self.reject(Rejection::Expired, Some("nobody decided in time".into()), now),
            Stage::Approved => {
                let detail = match self.runs_unattended() {
                    true => "approved, but the process that was to run it has ended, and none like it came",
                    false => "approved, but its client did not come back",
                };
                self.end(CallState::Cancelled, ApprovalState::Withdrawn, Some(detail.into()), now);
            }
            Stage::Running => {}
            Stage::Ended => self.kept = None,
        }
    }

    /// Lets more people approve what the others let wait.
    fn escalate(&mut self, now: Timestamp) {
        for needed in &mut self.approval.requirements {
            let due = |more: &mut Escalation| more.due.is_some_and(|due| due <= now);
            if let Some(more) = needed.escalate.take_if(due) {
                // A requirement that anybody meets stays one.
                if !needed.approvers.is_empty() {
                    needed.approvers.extend(more.to);
                    needed.approvers.sort_unstable();
                    needed.approvers.dedup();
                }
                self.approval.escalated_at = Some(now);
            }
        }
    }

    /// The last word of each channel stands.
    fn told(&mut self, told: NotifiedRecord) {
        match self.approval.notified.iter_mut().find(|earlier| earlier.channel == told.channel) {
            Some(earlier) => *earlier = told,
            None => self.approval.notified.push(told),
        }
    }

    fn deliver(&mut self) -> Result<(), Refused> {
        if self.stage() != Stage::Ended || self.delivered {
            return Err(Refused::NotNow);
        }
        self.delivered = true;
        Ok(())
    }

    fn reject(&mut self, reason: Rejection, detail: Option<String>, now: Timestamp) {
        let approval = match reason {
            Rejection::Approver => ApprovalState::Rejected,
            Rejection::Expired => ApprovalState::Expired,
            Rejection::Stale => ApprovalState::Stale,
            // No human said no.
            Rejection::Policy
            | Rejection::Guardrail
            | Rejection::RateLimit
            | Rejection::Paused
            | Rejection::Draining => ApprovalState::Withdrawn,
        };
        self.approval.call.reason = Some(reason.as_str().to_owned());
        self.end(CallState::Rejected, approval, detail, now);
    }

    pub(super) fn end(&mut self, state: CallState, approval: ApprovalState, detail: Option<String>, now: Timestamp) {
        self.stop_waiting(now);
        self.approval.state = approval;
        let call = &mut self.approval.call;
        call.state = state;
        call.outcome = state.outcome();
        call.detail = detail.or(call.detail.take());
        call.ended_at = Some(now);
    }
}

/// Whether an event says something of an approval: none of a question, which nobody approves and which never runs.
fn is_of_an_approval(event: &Event) -> bool {
    matches!(
        event,
        Event::Vote { .. }
            | Event::Disown { .. }
            | Event::Edit(_)
            | Event::Look { .. }
            | Event::Extend { .. }
            | Event::Rejudged { .. }
            | Event::Claim { .. }
            | Event::Finish { .. }
    )
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

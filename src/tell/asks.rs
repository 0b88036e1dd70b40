//! The held calls that wait, as far as people are told of them. No arguments, no tokens.

use std::collections::{BTreeMap, HashMap};

use sha2::{Digest, Sha256};

use crate::approval::Held;
use crate::clock::Timestamp;
use crate::record::{ApprovalState, Decision, Severity};

/// One held call.
#[derive(Clone, PartialEq, Debug)]
pub struct Ask {
    /// The approval's id.
    pub approval: String,
    /// What it is told with.
    pub thread: String,
    /// Where the approval stands.
    pub state: ApprovalState,
    /// How it ended, in words; empty while it waits.
    pub ended: String,
    /// When it was decided or ended.
    pub ended_at: Option<Timestamp>,
    /// How urgent it is.
    pub severity: Severity,
    /// The group of its agent.
    pub group: String,
    /// Its agent.
    pub agent: String,
    /// Its upstream.
    pub upstream: String,
    /// Its tool.
    pub tool: Option<String>,
    /// What it would do, in one line. The agent wrote of it.
    pub label: String,
    /// The rules that asked.
    pub rules: Vec<String>,
    /// Why they asked.
    pub reason: Option<String>,
    /// Who was asked by name or team; empty: any approver of the group.
    pub approvers: Vec<String>,
    /// When it came.
    pub created_at: Timestamp,
    /// When it ends undecided.
    pub expires_at: Timestamp,
    /// When more people were asked.
    pub escalated_at: Option<Timestamp>,
    /// When those who were asked were reminded.
    pub reminded_at: Option<Timestamp>,
    /// The process that serves it.
    pub served_by: Option<String>,
}

impl Ask {
    /// What of a held call people are told; `label` is what it would do, fit to leave the gateway.
    pub fn of(held: &Held, label: String) -> Self {
        let (approval, call) = (&held.approval, held.call());
        let mut approvers: Vec<String> = approval.requirements.iter().flat_map(|one| one.approvers.clone()).collect();
        approvers.sort_unstable();
        approvers.dedup();
        Self {
            approval: approval.id.clone(),
            thread: thread(held),
            state: approval.state,
            ended: ended(held),
            ended_at: held.decided_at.or(call.ended_at),
            severity: approval.severity,
            group: call.group.clone(),
            agent: call.agent.clone(),
            upstream: call.upstream.clone(),
            tool: call.tool.clone(),
            label,
            rules: call.decided_by.clone(),
            reason: call.reasons.first().cloned(),
            approvers,
            created_at: call.created_at,
            expires_at: approval.expires_at,
            escalated_at: approval.escalated_at,
            reminded_at: approval.reminded_at,
            served_by: held.intent.origin.process.clone(),
        }
    }

    /// Whether somebody is to decide it.
    pub fn waits(&self) -> bool {
        self.state == ApprovalState::Waiting
    }
}

/// What is told together: the calls of a session, or of an agent where the protocol has no sessions. A digest, since a
/// session's id is half a credential.
fn thread(held: &Held) -> String {
    let call = held.call();
    let (kind, id) = match &call.session {
        Some(session) => ("session", session),
        None => ("agent", &call.agent),
    };
    let mut digest = hex::encode(Sha256::digest(format!("{kind}\0{id}\0{}", call.group)));
    digest.truncate(32);
    digest
}

fn ended(held: &Held) -> String {
    let by = |decision| {
        let votes = held.approval.votes.iter().filter(|vote| vote.decision == decision);
        let names: Vec<&str> = votes.map(|vote| vote.by.as_str()).collect();
        names.join(", ")
    };
    match held.approval.state {
        ApprovalState::Waiting => String::new(),
        ApprovalState::Approved | ApprovalState::Consumed => format!("approved by {}", by(Decision::Approve)),
        ApprovalState::Rejected => format!("rejected by {}", by(Decision::Reject)),
        ApprovalState::Expired => "not decided in time".to_owned(),
        ApprovalState::Withdrawn => "withdrawn".to_owned(),
        ApprovalState::Stale => "refused: it was no longer what was shown".to_owned(),
    }
}

/// All that wait, by thread.
#[derive(Default)]
pub struct Asks {
    threads: HashMap<String, BTreeMap<String, Ask>>,
}

impl Asks {
    /// Takes a change in. Answers whether there may be something to tell.
    pub fn changed(&mut self, ask: &Ask) -> bool {
        if ask.waits() {
            let asks = self.threads.entry(ask.thread.clone()).or_default();
            return asks.insert(ask.approval.clone(), ask.clone()).as_ref() != Some(ask);
        }
        if let Some(asks) = self.threads.get_mut(&ask.thread) {
            asks.remove(&ask.approval);
            if asks.is_empty() {
                self.threads.remove(&ask.thread);
            }
        }
        true
    }

    /// Those that wait of a thread.
    pub fn of(&self, thread: &str) -> Vec<Ask> {
        self.threads.get(thread).map(|asks| asks.values().cloned().collect()).unwrap_or_default()
    }

    /// The threads of which something waits.
    pub fn threads(&self) -> Vec<String> {
        self.threads.keys().cloned().collect()
    }
}

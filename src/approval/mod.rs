//! The life of one held call, as a pure state machine: no clock, no store, no network.
//!
//! [`Held::apply`] is the only place where a held call changes; the store runs it inside a conditional update, so each
//! transition happens at most once whoever races.

mod attend;
mod edit;
mod question;
mod transition;

pub use edit::Edit;
pub use question::{Answered, Question};
pub use transition::SELF_APPROVED;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;
use crate::config::AllowSelf;
use crate::message::Message;
use crate::record::{
    ApprovalRecord, CallRecord, NotifiedRecord, Outcome, Rejection, RequirementRecord, Severity, Vote,
};

/// What is stored of a held call.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// The approval with its call, as shown.
    pub approval: ApprovalRecord,
    /// What may be needed to run it again under the same id.
    pub intent: Intent,
    /// What its approval takes.
    pub terms: Terms,
    /// The process its client is connected to, while it is attached.
    pub attached_at: Option<String>,
    /// The process that runs it.
    pub claimed_by: Option<String>,
    /// When it was approved or refused.
    pub decided_at: Option<Timestamp>,
    /// The reply nobody was attached for, until it is given or too old.
    pub kept: Option<Kept>,
    /// An operator or another process wants it stopped.
    pub cancel_requested: bool,
    /// Whether the end was told to a client.
    pub delivered: bool,
    /// Whether the client was ever handed off (told to come back).
    pub handed_off: bool,
    /// For a call that was over a limit when it was to run: when there is more room, if waiting helps.
    #[serde(default)]
    pub room_at: Option<Timestamp>,
    /// For a question of the agent to its people: nothing to be approved, and nothing that runs.
    #[serde(default)]
    pub question: Option<Question>,
}

/// The stored intent: enough to judge and send the call again after a restart.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Intent {
    /// The client's whole JSON-RPC request: as it came, or with the arguments that an approver put in their place.
    pub message: String,
    /// As it came, where an approver changed it.
    #[serde(default)]
    pub original: Option<String>,
    /// The agent's name.
    pub agent: String,
    /// The hash of the token that it came with; none where none was needed. What is revoked runs nothing.
    #[serde(default)]
    pub credential: Option<String>,
    /// The session it came in.
    pub session: Option<String>,
    /// `legacy` or `modern`.
    pub era: String,
    /// The digest of the tool's definition that was shown.
    #[serde(default)]
    pub definition: Option<String>,
    /// A digest of the places it touches, unredacted.
    #[serde(default)]
    pub places: String,
    /// What it would run as a script, and the file whose change people are shown.
    #[serde(default)]
    pub scripts: Vec<Script>,
    /// A digest of this very call, whatever the files are by now that it changes: what a grant for it is bound to.
    #[serde(default)]
    pub very_call: Option<String>,
    /// The task that its client was given in the place of an answer.
    #[serde(default)]
    pub task: Option<Task>,
    /// Where it would run.
    #[serde(default)]
    pub origin: Origin,
}

impl Intent {
    /// The request, to be judged and run.
    ///
    /// # Errors
    /// What is stored is no request: why.
    pub fn message(&self) -> Result<Message, String> {
        Message::again(&self.message).map_err(|error| format!("the stored request cannot be read: {error}"))
    }
}

/// A handle by which a client asks for the end of its call, whoever is connected then (MCP 2025-11-25, "Tasks"; the
/// extension `io.modelcontextprotocol/tasks`).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// `task_…`; half a credential.
    pub id: String,
    /// How long its end can be asked for at least, ms.
    pub ttl_ms: u64,
}

/// Whose a held call is among the processes that share a state folder: only an executor like the one it was held for may
/// run it, and only the process that serves it releases or refuses it. Everyone may vote on it and cancel it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Origin {
    /// The process that serves it; none once that has ended.
    pub process: Option<String>,
    /// Since when no process serves it.
    pub gone_since: Option<Timestamp>,
    /// A digest of the executor: what is started or called, where, in which environment.
    pub executor: String,
}

/// A file whose content an approval binds: a command of the call would run it, or people are shown how the call would
/// change it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Script {
    /// Where it really is.
    pub path: String,
    /// `sha256:…`, or [`NO_FILE`]; none where it is too large to be bound, or cannot be read.
    pub content: Option<String>,
    /// Whether it is one whose change people are shown.
    #[serde(default)]
    pub shown: bool,
}

/// The content of a file that is not there yet.
pub const NO_FILE: &str = "none";

/// What an approval of the call takes and what follows from it, as policy and configuration had it when it was asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// Everything that asked: rules, `otherwise:GROUP`, and each floor with its sentence and its place.
    pub asked: Vec<String>,
    /// Who must approve.
    pub people: Vec<RequirementRecord>,
    /// The group of its agent, whose approvers decide.
    pub group: String,
    /// The person its agent belongs to.
    pub owner: Option<String>,
    /// How urgent.
    pub severity: Severity,
    /// Whether a rejection needs a note.
    pub reason_required: bool,
    /// Who may decide their own agent's calls.
    pub allow_self: AllowSelf,
    /// Run at once although nobody is attached.
    pub run_always: bool,
    /// After how long it ends undecided, ms.
    pub expires_ms: u64,
    /// How long a client's stream is held before the hand-off, ms.
    pub hold_for_ms: u64,
    /// How long an approved call waits for its client, ms.
    pub hold_grace_ms: u64,
    /// How long a kept reply is kept, ms.
    pub result_ttl_ms: u64,
}

/// A reply that nobody was attached for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Kept {
    /// The raw JSON of the `result` or `error` member.
    pub body: String,
    /// Whether `body` is an error.
    pub is_error: bool,
    /// When it came.
    pub at: Timestamp,
}

/// What can happen to a held call.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A client waits for it (again), in this process, which serves it from now on.
    Attach {
        /// The process the client is connected to.
        process: String,
        /// Its executor; another one is refused.
        executor: String,
    },
    /// The process that served it has ended.
    Orphan,
    /// A process with the same executor serves it from now on; only where none does.
    Adopt {
        /// The process.
        process: String,
        /// Its executor.
        executor: String,
    },
    /// Its client is gone; `handed_off` if it was told to come back.
    Detach {
        /// Told to come back with the identical call.
        handed_off: bool,
    },
    /// An approver's word.
    Vote {
        /// The word, with the digest the approver was shown; its time is set when it applies.
        vote: Vote,
        /// Whether nobody else may decide this call; what [`AllowSelf::Single`] asks.
        sole_approver: bool,
    },
    /// These people may not decide it any more: what they approved counts no longer, and the call waits again where that
    /// is not enough.
    Disown {
        /// The approvers' names.
        voters: Vec<String>,
    },
    /// An approver changes its arguments: what was said of the others is void.
    Edit(Box<Edit>),
    /// An approver shows the others that they look at it, or no longer.
    Look {
        /// Their name.
        by: String,
        /// Until when; none takes the sign down.
        until: Option<Timestamp>,
    },
    /// An approver puts off its end.
    Extend {
        /// To this time at most; its own `expires` bounds it, too.
        to: Timestamp,
    },
    /// At release, the call is asked about on other terms. Votes that meet them stand; otherwise they are void, and the
    /// call waits for new ones.
    Rejudged {
        /// The approval as it is then shown.
        approval: Box<ApprovalRecord>,
        /// The terms from now on.
        terms: Terms,
    },
    /// The process that serves it takes it to run; nothing is sent before this succeeds.
    Claim {
        /// The process.
        process: String,
        /// The digest of what it is about to send: another one is not what was approved last.
        digest: Option<String>,
    },
    /// The run ended.
    Finish {
        /// How.
        outcome: Outcome,
        /// The reply, if nobody was attached.
        kept: Option<Kept>,
        /// Whether the tool itself reported an error.
        tool_error: Option<bool>,
        /// What broke, for a failure.
        detail: Option<String>,
        /// Whether it may have run although it failed.
        may_have_run: bool,
    },
    /// Policy, staleness or draining refuses it before it ran.
    Refuse {
        /// Why.
        reason: Rejection,
        /// The sentence.
        detail: Option<String>,
    },
    /// It is over a limit when it is to run.
    Over {
        /// The sentence.
        detail: String,
        /// When there is more room, if waiting helps.
        room_at: Option<Timestamp>,
    },
    /// The client or an operator stops it: withdrawn while waiting, asked to stop while running.
    Cancel {
        /// Who and why.
        detail: Option<String>,
    },
    /// Somebody answers a question.
    Answer {
        /// Who and what; its time is set when it applies.
        answer: Answered,
        /// The teams they belong to.
        teams: Vec<String>,
        /// The reply for the agent, raw JSON.
        body: String,
    },
    /// Time passed: a reminder, an escalation, expiry, or the end of the grace.
    Tick,
    /// People were told of it, or could not be. Says nothing of the call: it applies whatever became of it.
    Told(NotifiedRecord),
    /// The end (reply, kept reply, rejection) was given to a client; once, so that whoever applies it first gives it.
    /// Without it, an identical call is told the end again once its client counts as gone.
    Deliver,
}

/// Why an event does not apply. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Decided otherwise already (409).
    Decided,
    /// Ended (410).
    Ended,
    /// Another digest than the current one (412).
    Digest,
    /// The approver may not decide this one, with the reason (403).
    NotYours(String),
    /// A rejection needs a note (400).
    ReasonRequired,
    /// The same approver has said the same already, and it stands: counted once.
    Repeated,
    /// Not in a state for this.
    NotNow,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Decided => "it was decided otherwise already",
            Self::Ended => "the call has ended",
            Self::Digest => "the call is not the one that was shown; look at it again",
            Self::NotYours(why) => why,
            Self::ReasonRequired => "a rejection of this call needs a note that says why",
            Self::Repeated => "you have said so already",
            Self::NotNow => "the call is not in a state for this",
        })
    }
}

impl Held {
    /// The call as shown.
    pub fn call(&self) -> &CallRecord {
        &self.approval.call
    }

    /// How long a client's stream is held before the hand-off.
    pub fn hold_for(&self) -> Duration {
        Duration::from_millis(self.terms.hold_for_ms)
    }

    /// How long its result is kept.
    pub fn result_ttl(&self) -> Duration {
        let task = self.intent.task.as_ref().map_or(0, |task| task.ttl_ms);
        Duration::from_millis(self.terms.result_ttl_ms.max(task))
    }

    /// Whether it runs at once when it is approved, whoever is connected.
    pub fn runs_unattended(&self) -> bool {
        self.terms.run_always || self.intent.task.is_some()
    }
}

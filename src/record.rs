//! The shapes that people and programs outside read: calls, approvals, facets, events.
//!
//! Field names and meanings are a contract; everything here serializes to the JSON that the API, the CLI and the audit
//! log show. Times are RFC 3339 in UTC, durations milliseconds, ids opaque strings.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// The word by which a plain enum goes in JSON.
pub fn word<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

/// What the policy says of a call, loosest first, so that the larger of two is the stricter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Runs.
    Allow,
    /// Held until a human decides.
    Ask,
    /// Refused.
    Deny,
}

/// Where a call stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// Received, not yet judged.
    Pending,
    /// Held for a human; nothing has reached the upstream.
    AwaitingApproval,
    /// Forwarded; the upstream is working.
    Running,
    /// The upstream answered.
    Completed,
    /// The upstream or the transport broke, or the gateway died while the call was running.
    Failed,
    /// The client or an operator stopped it; not an error.
    Cancelled,
    /// Policy, an approver, expiry or staleness refused it; not an error.
    Rejected,
}

impl CallState {
    /// Every state, in the order of a call's life.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::AwaitingApproval,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Rejected,
    ];

    /// How the call ended, if it has.
    pub const fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Pending | Self::AwaitingApproval | Self::Running => None,
            Self::Completed => Some(Outcome::Completed),
            Self::Failed => Some(Outcome::Failed),
            Self::Cancelled => Some(Outcome::Cancelled),
            Self::Rejected => Some(Outcome::Rejected),
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The upstream answered.
    Completed,
    /// The upstream or the transport broke.
    Failed,
    /// Stopped by the client or an operator.
    Cancelled,
    /// Refused.
    Rejected,
}

impl Outcome {
    /// The label value in metrics and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Rejected => "rejected",
        }
    }
}

/// Why a call was rejected.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rejection {
    /// A rule of the group, or its `otherwise`.
    Policy,
    /// A guardrail.
    Guardrail,
    /// A human said no.
    Approver,
    /// Nobody decided in time.
    Expired,
    /// Too many calls, or too many waiting.
    RateLimit,
    /// What was approved is no longer what would run.
    Stale,
    /// The agent or group is paused.
    Paused,
    /// The gateway is shutting down.
    Draining,
}

impl Rejection {
    /// The label value in metrics, JSON and replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Policy => "policy",
            Self::Guardrail => "guardrail",
            Self::Approver => "approver",
            Self::Expired => "expired",
            Self::RateLimit => "rate_limit",
            Self::Stale => "stale",
            Self::Paused => "paused",
            Self::Draining => "draining",
        }
    }
}

/// How a facet's path would be used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Access {
    /// Opened for reading, listed, or looked at.
    Read,
    /// Created or changed.
    Write,
    /// Removed, or moved away.
    Delete,
}

/// Whether an agent acts for a person who is present.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A person is there.
    #[default]
    Interactive,
    /// A job.
    Background,
}

/// Whether an agent is a person's own or another agent's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Depth {
    /// Started by a person.
    #[default]
    Root,
    /// Started by an agent.
    Sub,
}

/// A rule that matched a facet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RuleMatch {
    /// The rule's name, or `file:line`; `builtin:NAME` for a built-in guardrail.
    pub rule: String,
    /// What the rule says.
    pub verdict: Verdict,
    /// The file it stands in; none for a built-in.
    pub file: Option<String>,
    /// Its line.
    pub line: Option<usize>,
    /// Whether it was only logged: it, or its group, is in shadow mode.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shadow: bool,
}

/// An ask that no allow lifts.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Floor")]
pub struct FloorRecord {
    /// The stable word, such as `hard_link`.
    pub why: String,
    /// The sentence for people.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
}

/// One thing a call would touch, with what the policy said of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Facet")]
pub struct FacetRecord {
    /// The kind and its own fields.
    #[serde(flatten)]
    pub kind: FacetKindRecord,
    /// Asks that no allow lifts.
    pub floors: Vec<FloorRecord>,
    /// Rules that matched.
    pub matches: Vec<RuleMatch>,
    /// The strictest of all that was said.
    pub verdict: Verdict,
}

/// A facet's kind and its own fields.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FacetKindRecord {
    /// A path in a file system.
    Path {
        /// None where the catalogue does not know it.
        access: Option<Access>,
        /// JSON pointer into the arguments.
        pointer: String,
        /// With `.` and `..` folded.
        lexical: String,
        /// With links resolved; none where the gateway does not share the file system.
        physical: Option<String>,
        /// The command that names it, shortened: it is the last [`Self::Command`] before this facet.
        command: Option<String>,
    },
    /// A simple command, or a whole shell text that is not understood.
    Command {
        /// The words as rules see them: the program, its subcommand and its operands; or the one text that is not
        /// understood.
        words: Vec<String>,
        /// Options that are present, by every name they have.
        options: Vec<String>,
        /// Where it would run.
        cwd: Option<String>,
        /// All that follows the program, options and their values included.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        rest: Vec<String>,
        /// Options that run programs or write files, each by every name it has.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        powers: Vec<Vec<String>>,
        /// Whether the program's options are known.
        #[serde(default)]
        tabled: bool,
        /// Whether `words` is a text that is not understood.
        #[serde(default)]
        unread: bool,
        /// Which words only a running shell knows.
        #[serde(default, skip_serializing_if = "Dynamic::is_empty")]
        dynamic: Dynamic,
    },
    /// A URL.
    Url {
        /// As it was sent.
        url: String,
        /// The host, if it has one.
        host: Option<String>,
        /// The command that names it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        command: Option<String>,
    },
    /// An e-mail address.
    Address {
        /// The address, without a display name.
        address: String,
        /// Its domain, if it can be read.
        host: Option<String>,
    },
    /// An SQL text.
    Sql {
        /// Kinds of its statements; empty where it is not read.
        kinds: Vec<String>,
        /// Tables that it names.
        tables: Vec<String>,
    },
    /// Another method than a tool call.
    Method {
        /// Its name.
        method: String,
    },
    /// Nothing else is known of the call.
    Bare,
}

/// The words of a command that only a running shell knows, by their places.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Dynamic {
    /// In `words`.
    pub words: Vec<usize>,
    /// In `rest`.
    pub rest: Vec<usize>,
}

impl Dynamic {
    /// Whether all words are known.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.rest.is_empty()
    }
}

impl FacetKindRecord {
    /// A command as a person reads it, nothing left out; none for what is no command.
    pub fn command_line(&self) -> Option<String> {
        let Self::Command { words, rest, unread, dynamic, .. } = self else { return None };
        let (program, more) = words.split_first()?;
        if *unread {
            return Some(program.clone());
        }
        let known = |places: &[usize], at: usize| !places.contains(&at);
        let (more, places, skipped) =
            if rest.is_empty() { (more, &dynamic.words, 1) } else { (&**rest, &dynamic.rest, 0) };
        let more = more.iter().enumerate().map(|(at, word)| (word.as_str(), known(places, at + skipped)));
        Some(command_line(std::iter::once((program.as_str(), known(&dynamic.words, 0))).chain(more)))
    }
}

/// Words as a command line that tells where one ends; with each whether it is known, for others stand as they were
/// written.
pub fn command_line<'a>(words: impl IntoIterator<Item = (&'a str, bool)>) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_@%+=:,./-~".contains(c);
    let quoted = |(word, known): (&'a str, bool)| match word {
        "" if known => "''".to_owned(),
        word if known && !word.chars().all(plain) => format!("'{}'", word.replace('\'', "'\\''")),
        word => word.to_owned(),
    };
    words.into_iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// A call, as the API shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Call")]
pub struct CallRecord {
    /// `call_…`.
    pub id: String,
    /// Where it stands.
    pub state: CallState,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Why it was rejected, or what broke.
    pub reason: Option<String>,
    /// The sentence behind `reason`: a rule's reason, an approver's note, an error.
    #[serde(default)]
    pub detail: Option<String>,
    /// Whether it may have run although it failed.
    pub may_have_run: bool,
    /// Whose call it is.
    pub agent: String,
    /// The person the agent belongs to.
    pub owner: Option<String>,
    /// The policy group.
    pub group: String,
    /// Whether a person is present.
    pub source: Source,
    /// Root or sub.
    pub depth: Depth,
    /// The session, where the protocol has one.
    pub session: Option<String>,
    /// The tool executor.
    pub upstream: String,
    /// The tool's name; none for other methods.
    pub tool: Option<String>,
    /// The MCP method.
    pub method: String,
    /// What will happen, in one line; safe to print.
    pub label: String,
    /// The redacted arguments (`params` for other methods).
    pub arguments: serde_json::Value,
    /// JSON pointers of what was redacted.
    pub redacted: Vec<String>,
    /// What each secret is that was replaced there, as far as it gives nothing away; of the first 256.
    #[serde(default)]
    pub hidden: Vec<HiddenRecord>,
    /// How many more were replaced, of which nothing is told.
    #[serde(default)]
    pub hidden_more: usize,
    /// What it touches.
    pub facets: Vec<FacetRecord>,
    /// What the policy said.
    pub verdict: Option<Verdict>,
    /// Rules, `otherwise:GROUP`, `builtin:NAME`, `floor:WHY`.
    pub decided_by: Vec<String>,
    /// The reasons of the deciding rules, for people.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// The grant that let it pass.
    pub grant: Option<String>,
    /// What the verdict would have been had nothing been in shadow mode; none where nothing in shadow mode concerned the
    /// call.
    pub shadow_verdict: Option<Verdict>,
    /// Version of the policy that judged it.
    pub policy: Option<String>,
    /// The shown digest.
    pub digest: Option<String>,
    /// The attach key.
    pub attach_key: Option<String>,
    /// When it was received.
    pub created_at: Timestamp,
    /// When it was forwarded.
    pub released_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How long it waited for a human, in ms.
    pub waited_ms: Option<u64>,
    /// How long the upstream took, in ms.
    pub ran_ms: Option<u64>,
    /// Whether the tool itself reported an error.
    pub tool_error: Option<bool>,
    /// The approval, if it was held.
    pub approval: Option<String>,
    /// Whether it is the other way round: a request of the upstream to the agent's side.
    #[serde(default)]
    pub from_upstream: bool,
}

impl CallRecord {
    /// Takes over what another judgement of the same call says of it; it stays the call that it is.
    pub fn rejudge(&mut self, fresh: Self) {
        self.owner = fresh.owner;
        self.group = fresh.group;
        self.source = fresh.source;
        self.depth = fresh.depth;
        self.facets = fresh.facets;
        self.verdict = fresh.verdict;
        self.decided_by = fresh.decided_by;
        self.reasons = fresh.reasons;
        self.shadow_verdict = fresh.shadow_verdict;
        self.policy = fresh.policy;
        self.digest = fresh.digest;
    }
}

/// A secret that nobody is shown, so that it can be told from others. `[redacted]` stands in its place; where that was sent
/// as it is, nothing here names it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Hidden")]
pub struct HiddenRecord {
    /// The JSON pointer of the text it was taken out of.
    pub pointer: String,
    /// Which `[redacted]` of that text stands for it, from 0.
    pub mark: usize,
    /// Its length in characters; that of its JSON text where it is no string.
    pub length: usize,
    /// Its first characters; none of a short one.
    pub starts: Option<String>,
    /// Its last characters; none of a short one.
    pub ends: Option<String>,
    /// A short hash under a key of this gateway: the same for the same secret of the same agent.
    pub hash: String,
}

/// Where an approval stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Nobody has decided.
    Waiting,
    /// Approved; waiting for its client, or running.
    Approved,
    /// A human said no.
    Rejected,
    /// Nobody decided in time.
    Expired,
    /// The call was cancelled.
    Withdrawn,
    /// What was approved is no longer what would run.
    Stale,
    /// Used by its one run.
    Consumed,
}

impl ApprovalState {
    /// Every state.
    pub const ALL: [Self; 7] =
        [Self::Waiting, Self::Approved, Self::Rejected, Self::Expired, Self::Withdrawn, Self::Stale, Self::Consumed];
}

/// What an approver said.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Let it run.
    Approve,
    /// Refuse it.
    Reject,
}

/// One approver's word on one approval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Vote {
    /// The approver's name.
    pub by: String,
    /// The teams they belonged to then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub teams: Vec<String>,
    /// What they said.
    pub decision: Decision,
    /// `inbox`, `api` or `cli`.
    pub channel: String,
    /// Why.
    pub note: Option<String>,
    /// The digest they were shown.
    pub digest: Option<String>,
    /// What of it is to be remembered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Box<Remember>>,
    /// When.
    pub at: Timestamp,
}

/// How wide a grant is, narrowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrantScope {
    /// This very call.
    Exact,
    /// This tool, below a folder.
    Path,
    /// Commands that start with these words.
    Command,
    /// This tool.
    Tool,
}

/// Whose calls a grant is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GrantBound {
    /// Those of the call's own session.
    Session,
    /// Those of its agent, with the same credential.
    Agent,
}

/// "Approve and remember", as an approver says it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Remember {
    /// How wide.
    pub scope: GrantScope,
    /// The folder, for a scope of `path`.
    #[serde(default)]
    pub path: Option<String>,
    /// The words, for a scope of `command`.
    #[serde(default)]
    pub command: Option<String>,
    /// How long, in ms; what the option says if it is left out.
    #[serde(default)]
    pub ttl_ms: Option<u64>,
    /// How many calls; what the option says if it is left out.
    #[serde(default)]
    pub uses: Option<u32>,
    /// Whose calls; the narrowest that the option has if it is left out.
    #[serde(default)]
    pub bound: Option<GrantBound>,
}

/// What may be remembered of a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrantOption {
    /// How wide.
    pub scope: GrantScope,
    /// The folder, for a scope of `path`.
    pub path: Option<String>,
    /// The words, for a scope of `command`.
    pub command: Option<String>,
    /// How the folder is used.
    #[serde(default)]
    pub access: Vec<Access>,
    /// The options that such a command may have.
    #[serde(default)]
    pub options: Vec<String>,
    /// What would run without a question, in words.
    pub sentence: String,
    /// How long, unless less is asked for, in ms.
    pub ttl_ms: u64,
    /// How long at most, in ms.
    pub max_ttl_ms: u64,
    /// How many calls, unless another number is asked for.
    pub uses: u32,
    /// Whose calls, the narrowest first.
    pub bound: Vec<GrantBound>,
}

/// Where a grant stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrantState {
    /// It lets calls pass.
    Active,
    /// Its time is over.
    Expired,
    /// All its uses are.
    UsedUp,
    /// A person ended it.
    Revoked,
    /// What it was bound to has changed.
    Ended,
}

/// A grant, as the API shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Grant")]
pub struct GrantRecord {
    /// `gr_…`.
    pub id: String,
    /// Where it stands.
    pub state: GrantState,
    /// How wide.
    pub scope: GrantScope,
    /// What runs without a question, in words.
    pub sentence: String,
    /// Who asked: the rules, or `otherwise:GROUP`, that it lifts.
    pub rule: String,
    /// The agent.
    pub agent: String,
    /// Its policy group.
    pub group: String,
    /// The session, where it is bound to one.
    pub session: Option<String>,
    /// Whose calls.
    pub bound: GrantBound,
    /// The upstream.
    pub upstream: String,
    /// The tool.
    pub tool: Option<String>,
    /// The folder.
    pub path: Option<String>,
    /// The words.
    pub command: Option<String>,
    /// How many calls it still lets pass.
    pub uses_left: u32,
    /// How many it has.
    pub used: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// Who approved it.
    pub by: Vec<String>,
    /// The approval it was made with.
    pub from: String,
    /// When it ended before its time.
    pub ended_at: Option<Timestamp>,
    /// Who or what ended it.
    pub ended_by: Option<String>,
}

/// How urgent an approval is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Can wait.
    Low,
    /// As usual.
    #[default]
    Normal,
    /// Look soon.
    High,
    /// Look now.
    Critical,
}

/// One requirement that an approval must meet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Requirement")]
pub struct RequirementRecord {
    /// The named approval, if the rule names one.
    pub approval: Option<String>,
    /// Names or teams that may approve; empty: any approver of the group.
    pub approvers: Vec<String>,
    /// How many people must approve.
    pub quorum: u32,
    /// How many have.
    pub votes: u32,
    /// Who else is asked if they let it wait; none: nobody, or they are among the approvers by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalate: Option<Escalation>,
}

/// More people for a requirement that nobody has met in time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Escalation {
    /// After how long, ms.
    pub after_ms: u64,
    /// Names or teams that may then approve, too.
    pub to: Vec<String>,
    /// When that is, once it is asked for.
    pub due: Option<Timestamp>,
}

impl RequirementRecord {
    /// Anybody of the group.
    pub fn anybody() -> Self {
        Self { approval: None, approvers: Vec::new(), quorum: 1, votes: 0, escalate: None }
    }

    /// Whether somebody's approval counts for it.
    pub fn counts(&self, name: &str, teams: &[String]) -> bool {
        self.approvers.is_empty() || self.approvers.iter().any(|one| one == name || teams.contains(one))
    }
}

/// Where a question of an agent stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ClarificationState {
    /// Nobody has answered yet.
    Waiting,
    /// Somebody has.
    Answered,
    /// Nobody did in time.
    Expired,
    /// The agent, an operator or the policy took it back.
    Withdrawn,
}

impl ClarificationState {
    /// From how it is held.
    pub fn of(held: ApprovalState) -> Self {
        match held {
            ApprovalState::Waiting | ApprovalState::Approved => Self::Waiting,
            ApprovalState::Consumed => Self::Answered,
            ApprovalState::Expired => Self::Expired,
            ApprovalState::Rejected | ApprovalState::Withdrawn | ApprovalState::Stale => Self::Withdrawn,
        }
    }

    /// How it is held then.
    pub fn held_as(self) -> ApprovalState {
        match self {
            Self::Waiting => ApprovalState::Waiting,
            Self::Answered => ApprovalState::Consumed,
            Self::Expired => ApprovalState::Expired,
            Self::Withdrawn => ApprovalState::Withdrawn,
        }
    }
}

/// A question of an agent to its people.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Clarification")]
pub struct ClarificationRecord {
    /// The id of the call by which it was asked.
    pub id: String,
    /// Who asks.
    pub agent: String,
    /// Its policy group, whose approvers may answer.
    pub group: String,
    /// The session it asked in, if there is one.
    pub session: Option<String>,
    /// What it asks: its own words, redacted, with invisible characters written out.
    pub question: String,
    /// Answers that it offers; another one can be given.
    pub choices: Vec<String>,
    /// Where it stands.
    pub state: ClarificationState,
    /// When it was asked.
    pub asked_at: Timestamp,
    /// When it ends unanswered.
    pub expires_at: Timestamp,
    /// What was answered, redacted.
    pub answer: Option<String>,
    /// By whom.
    pub answered_by: Option<String>,
    /// When.
    pub answered_at: Option<Timestamp>,
    /// How it ended otherwise.
    pub detail: Option<String>,
    /// Whether the agent waits for the answer, or is gone and may come back for it.
    pub client: ClientRecord,
}

/// An approval as one approver sees it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Approval")]
pub struct ApprovalView {
    /// The approval.
    #[serde(flatten)]
    pub approval: ApprovalRecord,
    /// What the one who asks may do with it.
    pub you: You,
    /// What its flags mean, in sentences.
    pub look_at: Vec<String>,
}

/// What an approver may do with an approval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct You {
    /// Whether their approval would count.
    pub may_approve: bool,
    /// Why not.
    pub why_not: Option<String>,
}

/// Whether the client of a held call is there.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Client")]
pub struct ClientRecord {
    /// `attached` or `gone`.
    pub state: ClientState,
    /// Since when it is gone.
    pub gone_since: Option<Timestamp>,
    /// What an approval would do.
    pub will_run: WillRun,
    /// Whether it was given a task, by which it asks for the end of the call: it is not waited for.
    #[serde(default)]
    pub task: bool,
}

/// Whether a client waits for the call's answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClientState {
    /// It waits.
    Attached,
    /// Its stream is closed, or it was handed off.
    Gone,
}

/// What happens on approval.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WillRun {
    /// The call runs as soon as it is approved.
    Now,
    /// It runs when its client comes back within `hold_grace` of the decision.
    WhenAttached,
}

/// An approval, as the API shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRecord {
    /// `apr_…`.
    pub id: String,
    /// The held call.
    pub call: CallRecord,
    /// Where it stands.
    pub state: ApprovalState,
    /// What it needs.
    pub requirements: Vec<RequirementRecord>,
    /// What was said.
    pub votes: Vec<Vote>,
    /// How urgent.
    pub severity: Severity,
    /// Whether a rejection needs a note.
    #[serde(default)]
    pub reason_required: bool,
    /// Whether the client is there.
    pub client: ClientRecord,
    /// Where it would run, as far as that tells two executors of one name apart: the folder or address, and a short
    /// digest of the environment.
    #[serde(default)]
    pub runs_in: Option<String>,
    /// The digest of the tool's definition that the call was made on.
    #[serde(default)]
    pub definition: Option<String>,
    /// When it ends undecided.
    pub expires_at: Timestamp,
    /// When it was escalated.
    pub escalated_at: Option<Timestamp>,
    /// When those who were asked were reminded.
    #[serde(default)]
    pub reminded_at: Option<Timestamp>,
    /// Who was told, the last word of each channel.
    pub notified: Vec<NotifiedRecord>,
    /// What an approver should look at twice.
    pub flags: Vec<String>,
    /// What an approver changed.
    pub edited_from: Option<EditRecord>,
    /// Who looks at it now.
    #[serde(default)]
    pub claimed: Option<ClaimRecord>,
    /// By how much its end was put off, in ms.
    #[serde(default)]
    pub extended_ms: u64,
    /// What could be remembered, the narrowest first.
    pub grant_options: Vec<GrantOption>,
}

/// That people were told of an approval, or could not be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NotifiedRecord {
    /// The kind of the channel and its name, such as `slack:ops`.
    pub channel: String,
    /// What became of it.
    pub state: NotifiedState,
    /// When.
    pub at: Timestamp,
    /// Why it could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// What became of telling people.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NotifiedState {
    /// It did not work yet, and is tried again.
    Pending,
    /// They were told.
    Delivered,
    /// It did not work, and is not tried again.
    Failed,
    /// They were told anew: of a reminder, or of an escalation.
    Updated,
    /// They were told how it was decided, or ended.
    Closed,
}

impl NotifiedState {
    /// The label value in metrics, and the word in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Updated => "updated",
            Self::Closed => "closed",
        }
    }
}

/// What a call was before an approver changed its arguments.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Edit")]
pub struct EditRecord {
    /// The last approver who changed them.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// The redacted arguments that the agent sent.
    pub arguments: serde_json::Value,
    /// What each secret is that was replaced there.
    #[serde(default)]
    pub hidden: Vec<HiddenRecord>,
    /// How many more were replaced, of which nothing is told.
    #[serde(default)]
    pub hidden_more: usize,
    /// What the agent sent, in one line.
    pub label: String,
    /// The digest of what the agent sent.
    pub digest: Option<String>,
}

/// An approver's sign to the others that they look at it. It keeps nobody from deciding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Claim")]
pub struct ClaimRecord {
    /// The approver.
    pub by: String,
    /// Until when the sign is up.
    pub until: Timestamp,
}

/// An agent, as the API shows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Agent")]
pub struct AgentRecord {
    /// Its name.
    pub name: String,
    /// Its policy group.
    pub group: String,
    /// The person it belongs to.
    pub owner: Option<String>,
    /// Whether a person is present.
    pub source: Source,
    /// Root or sub.
    pub depth: Depth,
    /// Who paused it, while its calls are refused.
    pub paused: Option<PauseRecord>,
    /// How many of its calls wait for a decision, or for their client.
    pub waiting: u64,
    /// How many of its calls run, as far as this process knows.
    pub running: u64,
    /// When it last called, as far as this process knows.
    pub last_call: Option<Timestamp>,
}

/// Why an agent's calls are refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Pause")]
pub struct PauseRecord {
    /// Who ordered it.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<String>,
}

/// What a held call would change in one file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// Where the file really is.
    pub path: String,
    /// What becomes of it.
    pub state: FileState,
    /// `- ` gone, `+ ` new, two blanks for neither, `@@` where lines were left out; secrets replaced.
    pub lines: Vec<String>,
    /// What each secret is that was replaced in them; pointers lead into this object, such as `/lines/3`.
    pub hidden: Vec<HiddenRecord>,
    /// How many more were replaced, of which nothing is told.
    pub hidden_more: usize,
    /// Whether there is more than the lines.
    pub truncated: bool,
    /// Whether the file is another than when the call was held: an approval would end as stale.
    pub moved_on: bool,
}

/// What becomes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    /// Its content changes.
    Changed,
    /// It is made.
    New,
    /// It stays as it is.
    Same,
    /// It is no text.
    Binary,
    /// It is too large to be shown, or cannot be read.
    TooLarge,
    /// What the tool would make of it cannot be told.
    Unclear,
}

/// Whether an operator has accepted a tool as its upstream defines it now.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolState {
    /// The definition that was last offered is the accepted one.
    Accepted,
    /// No definition of it was ever accepted.
    New,
    /// Another definition than the accepted one was last offered.
    Changed,
}

/// What the policy says of a tool without its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ToolVerdict {
    /// Allowed, whatever the arguments.
    Allow,
    /// A human is asked, or it is denied, whatever the arguments.
    Ask,
    /// Denied, whatever the arguments.
    Deny,
    /// The arguments decide.
    Depends,
}

/// A tool that an upstream has offered, as the API shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Tool")]
pub struct ToolRecord {
    /// The configured id.
    pub upstream: String,
    /// Its name.
    pub name: String,
    /// The catalogue's category; none where no catalogue describes it.
    pub category: Option<String>,
    /// Over the definition that was last offered.
    pub definition_digest: String,
    /// Whether that definition is accepted.
    pub state: ToolState,
    /// When a gateway first saw it.
    pub first_seen: Timestamp,
    /// When it was last seen in a list, within the hour.
    pub last_offered: Timestamp,
    /// What the arguments are, by JSON pointer: `path:read`, `command`, `url`, …
    pub arguments: BTreeMap<String, String>,
    /// By group; empty where this gateway does not serve the upstream.
    pub verdicts: BTreeMap<String, ToolVerdict>,
    /// What to look at twice in its texts: `invisible`, `bidi`, `instructions`.
    pub flags: Vec<String>,
    /// The accepted definition, if there is one.
    pub accepted: Option<AcceptedRecord>,
}

/// Who accepted which definition.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Accepted")]
pub struct AcceptedRecord {
    /// Over the definition that was accepted.
    pub digest: String,
    /// The operator's name, or what accepted it in their place (`wrap`, `new_tools: accept`).
    pub by: String,
    /// When.
    pub at: Timestamp,
}

/// A tool with its definitions, as `GET tools/{upstream}/{name}` shows it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ToolDetail {
    /// The tool.
    #[serde(flatten)]
    pub tool: ToolRecord,
    /// The definition: the one that was asked for by its digest, else the one that was last offered.
    pub definition: serde_json::Value,
    /// Whether that is what was last offered.
    pub is_offered: bool,
    /// The accepted one, where it is another.
    pub accepted_definition: Option<serde_json::Value>,
    /// From the accepted definition to this one, a line each: `- ` gone, `+ ` new, two blanks for neither.
    pub difference: Vec<String>,
}

//! Held calls, sessions, logins and tools: one writer thread over SQLite, shared by every process on the same folder.

mod news;
mod sqlite;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};

use self::sqlite::Database;

use crate::approval::{Event, Held, Refused};
use crate::clock::{Clock, Timestamp};
use crate::policy::{Charge, Decimal};

/// The flag on an approval of a call beside which the identical one waits: its client cannot pick that one up.
pub const SAME_CALL_WAITING: &str = "same_call_waiting";

/// The flag on an approval of a call whose like has run, and whose client did not take the result.
pub const SAME_CALL_RAN: &str = "same_call_ran";

/// The flag on an approval of a call to an upstream of which other calls wait that would run elsewhere.
pub const SEVERAL_EXECUTORS: &str = "several_executors";

/// The meeting point of all processes that share a state folder. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    database: Arc<Database>,
}

/// Why the store could not do it.
#[derive(Clone, PartialEq, Debug)]
pub enum StoreError {
    /// No such row.
    NotFound,
    /// The state machine refuses; with the state it is in.
    Refused(Refused, Box<Held>),
    /// The database does not work; nothing may be forwarded.
    Unavailable(String),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::Refused(why, _) => why.fmt(f),
            Self::Unavailable(why) => write!(f, "the store does not work: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}

/// What became of a call that is to be held.
#[derive(Clone, Debug)]
pub enum Holding {
    /// It waits now.
    Created(Box<Held>),
    /// An earlier identical call without a client was there: this client is attached to it. It may have ended: its
    /// `kept` reply, its rejection, or that it failed and may have run is then to be told, and [`Event::Deliver`]ed.
    Attached(Box<Held>),
    /// Too many calls of this agent wait already.
    Full,
    /// The agent is paused: who paused it, and why.
    Paused(String),
}

/// What became of charges against limits.
#[derive(Clone, Debug)]
pub enum Charged {
    /// All were taken.
    Taken(Vec<Taken>),
    /// None was: those at these places are over their limits, each with how long its period goes on, or none where
    /// waiting does not help.
    Over(Vec<(usize, Option<Duration>)>),
}

/// What was taken of one limit, to be given back if the call did not run.
#[derive(Clone, Debug)]
pub struct Taken {
    key: String,
    ends: Timestamp,
    amount: Decimal,
}

/// A change of a held call, in this process or another.
#[derive(Clone, Debug)]
pub struct Change {
    /// The call as it is now.
    pub held: Arc<Held>,
}

/// A stored legacy session.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct StoredSession {
    /// `ses_…`; a hash of it is the key, so that the table does not hold a credential.
    pub id: String,
    /// Whose it is.
    pub agent: String,
    /// The upstream.
    pub upstream: String,
    /// The client's `initialize` request, as it came.
    pub initialize: String,
    /// The version that was agreed.
    pub version: String,
    /// The upstream's own session id, for Streamable HTTP.
    pub upstream_session: Option<String>,
    /// Last used.
    pub used_at: Timestamp,
    /// The process it ends with (standard input and output); none for one that outlives processes (HTTP).
    #[serde(default)]
    pub process: Option<String>,
}

/// A grant, and what it is bound to.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct StoredGrant {
    /// The revision of its last change.
    #[serde(skip)]
    pub rev: i64,
    /// As people see it.
    pub record: crate::record::GrantRecord,
    /// Who asked, each with a digest of what it says.
    pub askers: Vec<(String, String)>,
    /// What it covers.
    pub granted: crate::policy::Granted,
    /// The digest of the tool's definition.
    pub definition: Option<String>,
    /// For a grant of one very call: the digest of what was shown.
    pub digest: Option<String>,
    /// The hash of the token that the call came with.
    pub credential: Option<String>,
    /// Who approved it, each with the teams they voted for.
    pub voters: Vec<(String, Vec<String>)>,
}

/// What an operator ordered of all processes that share the folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// What.
    pub what: Ordered,
    /// The revision it is.
    pub rev: i64,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// Why, for a pause.
    pub reason: Option<String>,
}

/// Something ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ordered {
    /// This agent's calls are refused.
    Pause(String),
    /// They are not any more.
    Resume(String),
    /// What runs now is stopped.
    Stop(Stopped),
}

/// Whose calls are stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stopped {
    /// Those of a session, as it is called in calls.
    Session(String),
    /// Those of an agent.
    Agent(String),
}

impl Stopped {
    fn words(&self) -> (&'static str, &str) {
        match self {
            Self::Session(key) => ("stop_session", key),
            Self::Agent(name) => ("stop_agent", name),
        }
    }
}

/// The sentence for a call of a paused agent.
pub fn paused_by(by: &str, reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("{by} paused the agent: {reason}"),
        None => format!("{by} paused the agent"),
    }
}

/// How many held calls an agent has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AgentCounts {
    /// The agent.
    pub agent: String,
    /// Those that wait for a decision, or for their client.
    pub waiting: u64,
    /// Those that run.
    pub running: u64,
    /// When the last one was made.
    pub last_call: Timestamp,
}

/// Who comes back with which call.
#[derive(Clone, Debug, Default)]
pub struct Retry {
    /// The agent.
    pub agent: String,
    /// The call's attach key.
    pub attach_key: String,
    /// The session it comes in.
    pub session: Option<String>,
    /// The executor it would run in.
    pub executor: String,
    /// Sessions that count as ended although they are stored: their clients have left without a word.
    pub left: Vec<String>,
}

/// What one channel was told of one thread of held calls (those of a session), for all processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// The thread's key.
    pub thread: String,
    /// Rises with each claim and each change.
    pub seq: i64,
    /// Whether there is more to tell: a call of it waits, or its end was not told.
    pub open: bool,
    /// Until when a process tells something of it; none where none does.
    pub claimed_until: Option<Timestamp>,
    /// What was told, in the words of whoever tells; empty at first.
    pub body: String,
}

/// Which held calls to list, newest first.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only approvals in this state.
    pub state: Option<crate::record::ApprovalState>,
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only of this upstream.
    pub upstream: Option<String>,
    /// Only created at or after.
    pub since: Option<Timestamp>,
    /// Only of these groups; none: all.
    pub groups: Option<Vec<String>>,
    /// Only of this session, as calls name it.
    pub session: Option<String>,
    /// Only those with all of these words in what a list shows of them (label, tool, agent, rules, ids).
    pub words: Vec<String>,
    /// Only questions of agents, or only what is no question; none: both.
    pub questions: Option<bool>,
    /// At most so many (0: 50).
    pub limit: usize,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

/// A tool as an upstream listed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// Its name.
    pub name: String,
    /// Over its definition.
    pub digest: String,
    /// Its definition as canonical JSON.
    pub definition: String,
    /// Whether a person should look at it before it is accepted.
    pub suspect: bool,
}

/// Whether definitions are accepted as they are seen, and in whose name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Accepting {
    /// None is.
    Nothing,
    /// Those of an upstream of which nothing was accepted before, but for the suspect ones.
    FirstList(String),
    /// Every one.
    Always(String),
}

/// What became of an operator's word on a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acceptance {
    /// Accepted now.
    Accepted,
    /// Accepted before; nothing has changed.
    Already,
    /// Another definition is offered by now; nothing has changed.
    Another,
    /// No such tool was ever offered.
    Unknown,
}

/// A tool that was offered at some time; its definitions are read apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredTool {
    /// The upstream.
    pub upstream: String,
    /// Its name.
    pub name: String,
    /// The revision of its last change.
    pub rev: i64,
    /// The digest of the definition that was last offered.
    pub offered: String,
    /// When it was first seen.
    pub first_seen: Timestamp,
    /// When it was last seen, within the hour.
    pub last_offered: Timestamp,
    /// The accepted definition.
    pub accepted: Option<crate::record::AcceptedRecord>,
}

impl Store {
    /// Opens (and makes) the database in the state folder; registers this process, and ends what dead processes left
    /// Running as Failed, "may have run". Dropping the last clone ends the process as far as others see it.
    ///
    /// # Errors
    /// The database cannot be opened.
    pub fn open(state_dir: &Path, clock: Clock) -> Result<Self, StoreError> {
        Ok(Self { database: Arc::new(Database::open(state_dir, clock)?) })
    }

    /// This process' name in claims.
    pub fn process(&self) -> &str {
        self.database.process()
    }

    /// Holds a new call, or attaches its client to an identical earlier one that has no client (same agent, same attach
    /// key, same executor, and the same session or one that has ended). One transaction. If the future is dropped, the client counts
    /// as gone.
    ///
    /// # Errors
    /// The call is not a new one, or the database does not work.
    pub fn hold(
        &self,
        new: impl Into<Box<Held>>,
        max_waiting: usize,
    ) -> impl Future<Output = Result<Holding, StoreError>> + Send {
        let orphan = |holding: Holding| match holding {
            Holding::Created(held) | Holding::Attached(held) => Some(held.approval.call.id),
            Holding::Full | Holding::Paused(_) => None,
        };
        let new = new.into();
        self.database.attach(move |tables| tables.hold(new, max_waiting), orphan)
    }

    /// Only the second half of [`Store::hold`]: attaches to an earlier identical call, if there is one.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn attach(&self, retry: Retry) -> Result<Option<Box<Held>>, StoreError> {
        let orphan = |attached: Option<Box<Held>>| Some(attached?.approval.call.id);
        self.database.attach(move |tables| tables.attach(&retry), orphan).await
    }

    /// Takes over calls of these agents and executors whose process has ended; they are this process' from then on.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn adopt(&self, agents: Vec<String>, executors: Vec<String>) -> Result<Vec<Held>, StoreError> {
        self.database.write(move |tables| tables.adopt(&agents, &executors)).await
    }

    /// Applies an event to a call, named by its id or its approval's, in one conditional update; answers the call as it
    /// is then.
    ///
    /// # Errors
    /// Not found, refused by the state machine, or the database does not work.
    pub async fn apply(&self, call_or_approval: &str, event: Event) -> Result<Held, StoreError> {
        let id = call_or_approval.to_owned();
        self.database.write(move |tables| tables.apply(&id, event)).await
    }

    /// A call by its id, or by its approval's.
    ///
    /// # Errors
    /// Not found, or the database does not work.
    pub async fn get(&self, call_or_approval: &str) -> Result<Held, StoreError> {
        let id = call_or_approval.to_owned();
        self.database.read(move |tables| tables.get(&id)).await
    }

    /// A page of held calls and where the next one starts.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn list(&self, filter: Filter) -> Result<(Vec<Held>, Option<String>), StoreError> {
        self.database.read(move |tables| tables.list(&filter)).await
    }

    /// Watches one call, by its id or its approval's. It starts with none, soon becomes the call as it is, and changes
    /// when any process changes it (within 200 ms for another process): nothing between is missed.
    pub fn watch(&self, call_or_approval: &str) -> watch::Receiver<Option<Arc<Held>>> {
        self.database.watch(call_or_approval)
    }

    /// Calls that ended by this store's own doing: time passed, or the process that ran them died; and those that were
    /// escalated. Whoever takes the receiver (once) writes that down; each is told to one process only.
    pub fn settled(&self) -> Option<mpsc::UnboundedReceiver<Held>> {
        self.database.settled()
    }

    /// Every change of every held call, from this and other processes.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.database.changes()
    }

    /// Takes charges against limits, all or none, in one transaction that all processes on the folder agree on. A charge
    /// with `true` is taken even over its limit: a human approved it.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn charge(&self, charges: Vec<(Charge, bool)>) -> Result<Charged, StoreError> {
        self.database.write(move |tables| tables.charge(&charges)).await
    }

    /// Gives back what was taken for a call that did not run.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn give_back(&self, taken: Vec<Taken>) -> Result<(), StoreError> {
        self.database.write(move |tables| tables.give_back(&taken)).await
    }

    /// Pauses an agent: what of it is held is withdrawn, and nothing of it is held or claimed from then on, in any
    /// process. Answers the withdrawn calls.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn pause(&self, agent: &str, by: &str, reason: Option<String>) -> Result<Vec<Held>, StoreError> {
        let [agent, by] = [agent, by].map(str::to_owned);
        self.database.write(move |tables| tables.pause(&agent, &by, reason.as_deref())).await
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn resume(&self, agent: &str, by: &str) -> Result<(), StoreError> {
        let [agent, by] = [agent, by].map(str::to_owned);
        self.database.write(move |tables| tables.resume(&agent, &by)).await
    }

    /// Withdraws what is held of a session or an agent and asks what runs to stop, in every process. Answers the held
    /// calls that were.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn stop(&self, what: Stopped, by: &str) -> Result<Vec<Held>, StoreError> {
        let by = by.to_owned();
        self.database.write(move |tables| tables.stop(&what, &by)).await
    }

    /// What was ordered after that revision, in order; 0 for all that is still in force.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn orders_since(&self, rev: i64) -> Result<Vec<Order>, StoreError> {
        self.database.read(move |tables| tables.orders_since(rev)).await
    }

    /// The revision of the orders, which moves when any process gives one (within 200 ms for another process).
    pub fn orders(&self) -> watch::Receiver<i64> {
        self.database.orders()
    }

    /// What a channel was told of a thread; none: nothing yet.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn notice(&self, channel: &str, thread: &str) -> Result<Option<Notice>, StoreError> {
        let [channel, thread] = [channel, thread].map(str::to_owned);
        self.database.read(move |tables| tables.notice(&channel, &thread)).await
    }

    /// The threads of which a channel has not been told everything.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn open_notices(&self, channel: &str) -> Result<Vec<Notice>, StoreError> {
        let channel = channel.to_owned();
        self.database.read(move |tables| tables.open_notices(&channel)).await
    }

    /// Takes it on to tell a channel of a thread, for so long: only where no other process has, and it still is as it was
    /// read (`seq`; 0: not there). Answers the `seq` that [`Store::noticed`] takes; none where somebody was first.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn claim_notice(
        &self,
        channel: &str,
        thread: &str,
        seq: i64,
        lease: Duration,
    ) -> Result<Option<i64>, StoreError> {
        let [channel, thread] = [channel, thread].map(str::to_owned);
        self.database.write(move |tables| tables.claim_notice(&channel, &thread, seq, lease)).await
    }

    /// Keeps what was told, and gives the claim back; nothing where another process has taken over since.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn noticed(&self, channel: &str, notice: Notice) -> Result<bool, StoreError> {
        let channel = channel.to_owned();
        self.database.write(move |tables| tables.noticed(&channel, &notice)).await
    }

    /// How many held calls each agent has.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn counts(&self) -> Result<Vec<AgentCounts>, StoreError> {
        self.database.read(|tables| tables.counts()).await
    }

    /// Keeps a new grant.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn put_grant(&self, grant: StoredGrant) -> Result<(), StoreError> {
        self.database.write(move |tables| tables.put_grant(&grant)).await
    }

    /// Takes one use of a grant, at most once whoever races; none where none is left, or it has ended.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn take_grant(&self, id: &str) -> Result<Option<StoredGrant>, StoreError> {
        let id = id.to_owned();
        self.database.write(move |tables| tables.take_grant(&id)).await
    }

    /// Gives a use back for a call that did not run.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn give_grant_back(&self, id: &str) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.database.write(move |tables| tables.give_grant_back(&id)).await
    }

    /// Ends a grant before its time: a person's doing (`revoked`), or what it is bound to has changed. None where it has
    /// ended already.
    ///
    /// # Errors
    /// Not found, or the database does not work.
    pub async fn end_grant(&self, id: &str, by: &str, revoked: bool) -> Result<Option<StoredGrant>, StoreError> {
        let [id, by] = [id, by].map(str::to_owned);
        self.database.write(move |tables| tables.end_grant(&id, &by, revoked)).await
    }

    /// A grant.
    ///
    /// # Errors
    /// Not found, or the database does not work.
    pub async fn grant(&self, id: &str) -> Result<StoredGrant, StoreError> {
        let id = id.to_owned();
        self.database.read(move |tables| tables.grant(&id)).await
    }

    /// The grants that changed after that revision, in order; 0 for all that are remembered.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn grants_since(&self, rev: i64) -> Result<Vec<StoredGrant>, StoreError> {
        self.database.read(move |tables| tables.grants_since(rev)).await
    }

    /// The revision of the grants, which moves when any process changes one (within 200 ms for another process).
    pub fn grant_changes(&self) -> watch::Receiver<i64> {
        self.database.grants()
    }

    /// Keeps a session.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn put_session(&self, session: StoredSession) -> Result<(), StoreError> {
        self.database.write(move |tables| tables.put_session(session)).await
    }

    /// A session by its id.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn session(&self, id: &str) -> Result<Option<StoredSession>, StoreError> {
        let id = id.to_owned();
        self.database.read(move |tables| tables.session(&id)).await
    }

    /// A session by its id, also one that has ended: what it left may still be to be run.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn any_session(&self, id: &str) -> Result<Option<StoredSession>, StoreError> {
        let id = id.to_owned();
        self.database.read(move |tables| tables.any_session(&id)).await
    }

    /// Ends a session: its held calls can then be attached from another session of the same agent.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn end_session(&self, id: &str) -> Result<(), StoreError> {
        let id = id.to_owned();
        self.database.write(move |tables| tables.end_session(&id)).await
    }

    /// Keeps a small value under a key (login links, admin sessions, first-start approver), until it is too old.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn put(&self, key: &str, value: &str, expires: Option<Timestamp>) -> Result<(), StoreError> {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.database.write(move |tables| tables.put(&key, &value, expires)).await
    }

    /// Keeps a small value for good, unless there is one; what is kept then.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn once(&self, key: &str, value: &str) -> Result<String, StoreError> {
        let (key, value) = (key.to_owned(), value.to_owned());
        self.database.write(move |tables| tables.once(&key, &value)).await
    }

    /// Keeps that an agent has used a tool.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn used(&self, agent: &str, upstream: &str, tool: &str) -> Result<(), StoreError> {
        let [agent, upstream, tool] = [agent, upstream, tool].map(str::to_owned);
        self.database.write(move |tables| tables.used(&agent, &upstream, &tool)).await
    }

    /// Whether an agent has used a tool.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn is_used(&self, agent: &str, upstream: &str, tool: &str) -> Result<bool, StoreError> {
        let [agent, upstream, tool] = [agent, upstream, tool].map(str::to_owned);
        self.database.read(move |tables| tables.is_used(&agent, &upstream, &tool)).await
    }

    /// Reads such a value.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn read(&self, key: &str) -> Result<Option<String>, StoreError> {
        let key = key.to_owned();
        self.database.read(move |tables| tables.value(&key)).await
    }

    /// Reads and removes such a value, at most once whoever races.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn take(&self, key: &str) -> Result<Option<String>, StoreError> {
        let key = key.to_owned();
        self.database.write(move |tables| tables.take(&key)).await
    }

    /// Remembers definitions that an upstream offered; the names of those that were not known so.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn saw_tools(
        &self,
        upstream: &str,
        sightings: Vec<Sighting>,
        accepting: Accepting,
    ) -> Result<Vec<String>, StoreError> {
        let upstream = upstream.to_owned();
        self.database.write(move |tables| tables.saw(&upstream, &sightings, &accepting)).await
    }

    /// Accepts the definition of a tool that has this digest, if it is the one that was last offered.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn accept_tool(
        &self,
        upstream: &str,
        name: &str,
        digest: &str,
        by: &str,
    ) -> Result<Acceptance, StoreError> {
        let [upstream, name, digest, by] = [upstream, name, digest, by].map(str::to_owned);
        self.database.write(move |tables| tables.accept(&upstream, &name, &digest, &by)).await
    }

    /// The tools that changed after that revision, in the order of their changes; 0 for all.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn tools_since(&self, rev: i64) -> Result<Vec<StoredTool>, StoreError> {
        self.database.read(move |tables| tables.tools_since(rev)).await
    }

    /// One tool.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn tool(&self, upstream: &str, name: &str) -> Result<Option<StoredTool>, StoreError> {
        let [upstream, name] = [upstream, name].map(str::to_owned);
        self.database.read(move |tables| tables.tool(&upstream, &name)).await
    }

    /// The definitions of a tool as canonical JSON: last offered, and accepted.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn tool_definitions(
        &self,
        upstream: &str,
        name: &str,
    ) -> Result<Option<(String, Option<String>)>, StoreError> {
        let [upstream, name] = [upstream, name].map(str::to_owned);
        self.database.read(move |tables| tables.definitions(&upstream, &name)).await
    }

    /// A definition of a tool by its digest, if it is one of the last that were offered.
    ///
    /// # Errors
    /// The database does not work.
    pub async fn tool_definition(
        &self,
        upstream: &str,
        name: &str,
        digest: &str,
    ) -> Result<Option<String>, StoreError> {
        let [upstream, name, digest] = [upstream, name, digest].map(str::to_owned);
        self.database.read(move |tables| tables.definition(&upstream, &name, &digest)).await
    }

    /// The revision of the tools, which moves when any process changes one (within 200 ms for another process).
    pub fn tool_changes(&self) -> watch::Receiver<i64> {
        self.database.tools()
    }

    /// Whether the database is still the file that others would open; a look at the folder, no more.
    ///
    /// # Errors
    /// It was replaced or removed.
    pub fn in_place(&self) -> Result<(), StoreError> {
        self.database.in_place()
    }

    /// Whether the database can be written now, and is the file that others would open.
    ///
    /// # Errors
    /// Why not.
    pub async fn ready(&self) -> Result<(), StoreError> {
        self.database.ready().await
    }
}

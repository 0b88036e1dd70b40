//! The pipeline: every client message goes through here, and only here is anything forwarded.
//!
//! A listener parses a message, finds its [`Session`] and hands it over; it gets an [`Exchange`] back, a channel of what
//! is to be told the client. Everything in between (judging, holding, forwarding, recording) is in this room.

mod aggregate;
mod asked;
mod beside;
mod call;
mod claim;
mod client;
mod conversation;
mod decided;
mod desk;
mod diff;
mod edit;
mod forward;
mod grants;
mod headers;
mod held;
mod hold;
mod inward;
mod judged;
mod label;
mod limits;
mod link;
mod listen;
mod orders;
mod origin;
mod owed;
mod pass;
mod permit;
mod questions;
mod reach;
mod recent;
mod release;
mod reply;
mod reveal;
mod roots;
mod route;
mod scripts;
mod session;
mod sessions;
mod shown;
mod tasks;
mod tools;
mod unattended;
mod uses;

pub use aggregate::Aggregate;
pub use asked::flag_sentence;
pub use beside::LARGE;
pub use conversation::Conversation;
pub use decided::Decided;
pub use edit::{Editor, NotEdited};
pub use link::{Era, Fault, Inbound, Link, Opening, Outgoing, Place, Upstream, UpstreamError};
pub use orders::StopCount;
pub use permit::Permit;
pub use questions::{ASK_USER, MAX_ANSWER, MAX_CHOICE, MAX_CHOICES, MAX_QUESTION, NotAnswered};
pub use reveal::NotRevealed;
pub use session::{Exchange, Reply, Session, ToClient};
pub use tools::{NotAccepted, Refreshed, ToolFilter};

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use dashmap::DashMap;
use tokio::sync::{Notify, broadcast, watch};

use crate::audit::Audit;
use crate::clock::{Clock, Timestamp};
use crate::config::{Config, UpstreamConfig};
use crate::diagnostic::Diagnostic;
use crate::facet::path::Space;
use crate::identity::Directory;
use crate::message::Limits;
use crate::metrics::Metrics;
use crate::policy::{self, Loaded, Policy};
use crate::record::CallRecord;
use crate::secret::{Fingerprints, Redaction, Secret, random_id};
use crate::store::{Store, StoreError};

/// How many messages may wait between a gate and a listener before the far side is slowed.
pub const CHANNEL: usize = 64;

/// The gateway's core. Shared as `Arc<Gate>`.
pub struct Gate {
    setup: ArcSwap<Setup>,
    policy: ArcSwap<InForce>,
    own_files: Vec<PathBuf>,
    executors: BTreeMap<String, Arc<Executor>>,
    sessions: DashMap<String, Arc<Session>>,
    stateless: DashMap<(String, String), Arc<Session>>,
    aggregates: DashMap<String, Arc<Aggregate>>,
    store: Store,
    audit: Audit,
    metrics: Metrics,
    clock: Clock,
    fingerprints: Fingerprints,
    recent: recent::Recent,
    held: held::Mirror,
    orders: orders::Orders,
    grants: grants::Grants,
    /// Calls may be there whose process has ended.
    orphans: Notify,
    rates: limits::Rates,
    turns: beside::Turns,
    uses: uses::Uses,
    running: DashMap<String, watch::Sender<Option<String>>>,
    events: broadcast::Sender<GateEvent>,
    store_fault: Mutex<Option<String>>,
    owed: owed::Owed,
    /// The last change of the tools that is known here; none before the first look.
    reloading: tokio::sync::Mutex<()>,
    pins_seen: tokio::sync::Mutex<Option<i64>>,
    draining: watch::Sender<bool>,
    /// Held calls that a client of this process waits for, or that it runs.
    in_hand: Arc<()>,
}

/// How long a legacy session lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Life {
    /// Until its client ends it, also through restarts of the gateway (HTTP).
    Stored,
    /// As long as this process at most (standard input and output).
    Process,
}

/// What is read from the configuration and can change while the gateway runs.
struct Setup {
    config: Arc<Config>,
    directory: Arc<Directory>,
    redaction: Redaction,
}

/// The key in the store under which what tells secrets apart is kept: the same in every process, and after a restart.
const FINGERPRINTS: &str = "fingerprints";

/// An upstream, and what the gate knows of it.
pub struct Executor {
    upstream: Arc<dyn Upstream>,
    config: UpstreamConfig,
    space: Space,
    pins: Arc<tools::Pins>,
    place: Place,
}

impl Gate {
    /// `policy explain`, with the upstreams as they are configured here. Blocks where a recursive tool is walked.
    ///
    /// # Errors
    /// The request is none, or names what does not exist.
    pub fn explain(&self, request: &str) -> Result<serde_json::Value, policy::Unanswerable> {
        let executors = self
            .executors
            .iter()
            .map(|(id, e)| {
                let accepted: Arc<dyn policy::Accepted> = Arc::clone(&e.pins) as _;
                let executor =
                    policy::Executor { space: e.space.clone(), config: e.config.clone(), accepted: Some(accepted) };
                (id.clone(), executor)
            })
            .collect();
        let limits = Limits { max_bytes: self.config().mcp.max_body, ..Limits::default() };
        policy::explain(&self.policy().policy, &self.directory(), &executors, request, limits, self.clock.now())
    }
}

impl Executor {
    fn id(&self) -> &str {
        &self.config.id
    }
}

/// The policy in force, as `GET policy` shows it.
#[derive(Clone)]
pub struct InForce {
    /// The policy.
    pub policy: Arc<Policy>,
    /// When it was loaded.
    pub loaded_at: Timestamp,
    /// The files it came from.
    pub files: Vec<String>,
    /// Why the last reload was refused, if it was.
    pub error: Option<String>,
    /// What the lints found in it.
    pub lints: Arc<[Diagnostic]>,
    /// How often each of its rules has decided.
    pub decided: Decided,
}

/// Something changed that the inbox shows.
#[derive(Clone, Debug)]
pub enum GateEvent {
    /// A call that was not held changed (held ones come from the store).
    Call(Arc<CallRecord>),
    /// A tool was offered anew or changed, or accepted: its upstream and name.
    Tool(String, String),
    /// The policy was loaded or refused.
    Policy,
    /// An agent was paused or resumed: its name.
    Agent(String),
    /// A grant was made, used or ended: its id.
    Grant(String),
}

/// Which calls to list.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// `running`, `completed`, …
    pub state: Option<String>,
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only of this upstream.
    pub upstream: Option<String>,
    /// Only created at or after.
    pub since: Option<Timestamp>,
    /// Only of these groups; none: all.
    pub groups: Option<Vec<String>>,
    /// Only of this session.
    pub session: Option<String>,
    /// Only those with all of these words in what a list shows of them.
    pub words: Vec<String>,
    /// At most so many (0: 50).
    pub limit: usize,
    /// Where the last page ended.
    pub cursor: Option<Cursor>,
}

/// Where a page of calls ended: its last call's time, in ms, and id.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cursor {
    at: i64,
    id: String,
}

impl Cursor {
    /// Reads what a list gave as `next`; none if it gave no such text.
    pub fn parse(text: &str) -> Option<Self> {
        let (at, id) = text.split_once('.')?;
        Some(Self { at: at.parse().ok()?, id: id.to_owned() }).filter(|cursor| cursor.id.starts_with("call_"))
    }

    fn of(call: &CallRecord) -> Self {
        Self { at: call.created_at.as_millis(), id: call.id.clone() }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.at, self.id)
    }
}

/// Everything a gate is made of.
pub struct Parts {
    /// The checked configuration.
    pub config: Config,
    /// Who is known.
    pub directory: Directory,
    /// The first policy.
    pub loaded: Loaded,
    /// The gateway's own files, denied by the built-in guardrail `own-files`.
    pub own_files: Vec<PathBuf>,
    /// The executors, by configured id.
    pub upstreams: Vec<Arc<dyn Upstream>>,
    /// The store.
    pub store: Store,
    /// The audit log.
    pub audit: Audit,
    /// The metrics.
    pub metrics: Metrics,
    /// The time.
    pub clock: Clock,
}

impl Gate {
    /// Puts the parts together and begins to watch the store; what still waits from an earlier run is judged again.
    ///
    /// # Errors
    /// The store does not work.
    pub async fn start(parts: Parts) -> Result<Arc<Self>, StoreError> {
        let executors = parts
            .upstreams
            .into_iter()
            .filter_map(|upstream| {
                let config = parts.config.upstreams.get(upstream.id())?.clone();
                let space = Space::new(&config);
                let (id, pins) = (config.id.clone(), Arc::new(tools::Pins::new(&config)));
                let place = origin::place(&*upstream, &config);
                Some((id, Arc::new(Executor { upstream, config, space, pins, place })))
            })
            .collect();
        let key = match parts.store.read(FINGERPRINTS).await? {
            Some(key) => key,
            None => parts.store.once(FINGERPRINTS, &random_id("", 32)).await?,
        };
        let (events, _) = broadcast::channel(1024);
        parts.metrics.policy_version(&parts.loaded.policy.version);
        let gate = Arc::new(Self {
            policy: ArcSwap::from_pointee(InForce::new(parts.loaded, &Decided::default(), parts.clock.now())),
            setup: ArcSwap::from_pointee(Setup {
                redaction: parts.config.redaction(),
                config: Arc::new(parts.config),
                directory: Arc::new(parts.directory),
            }),
            own_files: parts.own_files,
            executors,
            sessions: DashMap::new(),
            stateless: DashMap::new(),
            aggregates: DashMap::new(),
            store: parts.store,
            audit: parts.audit,
            metrics: parts.metrics,
            clock: parts.clock,
            fingerprints: Fingerprints::new(&Secret::new(key)),
            recent: recent::Recent::new(events.clone()),
            held: held::Mirror::default(),
            orders: orders::Orders::default(),
            grants: grants::Grants::default(),
            orphans: Notify::new(),
            rates: limits::Rates::default(),
            turns: beside::Turns::default(),
            uses: uses::Uses::default(),
            running: DashMap::new(),
            events,
            store_fault: Mutex::default(),
            owed: owed::Owed::default(),
            reloading: tokio::sync::Mutex::default(),
            pins_seen: tokio::sync::Mutex::default(),
            draining: watch::Sender::new(false),
            in_hand: Arc::default(),
        });
        tools::follow(&gate).await?;
        orders::follow(&gate).await?;
        grants::follow(&gate).await?;
        unattended::watch(&gate).await?;
        Ok(gate)
    }

    // ---- what listeners call -------------------------------------------------------------------------------------

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.setup.load().config)
    }

    /// Who is known.
    pub fn directory(&self) -> Arc<Directory> {
        Arc::clone(&self.setup.load().directory)
    }

    /// Whether an upstream of that id is configured.
    pub fn has_upstream(&self, id: &str) -> bool {
        self.executors.contains_key(id)
    }

    // ---- shutting down -------------------------------------------------------------------------------------------

    /// Takes no more calls; what is held stays in the store, and its clients are told to come back.
    pub fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Whether no more calls are taken.
    pub fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// When no more calls are taken.
    async fn drained(&self) {
        let mut draining = self.draining.subscribe();
        // The sender lives as long as this.
        let _ = draining.wait_for(|draining| *draining).await;
    }

    /// How many calls run now, or have a client that waits for them.
    pub fn running(&self) -> usize {
        self.running.len() + Arc::strong_count(&self.in_hand) - 1
    }

    /// Ends the links to all upstreams, and tries once more to write down what is owed.
    pub async fn shutdown(&self) {
        for executor in self.executors.values() {
            executor.upstream.shutdown().await;
        }
        if !self.owed.is_empty() {
            // What cannot be paid now is ended by the next process, as "may have run".
            let _ = self.ready().await;
        }
    }

    fn redaction(&self) -> Redaction {
        self.setup.load().redaction.clone()
    }
}

impl InForce {
    fn new(loaded: Loaded, before: &Decided, now: Timestamp) -> Self {
        Self {
            decided: Decided::of(&loaded.policy, before),
            policy: Arc::new(loaded.policy),
            loaded_at: now,
            lints: loaded.warnings.into(),
            files: loaded.files.iter().map(|f| f.display().to_string()).collect(),
            error: None,
        }
    }

    fn refused(&self, errors: &[Diagnostic]) -> Self {
        let text: Vec<String> = errors.iter().map(Diagnostic::to_string).collect();
        Self { error: Some(text.join("\n")), ..self.clone() }
    }
}

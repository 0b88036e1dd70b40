//! The pipeline: every client message goes through here, and only here is anything forwarded.
//!
//! A listener parses a message, finds its [`Session`] and hands it over; it gets an [`Exchange`] back, a channel of what
//! is to be told the client. Everything in between (judging, holding, forwarding, recording) is in this room.

mod call;
mod desk;
mod headers;
mod held;
mod hold;
mod judged;
mod link;
mod permit;
mod recent;
mod release;
mod reply;
mod route;
mod session;
mod shown;
mod tools;
mod unattended;

pub use link::{Era, Fault, Inbound, Link, Opening, Outgoing, Upstream, UpstreamError};
pub use permit::Permit;
pub use session::{Exchange, Reply, Session, ToClient};

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use dashmap::DashMap;
use tokio::sync::{broadcast, oneshot};

use crate::audit::Audit;
use crate::clock::{Clock, Timestamp};
use crate::config::{Config, UpstreamConfig};
use crate::diagnostic::Diagnostic;
use crate::facet::path::Space;
use crate::identity::{Agent, Directory};
use crate::message::{Limits, Message};
use crate::metrics::Metrics;
use crate::policy::{self, Loaded, Policy};
use crate::record::CallRecord;
use crate::secret::Redaction;
use crate::store::{Store, StoreError, StoredSession};
use session::Handshake;

/// How many messages may wait between a gate and a listener before the far side is slowed.
pub const CHANNEL: usize = 64;

/// How long a session without a reader or a request keeps its link; the next request opens it again.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// How many legacy sessions may be open at once.
const SESSIONS: usize = 10_000;

/// The gateway's core. Shared as `Arc<Gate>`.
pub struct Gate {
    setup: ArcSwap<Setup>,
    policy: ArcSwap<InForce>,
    own_files: Vec<PathBuf>,
    executors: BTreeMap<String, Arc<Executor>>,
    sessions: DashMap<String, Arc<Session>>,
    stateless: DashMap<(String, String), Arc<Session>>,
    store: Store,
    audit: Audit,
    metrics: Metrics,
    clock: Clock,
    recent: recent::Recent,
    held: held::Mirror,
    running: DashMap<String, tokio::sync::watch::Sender<Option<String>>>,
    events: broadcast::Sender<GateEvent>,
    store_fault: Mutex<Option<String>>,
    draining: AtomicBool,
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

/// An upstream, and what the gate knows of it.
pub struct Executor {
    upstream: Arc<dyn Upstream>,
    config: UpstreamConfig,
    space: Space,
    tools: tools::Definitions,
}

impl Gate {
    /// `policy explain`, with the upstreams as they are configured here. Blocks where a recursive tool is walked.
    pub fn explain(&self, request: &str) -> serde_json::Value {
        let executors = self
            .executors
            .iter()
            .map(|(id, e)| {
                let executor = policy::Executor { space: e.space.clone(), config: e.config.clone() };
                (id.clone(), executor)
            })
            .collect();
        let limits = Limits { max_bytes: self.config().mcp.max_body, ..Limits::default() };
        policy::explain(&self.policy().policy, &self.directory(), &executors, request, limits)
    }
}

impl Executor {
    /// A tool as far as it is known without its upstream's list: by the catalogue alone.
    fn unlisted(&self, name: &str) -> tools::Definition {
        match self.tools.get(name) {
            Some(known) => tools::Definition::clone(&known),
            None => tools::Definition {
                digest: String::new(),
                entry: self.config.catalogue.tool(name, None),
                headers: Vec::new(),
            },
        }
    }

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
}

/// Something changed that the inbox shows.
#[derive(Clone, Debug)]
pub enum GateEvent {
    /// A call that was not held changed (held ones come from the store).
    Call(Arc<CallRecord>),
    /// The policy was loaded or refused.
    Policy,
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
    /// At most so many (0: 50).
    pub limit: usize,
    /// Where the last page ended.
    pub cursor: Option<String>,
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
                let id = config.id.clone();
                Some((id, Arc::new(Executor { upstream, config, space, tools: tools::Definitions::default() })))
            })
            .collect();
        let (events, _) = broadcast::channel(1024);
        parts.metrics.policy_version(&parts.loaded.policy.version);
        let gate = Arc::new(Self {
            policy: ArcSwap::from_pointee(InForce::new(parts.loaded, parts.clock.now())),
            setup: ArcSwap::from_pointee(Setup {
                redaction: parts.config.redaction(),
                config: Arc::new(parts.config),
                directory: Arc::new(parts.directory),
            }),
            own_files: parts.own_files,
            executors,
            sessions: DashMap::new(),
            stateless: DashMap::new(),
            store: parts.store,
            audit: parts.audit,
            metrics: parts.metrics,
            clock: parts.clock,
            recent: recent::Recent::new(events.clone()),
            held: held::Mirror::default(),
            running: DashMap::new(),
            events,
            store_fault: Mutex::default(),
            draining: AtomicBool::new(false),
        });
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

    /// A legacy `initialize`: opens a session and answers it. `Err` is the finished JSON-RPC error reply.
    ///
    /// # Errors
    /// The reply to give: the upstream cannot be reached, does not speak a legacy version, too many sessions, draining.
    pub async fn initialize(
        self: &Arc<Self>,
        agent: Arc<Agent>,
        upstream: &str,
        message: Message,
        life: Life,
    ) -> Result<(Arc<Session>, Reply), Reply> {
        let (gate, upstream, raw_id) = (Arc::clone(self), upstream.to_owned(), message.id().map(str::to_owned));
        let (tx, begun) = oneshot::channel();
        tokio::spawn(async move {
            let begun = gate.begin_session(agent, &upstream, message, life).await;
            // A client that left meanwhile does not know the session: it would stay open for nobody.
            if let Err(Ok((session, _))) = tx.send(begun) {
                session.end().await;
            }
        });
        let lost = |_| reply::error(raw_id.as_deref().unwrap_or("null"), reply::UNAVAILABLE, "try again", None);
        begun.await.map_err(lost)?
    }

    async fn begin_session(
        self: &Arc<Self>,
        agent: Arc<Agent>,
        upstream: &str,
        message: Message,
        life: Life,
    ) -> Result<(Arc<Session>, Reply), Reply> {
        let raw_id = message.id().unwrap_or("null").to_owned();
        let unavailable = |what: &str| reply::error(&raw_id, reply::UNAVAILABLE, what, None);
        if self.is_draining() {
            return Err(unavailable("the gateway is shutting down"));
        }
        if self.sessions.len() >= SESSIONS {
            return Err(unavailable("too many sessions are open; end one with DELETE"));
        }
        let Some(executor) = self.executors.get(upstream).cloned() else {
            return Err(unavailable("there is no such upstream"));
        };
        let id = crate::secret::random_id("ses_", 24);
        let handshake = Handshake {
            initialize: String::from_utf8_lossy(message.bytes()).into_owned(),
            version: OnceLock::new(),
            resume: Mutex::default(),
        };
        let key = session_key(&id);
        let session = Session::new(Arc::clone(self), agent, executor, Some(key.clone()), Some(handshake));
        let answer = match session.shake_hands(&message).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(upstream, %error, "the upstream did not answer the handshake");
                session.end().await;
                return Err(reply::upstream_fault(&raw_id, upstream, &error));
            }
        };
        let reply = Reply { bytes: answer.with_id(&raw_id), status: 200 };
        if session.version().is_none() {
            // An error of the upstream, in its own words: there is no session to keep.
            session.end().await;
            return Err(reply);
        }
        if life == Life::Stored
            && let Err(error) = self.store.put_session(self.stored(&session, &key)).await
        {
            self.store_failed(&error);
            session.end().await;
            return Err(unavailable("the gateway's store does not work"));
        }
        session.issue(id);
        self.sessions.insert(key, Arc::clone(&session));
        Ok((session, reply))
    }

    /// A legacy session by the id the gateway issued, if it is this agent's and this upstream's; restored from the store
    /// after a restart. `Ok(None)`: unknown or ended (HTTP 404).
    ///
    /// # Errors
    /// The store does not work, or the upstream cannot be reached again.
    pub async fn session(
        self: &Arc<Self>,
        agent: &Arc<Agent>,
        upstream: &str,
        id: &str,
    ) -> Result<Option<Arc<Session>>, Reply> {
        self.session_by_key(agent, upstream, &session_key(id)).await
    }

    async fn session_by_key(
        self: &Arc<Self>,
        agent: &Arc<Agent>,
        upstream: &str,
        key: &str,
    ) -> Result<Option<Arc<Session>>, Reply> {
        if let Some(session) = self.sessions.get(key).map(|s| Arc::clone(&s)) {
            let own = session.agent.config.name == agent.config.name && session.executor.id() == upstream;
            return Ok(own.then_some(session));
        }
        let stored = self.store.session(key).await.map_err(|error| {
            self.store_failed(&error);
            reply::error("null", reply::UNAVAILABLE, "the gateway's store does not work", None)
        })?;
        let own = |s: &StoredSession| s.agent == agent.config.name && s.upstream == upstream;
        Ok(stored.filter(own).and_then(|stored| self.restore(stored, agent)))
    }

    /// The stateless way of the modern protocol: one per agent and upstream.
    pub fn stateless(self: &Arc<Self>, agent: &Arc<Agent>, upstream: &str) -> Option<Arc<Session>> {
        let executor = self.executors.get(upstream)?;
        let key = (agent.config.name.clone(), upstream.to_owned());
        let session = self
            .stateless
            .entry(key)
            .or_insert_with(|| Session::new(Arc::clone(self), Arc::clone(agent), Arc::clone(executor), None, None));
        Some(Arc::clone(&session))
    }

    /// Makes a stored session live again; its link is opened when it is first used.
    fn restore(self: &Arc<Self>, stored: StoredSession, agent: &Arc<Agent>) -> Option<Arc<Session>> {
        let executor = Arc::clone(self.executors.get(&stored.upstream)?);
        let handshake = Handshake {
            initialize: stored.initialize,
            version: OnceLock::from(stored.version),
            resume: Mutex::new(stored.upstream_session),
        };
        let session = self.sessions.entry(stored.id.clone()).or_insert_with(|| {
            Session::new(Arc::clone(self), Arc::clone(agent), executor, Some(stored.id), Some(handshake))
        });
        Some(Arc::clone(&session))
    }

    fn stored(&self, session: &Session, key: &str) -> StoredSession {
        StoredSession {
            id: key.to_owned(),
            agent: session.agent.config.name.clone(),
            upstream: session.executor.id().to_owned(),
            initialize: session.initialize().to_owned(),
            version: session.version().unwrap_or_default().to_owned(),
            upstream_session: session.upstream_session(),
            used_at: self.clock.now(),
        }
    }

    /// Lets go of the links of sessions that nobody uses: their clients are gone without a word.
    async fn park_idle(&self) {
        let idle: Vec<Arc<Session>> =
            self.sessions.iter().filter(|s| s.is_idle(IDLE)).map(|s| Arc::clone(&s)).collect();
        for session in idle {
            session.park().await;
        }
    }

    // ---- shutting down -------------------------------------------------------------------------------------------

    /// Takes no more calls; what is held stays in the store.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// Whether no more calls are taken.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// How many calls run now.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Ends the links to all upstreams.
    pub async fn shutdown(&self) {
        for executor in self.executors.values() {
            executor.upstream.shutdown().await;
        }
    }

    fn redaction(&self) -> Redaction {
        self.setup.load().redaction.clone()
    }
}

impl InForce {
    fn new(loaded: Loaded, now: Timestamp) -> Self {
        Self {
            policy: Arc::new(loaded.policy),
            loaded_at: now,
            files: loaded.files.iter().map(|f| f.display().to_string()).collect(),
            error: None,
        }
    }

    fn refused(&self, errors: &[Diagnostic]) -> Self {
        let text: Vec<String> = errors.iter().map(Diagnostic::to_string).collect();
        Self { error: Some(text.join("\n")), ..self.clone() }
    }
}

/// What a session is called in the store and in what people see: the id itself is a credential.
fn session_key(id: &str) -> String {
    use sha2::{Digest, Sha256};
    let hash = hex::encode(Sha256::digest(id.as_bytes()));
    format!("ses_{}", hash.get(..32).unwrap_or_default())
}

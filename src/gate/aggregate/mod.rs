//! One address for all upstreams: `/mcp`.
//!
//! It stands before the sessions with the single upstreams and calls them as a client would, under names that say whose a
//! thing is ([`names`]). Judging, holding and forwarding are theirs, and know only the real names. Lists are put together in
//! the order of the ids; an upstream that is down is left out of them.

mod child;
mod hello;
mod lists;
mod names;
mod relay;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use dashmap::DashMap;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::link::Era;
use super::session::{Exchange, Reply, Session, ToClient};
use super::sessions::session_key;
use super::{CHANNEL, Gate, Life, reply, tasks};
use crate::message::{Message, compose};
use crate::secret::TokenHash;
use child::{Child, Up};

const MODERN: &str = "2026-07-28";
/// Legacy versions, oldest first; the last is offered to a client that asks for another.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// How long a list or a handshake waits for an upstream that starts, and for one that was down when it was last needed.
const PATIENCE: Duration = Duration::from_secs(10);
const PATIENCE_DOWN: Duration = Duration::from_millis(500);

/// One client's conversation with all upstreams: a legacy session, or one agent's stateless requests.
pub struct Aggregate {
    gate: Arc<Gate>,
    agent: String,
    era: Era,
    /// The id of the session; a credential.
    id: Option<String>,
    /// The client's `initialize`, as it came.
    initialize: Option<Message>,
    life: Life,
    children: Vec<Child>,
    /// The servers' requests that the client has not answered: our number → whose, and its number there.
    asked: DashMap<u64, (usize, u64)>,
    next: AtomicU64,
    reader: Mutex<Option<mpsc::Sender<Bytes>>>,
    /// Whether the client was answered, and has said that it is ready.
    begun: AtomicBool,
    ready: AtomicBool,
}

impl Gate {
    /// A legacy `initialize` at the address of all.
    ///
    /// # Errors
    /// The reply to give: no upstream can be reached, draining.
    pub async fn initialize_all(
        self: &Arc<Self>,
        agent: &str,
        message: Message,
        life: Life,
    ) -> Result<(Arc<Aggregate>, Reply), Reply> {
        let raw_id = message.id().unwrap_or("null").to_owned();
        let unavailable = |what: &str| reply::error(&raw_id, reply::UNAVAILABLE, what, None);
        if self.is_draining() {
            return Err(unavailable("the gateway is shutting down"));
        }
        let asked = message.string_at(&["params", "protocolVersion"]).unwrap_or_default();
        let version = LEGACY.into_iter().find(|version| *version == asked).unwrap_or("2025-11-25");
        let id = crate::secret::random_id("ses_", 24);
        let children = self.executors.keys().map(|upstream| Child::new(upstream, None)).collect();
        let all = Arc::new(Aggregate {
            initialize: Some(message),
            id: Some(id.clone()),
            life,
            ..Aggregate::new(self, agent, Era::Legacy, children)
        });
        let up = all.all_up().await;
        if up.is_empty() && !self.executors.is_empty() {
            return Err(unavailable("no upstream can be reached; try again"));
        }
        all.begun.store(true, Ordering::Relaxed);
        self.aggregates.insert(session_key(&id), Arc::clone(&all));
        let hellos: Vec<(String, Value)> =
            up.iter().map(|(at, up)| (all.upstream(*at).to_owned(), Value::clone(&up.hello))).collect();
        let result = hello::initialized(version, &hellos);
        Ok((all, Reply { bytes: compose::result(&raw_id, &result), status: 200 }))
    }

    /// The session at the address of all by its id, if it is this agent's; after a restart made again from those with the
    /// single upstreams. `Ok(None)`: unknown or ended (HTTP 404).
    ///
    /// # Errors
    /// The store does not work.
    pub async fn session_all(self: &Arc<Self>, agent: &str, id: &str) -> Result<Option<Arc<Aggregate>>, Reply> {
        let key = session_key(id);
        if let Some(all) = self.aggregates.get(&key).map(|all| Arc::clone(&all)) {
            return Ok((all.agent == agent).then_some(all));
        }
        let (mut children, mut initialize) = (Vec::new(), None);
        for upstream in self.executors.keys() {
            let session = self.session(agent, upstream, &own_id(id, upstream)).await?;
            if let Some(session) = &session {
                initialize = Message::again(session.initialize()).ok().or(initialize);
            }
            let up = session.map(|session| Up { session, hello: Arc::new(Value::Null) });
            children.push(Child::new(upstream, up));
        }
        if initialize.is_none() {
            return Ok(None);
        }
        let all = Arc::new(Aggregate {
            initialize,
            id: Some(id.to_owned()),
            begun: AtomicBool::new(true),
            ready: AtomicBool::new(true),
            ..Aggregate::new(self, agent, Era::Legacy, children)
        });
        Ok(Some(Arc::clone(&self.aggregates.entry(key).or_insert(all))))
    }

    /// The stateless way at the address of all.
    pub fn stateless_all(self: &Arc<Self>, agent: &str) -> Arc<Aggregate> {
        let child = |upstream: &String| {
            let up = self.stateless(agent, upstream).map(|session| Up { session, hello: Arc::new(Value::Null) });
            Child::new(upstream, up)
        };
        Arc::new(Aggregate::new(self, agent, Era::Modern, self.executors.keys().map(child).collect()))
    }

    /// Forgets those whose sessions have ended.
    pub(super) fn tidy_aggregates(&self) {
        self.aggregates.retain(|_, all| {
            let lives = |child: &Child| {
                child.up().is_some_and(|up| up.session.key().is_some_and(|key| self.sessions.contains_key(key)))
            };
            all.children.iter().any(lives)
        });
    }
}

/// How long to wait for what one upstream says.
fn patience(session: &Session) -> Duration {
    if session.executor.upstream.is_up() { PATIENCE } else { PATIENCE_DOWN }
}

/// The id of the session with one upstream: whoever has that of the whole can make it.
fn own_id(id: &str, upstream: &str) -> String {
    format!("{id}.{upstream}")
}

impl Aggregate {
    fn new(gate: &Arc<Gate>, agent: &str, era: Era, children: Vec<Child>) -> Self {
        Self {
            gate: Arc::clone(gate),
            agent: agent.to_owned(),
            era,
            id: None,
            initialize: None,
            life: Life::Stored,
            children,
            asked: DashMap::new(),
            next: AtomicU64::new(1),
            reader: Mutex::default(),
            begun: AtomicBool::new(false),
            ready: AtomicBool::new(false),
        }
    }

    /// The id to be told to the client; none for the stateless way.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn upstream(&self, at: usize) -> &str {
        self.children.get(at).map(|child| child.upstream.as_str()).unwrap_or_default()
    }

    /// Begins the session with one upstream, if that is due.
    fn start(self: &Arc<Self>, at: usize) {
        let (Some(child), Some(id), Some(initialize)) = (self.children.get(at), &self.id, &self.initialize) else {
            return;
        };
        if !child.is_to_start() {
            return;
        }
        let (all, own, initialize) = (Arc::clone(self), own_id(id, &child.upstream), initialize.clone());
        tokio::spawn(async move {
            let Some(child) = all.children.get(at) else { return };
            let begun = all.gate.begin_session_as(all.agent.clone(), &child.upstream, initialize, all.life, own).await;
            let up = match begun {
                Ok((session, reply)) => {
                    let answer = serde_json::from_slice::<Value>(&reply.bytes).unwrap_or_default();
                    let hello = Arc::new(answer.get("result").cloned().unwrap_or_default());
                    if all.ready.load(Ordering::Relaxed) {
                        session.notify(initialized()).await;
                    }
                    Some(Up { session, hello })
                }
                Err(reply) => {
                    let said = String::from_utf8_lossy(&reply.bytes);
                    tracing::warn!(upstream = child.upstream, %said, "left out at the address of all");
                    None
                }
            };
            let came = up.is_some();
            child.started(up);
            if came && all.begun.load(Ordering::Relaxed) {
                all.joined(at);
            }
        });
    }

    /// One upstream, started where that is needed.
    async fn child(self: &Arc<Self>, at: usize) -> Option<Up> {
        self.start(at);
        self.children.get(at)?.within(PATIENCE).await
    }

    /// Those that are there, by their place.
    async fn all_up(self: &Arc<Self>) -> Vec<(usize, Up)> {
        // All at once: the slowest is waited for, not their sum.
        let up = join_all((0..self.children.len()).map(|at| async move { Some((at, self.child(at).await?)) })).await;
        up.into_iter().flatten().collect()
    }

    fn there(&self) -> Vec<(usize, Arc<Session>)> {
        let up = |(at, child): (usize, &Child)| Some((at, child.up()?.session));
        self.children.iter().enumerate().filter_map(up).collect()
    }

    /// A request: to the upstream that it names, or to all. Returns at once.
    pub fn request(
        self: &Arc<Self>,
        message: Message,
        headers: Option<Vec<(String, String)>>,
        credential: Option<TokenHash>,
    ) -> Exchange {
        let (tx, events) = mpsc::channel(CHANNEL);
        let all = Arc::clone(self);
        tokio::spawn(async move {
            let id = message.id().unwrap_or("null").to_owned();
            if let Some(reply) = all.serve(message, headers, credential, &tx).await {
                let mut reply = reply;
                if all.era == Era::Legacy && matches!(reply.status, 400 | 404) {
                    reply.status = 200;
                }
                let _ = tx.send(ToClient::Done(reply)).await;
            }
            tracing::trace!(id, "served at the address of all");
        });
        Exchange { events }
    }

    /// Serves a request; the reply that is the gateway's own.
    async fn serve(
        self: &Arc<Self>,
        message: Message,
        headers: Option<Vec<(String, String)>>,
        credential: Option<TokenHash>,
        tx: &mpsc::Sender<ToClient>,
    ) -> Option<Reply> {
        let id = message.id().unwrap_or("null").to_owned();
        let done = |result: &Value| Some(Reply { bytes: compose::result(&id, result), status: 200 });
        match message.method() {
            "ping" if self.era == Era::Legacy => done(&json!({})),
            "server/discover" if self.era == Era::Modern => {
                let hellos = self.hellos(&message).await;
                done(&hello::discovered(MODERN, &hellos))
            }
            "logging/setLevel" => {
                for (_, session) in self.there() {
                    relay::ask(&session, message.clone(), credential).await;
                }
                done(&json!({}))
            }
            "subscriptions/listen" => {
                self.subscribe(&message, headers, credential, tx).await;
                None
            }
            method if method.ends_with("/list") => Some(self.list(&message, credential).await),
            method if method.starts_with("tasks/") => {
                let Some(at) = self.owner_of_task(&message).await else { return Some(tasks::not_found(&id)) };
                self.pass(at, message, headers, credential, tx).await
            }
            _ => {
                let named = match names::named(&message) {
                    Ok(named) => named,
                    Err(what) => {
                        let unknown = message.method() != "resources/read" && what.contains("one upstream only");
                        let code = if unknown { reply::METHOD_NOT_FOUND } else { reply::INVALID_PARAMS };
                        return Some(reply::error(&id, code, &what, None));
                    }
                };
                let at = self.children.iter().position(|child| child.upstream == named.upstream);
                let renamed = Message::again(&String::from_utf8_lossy(&message.spliced(&[named.edit])));
                match (at, renamed) {
                    (Some(at), Ok(message)) => self.pass(at, message, headers, credential, tx).await,
                    _ => {
                        let what = format!("there is no upstream `{}`", crate::pattern::visible(&named.upstream));
                        Some(reply::error(&id, reply::INVALID_PARAMS, &what, None))
                    }
                }
            }
        }
    }

    async fn pass(
        self: &Arc<Self>,
        at: usize,
        message: Message,
        headers: Option<Vec<(String, String)>>,
        credential: Option<TokenHash>,
        tx: &mpsc::Sender<ToClient>,
    ) -> Option<Reply> {
        let id = message.id().unwrap_or("null").to_owned();
        let Some(up) = self.child(at).await else {
            let what = format!("the upstream `{}` cannot be reached now", self.upstream(at));
            return Some(reply::error(&id, reply::UPSTREAM_FAILED, &what, None));
        };
        let exchange = up.session.request(message, headers, credential);
        self.relay(at, exchange, tx).await;
        None
    }

    async fn owner_of_task(self: &Arc<Self>, message: &Message) -> Option<usize> {
        let task = message.string_at(&["params", "taskId"])?;
        for (at, session) in self.there() {
            if matches!(tasks::whose(&session, &task).await, Ok(Some(_))) {
                return Some(at);
            }
        }
        None
    }

    async fn hellos(self: &Arc<Self>, message: &Message) -> Vec<(String, Value)> {
        let asked = self.there().into_iter().map(|(at, session)| async move {
            let asked = relay::ask(&session, message.clone(), None);
            let reply = tokio::time::timeout(patience(&session), asked).await.ok()??;
            let answer = serde_json::from_slice::<Value>(&reply.bytes).ok()?;
            Some((self.upstream(at).to_owned(), answer.get("result")?.clone()))
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// A notification: to all. What it names is known to one of them at most.
    pub async fn notify(self: &Arc<Self>, message: Message) {
        if message.method() == "notifications/initialized" {
            self.ready.store(true, Ordering::Relaxed);
        }
        for (_, session) in self.there() {
            session.notify(message.clone()).await;
        }
    }

    /// The client's answer to a request of a server; `false` if there is no such request.
    pub async fn respond(self: &Arc<Self>, message: Message) -> bool {
        let asked = message.id().and_then(|raw| raw.parse::<u64>().ok()).and_then(|id| self.asked.remove(&id));
        let Some((_, (at, number))) = asked else { return false };
        let answer = Message::again(&String::from_utf8_lossy(&message.with_id(&number.to_string())));
        match (self.children.get(at).and_then(Child::up), answer) {
            (Some(up), Ok(answer)) => up.session.respond(answer).await,
            _ => false,
        }
    }

    /// The stream for what belongs to no request.
    pub fn listen(self: &Arc<Self>) -> mpsc::Receiver<Bytes> {
        let (tx, rx) = mpsc::channel(CHANNEL);
        *self.reader.lock().unwrap_or_else(PoisonError::into_inner) = Some(tx.clone());
        for (at, session) in self.there() {
            self.follow(at, &session, tx.clone());
        }
        rx
    }

    /// The client ended it.
    pub async fn end(self: &Arc<Self>) {
        if let Some(id) = &self.id {
            self.gate.aggregates.remove(&session_key(id));
        }
        join_all(self.there().iter().map(|(_, session)| session.end())).await;
    }

    /// One more upstream is there than the client was told of.
    fn joined(self: &Arc<Self>, at: usize) {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (Some(reader), Some(up)) = (reader, self.children.get(at).and_then(Child::up)) else { return };
        self.follow(at, &up.session, reader.clone());
        for list in ["tools", "prompts", "resources"] {
            // A client that does not read asks again by itself.
            let _ = reader.try_send(compose::notification(&format!("notifications/{list}/list_changed"), None));
        }
    }
}

#[allow(clippy::expect_used, reason = "a literal that a test parses")]
fn initialized() -> Message {
    Message::again(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).expect("a notification")
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_notification_can_be_read() {
        assert_eq!(super::initialized().method(), "notifications/initialized");
    }
}

//! One client's conversation with one upstream.
//!
//! A legacy session owns one link of its own, so that what an upstream sends by itself has exactly one reader; the
//! stateless way has one link for each agent. A link that died, or was lost with the gateway's last process, is opened
//! again when it is next needed, with the client's own stored `initialize`.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use dashmap::DashMap;
use futures_util::FutureExt as _;
use tokio::sync::{mpsc, oneshot, watch};

use super::client::Client;
use super::link::{Era, UpstreamError};
use super::route::{Route, Unrouted};
use super::tools::{Offered, list_changed};
use super::{CHANNEL, Executor, Gate, Permit, call, claim, inward, reply, roots};
use crate::identity::Agent;
use crate::message::{Message, id_key};
use crate::policy::passes;
use crate::secret::TokenHash;

/// How many messages without a reader are kept for a session.
const UNREAD: usize = 256;

/// How many requests of a server may wait for a client's answer.
const ASKED: usize = 1_000;

/// A legacy session, or one agent's stateless requests to one upstream.
pub struct Session {
    pub(super) gate: Arc<Gate>,
    /// Whose it is. Who that is by now stands in the directory ([`Session::agent`]).
    pub(super) agent: String,
    pub(super) executor: Arc<Executor>,
    pub(super) era: Era,
    id: OnceLock<String>,
    key: Option<String>,
    pub(super) handshake: Option<Handshake>,
    pub(super) route: ArcSwapOption<Route>,
    pub(super) opening: tokio::sync::Mutex<()>,
    pub(super) listing: tokio::sync::Mutex<Option<Instant>>,
    pub(super) tools: Offered,
    /// Counts what its client is to be told of its list of tools.
    pub(super) list_changes: watch::Sender<u64>,
    /// Whether its upstream said that it tells of changed lists.
    pub(super) tells_of_lists: AtomicBool,
    /// By [`id_key`].
    exchanges: DashMap<String, Vec<Active>>,
    sequence: AtomicU64,
    used_at: Mutex<Instant>,
    /// The server's requests that the client has not answered, by our number.
    asked: DashMap<u64, Asked>,
    outlet: Mutex<Outlet>,
    /// Whether its client ever had a stream open.
    listened: AtomicBool,
}

/// What makes a legacy session again.
pub(super) struct Handshake {
    /// The client's `initialize`, as it came.
    pub initialize: String,
    /// The version that was agreed, once it is.
    pub version: OnceLock<String>,
    /// The upstream's own session to resume, once, after a restart.
    pub resume: Mutex<Option<String>>,
}

/// A request of the server.
struct Asked {
    /// The server's raw id.
    raw: String,
    /// Whether the client has it: until then no answer of its counts.
    is_put: bool,
    ended: Option<oneshot::Sender<AskedEnd>>,
}

/// How a request of the server ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AskedEnd {
    /// The client's answer went to the server.
    Answered,
    /// The server does not want it any more.
    Withdrawn,
}

/// A request that is being served.
struct Active {
    sequence: u64,
    cancel: watch::Sender<Option<String>>,
}

/// Where messages go that belong to no request.
#[derive(Default)]
struct Outlet {
    reader: Option<mpsc::Sender<Bytes>>,
    unread: VecDeque<Bytes>,
    dropped: u64,
}

/// What a listener is to tell the client about one request. Dropping it means that the client is gone: a cancel or a
/// detachment, as the upstream's `on_disconnect` and the era say. A channel that ends without [`ToClient::Done`] means
/// that no answer is owed: the client cancelled the request.
pub struct Exchange {
    /// In order; the last is [`ToClient::Done`].
    pub events: mpsc::Receiver<ToClient>,
}

/// One step of an exchange.
#[derive(Clone, Debug)]
pub enum ToClient {
    /// The call is held: send the headers now and keep the stream alive.
    Held,
    /// A message for the client before the answer (progress, log, a request from the server).
    Message(Bytes),
    /// The answer; nothing follows.
    Done(Reply),
}

/// A finished JSON-RPC answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The JSON text.
    pub bytes: Bytes,
    /// The HTTP status it travels under where nothing was sent yet: 200, or 400, 404, 503 as the protocol says.
    pub status: u16,
}

impl Session {
    pub(super) fn new(
        gate: Arc<Gate>,
        agent: String,
        executor: Arc<Executor>,
        key: Option<String>,
        handshake: Option<Handshake>,
    ) -> Arc<Self> {
        let era = if handshake.is_some() { Era::Legacy } else { Era::Modern };
        Arc::new(Self {
            gate,
            agent,
            executor,
            era,
            id: OnceLock::new(),
            key,
            handshake,
            route: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::new(()),
            listing: tokio::sync::Mutex::new(None),
            tools: Offered::default(),
            list_changes: watch::Sender::new(0),
            tells_of_lists: AtomicBool::new(false),
            exchanges: DashMap::new(),
            sequence: AtomicU64::new(1),
            used_at: Mutex::new(Instant::now()),
            asked: DashMap::new(),
            outlet: Mutex::default(),
            listened: AtomicBool::new(false),
        })
    }

    /// The id the gateway issued, to be told to the client once; none for the stateless way.
    pub fn id(&self) -> Option<&str> {
        self.id.get().map(String::as_str)
    }

    /// Its agent as it is configured now; none if it is no longer known: then nothing is done in its name.
    pub(super) fn agent(&self) -> Option<Arc<Agent>> {
        self.gate.directory().agent_named(&self.agent)
    }

    /// What the session is called everywhere else: a hash of its id, which is a credential.
    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    pub(super) fn issue(&self, id: String) {
        // A session is issued once.
        let _ = self.id.set(id);
    }

    /// The protocol version that was agreed, for a legacy session.
    pub fn version(&self) -> Option<&str> {
        self.handshake.as_ref().and_then(|h| h.version.get()).map(String::as_str)
    }

    /// A request: judged, held, forwarded. Returns at once. `headers` are the `Mcp-Param-*` of a modern request; none
    /// where the transport has no headers. `credential` is the token that it came with; none where none was needed.
    pub fn request(
        self: &Arc<Self>,
        message: Message,
        headers: Option<Vec<(String, String)>>,
        credential: Option<TokenHash>,
    ) -> Exchange {
        self.touch();
        let (tx, events) = mpsc::channel(CHANNEL);
        let (cancel, cancelled) = watch::channel(None);
        let raw_id = message.id().unwrap_or("null").to_owned();
        let (sequence, key) = (self.sequence.fetch_add(1, Ordering::Relaxed), id_key(&raw_id));
        self.exchanges.entry(key.clone()).or_default().push(Active { sequence, cancel });
        let token = message.progress_token().map(|(_, raw)| raw.to_owned());
        let client = Client::new(self.era, raw_id, token, tx, cancelled, credential);
        let session = Arc::clone(self);
        tokio::spawn(async move {
            let there = client.clone();
            let served = AssertUnwindSafe(call::serve(&session, Arc::new(message), headers, client)).catch_unwind();
            if served.await.is_err() {
                tracing::error!(
                    upstream = session.executor.id(),
                    "a request broke off inside the gateway: please report it"
                );
                let what = "the gateway broke off at this request; if it was a call, it may have run";
                there.answer(reply::error(&there.id, reply::INTERNAL, what, None)).await;
            }
            session.touch();
            session.forget(&key, sequence);
        });
        Exchange { events }
    }

    /// A notification (`notifications/cancelled` stops the call it names).
    pub async fn notify(self: &Arc<Self>, message: Message) {
        if message.method() == "notifications/cancelled" {
            let Some((_, raw)) = message.at(&["params", "requestId"]) else { return };
            let reason = message.string_at(&["params", "reason"]);
            self.cancel(raw, reason.as_deref().unwrap_or("the client cancelled the request"));
            return;
        }
        if roots::is_moot(&self.executor, message.method()) {
            return;
        }
        if !passes(message.kind(), message.method()) {
            tracing::warn!(
                upstream = self.executor.id(),
                method = message.method(),
                "this is no notification: dropped"
            );
            return;
        }
        if self.agent().is_none() {
            tracing::warn!(agent = self.agent, "the agent is no longer configured: its notification was dropped");
            return;
        }
        let sent = match self.route().await {
            Ok(route) => route.tell(Permit::mint(), message.method(), message.spliced(&claim::cut(&message))).await,
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            tracing::warn!(upstream = self.executor.id(), method = message.method(), %error, "a notification was lost");
        }
    }

    /// The client's answer to a request of the server; `false` if there is no such request.
    pub async fn respond(self: &Arc<Self>, message: Message) -> bool {
        let id = message.id().and_then(|raw| raw.parse::<u64>().ok());
        let asked = id.and_then(|id| self.asked.remove_if(&id, |_, asked| asked.is_put));
        let Some((_, asked)) = asked.filter(|_| self.agent().is_some()) else { return false };
        let Some(route) = self.route.load_full() else { return false };
        match route.tell(Permit::mint(), "", message.with_id(&asked.raw)).await {
            Ok(()) => {
                let _ = asked.ended.map(|ended| ended.send(AskedEnd::Answered));
                true
            }
            Err(error) => {
                tracing::warn!(upstream = self.executor.id(), %error, "a client's answer was lost");
                false
            }
        }
    }

    /// The stream for what belongs to no request (legacy GET, stdio). A second one takes the place of the first.
    pub fn listen(self: &Arc<Self>) -> mpsc::Receiver<Bytes> {
        self.listened.store(true, Ordering::Relaxed);
        let (tx, rx) = mpsc::channel(UNREAD + CHANNEL);
        let mut outlet = self.outlet();
        for bytes in outlet.unread.drain(..) {
            // The channel is larger than the queue.
            let _ = tx.try_send(bytes);
        }
        outlet.reader = Some(tx);
        rx
    }

    /// The client ended it (DELETE), or its process is gone.
    pub async fn end(self: &Arc<Self>) {
        if let Some(key) = &self.key {
            // The store first: whoever looks between the two must not bring it back.
            if let Err(error) = self.gate.store.end_session(key).await {
                tracing::warn!(%error, "an ended session could not be removed from the store");
            }
            self.gate.sessions.remove(key);
            self.gate
                .stateless
                .remove_if(&(self.agent.clone(), self.executor.id().to_owned()), |_, s| Arc::ptr_eq(s, self));
        }
        self.park().await;
    }

    /// Tells the client that what it may see of the list of tools is another now: in its session, if its upstream said
    /// that it does such a thing, or to those who listen for it.
    pub(super) fn list_changed(&self) {
        match self.era {
            Era::Legacy if self.tells_of_lists.load(Ordering::Relaxed) => self.unread(list_changed(None)),
            Era::Legacy => {}
            Era::Modern => self.list_changes.send_modify(|changes| *changes += 1),
        }
    }

    fn touch(&self) {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether it has a link that nobody has used for so long.
    pub(super) fn is_idle(&self, long: Duration) -> bool {
        self.is_unused(long) && self.route.load().is_some()
    }

    /// Whether its client seems to have gone without ending it: its stream has been closed for `left`, or it never had one
    /// and has been silent for `silent`.
    pub(super) fn is_left(&self, left: Duration, silent: Duration) -> bool {
        self.is_unused(if self.listened.load(Ordering::Relaxed) { left } else { silent })
    }

    /// Counts an open stream as use.
    pub(super) fn look(&self) {
        if self.is_read() {
            self.touch();
        }
    }

    /// Whether there was no request and no open stream for so long.
    fn is_unused(&self, long: Duration) -> bool {
        let used_at = *self.used_at.lock().unwrap_or_else(PoisonError::into_inner);
        !self.is_read() && self.exchanges.is_empty() && used_at.elapsed() >= long
    }

    fn is_read(&self) -> bool {
        self.outlet().reader.as_ref().is_some_and(|reader| !reader.is_closed())
    }

    /// Closes the link; the next request opens another.
    pub(super) async fn park(&self) {
        if let Some(route) = self.route.swap(None) {
            route.close().await;
        }
    }

    /// Stops the requests that the client calls `raw_id`: all, where it gave several the same id.
    fn cancel(&self, raw_id: &str, reason: &str) {
        for active in self.exchanges.get(&id_key(raw_id)).iter().flat_map(|active| active.iter()) {
            active.cancel.send_replace(Some(reason.to_owned()));
        }
    }

    fn forget(&self, key: &str, sequence: u64) {
        if let Some(mut active) = self.exchanges.get_mut(key) {
            active.retain(|a| a.sequence != sequence);
        }
        self.exchanges.remove_if(key, |_, active| active.is_empty());
    }

    fn outlet(&self) -> MutexGuard<'_, Outlet> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To the open stream; without one kept for the next, the oldest lost first.
    pub(super) fn unread(&self, bytes: Bytes) {
        let mut outlet = self.outlet();
        let bytes = match outlet.reader.as_ref().map(|reader| reader.try_send(bytes.clone())) {
            Some(Ok(())) => return,
            Some(Err(mpsc::error::TrySendError::Closed(bytes))) => {
                outlet.reader = None;
                bytes
            }
            Some(Err(mpsc::error::TrySendError::Full(bytes))) => bytes,
            None => bytes,
        };
        if outlet.unread.len() >= UNREAD {
            outlet.unread.pop_front();
            self.dropped(&mut outlet, "messages that no client reads are dropped");
        }
        outlet.unread.push_back(bytes);
    }

    /// Says so the first time, and then ever more rarely: what an upstream sends must not fill the log.
    fn dropped(&self, outlet: &mut Outlet, what: &str) {
        outlet.dropped += 1;
        if outlet.dropped.is_power_of_two() {
            tracing::warn!(upstream = self.executor.id(), dropped = outlet.dropped, "{what}");
        }
    }
}

/// The server's requests.
impl Session {
    /// A number for a request of the server, and how it will end; none where too many are open.
    pub(super) fn register(&self, raw: &str) -> Option<(u64, oneshot::Receiver<AskedEnd>)> {
        if self.asked.len() >= ASKED {
            self.dropped(&mut self.outlet(), "it asks more than its client answers; requests are dropped");
            return None;
        }
        let number = self.sequence.fetch_add(1, Ordering::Relaxed);
        let (ended, end) = oneshot::channel();
        self.asked.insert(number, Asked { raw: raw.to_owned(), is_put: false, ended: Some(ended) });
        Some((number, end))
    }

    /// How many requests of the server wait for a human.
    pub(super) fn unput(&self) -> usize {
        self.asked.iter().filter(|asked| !asked.is_put).count()
    }

    /// No answer to it counts any more.
    pub(super) fn unregister(&self, number: u64) {
        self.asked.remove(&number);
    }

    /// Puts a registered request to the client.
    pub(super) async fn put_as(&self, number: u64, message: &Message, related: Option<&mpsc::Sender<Bytes>>) {
        if let Some(mut asked) = self.asked.get_mut(&number) {
            asked.is_put = true;
        }
        self.give(message.with_id(&number.to_string()), related).await;
    }

    /// Puts a request to the client that nobody has to watch.
    pub(super) async fn put(&self, message: Message, related: Option<mpsc::Sender<Bytes>>) {
        if let Some((number, _)) = message.id().and_then(|raw| self.register(raw)) {
            self.put_as(number, &message, related.as_ref()).await;
        }
    }

    /// To the exchange that it belongs to, or to the open stream.
    async fn give(&self, bytes: Bytes, related: Option<&mpsc::Sender<Bytes>>) {
        match related {
            Some(exchange) => {
                if let Err(lost) = exchange.send(bytes).await {
                    self.unread(lost.0);
                }
            }
            None => self.unread(bytes),
        }
    }
}

impl Unrouted for Session {
    async fn unrouted(self: &Arc<Self>, route: &Arc<Route>, message: Message, related: Option<mpsc::Sender<Bytes>>) {
        let bytes = match message.method() {
            _ if message.id().is_some() => return inward::serve(self, route, message, related).await,
            "notifications/tools/list_changed" => {
                self.tools.mark_stale();
                message.bytes().clone()
            }
            "notifications/cancelled" => {
                // The server withdraws a request of its own: under the number that the client knows.
                let Some((span, raw)) = message.at(&["params", "requestId"]) else { return };
                let found = self.asked.iter().find(|asked| id_key(&asked.raw) == id_key(raw)).map(|asked| *asked.key());
                let Some((ours, asked)) = found.and_then(|ours| self.asked.remove(&ours)) else { return };
                let _ = asked.ended.map(|ended| ended.send(AskedEnd::Withdrawn));
                if !asked.is_put {
                    return;
                }
                message.spliced(&[(span, ours.to_string())])
            }
            _ => message.bytes().clone(),
        };
        self.give(bytes, related.as_ref()).await;
    }

    fn closed(&self, route: &Arc<Route>, error: &UpstreamError) {
        // One that was let go of before is not the one in use.
        let used = self.route.compare_and_swap(&Some(Arc::clone(route)), None);
        if !used.as_ref().is_some_and(|used| Arc::ptr_eq(used, route)) {
            return;
        }
        tracing::warn!(upstream = self.executor.id(), %error, "the link to the upstream ended");
        self.gate.metrics.upstream_up(self.executor.id(), false);
    }
}

//! One client's conversation with one upstream.
//!
//! A legacy session owns one link of its own, so that what an upstream sends by itself has exactly one reader; the
//! stateless way has one link for each agent. A link that died, or was lost with the gateway's last process, is opened
//! again when it is next needed, with the client's own stored `initialize`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use dashmap::DashMap;
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::call::{self, Client};
use super::link::{Era, Fault, Opening, UpstreamError};
use super::route::{Flight, Forwarded, Route, Unrouted};
use super::tools::Definition;
use super::{CHANNEL, Executor, Gate, Permit};
use crate::identity::Agent;
use crate::message::{Limits, Message, compose};

/// How many messages without a reader are kept for a session.
const UNREAD: usize = 256;

/// How many requests of a server may wait for a client's answer.
const ASKED: usize = 1_000;

/// How soon an unknown tool makes the gateway look at the list again.
const LIST_AGAIN: Duration = Duration::from_secs(1);

/// A legacy session, or one agent's stateless requests to one upstream.
pub struct Session {
    pub(super) gate: Arc<Gate>,
    pub(super) agent: Arc<Agent>,
    pub(super) executor: Arc<Executor>,
    pub(super) era: Era,
    id: OnceLock<String>,
    key: Option<String>,
    handshake: Option<Handshake>,
    route: ArcSwapOption<Route>,
    opening: tokio::sync::Mutex<()>,
    listing: tokio::sync::Mutex<Option<Instant>>,
    exchanges: DashMap<String, Vec<Active>>,
    sequence: AtomicU64,
    used_at: Mutex<Instant>,
    /// The server's requests that the client has not answered: our number → the server's raw id.
    asked: DashMap<u64, String>,
    outlet: Mutex<Outlet>,
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
        agent: Arc<Agent>,
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
            exchanges: DashMap::new(),
            sequence: AtomicU64::new(1),
            used_at: Mutex::new(Instant::now()),
            asked: DashMap::new(),
            outlet: Mutex::default(),
        })
    }

    /// The id the gateway issued, to be told to the client once; none for the stateless way.
    pub fn id(&self) -> Option<&str> {
        self.id.get().map(String::as_str)
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
    /// where the transport has no headers.
    pub fn request(self: &Arc<Self>, message: Message, headers: Option<Vec<(String, String)>>) -> Exchange {
        self.touch();
        let (tx, events) = mpsc::channel(CHANNEL);
        let (cancel, cancelled) = watch::channel(None);
        let raw_id = message.id().unwrap_or("null").to_owned();
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        self.exchanges.entry(raw_id.clone()).or_default().push(Active { sequence, cancel });
        let client =
            Client::new(raw_id.clone(), message.progress_token().map(|(_, raw)| raw.to_owned()), tx, cancelled);
        let session = Arc::clone(self);
        tokio::spawn(async move {
            call::serve(&session, Arc::new(message), headers, client).await;
            session.touch();
            session.forget(&raw_id, sequence);
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
        let sent = match self.route().await {
            Ok(route) => route.tell(Permit::mint(), message.method(), message.bytes().clone()).await,
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            tracing::warn!(upstream = self.executor.id(), method = message.method(), %error, "a notification was lost");
        }
    }

    /// The client's answer to a request of the server; `false` if there is no such request.
    pub async fn respond(self: &Arc<Self>, message: Message) -> bool {
        let asked = message.id().and_then(|raw| raw.parse().ok()).and_then(|id: u64| self.asked.remove(&id));
        let Some((_, raw)) = asked else { return false };
        let Some(route) = self.route.load_full() else { return false };
        match route.tell(Permit::mint(), "", message.with_id(&raw)).await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(upstream = self.executor.id(), %error, "a client's answer was lost");
                false
            }
        }
    }

    /// The stream for what belongs to no request (legacy GET, stdio). A second one takes the place of the first.
    pub fn listen(self: &Arc<Self>) -> mpsc::Receiver<Bytes> {
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
            self.gate.sessions.remove(key);
            if let Err(error) = self.gate.store.end_session(key).await {
                tracing::warn!(%error, "an ended session could not be removed from the store");
            }
        }
        self.park().await;
    }

    fn touch(&self) {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Whether it has a link that nobody has used for so long: no request, no open stream.
    pub(super) fn is_idle(&self, long: Duration) -> bool {
        let read = self.outlet().reader.as_ref().is_some_and(|reader| !reader.is_closed());
        let used_at = *self.used_at.lock().unwrap_or_else(PoisonError::into_inner);
        !read && self.exchanges.is_empty() && used_at.elapsed() >= long && self.route.load().is_some()
    }

    /// Closes the link; the next request opens another.
    pub(super) async fn park(&self) {
        if let Some(route) = self.route.swap(None) {
            route.close().await;
        }
    }

    /// Stops the requests that the client calls `raw_id`; where several share it (stateless), none is meant for sure.
    fn cancel(&self, raw_id: &str, reason: &str) {
        if let Some(active) = self.exchanges.get(raw_id)
            && let [only] = active.as_slice()
        {
            only.cancel.send_replace(Some(reason.to_owned()));
        }
    }

    fn forget(&self, raw_id: &str, sequence: u64) {
        if let Some(mut active) = self.exchanges.get_mut(raw_id) {
            active.retain(|a| a.sequence != sequence);
        }
        self.exchanges.remove_if(raw_id, |_, active| active.is_empty());
    }

    fn outlet(&self) -> MutexGuard<'_, Outlet> {
        self.outlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To the open stream; without one kept for the next, the oldest lost first.
    fn unread(&self, bytes: Bytes) {
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
            tracing::warn!(upstream = self.executor.id(), "a message that no client read was dropped");
        }
        outlet.unread.push_back(bytes);
    }

    // ---- the link ------------------------------------------------------------------------------------------------

    /// The open link, opened (again) where that is needed.
    pub(super) async fn route(self: &Arc<Self>) -> Result<Arc<Route>, UpstreamError> {
        if let Some(route) = self.route.load_full() {
            return Ok(route);
        }
        let _one_at_a_time = self.opening.lock().await;
        if let Some(route) = self.route.load_full() {
            return Ok(route);
        }
        let route = self.open(self.resume()).await?;
        self.route.store(Some(Arc::clone(&route)));
        if let Some(handshake) = &self.handshake
            && handshake.version.get().is_some()
            && route.upstream_session().is_none()
        {
            self.shake_hands_again(&route, handshake).await.inspect_err(|_| self.route.store(None))?;
        }
        Ok(route)
    }

    /// The client's own handshake, as it came.
    pub(super) fn initialize(&self) -> &str {
        self.handshake.as_ref().map(|h| h.initialize.as_str()).unwrap_or_default()
    }

    /// The upstream's own session id, while a link is open.
    pub(super) fn upstream_session(&self) -> Option<String> {
        self.route.load().as_ref().and_then(|route| route.upstream_session())
    }

    fn resume(&self) -> Option<String> {
        self.handshake.as_ref().and_then(|h| h.resume.lock().unwrap_or_else(PoisonError::into_inner).take())
    }

    /// The upstream forgot the session: the next use makes another.
    pub(super) fn lost(&self) {
        self.route.store(None);
    }

    async fn open(self: &Arc<Self>, resume: Option<String>) -> Result<Arc<Route>, UpstreamError> {
        let (inbound, events) = mpsc::channel(CHANNEL);
        let opening = Opening { era: self.era, resume, version: self.version().map(str::to_owned), inbound };
        let opened = self.executor.upstream.open(opening).await;
        self.gate.metrics.upstream_up(self.executor.id(), opened.is_ok());
        Ok(Route::start(opened?, events, Arc::downgrade(self)))
    }

    /// The first handshake: the client's own, answered by the upstream.
    pub(super) async fn shake_hands(self: &Arc<Self>, message: &Message) -> Result<Message, UpstreamError> {
        let route = self.route().await?;
        let flight = route.request(Permit::mint(), message, Vec::new(), Forwarded::default(), None).await?;
        let answer = self.settle(&route, flight, self.executor.config.timeout).await?;
        if let Some(result) = answer.result()
            && let Ok(result) = serde_json::from_str::<serde_json::Value>(result)
            && let Some(version) = result.get("protocolVersion").and_then(|v| v.as_str())
            && let Some(handshake) = &self.handshake
        {
            // The first handshake is the only one that sets it.
            let _ = handshake.version.set(version.to_owned());
        }
        Ok(answer)
    }

    async fn shake_hands_again(
        self: &Arc<Self>,
        route: &Arc<Route>,
        handshake: &Handshake,
    ) -> Result<(), UpstreamError> {
        let broken = |what: String| UpstreamError { fault: Fault::Garbage, what, may_have_run: false };
        let message = Message::strict(Bytes::from(handshake.initialize.clone()), Limits::default())
            .map_err(|e| broken(format!("the stored handshake cannot be read: {e}")))?;
        let flight = route.request(Permit::mint(), &message, Vec::new(), Forwarded::default(), None).await?;
        let answer = self.settle(route, flight, self.executor.config.timeout).await?;
        let agreed = answer.result().and_then(|r| serde_json::from_str::<serde_json::Value>(r).ok());
        let version = agreed.as_ref().and_then(|r| r.get("protocolVersion")).and_then(|v| v.as_str());
        if version != self.version() {
            return Err(broken(format!("it now speaks version {version:?}; the session must be begun again")));
        }
        let initialized = compose::notification("notifications/initialized", None);
        route.tell(Permit::mint(), "notifications/initialized", initialized).await
    }

    async fn settle(&self, route: &Route, flight: Flight, within: Duration) -> Result<Message, UpstreamError> {
        let Flight { id, answer } = flight;
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(UpstreamError {
                fault: Fault::Died,
                what: "the connection ended before the answer".to_owned(),
                may_have_run: true,
            }),
            Err(_) => {
                route.stop(id, "timed out").await;
                Err(UpstreamError {
                    fault: Fault::Timeout,
                    what: format!("no answer within {} s", within.as_secs()),
                    may_have_run: true,
                })
            }
        }
    }

    // ---- definitions ---------------------------------------------------------------------------------------------

    /// The definition of a tool: as listed, after one look of our own where it is not known or the list changed.
    pub(super) async fn definition(
        self: &Arc<Self>,
        name: &str,
        request: &Message,
    ) -> Result<Option<Arc<Definition>>, UpstreamError> {
        let tools = &self.executor.tools;
        if !tools.is_stale()
            && let Some(known) = tools.get(name)
        {
            return Ok(Some(known));
        }
        // Many calls that find the list missing wait for one look.
        let mut listed = self.listing.lock().await;
        let stale = tools.is_stale();
        let known = tools.get(name).filter(|_| !stale);
        let just_listed = !stale && listed.is_some_and(|at| at.elapsed() < LIST_AGAIN);
        if known.is_some() || just_listed {
            return Ok(known);
        }
        tools.mark_fresh();
        self.list_tools(request).await.inspect_err(|_| tools.mark_stale())?;
        *listed = Some(Instant::now());
        Ok(tools.get(name))
    }

    /// Reads all pages of `tools/list` by ourselves, at most a hundred.
    async fn list_tools(self: &Arc<Self>, request: &Message) -> Result<(), UpstreamError> {
        let meta = match self.era {
            Era::Modern => request.at(&["params", "_meta"]).and_then(|(_, raw)| serde_json::from_str(raw).ok()).map(
                |mut meta: serde_json::Map<String, serde_json::Value>| {
                    meta.remove("progressToken");
                    meta
                },
            ),
            Era::Legacy => None,
        };
        let headers = Forwarded { version: request.meta_version(), ..Forwarded::default() };
        let mut cursor: Option<String> = None;
        for _ in 0..100 {
            let mut params = serde_json::Map::new();
            params.extend(meta.as_ref().map(|meta| ("_meta".to_owned(), json!(meta))));
            params.extend(cursor.as_ref().map(|cursor| ("cursor".to_owned(), json!(cursor))));
            let params = json!(params);
            let route = self.route().await?;
            let flight = route.own_request(Permit::mint(), "tools/list", &params, headers.clone()).await?;
            let answer = self.settle(&route, flight, self.executor.config.timeout).await?;
            let Some(result) = answer.result() else {
                return Err(UpstreamError {
                    fault: Fault::Garbage,
                    what: "it does not list its tools".to_owned(),
                    may_have_run: false,
                });
            };
            cursor = self.executor.tools.learn(&self.executor.config.catalogue, result);
            if cursor.is_none() {
                break;
            }
        }
        Ok(())
    }
}

impl Unrouted for Session {
    async fn unrouted(&self, message: Message, related: Option<mpsc::Sender<Bytes>>) {
        let bytes = match message.method() {
            "notifications/tools/list_changed" => {
                self.executor.tools.mark_stale();
                message.bytes().clone()
            }
            "notifications/cancelled" => {
                // The server withdraws a request of its own: under the number that the client knows.
                let Some((span, raw)) = message.at(&["params", "requestId"]) else { return };
                let Some(ours) = self.asked.iter().find(|asked| asked.value() == raw).map(|asked| *asked.key()) else {
                    return;
                };
                self.asked.remove(&ours);
                message.spliced(&[(span, ours.to_string())])
            }
            _ => match message.id() {
                Some(_) if self.asked.len() >= ASKED => {
                    tracing::warn!(
                        upstream = self.executor.id(),
                        "it asks more than its client answers; a request was dropped"
                    );
                    return;
                }
                Some(raw) => {
                    let ours = self.sequence.fetch_add(1, Ordering::Relaxed);
                    self.asked.insert(ours, raw.to_owned());
                    message.with_id(&ours.to_string())
                }
                None => message.bytes().clone(),
            },
        };
        match related {
            Some(exchange) => {
                if let Err(lost) = exchange.send(bytes).await {
                    self.unread(lost.0);
                }
            }
            None => self.unread(bytes),
        }
    }

    fn closed(&self, error: &UpstreamError) {
        tracing::warn!(upstream = self.executor.id(), %error, "the link to the upstream ended");
        self.gate.metrics.upstream_up(self.executor.id(), false);
        self.route.store(None);
    }
}

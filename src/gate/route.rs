//! Ids on one link: the client's become the gate's on the way out, and theirs again on the way back.
//!
//! Requests are numbered by the gate, so that an upstream never sees two clients' ids collide and a progress token always
//! names exactly one request. What comes back is sorted by those numbers to the exchange that waits for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use dashmap::DashMap;
use tokio::sync::{mpsc, oneshot, watch};

use super::link::{Fault, Inbound, Link, Outgoing, UpstreamError};
use super::{CHANNEL, Permit, claim};
use crate::message::{Kind, Message, Span, compose};

/// One open link and the requests that wait on it.
pub struct Route {
    link: Arc<dyn Link>,
    next: AtomicU64,
    waiting: DashMap<u64, Waiting>,
    ended: watch::Sender<bool>,
}

/// A request on its way: where its answer goes, and what its client called things.
struct Waiting {
    answer: oneshot::Sender<Result<Message, UpstreamError>>,
    interim: Option<Interim>,
}

/// Where what comes before an answer goes, and what its client calls the request: the request that runs may be one that
/// it sent before.
#[derive(Clone)]
pub struct Interim {
    /// The client's exchange.
    pub to: mpsc::Sender<Bytes>,
    /// The client's raw id.
    pub id: String,
    /// The client's raw progress token; without one nothing is told of progress.
    pub token: Option<String>,
}

/// A forwarded request: wait for `answer`; dropping it does not stop the far side, [`Route::stop`] does.
pub struct Flight {
    /// The gate's number for it.
    pub id: u64,
    /// The response, or why there will be none.
    pub answer: oneshot::Receiver<Result<Message, UpstreamError>>,
}

/// Where a route hands what belongs to no waiting request.
pub trait Unrouted: Send + Sync + 'static {
    /// A notification, or a request of the server. `related` is the exchange it came with, if that is known and open.
    fn unrouted(
        self: &Arc<Self>,
        route: &Arc<Route>,
        message: Message,
        related: Option<mpsc::Sender<Bytes>>,
    ) -> impl Future<Output = ()> + Send;
    /// This link is dead.
    fn closed(&self, route: &Arc<Route>, error: &UpstreamError);
}

impl Route {
    /// Starts sorting what comes in on `inbound`; ends when the link or `owner` does. Whoever lets go of a route lets go
    /// of its link.
    pub fn start<O: Unrouted>(link: Arc<dyn Link>, inbound: mpsc::Receiver<Inbound>, owner: Weak<O>) -> Arc<Self> {
        let route =
            Arc::new(Self { link, next: AtomicU64::new(1), waiting: DashMap::new(), ended: watch::Sender::new(false) });
        tokio::spawn(sort(Arc::downgrade(&route), inbound, owner));
        route
    }

    /// The upstream's own session id.
    pub fn upstream_session(&self) -> Option<String> {
        self.link.session()
    }

    /// Forwards a request of the client with `edits` made in it (besides its id and progress token).
    pub async fn request(
        &self,
        permit: Permit,
        message: &Message,
        mut edits: Vec<(Span, String)>,
        headers: Forwarded,
        interim: Option<Interim>,
    ) -> Result<Flight, UpstreamError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        edits.extend(claim::cut(message));
        if let Some(span) = message.id_span() {
            edits.push((span, id.to_string()));
        }
        if let Some((span, _)) = message.progress_token() {
            edits.push((span, id.to_string()));
        }
        let waiting = Waiting { answer: oneshot::channel().0, interim };
        self.dispatch(permit, id, message.method(), message.spliced(&edits), headers, waiting).await
    }

    /// Sends a request of the gate's own.
    pub async fn own_request(
        &self,
        permit: Permit,
        method: &str,
        params: &serde_json::Value,
        headers: Forwarded,
    ) -> Result<Flight, UpstreamError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let bytes = compose::request(&id.to_string(), method, Some(params));
        let waiting = Waiting { answer: oneshot::channel().0, interim: None };
        self.dispatch(permit, id, method, bytes, headers, waiting).await
    }

    async fn dispatch(
        &self,
        permit: Permit,
        id: u64,
        method: &str,
        bytes: Bytes,
        headers: Forwarded,
        mut waiting: Waiting,
    ) -> Result<Flight, UpstreamError> {
        let (tx, answer) = oneshot::channel();
        waiting.answer = tx;
        self.waiting.insert(id, waiting);
        let outgoing = Outgoing {
            bytes,
            id: Some(id),
            method: method.to_owned(),
            name: headers.name,
            param_headers: headers.params,
            version: headers.version,
        };
        match self.link.send(permit, outgoing).await {
            Ok(()) => Ok(Flight { id, answer }),
            Err(error) => {
                self.waiting.remove(&id);
                Err(error)
            }
        }
    }

    /// Sends a notification, or an answer to a request of the server.
    pub async fn tell(&self, permit: Permit, method: &str, bytes: Bytes) -> Result<(), UpstreamError> {
        let outgoing = Outgoing {
            bytes,
            id: None,
            method: method.to_owned(),
            name: None,
            param_headers: Vec::new(),
            version: None,
        };
        self.link.send(permit, outgoing).await
    }

    /// Tells the far side to stop working on a request; its answer is no longer waited for.
    pub async fn stop(&self, id: u64, reason: &str) {
        self.waiting.remove(&id);
        self.link.stop(id, reason).await;
    }

    /// Ends the conversation.
    pub async fn close(&self) {
        self.link.close().await;
    }

    /// Whether the link has ended; a closed channel says so too.
    pub fn ended(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    fn fail(&self, id: u64, error: UpstreamError) {
        if let Some((_, waiting)) = self.waiting.remove(&id) {
            // A client that no longer waits is no fault.
            let _ = waiting.answer.send(Err(error));
        }
    }

    fn interim(&self, id: u64) -> Option<mpsc::Sender<Bytes>> {
        self.waiting.get(&id).and_then(|w| Some(w.interim.as_ref()?.to.clone()))
    }

    /// The exchange that is meant where the transport does not tell: the only one there is.
    fn only_interim(&self) -> Option<mpsc::Sender<Bytes>> {
        let mut open = self.waiting.iter().filter_map(|w| Some(w.interim.as_ref()?.to.clone()));
        match (open.next(), open.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }
}

/// The modern protocol's headers for a forwarded request.
#[derive(Clone, Debug, Default)]
pub struct Forwarded {
    /// `Mcp-Name`.
    pub name: Option<String>,
    /// `Mcp-Param-*`.
    pub params: Vec<(String, String)>,
    /// The request's protocol version.
    pub version: Option<String>,
}

impl Forwarded {
    /// The headers that belong to a client's request, but for `Mcp-Param-*`; none for a legacy one.
    pub fn of(message: &Message) -> Self {
        let version = message.meta_version();
        let key = match message.method() {
            "resources/read" => "uri",
            method if method.starts_with("tasks/") => "taskId",
            _ => "name",
        };
        let name = version.as_ref().and_then(|_| message.string_at(&["params", key]));
        Self { name, params: Vec::new(), version }
    }
}

async fn sort<O: Unrouted>(route: Weak<Route>, mut inbound: mpsc::Receiver<Inbound>, owner: Weak<O>) {
    while let Some(event) = inbound.recv().await {
        let (Some(route), Some(owner)) = (route.upgrade(), owner.upgrade()) else { break };
        match event {
            Inbound::Message { message, related } => match message.kind() {
                Kind::Response => answer(&route, message),
                Kind::Notification | Kind::Request => interim(&route, &owner, message, related).await,
            },
            Inbound::Failed { id, error } => route.fail(id, error),
            Inbound::Closed(error) => {
                owner.closed(&route, &error);
                close(&route, &error);
                return;
            }
        }
    }
    let error = UpstreamError { fault: Fault::Died, what: "the connection ended".to_owned(), may_have_run: true };
    let Some(route) = route.upgrade() else { return };
    if let Some(owner) = owner.upgrade() {
        owner.closed(&route, &error);
    }
    close(&route, &error);
}

fn close(route: &Route, error: &UpstreamError) {
    route.ended.send_replace(true);
    let open: Vec<u64> = route.waiting.iter().map(|w| *w.key()).collect();
    for id in open {
        route.fail(id, error.clone());
    }
}

/// An answer nobody asked for is dropped: it can only be the upstream's fault.
fn answer(route: &Route, message: Message) {
    let id = message.id().and_then(|raw| raw.parse::<u64>().ok());
    match id.and_then(|id| route.waiting.remove(&id)) {
        Some((_, waiting)) => {
            // A client that no longer waits is no fault.
            let _ = waiting.answer.send(Ok(message));
        }
        None => {
            tracing::warn!(id = message.id(), "the upstream answered a request that nobody made or that was stopped")
        }
    }
}

/// A notification or a request of the server: to the exchange it belongs to, else to the session.
async fn interim<O: Unrouted>(route: &Arc<Route>, owner: &Arc<O>, message: Message, related: Option<u64>) {
    if message.method() == "notifications/progress" {
        // A token that names no open request belongs to one that has ended or was stopped.
        let Some((span, raw)) = message.progress_token() else { return };
        let Some(id) = raw.parse::<u64>().ok() else { return };
        let found = route.waiting.get(&id).and_then(|w| w.interim.clone());
        if let Some(Interim { to, token: Some(token), .. }) = found {
            let _ = to.send(message.spliced(&[(span, token)])).await;
        }
        return;
    }
    if let Some((span, raw)) = message.at(&["params", "_meta", "io.modelcontextprotocol/subscriptionId"]) {
        let id = raw.parse::<u64>().ok().or(related);
        let found = id.and_then(|id| route.waiting.get(&id).and_then(|w| w.interim.clone()));
        if let Some(Interim { to, id, .. }) = found {
            let _ = to.send(message.spliced(&[(span, id)])).await;
        }
        return;
    }
    let exchange = match related {
        Some(id) => route.interim(id),
        None => route.only_interim(),
    };
    owner.unrouted(route, message, exchange).await;
}

/// A bounded channel for what comes before an answer.
pub fn interim_channel() -> (mpsc::Sender<Bytes>, mpsc::Receiver<Bytes>) {
    mpsc::channel(CHANNEL)
}

//! The client of one request: what it is told, and when it stops waiting.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::link::Era;
use super::session::{Reply, ToClient};
use crate::message::compose;
use crate::secret::TokenHash;

/// What a cancel by a closed stream is called.
pub const CLOSED: &str = "the client closed its stream";

/// How long a client may leave what it is told unread before the rest of it is dropped.
const PATIENCE: Duration = Duration::from_secs(2);

/// The client of one request, as the pipeline sees it.
#[derive(Clone)]
pub struct Client {
    /// The raw id it waits under.
    pub id: String,
    /// The raw progress token it sent.
    pub token: Option<String>,
    /// The credential that its request came with.
    pub credential: Option<TokenHash>,
    tx: mpsc::Sender<ToClient>,
    cancelled: watch::Receiver<Option<String>>,
    absent: bool,
    era: Era,
}

impl Client {
    /// A client that waits on `tx` and may cancel.
    pub fn new(
        era: Era,
        id: String,
        token: Option<String>,
        tx: mpsc::Sender<ToClient>,
        cancelled: watch::Receiver<Option<String>>,
        credential: Option<TokenHash>,
    ) -> Self {
        Self { id, token, credential, tx, cancelled, absent: false, era }
    }

    /// Nobody: for a call that runs although its client is gone.
    pub fn nobody() -> Self {
        let (tx, cancelled) = (mpsc::channel(1).0, watch::channel(None).1);
        Self { id: "null".to_owned(), token: None, credential: None, tx, cancelled, absent: true, era: Era::Legacy }
    }

    /// Whether this is [`Client::nobody`].
    pub fn is_nobody(&self) -> bool {
        self.absent
    }

    /// When its stream closes; nobody never goes.
    pub async fn gone(&self) {
        match self.absent {
            true => std::future::pending().await,
            false => self.tx.closed().await,
        }
    }

    /// When it cancels the request, with its reason.
    pub async fn cancel(&self) -> String {
        let mut cancelled = self.cancelled.clone();
        let reason = cancelled.wait_for(Option::is_some).await.ok().and_then(|reason| reason.clone());
        match reason {
            Some(reason) => reason,
            // The session has ended: being gone is another matter.
            None => std::future::pending().await,
        }
    }

    /// Whether it has cancelled the request.
    pub fn has_cancelled(&self) -> bool {
        self.cancelled.borrow().is_some()
    }

    /// Tells it something; whether there was room for it in time. A client that is gone hears nothing, and one that
    /// keeps its stream open without reading it must not keep a call from its end.
    pub async fn tell(&self, what: ToClient) -> bool {
        timeout(PATIENCE, self.tx.send(what)).await.is_ok_and(|told| told.is_ok())
    }

    /// Whether it wants no more of its request: it cancelled, or is gone where `gone` says that this is the same.
    pub fn has_left(&self, gone: bool) -> Option<String> {
        let cancelled = self.cancelled.borrow().clone();
        cancelled.or_else(|| (gone && !self.absent && self.tx.is_closed()).then(|| CLOSED.to_owned()))
    }

    /// The answer, if it is still there; a client that cancelled is owed none.
    pub async fn answer(&self, reply: Reply) {
        let _ = self.done(reply).await;
    }

    /// The answer, as [`Client::answer`]; whether the client was there to take it.
    pub async fn done(&self, mut reply: Reply) -> bool {
        // In a session an error is an answer like any other; a 404 would say that the session is gone.
        if self.era == Era::Legacy && matches!(reply.status, 400 | 404) {
            reply.status = 200;
        }
        !self.has_cancelled() && self.tx.send(ToClient::Done(reply)).await.is_ok()
    }
}

/// A progress notification of the gateway's own, for a client that sent a token. The steps are small, so that the
/// upstream's own progress still rises when the call is released.
pub fn progress(token: &str, step: u32, text: &str) -> Bytes {
    let token: serde_json::Value = serde_json::from_str(token).unwrap_or_default();
    compose::notification(
        "notifications/progress",
        Some(&json!({"progressToken": token, "progress": f64::from(step) / 1000.0, "message": text})),
    )
}

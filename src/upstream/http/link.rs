//! The gate's end of a conversation over HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::endpoint::{CONNECT, Endpoint};
use super::headers::{self, Conversation};
use super::listening::listen;
use super::reply::{self, Request};
use crate::gate::{Era, Fault, Inbound, Link, Opening, Outgoing, Permit, UpstreamError};
use crate::upstream::{cancelled, lock, may_have_run};

/// How long an upstream may take to accept a notification or an answer.
const ACCEPT: Duration = Duration::from_secs(30);
/// How long the end of a session, or of a request, may take to be told.
const FAREWELL: Duration = Duration::from_secs(2);

/// One legacy session, or one agent's stateless requests.
pub(super) struct HttpLink {
    shared: Arc<Shared>,
    listening: Mutex<Option<AbortHandle>>,
}

/// What the link has in common with the tasks that read answers.
pub(super) struct Shared {
    pub endpoint: Arc<Endpoint>,
    pub era: Era,
    pub inbound: mpsc::Sender<Inbound>,
    conversation: Mutex<Conversation>,
    open: Mutex<HashMap<u64, Open>>,
}

/// A request that is not answered.
struct Open {
    /// Whether it may be cancelled: `initialize` may not (MCP 2025-11-25, "Cancellation").
    may_be_cancelled: bool,
    /// Reads the answer, once the request is on its way.
    task: Option<AbortHandle>,
}

impl Shared {
    /// Session and version as they stand.
    pub fn conversation(&self) -> Conversation {
        lock(&self.conversation).clone()
    }

    pub fn set_session(&self, session: String) {
        lock(&self.conversation).session = Some(session);
    }

    pub fn set_version(&self, version: String) {
        lock(&self.conversation).version = Some(version);
    }

    /// Takes a request off the list; false if it is not on it, because it was stopped.
    pub fn answered(&self, id: u64) -> bool {
        lock(&self.open).remove(&id).is_some()
    }
}

impl HttpLink {
    pub fn open(endpoint: Arc<Endpoint>, opening: Opening) -> Self {
        let Opening { era, resume, version, inbound, .. } = opening;
        let resumed = resume.is_some();
        let conversation = Mutex::new(Conversation { session: resume, version });
        let shared = Shared { endpoint, era, inbound, conversation, open: Mutex::default() };
        let link = Self { shared: Arc::new(shared), listening: Mutex::default() };
        if resumed {
            link.listen();
        }
        link
    }

    fn listen(&self) {
        let task = tokio::spawn(listen(Arc::clone(&self.shared))).abort_handle();
        if let Some(before) = lock(&self.listening).replace(task) {
            before.abort();
        }
    }

    fn headers(&self, message: &Outgoing) -> HeaderMap {
        headers::of_post(self.shared.era, &lock(&self.shared.conversation), message)
    }

    /// Sends a request; what comes back is read by a task of its own.
    async fn request(&self, id: u64, message: Outgoing) -> Result<(), UpstreamError> {
        let shared = &self.shared;
        let headers = self.headers(&message);
        let request = Request {
            shared: Arc::clone(shared),
            id,
            session: headers.contains_key(headers::SESSION),
            is_initialize: message.method == "initialize",
        };
        let may_be_cancelled = !request.is_initialize;
        let sending = Sending::new(shared, id, may_be_cancelled);
        let (mut answering, mut on_its_way) = shared.endpoint.begin(Method::POST, headers, message.bytes);
        let early = tokio::select! {
            biased;
            answer = &mut answering => Some(answer),
            Ok(()) = &mut on_its_way => None,
            () = tokio::time::sleep(CONNECT) => return Err(shared.endpoint.too_slow()),
        };
        if let Some(Err(error)) = &early {
            return Err(shared.endpoint.broken(error, on_its_way.try_recv().is_ok()));
        }
        let reading = request.follow(async move {
            match early {
                Some(answer) => answer,
                None => answering.await,
            }
        });
        if !sending.on_its_way(reading) && may_be_cancelled {
            self.cancel(id, "stopped while it was sent").await;
        }
        Ok(())
    }

    /// Sends a notification or an answer, and waits until it is accepted, so that what follows cannot overtake it.
    async fn tell(&self, message: Outgoing, patience: Duration) -> Result<(), UpstreamError> {
        let endpoint = &self.shared.endpoint;
        let headers = self.headers(&message);
        let session = headers.contains_key(headers::SESSION);
        let (answering, mut on_its_way) = endpoint.begin(Method::POST, headers, message.bytes);
        let Ok(answer) = timeout(patience, answering).await else {
            let what = format!("upstream `{}` did not accept a message within {} s", endpoint.id, patience.as_secs());
            return Err(may_have_run(Fault::Timeout, what));
        };
        let response = answer.map_err(|error| endpoint.broken(&error, on_its_way.try_recv().is_ok()))?;
        if response.status().is_success() { Ok(()) } else { Err(reply::refused(endpoint, response.status(), session)) }
    }

    /// Tells a legacy upstream to stop; hanging up is the whole cancellation in the modern protocol.
    async fn cancel(&self, id: u64, reason: &str) {
        if self.shared.era == Era::Legacy {
            let message = Outgoing {
                bytes: cancelled(id, reason),
                id: None,
                method: "notifications/cancelled".into(),
                name: None,
                param_headers: Vec::new(),
                version: None,
            };
            // An upstream that does not hear it goes on for nobody; its answer is dropped.
            let _unheard = self.tell(message, FAREWELL).await;
        }
    }

    /// Stops all that is read.
    fn abort(&self) {
        let open = std::mem::take(&mut *lock(&self.shared.open));
        let listening = lock(&self.listening).take();
        open.into_values().filter_map(|open| open.task).chain(listening).for_each(|task| task.abort());
    }
}

impl Link for HttpLink {
    fn send(&self, _permit: Permit, message: Outgoing) -> BoxFuture<'_, Result<(), UpstreamError>> {
        Box::pin(async move {
            if let Some(id) = message.id {
                return self.request(id, message).await;
            }
            let begins = self.shared.era == Era::Legacy && message.method == "notifications/initialized";
            self.tell(message, ACCEPT).await?;
            if begins {
                self.listen();
            }
            Ok(())
        })
    }

    fn stop(&self, id: u64, reason: &str) -> BoxFuture<'_, ()> {
        let open = lock(&self.shared.open).remove(&id);
        // One that is not on its way yet is cancelled when it is, so that the two do not overtake each other.
        let Some(Open { may_be_cancelled, task: Some(task) }) = open else {
            return Box::pin(std::future::ready(()));
        };
        task.abort();
        let reason = reason.to_owned();
        Box::pin(async move {
            if may_be_cancelled {
                self.cancel(id, &reason).await;
            }
        })
    }

    fn session(&self) -> Option<String> {
        self.shared.conversation().session
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.abort();
            let conversation = std::mem::take(&mut *lock(&self.shared.conversation));
            if conversation.session.is_some() && self.shared.era == Era::Legacy {
                let headers = headers::of_session(&conversation);
                let (answering, _) = self.shared.endpoint.begin(Method::DELETE, headers, Bytes::new());
                // Best effort: a server may answer 405, or be gone.
                let _unheard = timeout(FAREWELL, answering).await;
            }
        })
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.abort();
    }
}

/// A request that is being sent; taken off the list again unless it gets on its way.
struct Sending<'a> {
    shared: &'a Shared,
    id: u64,
    done: bool,
}

impl<'a> Sending<'a> {
    fn new(shared: &'a Shared, id: u64, may_be_cancelled: bool) -> Self {
        lock(&shared.open).insert(id, Open { may_be_cancelled, task: None });
        Self { shared, id, done: false }
    }

    /// Starts reading; false if the request was stopped meanwhile.
    fn on_its_way(mut self, reading: impl Future<Output = ()> + Send + 'static) -> bool {
        self.done = true;
        match lock(&self.shared.open).get_mut(&self.id) {
            Some(open) => {
                open.task = Some(tokio::spawn(reading).abort_handle());
                true
            }
            None => false,
        }
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.shared.answered(self.id);
        }
    }
}

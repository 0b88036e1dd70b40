//! Reading the answer to one request: JSON, a stream of events, or a refusal.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Error;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::headers::SESSION;
use super::link::Shared;
use super::stream::{self, Events, Position, Stopped, content_type, is_events};
use crate::gate::{Era, Fault, Inbound, UpstreamError};
use crate::message::{Kind, Message, compose};
use crate::upstream::{LOG, MAX_MESSAGE, may_have_run, not_run};

/// The largest body of a refusal that is read, in bytes.
const MAX_REFUSAL: usize = 1 << 20;
/// How many tries in a row a broken stream is taken up again.
const TRIES: u32 = 5;
/// How long a stream may take to end after the answer, so that its connection can be kept.
const LINGER: Duration = Duration::from_secs(1);

/// One request on its way.
pub(super) struct Request {
    pub shared: Arc<Shared>,
    pub id: u64,
    /// Whether it named a session.
    pub session: bool,
    pub is_initialize: bool,
}

impl Request {
    /// Passes on all that comes back; a failure ends this request and no other.
    pub async fn follow(self, answering: impl Future<Output = Result<Response<Incoming>, Error>>) {
        let Err(error) = self.read(answering).await else { return };
        if self.shared.answered(self.id) {
            let upstream = self.shared.endpoint.id.as_str();
            tracing::warn!(target: LOG, upstream, fault = "upstream", may_have_run = error.may_have_run, "{error}");
            // Nobody to tell is no error.
            let _unheard = self.shared.inbound.send(Inbound::Failed { id: self.id, error }).await;
        }
    }

    async fn read(
        &self,
        answering: impl Future<Output = Result<Response<Incoming>, Error>>,
    ) -> Result<(), UpstreamError> {
        let endpoint = &self.shared.endpoint;
        let response = answering.await.map_err(|error| endpoint.broken(&error, true))?;
        let status = response.status();
        endpoint.set_up(!status.is_server_error());
        if !status.is_success() {
            return self.refusal(response).await;
        }
        if self.is_initialize
            && self.shared.era == Era::Legacy
            && let Some(session) = response.headers().get(SESSION).and_then(|value| value.to_str().ok())
        {
            self.shared.set_session(session.to_owned());
        }
        if is_events(&response) {
            return self.events(Events::new(response.into_body())).await;
        }
        match content_type(&response) {
            "" if status != StatusCode::OK => Err(self.garbage("took the request without an answer")),
            "" => self.json(response).await,
            kind if kind.eq_ignore_ascii_case("application/json") => self.json(response).await,
            kind => Err(self.garbage(&format!("answered with `{}` instead of JSON", kind.escape_debug()))),
        }
    }

    async fn json(&self, response: Response<Incoming>) -> Result<(), UpstreamError> {
        let message = self.framed(self.body(response, MAX_MESSAGE).await?)?;
        if message.kind() != Kind::Response {
            return Err(self.garbage("answered with a message that is no answer"));
        }
        self.settle(message).await
    }

    /// A status that is no success. A JSON-RPC error in it is passed on as it is.
    async fn refusal(&self, response: Response<Incoming>) -> Result<(), UpstreamError> {
        let status = response.status();
        let gone = status == StatusCode::NOT_FOUND && self.session;
        let refused = refused(&self.shared.endpoint, status, self.session);
        if status.is_redirection() {
            let target = response.headers().get(header::LOCATION);
            let upstream = self.shared.endpoint.id.as_str();
            tracing::warn!(target: LOG, upstream, ?target, "is redirected, which is not followed");
        }
        if gone || !(status.is_client_error() || status.is_server_error()) {
            return Err(refused);
        }
        let body = self.body(response, MAX_REFUSAL).await.map_err(|_| refused.clone())?;
        let message = Message::framed(body).ok().filter(|message| message.error().is_some()).ok_or(refused)?;
        if status == StatusCode::BAD_REQUEST && self.session && disowns_session(&message) {
            return Err(session_gone(&self.shared.endpoint));
        }
        self.settle(message).await
    }

    /// Reads a stream until the answer comes. One that breaks is taken up again where the server numbers its events.
    async fn events(&self, mut events: Events) -> Result<(), UpstreamError> {
        let mut position = Position::default();
        loop {
            match events.next().await {
                Ok(event) => {
                    position.note(&event);
                    if let Some(data) = stream::message_of(event)
                        && self.pass(data).await?
                    {
                        let _unfinished = timeout(LINGER, events.finish()).await;
                        return Ok(());
                    }
                }
                Err(Stopped::TooLong) => return Err(self.garbage("sent an event that is too long")),
                Err(Stopped::Ended) => events = self.again(&mut position).await?,
            }
        }
    }

    async fn again(&self, position: &mut Position) -> Result<Events, UpstreamError> {
        let endpoint = &self.shared.endpoint;
        let resumable = self.shared.era == Era::Legacy && position.last_event.is_some();
        while resumable && position.failures < TRIES {
            position.wait().await;
            match stream::get(&self.shared, position).await {
                Ok(events) => return Ok(events),
                Err(Some(status)) if status.is_client_error() => break,
                Err(_) => {}
            }
        }
        endpoint.set_up(false);
        Err(may_have_run(Fault::Died, format!("upstream `{}` ended its stream without an answer", endpoint.id)))
    }

    /// Passes on a message; true if it is the answer.
    async fn pass(&self, data: Bytes) -> Result<bool, UpstreamError> {
        let message = self.framed(data)?;
        if message.kind() == Kind::Response {
            return self.settle(message).await.map(|()| true);
        }
        // Nobody to tell is no error.
        let _unheard = self.shared.inbound.send(Inbound::Message { message, related: Some(self.id) }).await;
        Ok(false)
    }

    /// Passes on the answer.
    async fn settle(&self, message: Message) -> Result<(), UpstreamError> {
        let message = self.answer(message).ok_or_else(|| self.garbage("answered under the wrong id"))?;
        if self.is_initialize
            && let Some(version) = message.string_at(&["result", "protocolVersion"])
        {
            self.shared.set_version(version);
        }
        if self.shared.answered(self.id) {
            // Nobody to tell is no error.
            let _unheard = self.shared.inbound.send(Inbound::Message { message, related: Some(self.id) }).await;
        }
        Ok(())
    }

    fn framed(&self, data: Bytes) -> Result<Message, UpstreamError> {
        Message::framed(data).map_err(|error| self.garbage(&format!("sent no JSON-RPC ({error})")))
    }

    /// The answer to this request. An error under no id is one too, since only this request can be meant; it is given
    /// ours.
    fn answer(&self, message: Message) -> Option<Message> {
        let id = self.id.to_string();
        match message.id() {
            Some(given) => (given == id).then_some(message),
            None => Message::framed(compose::error_raw(&id, message.error()?)).ok(),
        }
    }

    async fn body(&self, response: Response<Incoming>, max: usize) -> Result<Bytes, UpstreamError> {
        match Limited::new(response.into_body(), max).collect().await {
            Ok(body) => Ok(body.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(self.garbage(&format!("answered with more than {max} bytes")))
            }
            Err(_) => {
                let endpoint = &self.shared.endpoint;
                endpoint.set_up(false);
                Err(may_have_run(Fault::Died, format!("upstream `{}` broke off in its answer", endpoint.id)))
            }
        }
    }

    fn garbage(&self, what: &str) -> UpstreamError {
        may_have_run(Fault::Garbage, format!("upstream `{}` {what}", self.shared.endpoint.id))
    }
}

/// Names a status that carries no answer; `session`: whether the request named one.
pub(super) fn refused(endpoint: &Endpoint, status: StatusCode, session: bool) -> UpstreamError {
    let (id, code) = (&endpoint.id, status.as_u16());
    if status == StatusCode::NOT_FOUND && session {
        return session_gone(endpoint);
    }
    let hint = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; see the `headers` configured for it",
        _ if status.is_redirection() => ", a redirect, which is not followed; set `url` to the final address",
        _ => "",
    };
    let what = format!("upstream `{id}` answered HTTP {code}{hint}");
    let turned_away = status.is_redirection() || status.is_client_error() && status != StatusCode::REQUEST_TIMEOUT;
    UpstreamError { fault: Fault::Status(code), what, may_have_run: !turned_away }
}

/// Whether an error says that the session is not known. Servers after the official TypeScript examples answer 400 and
/// "No valid session ID provided" under no id, where the specification wants 404.
fn disowns_session(message: &Message) -> bool {
    let what = message.string_at(&["error", "message"]).unwrap_or_default().to_ascii_lowercase();
    message.id().is_none() && what.contains("session")
}

fn session_gone(endpoint: &Endpoint) -> UpstreamError {
    not_run(Fault::SessionGone, format!("upstream `{}` has ended the session; open a new one", endpoint.id))
}

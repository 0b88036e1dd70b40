//! MCP over HTTP: `/mcp/{upstream}`, the legacy Streamable HTTP and the stateless one on the same endpoint.

mod answer;
mod body;
mod headers;
mod refused;
mod serve;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Extension, Router};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::{era, strict};
use crate::clock::Clock;
use crate::gate::{Conversation, Gate, Life};
use crate::identity::{self, Agent};
use crate::message::{Kind, Limits, Message};
use crate::secret::TokenHash;
use answer::PACE;
use headers::Accept;
use refused::Refused;
use serve::Connection;

/// Serves agents on this listener until `shutdown` is true or its sender is gone; then open answers get a few seconds.
///
/// # Errors
/// None today: a connection that cannot be accepted is logged, and the listener goes on.
pub async fn serve(listener: TcpListener, gate: Arc<Gate>, shutdown: watch::Receiver<bool>) -> io::Result<()> {
    serve::serve(listener, router(gate), shutdown).await
}

fn router(gate: Arc<Gate>) -> Router {
    Router::new()
        .route("/mcp/{upstream}", post(posted).get(got).head(no_head).delete(deleted))
        .route("/mcp", post(posted).get(got).head(no_head).delete(deleted))
        .fallback(elsewhere)
        .with_state(gate)
}

async fn posted(client: Client, body: Body) -> Response {
    let answer = async {
        if !headers::is_json(&client.headers) {
            let what = "send the message as `Content-Type: application/json`".to_owned();
            return Err(Refused::Problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, what));
        }
        let max_bytes = client.gate.config().mcp.max_body;
        let bytes = body::read(body, max_bytes).await?;
        let message = strict(bytes, Limits { max_bytes, ..Limits::default() }).await?;
        headers::agree(&client.headers, &message).map_err(|what| era::header_mismatch(&message, &what))?;
        match era::is_modern(&message) {
            true => client.modern(message).await,
            false => client.legacy(message).await,
        }
    };
    answer.await.unwrap_or_else(Refused::into_response)
}

async fn got(client: Client) -> Response {
    let answer = async {
        let session = client.named_session(Method::GET).await?;
        if !headers::accept(&client.headers).stream {
            let what = "only `Accept: text/event-stream` can be answered here".to_owned();
            return Err(Refused::Problem(StatusCode::NOT_ACCEPTABLE, what));
        }
        Ok(answer::listening(session.listen(), client.connection.closing.clone(), PACE))
    };
    answer.await.unwrap_or_else(Refused::into_response)
}

async fn deleted(client: Client) -> Response {
    let answer = async {
        let session = client.named_session(Method::DELETE).await?;
        finish(async move { session.end().await }).await;
        Ok(answer::status(StatusCode::NO_CONTENT))
    };
    answer.await.unwrap_or_else(Refused::into_response)
}

/// A HEAD would otherwise be served as a GET, and take the session's stream.
async fn no_head() -> Response {
    answer::status(StatusCode::METHOD_NOT_ALLOWED)
}

async fn elsewhere() -> Response {
    Refused::Problem(StatusCode::NOT_FOUND, "MCP is spoken at /mcp (all upstreams) and /mcp/{upstream}".to_owned())
        .into_response()
}

/// Who calls; refused are other hosts, other pages and unknown credentials.
fn who(gate: &Gate, connection: &Connection, uri: &Uri, headers: &HeaderMap) -> Result<Arc<Agent>, Refused> {
    let bound = gate.config().mcp.address.ip();
    if !headers::host_is_ours(headers, uri, bound) {
        let what = "this listener is on loopback: call it by localhost or its address".to_owned();
        return Err(Refused::Problem(StatusCode::FORBIDDEN, what));
    }
    if !headers::origin_is_ours(headers, bound) {
        return Err(Refused::Problem(StatusCode::FORBIDDEN, "pages of this origin may not call".to_owned()));
    }
    let bearer = headers::bearer(headers).map_err(|()| Refused::Unauthorized(identity::Refused::Unknown))?;
    gate.directory()
        .agent(bearer, connection.peer.ip().to_canonical().is_loopback(), Clock::system().now())
        .map_err(Refused::Unauthorized)
}

/// Where to go instead.
fn addresses(gate: &Gate) -> String {
    let config = gate.config();
    let all: Vec<String> = config.upstreams.keys().map(|id| format!("/mcp/{id}")).collect();
    if all.is_empty() { "no upstream is configured".to_owned() } else { format!("use {}", all.join(" or ")) }
}

/// An agent that was let in at an upstream, with the headers of one request.
struct Client {
    gate: Arc<Gate>,
    agent: Arc<Agent>,
    /// None: the address of all.
    upstream: Option<String>,
    headers: HeaderMap,
    connection: Connection,
}

impl FromRequestParts<Arc<Gate>> for Client {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, gate: &Arc<Gate>) -> Result<Self, Response> {
        let upstream = match parts.uri.path() {
            "/mcp" => None,
            _ => {
                let path = Path::<String>::from_request_parts(parts, gate).await;
                Some(path.map_err(|error| error.into_response())?.0)
            }
        };
        let connection = Extension::<Connection>::from_request_parts(parts, gate).await;
        let Extension(connection) = connection.map_err(|error| error.into_response())?;
        let agent = who(gate, &connection, &parts.uri, &parts.headers).map_err(Refused::into_response)?;
        if let Some(unknown) = upstream.as_ref().filter(|upstream| !gate.has_upstream(upstream)) {
            let what = format!("there is no upstream {unknown:?}: {}", addresses(gate));
            return Err(Refused::Problem(StatusCode::NOT_FOUND, what).into_response());
        }
        let headers = std::mem::take(&mut parts.headers);
        Ok(Self { gate: Arc::clone(gate), agent, upstream, headers, connection })
    }
}

impl Client {
    /// MCP 2026-07-28: stateless.
    async fn modern(&self, message: Message) -> Result<Response, Refused> {
        era::supported(&message)?;
        let mismatch = |what: String| era::header_mismatch(&message, &what);
        let request = message.kind() == Kind::Request;
        if request {
            headers::complete(&self.headers, &message).map_err(mismatch)?;
        }
        let params = headers::params(&self.headers).map_err(mismatch)?;
        era::capable(&message)?;
        if !request {
            // There are none in this version: a closed stream is the cancel, and an id alone would not say whose.
            return Ok(answer::accepted());
        }
        let session =
            self.gate.stateless_at(&self.agent.config.name, self.upstream.as_deref()).ok_or_else(|| self.gone())?;
        Ok(answer::exchange(session.request(message, Some(params), self.credential()), self.accept(), PACE).await)
    }

    /// Up to MCP 2025-11-25: by session.
    async fn legacy(&self, message: Message) -> Result<Response, Refused> {
        let misplaced = |what: &str| Refused::from(era::misplaced(&message, what));
        let version = headers::one(&self.headers, headers::VERSION).map_err(|what| misplaced(&what))?;
        let id = headers::one(&self.headers, headers::SESSION).map_err(|what| misplaced(&what))?;
        if version == Some(era::MODERN) && message.kind() == Kind::Request {
            return Err(era::missing_meta(&message).into());
        }
        if version.is_some_and(|version| !era::LEGACY.contains(&version)) {
            return Err(misplaced("the header MCP-Protocol-Version names a version that is not supported"));
        }
        if message.kind() == Kind::Request && message.method() == "initialize" {
            return match id {
                Some(_) => Err(misplaced("this session is initialized already; begin another without Mcp-Session-Id")),
                None => self.initialize(message).await,
            };
        }
        let Some(id) = id else {
            return Err(misplaced("Mcp-Session-Id is missing: send `initialize` first"));
        };
        let session = self.session(id).await?;
        match message.kind() {
            Kind::Request => {
                Ok(answer::exchange(session.request(message, None, self.credential()), self.accept(), PACE).await)
            }
            Kind::Notification => {
                finish(async move { session.notify(message).await }).await;
                Ok(answer::accepted())
            }
            Kind::Response => {
                finish(async move {
                    if !session.respond(message).await {
                        tracing::info!(fault = "client", "an answer to no request was dropped");
                    }
                })
                .await;
                Ok(answer::accepted())
            }
        }
    }

    async fn initialize(&self, message: Message) -> Result<Response, Refused> {
        let begun = self.gate.begin_at(&self.agent.config.name, self.upstream.as_deref(), message, Life::Stored).await;
        let (session, reply) = begun.map_err(Refused::ByGate)?;
        let mut response = answer::finished(reply, self.accept());
        if let Some(id) = session.id().and_then(|id| HeaderValue::from_str(id).ok()) {
            response.headers_mut().insert(headers::SESSION, id);
        }
        Ok(response)
    }

    /// The session that a GET or DELETE names. Without one it is no legacy client: the modern protocol has POST only.
    async fn named_session(&self, method: Method) -> Result<Conversation, Refused> {
        let bad = |what: String| Refused::Problem(StatusCode::BAD_REQUEST, what);
        let version = headers::one(&self.headers, headers::VERSION).map_err(bad)?;
        let id = headers::one(&self.headers, headers::SESSION).map_err(bad)?;
        match (id, version) {
            (None, _) | (_, Some(era::MODERN)) => Err(Refused::Problem(
                StatusCode::METHOD_NOT_ALLOWED,
                format!("{method} needs the Mcp-Session-Id of a session that `initialize` began"),
            )),
            (Some(_), Some(version)) if !era::LEGACY.contains(&version) => {
                Err(bad("the header MCP-Protocol-Version names a version that is not supported".to_owned()))
            }
            (Some(id), _) => self.session(id).await,
        }
    }

    async fn session(&self, id: &str) -> Result<Conversation, Refused> {
        let session = self
            .gate
            .session_at(&self.agent.config.name, self.upstream.as_deref(), id)
            .await
            .map_err(Refused::ByGate)?;
        session.ok_or_else(|| {
            let what = "this session is unknown or has ended: send `initialize` again".to_owned();
            Refused::Problem(StatusCode::NOT_FOUND, what)
        })
    }

    /// The token that the request came with.
    fn credential(&self) -> Option<TokenHash> {
        headers::bearer(&self.headers).ok().flatten().map(TokenHash::of)
    }

    fn accept(&self) -> Accept {
        headers::accept(&self.headers)
    }

    fn gone(&self) -> Refused {
        Refused::Problem(StatusCode::NOT_FOUND, format!("there is no upstream {:?}", self.upstream))
    }
}

/// Does it to the end, also where the client goes away in the middle.
async fn finish(work: impl Future<Output = ()> + Send + 'static) {
    if let Err(error) = tokio::spawn(work).await {
        tracing::error!(fault = "gateway", %error, "a message was lost");
    }
}

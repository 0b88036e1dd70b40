//! How a listener says no: JSON-RPC errors for faults of the protocol, problem details (RFC 9457) for the rest.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::gate::Reply;
use crate::identity;
use crate::message::{Malformed, compose};

/// A request that the gate never sees.
#[derive(Debug)]
pub(super) enum Refused {
    /// A finished JSON-RPC error of this room.
    Reply(Reply),
    /// The gate's own word; it has logged whose fault it is.
    ByGate(Reply),
    /// No good credential.
    Unauthorized(identity::Refused),
    /// Neither a message nor a place for one.
    Problem(StatusCode, String),
}

impl From<Reply> for Refused {
    fn from(reply: Reply) -> Self {
        Self::Reply(reply)
    }
}

impl From<Malformed> for Refused {
    fn from(malformed: Malformed) -> Self {
        Self::Reply(Reply { bytes: malformed.reply(), status: 400 })
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Reply(reply) => {
                tracing::info!(fault = "client", status = reply.status, "a message was refused: {:?}", reply.bytes);
                json_reply(reply)
            }
            Self::ByGate(reply) => json_reply(reply),
            Self::Unauthorized(why) => {
                let (error, what) = match why {
                    identity::Refused::Missing => {
                        ("", "a bearer token is needed: make one with `portcullis token new`")
                    }
                    identity::Refused::Unknown => (" error=\"invalid_token\"", "the bearer token is not known"),
                    identity::Refused::Expired => (" error=\"invalid_token\"", "the bearer token has expired"),
                };
                tracing::info!(fault = "client", status = 401, "a client was refused: {what}");
                let body = compose::error("null", -32600, what, None);
                let mut response = json_reply(Reply { bytes: body, status: 401 });
                if let Ok(value) = HeaderValue::from_str(&format!("Bearer{error}")) {
                    response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
                }
                response
            }
            Self::Problem(status, detail) => {
                tracing::info!(fault = "client", status = status.as_u16(), "a request was refused: {detail}");
                let title = status.canonical_reason().unwrap_or("refused");
                let body = json!({"type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail});
                let mut response = typed(status, "application/problem+json", body.to_string().into());
                if status == StatusCode::METHOD_NOT_ALLOWED {
                    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
                }
                response
            }
        }
    }
}

/// A finished answer under its own status.
pub(super) fn json_reply(reply: Reply) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    typed(status, "application/json", reply.bytes)
}

fn typed(status: StatusCode, kind: &'static str, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

//! The stream on which a legacy server sends what belongs to no request (MCP 2025-11-25, "Listening for Messages").

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;

use super::link::Shared;
use super::stream::{self, Position, Stopped};
use crate::gate::Inbound;
use crate::message::{Kind, Message};
use crate::upstream::LOG;

/// A stream that lasted so long did not fail.
const LASTING: Duration = Duration::from_secs(10);

/// Keeps the stream open as long as the server offers it and the gate listens.
pub(super) async fn listen(shared: Arc<Shared>) {
    let upstream = shared.endpoint.id.as_str();
    let mut position = Position::default();
    loop {
        let started = Instant::now();
        match stream::get(&shared, &position).await {
            Ok(mut events) => {
                let stopped = loop {
                    match events.next().await {
                        Ok(event) => {
                            position.note(&event);
                            let Some(message) = stream::message_of(event).and_then(|data| unasked(upstream, data))
                            else {
                                continue;
                            };
                            if shared.inbound.send(Inbound::Message { message, related: None }).await.is_err() {
                                return;
                            }
                        }
                        Err(stopped) => break stopped,
                    }
                };
                if stopped == Stopped::TooLong {
                    let what = "sent an event that is too long: not listening any more";
                    tracing::warn!(target: LOG, upstream, fault = "upstream", "{what}");
                    return;
                }
                if started.elapsed() >= LASTING {
                    position.failures = 0;
                }
            }
            Err(Some(StatusCode::METHOD_NOT_ALLOWED)) => return,
            Err(Some(status)) if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                tracing::info!(target: LOG, upstream, status = status.as_u16(), "offers no stream to listen to");
                return;
            }
            Err(_) => {}
        }
        position.wait().await;
    }
}

/// A request or a notification of the server; answers belong on the stream of their request.
fn unasked(upstream: &str, data: bytes::Bytes) -> Option<Message> {
    match Message::framed(data) {
        Ok(message) if message.kind() != Kind::Response => Some(message),
        Ok(_) => {
            tracing::warn!(target: LOG, upstream, fault = "upstream", "answered on the listening stream: ignored");
            None
        }
        Err(malformed) => {
            tracing::warn!(target: LOG, upstream, fault = "upstream", "sent an event that is no message: {malformed}");
            None
        }
    }
}

//! Forwarding with a permit, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use super::Permit;
use super::call::Call;
use super::client::{CLOSED, Client};
use super::link::{Era, Fault, UpstreamError};
use super::reply::{self, Retry};
use super::route::{Forwarded, Interim, interim_channel};
use super::session::{Reply, Session, ToClient};
use super::tasks;
use crate::config::OnDisconnect;
use crate::message::{Message, Span};
use crate::record::{CallRecord, CallState};

/// How a forwarded request ended.
pub enum Ended {
    /// The upstream answered.
    Answered(Message),
    /// It, or the way to it, broke.
    Broke(UpstreamError),
    /// The client or an operator stopped it, or the client is gone where that means the same.
    Stopped(String),
    /// The client stopped it before anything was sent.
    Unsent(String),
}

/// Writes how a forwarded call ended into its record; a fault of the upstream's goes to the log.
pub fn settle(record: &mut CallRecord, ended: &Ended) {
    match ended {
        Ended::Answered(answer) => {
            record.state = CallState::Completed;
            record.tool_error = (record.method == "tools/call")
                .then(|| answer.error().is_some() || is_true(answer.at(&["result", "isError"])));
        }
        Ended::Broke(error) => {
            let (upstream, call) = (record.upstream.as_str(), record.id.as_str());
            tracing::warn!(
                upstream,
                call,
                fault = "upstream",
                may_have_run = error.may_have_run,
                "a call failed: {error}"
            );
            record.state = CallState::Failed;
            record.reason = Some(match error.fault {
                Fault::Timeout => "timeout".to_owned(),
                _ => "upstream".to_owned(),
            });
            record.detail = Some(error.to_string());
            record.may_have_run = error.may_have_run;
        }
        Ended::Stopped(why) => {
            record.state = CallState::Cancelled;
            record.detail = Some(why.clone());
            record.may_have_run = true;
        }
        Ended::Unsent(why) => {
            record.state = CallState::Cancelled;
            record.detail = Some(why.clone());
        }
    }
}

/// The client's answer to a call that was forwarded.
pub fn answer(call: &Call, ended: &Ended, id: &str) -> Reply {
    match ended {
        Ended::Answered(answer) => to_client(answer, id, Vec::new()),
        Ended::Broke(_) | Ended::Stopped(_) | Ended::Unsent(_) => {
            let (text, retry) = reply::ended_text(&call.record);
            let retry = if call.record.may_have_run { Retry::Never } else { retry };
            reply::refusal(call.session.era, id, &call.record, &text, retry)
        }
    }
}

/// An upstream's answer under the client's own id, with `edits` made in it.
pub fn to_client(answer: &Message, id: &str, mut edits: Vec<(Span, String)>) -> Reply {
    let code = answer.at(&["error", "code"]).and_then(|(_, raw)| raw.parse().ok());
    let not_found = code == Some(reply::METHOD_NOT_FOUND);
    edits.extend(answer.id_span().map(|span| (span, id.to_owned())));
    Reply { bytes: answer.spliced(&edits), status: if not_found { 404 } else { 200 } }
}

/// Forwards a request with its permit and waits for its end, passing on what comes before.
#[expect(clippy::too_many_arguments, reason = "the one place where everything about a run meets")]
pub async fn forward(
    session: &Arc<Session>,
    permit: Permit,
    message: &Message,
    edits: Vec<(Span, String)>,
    headers: Forwarded,
    client: &Client,
    within: Duration,
    stopped: impl Future<Output = String>,
) -> Ended {
    let (to, mut before) = interim_channel();
    let interim = Interim { to, id: client.id.clone(), token: client.token.clone() };
    let another = permit.again();
    let route = match session.route().await {
        Ok(route) => route,
        Err(error) => return Ended::Broke(error),
    };
    if let Some(why) = client.has_left(cancels_when_gone(session)) {
        return Ended::Unsent(why);
    }
    let sent = route.request(permit, message, edits.clone(), headers.clone(), Some(interim.clone())).await;
    let (mut route, mut flight) = match sent {
        Ok(flight) => (route, flight),
        Err(error) => return Ended::Broke(error),
    };
    let deadline = tokio::time::sleep(within.min(Duration::from_secs(365 * 86_400)));
    tokio::pin!(deadline, stopped);
    let (mut again, mut reads) = (true, true);
    let why = loop {
        tokio::select! {
            // Stops come first: an upstream that floods its client must not keep itself from being stopped.
            biased;
            reason = client.cancel() => break reason,
            reason = &mut stopped => break reason,
            () = client.gone(), if cancels_when_gone(session) => break CLOSED.to_owned(),
            () = &mut deadline => {
                route.stop(flight.id, "timed out").await;
                return Ended::Broke(UpstreamError {
                    fault: Fault::Timeout,
                    what: format!("no answer within {} s", within.as_secs()),
                    may_have_run: true,
                });
            }
            // What is not read is still taken: the others on this link come after it.
            Some(bytes) = before.recv() => reads = reads && client.tell(ToClient::Message(bytes)).await,
            answer = &mut flight.answer => match answer {
                Ok(Ok(answer)) => {
                    while reads && let Ok(bytes) = before.try_recv() {
                        reads = client.tell(ToClient::Message(bytes)).await;
                    }
                    if message.method() == "tools/call" {
                        tasks::learn(session, &answer).await;
                    }
                    return Ended::Answered(answer);
                }
                // The upstream did not know its session any more and so ran nothing: once more, in a new one.
                Ok(Err(error)) if error.fault == Fault::SessionGone && again => {
                    again = false;
                    session.lost();
                    let reopened = match session.route().await {
                        Ok(route) => route,
                        Err(error) => return Ended::Broke(error),
                    };
                    let sent = reopened
                        .request(another.again(), message, edits.clone(), headers.clone(), Some(interim.clone()))
                        .await;
                    (route, flight) = match sent {
                        Ok(flight) => (reopened, flight),
                        Err(error) => return Ended::Broke(error),
                    };
                }
                Ok(Err(error)) => return Ended::Broke(error),
                Err(_) => return Ended::Broke(UpstreamError {
                    fault: Fault::Died,
                    what: "the connection ended before the answer".to_owned(),
                    may_have_run: true,
                }),
            },
        }
    };
    route.stop(flight.id, &why).await;
    Ended::Stopped(why)
}

/// Whether a closed stream is a cancel (2026-07-28: it must be; before: it must not).
pub fn cancels_when_gone(session: &Session) -> bool {
    match session.executor.config.on_disconnect {
        OnDisconnect::Cancel => true,
        OnDisconnect::Keep => false,
        OnDisconnect::Auto => session.era == Era::Modern,
    }
}

fn is_true(at: Option<(Span, &str)>) -> bool {
    at.is_some_and(|(_, raw)| raw == "true")
}

//! Forwarding with a permit, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Permit;
use super::call::Call;
use super::client::{CLOSED, Client};
use super::judged::Target;
use super::link::{Era, Fault, UpstreamError};
use super::reply::{self, Retry};
use super::route::{Forwarded, Interim, Route, interim_channel};
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

/// The client's answer to a call that was forwarded, with a note for the model where there is one.
pub fn answer(call: &Call, ended: &Ended, id: &str, note: Option<&str>) -> Reply {
    match ended {
        Ended::Answered(answer) => {
            to_client(answer, id, note.and_then(|note| reply::noted(answer, note)).into_iter().collect())
        }
        Ended::Broke(_) | Ended::Stopped(_) | Ended::Unsent(_) => {
            let (mut text, retry) = reply::ended_text(&call.record);
            text.extend(note.into_iter().flat_map(|note| [" ", note]));
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

/// What is to be forwarded.
pub struct Run<'a> {
    /// In whose conversation.
    pub session: &'a Arc<Session>,
    /// The request.
    pub message: &'a Message,
    /// What it was judged as; none for what passes unjudged.
    pub target: Option<&'a Target>,
    /// What to change in its bytes.
    pub edits: Vec<(Span, String)>,
    /// `Mcp-*` headers for a modern upstream.
    pub headers: Forwarded,
    /// How long it may take.
    pub within: Duration,
    /// What to do where the upstream has forgotten the session that it was sent in.
    pub again: Again<'a>,
    /// What becomes of each message that comes before the answer.
    pub amend: Option<&'a (dyn Fn(Bytes) -> Bytes + Sync)>,
}

/// Whether a request is sent once more, in a new session, where the upstream answers that it does not know the session:
/// by the protocol it has run nothing then (MCP 2025-11-25, Streamable HTTP, "Session Management").
#[derive(Clone, Copy)]
pub enum Again<'a> {
    /// Yes: it is no call.
    Quietly,
    /// Yes, and the log says so of this call.
    Noted(&'a CallRecord),
    /// No: a human approved one run, and a server that is wrong about itself would make it two.
    Never,
}

impl Run<'_> {
    /// The link to send it on. A call of a tool goes only where the tool is still defined as it was judged.
    async fn route(&self) -> Result<Arc<Route>, UpstreamError> {
        let Some(Target::Tool { name, definition }) = self.target else { return self.session.route().await };
        match self.session.find_tool(name, self.message).await? {
            (route, Some(now)) if now.digest == definition.digest => Ok(route),
            _ => Err(UpstreamError {
                fault: Fault::Redefined,
                what: format!("the tool `{name}` was changed or withdrawn just before this call was sent; call again"),
                may_have_run: false,
            }),
        }
    }
}

/// Forwards a request with its permit and waits for its end, passing on what comes before.
pub async fn forward(permit: Permit, run: Run<'_>, client: &Client, stopped: impl Future<Output = String>) -> Ended {
    let Run { session, message, within, amend, .. } = run;
    let amended = |bytes| amend.map_or_else(|| Bytes::clone(&bytes), |amend| amend(bytes.clone()));
    let (to, mut before) = interim_channel();
    let interim = Interim { to, id: client.id.clone(), token: client.token.clone() };
    let another = permit.again();
    let route = match run.route().await {
        Ok(route) => route,
        Err(error) => return Ended::Broke(error),
    };
    if let Some(why) = client.has_left(cancels_when_gone(session)) {
        return Ended::Unsent(why);
    }
    let sent = route.request(permit, message, run.edits.clone(), run.headers.clone(), Some(interim.clone())).await;
    let (mut route, mut flight) = match sent {
        Ok(flight) => (route, flight),
        Err(error) => return Ended::Broke(error),
    };
    let deadline = tokio::time::sleep(within.min(Duration::from_secs(365 * 86_400)));
    tokio::pin!(deadline, stopped);
    let (mut first, mut reads) = (true, true);
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
            Some(bytes) = before.recv() => reads = reads && client.tell(ToClient::Message(amended(bytes))).await,
            answer = &mut flight.answer => match answer {
                Ok(Ok(answer)) => {
                    while reads && let Ok(bytes) = before.try_recv() {
                        reads = client.tell(ToClient::Message(amended(bytes))).await;
                    }
                    if message.method() == "tools/call" {
                        tasks::learn(session, &answer).await;
                    }
                    return Ended::Answered(answer);
                }
                Ok(Err(error)) if error.fault == Fault::SessionGone && first => {
                    first = false;
                    session.lost(&route);
                    if let Again::Never = run.again {
                        return Ended::Broke(UpstreamError { may_have_run: true, ..error });
                    }
                    let reopened = match run.route().await {
                        Ok(route) => route,
                        Err(error) => return Ended::Broke(error),
                    };
                    if let Again::Noted(call) = run.again
                        && let Err(what) = session.gate.sends_again(call, &error)
                    {
                        return Ended::Broke(UpstreamError { fault: Fault::Unreachable, what, may_have_run: false });
                    }
                    let (edits, headers) = (run.edits.clone(), run.headers.clone());
                    let sent = reopened.request(another.again(), message, edits, headers, Some(interim.clone())).await;
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

//! Holding as a task: the client is answered at once, and asks for the end of its call whenever it likes.
//!
//! MCP 2025-11-25: a client that sends `params.task` (`tasks/get`, `tasks/result`, `tasks/cancel`). 2026-07-28: one whose
//! request declares the extension `io.modelcontextprotocol/tasks` (`tasks/get`, `tasks/update`, `tasks/cancel`). Its status
//! is `working` while a human is asked, never `input_required`: that would ask the agent's own side.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use super::super::call::Call;
use super::super::client::Client;
use super::super::hold::changed;
use super::super::link::Era;
use super::super::reply;
use super::super::session::{Reply, Session, ToClient};
use super::{KEEP, key, not_found};
use crate::approval::{Event, Held, Refused, Task};
use crate::message::{Message, Span, compose, member, members};
use crate::record::{ApprovalState, CallState};
use crate::store::{Filter, StoreError};

/// The extension by its name in a client's capabilities.
const EXTENSION: &str = "io.modelcontextprotocol/tasks";
/// Where a request of 2026-07-28 says what its client can take.
const EXTENSIONS: [&str; 4] = ["params", "_meta", "io.modelcontextprotocol/clientCapabilities", "extensions"];
/// How often a client need not ask, ms.
const POLL_MS: u64 = 1_000;
/// How many are listed: the newest.
const LISTED: usize = 200;
/// How long an end is kept, unless the client asks for more, and at most, ms.
const TTL_MS: (u64, u64) = (600_000, 86_400_000);

/// The task in which a call is held, where its client can take one. A tool that is called as a task only is its upstream's
/// own to make: it is held like any other.
pub fn asked(call: &Call) -> Option<Task> {
    let message = &call.message;
    if message.method() != "tools/call" || call.target.definition().is_some_and(|definition| definition.only_as_task) {
        return None;
    }
    let ttl = match call.session.era {
        Era::Modern => {
            let (_, extensions) = message.at(&EXTENSIONS)?;
            serde_json::from_str::<Value>(extensions).ok()?.get(EXTENSION)?.as_object()?;
            None
        }
        Era::Legacy => {
            let (_, task) = message.at(&["params", "task"])?;
            serde_json::from_str::<Value>(task).ok()?.as_object()?.get("ttl").and_then(Value::as_u64)
        }
    };
    Some(Task { id: crate::secret::random_id("task_", 24), ttl_ms: ttl.unwrap_or(TTL_MS.0).min(TTL_MS.1) })
}

/// The stored request as it runs: without what only concerned how it is held. The upstream answers the gateway, which
/// keeps the answer for the task.
///
/// # Errors
/// It cannot be read: why.
pub fn to_run(held: &Held) -> Result<Message, String> {
    let message = held.intent.message()?;
    if held.intent.task.is_none() {
        return Ok(message);
    }
    // Whichever stand there: what the other era would read must not reach an upstream of it either.
    let declared = stripped(message, &EXTENSIONS, EXTENSION)?;
    stripped(declared, &["params"], "task")
}

/// A request without one member of the object at a path.
fn stripped(message: Message, around: &[&str], name: &str) -> Result<Message, String> {
    let Some((span, text)) = message.at(around).filter(|(_, text)| text.starts_with('{')) else { return Ok(message) };
    let edit = (span, without(text, name).ok_or("the stored request cannot be read")?);
    let bytes = message.spliced(&[edit]);
    Message::again(&String::from_utf8_lossy(&bytes))
        .map_err(|error| format!("the stored request cannot be read: {error}"))
}

/// A JSON object without one member, every other byte of a value as it was.
fn without(object: &str, name: &str) -> Option<String> {
    let mut kept = Vec::new();
    let keep = |key: String, span: Span| {
        if key != name {
            kept.push((key, span));
        }
    };
    members(object, keep).ok()?;
    let kept: Option<Vec<String>> = kept
        .into_iter()
        .map(|(key, span)| Some(format!("{}:{}", Value::from(key), object.get(span.start..span.end)?)))
        .collect();
    Some(format!("{{{}}}", kept?.join(",")))
}

/// Tells the client its handle, once that is remembered.
pub async fn begun(call: &Call, held: &Held, client: &Client) {
    let Some(task) = &held.intent.task else { return };
    let gate = &call.session.gate;
    let until = gate.clock.now().after(KEEP);
    if let Err(error) = gate.store.put(&key(&call.session, &task.id), &held.call().id, Some(until)).await {
        gate.store_failed(&error);
        let why = "its client could not be given its task".to_owned();
        gate.must(&held.call().id, Event::Cancel { detail: Some(why) }).await;
        let unavailable = reply::error(&client.id, reply::UNAVAILABLE, "the gateway's store does not work", None);
        return client.answer(unavailable).await;
    }
    let shown = shown(held, task, call.session.era);
    let result = match call.session.era {
        Era::Modern => with(shown, "resultType", json!("task")),
        Era::Legacy => json!({ "task": shown }),
    };
    client.answer(Reply { bytes: compose::result(&client.id, &result), status: 200 }).await;
    if call.session.era == Era::Legacy {
        tell(Arc::clone(&call.session), held.call().id.clone());
    }
}

/// Tells a legacy session of its task as it goes, as long as this process has it; nobody has to rely on it (2025-11-25,
/// "Task Status Notification").
fn tell(session: Arc<Session>, call: String) {
    let mut changes = session.gate.store.watch(&call);
    let session = Arc::downgrade(&session);
    tokio::spawn(async move {
        let mut last = None;
        while let Some(held) = changed(&mut changes).await {
            let (Some(session), Some((news, bytes))) = (session.upgrade(), notification(&held, None)) else { return };
            // The first is what its client was just told.
            if last.replace(news.clone()).is_some_and(|last| last != news) {
                session.unread(bytes);
            }
            if held.call().outcome.is_some() {
                return;
            }
        }
    });
}

/// Answers a request about the task of a held call.
pub async fn serve(session: &Arc<Session>, message: &Message, call: &str, client: &Client) {
    let gate = &session.gate;
    let reply = match message.method() {
        "tasks/get" => gate.store.get(call).await.map(|held| state(&held, session.era, &client.id)),
        "tasks/cancel" => cancel(session, call, &client.id).await,
        "tasks/result" if session.era == Era::Legacy => result(session, call, client).await,
        // It never asks for input.
        "tasks/update" if session.era == Era::Modern => Ok(done(&client.id)),
        _ => Ok(reply::error(&client.id, reply::METHOD_NOT_FOUND, "there is no such method for a task", None)),
    };
    let reply = reply.unwrap_or_else(|error| match error {
        StoreError::NotFound => not_found(&client.id),
        error => {
            gate.store_failed(&error);
            reply::error(&client.id, reply::UNAVAILABLE, "the gateway's store does not work", None)
        }
    });
    client.answer(reply).await;
}

async fn cancel(session: &Session, call: &str, id: &str) -> Result<Reply, StoreError> {
    let why = "its client cancelled the task".to_owned();
    match session.gate.apply(call, Event::Cancel { detail: Some(why) }).await {
        Ok(held) => Ok(match session.era {
            Era::Modern => done(id),
            Era::Legacy => state(&held, Era::Legacy, id),
        }),
        Err(StoreError::Refused(Refused::Ended, held)) => Ok(match session.era {
            Era::Modern => done(id),
            Era::Legacy => {
                let what = format!("Cannot cancel task: already in terminal status '{}'", status(&held, Era::Legacy));
                Reply { status: 200, ..reply::error(id, reply::INVALID_PARAMS, &what, None) }
            }
        }),
        Err(error) => Err(error),
    }
}

/// The end of the call, however long that takes; its client may leave and ask again.
async fn result(session: &Session, call: &str, client: &Client) -> Result<Reply, StoreError> {
    let gate = &session.gate;
    let mut changes = gate.store.watch(call);
    client.tell(ToClient::Held).await;
    loop {
        let held = gate.store.get(call).await?;
        if held.call().outcome.is_some() {
            return Ok(end(&held, &client.id));
        }
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return Err(StoreError::Unavailable("it was closed".to_owned()));
                }
            }
            () = client.gone() => return Ok(not_found(&client.id)),
            () = gate.drained() => {
                return Ok(reply::error(&client.id, reply::UNAVAILABLE, "the gateway is shutting down", None));
            }
        }
    }
}

/// What the call itself would have been answered (2025-11-25).
fn end(held: &Held, id: &str) -> Reply {
    let bytes = match &held.kept {
        Some(kept) if kept.is_error => compose::error_raw(id, &kept.body),
        _ => compose::result_raw(id, &related(held, &tool_result(held, Era::Legacy))),
    };
    Reply { bytes, status: 200 }
}

/// A result that names its task (2025-11-25, "Associating Task-Related Messages"); every other byte as it came.
fn related(held: &Held, result: &str) -> String {
    let task = held.intent.task.as_ref().map(|task| task.id.as_str()).unwrap_or_default();
    let named = format!("\"io.modelcontextprotocol/related-task\":{}", json!({ "taskId": task }));
    let into = |object: &str, member: &str| {
        let rest = object.strip_prefix('{')?;
        let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
        Some(format!("{{{member}{comma}{rest}"))
    };
    let noted = match member(result, "_meta") {
        Some(span) => result.get(span.start..span.end).and_then(|meta| {
            let (before, after) = (result.get(..span.start)?, result.get(span.end..)?);
            Some(format!("{before}{}{after}", into(meta, &named)?))
        }),
        None => into(result, &format!("\"_meta\":{{{named}}}")),
    };
    noted.unwrap_or_else(|| result.to_owned())
}

/// The tool's result as it came, or what a model is told of a call that has none; raw JSON.
fn tool_result(held: &Held, era: Era) -> String {
    match &held.kept {
        Some(kept) => match super::super::edit::note(held) {
            Some(note) => reply::with_note(&kept.body, &note),
            None => kept.body.clone(),
        },
        None => {
            let (text, retry) = reply::ended_text(held.call());
            let refused = reply::refusal(era, "0", held.call(), &text, retry);
            let reply = serde_json::from_slice::<Value>(&refused.bytes).unwrap_or_default();
            reply.get("result").cloned().unwrap_or_default().to_string()
        }
    }
}

/// A task as `tasks/get` tells it.
fn state(held: &Held, era: Era, id: &str) -> Reply {
    let Some(task) = &held.intent.task else { return not_found(id) };
    let mut result = shown(held, task, era);
    if era == Era::Legacy {
        return Reply { bytes: compose::result(id, &result), status: 200 };
    }
    result = with(result, "resultType", json!("complete"));
    Reply { bytes: compose::result_raw(id, &with_end(held, &result)), status: 200 }
}

/// A task of the extension with its end inside, as that came.
fn with_end(held: &Held, task: &Value) -> String {
    let inside = match (status(held, Era::Modern), &held.kept) {
        ("completed", _) => format!(",\"result\":{}", tool_result(held, Era::Modern)),
        ("failed", Some(kept)) => format!(",\"error\":{}", kept.body),
        _ => String::new(),
    };
    let text = task.to_string();
    format!("{}{inside}}}", text.strip_suffix('}').unwrap_or(&text))
}

/// What a client is told of its task by itself, with what is new in it compared: `notifications/tasks/status` (2025-11-25),
/// or `notifications/tasks` on a stream of the extension, whose `_meta` is given. None for a call that is no task.
pub fn notification(held: &Held, stream: Option<&Value>) -> Option<(String, Bytes)> {
    let task = held.intent.task.as_ref()?;
    let era = if stream.is_some() { Era::Modern } else { Era::Legacy };
    let mut params = shown(held, task, era);
    let news = format!("{} {}", status(held, era), told(held));
    let bytes = match stream {
        Some(meta) => {
            params = with(params, "_meta", meta.clone());
            compose::notification_raw("notifications/tasks", &with_end(held, &params))
        }
        None => compose::notification("notifications/tasks/status", Some(&params)),
    };
    Some((news, bytes))
}

/// The tasks in which calls of a legacy session are held, each as JSON.
pub async fn listed(session: &Session) -> Vec<String> {
    let Some(key) = session.key().filter(|_| session.era == Era::Legacy) else { return Vec::new() };
    let filter = Filter {
        agent: Some(session.agent.clone()),
        session: Some(key.to_owned()),
        limit: LISTED,
        ..Filter::default()
    };
    let held = match session.gate.store.list(filter).await {
        Ok((held, _)) => held,
        Err(error) => {
            session.gate.store_failed(&error);
            return Vec::new();
        }
    };
    let own = held.iter().filter(|held| held.call().upstream == session.executor.id());
    own.filter_map(|held| Some(shown(held, held.intent.task.as_ref()?, Era::Legacy).to_string())).collect()
}

fn shown(held: &Held, task: &Task, era: Era) -> Value {
    let call = held.call();
    let times = [call.released_at, call.ended_at, held.decided_at];
    let updated = times.into_iter().flatten().fold(call.created_at, std::cmp::Ord::max);
    let (ttl, poll) = match era {
        Era::Modern => ("ttlMs", "pollIntervalMs"),
        Era::Legacy => ("ttl", "pollInterval"),
    };
    json!({
        "taskId": task.id,
        "status": status(held, era),
        "statusMessage": told(held),
        "createdAt": call.created_at,
        "lastUpdatedAt": updated,
        ttl: task.ttl_ms,
        poll: POLL_MS,
    })
}

/// In 2025-11-25 what did not run has failed; in the extension a task fails only with a JSON-RPC error.
fn status(held: &Held, era: Era) -> &'static str {
    let is_error = held.kept.as_ref().is_some_and(|kept| kept.is_error);
    match (held.call().state, era) {
        (CallState::Pending | CallState::AwaitingApproval | CallState::Running, _) => "working",
        (CallState::Cancelled, _) => "cancelled",
        (_, Era::Modern) => {
            if is_error {
                "failed"
            } else {
                "completed"
            }
        }
        (CallState::Completed, Era::Legacy) if !is_error && held.call().tool_error != Some(true) => "completed",
        (_, Era::Legacy) => "failed",
    }
}

fn told(held: &Held) -> String {
    let call = held.call();
    let approval = &held.approval;
    match (call.state, approval.state) {
        (CallState::AwaitingApproval, ApprovalState::Waiting) => {
            format!("A human is asked ({}). Nothing has happened so far.", approval.id)
        }
        (CallState::AwaitingApproval, _) => "Approved; it starts now.".to_owned(),
        (CallState::Running, _) => "Approved; it is running.".to_owned(),
        (CallState::Completed, _) => "It ran.".to_owned(),
        _ => reply::ended_text(call).0,
    }
}

fn done(id: &str) -> Reply {
    Reply { bytes: compose::result(id, &json!({ "resultType": "complete" })), status: 200 }
}

fn with(mut object: Value, name: &str, value: Value) -> Value {
    if let Some(object) = object.as_object_mut() {
        object.insert(name.to_owned(), value);
    }
    object
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::approval::tests::held;

    #[test]
    fn what_only_concerned_holding_reaches_no_upstream() {
        let run = |params: &str| {
            let mut held = held("1");
            held.intent.message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
            held.intent.task = Some(Task { id: "task_1".to_owned(), ttl_ms: 1 });
            to_run(&held).unwrap().params().unwrap().to_owned()
        };
        let meta = |extensions: &str| {
            format!(r#""_meta":{{"io.modelcontextprotocol/clientCapabilities":{{"extensions":{extensions}}}}}"#)
        };
        let both = meta(r#"{"x":1,"io.modelcontextprotocol/tasks":{}}"#);
        let neither = meta(r#"{"x":1}"#);
        assert_eq!(
            run(&format!(r#"{{"name":"t","task":{{"ttl":1}},"arguments":{{"n":1.0}},{both}}}"#)),
            format!(r#"{{"name":"t","arguments":{{"n":1.0}},{neither}}}"#)
        );
        assert_eq!(run(r#"{"task":{},"name":"t"}"#), r#"{"name":"t"}"#);
        assert_eq!(run(r#"{"name":"t"}"#), r#"{"name":"t"}"#);
    }
}

//! Tasks: those of upstreams, and those by which the gateway holds a call for a client that can take one.
//!
//! A handle is remembered before its client is told it. It belongs to the session it was given to; without sessions
//! (2026-07-28), to the agent. Another's task is one that does not exist.

mod held;

pub use held::{asked, begun, notification, serve, to_run};

use std::time::Duration;

use bytes::Bytes;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::link::Era;
use super::reply;
use super::session::{Reply, Session};
use crate::message::{Json, Limits, Message, Span, Value, compose, fold, object};
use crate::store::StoreError;

/// How long a handle is remembered: as long as ended calls are.
const KEEP: Duration = Duration::from_secs(7 * 86_400);

/// What stands in an answer to `tasks/list` (MCP 2025-11-25).
const RESULT: &[&str] = &["tasks", "nextCursor", "_meta"];

/// Remembers the task that an answer to a call hands out, if it does: `result.task` (2025-11-25) or a result of type
/// `task` (the extension).
pub async fn learn(session: &Session, answer: &Message) {
    // Most results hold none; one look over the text tells.
    if !answer.result().is_some_and(|result| result.contains("\"taskId\"")) {
        return;
    }
    let flat = answer.string_at(&["result", "resultType"]).as_deref() == Some("task");
    let id = match flat {
        true => answer.string_at(&["result", "taskId"]),
        false => answer.string_at(&["result", "task", "taskId"]),
    };
    let Some(id) = id else { return };
    let (gate, until) = (&session.gate, session.gate.clock.now().after(KEEP));
    if let Err(error) = gate.store.put(&key(session, &id), "", Some(until)).await {
        // Its client finds no such task then.
        gate.store_failed(&error);
    }
}

/// Whose task a request is about.
pub enum Whose {
    /// The upstream's.
    Upstream,
    /// The gateway's own, for this held call.
    Held(String),
}

/// Whose task a request is about, if it is the caller's (MCP 2025-11-25, "Tasks", Protocol Errors: `-32602`).
///
/// # Errors
/// The reply to give: it is not.
pub async fn of(session: &Session, message: &Message) -> Result<Whose, Reply> {
    let id = message.id().unwrap_or("null");
    let own = match message.string_at(&["params", "taskId"]) {
        Some(task) => whose(session, &task).await,
        None => Ok(None),
    };
    match own {
        Ok(Some(whose)) => Ok(whose),
        // As an upstream would say it: nobody learns which ids there are.
        Ok(None) => Err(not_found(id)),
        Err(error) => {
            session.gate.store_failed(&error);
            Err(reply::error(id, reply::UNAVAILABLE, "the gateway's store does not work", None))
        }
    }
}

/// Whose task it is; none where it is not the caller's.
///
/// # Errors
/// The store does not work.
pub async fn whose(session: &Session, task: &str) -> Result<Option<Whose>, StoreError> {
    let call = session.gate.store.read(&key(session, task)).await?;
    Ok(call.map(|call| if call.is_empty() { Whose::Upstream } else { Whose::Held(call) }))
}

/// The reply where there is no such task of the caller's.
pub fn not_found(id: &str) -> Reply {
    Reply { status: 200, ..reply::error(id, reply::INVALID_PARAMS, "Failed to retrieve task: Task not found", None) }
}

/// What to change in an upstream's answer to `tasks/list`, so that it holds the caller's own tasks only; every byte of
/// those stays as it came. The gateway's own stand on the first page.
///
/// # Errors
/// Why the answer is no list that may reach a client.
pub async fn only_own(session: &Session, request: &Message, answer: &Message) -> Result<Vec<(Span, String)>, String> {
    let Some(result) = answer.result() else { return Ok(Vec::new()) };
    // Whatever stands beside the list could hold another's task too.
    if let Some((key, _)) = object(result, RESULT)?.iter().find(|(key, _)| !RESULT.contains(&key.as_str())) {
        return Err(format!("{key:?} belongs in no list of tasks"));
    }
    let listed = answer.at(&["result", "tasks"]);
    let tasks = listed.and_then(|(span, raw)| Some((span, serde_json::from_str::<Vec<&RawValue>>(raw).ok()?)));
    let (span, tasks) = tasks.ok_or("`tasks` is no list")?;
    let held = if request.at(&["params", "cursor"]).is_some() { Vec::new() } else { held::listed(session).await };
    let mut own: Vec<&str> = held.iter().map(String::as_str).collect();
    for task in tasks {
        // What cannot be told is left out.
        if let Some(id) = id_of(task.get())
            && whose(session, &id).await.is_ok_and(|whose| whose.is_some())
        {
            own.push(task.get());
        }
    }
    Ok(vec![(span, format!("[{}]", own.join(",")))])
}

/// The answer to `tasks/list` where the upstream has none: the gateway's own tasks, or the upstream's error where there are
/// none.
pub async fn without_upstream(session: &Session, answer: &Message, id: &str) -> Reply {
    let held = held::listed(session).await;
    if held.is_empty() {
        return super::forward::to_client(answer, id, Vec::new());
    }
    Reply { bytes: compose::result_raw(id, &format!("{{\"tasks\":[{}]}}", held.join(","))), status: 200 }
}

/// The id of a task that is one task to every client: no key in it stands twice or could be taken for another, and no other
/// task stands in it.
fn id_of(task: &str) -> Option<String> {
    let task = Json::parse(Bytes::copy_from_slice(task.as_bytes()), Limits::default()).ok()?;
    let mut ids = Vec::new();
    task.root().walk(&mut |_, value| {
        ids.extend(value.members().iter().filter(|member| fold(&member.key) == "taskid").map(|member| &*member.key));
    });
    let id = task.root().get("taskId").and_then(Value::as_str)?;
    (ids == ["taskId"]).then(|| id.to_owned())
}

/// Names the task together with whose it is.
fn key(session: &Session, task: &str) -> String {
    let mut hash = Sha256::new();
    let own = session.key().filter(|_| session.era == Era::Legacy);
    for part in [session.agent.as_str(), own.unwrap_or_default(), session.executor.id(), task] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    format!("task:{}", hex::encode(hash.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_could_be_another_too_has_no_id() {
        assert_eq!(id_of(r#"{"task\u0049d":"b","status":"working","ttl":null}"#).as_deref(), Some("b"));
        for task in [
            r#"{"taskId":"a","taskId":"b"}"#,
            r#"{"taskId":"b","TaskId":"a"}"#,
            r#"{"taskId":"b","nested":{"taskId":"a","status":"working"}}"#,
            r#"{"taskId":"b","nested":[{"TASKID":"a"}]}"#,
            r#"{"taskId":["b"]}"#,
            r#"{"TaskId":"b"}"#,
            r#"["taskId","b"]"#,
        ] {
            assert_eq!(id_of(task), None, "{task}");
        }
    }
}

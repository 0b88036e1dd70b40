//! Tasks of upstreams, and whose they are: an executor may be shared, a task's id is not.
//!
//! A handle is remembered before its client is told it. It belongs to the session it was given to; without sessions
//! (2026-07-28), to the agent. Another's task is one that does not exist.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::link::Era;
use super::reply;
use super::session::{Reply, Session};
use crate::message::{Message, Span};
use crate::store::StoreError;

/// How long a handle is remembered: as long as ended calls are.
const KEEP: Duration = Duration::from_secs(7 * 86_400);

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

/// Refuses a request about a task that is not the caller's (MCP 2025-11-25, "Tasks", Protocol Errors: `-32602`).
///
/// # Errors
/// The reply to give.
pub async fn check(session: &Session, message: &Message) -> Result<(), Reply> {
    let id = message.id().unwrap_or("null");
    let own = match message.string_at(&["params", "taskId"]) {
        Some(task) => is_own(session, &task).await,
        None => Ok(false),
    };
    match own {
        Ok(true) => Ok(()),
        // As an upstream would say it: nobody learns which ids there are.
        Ok(false) => Err(Reply {
            status: 200,
            ..reply::error(id, reply::INVALID_PARAMS, "Failed to retrieve task: Task not found", None)
        }),
        Err(error) => {
            session.gate.store_failed(&error);
            Err(reply::error(id, reply::UNAVAILABLE, "the gateway's store does not work", None))
        }
    }
}

/// What to change in an upstream's answer to `tasks/list`, so that it holds the caller's own tasks only; every byte of
/// those stays as it came.
///
/// # Errors
/// The reply to give: the answer is no list.
pub async fn only_own(session: &Session, answer: &Message, id: &str) -> Result<Vec<(Span, String)>, Reply> {
    if answer.error().is_some() {
        return Ok(Vec::new());
    }
    let listed = answer.at(&["result", "tasks"]);
    let tasks = listed.and_then(|(span, raw)| Some((span, serde_json::from_str::<Vec<&RawValue>>(raw).ok()?)));
    let Some((span, tasks)) = tasks else {
        return Err(reply::error(id, reply::UPSTREAM_FAILED, "the upstream does not list its tasks", None));
    };
    let mut own: Vec<&str> = Vec::new();
    for task in tasks {
        let Ok(Task { id }) = serde_json::from_str(task.get()) else { continue };
        // What cannot be told is left out.
        if is_own(session, &id).await.unwrap_or(false) {
            own.push(task.get());
        }
    }
    Ok(vec![(span, format!("[{}]", own.join(",")))])
}

#[derive(Deserialize)]
struct Task {
    #[serde(rename = "taskId")]
    id: String,
}

async fn is_own(session: &Session, task: &str) -> Result<bool, StoreError> {
    Ok(session.gate.store.read(&key(session, task)).await?.is_some())
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

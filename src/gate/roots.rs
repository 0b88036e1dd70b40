//! What an upstream is told of roots (MCP 2025-11-25, client/roots; 2026-07-28, `inputRequests`).
//!
//! A server may take the client's roots for the folders that it serves and for where relative paths start. Where policy
//! judges paths, that is the operator's to say: such an upstream is told its configured root, whatever folders a client
//! announces. One whose paths are only names (`filesystem: none`) is told the client's.

use bytes::Bytes;
use serde_json::json;

use super::Executor;
use crate::config::FileSystem;
use crate::facet::Malformed;
use crate::message::{Message, Value, compose};

/// Whether an upstream's root is the configured one, and not the client's to say.
fn are_fixed(executor: &Executor) -> bool {
    executor.config.filesystem != FileSystem::None
}

/// The gateway's answer to the upstream's request; none if the client is to be asked.
pub fn answer(executor: &Executor, request: &Message) -> Option<Bytes> {
    if request.method() != "roots/list" || !are_fixed(executor) {
        return None;
    }
    let uri = url::Url::from_directory_path(executor.space.their_root()).ok();
    let uri = uri.map(|uri| uri.as_str().trim_end_matches('/').to_owned());
    let roots: Vec<_> = uri.map(|uri| json!({ "uri": uri })).into_iter().collect();
    Some(compose::result(request.id()?, &json!({ "roots": roots })))
}

/// Whether a notification of the client tells the upstream nothing.
pub fn is_moot(executor: &Executor, method: &str) -> bool {
    method == "notifications/roots/list_changed" && are_fixed(executor)
}

/// Refuses a request that brings the client's roots with it, as an answer to the upstream's `input_required`.
///
/// # Errors
/// It does.
pub fn check(executor: &Executor, params: Option<&Value>) -> Result<(), Malformed> {
    let answers = params.and_then(|params| params.get("inputResponses")).map(Value::members).unwrap_or_default();
    let brings = |answer: &Value| answer.get("roots").is_some();
    match answers.iter().find(|answer| brings(&answer.value)) {
        Some(answer) if are_fixed(executor) => Err(Malformed {
            pointer: format!("/inputResponses/{}", answer.key),
            what: "the roots of this upstream are set in portcullis.yaml; a client's are not passed on".to_owned(),
        }),
        _ => Ok(()),
    }
}

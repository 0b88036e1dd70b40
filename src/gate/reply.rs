//! The one table from what happened to what the client is told.
//!
//! A refused tool call is a tool result with `isError: true`: a model reads it, a JSON-RPC error it may not. Everything
//! else that is refused, and what is malformed, is a JSON-RPC error.

use std::time::Duration;

use serde_json::{Value, json};

use super::link::{Era, Fault, UpstreamError};
use super::session::Reply;
use crate::approval::Kept;
use crate::config::RESERVED_UPSTREAM;
use crate::message::{Message, Span, compose, member};
use crate::record::{CallRecord, CallState};

/// JSON-RPC: the parameters are not what the method takes.
pub const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: there is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the gateway itself is at fault.
pub const INTERNAL: i64 = -32603;
/// MCP 2026-07-28: a header is missing or differs from the body.
pub const HEADER_MISMATCH: i64 = -32020;
/// Ours: refused by policy or by a human (outside the range JSON-RPC reserves).
pub const REFUSED: i64 = -31_001;
/// Ours: the upstream or the transport broke.
pub const UPSTREAM_FAILED: i64 = -31_002;
/// Ours: the gateway itself cannot do it now.
pub const UNAVAILABLE: i64 = -31_003;
/// Ours: the request was cancelled.
pub const CANCELLED: i64 = -31_004;

/// Whether trying again can help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retry {
    /// The identical call picks the approval up.
    SameCall,
    /// It will be refused again.
    Never,
    /// Later.
    AfterMs(u64),
}

impl Retry {
    fn fields(self) -> (Value, Value) {
        match self {
            Self::SameCall => (json!("same_call"), Value::Null),
            Self::Never => (json!("never"), Value::Null),
            Self::AfterMs(ms) => (json!("after_ms"), json!(ms)),
        }
    }
}

/// What a model is told of a call that did not run, or not to its end.
pub fn refusal(era: Era, id: &str, record: &CallRecord, text: &str, retry: Retry) -> Reply {
    let (word, after) = retry.fields();
    let detail = json!({
        "call": record.id,
        "state": record.state,
        "reason": record.reason,
        "rule": record.decided_by.first(),
        "approval": record.approval,
        "retry": word,
        "after_ms": after,
    });
    if record.method != "tools/call" {
        let code = match record.state {
            CallState::Failed => UPSTREAM_FAILED,
            CallState::Cancelled => CANCELLED,
            _ => REFUSED,
        };
        return error(id, code, text, Some(json!({ "dev.portcullis/call": detail })));
    }
    let mut result = json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
        "_meta": { "dev.portcullis/call": detail },
    });
    if let (Era::Modern, Some(object)) = (era, result.as_object_mut()) {
        object.insert("resultType".to_owned(), json!("complete"));
    }
    Reply { bytes: compose::result(id, &result), status: 200 }
}

/// The sentence for a rejection by policy.
pub fn rejected_text(record: &CallRecord) -> String {
    let who = record.decided_by.first().map_or("the policy", String::as_str);
    let why = match record.reasons.as_slice() {
        [] => String::new(),
        reasons => format!(" Reason: {}.", reasons.join("; ").trim_end_matches('.')),
    };
    format!(
        "Refused: {} was not run. Rule `{who}` denies it.{why} Trying the same call again will not help.",
        record.label
    )
}

/// What a call over a limit may do: come again after that time; none if waiting does not help.
pub fn when_there_is_room(wait: Option<Duration>) -> Retry {
    wait.map_or(Retry::Never, |wait| {
        // Rounded up: one that comes a moment too early would be refused again.
        Retry::AfterMs(u64::try_from(wait.as_micros().div_ceil(1000)).unwrap_or(u64::MAX))
    })
}

/// The sentence for a held call that ended without running.
pub fn ended_text(record: &CallRecord) -> (String, Retry) {
    let label = &record.label;
    let note = record.detail.as_deref().filter(|d| !d.trim().is_empty());
    if record.upstream == RESERVED_UPSTREAM && record.reason.as_deref() == Some("expired") {
        let text = "Not answered: nobody answered your question in time. Go on without the answer, or ask again later.";
        return (text.to_owned(), Retry::AfterMs(60_000));
    }
    match (record.state, record.reason.as_deref()) {
        (CallState::Rejected, Some("approver")) => (
            match note {
                Some(note) => format!(
                    "Rejected by a human: {label} was not run. Their reason: {note}. Do not try the same call again; change it as they say or go on without it."
                ),
                None => format!(
                    "Rejected by a human: {label} was not run. Do not try the same call again; go on without it or ask what they want instead."
                ),
            },
            Retry::Never,
        ),
        (CallState::Rejected, Some("expired")) => (
            format!("Not run: nobody decided on {label} in time. This is no refusal; a new call asks again."),
            Retry::AfterMs(60_000),
        ),
        (CallState::Rejected, Some("rate_limit")) if note.is_some() => {
            (format!("Not run: {label}: {}.", note.unwrap_or_default()), Retry::Never)
        }
        (CallState::Rejected, Some("rate_limit")) => (
            format!(
                "Not run: too many calls of this agent already wait for a human. Let them be decided before {label} is tried again."
            ),
            Retry::AfterMs(30_000),
        ),
        (CallState::Rejected, Some("stale")) => (
            format!(
                "Not run: what {label} would do, or what policy says of it, changed while it was held ({}). A new call asks again.",
                note.unwrap_or("the policy or a file is another")
            ),
            Retry::AfterMs(1_000),
        ),
        (CallState::Rejected, Some("paused")) => (
            format!(
                "Not run: {label}: {}. Every call is refused until an operator resumes the agent; trying again does not help.",
                note.unwrap_or("the agent is paused")
            ),
            Retry::Never,
        ),
        (CallState::Rejected, Some("draining")) => {
            (format!("Not run: the gateway is shutting down. Try {label} again in a moment."), Retry::AfterMs(5_000))
        }
        (CallState::Rejected, _) => (rejected_text(record), Retry::Never),
        (CallState::Cancelled, _) => {
            (format!("Cancelled: {label} was stopped ({}).", note.unwrap_or("by its client")), Retry::Never)
        }
        (CallState::Failed, _) => (
            format!(
                "Failed: {label}: {}.{}",
                note.unwrap_or("the upstream broke"),
                if record.may_have_run { " It may have run: check before trying again." } else { " It has not run." }
            ),
            if record.may_have_run { Retry::Never } else { Retry::AfterMs(1_000) },
        ),
        _ => (format!("{label}: not finished"), Retry::SameCall),
    }
}

/// The sentence of a hand-off.
pub fn handed_off_text(record: &CallRecord, era: Era) -> String {
    let (label, approval) = (&record.label, record.approval.as_deref().unwrap_or("held"));
    // While this session is open, only it picks the call up: another one would ask, and run, anew.
    let here = match era {
        Era::Legacy => " in this session",
        Era::Modern => "",
    };
    if record.upstream == RESERVED_UPSTREAM {
        return format!(
            "Not answered yet: your question waits for a human. Make the identical call again{here} to wait on; it is not asked twice."
        );
    }
    if record.state == CallState::Running {
        return format!(
            "Still running: {label} was approved ({approval}) and has no result yet. Make the identical call again{here} to wait for it; it does not run twice."
        );
    }
    format!(
        "Not run yet: {label} waits for a human ({approval}). Nothing has happened so far. Make the identical call again{here} to wait on; it picks this approval up and does not run twice."
    )
}

/// A JSON-RPC error.
pub fn error(id: &str, code: i64, message: &str, data: Option<Value>) -> Reply {
    let status = match code {
        METHOD_NOT_FOUND => 404,
        INVALID_PARAMS | HEADER_MISMATCH => 400,
        UNAVAILABLE => 503,
        _ => 200,
    };
    Reply { bytes: compose::error(id, code, message, data.as_ref()), status }
}

/// What an upstream's fault is to a client that only passes through.
pub fn upstream_fault(id: &str, upstream: &str, fault: &UpstreamError) -> Reply {
    let what = match fault.fault {
        Fault::Era => METHOD_NOT_FOUND,
        _ => UPSTREAM_FAILED,
    };
    error(id, what, &format!("upstream `{upstream}`: {fault}"), None)
}

/// A list of an upstream's that is kept from its clients: what cannot be read cannot be judged.
pub fn unreadable_list(id: &str, upstream: &str, what: &str) -> Reply {
    tracing::warn!(upstream, "a list cannot be read and reaches no client: {what}");
    error(id, UPSTREAM_FAILED, &format!("upstream `{upstream}`: its list cannot be read: {what}"), None)
}

/// A kept reply under the id of the retry that picks it up, with a word for the model on when it ran.
pub fn kept(id: &str, kept: &Kept, note: &str) -> Reply {
    let bytes = if kept.is_error {
        compose::error_raw(id, &kept.body)
    } else {
        compose::result_raw(id, &with_note(&kept.body, note))
    };
    Reply { bytes, status: 200 }
}

/// The kept result with a text block in front of its content; every other byte as it came.
pub fn with_note(result: &str, note: &str) -> String {
    let Some(content) = member(result, "content") else { return result.to_owned() };
    let (Some(before), Some(text), Some(after)) =
        (result.get(..content.start), result.get(content.start..content.end), result.get(content.end..))
    else {
        return result.to_owned();
    };
    match block_before(text, note) {
        Some(noted) => format!("{before}{noted}{after}"),
        None => result.to_owned(),
    }
}

/// What puts a note for the model into an upstream's answer: a text block in front of the content, or a sentence behind
/// the message of an error. None where there is no place for it.
pub fn noted(answer: &Message, note: &str) -> Option<(Span, String)> {
    if let Some(message) = answer.string_at(&["error", "message"]) {
        let (span, _) = answer.at(&["error", "message"])?;
        return Some((span, json!(format!("{message} {note}")).to_string()));
    }
    let (span, content) = answer.at(&["result", "content"])?;
    Some((span, block_before(content, note)?))
}

/// The JSON array with a text block in front; none for what is no array.
fn block_before(content: &str, note: &str) -> Option<String> {
    let rest = content.strip_prefix('[')?;
    let comma = if rest.trim_start().starts_with(']') { "" } else { "," };
    Some(format!("[{}{comma}{rest}", json!({"type": "text", "text": note})))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_status_is_only_for_what_the_protocol_names() {
        assert_eq!(error("1", METHOD_NOT_FOUND, "no such method", None).status, 404);
        assert_eq!(error("1", REFUSED, "refused", None).status, 200);
        let reply = error("\"a\"", INVALID_PARAMS, "bad", Some(json!({"x": 1})));
        let body: Value = serde_json::from_slice(&reply.bytes).unwrap();
        assert_eq!(body["id"], "a");
        assert_eq!(body["error"]["data"]["x"], 1);
    }

    #[test]
    fn a_kept_result_keeps_its_bytes_and_says_when_it_ran() {
        let body = r#"{"n":9007199254740993,"content":[{"type":"text","text":"x"}],"odd":1}"#;
        let noted = with_note(body, "ran");
        let (before, after) = (r#"{"n":9007199254740993,"content":["#, r#",{"type":"text","text":"x"}],"odd":1}"#);
        let block = noted.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(block).unwrap(), json!({"type": "text", "text": "ran"}));
        let alone: Value = serde_json::from_str(&with_note(r#"{"content":[]}"#, "ran")).unwrap();
        assert_eq!(alone, json!({"content": [{"type": "text", "text": "ran"}]}));
        assert_eq!(with_note(r#"{"contents":[]}"#, "ran"), r#"{"contents":[]}"#);
    }
}

//! What a client's message must be besides strict JSON (JSON-RPC 2.0, section 4; MCP, "Messages").

use super::json::{Kind, Member, Value};
use super::keys;

/// JSON-RPC 2.0, section 5.1: invalid request.
pub(super) const NOT_A_REQUEST: i64 = -32600;
/// JSON-RPC 2.0, section 5.1: invalid method parameters.
const NOT_ITS_PARAMS: i64 = -32602;

/// What a client's message must be besides strict JSON: the code and the words if it is not.
pub(super) fn client(root: &Value) -> Result<(), (i64, String)> {
    let bad = |what: &str| Err((NOT_A_REQUEST, what.to_owned()));
    match root.kind {
        Kind::Object(_) => {}
        Kind::Array(_) => return bad("batches are not accepted: send each message on its own"),
        _ => return bad("a JSON-RPC message is an object"),
    }
    confused(keys::confusable(root, keys::ENVELOPE))?;
    if root.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return bad("`jsonrpc` must be \"2.0\"");
    }
    if root.get("id").is_some_and(|id| !is_id(id)) {
        return bad("`id` must be a string or an integer");
    }
    let Some(method) = root.get("method") else {
        return match (root.get("result"), root.get("error").map(|e| &e.kind)) {
            _ if root.get("id").is_none() => bad("`method` is missing"),
            (Some(_), None) | (None, Some(Kind::Object(_))) => Ok(()),
            (None, Some(_)) => bad("`error` must be an object"),
            _ => bad("a message has either `method`, `result` or `error`"),
        };
    };
    if root.get("result").is_some() || root.get("error").is_some() {
        return bad("a message has either `method`, `result` or `error`");
    }
    match method.as_str() {
        Some(method) if !method.is_empty() && !method.chars().any(char::is_control) => {
            // A server that forgets to look for an `id` would run what nobody can be answered about.
            match (root.get("id").is_some(), method.starts_with("notifications/")) {
                (false, false) => bad("`id` is missing: only a `notifications/…` method goes without one"),
                (true, true) => bad("a `notifications/…` method has no `id`"),
                _ => params_of(root, method),
            }
        }
        _ => bad("`method` must be a string without control characters"),
    }
}

fn params_of(root: &Value, method: &str) -> Result<(), (i64, String)> {
    let bad = |what: String| Err((NOT_ITS_PARAMS, what));
    let params = root.get("params");
    if let Some(params) = params {
        if !matches!(params.kind, Kind::Object(_)) {
            return bad("`params` must be an object".to_owned());
        }
        confused(keys::confusable(params, keys::PARAMS))?;
        if params.get("_meta").is_some_and(|meta| !matches!(meta.kind, Kind::Object(_))) {
            return bad("`params._meta` must be an object".to_owned());
        }
        confused(params.get("_meta").and_then(|meta| keys::confusable(meta, keys::META)))?;
        confused(params.get("arguments").and_then(keys::confusable_below))?;
        for name in ["name", "uri"] {
            if params.get(name).and_then(Value::as_str).is_some_and(|text| text.contains('\0')) {
                return bad(format!("a NUL character in `params.{name}`"));
            }
        }
    }
    let needed = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
        _ => return Ok(()),
    };
    if params.and_then(|params| params.get(needed)).and_then(Value::as_str).is_none() {
        return bad(format!("`{method}` needs `params.{needed}`, a string"));
    }
    match params.and_then(|params| params.get("arguments")).map(|arguments| &arguments.kind) {
        None | Some(Kind::Object(_)) => Ok(()),
        Some(_) => bad("`params.arguments` must be an object".to_owned()),
    }
}

fn confused(member: Option<&Member>) -> Result<(), (i64, String)> {
    match member {
        None => Ok(()),
        Some(member) => Err((
            NOT_A_REQUEST,
            format!(
                "the key {:?} at byte {} differs only in case or Unicode form from another that counts",
                member.key, member.key_span.start
            ),
        )),
    }
}

/// MCP: a string or an integer, never null.
pub(super) fn is_id(id: &Value) -> bool {
    match &id.kind {
        Kind::String(_) => true,
        Kind::Number(text) => !text.contains(['.', 'e', 'E']),
        _ => false,
    }
}

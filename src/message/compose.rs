//! Messages that the gateway makes itself. Ids are raw JSON, as [`super::Message::id`] gives them.

use bytes::Bytes;
use serde_json::Value;

/// An answer.
pub fn result(id: &str, result: &Value) -> Bytes {
    result_raw(id, &result.to_string())
}

/// An answer whose result is raw JSON, byte for byte (a kept result of an executor).
pub fn result_raw(id: &str, result: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into()
}

/// An error answer (JSON-RPC 2.0, section 5.1). The id is `null` where none could be read.
pub fn error(id: &str, code: i64, message: &str, data: Option<&Value>) -> Bytes {
    let message = Value::from(message);
    let data = data.map(|data| format!(r#","data":{data}"#)).unwrap_or_default();
    error_raw(id, &format!(r#"{{"code":{code},"message":{message}{data}}}"#))
}

/// An error answer whose error object is raw JSON, byte for byte.
pub fn error_raw(id: &str, error: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#).into()
}

/// A request.
pub fn request(id: &str, method: &str, params: Option<&Value>) -> Bytes {
    call(Some(id), method, params)
}

/// A notification.
pub fn notification(method: &str, params: Option<&Value>) -> Bytes {
    call(None, method, params)
}

/// A notification whose parameters are JSON text already.
pub fn notification_raw(method: &str, params: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","method":{},"params":{params}}}"#, Value::from(method)).into()
}

fn call(id: Option<&str>, method: &str, params: Option<&Value>) -> Bytes {
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    let method = Value::from(method);
    let params = params.map(|params| format!(r#","params":{params}"#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0",{id}"method":{method}{params}}}"#).into()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;
    use crate::message::{Kind, Limits, Message};

    #[test]
    fn what_the_gateway_says_passes_its_own_checks() {
        let params = json!({"a\"b": "line\nbreak"});
        for (bytes, kind) in [
            (result("\"x\"", &params), Kind::Response),
            (error("7", -32600, "a \"quoted\" word", Some(&params)), Kind::Response),
            (error("7", -32600, "plain", None), Kind::Response),
            (request("1", "ping", None), Kind::Request),
            (request("1", "tools/list", Some(&params)), Kind::Request),
            (notification("notifications/progress", Some(&params)), Kind::Notification),
        ] {
            assert_eq!(Message::strict(bytes.clone(), Limits::default()).unwrap().kind(), kind);
            assert_eq!(Message::framed(bytes).unwrap().kind(), kind);
        }
    }
}

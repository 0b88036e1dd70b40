//! The headers of a request (MCP, "Transports", Streamable HTTP; 2026-07-28, "Standard headers").

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::gate::{Era, Outgoing};
use crate::upstream::LOG;

pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub(super) const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const PARAM: &str = "mcp-param-";

pub(super) const EVENTS: &str = "text/event-stream";
const EITHER: &str = "application/json, text/event-stream";

/// What a legacy upstream said of its session.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    /// Its session id.
    pub session: Option<String>,
    /// The version it agreed to.
    pub version: Option<String>,
}

/// The headers of a POST.
pub(super) fn of_post(era: Era, conversation: &Conversation, message: &Outgoing) -> HeaderMap {
    let mut headers = match era {
        Era::Legacy => of_session(conversation),
        Era::Modern => of_modern(message),
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::ACCEPT, HeaderValue::from_static(EITHER));
    headers
}

/// The headers of a legacy GET, with where a broken stream is to go on.
pub(super) fn of_get(conversation: &Conversation, last_event: Option<&str>) -> HeaderMap {
    let mut headers = of_session(conversation);
    headers.insert(header::ACCEPT, HeaderValue::from_static(EVENTS));
    if let Some(value) = last_event.and_then(|id| HeaderValue::from_bytes(id.as_bytes()).ok()) {
        headers.insert(LAST_EVENT, value);
    }
    headers
}

/// What names a legacy session.
pub(super) fn of_session(conversation: &Conversation) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [(SESSION, &conversation.session), (VERSION, &conversation.version)] {
        if let Some(value) = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok()) {
            headers.insert(name, value);
        }
    }
    headers
}

fn of_modern(message: &Outgoing) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let method = (!message.method.is_empty()).then_some(Cow::Borrowed(message.method.as_str()));
    let named = [
        (VERSION, message.version.as_deref().map(Cow::Borrowed)),
        (METHOD, method.as_deref().map(text)),
        (NAME, message.name.as_deref().map(text)),
    ];
    for (name, value) in named {
        if let Some(value) = value.and_then(|value| HeaderValue::from_str(&value).ok()) {
            headers.insert(name, value);
        }
    }
    for (name, value) in &message.param_headers {
        let pair = HeaderName::try_from(name.as_str()).ok().filter(|name| name.as_str().starts_with(PARAM));
        let value = if is_plain(value) { Cow::Borrowed(value.as_str()) } else { sentinel(value) };
        match pair.zip(HeaderValue::from_str(&value).ok()) {
            Some((name, value)) => drop(headers.insert(name, value)),
            None => tracing::warn!(target: LOG, header = %name.escape_debug(), "is no parameter header: left out"),
        }
    }
    headers
}

/// A text as it stands in a header: as it is, or `=?base64?…?=` where it is not plain or looks like that itself.
fn text(value: &str) -> Cow<'_, str> {
    let like_a_sentinel = value.get(..9).is_some_and(|head| head.eq_ignore_ascii_case("=?base64?"));
    if is_plain(value) && !like_a_sentinel { Cow::Borrowed(value) } else { sentinel(value) }
}

fn sentinel(value: &str) -> Cow<'_, str> {
    Cow::Owned(format!("=?base64?{}?=", STANDARD.encode(value)))
}

/// Printable ASCII without blanks at its edges.
fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && value.trim_ascii() == value
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn what_a_header_cannot_carry_travels_as_base64() {
        for plain in ["read_file", "a b", "file:///x?y=1"] {
            assert_eq!(text(plain), plain);
        }
        for (value, want) in [
            ("é", "=?base64?w6k=?="),
            (" a", "=?base64?IGE=?="),
            ("a\t", "=?base64?YQk=?="),
            ("a\r\nx: y", "=?base64?YQ0KeDogeQ==?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ("=?BASE64?x", "=?base64?PT9CQVNFNjQ/eA==?="),
        ] {
            assert_eq!(text(value), want);
        }
    }

    #[test]
    fn a_parameter_header_is_never_another_one() {
        let message = Outgoing {
            bytes: "{}".into(),
            id: Some(1),
            method: "tools/call".into(),
            name: Some("größe".into()),
            param_headers: vec![
                ("Mcp-Param-Region".into(), "ü".into()),
                ("mcp-param-zone".into(), "=?base64?w7w=?=".into()),
                ("Authorization".into(), "Bearer x".into()),
                ("Mcp-Param-\r\nA".into(), "x".into()),
            ],
            version: Some("2026-07-28".into()),
        };
        let headers = of_post(Era::Modern, &Conversation::default(), &message);
        assert_eq!(headers["mcp-name"], "=?base64?Z3LDtsOfZQ==?=");
        assert_eq!(headers["mcp-method"], "tools/call");
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        assert_eq!(headers["mcp-param-region"], "=?base64?w7w=?=");
        assert_eq!(headers["mcp-param-zone"], "=?base64?w7w=?=");
        assert_eq!(headers.len(), 7);
    }
}

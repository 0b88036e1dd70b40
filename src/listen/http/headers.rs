//! What the headers of a request say: never judged by, only compared with the body.

use std::borrow::Cow;
use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, Uri, header};

use crate::message::Message;

/// MCP 2025-06-18 and later.
pub(super) const VERSION: &str = "mcp-protocol-version";
/// Legacy Streamable HTTP.
pub(super) const SESSION: &str = "mcp-session-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAM: &str = "mcp-param-";

/// What the client can read. Only what it names itself counts for streams: `*/*` is said by clients that read JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Accept {
    /// `application/json`, or nothing was said.
    pub json: bool,
    /// `text/event-stream`.
    pub stream: bool,
}

/// The value of a header that may stand once.
///
/// # Errors
/// It stands twice, or is not visible ASCII.
pub(super) fn one<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(format!("the header {name} stands twice"));
    }
    first.to_str().map(Some).map_err(|_| format!("the header {name} is not visible ASCII"))
}

/// Whether the headers that mirror the body say what the body says, as far as they are there (in either era).
///
/// # Errors
/// Which one does not.
pub(super) fn agree(headers: &HeaderMap, message: &Message) -> Result<(), String> {
    if let (Some(sent), Some(meant)) = (one(headers, VERSION)?, message.meta_version())
        && sent != meant
    {
        return Err(differs(VERSION, sent, &meant));
    }
    if let Some(sent) = one(headers, METHOD)?
        && sent != message.method()
    {
        return Err(differs(METHOD, sent, message.method()));
    }
    if let Some(sent) = one(headers, NAME)? {
        let sent = decoded(sent).map_err(|why| format!("the header {NAME} {why}"))?;
        let meant = names(message);
        if !meant.iter().any(|name| *name == sent) {
            return Err(differs(NAME, &sent, meant.first().map_or("nothing", String::as_str)));
        }
    }
    Ok(())
}

/// Whether a modern request has all headers that it must have (MCP 2026-07-28, "Request Metadata").
///
/// # Errors
/// Which one is missing.
pub(super) fn complete(headers: &HeaderMap, message: &Message) -> Result<(), String> {
    let named = name_field(message.method()).is_some() && !names(message).is_empty();
    let required: &[&str] = if named { &[VERSION, METHOD, NAME] } else { &[VERSION, METHOD] };
    match required.iter().find(|name| !headers.contains_key(**name)) {
        Some(missing) => Err(format!("the header {missing} is missing")),
        None => Ok(()),
    }
}

/// The `Mcp-Param-*` headers, decoded; names in lower case.
///
/// # Errors
/// One cannot be read.
pub(super) fn params(headers: &HeaderMap) -> Result<Vec<(String, String)>, String> {
    let names = headers.keys().map(header::HeaderName::as_str).filter(|name| name.starts_with(PARAM));
    names
        .filter_map(|name| {
            let value = one(headers, name).transpose()?.and_then(|value| {
                decoded(value).map(Cow::into_owned).map_err(|why| format!("the header {name} {why}"))
            });
            Some(value.map(|value| (name.to_owned(), value)))
        })
        .collect()
}

/// Whether the body says that it is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let value = one(headers, header::CONTENT_TYPE.as_str()).ok().flatten().unwrap_or_default();
    media_type(value).eq_ignore_ascii_case("application/json")
}

/// What the client can read.
pub(super) fn accept(headers: &HeaderMap) -> Accept {
    let kinds: Vec<String> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|kind| media_type(kind).to_ascii_lowercase())
        .collect();
    let any = |wanted: &[&str]| kinds.iter().any(|kind| wanted.contains(&kind.as_str()));
    let stream = any(&["text/event-stream"]);
    Accept { json: !stream || any(&["application/json", "application/*", "*/*"]), stream }
}

/// The token of `Authorization: Bearer`.
///
/// # Errors
/// There is a credential of another kind, or two.
pub(super) fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ()> {
    let Some(value) = one(headers, header::AUTHORIZATION.as_str()).map_err(drop)? else { return Ok(None) };
    let (scheme, token) = value.split_once(' ').ok_or(())?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(Some(token.trim())) } else { Err(()) }
}

/// Whether a listener on this address may be called by this name. A page that a browser was tricked into sending to
/// loopback (DNS rebinding) names its own host.
pub(super) fn host_is_ours(headers: &HeaderMap, uri: &Uri, bound: IpAddr) -> bool {
    if !bound.is_loopback() {
        return true;
    }
    let Ok(Some(host)) = one(headers, header::HOST.as_str()) else { return false };
    let names = [Some(host), uri.authority().map(http::uri::Authority::as_str)];
    names
        .into_iter()
        .flatten()
        .all(|name| name.parse::<http::uri::Authority>().is_ok_and(|authority| is_loopback(authority.host(), bound)))
}

/// Whether a browser's page may call: none at all, or one that this machine served to a listener on loopback.
pub(super) fn origin_is_ours(headers: &HeaderMap, bound: IpAddr) -> bool {
    match one(headers, header::ORIGIN.as_str()) {
        Ok(None) => true,
        Ok(Some(origin)) => {
            let authority = origin.parse::<Uri>().ok().and_then(|uri| uri.authority().cloned());
            bound.is_loopback() && authority.is_some_and(|authority| is_loopback(authority.host(), bound))
        }
        Err(_) => false,
    }
}

fn is_loopback(host: &str, bound: IpAddr) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|ip| ip.is_loopback() || ip == bound)
}

fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

/// The parameter that `Mcp-Name` mirrors.
fn name_field(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        _ if method.starts_with("tasks/") => Some("taskId"),
        _ => None,
    }
}

/// What `Mcp-Name` may say: for a method that is not known, any of the parameters it could mirror.
fn names(message: &Message) -> Vec<String> {
    let field = name_field(message.method());
    let fields = field.as_ref().map_or(&["name", "uri", "taskId"][..], std::slice::from_ref);
    fields.iter().filter_map(|field| message.string_at(&["params", field])).collect()
}

/// A value as it was meant: `=?base64?…?=` decoded, everything else as it is (MCP 2026-07-28, "Value Encoding").
fn decoded(value: &str) -> Result<Cow<'_, str>, &'static str> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(Cow::Borrowed(value));
    };
    let bytes = BASE64_STANDARD.decode(encoded).map_err(|_| "is not base64")?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| "is not UTF-8")
}

fn differs(header: &str, sent: &str, meant: &str) -> String {
    format!("the header {header} says {sent:?}, the body {meant:?}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use bytes::Bytes;
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::message::Limits;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
    const OPEN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let value = |v: &str| HeaderValue::from_bytes(v.as_bytes()).unwrap();
        pairs.iter().map(|(k, v)| (k.parse::<HeaderName>().unwrap(), value(v))).collect::<Vec<_>>().into_iter().fold(
            HeaderMap::new(),
            |mut map, (k, v)| {
                map.append(k, v);
                map
            },
        )
    }

    fn message(method: &str, params: &str) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        Message::strict(Bytes::from(text), Limits::default()).unwrap()
    }

    #[test]
    fn a_header_that_differs_from_the_body_is_refused() {
        let call = message("tools/call", r#"{"name":"read","uri":"x"}"#);
        let meta = r#"{"name":"ünï","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        let modern = message("tools/call", meta);
        let vendor = message("vendor/do", r#"{"taskId":"t"}"#);
        let list = message("tools/list", "{}");
        for (message, pairs, fine) in [
            (&call, &[][..], true),
            (&call, &[("mcp-method", "tools/call"), ("mcp-name", "read")], true),
            (&call, &[("mcp-name", "=?base64?cmVhZA==?=")], true),
            (&call, &[("mcp-method", "tools/list"), ("mcp-name", "read")], false),
            (&call, &[("mcp-method", "Tools/call")], false),
            (&call, &[("mcp-name", "x")], false),
            (&call, &[("mcp-name", "READ")], false),
            (&call, &[("mcp-name", "")], false),
            (&call, &[("mcp-name", "read"), ("mcp-name", "read")], false),
            (&call, &[("mcp-name", "=?base64?cmVhZA=?=")], false),
            (&call, &[("mcp-name", "=?base64?/w==?=")], false),
            (&call, &[("mcp-protocol-version", "2025-06-18")], true),
            (&modern, &[("mcp-protocol-version", "2026-07-28"), ("mcp-name", "=?base64?w7xuw68=?=")], true),
            (&modern, &[("mcp-protocol-version", "2025-06-18")], false),
            (&modern, &[("mcp-name", "ünï")], false),
            (&vendor, &[("mcp-name", "t")], true),
            (&vendor, &[("mcp-name", "u")], false),
            (&list, &[("mcp-name", "read")], false),
        ] {
            let said = agree(&headers(pairs), message);
            assert_eq!(said.is_ok(), fine, "{pairs:?}: {said:?}");
        }
    }

    #[test]
    fn a_modern_request_needs_its_headers() {
        let all = [("mcp-protocol-version", "v"), ("mcp-method", "m"), ("mcp-name", "n")];
        let call = message("tools/call", r#"{"name":"read"}"#);
        assert_eq!(complete(&headers(&all), &call), Ok(()));
        for missing in 0..3 {
            let some: Vec<_> = (0..3).filter(|i| *i != missing).map(|i| all[i]).collect();
            assert!(complete(&headers(&some), &call).unwrap_err().contains(all[missing].0));
        }
        assert_eq!(complete(&headers(&all[..2]), &message("server/discover", "{}")), Ok(()));
        assert!(complete(&headers(&all[..2]), &message("tasks/get", r#"{"taskId":"t"}"#)).is_err());
    }

    #[test]
    fn parameters_travel_decoded() {
        let sent = headers(&[("Mcp-Param-Region", "=?base64?w7w=?="), ("mcp-param-n", "42"), ("other", "x")]);
        let mut found = params(&sent).unwrap();
        found.sort();
        assert_eq!(found, [("mcp-param-n".into(), "42".into()), ("mcp-param-region".into(), "ü".into())]);
        assert!(params(&headers(&[("mcp-param-n", "1"), ("mcp-param-n", "2")])).is_err());
        assert!(params(&headers(&[("mcp-param-n", "=?base64?!?=")])).is_err());
    }

    #[test]
    fn media_types_are_read_leniently_but_not_guessed() {
        for (value, fine) in
            [("application/json", true), ("Application/JSON; charset=utf-8", true), ("text/plain", false), ("", false)]
        {
            assert_eq!(is_json(&headers(&[("content-type", value)])), fine, "{value}");
        }
        assert!(!is_json(&headers(&[])));
        for (value, json, stream) in [
            ("application/json, text/event-stream", true, true),
            ("TEXT/event-stream;q=1, Application/JSON", true, true),
            ("text/event-stream", false, true),
            ("*/*", true, false),
            ("text/html", true, false),
        ] {
            assert_eq!(accept(&headers(&[("accept", value)])), Accept { json, stream }, "{value}");
        }
        assert_eq!(accept(&headers(&[])), Accept { json: true, stream: false });
    }

    #[test]
    fn only_our_own_names_reach_loopback() {
        let uri = Uri::from_static("/mcp/files");
        for (host, fine) in [
            ("localhost:7070", true),
            ("LOCALHOST", true),
            ("127.0.0.1:7070", true),
            ("127.9.9.9", true),
            ("[::1]:7070", true),
            ("evil.example:7070", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example", false),
            ("localhost@evil.example", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(host_is_ours(&headers(&[("host", host)]), &uri, LOCAL), fine, "{host}");
            assert!(host_is_ours(&headers(&[("host", host)]), &uri, OPEN));
        }
        assert!(!host_is_ours(&headers(&[]), &uri, LOCAL));
        assert!(!host_is_ours(&headers(&[("host", "localhost"), ("host", "evil")]), &uri, LOCAL));
        let absolute = Uri::from_static("http://evil.example/mcp/files");
        assert!(!host_is_ours(&headers(&[("host", "localhost")]), &absolute, LOCAL));
    }

    #[test]
    fn only_pages_of_this_machine_may_call() {
        for (origin, fine) in [
            ("http://localhost:6274", true),
            ("https://127.0.0.1", true),
            ("http://[::1]:80", true),
            ("https://evil.example", false),
            ("http://localhost.evil.example", false),
            ("null", false),
            ("file://", false),
            ("", false),
        ] {
            assert_eq!(origin_is_ours(&headers(&[("origin", origin)]), LOCAL), fine, "{origin}");
            assert!(!origin_is_ours(&headers(&[("origin", origin)]), OPEN), "{origin}");
        }
        assert!(origin_is_ours(&headers(&[]), OPEN));
    }

    #[test]
    fn a_credential_is_a_bearer_token_or_none() {
        assert_eq!(bearer(&headers(&[])), Ok(None));
        assert_eq!(bearer(&headers(&[("authorization", "bearer abc")])), Ok(Some("abc")));
        assert_eq!(bearer(&headers(&[("authorization", "Basic abc")])), Err(()));
        assert_eq!(bearer(&headers(&[("authorization", "abc")])), Err(()));
        assert_eq!(bearer(&headers(&[("authorization", "Bearer a"), ("authorization", "Bearer b")])), Err(()));
    }
}

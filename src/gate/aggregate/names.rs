//! What one upstream calls a thing, and what it is called at the address of all: `{upstream}__{name}` for tools and prompts,
//! `{upstream}+{uri}` for resources. An upstream's id has neither `_` nor `+` in it, so that the first one parts the two.

use serde_json::value::RawValue;

use crate::message::{Message, Span, member};

/// Between an upstream and the name of its tool or prompt.
const MARK: &str = "__";
/// Between an upstream and the URI of its resource.
const PLUS: char = '+';

/// The name at the address of all.
pub fn name(upstream: &str, own: &str) -> String {
    format!("{upstream}{MARK}{own}")
}

/// The URI (or its template) at the address of all.
pub fn uri(upstream: &str, own: &str) -> String {
    format!("{upstream}{PLUS}{own}")
}

/// A thing that a request names: whose it is, what it is called there, and where that stands.
#[derive(Debug)]
pub struct Named {
    /// The upstream's id.
    pub upstream: String,
    /// What to write there for the upstream.
    pub edit: (Span, String),
}

/// What a request names of one upstream.
///
/// # Errors
/// It names nothing that could be an upstream's: why.
pub fn named(message: &Message) -> Result<Named, String> {
    match message.method() {
        "tools/call" | "prompts/get" => split(message, &["params", "name"], split_name),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
            split(message, &["params", "uri"], split_uri)
        }
        "completion/complete" => match message.string_at(&["params", "ref", "type"]).as_deref() {
            Some("ref/prompt") => split(message, &["params", "ref", "name"], split_name),
            Some("ref/resource") => split(message, &["params", "ref", "uri"], split_uri),
            _ => Err("`ref` must name a prompt or a resource".to_owned()),
        },
        method => Err(format!("{method} is served at the address of one upstream only")),
    }
}

fn split(message: &Message, path: &[&str], parts: fn(&str) -> Option<(&str, &str)>) -> Result<Named, String> {
    let sent = message.string_at(path);
    let key = path.last().copied().unwrap_or_default();
    let (Some(sent), Some((span, _))) = (sent, message.at(path)) else { return Err(format!("`{key}` must be a text")) };
    let Some((upstream, own)) = parts(&sent) else {
        let how = if key == "uri" { uri("UPSTREAM", "URI") } else { name("UPSTREAM", "NAME") };
        let sent: String = crate::pattern::visible(&sent).chars().take(128).collect();
        return Err(format!("unknown {key}: {sent}; here it is written {how}, as it is listed"));
    };
    Ok(Named { upstream: upstream.to_owned(), edit: (span, serde_json::Value::from(own).to_string()) })
}

/// The upstream and the tool's or prompt's own name.
pub fn split_name(name: &str) -> Option<(&str, &str)> {
    name.split_once(MARK).filter(|(upstream, own)| !upstream.is_empty() && !own.is_empty())
}

/// The upstream and the resource's own URI.
pub fn split_uri(uri: &str) -> Option<(&str, &str)> {
    uri.split_once(PLUS).filter(|(upstream, own)| crate::config::is_upstream_id(upstream) && !own.is_empty())
}

/// An entry of a list under its name at the address of all; none if it cannot be told.
pub fn entry(upstream: &str, key: &str, raw: &str) -> Option<String> {
    let span = member(raw, key)?;
    let own = serde_json::from_str::<String>(raw.get(span.start..span.end)?).ok()?;
    let listed = if key == "name" { name(upstream, &own) } else { uri(upstream, &own) };
    let (before, after) = (raw.get(..span.start)?, raw.get(span.end..)?);
    Some(format!("{before}{}{after}", serde_json::Value::from(listed)))
}

/// The links to resources in a result's `content`, under their URIs at the address of all.
pub fn links(upstream: &str, result: &Message) -> Vec<(Span, String)> {
    let Some((at, content)) = result.at(&["result", "content"]) else { return Vec::new() };
    if !content.contains("resource_link") {
        return Vec::new();
    }
    let Ok(blocks) = serde_json::from_str::<Vec<&RawValue>>(content) else { return Vec::new() };
    let base = content.as_ptr().addr();
    let edit = |block: &&RawValue| {
        let raw = block.get();
        let kind = member(raw, "type").and_then(|span| raw.get(span.start..span.end))?;
        let span = member(raw, "uri").filter(|_| kind == "\"resource_link\"")?;
        let own = serde_json::from_str::<String>(raw.get(span.start..span.end)?).ok()?;
        let start = at.start + (raw.as_ptr().addr() - base) + span.start;
        let end = start + (span.end - span.start);
        Some((Span { start, end }, serde_json::Value::from(uri(upstream, &own)).to_string()))
    };
    blocks.iter().filter_map(edit).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn message(method: &str, params: &str) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        Message::again(&text).unwrap()
    }

    #[test]
    fn what_is_named_goes_to_one_upstream_under_its_own_name() {
        for (method, params, upstream, own) in [
            ("tools/call", r#"{"name":"a-b__read__all","arguments":{}}"#, "a-b", r#""read__all""#),
            ("prompts/get", r#"{"name":"x____y"}"#, "x", r#""__y""#),
            ("resources/read", r#"{"uri":"files+file:///a+b"}"#, "files", r#""file:///a+b""#),
            ("completion/complete", r#"{"ref":{"type":"ref/prompt","name":"x__p"}}"#, "x", r#""p""#),
            ("completion/complete", r#"{"ref":{"type":"ref/resource","uri":"x+t://{a}"}}"#, "x", r#""t://{a}""#),
        ] {
            let named = named(&message(method, params)).unwrap();
            assert_eq!((named.upstream.as_str(), named.edit.1.as_str()), (upstream, own), "{method} {params}");
        }
        for (method, params) in [
            ("tools/call", r#"{"name":"read"}"#),
            ("tools/call", r#"{"name":"__read"}"#),
            ("tools/call", r#"{"name":"a__"}"#),
            ("resources/read", r#"{"uri":"file:///a+b"}"#),
            ("completion/complete", r#"{"ref":{"type":"x","name":"x__p"}}"#),
            ("vendor/x", "{}"),
        ] {
            assert!(named(&message(method, params)).is_err(), "{method} {params}");
        }
    }

    #[test]
    fn entries_and_links_are_renamed_and_nothing_else() {
        let raw = r#"{ "x": 1.0, "name": "re\u0061d", "inputSchema": {"properties":{"name":{}}} }"#;
        let renamed = r#"{ "x": 1.0, "name": "files__read", "inputSchema": {"properties":{"name":{}}} }"#;
        assert_eq!(entry("files", "name", raw).as_deref(), Some(renamed));
        assert_eq!(entry("files", "name", r#"{"name":"a","name":"b"}"#), None);
        let text = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"resource_link"},{"uri":"file:///a","type":"resource_link"}]}}"#;
        let result = Message::framed(text.into()).unwrap();
        let edits = links("files", &result);
        let told = String::from_utf8(result.spliced(&edits).to_vec()).unwrap();
        assert_eq!(told, text.replace("file:///a", "files+file:///a"));
    }
}

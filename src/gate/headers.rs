//! `Mcp-Param-*` headers of the modern protocol (2026-07-28): arguments that travel as headers too.

use super::call::Call;
use super::judged::arguments;
use super::route::Forwarded;
use super::tools::Definition;
use crate::message::json::Kind;
use crate::message::{Span, Value};

/// The `Mcp-Param-*` headers that go on: those that the tool's schema claims, made from the body, and the others that
/// were sent. `sent` is none where the transport has no headers. Never judge by a header: this only refuses.
///
/// # Errors
/// Which sent header is missing or differs from the body.
pub fn made(
    definition: &Definition,
    body: Option<&Value>,
    sent: Option<Vec<(String, String)>>,
) -> Result<Vec<(String, String)>, String> {
    let mut made = Vec::new();
    for (argument, name) in &definition.headers {
        let value = body.and_then(|a| a.get(argument)).and_then(text);
        let header = sent.iter().flatten().find(|(sent, _)| is_for(sent, name)).map(|(_, value)| value.as_str());
        match (value, header) {
            (Some(_), None) if sent.is_some() => return Err(format!("header Mcp-Param-{name} is missing")),
            (None, Some(_)) => return Err(format!("header Mcp-Param-{name} names an argument that the body lacks")),
            (Some(value), Some(header)) if value != header => {
                return Err(format!("header Mcp-Param-{name} differs from the body"));
            }
            (Some(value), _) => made.push((format!("Mcp-Param-{name}"), value.to_owned())),
            (None, None) => {}
        }
    }
    let claimed = |header: &str| definition.headers.iter().any(|(_, name)| is_for(header, name));
    made.extend(sent.into_iter().flatten().filter(|(header, _)| !claimed(header)));
    Ok(made)
}

/// The headers as they go on: those that repeat a path follow it where it was replaced by its canonical form.
pub fn remade(call: &Call, edits: &[(Span, String)]) -> Forwarded {
    let mut headers = call.headers.clone();
    let Some(definition) = call.target.definition().filter(|_| !headers.params.is_empty()) else { return headers };
    for (argument, name) in &definition.headers {
        let span = arguments(&call.message).and_then(|a| a.get(argument)).map(|value| value.span);
        let edit = edits.iter().find(|(edited, _)| Some(*edited) == span);
        let text = edit.and_then(|(_, json)| serde_json::from_str::<String>(json).ok());
        let header = headers.params.iter_mut().find(|(sent, _)| is_for(sent, name));
        if let (Some(text), Some((_, value))) = (text, header) {
            *value = text;
        }
    }
    headers
}

fn is_for(header: &str, name: &str) -> bool {
    header.get(..10).is_some_and(|prefix| prefix.eq_ignore_ascii_case("mcp-param-"))
        && header.get(10..).is_some_and(|rest| rest.eq_ignore_ascii_case(name))
}

/// An argument as a header value: texts as they are, numbers and truth values as their JSON.
fn text(value: &Value) -> Option<&str> {
    match &value.kind {
        Kind::String(text) | Kind::Number(text) => Some(text),
        Kind::Bool(true) => Some("true"),
        Kind::Bool(false) => Some("false"),
        Kind::Null | Kind::Array(_) | Kind::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::message::{Json, Limits};

    #[test]
    fn claimed_headers_are_made_from_the_body_and_refused_where_they_differ() {
        let definition = Definition {
            digest: String::new(),
            entry: crate::catalog::Tool::default(),
            takes_text: true,
            headers: vec![("region".to_owned(), "Region".to_owned())],
            only_as_task: false,
        };
        let body = |text: &'static str| Json::parse(text.into(), Limits::default()).unwrap();
        let north = body(r#"{"region":"north"}"#);
        let header = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let made = |sent| made(&definition, Some(north.root()), sent);
        let wanted = header("Mcp-Param-Region", "north");
        assert_eq!(made(Some(header("mcp-param-region", "north"))).unwrap(), wanted);
        assert_eq!(made(None).unwrap(), wanted, "standard input has no headers to check");
        assert!(made(Some(header("mcp-param-region", "south"))).unwrap_err().contains("differs"));
        assert!(made(Some(Vec::new())).unwrap_err().contains("missing"));
        let other = made(Some([header("mcp-param-region", "north"), header("mcp-param-x", "1")].concat())).unwrap();
        assert_eq!(other, [wanted, header("mcp-param-x", "1")].concat());
        let empty = body("{}");
        assert!(super::made(&definition, Some(empty.root()), Some(header("mcp-param-region", "a"))).is_err());
    }
}

//! `Mcp-Param-*` headers of the modern protocol (2026-07-28): arguments that travel as headers too.

use super::call::Call;
use super::judged::arguments;
use super::route::Forwarded;
use super::tools::Definition;
use crate::message::json::Kind;
use crate::message::{Span, Value};

/// Whether the headers that the tool's schema claims say what the body says. Never judge by a header: this only refuses.
///
/// # Errors
/// Which header is missing or differs.
pub fn check(definition: &Definition, body: Option<&Value>, sent: &[(String, String)]) -> Result<(), String> {
    for (argument, name) in &definition.headers {
        let header = sent.iter().find(|(sent, _)| is_for(sent, name));
        let value = body.and_then(|a| a.get(argument)).and_then(text);
        match (value, header) {
            (None, None) => {}
            (Some(value), Some((_, header))) if value == header => {}
            (Some(_), None) => return Err(format!("header Mcp-Param-{name} is missing")),
            (None, Some(_)) => return Err(format!("header Mcp-Param-{name} names an argument that the body lacks")),
            (Some(_), Some(_)) => return Err(format!("header Mcp-Param-{name} differs from the body")),
        }
    }
    Ok(())
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

//! The members of one JSON object without a tree: where each stands, the rest skipped.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json::Span;
use super::keys;

/// The members of an executor's object, in order, each value as it came; only of one in which no parser finds another
/// member than the next: no key stands twice, and none could be taken for one of `known` that it is not.
///
/// # Errors
/// What is wrong, in plain English.
pub fn object<'a>(text: &'a str, known: &[&str]) -> Result<Vec<(String, &'a str)>, String> {
    let mut found: Vec<(String, &str)> = Vec::new();
    members(text, |key, span| found.push((key, text.get(span.start..span.end).unwrap_or_default())))
        .map_err(|_| "it is no JSON object that can be read".to_owned())?;
    match keys::confusable_in(&found, |(key, _)| key, known) {
        Some((key, _)) => Err(format!("the key {key:?} stands twice, or could be taken for another")),
        None => Ok(found),
    }
}

/// Calls `visit` with the unescaped key and the span of each member of the object that `text` is. Skips over values
/// iteratively, so that depth costs no stack.
///
/// # Errors
/// `text` is not one JSON object.
pub fn members(text: &str, visit: impl FnMut(String, Span)) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_map(Members { base: text.as_ptr().addr(), visit })?;
    reader.end()
}

/// The span of the only member of that name; none if it is absent, stands twice, or `text` is no object.
pub fn member(text: &str, name: &str) -> Option<Span> {
    let mut found = Vec::new();
    members(text, |key, span| {
        if key == name {
            found.push(span);
        }
    })
    .ok()?;
    match found.as_slice() {
        [span] => Some(*span),
        _ => None,
    }
}

struct Members<F> {
    /// Where the text begins in memory: a borrowed raw value tells its place by its address.
    base: usize,
    visit: F,
}

impl<'de, F: FnMut(String, Span)> Visitor<'de> for Members<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON-RPC message")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some((key, value)) = map.next_entry::<String, &'de RawValue>()? {
            let start = value.get().as_ptr().addr() - self.base;
            (self.visit)(key, Span { start, end: start + value.get().len() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn finds_the_places() {
        let text = r#" { "a" : [1, 2] , "\u0062":"x" } "#;
        let span = member(text, "a").unwrap();
        assert_eq!(&text[span.start..span.end], "[1, 2]");
        let span = member(text, "b").unwrap();
        assert_eq!(&text[span.start..span.end], "\"x\"");
        assert_eq!(member(r#"{"a":1,"a":2}"#, "a"), None);
        assert_eq!(member("[]", "a"), None);
    }

    #[test]
    fn an_object_that_two_parsers_read_differently_is_refused() {
        let known = ["tools"];
        let read = object(r#"{"tools":[1,{"a":1,"a":2}],"more":1e999}"#, &known).unwrap();
        assert_eq!(read, [("tools".to_owned(), r#"[1,{"a":1,"a":2}]"#), ("more".to_owned(), "1e999")]);
        for text in [
            r#"{"tools":[],"tools":[]}"#,
            r#"{"tools":[],"to\u006fls":[]}"#,
            r#"{"tools":[],"Tools":[]}"#,
            r#"{"TOOLS":[]}"#,
            r#"{"tool\u017f":[]}"#,
            r#"{"a":1,"A":2}"#,
            r#"{"\ud800":1}"#,
            "[]",
            "{}{}",
        ] {
            object(text, &known).expect_err(text);
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(member(&deep, "a").unwrap().end, 5 + 2_000_000);
    }
}

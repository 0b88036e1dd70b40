//! The members of one JSON object without a tree: where each stands, the rest skipped.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::json::Span;

/// Calls `visit` with the unescaped key and the span of each member of the object that `text` is. Skips over values
/// iteratively, so that depth costs no stack.
///
/// # Errors
/// `text` is not one JSON object.
pub(super) fn members(text: &str, visit: impl FnMut(String, Span)) -> Result<(), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_map(Members { base: text.as_ptr().addr(), visit })?;
    reader.end()
}

/// The span of the only member of that name; none if it is absent, stands twice, or `text` is no object.
pub(super) fn member(text: &str, name: &str) -> Option<Span> {
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
    fn depth_costs_no_stack() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(member(&deep, "a").unwrap().end, 5 + 2_000_000);
    }
}

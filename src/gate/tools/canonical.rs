//! One text for all spellings of a definition, so that only a real change changes its digest.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// How deep objects and arrays may be nested.
const DEPTH: usize = 64;

/// Keys sorted, strings unescaped and written in one way, the text of numbers kept, blanks gone. None of a text that two
/// parsers could read differently: a key that stands twice in one object or holds a NUL, half of a surrogate pair, a
/// nesting that only some follow.
pub fn canonical(raw: &str) -> Option<String> {
    let mut text = String::with_capacity(raw.len());
    write(raw, 0, &mut text)?;
    Some(text)
}

/// `sha256:…` of a text.
pub fn digest(text: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(text.as_bytes())))
}

fn write(raw: &str, depth: usize, into: &mut String) -> Option<()> {
    let raw = raw.trim();
    match raw.as_bytes().first()? {
        b'{' | b'[' if depth >= DEPTH => return None,
        b'{' => list('{', '}', members(raw)?, into, |(key, value), into| {
            into.push_str(&Value::from(key).to_string());
            into.push(':');
            write(value.get(), depth + 1, into)
        })?,
        b'[' => list('[', ']', serde_json::from_str::<Vec<&RawValue>>(raw).ok()?, into, |element, into| {
            write(element.get(), depth + 1, into)
        })?,
        b'"' => into.push_str(&Value::from(serde_json::from_str::<String>(raw).ok()?).to_string()),
        _ => into.push_str(raw),
    }
    Some(())
}

fn list<T>(
    open: char,
    close: char,
    items: Vec<T>,
    into: &mut String,
    mut one: impl FnMut(T, &mut String) -> Option<()>,
) -> Option<()> {
    into.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            into.push(',');
        }
        one(item, into)?;
    }
    into.push(close);
    Some(())
}

/// The members by their keys.
fn members(raw: &str) -> Option<Vec<(String, &RawValue)>> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(String, &'de RawValue)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }
    let mut members = serde_json::Deserializer::from_str(raw).deserialize_map(Members).ok()?;
    members.sort_by(|a, b| a.0.cmp(&b.0));
    let twice = members.iter().zip(members.iter().skip(1)).any(|(a, b)| a.0 == b.0);
    let cut = members.iter().any(|(key, _)| key.contains('\0'));
    (!twice && !cut).then_some(members)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn text(raw: &str) -> String {
        canonical(raw).unwrap()
    }

    #[test]
    fn spellings_of_one_definition_are_one_text() {
        let one = text(r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{},"b":{}}}}"#);
        let other = " { \"inputSchema\": {\"properties\":{\"\\u0062\":{},\"a\":{ }},\"type\":\"object\"},\n\"name\":\"\\u0074\" }";
        assert_eq!(one, text(other));
        assert_eq!(one, r#"{"inputSchema":{"properties":{"a":{},"b":{}},"type":"object"},"name":"t"}"#);
    }

    #[test]
    fn whatever_a_client_could_read_otherwise_is_another_text() {
        let good = text(r#"{"description":"good","n":9007199254740993}"#);
        for other in [
            r#"{"description":"good","n":9007199254740992}"#,
            r#"{"description":"good","n":9007199254740993.0}"#,
            r#"{"description":"good ","n":9007199254740993}"#,
            r#"{"description":"good\u200b","n":9007199254740993}"#,
        ] {
            assert_ne!(good, text(other), "{other}");
        }
        for none in [
            r#"{"description":"evil","description":"good"}"#,
            r#"{"a":[{"b":1,"\u0062":2}]}"#,
            r#"{"a":"\ud800"}"#,
            r#"{"\udc00":1}"#,
            r#"{"a\u0000":1}"#,
        ] {
            assert_eq!(canonical(none), None, "{none}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = |times: usize| format!("{}{}", "[".repeat(times), "]".repeat(times));
        assert_eq!(canonical(&deep(100_000)), None);
        assert_eq!(text(&deep(DEPTH)), deep(DEPTH));
    }
}

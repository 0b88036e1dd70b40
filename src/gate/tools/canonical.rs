//! One text for all spellings of a definition, so that only a real change changes its digest.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// How deep objects and arrays are sorted; what lies deeper counts as it was sent.
const DEPTH: usize = 64;

/// Keys sorted, strings unescaped and written in one way, the text of numbers and every repeated key kept, blanks gone.
pub fn canonical(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    write(raw, 0, &mut text);
    text
}

/// `sha256:…` of a text.
pub fn digest(text: &str) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(text.as_bytes())))
}

fn write(raw: &str, depth: usize, into: &mut String) {
    let raw = raw.trim();
    let read = match raw.as_bytes().first() {
        _ if depth >= DEPTH => None,
        Some(b'{') => members(raw).map(|mut members| {
            members.sort_by(|a, b| a.0.cmp(&b.0));
            list('{', '}', members, into, |(key, value), into| {
                into.push_str(&Value::from(key).to_string());
                into.push(':');
                write(value.get(), depth + 1, into);
            });
        }),
        Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(raw).ok().map(|elements| {
            list('[', ']', elements, into, |element, into| write(element.get(), depth + 1, into));
        }),
        Some(b'"') => {
            serde_json::from_str::<String>(raw).ok().map(|text| into.push_str(&Value::from(text).to_string()))
        }
        _ => None,
    };
    if read.is_none() {
        into.push_str(raw);
    }
}

fn list<T>(open: char, close: char, items: Vec<T>, into: &mut String, mut one: impl FnMut(T, &mut String)) {
    into.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            into.push(',');
        }
        one(item, into);
    }
    into.push(close);
}

/// All members, also those whose key stands twice: what one parser takes, another does not.
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
    serde_json::Deserializer::from_str(raw).deserialize_map(Members).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_definition_are_one_text() {
        let one = canonical(r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{},"b":{}}}}"#);
        let other = " { \"inputSchema\": {\"properties\":{\"\\u0062\":{},\"a\":{ }},\"type\":\"object\"},\n\"name\":\"\\u0074\" }";
        assert_eq!(one, canonical(other));
        assert_eq!(one, r#"{"inputSchema":{"properties":{"a":{},"b":{}},"type":"object"},"name":"t"}"#);
    }

    #[test]
    fn whatever_a_client_could_read_otherwise_is_another_text() {
        let text = canonical(r#"{"description":"good","n":9007199254740993}"#);
        for other in [
            r#"{"description":"evil","description":"good","n":9007199254740993}"#,
            r#"{"description":"good","description":"evil","n":9007199254740993}"#,
            r#"{"description":"good","n":9007199254740992}"#,
            r#"{"description":"good","n":9007199254740993.0}"#,
            r#"{"description":"good ","n":9007199254740993}"#,
            r#"{"description":"good\u200b","n":9007199254740993}"#,
        ] {
            assert_ne!(text, canonical(other), "{other}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(canonical(&deep), deep);
    }
}

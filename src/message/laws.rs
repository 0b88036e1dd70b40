//! Laws of the message room, held against random texts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use bytes::Bytes;
use proptest::prelude::*;

use super::{Json, Limits, Message};

/// White space as JSON has it.
fn space() -> impl Strategy<Value = String> {
    "[ \t\r\n]{0,2}"
}

/// The text of a string, with escapes where none are needed.
fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[a-z0-9é漢]",
        1 => Just("\\/".to_owned()),
        1 => Just("\\n".to_owned()),
        1 => Just("\\u0061".to_owned()),
        1 => Just("\\ud83d\\ude00".to_owned()),
    ];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<u64>().prop_map(|n| n.to_string()),
        any::<i64>().prop_map(|n| n.to_string()),
        "-?(0|[1-9][0-9]{0,30})\\.[0-9]{1,30}([eE][+-]?[0-9]{1,2})?",
    ]
}

/// JSON texts whose keys are unique.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![string(), number(), Just("null".to_owned()), Just("true".to_owned())];
    leaf.prop_recursive(4, 40, 5, |inner| {
        let spaced = (space(), inner, space()).prop_map(|(before, value, after)| before + &value + &after).boxed();
        prop_oneof![
            prop::collection::vec(spaced.clone(), 0..5).prop_map(|all| format!("[{}]", all.join(","))),
            prop::collection::vec((string(), spaced), 0..5).prop_map(|all| object(&numbered(&all))),
        ]
    })
}

/// Makes the keys unique.
fn numbered(members: &[(String, String)]) -> Vec<(String, String)> {
    (0..).zip(members).map(|(i, (key, value))| (format!("\"{i}{}", &key[1..]), value.clone())).collect::<Vec<_>>()
}

fn object(members: &[(String, String)]) -> String {
    let members: Vec<String> = members.iter().map(|(key, value)| format!("{key}:{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn limits() -> Limits {
    Limits::default()
}

fn canonical(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Json::parse(Bytes::copy_from_slice(text.as_bytes()), limits()).unwrap().root().write_canonical(&mut out);
    out
}

proptest! {
    #[test]
    fn another_id_changes_nothing_else(before in space(), id in 0..u32::MAX, params in value(), last in any::<bool>()) {
        let params = format!("{{\"arguments\":{{\"v\":{params}}},\"name\":\"t\"}}");
        let with = |id: &str| match last {
            true => format!("{before}{{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{params} ,\"id\" :{id}}}\n"),
            false => format!("{{\"id\":{id}, \"params\":{before}{params},\"jsonrpc\":\"2.0\",\"method\":\"tools/call\"}}"),
        };
        let text = Bytes::from(with(&id.to_string()));
        for message in [Message::strict(text.clone(), limits()).unwrap(), Message::framed(text.clone()).unwrap()] {
            prop_assert_eq!(message.with_id("\"new\""), with("\"new\""));
            prop_assert_eq!(message.with_id(message.id().unwrap()), text.clone());
            prop_assert_eq!(message.params(), Some(&*params));
        }
    }

    #[test]
    fn what_is_accepted_every_parser_accepts(text in value(), cut in any::<prop::sample::Index>(), put in "[{}\\[\\]\",:0e\\\\ -]?") {
        let at = (0..=cut.index(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let broken = format!("{}{put}{}", &text[..at], &text[at..]);
        for text in [text, broken] {
            if let Ok(json) = Json::parse(Bytes::copy_from_slice(text.as_bytes()), limits()) {
                let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
                let ours: serde_json::Value = serde_json::from_slice(&canonical(&text)).unwrap();
                prop_assert_eq!(theirs, ours);
                prop_assert_eq!(json.text(json.root().span), text.trim());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_never_a_surprise(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let bytes = Bytes::from(bytes);
        let accepted = Json::parse(bytes.clone(), limits()).is_ok();
        prop_assert!(!accepted || serde_json::from_slice::<serde_json::Value>(&bytes).is_ok());
        let _ = Message::framed(bytes);
    }

    #[test]
    fn the_canonical_form_knows_no_order(
        members in prop::collection::vec((string(), value()), 0..6).prop_map(|m| numbered(&m)),
    ) {
        let mut other = members.clone();
        other.reverse();
        prop_assert_eq!(canonical(&object(&members)), canonical(&object(&other)));
        let form = canonical(&object(&members));
        prop_assert_eq!(canonical(std::str::from_utf8(&form).unwrap()), form);
    }
}

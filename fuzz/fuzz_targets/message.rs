//! Bytes from a client or an executor: they are refused, or read as every other reader of JSON reads them.
#![no_main]

use std::borrow::Cow;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use portcullis::message::{Json, Limits, Message, sse};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The envelope as a reader that we did not write sees it; it refuses what stands twice.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

fuzz_target!(|data: &[u8]| {
    strict(data);
    canonical(data);
    framed(data);
    events(data);
});

fn strict(data: &[u8]) {
    let message = match Message::strict(Bytes::copy_from_slice(data), Limits::default()) {
        Ok(message) => message,
        Err(refusal) => return is_json(&refusal.reply()),
    };
    let other: Envelope<'_> = serde_json::from_slice(data).expect("what is taken is an envelope to every reader");
    assert_eq!(other.method.as_deref().unwrap_or_default(), message.method());
    assert_eq!(other.id.map(RawValue::get), message.id());
    // A reader that knows `null` as nothing sees no parameters there.
    assert_eq!(other.params.map(RawValue::get), message.params().filter(|params| *params != "null"));

    let executors = Message::framed(message.bytes().clone()).expect("executors' messages are read no stricter");
    assert_eq!(
        (executors.kind(), executors.method(), executors.id(), executors.params()),
        (message.kind(), message.method(), message.id(), message.params())
    );

    let renamed = Message::strict(message.with_id("\"other\""), Limits::default()).expect("a message under another id");
    assert_eq!(renamed.id().is_some(), message.id().is_some());
    assert!(renamed.id().is_none_or(|id| id == "\"other\""));
    assert_eq!((renamed.method(), renamed.params()), (message.method(), message.params()));
}

/// The form that approvals are bound to says the same, and has one spelling.
fn canonical(data: &[u8]) {
    let written = |json: &Json| {
        let mut bytes = Vec::new();
        json.root().write_canonical(&mut bytes);
        bytes
    };
    let Ok(json) = Json::parse(Bytes::copy_from_slice(data), Limits::default()) else { return };
    let once = written(&json);
    let again = Json::parse(once.clone().into(), Limits::default()).expect("the canonical form is JSON");
    assert_eq!(json.root().to_serde(), again.root().to_serde());
    assert_eq!(once, written(&again));
}

fn framed(data: &[u8]) {
    match Message::framed(Bytes::copy_from_slice(data)) {
        Ok(message) => assert!(std::str::from_utf8(&message.with_id("7")).is_ok()),
        Err(refusal) => is_json(&refusal.reply()),
    }
}

/// Events are the same wherever the bytes are cut, and survive being written again.
fn events(data: &[u8]) {
    let decode = |chunks: &[&[u8]]| {
        let mut decoder = sse::Decoder::new(1 << 20);
        chunks.iter().flat_map(|chunk| decoder.push(chunk).expect("no event is that long")).collect::<Vec<_>>()
    };
    let whole = decode(&[data]);
    let (one, other) = data.split_at(data.first().map_or(0, |first| usize::from(*first) % (data.len() + 1)));
    assert_eq!(whole, decode(&[one, other]));
    for event in whole.iter().filter(|event| !event.data.is_empty() && !event.data.contains(&b'\n')) {
        let written = sse::event_bytes(event.id.as_deref(), &event.data);
        assert!(decode(&[&written]).iter().any(|read| read.data == event.data));
    }
}

fn is_json(bytes: &[u8]) {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).expect("a reply is JSON");
}

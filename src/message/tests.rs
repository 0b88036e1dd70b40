//! The envelope's rules, with the cases they come from.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use bytes::Bytes;

use super::{Kind, Limits, Malformed, Message, id_key};

fn strict(text: &str) -> Result<Message, Malformed> {
    Message::strict(Bytes::copy_from_slice(text.as_bytes()), Limits::default())
}

fn framed(text: &str) -> Result<Message, Malformed> {
    Message::framed(Bytes::copy_from_slice(text.as_bytes()))
}

fn call(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

#[test]
fn tells_the_kinds_apart() {
    for (text, kind) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, Kind::Request),
        (r#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}"#, Kind::Request),
        (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, Kind::Notification),
        (r#"{"jsonrpc":"2.0","id":-1,"result":{}}"#, Kind::Response),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#, Kind::Response),
    ] {
        assert_eq!(strict(text).unwrap().kind(), kind, "{text}");
        assert_eq!(framed(text).unwrap().kind(), kind, "{text}");
    }
}

#[test]
fn refuses_what_is_no_message_of_a_client() {
    for (text, code, id, what) in [
        ("{", -32700, "null", "key"),
        ("[]", -32600, "null", "batches"),
        ("1", -32600, "null", "object"),
        (r#"{"id":1,"method":"ping"}"#, -32600, "1", "jsonrpc"),
        (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, -32600, "1", "jsonrpc"),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, "null", "`id`"),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"ping"}"#, -32600, "null", "`id`"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, "null", "`id`"),
        (r#"{"jsonrpc":"2.0","id":"x","method":1}"#, -32600, "\"x\"", "`method`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":""}"#, -32600, "1", "`method`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call\u0000"}"#, -32600, "1", "control"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32602, "1", "`params`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#, -32602, "1", "`params`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, -32600, "1", "either"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, -32600, "1", "either"),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, "1", "either"),
        (r#"{"jsonrpc":"2.0","result":{}}"#, -32600, "null", "missing"),
        (r#"{"jsonrpc":"2.0","id":1,"error":7}"#, -32600, "1", "`error`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"x","params":{"name":"a"}}"#, -32600, "1", "Method"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","ID":2}"#, -32600, "1", "ID"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","paramſ":{}}"#, -32600, "1", "params|ſ"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","extra":1,"Extra":2}"#, -32600, "1", "xtra"),
        (&call(r#"{"name":"a","Name":"b"}"#), -32600, "1", "Name"),
        (&call(r#"{"name":"a","Arguments":{}}"#), -32600, "1", "Arguments"),
        (&call(r#"{"name":"a","_META":{}}"#), -32600, "1", "_META"),
        (&call(r#"{"name":"a","_meta":{"ProgressToken":1}}"#), -32600, "1", "ProgressToken"),
        (&call(r#"{"name":"a","_meta":{"Dev.Portcullis/Source":"background"}}"#), -32600, "1", "Source"),
        (&call(r#"{"name":"a","_meta":{"dev.portcullis/DEPTH":"sub"}}"#), -32600, "1", "DEPTH"),
        (&call(r#"{"name":"a","_meta":[]}"#), -32602, "1", "_meta"),
        (&call(r#"{"name":"a","_meta":null}"#), -32602, "1", "_meta"),
        (&call(r#"{"name":"a","_meta":"x"}"#), -32602, "1", "_meta"),
        (&call(r#"{"name":"a","arguments":{"path":"x","Path":"y"}}"#), -32600, "1", "ath"),
        (&call(r#"{"name":"a","arguments":{"l":[{"é":1,"e\u0301":2}]}}"#), -32600, "1", "e"),
        (r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#, -32600, "null", "`id`"),
        (r#"{"jsonrpc":"2.0","method":"resources/read","params":{"uri":"file:///x"}}"#, -32600, "null", "`id`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}"#, -32600, "1", "`id`"),
        (&call(r#"{"name":["a"]}"#), -32602, "1", "params.name"),
        (&call(r#"{}"#), -32602, "1", "params.name"),
        (&call(r#"{"name":"a\u0000"}"#), -32602, "1", "NUL"),
        (&call(r#"{"name":"a","arguments":[]}"#), -32602, "1", "arguments"),
        (&call(r#"{"name":"a","arguments":{"n":1e999}}"#), -32700, "1", "double"),
        (&call(r#"{"name":"a","arguments":{"n":{"x":1,"\u0078":2}}}"#), -32700, "1", "twice"),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, -32700, "null", "twice"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":5}}"#, -32602, "1", "params.uri"),
    ] {
        let error = strict(text).expect_err(text);
        assert_eq!((error.code, error.id.as_str()), (code, id), "{text}: {error}");
        assert!(what.split('|').any(|w| error.what.contains(w)), "{text}: {error}");
    }
}

#[test]
fn accepts_what_only_looks_odd() {
    for params in [
        r#"{"name":"a","arguments":{"path":"docs/a.md","note":{"path":"x","inner":{"path":"y"}}}}"#,
        r#"{"name":"a","arguments":{"path":"docs\/\ud83d\ude00.md"},"vendor":null}"#,
        r#"{"name":"a"}"#,
    ] {
        strict(&format!("  {}\r\n", call(params))).expect(params);
    }
}

#[test]
fn the_cases_of_malformed_json() {
    let cases = include_str!("../../tests/cases/json.jsonl");
    for line in cases.lines() {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(raw) = case["call_raw"].as_str() else { continue };
        match (&case["expect"], case["benign"] == true) {
            (_, true) => drop(strict(raw).expect(line)),
            (expect, _) if expect == "reject-as-malformed" => drop(strict(raw).expect_err(line)),
            _ => {}
        }
    }
}

#[test]
fn an_executors_message_is_only_framed() {
    let text = "{\"x\":{\"a\":1,\"a\":2},\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"n\":123456789012345678901234567890,\
                \"_meta\":{}},\"x\":\"\\ud800\"}\n";
    let message = framed(text).unwrap();
    assert_eq!(message.result(), Some("{\"n\":123456789012345678901234567890,\"_meta\":{}}"));
    assert_eq!(message.with_id("\"z\""), text.replace("\"id\":7", "\"id\":\"z\""));
    let answer = framed(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#).unwrap();
    assert_eq!((answer.kind(), answer.error()), (Kind::Response, None));
    let lost = framed(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#).unwrap();
    assert_eq!((lost.kind(), lost.id()), (Kind::Response, None));
    for garbage in [
        "",
        "hello",
        "[]",
        "null",
        r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"\u0072esult":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"Result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"ID":2,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"re\u017fult":{}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}{}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"#,
    ] {
        framed(garbage).expect_err(garbage);
    }
    Message::framed(Bytes::from_static(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}")).expect_err("not UTF-8");
}

#[test]
fn finds_tokens_and_versions_in_both_kinds_of_message() {
    let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":
        {"progressToken" : "a\u0062", "io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":7}}"#;
    for read in [strict, framed] {
        let message = read(request).unwrap();
        let (span, raw) = message.progress_token().unwrap();
        assert_eq!(raw, "\"a\\u0062\"");
        assert_eq!(message.meta_version().as_deref(), Some("2026-07-28"));
        assert_eq!(message.string_at(&["params", "name"]).as_deref(), Some("t"));
        assert_eq!(message.at(&["params", "none"]), None);
        let edits = [(span, "42".to_owned()), (message.id_span().unwrap(), "9".to_owned())];
        let spliced = message.spliced(&edits);
        assert_eq!(spliced, request.replace("\"a\\u0062\"", "42").replace("\"id\":1", "\"id\":9"));
        assert_eq!(read(progress).unwrap().progress_token().unwrap().1, "7");
    }
    let twice = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progressToken":2}}"#;
    assert_eq!(framed(twice).unwrap().progress_token(), None);
}

#[test]
fn an_id_is_the_same_however_it_is_spelled() {
    for (one, other) in [(r#""ab""#, r#""\u0061b""#), (r#""/""#, r#""\/""#), ("0", "-0"), ("7", "7")] {
        assert_eq!(id_key(one), id_key(other), "{one} {other}");
    }
    for (one, other) in [("7", r#""7""#), (r#""a""#, r#""A""#), ("7", "70"), (r#""a\"""#, r#""a""#)] {
        assert_ne!(id_key(one), id_key(other), "{one} {other}");
    }
}

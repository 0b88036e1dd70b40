//! Bad input from either side: the reply that the protocol names, and no effect on any other call.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, MODERN, about, text};
use crate::harness::gateway::{Gateway, Home};
use crate::harness::http::{Answer, Http};
use crate::harness::peers;

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: all-tools, verdict: allow, tool: '*' }
      - { name: docs, verdict: allow, tool: '@fs_read', path: docs/ }
";

fn home() -> Home {
    Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }))
}

/// Posts bytes as they are, with the usual headers and these instead or besides.
async fn post(gateway: &Gateway, path: &str, headers: &[(&str, &str)], body: impl Into<bytes::Bytes>) -> Answer {
    let usual = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")];
    let mut all: Vec<(&str, &str)> =
        usual.iter().filter(|(name, _)| !headers.iter().any(|(n, _)| n == name)).copied().collect();
    all.extend(headers.iter().filter(|(_, value)| !value.is_empty()));
    Http::new().send(Method::POST, &format!("{}{path}", gateway.mcp), &all, body.into()).await
}

async fn code(answer: Answer) -> (u16, i64) {
    let status = answer.status;
    let body = answer.json().await;
    (status, body["error"]["code"].as_i64().unwrap_or_default())
}

/// A modern call of `read_file`, whose body this may change.
fn modern_call(change: impl FnOnce(&mut Value)) -> String {
    let mut call = json!({
        "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": { "name": "read_file", "arguments": { "path": "docs/a.md" }, "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {},
        } },
    });
    change(&mut call);
    call.to_string()
}

const MODERN_HEADERS: [(&str, &str); 3] =
    [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "read_file")];

#[tokio::test]
async fn what_is_not_one_json_rpc_message_is_refused() {
    let home = home();
    let gateway = home.serve();
    for (body, expected) in [
        ("{", -32700),
        ("", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} x", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"method\":\"b\"}", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
        ("[]", -32600),
        ("\"text\"", -32600),
    ] {
        let answer = post(&gateway, "/mcp/work", &MODERN_HEADERS, body).await;
        let (status, code) = code(answer).await;
        assert_eq!(status, 400, "{body}");
        // What is at fault in one text may be named either way.
        assert!(code == expected || [-32700, -32600].contains(&code), "{body}: {code}");
    }
    let deep =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{}{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(post(&gateway, "/mcp/work", &MODERN_HEADERS, deep).await.status, 400);
}

#[tokio::test]
async fn headers_are_checked_against_the_body() {
    let home = home();
    let gateway = home.serve();
    let good = post(&gateway, "/mcp/work", &MODERN_HEADERS, modern_call(|_| {})).await;
    assert_eq!(good.status, 200);
    for wrong in [
        ("mcp-method", "tools/list"),
        ("mcp-name", "write_file"),
        ("mcp-method", ""),
        ("mcp-name", ""),
        ("mcp-protocol-version", "2025-11-25"),
    ] {
        let headers: Vec<(&str, &str)> =
            MODERN_HEADERS.iter().map(|header| if header.0 == wrong.0 { wrong } else { *header }).collect();
        assert_eq!(
            code(post(&gateway, "/mcp/work", &headers, modern_call(|_| {})).await).await,
            (400, -32020),
            "{wrong:?}"
        );
    }
    let no_capabilities = modern_call(|call| {
        call["params"]["_meta"]
            .as_object_mut()
            .expect("an object")
            .remove("io.modelcontextprotocol/clientCapabilities");
    });
    assert_eq!(code(post(&gateway, "/mcp/work", &MODERN_HEADERS, no_capabilities).await).await, (400, -32602));
    let version = "2031-01-01";
    let future =
        modern_call(|call| call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(version));
    let headers = [("mcp-protocol-version", version), ("mcp-method", "tools/call"), ("mcp-name", "read_file")];
    assert_eq!(code(post(&gateway, "/mcp/work", &headers, future).await).await, (400, -32022));
}

#[tokio::test]
async fn strangers_are_turned_away() {
    let home = home();
    let gateway = home.serve();
    for (header, status) in [
        (("origin", "https://evil.example"), 403),
        (("host", "evil.example"), 403),
        (("content-type", "text/plain"), 415),
    ] {
        let headers: Vec<(&str, &str)> = MODERN_HEADERS.iter().copied().chain([header]).collect();
        assert_eq!(post(&gateway, "/mcp/work", &headers, modern_call(|_| {})).await.status, status, "{header:?}");
    }
    assert_eq!(post(&gateway, "/mcp/nowhere", &MODERN_HEADERS, modern_call(|_| {})).await.status, 404);
    let legacy = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    assert_eq!(post(&gateway, "/mcp/work", &[("mcp-session-id", "ses_none")], legacy.clone()).await.status, 404);
    assert_eq!(post(&gateway, "/mcp/work", &[], legacy).await.status, 400);
    let big = modern_call(|call| call["params"]["arguments"]["path"] = json!("x".repeat(5 << 20)));
    assert_eq!(post(&gateway, "/mcp/work", &MODERN_HEADERS, big).await.status, 413);
    // An agent's side is never the approvers', and the other way round.
    assert_eq!(Http::new().send(Method::GET, &format!("{}/api/v1/approvals", gateway.mcp), &[], "").await.status, 404);
    assert_eq!(
        Http::new().send(Method::GET, &format!("{}/api/v1/approvals", gateway.admin), &[], "").await.status,
        401
    );
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_of_the_protocol() {
    let home = home();
    let gateway = home.serve();
    let legacy = Agent::legacy(&gateway.url("work")).await;
    let modern = Agent::modern(&gateway.url("work"));
    // (A name that a header cannot carry as it is travels encoded in the modern era; the legacy one has no such header.)
    for (agent, name) in [(&legacy, "none"), (&modern, "none"), (&legacy, "read_file "), (&legacy, "r\u{435}ad_file")] {
        let reply = agent.call(3, name, json!({})).await;
        assert_eq!(reply["error"]["code"], -32602, "{name}: {reply}");
    }
}

/// Clients that stop in the middle: nobody else notices.
#[tokio::test]
async fn slow_and_half_closed_clients_harm_nobody() {
    let home = home();
    let gateway = home.serve();
    let address = gateway.mcp.trim_start_matches("http://").to_owned();
    let connect = || TcpStream::connect(&address).expect("it listens");
    let head = "POST /mcp/work HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 4000\r\n\r\n{\"jsonrpc\"";
    let mut slow: Vec<TcpStream> = (0..50).map(|_| connect()).collect();
    for (at, stream) in slow.iter_mut().enumerate() {
        stream.write_all(&head.as_bytes()[..head.len() - at]).expect("written");
    }
    let mut half = connect();
    half.write_all(head.as_bytes()).expect("written");
    half.shutdown(Shutdown::Write).expect("half closed");
    let mut garbage = connect();
    garbage.write_all(b"\x16\x03\x01 not http at all\r\n\r\n").expect("written");
    let agent = Agent::legacy(&gateway.url("work")).await;
    let read = agent.call(1, "read_file", json!({ "path": "docs/a.md" })).await;
    assert!(text(&read).contains("hello from a"), "{read}");
    half.set_read_timeout(Some(Duration::from_secs(15))).expect("a timeout");
    let mut said = String::new();
    let _ = half.read_to_string(&mut said);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    let _ = garbage.set_read_timeout(Some(Duration::from_secs(15)));
    let mut said = String::new();
    let _ = garbage.read_to_string(&mut said);
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    drop(slow);
    let read = agent.call(2, "read_file", json!({ "path": "docs/a.md" })).await;
    assert!(text(&read).contains("hello from a"), "{read}");
}

/// Faults of an upstream: its own calls fail in words; another upstream's call, running all the while, does not notice.
#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_breaks_fails_its_own_calls_only() {
    let home = Home::new(POLICY, json!({}));
    let runs = home.base().join("runs.txt");
    let counter = peers::fixture("counter.py", &[&runs.to_string_lossy()]);
    let home = home.with(
        "upstreams",
        json!({
            "faulty": { "command": peers::fixture("faulty.py", &[]), "timeout": "2s", "new_tools": "accept" },
            "gone": { "command": ["/nonexistent/server"], "new_tools": "accept" },
            "counter": { "command": counter, "new_tools": "accept" },
        }),
    );
    let gateway = home.serve();
    let bystander = Agent::legacy(&gateway.url("counter")).await;
    let beside = {
        let bystander = bystander.clone();
        tokio::spawn(async move { bystander.call(1, "slow", json!({ "n": "beside", "seconds": 4.0 })).await })
    };
    let agent = Agent::legacy(&gateway.url("faulty")).await;
    let fine = agent.call(1, "fine", json!({})).await;
    assert_eq!(text(&fine), "fine");
    for (id, tool) in [(2, "hang"), (3, "wrong_id"), (4, "garbage"), (5, "not_utf8"), (6, "die")] {
        let said_before = gateway.log().len();
        let reply = agent.call(id, tool, json!({})).await;
        assert_eq!(reply["result"]["isError"], true, "{tool}: {reply}");
        assert_eq!(about(&reply)["state"], "failed", "{tool}: {reply}");
        let call = gateway.ended(about(&reply)["call"].as_str().expect("an id")).await;
        assert_eq!((&call["outcome"], &call["may_have_run"]), (&json!("failed"), &json!(true)), "{tool}: {call}");
        let fine = agent.call(100 + id, "fine", json!({})).await;
        assert_eq!(text(&fine), "fine", "after {tool}: {fine}");
        let log = gateway.log().split_off(said_before);
        let blamed = log.lines().any(|line| line.contains("upstream=\"faulty\""));
        assert!(blamed, "{tool}: no line of the log blames the upstream:\n{log}");
    }
    // An error of the upstream's own is passed on as it came.
    let own = agent.call(20, "error", json!({})).await;
    assert_eq!(
        own["error"],
        json!({ "code": -32050, "message": "its own error", "data": { "k": 9_007_199_254_740_993_u64 } })
    );
    let beside = beside.await.expect("the bystander");
    assert_eq!(text(&beside), "counted beside slowly", "{beside}");
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let gone = post(&gateway, "/mcp/gone", &[], hello.to_string()).await;
    let (status, body) = (gone.status, gone.json().await);
    assert!(body["error"]["message"].is_string(), "{status} {body}");
    let log = gateway.log();
    assert!(log.contains("dying as asked"), "what a child says on standard error is in the log:\n{log}");
}

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod server;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::server::Server;
use super::*;
use crate::gate::{Era, Fault, Inbound, Outgoing, Permit};

struct Peer {
    link: Arc<dyn Link>,
    received: mpsc::Receiver<Inbound>,
}

impl Peer {
    async fn open(server: &Server, era: Era) -> Self {
        Self::at(&server.url(), era, None).await
    }

    async fn at(url: &str, era: Era, resume: Option<&str>) -> Self {
        let headers = [("Authorization".to_owned(), Secret::new("Bearer of-the-gateway"))];
        let upstream = HttpUpstream::new("far", url, &headers);
        let (inbound, received) = mpsc::channel(8);
        let version = resume.map(|_| "2025-06-18".to_owned());
        let opening = Opening { agent: "a".to_owned(), era, resume: resume.map(str::to_owned), version, inbound };
        Self { link: upstream.open(opening).await.unwrap(), received }
    }

    /// A legacy session whose handshake is over.
    async fn session(server: &Server) -> Self {
        let mut peer = Self::open(server, Era::Legacy).await;
        peer.send(message(Some(1), "initialize", json!({}))).await.unwrap();
        peer.result(1).await;
        peer.send(message(None, "notifications/initialized", json!({}))).await.unwrap();
        peer
    }

    async fn send(&self, message: Outgoing) -> Result<(), UpstreamError> {
        self.link.send(Permit::for_test(true), message).await
    }

    async fn next(&mut self) -> Inbound {
        let inbound = tokio::time::timeout(Duration::from_secs(10), self.received.recv()).await;
        inbound.expect("something comes").expect("not closed")
    }

    async fn result(&mut self, id: u64) -> Value {
        match self.next().await {
            Inbound::Message { message, related } => {
                assert_eq!((message.id(), related), (Some(&*id.to_string()), Some(id)));
                serde_json::from_str(message.result().or(message.error()).unwrap()).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    async fn failed(&mut self, id: u64) -> UpstreamError {
        match self.next().await {
            Inbound::Failed { id: failed, error } if failed == id => error,
            other => panic!("{other:?}"),
        }
    }
}

fn message(id: Option<u64>, method: &str, params: Value) -> Outgoing {
    let mut body = json!({"jsonrpc": "2.0", "method": method, "params": params});
    if let Some(id) = id {
        body["id"] = id.into();
    }
    Outgoing {
        bytes: body.to_string().into(),
        id,
        method: method.into(),
        name: params["name"].as_str().map(str::to_owned),
        param_headers: vec![],
        version: Some("2026-07-28".into()),
    }
}

#[tokio::test]
async fn a_legacy_session_from_handshake_to_delete() {
    let server = Server::start().await;
    let mut peer = Peer::session(&server).await;
    assert_eq!(peer.link.session().as_deref(), Some("ses-1"));
    match peer.next().await {
        Inbound::Message { message, related: None } => assert_eq!(message.method(), "notifications/message"),
        other => panic!("{other:?}"),
    }
    peer.send(message(Some(2), "stream", json!({}))).await.unwrap();
    for method in ["notifications/progress", "sampling/createMessage"] {
        match peer.next().await {
            Inbound::Message { message, related: Some(2) } => assert_eq!(message.method(), method),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(peer.result(2).await, "streamed");
    peer.link.close().await;

    let seen = server.seen();
    let first = seen.first().unwrap();
    assert_eq!(first.headers["authorization"], "Bearer of-the-gateway");
    assert_eq!(first.headers["accept"], "application/json, text/event-stream");
    assert!(!first.headers.contains_key("mcp-session-id") && !first.headers.contains_key("mcp-protocol-version"));
    for later in &seen[1..] {
        assert_eq!(later.headers["mcp-session-id"], "ses-1", "{later:?}");
        assert_eq!(later.headers["mcp-protocol-version"], "2025-06-18", "{later:?}");
        assert!(!later.headers.contains_key("mcp-method"));
    }
    assert!(seen.iter().any(|seen| seen.http == "GET") && seen.last().unwrap().http == "DELETE");
}

#[tokio::test]
async fn a_session_is_taken_up_again_after_a_restart() {
    let server = Server::start().await;
    let mut peer = Peer::at(&server.url(), Era::Legacy, Some("ses-1")).await;
    assert!(matches!(peer.next().await, Inbound::Message { related: None, .. }), "it listens again");
    peer.send(message(Some(1), "echo", json!("hi"))).await.unwrap();
    assert_eq!(peer.result(1).await, "hi");
    assert_eq!(server.seen().last().unwrap().headers["mcp-session-id"], "ses-1");
}

#[tokio::test]
async fn a_modern_request_carries_its_headers_and_no_session() {
    let server = Server::start().await;
    let mut peer = Peer::open(&server, Era::Modern).await;
    let mut call = message(Some(7), "tools/call", json!({"name": "größe"}));
    call.param_headers = vec![("Mcp-Param-Region".into(), "eu".into())];
    peer.send(call).await.unwrap();
    peer.result(7).await;
    let headers = &server.seen()[0].headers;
    assert_eq!(headers["mcp-method"], "tools/call");
    assert_eq!(headers["mcp-name"], "=?base64?Z3LDtsOfZQ==?=");
    assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
    assert_eq!(headers["mcp-param-region"], "eu");
    peer.link.close().await;
    assert_eq!(server.seen().len(), 1, "there is no session to end");
}

#[tokio::test]
async fn errors_under_an_http_status_pass_as_they_are() {
    let server = Server::start().await;
    let mut peer = Peer::open(&server, Era::Modern).await;
    for (id, method, code) in [(1, "bad-version", -32022), (2, "no-id", -32000), (3, "not-found", -32601)] {
        peer.send(message(Some(id), method, json!({}))).await.unwrap();
        assert_eq!(peer.result(id).await["code"], code);
    }
}

#[tokio::test]
async fn a_bad_answer_fails_its_request_and_no_other() {
    let server = Server::start().await;
    let mut peer = Peer::open(&server, Era::Legacy).await;
    peer.send(message(Some(1), "held", json!({}))).await.unwrap();
    for (id, method, fault, may_have_run) in [
        (2, "garbage", Fault::Garbage, true),
        (3, "wrong-id", Fault::Garbage, true),
        (4, "wrong-id-stream", Fault::Garbage, true),
        (5, "html", Fault::Garbage, true),
        (6, "accepted", Fault::Garbage, true),
        (7, "no-answer", Fault::Garbage, true),
        (8, "too-large", Fault::Garbage, true),
        (9, "ended-stream", Fault::Died, true),
        (10, "broken-body", Fault::Died, true),
        (11, "crash", Fault::Status(500), true),
        (12, "unauthorized", Fault::Status(401), false),
        (13, "moved", Fault::Status(307), false),
        (14, "gone", Fault::Status(404), false),
    ] {
        peer.send(message(Some(id), method, json!({}))).await.unwrap();
        let error = peer.failed(id).await;
        assert_eq!((error.fault, error.may_have_run), (fault, may_have_run), "{method}: {error}");
        assert!(!error.what.contains("of-the-gateway") && error.what.contains("`far`"), "{error}");
    }
    server.release();
    assert_eq!(peer.result(1).await, "held");
}

#[tokio::test]
async fn a_server_that_hangs_up_may_have_run_the_call() {
    let server = Server::start().await;
    let mut peer = Peer::at(&server.hangs_up().await, Era::Legacy, None).await;
    peer.send(message(Some(1), "echo", json!({}))).await.unwrap();
    let error = peer.failed(1).await;
    assert_eq!((error.fault, error.may_have_run), (Fault::Died, true));
}

#[tokio::test]
async fn a_session_that_is_gone_is_told_apart() {
    let server = Server::start().await;
    let mut peer = Peer::at(&server.url(), Era::Legacy, Some("another")).await;
    for (id, method) in [(1, "echo"), (2, "disowned")] {
        peer.send(message(Some(id), method, json!({}))).await.unwrap();
        let error = peer.failed(id).await;
        assert_eq!((error.fault, error.may_have_run), (Fault::SessionGone, false));
    }
    let error = peer.send(message(None, "notifications/x", json!({}))).await.unwrap_err();
    assert_eq!(error.fault, Fault::SessionGone);
}

#[tokio::test]
async fn a_broken_stream_goes_on_where_it_stood() {
    let server = Server::start().await;
    let mut peer = Peer::session(&server).await;
    assert!(matches!(peer.next().await, Inbound::Message { related: None, .. }));
    peer.send(message(Some(2), "resumable", json!({}))).await.unwrap();
    assert!(matches!(peer.next().await, Inbound::Message { related: Some(2), .. }));
    assert_eq!(peer.result(2).await, "resumed");
    let resumed = server.seen().into_iter().rfind(|seen| seen.http == "GET").unwrap();
    assert_eq!(resumed.headers["last-event-id"], "event-5");
}

#[tokio::test]
async fn stopping_tells_a_legacy_server_and_hangs_up_on_a_modern_one() {
    let server = Server::start().await;
    for era in [Era::Legacy, Era::Modern] {
        for method in ["held", "held-stream"] {
            let mut peer = Peer::open(&server, era).await;
            peer.send(message(Some(5), method, json!({}))).await.unwrap();
            server.arrived(method).await;
            peer.link.stop(5, "not needed").await;
            server.dropped().await;
            peer.send(message(Some(6), "echo", json!("next"))).await.unwrap();
            assert_eq!(peer.result(6).await, "next", "nothing comes of what was stopped");
        }
    }
    let cancelled: Vec<_> = server.seen().into_iter().filter(|s| s.method == "notifications/cancelled").collect();
    assert_eq!(cancelled.len(), 2, "only legacy requests are cancelled by message");
    assert_eq!(cancelled[0].params, json!({"requestId": 5, "reason": "not needed"}));
}

#[tokio::test]
async fn connections_are_kept_for_the_next_request() {
    let server = Server::start().await;
    let mut peer = Peer::open(&server, Era::Modern).await;
    for id in 0..20 {
        let method = if id % 2 == 0 { "echo" } else { "stream" };
        peer.send(message(Some(id), method, json!({}))).await.unwrap();
        while !matches!(peer.next().await, Inbound::Message { message, .. } if message.result().is_some()) {}
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn what_cannot_be_reached_has_not_run() {
    let server = Server::start().await;
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/mcp?key=hidden", listener.local_addr().unwrap())
    };
    let no_tls = server.url().replace("http:", "https:");
    for url in [closed, no_tls] {
        let peer = Peer::at(&url, Era::Legacy, None).await;
        for message in [message(Some(1), "echo", json!({})), message(None, "notifications/x", json!({}))] {
            let error = peer.send(message).await.unwrap_err();
            assert_eq!((error.fault, error.may_have_run), (Fault::Unreachable, false), "{error}");
            assert!(!error.what.contains("hidden"), "{error}");
        }
    }
}

#[tokio::test]
async fn what_cannot_work_is_told_when_opened() {
    let secret = |value: &str| vec![("X-Key".to_owned(), Secret::new(value))];
    for (url, headers, want) in [
        ("not a url", vec![], "its `url` is none"),
        ("ftp://x/", vec![], "must start with http:// or https://"),
        ("https://me:pass@x/", vec![], "put the credential under `headers`"),
        ("http://x/", secret("a\nb: hidden"), "characters that no header may have"),
        ("http://x/", vec![("a b".to_owned(), Secret::new("x"))], "is no name of a header"),
    ] {
        let upstream = HttpUpstream::new("far", url, &headers);
        let (inbound, _received) = mpsc::channel(1);
        let opening = Opening { agent: "a".to_owned(), era: Era::Legacy, resume: None, version: None, inbound };
        let error = upstream.open(opening).await.err().unwrap();
        assert!(error.what.contains(want) && !error.what.contains("hidden") && !error.what.contains("pass"), "{error}");
        assert!(!upstream.is_up());
    }
}

#[tokio::test]
async fn secrets_are_not_printed() {
    let upstream = HttpUpstream::new("far", "http://127.0.0.1:9/", &[("X-Key".into(), Secret::new("hidden-key"))]);
    assert!(!format!("{upstream:?}").contains("hidden-key"));
}

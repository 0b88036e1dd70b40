//! Clients of both eras, well and badly behaved, over real sockets.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use super::*;
use crate::listen::fixture::{Fixture, call, initialize, modern, request};
use crate::message::sse;

struct Peer {
    fixture: Fixture,
    http: Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    _shutdown: watch::Sender<bool>,
}

const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");

impl Peer {
    async fn start(extra: &str) -> Self {
        let fixture = Fixture::start(extra).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (shutdown, closing) = watch::channel(false);
        tokio::spawn(serve(listener, Arc::clone(&fixture.gate), closing));
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { fixture, http, address, _shutdown: shutdown }
    }

    async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Response<Incoming> {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json");
        }
        self.http.request(request.body(Full::from(body.to_owned())).unwrap()).await.unwrap()
    }

    /// Status and JSON body (null if there is none).
    async fn post(&self, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
        told(self.send("POST", "/mcp/fake", headers, &body.to_string()).await).await
    }

    async fn session(&self) -> String {
        let begun = self.send("POST", "/mcp/fake", &[BOTH], &initialize().to_string()).await;
        assert_eq!(begun.status(), 200);
        begun.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }
}

async fn told(response: Response<Incoming>) -> (u16, Value) {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

async fn next_event(response: &mut Response<Incoming>, decoder: &mut sse::Decoder) -> Value {
    loop {
        let data = response.frame().await.unwrap().unwrap().into_data().unwrap();
        if let Some(event) = decoder.push(&data).unwrap().first() {
            return serde_json::from_slice(&event.data).unwrap();
        }
    }
}

fn headers_for<'a>(method: &'a str, name: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![BOTH, ("mcp-protocol-version", "2026-07-28"), ("mcp-method", method), ("mcp-name", name)]
}

/// One executor, two sessions: what one was given is unknown to the other.
#[tokio::test]
async fn a_task_is_known_to_whom_it_was_given_only() {
    let peer = Peer::start("").await;
    let (one, other) = (peer.session().await, peer.session().await);
    let ask = async |session: &str, method: &str, params: Value| {
        peer.post(&[BOTH, ("mcp-session-id", session)], &request(7, method, params)).await.1
    };
    let task = |n: u64| json!({"name": "task", "arguments": {"n": n}, "task": {"ttl": 1000}});
    assert_eq!(ask(&one, "tools/call", task(1)).await["result"]["task"]["taskId"], "t1");
    assert_eq!(ask(&other, "tools/call", task(2)).await["result"]["task"]["taskId"], "t2");
    for method in ["tasks/get", "tasks/cancel"] {
        let own = ask(&one, method, json!({"taskId": "t1"})).await;
        assert_eq!(own["result"]["taskId"], "t1", "{own}");
        for foreign in [json!({"taskId": "t2"}), json!({"taskId": "t3"}), json!({})] {
            let refused = ask(&one, method, foreign).await;
            assert_eq!(refused["error"]["code"], -32602, "{refused}");
        }
    }
    let listed = ask(&one, "tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([{"taskId": "t1", "n": 1}]), "{listed}");
    assert_eq!(listed["id"], 7);

    let body = modern(9, "tools/call", task(3));
    let stateless = peer.post(&headers_for("tools/call", "task"), &body).await.1;
    assert_eq!(stateless["result"]["taskId"], "t3", "{stateless}");
    for (task, known) in [("t3", true), ("t1", false)] {
        let body = modern(10, "tasks/get", json!({ "taskId": task }));
        let answer = peer.post(&headers_for("tasks/get", task), &body).await.1;
        assert_eq!(answer["result"]["taskId"] == task, known, "{answer}");
    }
}

#[tokio::test]
async fn a_legacy_session_lives_from_initialize_to_delete() {
    let mut peer = Peer::start("").await;
    let list = request(1, "tools/list", json!({}));
    assert_eq!(peer.post(&[BOTH], &list).await.0, 400);
    assert_eq!(peer.post(&[BOTH, ("mcp-session-id", "ses_unknown")], &list).await.0, 404);
    let id = peer.session().await;
    let within = [BOTH, ("mcp-session-id", id.as_str()), ("mcp-protocol-version", "2025-06-18")];

    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(peer.post(&within, &initialized).await, (202, Value::Null));
    peer.fixture.hears("notifications/initialized").await;
    let (status, body) = peer.post(&within, &list).await;
    assert_eq!((status, &body["id"], &body["result"]["tools"][0]["name"]), (200, &json!(1), &json!("echo")));
    let (status, body) = peer.post(&within, &request(2, "tools/call", call("echo"))).await;
    assert_eq!((status, &body["result"]["content"][0]["text"]), (200, &json!("pong")));
    let (status, body) = peer.post(&within, &request(3, "vendor/other", json!({}))).await;
    assert_eq!((status, body["error"].is_object()), (200, true), "refused by policy: {body}");

    assert_eq!(peer.post(&within, &initialize()).await.0, 400);
    let unknown = [BOTH, ("mcp-session-id", id.as_str()), ("mcp-protocol-version", "1900-01-01")];
    assert_eq!(peer.post(&unknown, &list).await.0, 400);
    let modern = [BOTH, ("mcp-session-id", id.as_str()), ("mcp-protocol-version", "2026-07-28")];
    assert_eq!(peer.post(&modern, &list).await.1["error"]["code"], -32602);

    assert_eq!(peer.send("DELETE", "/mcp/fake", &within, "").await.status(), 204);
    peer.fixture.hears("close").await;
    assert_eq!(peer.post(&within, &list).await.0, 404);
    assert_eq!(peer.send("DELETE", "/mcp/fake", &within, "").await.status(), 404);
}

#[tokio::test]
async fn what_belongs_to_no_request_comes_on_the_get_stream() {
    let peer = Peer::start("").await;
    let id = peer.session().await;
    let within = [("accept", "text/event-stream"), ("mcp-session-id", id.as_str())];
    let mut stream = peer.send("GET", "/mcp/fake", &within, "").await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    assert_eq!(peer.send("HEAD", "/mcp/fake", &within, "").await.status(), 405);
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    peer.post(&within, &initialized).await;
    let hello = next_event(&mut stream, &mut sse::Decoder::new(1000)).await;
    assert_eq!(hello["method"], "notifications/hello");
    assert_eq!(peer.send("GET", "/mcp/fake", &within[1..], "").await.status(), 406);
}

#[tokio::test]
async fn a_clients_roots_do_not_move_an_upstream_whose_paths_are_judged() {
    let mut peer = Peer::start("").await;
    let id = peer.session().await;
    let within = [BOTH, ("mcp-session-id", id.as_str())];
    let (_, done) = peer.post(&within, &request(7, "tools/call", call("rooted"))).await;
    let told = json!([{"uri": format!("file://{}", peer.fixture.folder.path().display())}]);
    assert_eq!(done["result"]["said"]["roots"], told, "{done}");
    peer.post(&within, &json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})).await;

    let mut params = call("echo");
    params["inputResponses"] = json!({"1": {"roots": [{"uri": "file:///etc"}]}});
    let (_, refused) = peer.post(&within, &request(8, "tools/call", params)).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    peer.post(&within, &request(9, "tools/call", call("echo"))).await;
    let heard = peer.fixture.hears("\"echo\"").await;
    assert!(!heard.contains("list_changed") && !heard.contains("/etc"), "{heard}");
}

#[tokio::test]
async fn the_server_asks_the_client_in_the_middle_of_a_call() {
    let mut peer = Peer::start("").await;
    let id = peer.session().await;
    let within = [BOTH, ("mcp-session-id", id.as_str())];
    let chat = request(7, "tools/call", call("chat")).to_string();
    let mut stream = peer.send("POST", "/mcp/fake", &within, &chat).await;
    assert_eq!(stream.headers()["x-accel-buffering"], "no");
    let mut decoder = sse::Decoder::new(10_000);
    let asked = next_event(&mut stream, &mut decoder).await;
    assert_eq!(asked["method"], "elicitation/create");
    assert_ne!(asked["id"], "roots", "an upstream's id is not the client's");
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": [1]}});
    assert_eq!(peer.post(&within, &answer).await, (202, Value::Null));
    assert!(peer.fixture.hears("\"result\"").await.contains("\"roots\""));
    let done = next_event(&mut stream, &mut decoder).await;
    assert_eq!((&done["id"], &done["result"]["said"]["roots"][0]), (&json!(7), &json!(1)));
    assert!(stream.frame().await.is_none(), "the stream ends with the answer");
    assert_eq!(peer.post(&within, &answer).await, (202, Value::Null));
}

#[tokio::test]
async fn a_modern_request_carries_all_it_needs() {
    let peer = Peer::start("").await;
    let echo = modern(1, "tools/call", call("echo"));
    let good = headers_for("tools/call", "echo");
    let (status, body) = peer.post(&good, &echo).await;
    assert_eq!((status, &body["result"]["content"][0]["text"]), (200, &json!("pong")), "{body}");
    let (status, body) =
        peer.post(&headers_for("server/discover", "")[..3], &modern(2, "server/discover", json!({}))).await;
    assert_eq!((status, body["result"]["supportedVersions"][0].as_str()), (200, Some("2026-07-28")), "{body}");

    for lost in 1..4 {
        let mut some = good.clone();
        some.remove(lost);
        let (status, body) = peer.post(&some, &echo).await;
        assert_eq!((status, &body["error"]["code"], &body["id"]), (400, &json!(-32020), &json!(1)), "{body}");
    }
    let (status, body) = peer.post(&headers_for("tools/call", "slow"), &echo).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32020)));
    let mut old = echo.clone();
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    let (status, body) = peer.post(&[BOTH, ("mcp-protocol-version", "1900-01-01")], &old).await;
    let data = json!({"supported": ["2026-07-28"], "requested": "1900-01-01"});
    assert_eq!((status, &body["error"]["code"], &body["error"]["data"]), (400, &json!(-32022), &data));
    let mut incapable = echo.clone();
    incapable["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientCapabilities");
    let (status, body) = peer.post(&good, &incapable).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32602)));
    let (status, body) = peer.post(&good, &request(1, "tools/call", call("echo"))).await;
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32602)));

    for method in ["GET", "DELETE"] {
        let refused = peer.send(method, "/mcp/fake", &[("accept", "text/event-stream")], "").await;
        assert_eq!((refused.status().as_u16(), &refused.headers()["allow"]), (405, &HeaderValue::from_static("POST")));
    }
}

#[tokio::test]
async fn a_modern_client_that_leaves_stops_its_call() {
    let mut peer = Peer::start("").await;
    let slow = modern(1, "tools/call", call("slow")).to_string();
    let headers = headers_for("tools/call", "slow");
    let waiting = peer.send("POST", "/mcp/fake", &headers, &slow);
    let left = tokio::time::timeout(std::time::Duration::from_millis(500), waiting).await;
    assert!(left.is_err());
    let sent: Value = serde_json::from_str(&peer.fixture.hears("\"tools/call\"").await).unwrap();
    assert_eq!(peer.fixture.hears("stop").await, format!("stop {}", sent["id"]));
}

#[tokio::test]
async fn a_held_call_is_a_stream_at_once() {
    let peer = Peer::start("").await;
    let held = modern(1, "tools/call", call("held")).to_string();
    let begun = std::time::Instant::now();
    let mut stream = peer.send("POST", "/mcp/fake", &headers_for("tools/call", "held"), &held).await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    assert_eq!(stream.frame().await.unwrap().unwrap().into_data().unwrap(), ": waiting\n\n");
    assert!(begun.elapsed() < std::time::Duration::from_secs(4), "not only after the wait for a quick answer");
}

#[tokio::test]
async fn bad_requests_get_the_answer_that_the_protocol_names() {
    let mut peer = Peer::start("").await;
    let id = peer.session().await;
    let within = [BOTH, ("mcp-session-id", id.as_str())];
    let good = request(1, "tools/call", call("echo")).to_string();
    let twice = good.replace("\"n\":1", "\"n\":1,\"n\":2");
    let large = good.replace("\"n\":1", &format!("\"n\":\"{}\"", "x".repeat(70_000)));
    let session = ("mcp-session-id", id.as_str());
    type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str, u16, Value);
    let cases: &[Case<'_>] = &[
        ("/mcp/fake", within.to_vec(), "{", 400, json!(-32700)),
        ("/mcp/fake", within.to_vec(), &twice, 400, json!(-32700)),
        ("/mcp/fake", within.to_vec(), "[]", 400, json!(-32600)),
        ("/mcp/fake", vec![BOTH, session, ("mcp-method", "tools/list")], &good, 400, json!(-32020)),
        ("/mcp/fake", vec![BOTH, session, ("content-type", "text/plain")], &good, 415, json!(null)),
        (
            "/mcp/fake",
            vec![BOTH, session, ("content-type", "Application/JSON; charset=utf-8")],
            &good,
            200,
            json!(null),
        ),
        ("/mcp/fake", within.to_vec(), &large, 413, json!(null)),
        ("/mcp/fake", vec![BOTH, session, ("host", "evil.example")], &good, 403, json!(null)),
        ("/mcp/fake", vec![BOTH, session, ("origin", "https://evil.example")], &good, 403, json!(null)),
        ("/mcp/fake", vec![BOTH, session, ("origin", "http://localhost:6274")], &good, 200, json!(null)),
        ("/mcp/fake", vec![BOTH, session, ("authorization", "Bearer x")], &good, 401, json!(-32600)),
        ("/mcp/other", within.to_vec(), &good, 404, json!(null)),
        ("/mcp", within.to_vec(), &good, 404, json!(null)),
        ("/else", within.to_vec(), &good, 404, json!(null)),
    ];
    for (path, headers, body, status, code) in cases {
        let (got, answer) = told(peer.send("POST", path, headers, body).await).await;
        assert_eq!((got, &answer["error"]["code"]), (*status, code), "{path} {headers:?} {answer}");
        if *path == "/mcp/other" {
            assert!(answer["detail"].as_str().unwrap().contains("/mcp/fake"), "{answer}");
        }
    }
    let calls = std::iter::from_fn(|| peer.fixture.heard.try_recv().ok()).filter(|told| told.contains("tools/call"));
    assert_eq!(calls.count(), 2, "no bad one reached the executor");
}

#[tokio::test]
async fn where_agents_are_known_a_token_is_needed_and_a_session_is_its_agents_own() {
    let token = |t: &str| crate::secret::TokenHash::of(t).to_hex();
    let agents = format!(
        "agents:\n  - {{name: ana, group: default, tokens: [{{sha256: {}}}]}}\n  - {{name: bob, group: default, tokens: [{{sha256: {}}}]}}\n",
        token("a"),
        token("b")
    );
    let peer = Peer::start(&agents).await;
    let refused = peer.send("POST", "/mcp/fake", &[BOTH], &initialize().to_string()).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["www-authenticate"]),
        (401, &HeaderValue::from_static("Bearer"))
    );
    let ana = ("authorization", "Bearer a");
    let begun = peer.send("POST", "/mcp/fake", &[BOTH, ana], &initialize().to_string()).await;
    let id = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let session = ("mcp-session-id", id.as_str());
    let list = request(1, "tools/list", json!({}));
    assert_eq!(peer.post(&[BOTH, ana, session], &list).await.0, 200);
    assert_eq!(peer.post(&[BOTH, ("authorization", "Bearer b"), session], &list).await.0, 404);
    assert_eq!(peer.post(&[BOTH, session], &list).await.0, 401);
}

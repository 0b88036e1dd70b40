//! A real server on loopback that behaves well or badly, as the method asks.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::serve::ListenerExt;
use futures_util::{Stream, StreamExt, stream};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct Seen {
    pub http: String,
    pub headers: HeaderMap,
    pub method: String,
    pub params: Value,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    arrived: Notify,
    release: Notify,
    dropped: Notify,
    connections: AtomicUsize,
}

pub struct Server {
    shared: Arc<Shared>,
    address: String,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Server {
    pub async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let counted = Arc::clone(&shared);
        let listener = listener.tap_io(move |_| {
            counted.connections.fetch_add(1, Ordering::SeqCst);
        });
        let app = Router::new().route("/mcp", any(answer)).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { shared, address, tasks: Mutex::new(vec![task.abort_handle()]) }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// A second address that reads a request and closes the connection.
    pub async fn hangs_up(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut seen = [0; 4096];
                stream.readable().await.unwrap();
                let _read = stream.try_read(&mut seen);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        self.tasks.lock().unwrap().push(task.abort_handle());
        format!("http://{address}/mcp")
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Lets a held request be answered.
    pub fn release(&self) {
        self.shared.release.notify_one();
    }

    /// Waits until a request of this method is the newest.
    pub async fn arrived(&self, method: &str) {
        while self.seen().last().is_none_or(|seen| seen.method != method) {
            self.shared.arrived.notified().await;
        }
    }

    /// Waits until a client hung up on a held request.
    pub async fn dropped(&self) {
        tokio::time::timeout(Duration::from_secs(5), self.shared.dropped.notified())
            .await
            .expect("the client hangs up");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.lock().unwrap().iter().for_each(AbortHandle::abort);
    }
}

/// Tells when it is dropped before it was defused.
struct Held(Arc<Shared>, bool);

impl Drop for Held {
    fn drop(&mut self) {
        if !self.1 {
            self.0.dropped.notify_one();
        }
    }
}

async fn answer(State(shared): State<Arc<Shared>>, http: Method, headers: HeaderMap, body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (method, params, id) =
        (message["method"].as_str().unwrap_or_default(), message["params"].clone(), &message["id"]);
    let seen = Seen { http: http.to_string(), headers: headers.clone(), method: method.into(), params: params.clone() };
    shared.seen.lock().unwrap().push(seen);
    shared.arrived.notify_one();
    if headers.get("mcp-session-id").is_some_and(|session| session != "ses-1") {
        if method == "disowned" {
            let error = json!({"code": -32000, "message": "Bad Request: No valid session ID provided"});
            let body = json_body(&json!({"jsonrpc": "2.0", "id": null, "error": error}));
            return (StatusCode::BAD_REQUEST, body).into_response();
        }
        return (StatusCode::NOT_FOUND, error(&Value::Null, -32001)).into_response();
    }
    match http {
        Method::GET if headers.contains_key("last-event-id") => {
            return events(stream::iter([event(None, &result(&json!(2), "resumed"))]));
        }
        Method::GET => {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {}});
            return events(stream::iter([event(Some("get-1"), &note)]).chain(stream::pending()));
        }
        Method::DELETE => return StatusCode::NO_CONTENT.into_response(),
        _ if id.is_null() => return StatusCode::ACCEPTED.into_response(),
        _ => {}
    }
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    match method {
        "initialize" => {
            let answer = result(id, json!({"protocolVersion": "2025-06-18", "capabilities": {}}));
            ([("mcp-session-id", "ses-1")], json_body(&answer)).into_response()
        }
        "stream" => {
            let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage"});
            let ping = ": comment\n\nevent: ping\ndata: {}\n\n".to_owned();
            let all = [ping, event(None, &progress), event(None, &ask), event(None, &result(id, "streamed"))];
            events(stream::iter(all))
        }
        "resumable" => {
            events(stream::iter([event(Some("event-4"), &progress), "id: event-5\nretry: 10\ndata:\n\n".into()]))
        }
        "bad-version" => (StatusCode::BAD_REQUEST, error(id, -32022)).into_response(),
        "no-id" => (StatusCode::BAD_REQUEST, error(&Value::Null, -32000)).into_response(),
        "not-found" => (StatusCode::NOT_FOUND, error(id, -32601)).into_response(),
        "held" => {
            let mut held = Held(Arc::clone(&shared), false);
            shared.release.notified().await;
            held.1 = true;
            json_body(&result(id, "held"))
        }
        "held-stream" => {
            let held = Held(Arc::clone(&shared), false);
            events(stream::iter([": comment\n\n".to_owned()]).chain(stream::pending()).map(move |event| {
                let _held = &held;
                event
            }))
        }
        "garbage" => ([("content-type", "application/json")], "{\"jsonrpc\":").into_response(),
        "wrong-id" => json_body(&result(&json!(999), "x")),
        "wrong-id-stream" => events(stream::iter([event(None, &result(&json!("4"), "x"))])),
        "html" => ([("content-type", "text/html")], "<p>hello</p>").into_response(),
        "accepted" => StatusCode::ACCEPTED.into_response(),
        "no-answer" => json_body(&progress),
        "too-large" => {
            let chunk = Bytes::from(vec![b' '; 1 << 20]);
            let chunks = stream::repeat_with(move || Ok::<_, Infallible>(chunk.clone())).take(70);
            ([("content-type", "application/json")], Body::from_stream(chunks)).into_response()
        }
        "ended-stream" => events(stream::iter([": comment\n\n".to_owned()])),
        "broken-body" => {
            let half = stream::iter([Ok(Bytes::from_static(b"{\"jsonrpc\"")), Err(std::io::Error::other("broken"))]);
            ([("content-type", "application/json")], Body::from_stream(half)).into_response()
        }
        "crash" => (StatusCode::INTERNAL_SERVER_ERROR, "<h1>oops</h1>").into_response(),
        "unauthorized" => StatusCode::UNAUTHORIZED.into_response(),
        "moved" => (StatusCode::TEMPORARY_REDIRECT, [("location", "http://127.0.0.1:9/")]).into_response(),
        "gone" => (StatusCode::NOT_FOUND, "no such page").into_response(),
        _ => json_body(&result(id, params)),
    }
}

fn result(id: &Value, result: impl Into<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result.into()})
}

fn error(id: &Value, code: i64) -> Response {
    json_body(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}))
}

fn json_body(value: &Value) -> Response {
    ([("content-type", "application/json; charset=utf-8")], value.to_string()).into_response()
}

fn event(id: Option<&str>, data: &Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: message\ndata: {data}\n\n")
}

fn events(events: impl Stream<Item = String> + Send + 'static) -> Response {
    let body = Body::from_stream(events.map(Ok::<_, Infallible>));
    ([("content-type", "text/event-stream")], body).into_response()
}

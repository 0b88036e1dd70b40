//! A scripted agent that speaks MCP over Streamable HTTP (2025-11-25), as a client that knows nothing of Portcullis.

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as Http;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::message::sse::Decoder;

const VERSION: &str = "2025-11-25";

/// The largest event that is read.
const LARGEST: usize = 16 << 20;

/// One MCP session.
pub struct Agent {
    http: Http<HttpConnector, Full<Bytes>>,
    url: String,
    session: Option<String>,
    next: u64,
}

/// What a tool call came to.
pub struct Answer {
    /// The text blocks of the result.
    pub text: String,
    /// Whether the result is an error to the model.
    pub is_error: bool,
}

impl Agent {
    /// Shakes hands.
    pub async fn connect(url: &str) -> Result<Self, String> {
        let http = Http::builder(TokioExecutor::new()).build_http();
        let mut agent = Self { http, url: url.to_owned(), session: None, next: 0 };
        let hello = json!({"protocolVersion": VERSION, "capabilities": {},
            "clientInfo": {"name": "portcullis-demo-agent", "version": env!("CARGO_PKG_VERSION")}});
        agent.request("initialize", &hello).await?;
        agent.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(agent)
    }

    /// Calls a tool; where the gateway says that the identical call picks an approval up, makes it again.
    pub async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, String> {
        loop {
            let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments})).await?;
            if result.pointer("/_meta/dev.portcullis~1call/retry") == Some(&json!("same_call")) {
                continue;
            }
            let blocks = result.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
            let text: Vec<&str> = blocks.iter().filter_map(|b| b.get("text")?.as_str()).collect();
            return Ok(Answer {
                text: text.join("\n"),
                is_error: result.get("isError").and_then(Value::as_bool).unwrap_or(false),
            });
        }
    }

    /// Ends the session.
    pub async fn disconnect(&mut self) {
        if let Ok(request) = self.prepare(Method::DELETE, Bytes::new()) {
            // The session ends with the gateway anyway.
            let _ = self.http.request(request).await;
        }
    }

    async fn request(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.next += 1;
        let id = self.next;
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answers = self.post(&body).await?;
        let answer = answers
            .into_iter()
            .find(|message| message.get("id") == Some(&json!(id)))
            .ok_or_else(|| format!("{method}: no answer"))?;
        match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(format!("{method}: {}", answer.get("error").cloned().unwrap_or_default())),
        }
    }

    /// Posts one message; answers all messages that come back, from JSON or from a stream.
    async fn post(&mut self, message: &Value) -> Result<Vec<Value>, String> {
        let request = self.prepare(Method::POST, Bytes::from(message.to_string()))?;
        let response = self.http.request(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        if let Some(session) = response.headers().get("mcp-session-id").and_then(|v| v.to_str().ok()) {
            self.session = Some(session.to_owned());
        }
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
        let streamed = kind.starts_with("text/event-stream");
        let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        if !status.is_success() {
            return Err(format!("HTTP {status}: {}", String::from_utf8_lossy(&body)));
        }
        let texts: Vec<Bytes> = if streamed {
            let mut decoder = Decoder::new(LARGEST);
            let events = decoder.push(&body).map_err(|error| error.to_string())?;
            events.into_iter().map(|event| event.data).collect()
        } else if body.is_empty() {
            Vec::new()
        } else {
            vec![body]
        };
        texts.iter().map(|text| serde_json::from_slice(text).map_err(|error| error.to_string())).collect()
    }

    fn prepare(&self, method: Method, body: Bytes) -> Result<Request<Full<Bytes>>, String> {
        let mut request = Request::builder()
            .method(method)
            .uri(&self.url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream");
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session).header("mcp-protocol-version", VERSION);
        }
        request.body(Full::new(body)).map_err(|error| error.to_string())
    }
}

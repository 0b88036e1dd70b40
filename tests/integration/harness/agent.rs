//! A plain MCP client of both eras, for tests that need to misbehave or to come back in their own way.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::http::{Answer, Http};

const BOTH: (&str, &str) = ("accept", "application/json, text/event-stream");
const JSON: (&str, &str) = ("content-type", "application/json");

/// The stateless protocol's version.
pub const MODERN: &str = "2026-07-28";

/// One client of one endpoint.
#[derive(Clone)]
pub struct Agent {
    pub http: Http,
    pub url: String,
    /// The legacy session's id; none in the modern era.
    pub session: Option<String>,
    /// Its token; none where no agents are configured.
    pub token: Option<String>,
}

impl Agent {
    /// Shakes hands as a client of 2025-11-25.
    pub async fn legacy(url: &str) -> Self {
        Self::modern(url).initialized().await
    }

    /// The same client with a legacy session.
    pub async fn initialized(self) -> Self {
        let Self { http, url, token, .. } = self;
        let hello = json!({
            "jsonrpc": "2.0", "id": 0, "method": "initialize",
            "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } },
        });
        let bearer = bearer(token.as_deref());
        let mut headers = vec![BOTH, JSON];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let answer = http.send(Method::POST, &url, &headers, hello.to_string()).await;
        assert_eq!(answer.status, 200, "initialize");
        let session = Some(answer.header("mcp-session-id").to_owned()).filter(|id| !id.is_empty());
        let result = reply(answer, 0).await;
        assert!(result["result"]["protocolVersion"].is_string(), "initialize: {result}");
        let agent = Self { http, url, session, token };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(agent.post(&ready).await.status, 202);
        agent
    }

    /// Speaks the stateless protocol.
    pub fn modern(url: &str) -> Self {
        Self { http: Http::new(), url: url.to_owned(), session: None, token: None }
    }

    /// The same client as the agent whose token this is.
    pub fn with_token(self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self }
    }

    /// The same client over a new connection, as after a restart of the gateway at `url`.
    pub fn back_at(&self, url: &str) -> Self {
        Self { http: Http::new(), url: url.to_owned(), ..self.clone() }
    }

    /// Posts one message with the headers of its era.
    pub async fn post(&self, message: &Value) -> Answer {
        self.attempt(message).await.unwrap_or_else(|e| panic!("{}: {e}", self.url))
    }

    /// Calls a tool of a gateway that may end meanwhile; none where no answer came.
    pub async fn try_call(&self, id: u64, tool: &str, arguments: Value) -> Option<Value> {
        let message = self.message(id, "tools/call", json!({ "name": tool, "arguments": arguments }));
        let mut answer = self.attempt(&message).await.ok()?;
        if !answer.header("content-type").starts_with("text/event-stream") {
            return answer.try_json().await;
        }
        while let Some((message, _)) = answer.event().await {
            if message["id"] == json!(id) && message.get("method").is_none() {
                return Some(message);
            }
        }
        None
    }

    async fn attempt(&self, message: &Value) -> Result<Answer, String> {
        let bearer = bearer(self.token.as_deref());
        let mut headers = vec![BOTH, JSON];
        headers.extend(bearer.as_deref().map(|bearer| ("authorization", bearer)));
        let name = ["name", "uri", "taskId"].iter().find_map(|key| message["params"][key].as_str());
        match &self.session {
            Some(session) => {
                headers.extend([("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")])
            }
            None => {
                headers.push(("mcp-protocol-version", MODERN));
                headers.extend(message["method"].as_str().map(|method| ("mcp-method", method)));
                headers.extend(name.map(|name| ("mcp-name", name)));
            }
        }
        self.http.attempt(Method::POST, &self.url, &headers, message.to_string()).await
    }

    /// A request of this era.
    pub fn message(&self, id: u64, method: &str, mut params: Value) -> Value {
        if self.session.is_none() {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            });
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// Sends a request and waits for its JSON-RPC answer.
    pub async fn request(&self, id: u64, method: &str, params: Value) -> Value {
        reply(self.post(&self.message(id, method, params)).await, id).await
    }

    /// Calls a tool and waits for the answer, however long it is held.
    pub async fn call(&self, id: u64, tool: &str, arguments: Value) -> Value {
        self.request(id, "tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    /// Sends a call and returns as soon as the headers of its answer are there.
    pub async fn begin(&self, id: u64, tool: &str, arguments: Value) -> Answer {
        self.post(&self.message(id, "tools/call", json!({ "name": tool, "arguments": arguments }))).await
    }
}

fn bearer(token: Option<&str>) -> Option<String> {
    token.map(|token| format!("Bearer {token}"))
}

/// No answer that a test waits for takes so long.
const PATIENCE: Duration = Duration::from_secs(180);

/// The answer to request `id`, in JSON or on the stream.
pub async fn reply(answer: Answer, id: u64) -> Value {
    let late = || panic!("no answer to {id} within {PATIENCE:?}");
    tokio::time::timeout(PATIENCE, wait_for(answer, id)).await.unwrap_or_else(|_| late())
}

async fn wait_for(mut answer: Answer, id: u64) -> Value {
    if !answer.header("content-type").starts_with("text/event-stream") {
        return answer.json().await;
    }
    while let Some((message, _)) = answer.event().await {
        if message["id"] == json!(id) && message.get("method").is_none() {
            return message;
        }
    }
    panic!("the stream ended without an answer to {id}");
}

/// The text of a tool result's first block.
pub fn text(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// What the gateway tells the model's side about the call.
pub fn about(reply: &Value) -> &Value {
    &reply["result"]["_meta"]["dev.portcullis/call"]
}

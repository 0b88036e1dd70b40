//! A gate with one made-up executor behind it, for the tests of both listeners.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::audit::Audit;
use crate::clock::Clock;
use crate::config::{self, ApproverConfig, Role};
use crate::gate::{Gate, Inbound, Link, Opening, Outgoing, Parts, Permit, Place, Upstream, UpstreamError};
use crate::identity::Directory;
use crate::message::{Message, compose};
use crate::metrics::Metrics;
use crate::policy;
use crate::store::Store;

/// A running gate; what the executor was told comes out of `heard`.
pub struct Fixture {
    pub gate: Arc<Gate>,
    pub heard: mpsc::UnboundedReceiver<String>,
    /// The root of its upstream.
    pub folder: tempfile::TempDir,
}

impl Fixture {
    /// `extra` is added to the configuration file.
    pub async fn start(extra: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("portcullis.yaml");
        let rules = "version: 1\ngroups:\n  default:\n    otherwise: deny\n    rules:\n      \
                     - {name: all, verdict: allow, tool: [echo, slow, chat, task, rooted]}\n      \
                     - {name: held, verdict: ask, tool: held}\n";
        std::fs::write(folder.path().join("policy.yaml"), rules).unwrap();
        let text = format!(
            "listen: {{mcp: {{address: \"127.0.0.1:0\", max_body: 64KiB}}}}\nstate_dir: ./state\n\
             policy: {{files: [policy.yaml]}}\nupstreams:\n  fake: {{command: [\"true\"], root: ., new_tools: accept}}\n{extra}"
        );
        std::fs::write(&file, text).unwrap();
        let mut config = config::load(&file).unwrap();
        config.approvers.push(ApproverConfig {
            name: "ana".into(),
            roles: vec![Role::Approver],
            groups: vec!["*".into()],
            teams: Vec::new(),
            tokens: Vec::new(),
        });
        let loaded = policy::load(&config.policy, &[]).unwrap();
        std::fs::create_dir_all(&config.state_dir).unwrap();
        let clock = Clock::system();
        let store = Store::open(&config.state_dir, clock.clone()).unwrap();
        let audit = Audit::open(&config.state_dir, store.process(), &config.audit, clock.clone()).unwrap();
        let (hear, heard) = mpsc::unbounded_channel();
        let gate = Gate::start(Parts {
            directory: Directory::new(&config),
            config,
            loaded,
            own_files: Vec::new(),
            upstreams: vec![Arc::new(Fake { hear })],
            store,
            audit,
            metrics: Metrics::new(),
            clock,
        })
        .await
        .unwrap();
        Self { gate, heard, folder }
    }

    /// The next thing that the executor was told and that `wanted` names.
    pub async fn hears(&mut self, wanted: &str) -> String {
        let told = async {
            loop {
                let told = self.heard.recv().await.unwrap();
                if told.contains(wanted) {
                    return told;
                }
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), told).await.expect(wanted)
    }
}

/// A request of a legacy client.
pub fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// A request of a modern client.
pub fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(id, method, params)
}

/// A call of one of the executor's tools: `echo`, `slow` (never answers), `chat` (asks the client first), `held`, `task` (hands
/// out a task named by `arguments.n`). With `arguments.panic` the gateway's own task breaks off, with `arguments.after_ms` the
/// answer comes later.
pub fn call(tool: &str) -> Value {
    json!({"name": tool, "arguments": {"n": 1}})
}

/// What opens a legacy session.
pub fn initialize() -> Value {
    let info = json!({"name": "test", "version": "1"});
    request(0, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}))
}

struct Fake {
    hear: mpsc::UnboundedSender<String>,
}

struct FakeLink {
    hear: mpsc::UnboundedSender<String>,
    inbound: mpsc::Sender<Inbound>,
    /// The call that waits for the client's answer.
    chatting: Mutex<Option<u64>>,
}

impl Upstream for Fake {
    fn id(&self) -> &str {
        "fake"
    }
    fn place(&self) -> Place {
        Place { digest: "fake".to_owned(), shown: "nowhere".to_owned() }
    }
    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<Arc<dyn Link>, UpstreamError>> {
        let link = FakeLink { hear: self.hear.clone(), inbound: opening.inbound, chatting: Mutex::default() };
        Box::pin(async move { Ok(Arc::new(link) as Arc<dyn Link>) })
    }
    fn is_up(&self) -> bool {
        true
    }
    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl FakeLink {
    async fn tell(&self, bytes: Bytes, related: Option<u64>) {
        let message = Message::framed(bytes).unwrap();
        self.inbound.send(Inbound::Message { message, related }).await.unwrap();
    }

    async fn answer(&self, id: u64, result: Value) {
        self.tell(compose::result(&id.to_string(), &result), Some(id)).await;
    }

    async fn hear(&self, message: Outgoing) {
        self.hear.send(String::from_utf8(message.bytes.to_vec()).unwrap()).unwrap();
        let body: Value = serde_json::from_slice(&message.bytes).unwrap();
        let info = json!({"name": "fake", "version": "1"});
        let arguments = &body["params"]["arguments"];
        assert_ne!(arguments["panic"], true, "as asked");
        if let Some(ms) = arguments["after_ms"].as_u64() {
            tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
            let late = json!({"content": [{"type": "text", "text": "late"}]});
            return self.answer(message.id.unwrap(), late).await;
        }
        let result = match (message.method.as_str(), body["params"]["name"].as_str()) {
            ("initialize", _) => json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info}),
            ("server/discover", _) => json!({"supportedVersions": ["2026-07-28"], "resultType": "complete"}),
            ("tools/list", _) => {
                let tools = ["echo", "slow", "chat", "held", "task", "rooted"];
                json!({"tools": tools.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))})
            }
            ("tools/call", Some("echo")) => json!({"content": [{"type": "text", "text": "pong"}]}),
            ("tools/call", Some(tool @ ("chat" | "rooted"))) => {
                *self.chatting.lock().unwrap() = message.id;
                let asks = if tool == "chat" { "elicitation/create" } else { "roots/list" };
                return self.tell(compose::request("\"roots\"", asks, None), message.id).await;
            }
            ("tools/call", Some("task")) => {
                let task = json!({"taskId": format!("t{}", body["params"]["arguments"]["n"]), "status": "working"});
                match body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string() {
                    true => json!({"resultType": "task", "taskId": task["taskId"], "status": "working"}),
                    false => json!({ "task": task }),
                }
            }
            ("tasks/get" | "tasks/cancel", _) => json!({"taskId": body["params"]["taskId"], "status": "working"}),
            ("tasks/list", _) => json!({"tasks": [{"taskId": "t1", "n": 1}, {"taskId": "t2", "n": 2}, {"odd": 1}]}),
            ("", _) => {
                let Some(id) = self.chatting.lock().unwrap().take() else { return };
                return self.answer(id, json!({"content": [], "said": body["result"]})).await;
            }
            ("notifications/initialized", _) => {
                return self.tell(compose::notification("notifications/hello", None), None).await;
            }
            _ => return,
        };
        if let Some(id) = message.id {
            self.answer(id, result).await;
        }
    }
}

impl Link for FakeLink {
    fn send(&self, _permit: Permit, message: Outgoing) -> BoxFuture<'_, Result<(), UpstreamError>> {
        Box::pin(async move {
            self.hear(message).await;
            Ok(())
        })
    }
    fn stop(&self, id: u64, _reason: &str) -> BoxFuture<'_, ()> {
        Box::pin(async move { self.hear.send(format!("stop {id}")).unwrap() })
    }
    fn session(&self) -> Option<String> {
        None
    }
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { self.hear.send("close".to_owned()).unwrap_or_default() })
    }
}

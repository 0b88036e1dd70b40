//! What held calls cost: memory for each, and the time from a decision to its executor, with ten thousand held.
//! `docs/performance.md` has the figures.
//!
//! A gate with a real store and audit log in a temporary folder (`TMPDIR`), and an executor that answers at once. Holds
//! `PORTCULLIS_BENCH_HELD` calls (10,000), each with a client that waits,
//! of which `PORTCULLIS_BENCH_AT_ONCE` (100) come at the same time, and approves `PORTCULLIS_BENCH_DECIDED` of them
//! (500), one after the other. Linux only: memory is what `/proc/self/statm` says.
#![allow(clippy::print_stdout)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use portcullis::audit::Audit;
use portcullis::clock::Clock;
use portcullis::config::{self, ApproverConfig, Role};
use portcullis::gate::{Gate, Inbound, Link, Opening, Outgoing, Parts, Permit, Place, Upstream, UpstreamError};
use portcullis::identity::Directory;
use portcullis::message::{Limits, Message, compose};
use portcullis::metrics::Metrics;
use portcullis::policy;
use portcullis::record::{ApprovalState, Decision, Vote};
use portcullis::store::{Filter, Store};
use serde_json::{Value, json};
use tokio::sync::mpsc;

const RULES: &str = "version: 1\ngroups: { default: { otherwise: ask } }\n";

fn number(name: &str, usual: usize) -> usize {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

#[tokio::main]
async fn main() {
    let (held, decided) = (number("PORTCULLIS_BENCH_HELD", 10_000), number("PORTCULLIS_BENCH_DECIDED", 500));
    let at_once = number("PORTCULLIS_BENCH_AT_ONCE", 100);
    let folder = tempfile::tempdir().unwrap();
    let (gate, mut heard) = gate(folder.path()).await;
    // What is made once is there before it is measured.
    let first = call(&gate, held);
    settle(&gate, 1).await;
    let before = resident();
    let began = Instant::now();
    let mut calls = Vec::new();
    while calls.len() < held {
        let many = at_once.min(held - calls.len());
        calls.extend((0..many).map(|n| call(&gate, calls.len() + n)).collect::<Vec<_>>());
        settle(&gate, calls.len() + 1).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let took = began.elapsed();
    let each = resident().saturating_sub(before) / held as u64;
    println!("held {held} calls in {took:.1?}; {each} bytes of resident memory each");

    let waiting = Filter { state: Some(ApprovalState::Waiting), limit: decided.min(500), ..Filter::default() };
    let (page, _) = gate.store().list(waiting).await.unwrap();
    let mut times = Vec::new();
    for approval in page {
        let vote = Vote {
            by: "ana".to_owned(),
            teams: Vec::new(),
            decision: Decision::Approve,
            channel: "api".to_owned(),
            note: None,
            digest: approval.call().digest.clone(),
            remember: None,
            at: Clock::system().now(),
        };
        let began = Instant::now();
        let voted = gate.vote(&approval.approval.id, vote);
        let sent = async {
            while !heard.recv().await.expect("a message").contains("\"tools/call\"") {}
            began.elapsed()
        };
        let (voted, sent) = tokio::join!(voted, sent);
        voted.unwrap();
        times.push(sent);
    }
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "from the decision to the executor, {} times with {held} held: median {:.1?}, p99 {:.1?}, longest {:.1?}",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    drop((first, calls));
}

/// A call whose client waits: what its listener would hold.
fn call(gate: &Arc<Gate>, n: usize) -> portcullis::gate::Exchange {
    let params = json!({
        "name": "write_file",
        "arguments": {"path": format!("docs/{n}.md"), "content": "x".repeat(200)},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    });
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let message = Message::strict(text.into(), Limits::default()).unwrap();
    gate.stateless("local", "fake").expect("the upstream").request(message, None, None)
}

/// Waits until so many calls are held.
async fn settle(gate: &Gate, many: usize) {
    for _ in 0..60_000 {
        let counts = gate.store().counts().await.unwrap();
        if counts.first().is_some_and(|counts| counts.waiting as usize >= many) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the calls are not held");
}

/// Resident memory of this process, in bytes.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    pages.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4096
}

async fn gate(folder: &std::path::Path) -> (Arc<Gate>, mpsc::UnboundedReceiver<String>) {
    std::fs::write(folder.join("policy.yaml"), RULES).unwrap();
    let file = folder.join("portcullis.yaml");
    let text = "state_dir: ./state\npolicy: {files: [policy.yaml]}\n\
        approvals: {max_waiting: 100000, hold_for: 1h, expires: 1h}\n\
        upstreams:\n  fake: {command: [\"true\"], root: ., catalogue: filesystem, new_tools: accept}\n";
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
    let parts = Parts {
        directory: Directory::new(&config),
        config,
        loaded,
        own_files: Vec::new(),
        upstreams: vec![Arc::new(Fake { hear })],
        store,
        audit,
        metrics: Metrics::new(),
        clock,
    };
    (Gate::start(parts).await.unwrap(), heard)
}

/// An executor that answers at once.
struct Fake {
    hear: mpsc::UnboundedSender<String>,
}

struct FakeLink {
    hear: mpsc::UnboundedSender<String>,
    inbound: mpsc::Sender<Inbound>,
}

impl Upstream for Fake {
    fn id(&self) -> &str {
        "fake"
    }
    fn place(&self) -> Place {
        Place { digest: "fake".to_owned(), shown: "nowhere".to_owned() }
    }
    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<Arc<dyn Link>, UpstreamError>> {
        let link = FakeLink { hear: self.hear.clone(), inbound: opening.inbound };
        Box::pin(async move { Ok(Arc::new(link) as Arc<dyn Link>) })
    }
    fn is_up(&self) -> bool {
        true
    }
    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

impl Link for FakeLink {
    fn send(&self, _: Permit, message: Outgoing) -> BoxFuture<'_, Result<(), UpstreamError>> {
        Box::pin(async move {
            let _ = self.hear.send(String::from_utf8_lossy(&message.bytes).into_owned());
            let result = match message.method.as_str() {
                "server/discover" => json!({"supportedVersions": ["2026-07-28"], "resultType": "complete"}),
                "tools/list" => json!({"tools": [{"name": "write_file", "inputSchema": {"type": "object"}}]}),
                _ => json!({"content": [{"type": "text", "text": "done"}]}),
            };
            if let Some(id) = message.id {
                let bytes = compose::result(&id.to_string(), &Value::clone(&result));
                let message = Message::framed(bytes).expect("a message");
                let _ = self.inbound.send(Inbound::Message { message, related: Some(id) }).await;
            }
            Ok(())
        })
    }
    fn stop(&self, _: u64, _: &str) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
    fn session(&self) -> Option<String> {
        None
    }
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

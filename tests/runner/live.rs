//! Cases that only a running gateway can tell: its listener, its built-in workspace, files that change under a call.

use std::path::Path;
use std::time::Duration;

use http::Method;
use portcullis::clock::Clock;
use portcullis::config::Config;
use portcullis::record::{ApprovalState, Decision, Vote};
use portcullis::serve::{self, Doors, Gateway};
use portcullis::store::Filter;
use serde_json::{Value, json};

use super::case::Case;
use super::http::{Answer, Http};
use super::neutral;
use super::play::{self, InForce, MALFORMED};
use super::tree::Tree;

/// How often files are changed under a call, each time a little later after it.
const ROUNDS: u32 = 12;

/// What the gateway answers to a raw message that comes with the case's headers, in a legacy session.
pub fn over_http(case: &Case, tree: &Tree, in_force: &InForce, raw: &str) -> Result<String, String> {
    on_runtime(async {
        let gateway = start(tree, in_force, Duration::from_millis(100)).await?;
        let client = Client::connect(&gateway).await?;
        let headers: Vec<(&str, &str)> =
            case.transport.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect();
        let answer = client.post(&headers, raw).await;
        let got = match answer.status {
            200 => verdict(&last(answer).await),
            _ => MALFORMED.to_owned(),
        };
        gateway.stop().await;
        Ok(got)
    })
}

/// Makes the case's call while the files change under it, on a tree of its own each time, and approves what is held;
/// `Err` says how the property that must hold did not.
pub fn while_files_change(case: &Case) -> Result<(), String> {
    for round in 0..ROUNDS {
        let tree = Tree::new(&case.setup)?.map_err(|cannot| cannot.0)?;
        let secrets = tree.root().join("secrets");
        let marker = format!("marker {round} of what may not be read");
        std::fs::write(secrets.join("key.pem"), &marker).map_err(|e| e.to_string())?;
        let before = names(&secrets);
        let told = on_runtime(changed_under(case, &tree, Duration::from_micros(400) * round))?;
        if told.contains(&marker) {
            return Err(format!("what may not be read was returned: {told}"));
        }
        let kept = std::fs::read_to_string(secrets.join("key.pem")).is_ok_and(|key| key == marker);
        if !kept || names(&secrets) != before {
            return Err("a file under secrets was made or changed".to_owned());
        }
    }
    Ok(())
}

/// Everything the client was told.
async fn changed_under(case: &Case, tree: &Tree, delay: Duration) -> Result<String, String> {
    let odd = |_| "the policy or the call cannot be read".to_owned();
    let in_force = play::policy_of(case, tree).map_err(odd)?;
    let (_, raw) = play::message_of(case, tree, &in_force).map_err(odd)?;
    let raw = String::from_utf8(raw).map_err(|_| "the call is no text")?;
    let gateway = start(tree, &in_force, Duration::from_secs(20)).await?;
    let client = Client::connect(&gateway).await?;
    let call = async { client.post(&[], &raw).await.text().await };
    let meddle = async {
        tokio::time::sleep(delay).await;
        tree.bash(&case.swap_between_check_and_use)?;
        approve_if_held(&gateway).await
    };
    let (told, meddled) = tokio::join!(call, meddle);
    gateway.stop().await;
    meddled.map(|()| told)
}

/// Who decides: the one that the first start makes.
pub fn approver(gateway: &Gateway) -> String {
    gateway.gate.directory().approvers().first().map(|approver| approver.config.name.clone()).unwrap_or_default()
}

/// Approves what waits; waits a moment for it, since the call may not have come that far.
async fn approve_if_held(gateway: &Gateway) -> Result<(), String> {
    let waiting = Filter { state: Some(ApprovalState::Waiting), ..Filter::default() };
    for _ in 0..10 {
        let (held, _) = gateway.gate.store().list(waiting.clone()).await.map_err(|e| e.to_string())?;
        if let Some(held) = held.first() {
            let vote = Vote {
                by: approver(gateway),
                teams: Vec::new(),
                decision: Decision::Approve,
                channel: "api".to_owned(),
                note: None,
                digest: held.call().digest.clone(),
                remember: None,
                at: Clock::system().now(),
            };
            gateway.gate.vote(&held.approval.id, vote).await.map_err(|e| e.to_string())?;
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// A gateway on free ports with the case's policy in front of the built-in workspace.
async fn start(tree: &Tree, in_force: &InForce, hold_for: Duration) -> Result<Gateway, String> {
    start_with(tree, in_force, |config| config.approvals.hold_for = hold_for).await
}

/// The same with other settings.
pub async fn start_with(tree: &Tree, in_force: &InForce, change: impl FnOnce(&mut Config)) -> Result<Gateway, String> {
    let state = tree.aside()?.join("state");
    let upstream = neutral::upstream(neutral::UPSTREAM, &in_force.translated.settings, tree.root());
    let mut config = Config::minimal(state, in_force.config.clone(), vec![upstream]);
    let free = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    (config.mcp.address, config.admin.address) = (free, free);
    change(&mut config);
    serve::start(config, Doors::Both, Clock::system()).await.map_err(|e| e.to_string())
}

/// A legacy client of the fixture's endpoint.
pub struct Client {
    http: Http,
    url: String,
    session: String,
}

impl Client {
    pub async fn connect(gateway: &Gateway) -> Result<Self, String> {
        let mcp = gateway.mcp.ok_or("no listener")?;
        let url = format!("http://{mcp}/mcp/{}", neutral::UPSTREAM);
        let mut client = Self { http: Http::new(), url, session: String::new() };
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "cases", "version": "1" } } });
        let answer = client.post(&[], &hello.to_string()).await;
        client.session = answer.header("mcp-session-id").to_owned();
        client.post(&[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        Ok(client)
    }

    pub async fn post(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut all = vec![("accept", "application/json, text/event-stream")];
        if !self.session.is_empty() {
            all.extend([("mcp-session-id", self.session.as_str()), ("mcp-protocol-version", "2025-11-25")]);
        }
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            all.push(("content-type", "application/json"));
        }
        all.extend(headers);
        self.http.send(Method::POST, &self.url, &all, body.to_owned()).await
    }
}

/// The last message of an answer, in JSON or on a stream.
pub async fn last(mut answer: Answer) -> Value {
    if !answer.header("content-type").starts_with("text/event-stream") {
        return answer.json().await;
    }
    let mut last = Value::Null;
    while let Some((message, _)) = answer.event().await {
        last = message;
    }
    last
}

/// The verdict behind an answer.
fn verdict(reply: &Value) -> String {
    let state = reply["result"]["_meta"]["dev.portcullis/call"]["state"].as_str();
    match (state, reply.get("error")) {
        (_, Some(_)) | (Some("rejected"), _) => "deny",
        (Some("awaiting_approval"), _) => "ask",
        _ => "allow",
    }
    .to_owned()
}

fn names(folder: &Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
    names.sort();
    names
}

pub fn on_runtime<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|e| e.to_string())?;
    let result = runtime.block_on(work);
    runtime.shutdown_background();
    result
}

//! Plays the steps of a case through a running gateway: calls of real sessions, a human's words, what clients and files
//! and policies do meanwhile. The verdict is of the last call: ran is `allow`, held is `ask`, nothing ran is `deny`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use portcullis::clock::Clock;
use portcullis::config::Transport;
use portcullis::gate::Editor;
use portcullis::pattern::is_invisible;
use portcullis::record::{ApprovalRecord, ApprovalState, CallState, ClientState, Decision, Remember, Vote};
use portcullis::serve::Gateway;
use portcullis::store::Filter;
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;

use super::case::Case;
use super::http::Http;
use super::live::{Client, approver, last, on_runtime, start_with};
use super::neutral;
use super::play::{InForce, Played};
use super::tree::Tree;

/// How long an approved call waits for a client that is gone; a case must not wait longer.
const GRACE: Duration = Duration::from_millis(400);

/// Plays all steps of a case.
pub fn play(case: &Case, tree: &Tree, in_force: InForce) -> Played {
    let words = |step: &Map<String, Value>| step.keys().cloned().collect::<Vec<_>>().join(", ");
    let known =
        ["call", "repeat", "session", "human", "via", "client", "policy", "fs", "upstream", "wait", "arguments"];
    if let Some(odd) = case.steps.iter().find(|step| step.keys().any(|key| !known.contains(&key.as_str()))) {
        return Played::Skipped(format!("a step of {}", words(odd)));
    }
    match on_runtime(Play::run(case, tree, in_force)) {
        Ok(got) => Played::Said { got, detail: "played over HTTP".to_owned() },
        Err(what) => Played::Broken(what),
    }
}

struct Play<'a> {
    case: &'a Case,
    tree: &'a Tree,
    in_force: InForce,
    gateway: Gateway,
    sessions: HashMap<String, Arc<Client>>,
    next_id: u64,
    /// The last call, and the approval that was last shown.
    made: Option<Made>,
    shown: Option<ApprovalRecord>,
}

struct Made {
    session: String,
    id: u64,
    params: Value,
    reply: JoinHandle<Value>,
}

impl<'a> Play<'a> {
    async fn run(case: &'a Case, tree: &'a Tree, in_force: InForce) -> Result<String, String> {
        let offered = offered(case, tree)?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/offering.py");
        let command = ["python3", script, &offered].map(str::to_owned).to_vec();
        let gateway = start_with(tree, &in_force, |config| {
            config.approvals.hold_for = Duration::from_secs(20);
            config.approvals.hold_grace = GRACE;
            for upstream in config.upstreams.values_mut() {
                upstream.transport = Transport::Command(command.clone());
            }
        })
        .await?;
        let (sessions, next_id) = (HashMap::new(), 1);
        let mut play = Self { case, tree, in_force, gateway, sessions, next_id, made: None, shown: None };
        for step in &case.steps {
            play.step(step).await?;
        }
        let got = play.verdict().await;
        play.gateway.stop().await;
        got
    }

    async fn step(&mut self, step: &Map<String, Value>) -> Result<(), String> {
        let text = |key: &str| step.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(call) = step.get("call") {
            let params = json!({ "name": call["tool"], "arguments": self.tree.expand_all(&call["arguments"]) });
            let session = [text("session"), call["session"].as_str().unwrap_or_default().to_owned()].concat();
            let times = step.get("repeat").and_then(Value::as_u64).unwrap_or(1);
            self.flood(&session, &params, times.saturating_sub(1)).await?;
            self.call(&session, params).await?;
            return self.look();
        }
        match (step.get("human"), step.get("client")) {
            (Some(_), _) if text("via").contains("agent") => self.forge().await,
            (Some(human), _) if human == "edit" => self.edit(&step["arguments"]).await,
            (Some(human), _) => self.decide(human != "reject", human == "always").await,
            (_, Some(_)) => self.client(&text("client")).await,
            _ => self.change(step).await,
        }
    }

    /// Makes many calls at once, and waits until each is held or answered.
    async fn flood(&mut self, session: &str, params: &Value, times: u64) -> Result<(), String> {
        let mut replies = Vec::new();
        for _ in 0..times {
            replies.push(self.send(session, params).await?.1);
        }
        for _ in 0..300 {
            let answered = replies.iter().filter(|reply| reply.is_finished()).count();
            if answered + self.waiting().await?.len() >= replies.len() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err("many calls at once are neither held nor answered".to_owned())
    }

    /// Begins a call; its id and the reply to come.
    async fn send(&mut self, session: &str, params: &Value) -> Result<(u64, JoinHandle<Value>), String> {
        if !self.sessions.contains_key(session) {
            let client = Client::connect(&self.gateway).await?;
            self.sessions.insert(session.to_owned(), Arc::new(client));
        }
        let client = Arc::clone(&self.sessions[session]);
        let id = self.next_id;
        self.next_id += 1;
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string();
        Ok((id, tokio::spawn(async move { last(client.post(&[], &body).await).await })))
    }

    async fn call(&mut self, session: &str, params: Value) -> Result<(), String> {
        let before = self.waiting().await?.len();
        let (id, reply) = self.send(session, &params).await?;
        for _ in 0..100 {
            let waiting = self.waiting().await?;
            let attached = waiting.iter().any(|a| a.client.state == ClientState::Attached);
            if reply.is_finished() || waiting.len() > before || (before > 0 && attached && self.case.steps.len() > 1) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.made = Some(Made { session: session.to_owned(), id, params, reply });
        if let Some(newest) = self.waiting().await?.into_iter().next() {
            self.shown = Some(newest);
        }
        Ok(())
    }

    /// What waits for a decision, newest first.
    async fn waiting(&self) -> Result<Vec<ApprovalRecord>, String> {
        let filter = Filter { state: Some(ApprovalState::Waiting), limit: 500, ..Filter::default() };
        let (held, _) = self.gateway.gate.store().list(filter).await.map_err(|e| e.to_string())?;
        Ok(held.into_iter().map(|held| held.approval).collect())
    }

    /// The property that must hold of what an approver is shown.
    fn look(&self) -> Result<(), String> {
        let Some(shown) = self.shown.as_ref().filter(|_| self.case.must_hold.is_some()) else { return Ok(()) };
        let texts = [&shown.call.label, &shown.call.agent, &shown.call.upstream];
        match texts.into_iter().find(|text| text.chars().any(is_invisible)) {
            Some(text) => Err(format!("the prompt holds what cannot be seen: {text:?}")),
            None => Ok(()),
        }
    }

    /// A decision on what was shown last, whatever has become of it.
    async fn decide(&mut self, approve: bool, always: bool) -> Result<(), String> {
        let Some(shown) = &self.shown else { return Ok(()) };
        // As wide as may be remembered.
        let widest = shown.grant_options.last().filter(|_| always).map(|option| Remember {
            scope: option.scope,
            path: option.path.clone(),
            command: option.command.clone(),
            ttl_ms: None,
            uses: None,
            bound: option.bound.last().copied(),
        });
        let vote = Vote {
            by: approver(&self.gateway),
            teams: Vec::new(),
            decision: if approve { Decision::Approve } else { Decision::Reject },
            channel: "api".to_owned(),
            note: (!approve).then(|| "no".to_owned()),
            digest: shown.call.digest.clone(),
            remember: widest.map(Box::new),
            at: Clock::system().now(),
        };
        // Refused where there is nothing left to decide.
        let _ = self.gateway.gate.vote(&shown.id, vote).await;
        self.settle().await;
        Ok(())
    }

    /// An approval of what was shown last, with other arguments.
    async fn edit(&mut self, arguments: &Value) -> Result<(), String> {
        let Some(shown) = &self.shown else { return Ok(()) };
        let editor = Editor {
            by: approver(&self.gateway),
            channel: "api".to_owned(),
            seen: shown.call.digest.clone().unwrap_or_default(),
            note: None,
        };
        let arguments = self.tree.expand_all(arguments).to_string();
        // Refused where policy denies it so: it waits on as it was.
        let _ = self.gateway.gate.edit(&shown.id, editor, &arguments).await;
        self.settle().await;
        Ok(())
    }

    /// The agent tries to approve its own call: by a tool, and on the approvers' side without their credential.
    async fn forge(&mut self) -> Result<(), String> {
        let (Some(shown), Some(made)) = (&self.shown, &self.made) else { return Ok(()) };
        let client = Arc::clone(&self.sessions[&made.session]);
        for name in ["approve", "portcullis__approve", "approvals_approve"] {
            let params = json!({ "name": name, "arguments": { "id": shown.id, "digest": shown.call.digest } });
            let body = json!({ "jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params });
            last(client.post(&[], &body.to_string()).await).await;
        }
        let admin = self.gateway.admin.ok_or("no admin listener")?;
        let url = format!("http://{admin}/api/v1/approvals/{}/approve", shown.id);
        let headers = [("content-type", "application/json"), ("x-portcullis-channel", "cli")];
        let body = json!({ "digest": shown.call.digest }).to_string();
        let answer = Http::new().send(Method::POST, &url, &headers, body).await;
        if answer.status == 401 { Ok(()) } else { Err(format!("the agent was answered {}", answer.status)) }
    }

    async fn client(&mut self, does: &str) -> Result<(), String> {
        let Some(made) = self.made.take() else { return Err(format!("{does} of no call")) };
        match does {
            "disconnect" => made.reply.abort(),
            "retry" => return self.call(&made.session, made.params).await,
            _ if does.contains("cancel") => {
                let params = json!({ "requestId": made.id });
                let body = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
                self.sessions[&made.session].post(&[], &body.to_string()).await;
                made.reply.abort();
            }
            other => return Err(format!("no client does `{other}`")),
        }
        self.made = Some(made);
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(())
    }

    async fn change(&mut self, step: &Map<String, Value>) -> Result<(), String> {
        if let Some(policy) = step.get("policy") {
            std::fs::write(&self.in_force.file, self.policy(policy)?).map_err(|e| e.to_string())?;
            self.gateway.gate.reload().await.map_err(|e| format!("the changed policy is refused: {e:?}"))?;
        }
        match step.get("fs") {
            Some(Value::String(line)) => self.tree.bash(std::slice::from_ref(line))?,
            Some(Value::Array(lines)) => {
                let lines: Vec<String> = lines.iter().filter_map(|line| line.as_str().map(str::to_owned)).collect();
                self.tree.bash(&lines)?;
            }
            _ => {}
        }
        if step.contains_key("upstream") {
            let file = self.tree.aside()?.join(OFFERED);
            let text = std::fs::read_to_string(&file).map_err(|e| e.to_string())?;
            std::fs::write(&file, text.replace(DESCRIPTION, "Does something else now.")).map_err(|e| e.to_string())?;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        if let Some(wait) = step.get("wait") {
            let seconds = wait.as_f64().or_else(|| wait.as_str()?.trim_end_matches('s').parse().ok()).unwrap_or(1.0);
            tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, 10.0))).await;
        }
        Ok(())
    }

    /// The policy file after a change: `VERDICT TOOL` adds a rule, an object takes the place of the whole.
    fn policy(&self, change: &Value) -> Result<String, String> {
        let Some(words) = change.as_str() else {
            let settings = self.tree.expand_all(change).as_object().cloned().unwrap_or_default();
            return Ok(neutral::translate(settings)?.yaml);
        };
        let (verdict, tool) = words.split_once(' ').ok_or_else(|| format!("no change of a policy: {words}"))?;
        let mut policy: Value = serde_json::from_str(&self.in_force.translated.yaml).map_err(|e| e.to_string())?;
        let rules = policy.pointer_mut("/groups/default/rules").and_then(Value::as_array_mut);
        rules.ok_or("a policy without rules")?.push(json!({ "verdict": verdict, "tool": tool }));
        Ok(policy.to_string())
    }

    /// Waits until a decision has had its effect, at most a little longer than the grace.
    async fn settle(&self) {
        for _ in 0..100 {
            match self.state().await {
                Some((ApprovalState::Waiting | ApprovalState::Approved, CallState::AwaitingApproval))
                | Some((_, CallState::Running)) => {}
                _ => return,
            }
            if matches!(self.state().await, Some((ApprovalState::Waiting, _))) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn state(&self) -> Option<(ApprovalState, CallState)> {
        let held = self.gateway.gate.store().get(&self.shown.as_ref()?.id).await.ok()?;
        Some((held.approval.state, held.call().state))
    }

    async fn verdict(&mut self) -> Result<String, String> {
        let mut made = self.made.take().ok_or("no call was made")?;
        let reply = tokio::time::timeout(Duration::from_millis(500), &mut made.reply).await;
        if let Ok(Ok(reply)) = reply {
            return Ok(of_reply(&reply).to_owned());
        }
        // It is held, or its client is gone.
        Ok(match self.state().await {
            Some((_, CallState::Completed | CallState::Running | CallState::Failed)) => "allow",
            Some((ApprovalState::Waiting, _)) => "ask",
            _ => "deny",
        }
        .to_owned())
    }
}

/// What an answer says of the call.
fn of_reply(reply: &Value) -> &'static str {
    let state = reply["result"]["_meta"]["dev.portcullis/call"]["state"].as_str();
    match (state, reply.get("error")) {
        (Some("awaiting_approval"), _) => "ask",
        (None | Some("completed"), None) => "allow",
        _ => "deny",
    }
}

/// The file that the fixture's tools stand in.
const OFFERED: &str = "offered.json";
const DESCRIPTION: &str = "Does what it is called.";

/// Writes down every tool that the case calls; the file's path.
fn offered(case: &Case, tree: &Tree) -> Result<String, String> {
    let called = case.steps.iter().filter_map(|step| step.get("call")?["tool"].as_str());
    let mut names: Vec<&str> = called.collect();
    names.sort_unstable();
    names.dedup();
    let tools: Vec<Value> = names
        .into_iter()
        .map(|name| json!({ "name": name, "description": DESCRIPTION, "inputSchema": { "type": "object" } }))
        .collect();
    let file = tree.aside()?.join(OFFERED);
    std::fs::write(&file, json!(tools).to_string()).map_err(|e| e.to_string())?;
    Ok(file.to_string_lossy().into_owned())
}

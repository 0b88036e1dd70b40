//! What becomes of calls whose end cannot be written down at once, or whose task breaks off.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use serde_json::{Value, json};

use super::fixture::{Fixture, modern};
use crate::clock::Clock;
use crate::gate::{CallFilter, Exchange, ToClient};
use crate::message::{Limits, Message};
use crate::record::{ApprovalState, CallRecord, CallState, Decision, Vote};
use crate::store::Filter;

impl Fixture {
    fn calls(&self, tool: &str, arguments: Value) -> Exchange {
        let agent = self.gate.directory().agent(None, true, Clock::system().now()).unwrap();
        let body = modern(1, "tools/call", json!({"name": tool, "arguments": arguments}));
        let message = Message::strict(body.to_string().into(), Limits::default()).unwrap();
        self.gate.stateless(&agent.config.name, "fake").unwrap().request(message, None, None)
    }

    async fn approve(&self) {
        let waiting = Filter { state: Some(ApprovalState::Waiting), ..Filter::default() };
        let held = eventually(async || self.gate.store().list(waiting.clone()).await.unwrap().0.pop()).await;
        let vote = Vote {
            by: "ana".to_owned(),
            decision: Decision::Approve,
            channel: "api".to_owned(),
            note: None,
            teams: Vec::new(),
            digest: held.call().digest.clone(),
            remember: None,
            at: Clock::system().now(),
        };
        self.gate.vote(&held.approval.id, vote).await.unwrap();
    }

    async fn ended(&self) -> CallRecord {
        let only = async || self.gate.calls(CallFilter::default()).await.unwrap().0.pop();
        eventually(async || only().await.filter(|call| call.outcome.is_some())).await
    }

    fn audited(&self, event: &str) -> Vec<Value> {
        let folder = self.gate.config().state_dir.join("audit");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|e| e == "jsonl"));
        let text: String = logs.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["event"] == event).collect()
    }
}

async fn eventually<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    for _ in 0..400 {
        if let Some(found) = ask().await {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came");
}

async fn answer(exchange: &mut Exchange) -> Value {
    loop {
        match exchange.events.recv().await.expect("an answer") {
            ToClient::Done(reply) => return serde_json::from_slice(&reply.bytes).unwrap(),
            ToClient::Held | ToClient::Message(_) => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_task_breaks_off_is_answered_and_has_failed() {
    for tool in ["echo", "held"] {
        let fixture = Fixture::start("").await;
        let mut exchange = fixture.calls(tool, json!({"panic": true}));
        if tool == "held" {
            fixture.approve().await;
        }
        let answer = answer(&mut exchange).await;
        assert_eq!(answer["error"]["code"], -32603, "{tool}: {answer}");
        let call = fixture.ended().await;
        assert_eq!((call.state, call.may_have_run), (CallState::Failed, true), "{tool}");
        let ends = eventually(async || Some(fixture.audited("call.end")).filter(|ends| !ends.is_empty())).await;
        assert_eq!((ends.len(), &ends[0]["state"]), (1, &json!("failed")), "{tool}: {ends:?}");
        assert_eq!(fixture.gate.running(), 0, "{tool}");
        fixture.gate.ready().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_could_not_be_stored_is_stored_once_that_works_again() {
    let mut fixture = Fixture::start("").await;
    let mut exchange = fixture.calls("held", json!({"after_ms": 500}));
    fixture.approve().await;
    fixture.hears("after_ms").await;
    let other = rusqlite::Connection::open(fixture.gate.config().state_dir.join("portcullis.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answer = answer(&mut exchange).await;
    assert_eq!(answer["result"]["content"][0]["text"], "late", "its client hears of it all the same: {answer}");
    let faults = fixture.gate.ready().await.unwrap_err();
    assert!(faults[0].starts_with("store: "), "{faults:?}");
    other.execute_batch("ROLLBACK").unwrap();
    let call = fixture.ended().await;
    assert_eq!(call.state, CallState::Completed);
    eventually(async || fixture.gate.ready().await.ok()).await;
    assert_eq!(fixture.audited("call.end").len(), 1);
    let (held, _) = fixture.gate.store().list(Filter::default()).await.unwrap();
    assert!(held[0].delivered, "what its client was told is not told again");
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_the_log_could_not_take_are_written_later() {
    let fixture = Fixture::start("audit: {rotate: 1KiB}").await;
    let folder = fixture.gate.config().state_dir.join("audit");
    // The next file cannot be made where a folder stands.
    let next = folder.join(format!("{}-0002.jsonl", fixture.gate.store().process()));
    std::fs::create_dir(&next).unwrap();
    let mut exchange = fixture.calls("echo", json!({"x": "y".repeat(2000)}));
    let refused = answer(&mut exchange).await;
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().contains("audit log"), "{refused}");
    assert!(fixture.gate.ready().await.is_err());
    std::fs::remove_dir(&next).unwrap();
    fixture.gate.ready().await.unwrap();
    let ends = fixture.audited("call.end");
    assert_eq!((ends.len(), &ends[0]["state"]), (1, &json!("failed")), "{ends:?}");
    assert_eq!(fixture.audited("audit.resumed").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_stopped_a_running_call_is_recorded() {
    let mut fixture = Fixture::start("").await;
    let mut exchange = fixture.calls("held", json!({"n": "held-one"}));
    fixture.approve().await;
    fixture.hears("held-one").await;
    let running = fixture.gate.calls(CallFilter::default()).await.unwrap().0.pop().unwrap();
    fixture.gate.cancel(&running.id, "ana").await.unwrap();
    let answer = answer(&mut exchange).await;
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("stopped by ana"), "{answer}");
    let call = fixture.ended().await;
    assert_eq!((call.state, call.detail.as_deref()), (CallState::Cancelled, Some("stopped by ana")));
    assert_eq!(fixture.audited("call.end")[0]["detail"], "stopped by ana");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_removed_lets_nothing_through() {
    let fixture = Fixture::start("").await;
    let file = fixture.gate.config().state_dir.join("portcullis.db");
    std::fs::rename(&file, file.with_extension("gone")).unwrap();
    for tool in ["echo", "held"] {
        let refused = answer(&mut fixture.calls(tool, json!({"tool": tool}))).await;
        let text = refused["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("store does not work"), "{tool}: {refused}");
    }
}

/// 64 who decide one call at the same time, some to approve it and some to reject it, a thousand times over: one of them
/// decides it, all others of the other mind hear so, and it runs once or not at all.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_races_one_decides_and_it_runs_at_most_once() {
    const ROUNDS: usize = 1_000;
    const DECIDERS: usize = 64;
    let mut fixture = Fixture::start("approvals: {max_waiting: 50}").await;
    let waiting = Filter { state: Some(ApprovalState::Waiting), ..Filter::default() };
    let (mut approved, mut rejected) = (0, 0);
    for round in 0..ROUNDS {
        let mut exchange = fixture.calls("held", json!({"n": round, "after_ms": 0}));
        let held = eventually(async || fixture.gate.store().list(waiting.clone()).await.unwrap().0.pop()).await;
        let deciders = (0..DECIDERS).map(|n| {
            let (gate, id, digest) =
                (std::sync::Arc::clone(&fixture.gate), held.approval.id.clone(), held.call().digest.clone());
            tokio::spawn(async move {
                // The first is another each time.
                let decision = if (n + round) % 2 == 0 { Decision::Approve } else { Decision::Reject };
                let vote = Vote {
                    by: "ana".to_owned(),
                    decision,
                    channel: "api".to_owned(),
                    note: Some(n.to_string()),
                    teams: Vec::new(),
                    digest,
                    remember: None,
                    at: Clock::system().now(),
                };
                (decision, gate.vote(&id, vote).await.is_ok())
            })
        });
        let decided: Vec<(Decision, bool)> =
            futures_util::future::join_all(deciders).await.into_iter().map(Result::unwrap).collect();
        let won = |wanted: Decision| decided.iter().any(|(decision, counted)| *decision == wanted && *counted);
        assert!(won(Decision::Approve) != won(Decision::Reject), "round {round}: one of the two: {decided:?}");
        let answer = answer(&mut exchange).await;
        let ran = answer["result"]["isError"] != true;
        assert_eq!(ran, won(Decision::Approve), "round {round}: {answer}");
        if ran { approved += 1 } else { rejected += 1 }
    }
    assert_eq!(approved + rejected, ROUNDS);
    let mut runs = 0;
    while let Ok(told) = fixture.heard.try_recv() {
        runs += usize::from(told.contains(r#""name":"held""#) || told.contains("tools/call"));
    }
    assert_eq!(runs, approved, "each approved call reached its executor once");
    let votes = fixture.audited("approval.vote");
    assert!(votes.len() >= ROUNDS, "{} votes are written down", votes.len());
    assert_eq!(fixture.audited("call.end").len(), ROUNDS);
}

//! What operators order: agents that are paused, sessions that are stopped, in every process on the state folder.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, reply, text};
use crate::harness::eventually;
use crate::harness::gateway::Home;

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
      - { name: sleep, verdict: allow, command: sleep }
";

fn home(approvals: Value) -> Home {
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    std::fs::create_dir_all(home.root().join("docs")).expect("a folder");
    std::fs::write(home.root().join("docs/a.md"), "a").expect("a file");
    home.with("approvals", approvals)
}

fn patient() -> Value {
    json!({ "hold_for": "60s", "expires": "60s", "hold_grace": "30s", "max_waiting": 500 })
}

fn write(name: &str) -> Value {
    json!({ "path": name, "content": "written once" })
}

fn agent_named(agents: &Value) -> String {
    agents["items"][0]["name"].as_str().expect("an agent").to_owned()
}

#[tokio::test]
async fn a_paused_agent_calls_nothing_and_what_it_had_waiting_is_withdrawn() {
    let home = home(patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("a.md")).await;
    let held = gateway.held(1).await;
    let agents = gateway.get("agents").await;
    let name = agent_named(&agents);
    assert_eq!((&agents["items"][0]["waiting"], &agents["items"][0]["paused"]), (&json!(1), &Value::Null), "{agents}");

    let reason = json!({ "reason": "it deletes too much" });
    let (status, paused) = gateway.api(Method::POST, &format!("agents/{name}/pause"), reason).await;
    assert_eq!((status, &paused["paused"]["reason"]), (200, &json!("it deletes too much")), "{paused}");
    assert_eq!(paused["waiting"], 0);
    let withdrawn = reply(answer, 1).await;
    assert_eq!((&about(&withdrawn)["state"], &about(&withdrawn)["reason"]), (&json!("rejected"), &json!("paused")));
    assert!(text(&withdrawn).contains("paused the agent: it deletes too much"), "{withdrawn}");
    assert_eq!(gateway.approve(&held[0]).await.0, 410);
    for (id, tool, arguments) in [(2, "read_file", json!({ "path": "docs/a.md" })), (3, "write_file", write("b.md"))] {
        let refused = agent.call(id, tool, arguments).await;
        assert_eq!(
            (&about(&refused)["reason"], &about(&refused)["retry"]),
            (&json!("paused"), &json!("never")),
            "{refused}"
        );
    }
    assert!(gateway.waiting().await.is_empty());

    // It outlives the gateway, and only an operator ends it.
    gateway.crash();
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let refused = agent.call(1, "read_file", json!({ "path": "docs/a.md" })).await;
    assert_eq!(about(&refused)["reason"], "paused", "{refused}");
    assert_eq!(gateway.api(Method::POST, "agents/nobody/pause", json!({})).await.0, 404);
    let (status, resumed) = gateway.api(Method::POST, &format!("agents/{name}/resume"), Value::Null).await;
    assert_eq!((status, &resumed["paused"]), (200, &Value::Null));
    let read = agent.call(2, "read_file", json!({ "path": "docs/a.md" })).await;
    assert_ne!(read["result"]["isError"], true, "{read}");
    let metrics = gateway.metrics().await;
    assert!(metrics.contains(r#"portcullis_rejections_total{group="default",reason="paused"} 1"#), "{metrics}");
}

/// The other process learns of it without being asked.
#[tokio::test]
async fn a_pause_reaches_every_process_on_the_state_folder() {
    let home = home(patient());
    let (one, other) = (home.serve(), home.serve());
    let agent = Agent::legacy(&other.url("work")).await;
    let name = agent_named(&one.get("agents").await);
    let answer = agent.begin(1, "write_file", write("a.md")).await;
    one.held(1).await;
    assert_eq!(one.api(Method::POST, &format!("agents/{name}/pause"), json!({})).await.0, 200);
    assert_eq!(about(&reply(answer, 1).await)["reason"], "paused");
    // What would be held is refused by the store itself, at once.
    let held = agent.call(2, "write_file", write("b.md")).await;
    assert_eq!(about(&held)["reason"], "paused", "{held}");
    eventually("the other process to follow", || async {
        let read = agent.call(3, "read_file", json!({ "path": "docs/a.md" })).await;
        (about(&read)["reason"] == "paused").then_some(())
    })
    .await;
}

/// Decided and paused at the same time: what is claimed was claimed before the pause was answered.
#[tokio::test]
async fn nothing_runs_after_a_pause_was_answered() {
    let home = home(patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let name = agent_named(&gateway.get("agents").await);
    const MANY: usize = 100;
    let mut answers = Vec::new();
    for n in 0..MANY {
        answers.push(agent.begin(n as u64 + 1, "write_file", write(&format!("docs/{n}.md"))).await);
    }
    let held = gateway.held(MANY).await;
    let (approving, pausing) = (held.iter().map(|approval| gateway.approve(approval)), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let (status, _) = gateway.api(Method::POST, &format!("agents/{name}/pause"), json!({})).await;
        assert_eq!(status, 200);
        let written = |n: &usize| home.root().join(format!("docs/{n}.md")).exists();
        let running = gateway.get("calls?state=running&limit=200").await["items"].as_array().map_or(0, Vec::len);
        (0..MANY).filter(written).count() + running
    });
    let (decided, at_the_pause) = tokio::join!(futures_util::future::join_all(approving), pausing);
    let mut ran = 0;
    for (n, answer) in answers.into_iter().enumerate() {
        let end = reply(answer, n as u64 + 1).await;
        let is_written = home.root().join(format!("docs/{n}.md")).exists();
        assert_eq!(end["result"]["isError"] != true, is_written, "{end}");
        if !is_written {
            assert_eq!(about(&end)["reason"], "paused", "{end}");
        }
        ran += usize::from(is_written);
    }
    assert!(ran <= at_the_pause, "{ran} ran, {at_the_pause} had run or ran when the pause was answered");
    let refused = decided.iter().filter(|(status, _)| *status == 410).count();
    assert!(refused + decided.iter().filter(|(status, _)| *status == 200).count() == MANY, "{decided:?}");
}

#[tokio::test]
async fn everything_of_a_session_stops_and_nothing_of_another() {
    let home = home(patient());
    let (gateway, other) = (home.serve(), home.serve());
    let (mine, theirs) = (Agent::legacy(&other.url("work")).await, Agent::legacy(&gateway.url("work")).await);
    let waiting = mine.begin(1, "write_file", write("a.md")).await;
    let running = mine.begin(2, "execute_cmd", json!({ "command": "sleep 60" })).await;
    let session = gateway.held(1).await[0]["call"]["session"].clone();
    let session = session.as_str().expect("a session");
    let untouched = theirs.begin(1, "write_file", write("b.md")).await;
    gateway.held(2).await;
    eventually("the command to run", || async {
        let calls = other.get("calls?state=running").await;
        (calls["items"].as_array().map_or(0, Vec::len) == 1).then_some(())
    })
    .await;
    let (status, stops) = gateway.api(Method::POST, &format!("sessions/{session}/cancel"), Value::Null).await;
    assert_eq!((status, &stops["withdrawn"]), (200, &json!(1)), "{stops}");
    for (id, answer) in [(1, waiting), (2, running)] {
        let end = reply(answer, id).await;
        assert_eq!(about(&end)["state"], "cancelled", "{end}");
        assert!(text(&end).contains("stopped by"), "{end}");
    }
    let left = gateway.held(1).await;
    assert_ne!(left[0]["call"]["session"], session);
    assert_eq!(gateway.approve(&left[0]).await.0, 200);
    assert_ne!(reply(untouched, 1).await["result"]["isError"], true);
    assert_eq!(gateway.api(Method::POST, "sessions/ses_unknown/cancel", Value::Null).await.0, 404);
    let metrics = other.metrics().await;
    assert!(metrics.contains(r#"outcome="cancelled""#) && !metrics.contains(r#"outcome="failed""#), "{metrics}");
}

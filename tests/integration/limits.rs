//! Limits over the wire: what is over one is rejected with the time to wait, or held in its name; only what ran counts.

use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, text};
use crate::harness::gateway::Home;
use crate::harness::peers;

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: few-reads, verdict: allow, tool: read_file, path: docs/, limit: { per: day, calls: 2 } }
      - { name: one-list, verdict: allow, tool: list_files, path: docs/, limit: { per: minute, calls: 1, by: agent } }
      - name: small-writes
        verdict: allow
        tool: write_file
        path: out/
        limit: { per: day, calls: 1, by: [/path], then: ask }
      - { name: looked-at, verdict: ask, tool: read_file, path: docs/b.md }
";

fn home() -> Home {
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    std::fs::create_dir(home.root().join("out")).expect("a folder");
    home.with("approvals", json!({ "hold_for": "30s" }))
}

fn ran(reply: &Value) -> bool {
    reply["result"]["isError"] != true && reply["result"].is_object()
}

#[tokio::test]
async fn over_a_limit_a_call_is_rejected_with_the_time_to_wait() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let read = json!({ "path": "docs/a.md" });
    for id in 1..=2 {
        assert!(ran(&agent.call(id, "read_file", read.clone()).await));
    }
    let over = agent.call(3, "read_file", read.clone()).await;
    assert_eq!((&about(&over)["state"], &about(&over)["reason"]), (&json!("rejected"), &json!("rate_limit")), "{over}");
    assert_eq!(about(&over)["retry"], "after_ms", "{over}");
    let wait = about(&over)["after_ms"].as_u64().expect("a time to wait");
    assert!((1..=86_400_000).contains(&wait), "{wait}");
    assert!(text(&over).contains("the limit of rule `few-reads` (2 calls per day)"), "{over}");
    // Shared with a second process on the same folder, and with the next one.
    let second = home.serve();
    let other = Agent::legacy(&second.url("work")).await;
    assert_eq!(about(&other.call(1, "read_file", read).await)["reason"], "rate_limit");

    let list = json!({ "path": "docs" });
    assert!(ran(&agent.call(4, "list_files", list.clone()).await));
    let over = agent.call(5, "list_files", list).await;
    assert_eq!(about(&over)["reason"], "rate_limit", "{over}");
    assert!(about(&over)["after_ms"].as_u64().expect("a time") <= 60_000, "{over}");
}

#[tokio::test]
async fn over_a_limit_that_asks_a_human_decides() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let write = |text: &str| json!({ "path": "out/a.md", "content": text });
    assert!(ran(&agent.call(1, "write_file", write("one")).await));
    assert!(
        ran(&agent.call(2, "write_file", json!({ "path": "out/b.md", "content": "b" })).await),
        "a counter of its own"
    );
    let answer = agent.begin(3, "write_file", write("two")).await;
    let held = gateway.held(1).await;
    assert_eq!(held[0]["call"]["decided_by"], json!(["limit:small-writes"]), "{held:?}");
    assert_eq!(held[0]["call"]["verdict"], "ask");
    let metrics = gateway.metrics().await;
    for count in ["verdict=\"ask\"} 1", "verdict=\"allow\"} 2"] {
        let line = format!("portcullis_verdicts_total{{group=\"default\",mode=\"enforce\",{count}");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    assert_eq!(std::fs::read_to_string(home.root().join("out/a.md")).expect("written"), "one");
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    assert!(ran(&crate::harness::agent::reply(answer, 3).await));
    assert_eq!(std::fs::read_to_string(home.root().join("out/a.md")).expect("written"), "two");
}

/// What is approved too late for its limit is told when there is room, not some time or other.
#[tokio::test]
async fn an_approved_call_over_a_limit_is_told_when_there_is_room() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "read_file", json!({ "path": "docs/b.md" })).await;
    let held = gateway.held(1).await.remove(0);
    for id in 2..=3 {
        assert!(ran(&agent.call(id, "read_file", json!({ "path": "docs/a.md" })).await));
    }
    let over = agent.call(4, "read_file", json!({ "path": "docs/a.md" })).await;
    assert_eq!(gateway.approve(&held).await.0, 200);
    let refused = crate::harness::agent::reply(answer, 1).await;
    assert_eq!(about(&refused)["reason"], "rate_limit", "{refused}");
    let wait = |reply: &Value| about(reply)["after_ms"].as_u64().expect("a time to wait");
    // The same midnight, a moment later.
    assert!(wait(&refused) <= wait(&over) && wait(&over) - wait(&refused) < 20_000, "{over} {refused}");
}

/// A tool may have a time limit of its own.
#[tokio::test]
async fn a_tool_that_takes_too_long_is_given_up_on() {
    let policy =
        "version: 1\ngroups: { default: { otherwise: deny, rules: [{ verdict: allow, tool: [count, slow] }] } }\n";
    let home = Home::new(policy, json!({}));
    let runs = home.base().join("runs.txt");
    let command = peers::fixture("counter.py", &[&runs.to_string_lossy()]);
    let counter = json!({ "command": command, "new_tools": "accept", "timeouts": { "sl*": "1s", "slow": "1h" } });
    let home = home.with("upstreams", json!({ "counter": counter }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("counter")).await;
    let late = agent.call(1, "slow", json!({ "n": "late", "seconds": 20.0 })).await;
    assert!(text(&late).contains("no answer within 1 s") && text(&late).contains("may have run"), "{late}");
    let call = gateway.get(&format!("calls/{}", about(&late)["call"].as_str().expect("an id"))).await;
    assert_eq!(
        (&call["outcome"], &call["reason"], &call["may_have_run"]),
        (&json!("failed"), &json!("timeout"), &json!(true))
    );
    let soon = agent.call(2, "count", json!({ "n": "soon" })).await;
    assert!(text(&soon).contains("counted soon"), "{soon}");
}

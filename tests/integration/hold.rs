//! Holding a call: the stream lives, the hand-off attaches, one approval means one run.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, text};
use crate::harness::gateway::Home;

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
";

fn home(approvals: Value) -> Home {
    let workspace = json!({ "work": { "workspace": true, "root": "$ROOT" } });
    Home::new(POLICY, workspace).with("approvals", approvals)
}

fn write(name: &str) -> Value {
    json!({ "path": name, "content": "written once" })
}

#[tokio::test]
async fn after_hold_for_the_identical_call_picks_it_up() {
    let home = home(json!({ "hold_for": "700ms", "expires": "60s", "hold_grace": "30s" }));
    let gateway = home.serve();
    for (round, agent) in
        [Agent::legacy(&gateway.url("work")).await, Agent::modern(&gateway.url("work"))].iter().enumerate()
    {
        let name = format!("new-{round}.md");
        let handed_off = agent.call(1, "write_file", write(&name)).await;
        assert_eq!(handed_off["result"]["isError"], true, "{handed_off}");
        assert_eq!(about(&handed_off)["state"], "awaiting_approval", "{handed_off}");
        assert_eq!(about(&handed_off)["retry"], "same_call", "{handed_off}");
        assert!(!home.root().join(&name).exists());
        let held = gateway.held(1).await;
        assert_eq!(held.len(), 1, "{held:?}");
        assert_eq!(about(&handed_off)["approval"], held[0]["id"]);
        assert_eq!(gateway.approve(&held[0]).await.0, 200);
        let ran = agent.call(2, "write_file", write(&name)).await;
        assert_ne!(ran["result"]["isError"], true, "{ran}");
        assert_eq!(std::fs::read_to_string(home.root().join(&name)).expect("written"), "written once");
        let call = gateway.ended(held[0]["call"]["id"].as_str().expect("an id")).await;
        assert_eq!(call["outcome"], "completed", "{call}");
        // Once used, the approval is consumed: the next identical call is a new one.
        let new = agent.call(3, "write_file", write(&name)).await;
        assert_eq!(about(&new)["state"], "awaiting_approval", "{new}");
        assert_ne!(about(&new)["approval"], held[0]["id"], "{new}");
        let again = gateway.held(1).await;
        gateway.reject(&again[0], "no").await;
    }
}

#[tokio::test]
async fn a_digest_that_was_not_shown_decides_nothing() {
    let home = home(json!({ "hold_for": "30s" }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let open = agent.begin(1, "write_file", write("x.md")).await;
    assert_eq!(open.status, 200, "headers come at once");
    let held = gateway.held(1).await;
    let path = format!("approvals/{}/approve", held[0]["id"].as_str().expect("an id"));
    let (status, problem) = gateway.api(Method::POST, &path, json!({ "digest": "sha256:00" })).await;
    assert_eq!(status, 412, "{problem}");
    let (status, _) = gateway.api(Method::POST, &path, json!({})).await;
    assert!((400..=422).contains(&status), "a decision without a digest: {status}");
    assert_eq!(gateway.waiting().await.len(), 1);
    assert!(!home.root().join("x.md").exists());
}

#[tokio::test]
async fn what_changed_under_an_approval_is_stale() {
    let home = home(json!({ "hold_for": "30s" }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("n/x.md")).await;
    let held = gateway.held(1).await;
    std::fs::create_dir(home.root().join("elsewhere")).expect("a folder");
    std::os::unix::fs::symlink("elsewhere", home.root().join("n")).expect("a link");
    gateway.approve(&held[0]).await;
    let reply = crate::harness::agent::reply(answer, 1).await;
    assert_eq!(about(&reply)["reason"], "stale", "{reply}");
    assert!(!home.root().join("elsewhere/x.md").exists());
}

/// What runs is what was approved, also where it stands in a file.
#[tokio::test]
async fn a_script_that_was_changed_under_an_approval_is_stale() {
    let home = home(json!({ "hold_for": "30s" }));
    std::fs::write(home.root().join("deploy.sh"), "echo deployed > out.txt\n").expect("a script");
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let run = json!({ "command": "sh deploy.sh" });
    let answer = agent.begin(1, "execute_cmd", run.clone()).await;
    let held = gateway.held(1).await;
    std::fs::write(home.root().join("deploy.sh"), "echo stolen > out.txt\n").expect("another script");
    gateway.approve(&held[0]).await;
    let reply = crate::harness::agent::reply(answer, 1).await;
    assert_eq!(about(&reply)["reason"], "stale", "{reply}");
    assert!(text(&reply).contains("deploy.sh"), "{reply}");
    assert!(!home.root().join("out.txt").exists());
    let answer = agent.begin(2, "execute_cmd", run).await;
    let held = gateway.held(1).await;
    gateway.approve(&held[0]).await;
    let reply = crate::harness::agent::reply(answer, 2).await;
    assert_ne!(reply["result"]["isError"], true, "{reply}");
    assert_eq!(std::fs::read_to_string(home.root().join("out.txt")).expect("it ran"), "stolen\n");
}

#[tokio::test]
async fn a_policy_that_denies_by_now_refuses_what_was_approved() {
    let home = home(json!({ "hold_for": "30s" }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("x.md")).await;
    let held = gateway.held(1).await;
    home.write_policy(
        &POLICY.replace(
            "rules:",
            "rules:\n      - { name: no-writes, verdict: deny, tool: write_file, reason: Not today. }",
        ),
    );
    let (status, answered) = gateway.api(Method::POST, "policy/reload", Value::Null).await;
    assert_eq!(status, 200, "{answered}");
    gateway.approve(&held[0]).await;
    let reply = crate::harness::agent::reply(answer, 1).await;
    assert_eq!(reply["result"]["isError"], true, "{reply}");
    assert_eq!(about(&reply)["state"], "rejected", "{reply}");
    assert!(!home.root().join("x.md").exists());
}

/// The same rule asks for more by the time of the release: what was approved is shown anew, on the new terms.
#[tokio::test]
async fn terms_that_were_tightened_meanwhile_ask_again() {
    let rule = "rules:\n      - { name: writes, verdict: ask, tool: write_file, approval: { severity: low } }";
    let policy = POLICY.replace("rules:", rule);
    let home = home(json!({ "hold_for": "30s", "expires": "10m" }));
    home.write_policy(&policy);
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("x.md")).await;
    let held = gateway.held(1).await.remove(0);
    assert_eq!(held["severity"], "low", "{held}");
    home.write_policy(&policy.replace("severity: low", "severity: critical, reason_required: true, expires: 5m"));
    assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    assert_eq!(gateway.approve(&held).await.0, 200);
    let path = format!("approvals/{}", held["id"].as_str().expect("an id"));
    let again = crate::harness::eventually("a new question", || async {
        Some(gateway.get(&path).await).filter(|approval| approval["severity"] == "critical")
    })
    .await;
    assert_eq!(
        (&again["state"], &again["votes"], &again["call"]["id"]),
        (&json!("waiting"), &json!([]), &held["call"]["id"])
    );
    assert_eq!(again["reason_required"], true, "{again}");
    let expires = |approval: &Value| approval["expires_at"].as_str().expect("a time").to_owned();
    assert!(expires(&again) < expires(&held), "{again}");
    assert!(!home.root().join("x.md").exists());
    assert_eq!(gateway.approve(&held).await.0, 412, "what was shown first is not what is asked now");
    assert_eq!(gateway.approve(&again).await.0, 200);
    let reply = crate::harness::agent::reply(answer, 1).await;
    assert_ne!(reply["result"]["isError"], true, "{reply}");
}

#[tokio::test]
async fn terms_that_were_loosened_meanwhile_need_no_new_vote() {
    let rule = "rules:\n      - { name: writes, verdict: ask, tool: write_file, approval: { severity: high } }\n      \
                - { name: new-files, verdict: ask, access: write, path: new/ }";
    let policy = POLICY.replace("rules:", rule);
    let home = home(json!({ "hold_for": "30s" }));
    home.write_policy(&policy);
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("new/x.md")).await;
    let held = gateway.held(1).await.remove(0);
    let decided_by = held["call"]["decided_by"].as_array().expect("a list").len();
    assert_eq!(decided_by, 2, "{held}");
    home.write_policy(&policy.replace("path: new/", "path: other/").replace("severity: high", "severity: normal"));
    assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    assert_eq!(gateway.approve(&held).await.0, 200);
    let reply = crate::harness::agent::reply(answer, 1).await;
    assert_ne!(reply["result"]["isError"], true, "{reply}");
    assert!(home.root().join("new/x.md").exists());
}

#[tokio::test]
async fn a_bad_reload_keeps_the_last_good_policy() {
    let home = home(json!({}));
    let gateway = home.serve();
    let version = gateway.get("policy").await["version"].clone();
    home.write_policy("version: [\n");
    let (status, problem) = gateway.api(Method::POST, "policy/reload", Value::Null).await;
    assert!((400..500).contains(&status), "{status} {problem}");
    let policy = gateway.get("policy").await;
    assert_eq!(policy["version"], version);
    assert!(policy["error"].is_string(), "{policy}");
    let agent = Agent::legacy(&gateway.url("work")).await;
    let read = agent.call(1, "read_file", json!({ "path": "docs/a.md" })).await;
    assert!(text(&read).contains("hello from a"), "{read}");
}

/// A second process's decision reaches the one that holds the stream.
#[tokio::test]
async fn another_process_on_the_same_state_decides() {
    let home = home(json!({ "hold_for": "30s" }));
    let (holds, decides) = (home.serve(), home.serve());
    let agent = Agent::legacy(&holds.url("work")).await;
    let answer = agent.begin(1, "write_file", write("x.md")).await;
    let held = decides.held(1).await;
    let start = std::time::Instant::now();
    assert_eq!(decides.approve(&held[0]).await.0, 200);
    let reply = crate::harness::agent::reply(answer, 1).await;
    let took = start.elapsed();
    assert_ne!(reply["result"]["isError"], true, "{reply}");
    assert!(took < Duration::from_secs(2), "it took {took:?} to wake the waiter");
}

/// A held stream shows signs of life, and progress that only rises where the client asked for it.
#[tokio::test]
async fn a_held_stream_stays_alive() {
    let home = home(json!({ "hold_for": "60s" }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let mut message = agent.message(1, "tools/call", json!({ "name": "write_file", "arguments": write("x.md") }));
    message["params"]["_meta"] = json!({ "progressToken": "p-1" });
    let mut answer = agent.post(&message).await;
    let held = gateway.held(1).await;
    let mut last = -1.0;
    for _ in 0..2 {
        let (event, _) =
            tokio::time::timeout(Duration::from_secs(15), answer.event()).await.expect("in time").expect("an event");
        assert_eq!(event["method"], "notifications/progress", "{event}");
        assert_eq!(event["params"]["progressToken"], "p-1");
        let progress = event["params"]["progress"].as_f64().expect("a number");
        assert!(progress > last, "{event}");
        last = progress;
    }
    gateway.approve(&held[0]).await;
    let reply = crate::harness::agent::reply(answer, 1).await;
    assert_ne!(reply["result"]["isError"], true, "{reply}");
}

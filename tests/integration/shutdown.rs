//! The gateway is told to go down, or a session to end, in the middle of calls: what runs ends, what waits comes back.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, reply, text};
use crate::harness::eventually;
use crate::harness::gateway::Home;
use crate::harness::peers;

const POLICY: &str = "
version: 1
groups: { default: { otherwise: ask, rules: [{ name: counted, verdict: ask, tool: count }] } }
";

fn home() -> Home {
    let home = Home::new(POLICY, json!({}));
    let runs = home.base().join("runs.txt");
    std::fs::write(&runs, "").expect("a file");
    let command = peers::fixture("counter.py", &[&runs.to_string_lossy()]);
    home.with("upstreams", json!({ "counter": { "command": command, "new_tools": "accept" } }))
}

fn runs(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.base().join("runs.txt")).expect("the runs");
    text.lines().map(str::to_owned).collect()
}

fn of<'a>(waiting: &'a [Value], n: &str) -> &'a Value {
    waiting.iter().find(|approval| approval["call"]["arguments"]["n"] == n).expect("it waits")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_call_that_runs_may_end_and_a_waiting_client_is_told_to_come_back() {
    let home = home();
    let gateway = home.serve();
    let old = Agent::legacy(&gateway.url("counter")).await;
    let new = Agent::modern(&gateway.url("counter"));
    let runs_on = old.begin(1, "slow", json!({ "n": "runs", "seconds": 1.0 })).await;
    let waits = old.begin(2, "count", json!({ "n": "waits" })).await;
    let mut waiting = gateway.held(2).await;
    assert_eq!(gateway.approve(of(&waiting, "runs")).await.0, 200);
    eventually("the run", || async { Some(()).filter(|()| runs(&home) == ["runs"]) }).await;
    let stateless = new.begin(3, "count", json!({ "n": "stateless" })).await;
    waiting = gateway.held(2).await;

    let (ended, handed_off, _) = tokio::join!(reply(runs_on, 1), reply(waits, 2), async move {
        tokio::task::spawn_blocking(move || gateway.terminate()).await
    });
    assert_eq!(text(&ended), "counted runs slowly");
    assert!(text(&handed_off).starts_with("Not run yet"), "{handed_off}");
    assert!(text(&reply(stateless, 3).await).starts_with("Not run yet"));

    let gateway = home.serve();
    let again = gateway.held(2).await;
    for (n, agent) in [("waits", old), ("stateless", new)] {
        assert_eq!(of(&again, n)["id"], of(&waiting, n)["id"], "the same approval");
        assert_eq!(gateway.approve(of(&again, n)).await.0, 200);
        let reply = agent.back_at(&gateway.url("counter")).call(4, "count", json!({ "n": n })).await;
        assert_eq!(text(&reply), format!("counted {n}"));
    }
    assert_eq!(runs(&home), ["runs", "waits", "stateless"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_outlives_its_session_leaves_no_child_behind() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("counter")).await;
    let open = agent.begin(1, "count", json!({ "n": "late" })).await;
    let held = gateway.held(1).await;
    let session = agent.session.clone().expect("a session");
    let ended = agent.http.send(Method::DELETE, &agent.url, &[("mcp-session-id", session.as_str())], "").await;
    assert_eq!(ended.status, 204);
    eventually("the end of its child", || async { Some(()).filter(|()| gateway.children() == 0) }).await;
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    assert_eq!(text(&reply(open, 1).await), "counted late");
    eventually("the end of the child that ran it", || async { Some(()).filter(|()| gateway.children() == 0) }).await;
    assert_eq!(runs(&home), ["late"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_nothing_keeps_nobody_waiting() {
    let policy = "
version: 1
groups: { default: { otherwise: deny, rules: [{ name: all, verdict: allow, tool: '*' }] } }
";
    let command = peers::fixture("faulty.py", &[]);
    let home = Home::new(policy, json!({ "faulty": { "command": command, "timeout": "10s", "new_tools": "accept" } }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("faulty")).await;
    let unread = agent.begin(1, "flood", json!({})).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(text(&agent.back_at(&agent.url).call(2, "fine", json!({})).await), "fine");
    eventually("its end, although its client reads nothing", || async {
        let calls = gateway.get("calls?state=completed").await;
        Some(())
            .filter(|()| calls["items"].as_array().is_some_and(|all| all.iter().any(|call| call["tool"] == "flood")))
    })
    .await;
    drop(unread);
}

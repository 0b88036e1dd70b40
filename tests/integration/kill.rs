//! The gateway is killed with calls held: none is lost, none runs twice, none runs for a client that stays away.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, text};
use crate::harness::gateway::{Home, PORTCULLIS};
use crate::harness::{eventually, peers};

const POLICY: &str = "
version: 1
groups: { default: { otherwise: ask, rules: [{ name: counted, verdict: ask, tool: count }] } }
";

/// How many calls are held, and whose clients come back.
const HELD: usize = 220;
const BACK: usize = 200;

/// Coming back counts from the moment the client is there, however long its upstream takes to start.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_start_of_the_upstream_costs_no_grace() {
    let home = Home::new(POLICY, json!({}));
    let runs = home.base().join("runs.txt");
    std::fs::write(&runs, "").expect("a file");
    let slow = ["sh", "-c", "sleep 3; exec \"$@\"", "sh"].map(str::to_owned);
    let command: Vec<String> =
        slow.into_iter().chain(peers::fixture("counter.py", &[&runs.to_string_lossy()])).collect();
    let home = home
        .with("upstreams", json!({ "counter": { "command": command, "new_tools": "accept" } }))
        .with("approvals", json!({ "hold_for": "60s", "expires": "60s", "hold_grace": "2s" }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("counter")).await;
    let open = agent.begin(1, "count", arguments(1)).await;
    gateway.held(1).await;
    gateway.crash();
    drop(open);

    let gateway = home.serve();
    let held = gateway.held(1).await;
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    let reply = agent.back_at(&gateway.url("counter")).call(2, "count", arguments(1)).await;
    assert_ne!(reply["result"]["isError"], true, "{reply}");
    assert_eq!(lines(&runs).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_held_calls_survive_a_crash() {
    let home = Home::new(POLICY, json!({}));
    let runs = home.base().join("runs.txt");
    std::fs::write(&runs, "").expect("a file");
    let command = peers::fixture("counter.py", &[&runs.to_string_lossy()]);
    let home = home
        .with("upstreams", json!({ "counter": { "command": command, "new_tools": "accept" } }))
        .with("approvals", json!({ "hold_for": "120s", "expires": "300s", "hold_grace": "20s", "max_waiting": 500 }));

    let gateway = home.serve();
    let agents = join_all((0..4).map(|_| async { Agent::legacy(&gateway.url("counter")).await })).await;
    let mut open = Vec::new();
    for n in 0..HELD {
        open.push(agents[n % 4].begin(id(n), "count", arguments(n)).await);
    }
    let before = by_argument(&gateway.held(HELD).await);
    assert_eq!(before.len(), HELD);
    gateway.crash();
    drop(open);

    let gateway = home.serve();
    let waiting = gateway.held(HELD).await;
    assert_eq!(by_argument(&waiting), before, "the same calls wait under the same ids");
    assert_eq!(lines(&runs), Vec::<String>::new(), "nothing ran before it was approved");
    let decided = join_all(waiting.iter().map(|approval| gateway.approve(approval))).await;
    assert!(
        decided.iter().all(|(status, _)| *status == 200),
        "{:?}",
        decided.iter().find(|(status, _)| *status != 200)
    );

    let back: Vec<Agent> = agents.iter().map(|agent| agent.back_at(&gateway.url("counter"))).collect();
    let replies = join_all((0..BACK).map(|n| {
        let agent = &back[n % 4];
        async move { agent.call(1000 + id(n), "count", arguments(n)).await }
    }))
    .await;
    for (n, reply) in replies.iter().enumerate() {
        assert_eq!(text(reply), format!("counted {n}"), "{reply}");
    }

    let stayed_away: Vec<&String> = (BACK..HELD).map(|n| &before[&n.to_string()].1).collect();
    for call in stayed_away {
        let call = gateway.ended(call).await;
        assert_eq!(call["outcome"], "cancelled", "{call}");
    }
    let verify = std::process::Command::new(PORTCULLIS).args(["audit", "verify", "--dir"]).arg(home.state()).output();
    let verify = verify.expect("it starts");
    assert!(verify.status.success(), "after a crash: {}", String::from_utf8_lossy(&verify.stdout));
    let ran = lines(&runs);
    let once: BTreeSet<&String> = ran.iter().collect();
    assert_eq!(ran.len(), once.len(), "a call ran twice");
    assert_eq!(
        once,
        (0..BACK).map(|n| n.to_string()).collect::<Vec<_>>().iter().collect(),
        "exactly those who came back ran"
    );
}

/// What was running when the gateway died may have run; it is never run again.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_call_ends_as_failed_and_is_not_run_again() {
    let home = Home::new(POLICY, json!({}));
    let runs = home.base().join("runs.txt");
    std::fs::write(&runs, "").expect("a file");
    let command = peers::fixture("counter.py", &[&runs.to_string_lossy()]);
    let home = home.with("upstreams", json!({ "counter": { "command": command, "new_tools": "accept" } }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("counter")).await;
    let open = agent.begin(1, "slow", json!({ "n": "only", "seconds": 30.0 })).await;
    let held = gateway.held(1).await;
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    eventually("the run", || async { Some(()).filter(|()| lines(&runs) == ["only"]) }).await;
    gateway.crash();
    drop(open);

    let gateway = home.serve();
    let call = gateway.get(&format!("calls/{}", held[0]["call"]["id"].as_str().expect("an id"))).await;
    assert_eq!((&call["outcome"], &call["may_have_run"]), (&json!("failed"), &json!(true)), "{call}");
    let again = agent.back_at(&gateway.url("counter")).begin(2, "slow", json!({ "n": "only", "seconds": 30.0 })).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(lines(&runs), ["only"], "it was run again by itself");
    drop(again);
}

fn id(n: usize) -> u64 {
    u64::try_from(n).expect("small") + 1
}

fn arguments(n: usize) -> Value {
    json!({ "n": n.to_string() })
}

/// By the argument `n`: the approval's and the call's id.
fn by_argument(approvals: &[Value]) -> BTreeMap<String, (String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let pair = |a: &Value| (text(&a["call"]["arguments"]["n"]), (text(&a["id"]), text(&a["call"]["id"])));
    approvals.iter().map(pair).collect()
}

fn lines(file: &std::path::Path) -> Vec<String> {
    std::fs::read_to_string(file).expect("the runs").lines().map(str::to_owned).collect()
}

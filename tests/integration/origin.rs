//! Several gateways share a state folder: a held call runs where it was asked for, or after that process' end in one
//! that is the very same, and nowhere else.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, text};
use crate::harness::gateway::{Gateway, Home, PORTCULLIS};
use crate::harness::piped::Piped;
use crate::harness::{eventually, peers};

const ALWAYS: &str = "
version: 1
groups: { default: { otherwise: ask, approval: { run: always, hold_for: 300ms } } }
";
const ATTACHED: &str = "
version: 1
groups: { default: { otherwise: ask, approval: { hold_for: 300ms } } }
";
const DENIES: &str = "
version: 1
groups: { default: { otherwise: deny } }
";

/// A home whose upstream `counter` writes what it runs to the file that `$RUNS` names.
fn home(policy: &str) -> Home {
    let counter = peers::fixture("counter.py", &[]);
    let script = "exec \"$0\" \"$@\" \"$RUNS\"".to_owned();
    let command: Vec<String> = ["sh".to_owned(), "-c".to_owned(), script].into_iter().chain(counter).collect();
    Home::new(policy, json!({ "counter": { "command": command, "new_tools": "accept" } }))
}

/// `portcullis stdio` in front of it.
fn stdio(home: &Home) -> Vec<String> {
    let config = home.write_config().to_string_lossy().into_owned();
    [PORTCULLIS, "stdio", "--config", &config].map(str::to_owned).to_vec()
}

fn runs(home: &Home, name: &str) -> PathBuf {
    home.base().join(name)
}

fn ran(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn n(n: &str) -> Value {
    json!({ "n": n })
}

/// One client in either era whose server writes to this file.
async fn client(home: &Home, era: &str, file: &Path) -> Piped {
    let env = [("RUNS", file.to_str().expect("text"))];
    match era {
        "legacy" => Piped::legacy(&stdio(home), &env).await,
        _ => Piped::modern(&stdio(home), &env),
    }
}

async fn one_waits(gateway: &Gateway, argument: &str) -> Value {
    eventually("the held call", || async {
        gateway.waiting().await.into_iter().find(|held| held["call"]["arguments"]["n"] == argument)
    })
    .await
}

async fn end(gateway: &Gateway, held: &Value) -> Value {
    gateway.ended(held["call"]["id"].as_str().expect("an id")).await
}

/// The same command in the same folder under the same id, and another environment.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_approved_for_one_environment_never_runs_in_another() {
    for era in ["modern", "legacy"] {
        let home = home(ALWAYS);
        let gateway = home.serve();
        let (dev, prod) = (runs(&home, "dev"), runs(&home, "prod"));
        let mut in_prod = client(&home, era, &prod).await;
        let mut in_dev = client(&home, era, &dev).await;
        for round in ["1", "2", "3"] {
            let handed_off = in_dev.call(10, "count", n(round)).await;
            assert_eq!(about(&handed_off)["state"], "awaiting_approval", "{handed_off}");
            let held = one_waits(&gateway, round).await;
            // The identical call of the other is another call, and says so.
            let other = in_prod.call(11, "count", n(round)).await;
            assert_ne!(about(&other)["approval"], held["id"], "{other}");
            let waiting = gateway.held(2).await;
            let twin = waiting.iter().find(|other| other["id"] != held["id"]).expect("two");
            let flags = twin["flags"].as_array().expect("flags");
            assert!(
                flags.contains(&json!("same_call_waiting")) && flags.contains(&json!("several_executors")),
                "{twin}"
            );
            assert_ne!(twin["runs_in"], held["runs_in"], "{twin}");
            assert_eq!(gateway.reject(twin, "no").await.0, 200);
            assert_eq!(gateway.approve(&held).await.0, 200);
            let call = end(&gateway, &held).await;
            assert_eq!(call["outcome"], "completed", "{call}");
        }
        assert_eq!((ran(&dev).len(), ran(&prod).len()), (3, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_call_is_attached_only_where_it_was_asked_for() {
    let home = home(ATTACHED);
    let gateway = home.serve();
    let (dev, prod) = (runs(&home, "dev"), runs(&home, "prod"));
    let mut in_prod = client(&home, "modern", &prod).await;
    let mut in_dev = client(&home, "modern", &dev).await;
    in_dev.call(1, "count", n("x")).await;
    let held = one_waits(&gateway, "x").await;
    assert_eq!(gateway.approve(&held).await.0, 200);
    let other = in_prod.call(1, "count", n("x")).await;
    assert_eq!(about(&other)["state"], "awaiting_approval", "{other}");
    assert_ne!(about(&other)["approval"], held["id"], "{other}");
    assert!(text(&in_dev.call(2, "count", n("x")).await).contains("counted"));
    assert_eq!((ran(&dev).len(), ran(&prod).len()), (1, 0));
}

/// The usual set-up: `serve` for the inbox and `stdio` from one configuration. The inbox's process never ends a call of
/// the other as stale.
#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_serves_a_call_runs_it_wherever_it_is_approved() {
    let home = home(ALWAYS);
    let gateway = home.serve();
    let file = runs(&home, "runs");
    let mut client = client(&home, "legacy", &file).await;
    for round in 0..5 {
        let name = format!("{round}");
        client.call(10 + round, "count", n(&name)).await;
        let held = one_waits(&gateway, &name).await;
        assert_eq!(gateway.approve(&held).await.0, 200);
        let call = end(&gateway, &held).await;
        assert_eq!(call["outcome"], "completed", "{call}");
    }
    assert_eq!(ran(&file).len(), 5);
}

/// The policy of the process that serves a call decides on it, neither a looser nor a stricter one of another's.
#[tokio::test(flavor = "multi_thread")]
async fn another_process_policy_neither_runs_nor_refuses() {
    let first = home(ALWAYS);
    let work = json!({ "work": { "workspace": true, "root": first.root(), "new_tools": "accept" } });
    let first = first.with("upstreams", work.clone());
    let second = home(DENIES).with("state_dir", json!(first.state())).with("upstreams", work);
    let serves = first.serve();
    let agent = Agent::modern(&serves.url("work"));
    agent.call(1, "write_file", json!({ "path": "a.md", "content": "x" })).await;
    let held = serves.held(1).await.remove(0);
    // One that denies starts, and is used.
    let other = second.serve();
    let refused = Agent::modern(&other.url("work")).call(1, "read_file", json!({ "path": "docs/a.md" })).await;
    assert_eq!(about(&refused)["state"], "rejected", "{refused}");
    assert_eq!(serves.held(1).await.len(), 1, "it waits on");
    // Now the other way round: the one that serves it denies, the other would ask.
    second.write_policy(ALWAYS);
    assert_eq!(other.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    first.write_policy(DENIES);
    assert_eq!(serves.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    assert_eq!(other.approve(&held).await.0, 200);
    let call = end(&serves, &held).await;
    assert_eq!((&call["outcome"], &call["reason"]), (&json!("rejected"), &json!("stale")), "{call}");
    assert!(!first.root().join("a.md").exists());
}

/// A process on standard input is a session: nobody else picks its calls up while it lives; after it, one like it does.
#[tokio::test(flavor = "multi_thread")]
async fn a_living_process_keeps_its_calls_to_itself() {
    for era in ["legacy", "modern"] {
        let home = home(ATTACHED);
        let gateway = home.serve();
        let file = runs(&home, "runs");
        let mut first = client(&home, era, &file).await;
        first.call(1, "count", n("x")).await;
        let held = one_waits(&gateway, "x").await;
        let mut second = client(&home, era, &file).await;
        let other = second.call(1, "count", n("x")).await;
        assert_ne!(about(&other)["approval"], held["id"], "{era}: {other}");
        assert_eq!(
            gateway.reject(gateway.waiting().await.iter().find(|a| a["id"] != held["id"]).unwrap(), "no").await.0,
            200
        );
        first.crash().await;
        // A new one, as its client starts again.
        let mut again = client(&home, era, &file).await;
        let back = again.call(2, "count", n("x")).await;
        assert_eq!(about(&back)["approval"], held["id"], "{era}: {back}");
        assert_eq!(gateway.approve(&held).await.0, 200);
        assert!(text(&again.call(3, "count", n("x")).await).contains("counted"), "{era}");
        assert_eq!(ran(&file), ["x"], "{era}");
    }
}

/// What runs without its client runs after the end of its process, too: once, in one that is the same, else not at all.
#[tokio::test(flavor = "multi_thread")]
async fn after_its_process_a_call_runs_in_one_like_it_or_not_at_all() {
    for era in ["legacy", "modern"] {
        let home = home(ALWAYS).with("approvals", json!({ "hold_grace": "3s" }));
        let gateway = home.serve();
        let (same, other) = (runs(&home, "same"), runs(&home, "other"));
        let mut first = client(&home, era, &same).await;
        let mut alone = client(&home, era, &other).await;
        let _like = [client(&home, era, &same).await, client(&home, era, &same).await];
        first.call(1, "count", n("x")).await;
        alone.call(1, "count", n("y")).await;
        let (x, y) = (one_waits(&gateway, "x").await, one_waits(&gateway, "y").await);
        first.crash().await;
        alone.crash().await;
        for held in [&x, &y] {
            assert_eq!(gateway.approve(held).await.0, 200);
        }
        let call = end(&gateway, &x).await;
        assert_eq!(call["outcome"], "completed", "{era}: {call}");
        let call = end(&gateway, &y).await;
        assert_eq!(call["outcome"], "cancelled", "{era}: {call}");
        assert_eq!((ran(&same).len(), ran(&other).len()), (1, 0), "{era}");
    }
}

/// Some clients leave by closing their connections and never end their session.
#[tokio::test(flavor = "multi_thread")]
async fn what_ran_for_a_client_that_left_is_told_to_its_next_session() {
    let home = Home::new(ALWAYS, json!({ "work": { "workspace": true, "root": "$ROOT", "new_tools": "accept" } }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let session = agent.session.clone().expect("a session");
    let headers = [("accept", "text/event-stream"), ("mcp-session-id", session.as_str())];
    let stream = agent.http.send(Method::GET, &agent.url, &headers, "").await;
    assert_eq!(stream.status, 200);
    let write = json!({ "path": "a.md", "content": "x" });
    let handed_off = agent.call(1, "write_file", write.clone()).await;
    assert!(text(&handed_off).contains("in this session"), "{handed_off}");
    let held = gateway.held(1).await.remove(0);
    gateway.approve(&held).await;
    assert_eq!(end(&gateway, &held).await["outcome"], "completed");

    // Too soon to tell that it has left: another question, and the approver sees what it is beside.
    let next = Agent::legacy(&gateway.url("work")).await;
    let asked = next.call(1, "write_file", write.clone()).await;
    assert_eq!(about(&asked)["state"], "awaiting_approval", "{asked}");
    let twin = gateway.held(1).await.remove(0);
    assert_eq!(twin["flags"], json!(["same_call_ran"]), "{twin}");
    assert_eq!(gateway.reject(&twin, "it ran").await.0, 200);
    let told = next.call(2, "write_file", write.clone()).await;
    assert_eq!(about(&told)["state"], "rejected", "{told}");

    drop(stream);
    tokio::time::sleep(Duration::from_secs(8)).await;
    let told = next.call(3, "write_file", write).await;
    assert!(text(&told).contains("while no client waited for it"), "{told}");
    assert_eq!(gateway.waiting().await.len(), 0);
}

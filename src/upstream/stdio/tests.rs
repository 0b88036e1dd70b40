#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::gate::{Era, Inbound, Outgoing, Permit};
use crate::message::Message;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/stdio_server.py");

fn upstream(flags: &[&str]) -> StdioUpstream {
    let command: Vec<String> = ["python3", "-u", FIXTURE].iter().chain(flags).map(|word| (*word).to_owned()).collect();
    StdioUpstream::with_limits("files", &command, Path::new("/"), 100_000, Duration::from_millis(300))
}

async fn open(upstream: &StdioUpstream) -> (Arc<dyn Link>, mpsc::Receiver<Inbound>) {
    let (inbound, received) = mpsc::channel(8);
    let opening = Opening { agent: "a".to_owned(), era: Era::Legacy, resume: None, version: None, inbound };
    (upstream.open(opening).await.unwrap(), received)
}

fn request(id: u64, method: &str, params: Value) -> Outgoing {
    let bytes = format!("{{\"jsonrpc\":\"2.0\",\n\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}");
    Outgoing {
        bytes: bytes.into(),
        id: Some(id),
        method: method.into(),
        name: None,
        param_headers: vec![],
        version: None,
    }
}

async fn send(link: &Arc<dyn Link>, id: u64, method: &str, params: Value) {
    link.send(Permit::for_test(true), request(id, method, params)).await.unwrap();
}

async fn next(received: &mut mpsc::Receiver<Inbound>) -> Inbound {
    tokio::time::timeout(Duration::from_secs(10), received.recv()).await.expect("something comes").expect("not closed")
}

async fn message(received: &mut mpsc::Receiver<Inbound>) -> Message {
    match next(received).await {
        Inbound::Message { message, related: None } => message,
        other => panic!("{other:?}"),
    }
}

async fn result(received: &mut mpsc::Receiver<Inbound>, id: u64) -> Value {
    let message = message(received).await;
    assert_eq!(message.id(), Some(&*id.to_string()));
    serde_json::from_str(message.result().unwrap()).unwrap()
}

/// Whether it runs; a process that is dead and not yet collected does not.
fn alive(pid: &Value) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// Waits until a process of a killed group is gone.
async fn gone(pid: &Value) {
    let gone = async {
        while alive(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("the whole group is ended");
}

#[tokio::test]
async fn messages_pass_both_ways_in_order() {
    let upstream = upstream(&["--banner"]);
    let (link, mut received) = open(&upstream).await;
    send(&link, 1, "echo", json!({"a": "line\nbreak", "n": 9_007_199_254_740_993u64})).await;
    assert_eq!(result(&mut received, 1).await["a"], "line\nbreak");
    send(&link, 2, "talk", json!(20)).await;
    for step in 0..20 {
        let progress = message(&mut received).await;
        assert!(progress.params().unwrap().contains(&step.to_string()));
    }
    assert_eq!(message(&mut received).await.id(), Some("\"server-1\""));
    assert_eq!(result(&mut received, 2).await, "done");
    assert!(upstream.is_up());
    link.close().await;
    assert!(received.try_recv().is_err(), "closing is no death");
}

#[tokio::test]
async fn a_child_runs_in_its_folder_with_the_gateways_environment() {
    let (link, mut received) = open(&upstream(&[])).await;
    send(&link, 1, "environment", json!({})).await;
    let environment = result(&mut received, 1).await;
    assert_eq!(environment["cwd"], "/");
    let names = environment["names"].as_array().unwrap();
    assert!(names.contains(&json!("PATH")));
}

#[tokio::test]
async fn garbage_and_wrong_ids_touch_no_other_call() {
    let (link, mut received) = open(&upstream(&[])).await;
    send(&link, 1, "wrong-id", json!({})).await;
    assert_eq!(result(&mut received, 1).await, "right");
    send(&link, 2, "garbage", json!({})).await;
    match next(&mut received).await {
        Inbound::Failed { id: 2, error } => assert_eq!((error.fault, error.may_have_run), (Fault::Garbage, true)),
        other => panic!("{other:?}"),
    }
    send(&link, 3, "echo", json!("still there")).await;
    assert_eq!(result(&mut received, 3).await, "still there");
}

#[tokio::test]
async fn a_line_without_end_fails_the_link() {
    let (link, mut received) = open(&upstream(&[])).await;
    send(&link, 1, "long", json!({})).await;
    match next(&mut received).await {
        Inbound::Closed(error) => assert_eq!((error.fault, error.may_have_run), (Fault::Garbage, true)),
        other => panic!("{other:?}"),
    }
    drop(link);
}

#[tokio::test]
async fn the_dead_are_heard_out_and_told() {
    let upstream = upstream(&[]);
    let (link, mut received) = open(&upstream).await;
    send(&link, 1, "child", json!({})).await;
    let grandchild = result(&mut received, 1).await;
    assert!(alive(&grandchild));
    send(&link, 2, "deaf-ear", json!({})).await;
    send(&link, 3, "die", json!(3)).await;
    assert_eq!(result(&mut received, 3).await, "last words");
    match next(&mut received).await {
        Inbound::Closed(error) => {
            assert_eq!((error.fault, error.may_have_run), (Fault::Died, true));
            assert!(error.what.contains("exit status: 7"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert!(!upstream.is_up());
    gone(&grandchild).await;
    let error = link.send(Permit::for_test(true), request(4, "echo", json!({}))).await.unwrap_err();
    assert!(!error.may_have_run);

    let again = Instant::now();
    let (link, mut received) = open(&upstream).await;
    assert!(again.elapsed() > Duration::from_millis(300), "waits after a quick death");
    send(&link, 1, "echo", json!(1)).await;
    assert_eq!(result(&mut received, 1).await, 1);
    assert!(upstream.is_up());
}

#[tokio::test]
async fn many_quick_deaths_are_told_and_not_waited_for() {
    let upstream = upstream(&["--quit"]);
    for _ in 0..5 {
        lock(&upstream.program.backoff).died(Duration::ZERO, Instant::now());
    }
    let (inbound, _received) = mpsc::channel(1);
    let opening = Opening { agent: "a".to_owned(), era: Era::Legacy, resume: None, version: None, inbound };
    let error = upstream.open(opening).await.err().unwrap();
    assert_eq!(error.fault, Fault::Unreachable);
    assert!(error.what.contains("ended 5 times soon after its start"), "{error}");
}

#[tokio::test]
async fn a_stopped_request_is_cancelled_and_its_answer_dropped() {
    let (link, mut received) = open(&upstream(&[])).await;
    send(&link, 1, "unanswered", json!({})).await;
    send(&link, 2, "initialize", json!({})).await;
    link.stop(1, "not needed").await;
    link.stop(2, "initialize is never cancelled").await;
    link.stop(3, "never sent").await;
    send(&link, 4, "seen", json!({})).await;
    let seen = result(&mut received, 4).await;
    assert_eq!(seen, json!(["unanswered", "initialize", "notifications/cancelled", "seen"]));
    // The child's next line answers a request that was stopped.
    send(&link, 5, "unanswered", json!({})).await;
    link.stop(5, "").await;
    send(&link, 6, "die", json!(5)).await;
    assert!(matches!(next(&mut received).await, Inbound::Closed(_)));
}

#[tokio::test]
async fn a_child_that_does_not_read_blocks_nobody_for_good() {
    let upstream = upstream(&[]);
    let (link, _received) = open(&upstream).await;
    send(&link, 1, "deaf", json!({})).await;
    let big = request(2, "echo", json!("x".repeat(1 << 20)));
    let sending = link.send(Permit::for_test(true), big);
    tokio::time::timeout(Duration::from_millis(100), sending).await.unwrap_err();
    let started = Instant::now();
    link.close().await;
    assert!(started.elapsed() < Duration::from_secs(2), "SIGTERM ends it");
}

#[tokio::test]
async fn shutdown_ends_the_stubborn_too() {
    let upstream = upstream(&["--stubborn"]);
    let (link, mut received) = open(&upstream).await;
    send(&link, 1, "child", json!({})).await;
    let grandchild = result(&mut received, 1).await;
    upstream.shutdown().await;
    gone(&grandchild).await;
    let (inbound, _received) = mpsc::channel(1);
    let opening = Opening { agent: "a".to_owned(), era: Era::Legacy, resume: None, version: None, inbound };
    assert!(upstream.open(opening).await.is_err(), "no new child after that");
}

#[tokio::test]
async fn dropping_a_link_ends_its_child() {
    let upstream = upstream(&[]);
    let (link, mut received) = open(&upstream).await;
    send(&link, 1, "child", json!({})).await;
    let grandchild = result(&mut received, 1).await;
    drop(link);
    gone(&grandchild).await;
}

#[tokio::test]
async fn what_cannot_be_started_is_named() {
    for (command, cwd, want) in [
        (vec!["no-such-program-here".to_owned()], "/", "there is no program `no-such-program-here`"),
        (vec!["/".to_owned()], "/", "may not be run"),
        (vec!["python3".to_owned()], "/no/such/folder", "is no folder"),
        (vec![], "/", "empty command"),
    ] {
        let upstream = StdioUpstream::new("files", &command, Path::new(cwd));
        let (inbound, _received) = mpsc::channel(1);
        let opening = Opening { agent: "a".to_owned(), era: Era::Modern, resume: None, version: None, inbound };
        let error = upstream.open(opening).await.err().unwrap();
        assert_eq!((error.fault, error.may_have_run), (Fault::Unreachable, false));
        assert!(error.what.contains(want), "{error}");
        assert!(!upstream.is_up());
    }
}

//! The gateway is killed with calls held: none is lost, none runs twice, none runs for a client that stays away.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, text};
use crate::harness::gateway::{Gateway, Home, PORTCULLIS};
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

/// How many calls are in the way of a kill, and how many kills there are.
fn size() -> (usize, u64, u64) {
    let number = |name: &str, usual: u64| {
        std::env::var(name).map_or(usual, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
    };
    let calls = usize::try_from(number("PORTCULLIS_KILL_CALLS", 150)).expect("not so many");
    (calls, number("PORTCULLIS_KILL_ROUNDS", 2), number("PORTCULLIS_KILL_SEED", 1))
}

/// Killed at any moment of its calls' lives: before they are held, while they wait, between a decision and its run, while
/// they run, while their clients are told. The clients come back as they would; every call has one end, with a reason, and
/// ran as often as that end says.
#[tokio::test(flavor = "multi_thread")]
async fn calls_at_any_moment_of_their_lives_survive_a_kill() {
    let (calls, rounds, seed) = size();
    for round in 0..rounds {
        let chance = mixed((seed << 32) | round);
        let longest = 300 + 6 * calls as u64;
        let after = Duration::from_millis(chance % longest);
        let fates = killed_once(calls, after).await;
        println!("round {round} of seed {seed}: {calls} calls, killed after {after:?}: {fates:?}");
    }
}

/// A number that looks like chance, and comes again with its seed (the finalizer of SplitMix64).
fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// One round; how many calls ended how.
async fn killed_once(calls: usize, after: Duration) -> BTreeMap<String, usize> {
    let home = Home::new(POLICY, json!({}));
    let runs = home.base().join("runs.txt");
    std::fs::write(&runs, "").expect("a file");
    let command = peers::fixture("counter.py", &[&runs.to_string_lossy()]);
    let home = home
        .with("upstreams", json!({ "counter": { "command": command, "new_tools": "accept" } }))
        .with("approvals", json!({ "hold_for": "300s", "expires": "600s", "hold_grace": "120s", "max_waiting": 5000 }));
    let gateway = home.serve();
    let (address, addresses) = tokio::sync::watch::channel(gateway.url("counter"));
    let agents = join_all((0..4).map(|_| async { Agent::legacy(&gateway.url("counter")).await })).await;
    let clients: Vec<_> = (0..calls)
        .map(|n| {
            let (agent, mut addresses) = (agents[n % 4].clone(), addresses.clone());
            tokio::spawn(async move {
                loop {
                    let agent = agent.back_at(&addresses.borrow_and_update().clone());
                    match agent.try_call(id(n), "count", arguments(n)).await {
                        // The gateway is there and says what became of it.
                        Some(reply) if reply.get("result").is_some() => return reply,
                        _ => tokio::time::sleep(Duration::from_millis(50)).await,
                    }
                }
            })
        })
        .collect();
    tokio::select! {
        () = decide(&gateway) => unreachable!("it decides for ever"),
        () = tokio::time::sleep(after) => {}
    }
    gateway.crash();
    let gateway = home.serve();
    address.send_replace(gateway.url("counter"));
    let replies = tokio::select! {
        () = decide(&gateway) => unreachable!("it decides for ever"),
        replies = join_all(clients) => replies,
    };
    // Whoever was told and killed meanwhile is not there twice; what is left to decide is what nobody came back for.
    let mut ended: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let page = gateway.get(&format!("calls?limit=200{cursor}")).await;
        for call in page["items"].as_array().expect("calls") {
            let n = call["arguments"]["n"].as_str().expect("a number").to_owned();
            ended.entry(n).or_default().push(call.clone());
        }
        match page["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    let ran = lines(&runs);
    let mut fates = BTreeMap::new();
    for (n, reply) in replies.into_iter().enumerate() {
        let (reply, name) = (reply.expect("a client that ends"), n.to_string());
        let own = ended.get(&name).unwrap_or_else(|| panic!("call {n} is lost: {reply}"));
        let count = |outcome: &str| own.iter().filter(|call| call["outcome"] == outcome).count();
        let (completed, failed) = (count("completed"), count("failed"));
        let ran = ran.iter().filter(|line| **line == name).count();
        // One run for each that completed; one that failed says whether it may have run.
        assert!((completed..=completed + failed).contains(&ran), "{n} ran {ran} times: {own:?}");
        for call in own {
            let outcome = call["outcome"].as_str().unwrap_or_else(|| panic!("{n} has no end: {call}"));
            let why = match outcome {
                "completed" => true,
                "failed" => call["may_have_run"] == true && call["detail"].is_string(),
                _ => call["reason"].is_string() || call["detail"].is_string(),
            };
            assert!(why, "nobody knows why: {call}");
            *fates.entry(outcome.to_owned()).or_insert(0) += 1;
        }
        // A result that was kept stands behind the sentence that says so.
        match reply["result"]["content"].to_string().contains(&format!("\"counted {n}\"")) {
            true => assert!(completed > 0, "{reply}"),
            false => assert_eq!(reply["result"]["isError"], true, "{reply}"),
        }
    }
    let verify = std::process::Command::new(PORTCULLIS).args(["audit", "verify", "--dir"]).arg(home.state()).output();
    let verify = verify.expect("it starts");
    assert!(verify.status.success(), "after a kill: {}", String::from_utf8_lossy(&verify.stdout));
    fates
}

/// Approves four of five of what waits, and rejects the fifth.
async fn decide(gateway: &Gateway) {
    loop {
        for approval in gateway.waiting().await {
            let n: usize = approval["call"]["arguments"]["n"].as_str().and_then(|n| n.parse().ok()).expect("a number");
            let (status, problem) = match n % 5 {
                0 => gateway.reject(&approval, "one of five").await,
                _ => gateway.approve(&approval).await,
            };
            // A client may have gone meanwhile, or the call is decided from an earlier look.
            assert!(matches!(status, 200 | 409 | 410), "{problem}");
        }
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
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

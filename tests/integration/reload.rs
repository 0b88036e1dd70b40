//! A reload reaches everyone at once: agents with a session, without one, and with a call that is held.

use http::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::agent::{Agent, about, reply, text};
use crate::harness::eventually;
use crate::harness::gateway::{Gateway, Home, PORTCULLIS, TOKEN};
use crate::harness::piped::Piped;

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: deny
    rules:
      - { name: reads, verdict: allow, tool: read_file }
      - { name: writes, verdict: ask, tool: write_file }
      - { name: no-jobs, verdict: deny, tool: read_file, source: background }
      - { name: no-subs, verdict: deny, tool: read_file, depth: sub }
  strict: { otherwise: deny }
  other: { extends: default }
";

const WHO: &str = "pct_test-agent-token";

fn home() -> Home {
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    home.with("approvals", json!({ "hold_for": "30s" })).with("agents", agents(json!({})))
}

/// One agent with these settings.
fn agents(settings: Value) -> Value {
    let mut agent = json!({ "name": "a", "group": "default", "tokens": [{ "sha256": hash(WHO) }] });
    agent.as_object_mut().expect("a map").extend(settings.as_object().expect("a map").clone());
    json!([agent])
}

fn hash(token: &str) -> String {
    hex::encode(Sha256::digest(token))
}

async fn reload(home: Home, gateway: &Gateway, section: &str, value: Value) -> Home {
    let home = home.with(section, value);
    home.write_config();
    assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    home
}

async fn both(gateway: &Gateway) -> [Agent; 2] {
    let agent = || Agent::modern(&gateway.url("work")).with_token(WHO);
    [agent().initialized().await, agent()]
}

fn read() -> Value {
    json!({ "path": "docs/a.md" })
}

fn write() -> Value {
    json!({ "path": "new.md", "content": "x" })
}

#[tokio::test(flavor = "multi_thread")]
async fn how_often_a_rule_has_decided_outlives_a_reload() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::modern(&gateway.url("work")).with_token(WHO);
    let decided = async |rule: &str| {
        let policy = gateway.get("policy").await;
        let rules = policy["rules"].as_array().expect("rules").clone();
        rules.iter().find(|known| known["name"] == rule).expect("the rule")["decided"].clone()
    };
    assert_eq!(decided("reads").await, json!(0));
    for id in 1..=2 {
        agent.call(id, "read_file", read()).await;
    }
    let answer = agent.begin(3, "write_file", write()).await;
    let held = gateway.held(1).await.remove(0);
    assert_eq!((decided("reads").await, decided("writes").await), (json!(2), json!(1)));
    home.write_policy(&POLICY.replace("name: reads", "name: readings"));
    assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    assert_eq!((decided("readings").await, decided("writes").await), (json!(0), json!(1)));
    gateway.reject(&held, "no").await;
    reply(answer, 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_with_a_token_that_was_revoked_does_not_run() {
    let mut home = home();
    let gateway = home.serve();
    for (id, agent) in (1..).zip(both(&gateway).await) {
        let answer = agent.begin(id, "write_file", json!({ "path": "new.md", "content": id.to_string() })).await;
        let held = gateway.held(1).await.remove(0);
        let other = json!({ "tokens": [{ "sha256": hash("another") }] });
        home = reload(home, &gateway, "agents", agents(other)).await;
        assert_eq!(gateway.approve(&held).await.0, 200);
        let refused = reply(answer, id).await;
        assert_eq!(about(&refused)["reason"], "stale", "{refused}");
        assert!(text(&refused).contains("credential it came with is no longer good"), "{refused}");
        assert!(!text(&refused).contains("approved"), "{refused}");
        assert!(!home.root().join("new.md").exists());
        // One token more takes nothing from the others.
        let both = json!({ "tokens": [{ "sha256": hash("another") }, { "sha256": hash(WHO) }] });
        home = reload(home, &gateway, "agents", agents(both)).await;
    }
}

#[tokio::test]
async fn every_setting_of_an_agent_holds_for_its_next_call() {
    let mut home = home();
    let gateway = home.serve();
    let all = both(&gateway).await;
    let mut id = 0;
    for (settings, rule) in [
        (json!({ "group": "strict" }), "otherwise:strict"),
        (json!({ "source": "background" }), "no-jobs"),
        (json!({ "depth": "sub" }), "no-subs"),
    ] {
        for agent in &all {
            id += 1;
            assert!(text(&agent.call(id, "read_file", read()).await).contains("hello"), "before {settings}");
        }
        home = reload(home, &gateway, "agents", agents(settings.clone())).await;
        for agent in &all {
            id += 1;
            let refused = agent.call(id, "read_file", read()).await;
            assert_eq!(about(&refused)["rule"], rule, "{settings}: {refused}");
        }
        home = reload(home, &gateway, "agents", agents(json!({}))).await;
    }
    reload(home, &gateway, "agents", json!([])).await;
    for agent in &all {
        assert_eq!(agent.post(&agent.message(99, "tools/call", json!({}))).await.status, 401);
    }
}

#[tokio::test]
async fn an_agent_that_was_moved_runs_nothing_that_was_approved_before_it_may() {
    let mut home = home();
    let gateway = home.serve();
    for agent in both(&gateway).await {
        let answer = agent.begin(1, "write_file", write()).await;
        let held = gateway.held(1).await.remove(0);
        home = reload(home, &gateway, "agents", agents(json!({ "group": "strict" }))).await;
        assert_eq!(gateway.approve(&held).await.0, 200);
        let refused = reply(answer, 1).await;
        assert_eq!(about(&refused)["reason"], "stale", "{refused}");
        home = reload(home, &gateway, "agents", agents(json!({}))).await;
    }
    assert!(!home.root().join("new.md").exists());
}

/// Whose agent it is, and who decides for it, is part of what is approved.
#[tokio::test]
async fn another_owner_or_group_is_another_question() {
    let ana = json!({ "name": "ana", "roles": ["approver", "operator"], "groups": ["*"], "tokens": [{ "sha256": hash(TOKEN) }] });
    let bo = json!({ "name": "bo", "roles": ["approver"], "groups": ["*"], "tokens": [{ "sha256": hash("bo") }] });
    let mut home = home().with("approvers", json!([ana, bo]));
    let gateway = home.serve();
    for agent in both(&gateway).await {
        for (settings, shown, again) in
            [(json!({ "owner": "ana" }), ("owner", "ana"), 403), (json!({ "group": "other" }), ("group", "other"), 200)]
        {
            let answer = agent.begin(1, "write_file", write()).await;
            let held = gateway.held(1).await.remove(0);
            home = reload(home, &gateway, "agents", agents(settings)).await;
            assert_eq!(gateway.approve(&held).await.0, 200);
            let anew = eventually("the question anew", || async {
                let waiting = gateway.waiting().await;
                waiting.into_iter().find(|anew| anew["call"][shown.0] == shown.1)
            })
            .await;
            assert_eq!((&anew["id"], &anew["votes"]), (&held["id"], &json!([])), "{anew}");
            assert!(!home.root().join("new.md").exists());
            assert_eq!(gateway.approve(&held).await.0, 412, "what was shown before");
            assert_eq!(gateway.approve(&anew).await.0, again, "{anew}");
            if again != 200 {
                assert_eq!(gateway.reject(&anew, "no").await.0, 200);
            }
            let _ = reply(answer, 1).await;
            let _ = std::fs::remove_file(home.root().join("new.md"));
            home = reload(home, &gateway, "agents", agents(json!({}))).await;
        }
    }
}

/// A process that was let in by its name does nothing more once nobody is called so.
#[tokio::test]
async fn a_removed_agent_is_gone_from_its_pipe() {
    let home = home();
    let config = home.write_config().to_string_lossy().into_owned();
    let command = [PORTCULLIS, "stdio", "--config", &config, "--agent", "a"].map(str::to_owned);
    let mut clients = [Piped::legacy(&command, &[]).await, Piped::modern(&command, &[])];
    for client in &mut clients {
        assert!(text(&client.call(1, "read_file", read()).await).contains("hello"));
    }
    let agent = json!([{ "name": "b", "group": "default", "tokens": [{ "sha256": hash(WHO) }] }]);
    let home = home.with("agents", agent);
    home.write_config();
    for client in &mut clients {
        client.hang_up();
        let mut id = 1;
        let refused = loop {
            id += 1;
            let answer = client.call(id, "read_file", read()).await;
            if !answer["error"].is_null() || id > 500 {
                break answer;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        assert!(refused["error"]["message"].as_str().expect("a word").contains("no longer configured"), "{refused}");
    }
}

/// Whoever is told that a policy is in force may rely on it, whoever else reloads at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_was_read_before_does_not_come_into_force_after() {
    let policy = |n: usize| {
        format!(
            "version: 1\ngroups: {{ default: {{ otherwise: ask, rules: [{{ name: r{n}, verdict: deny, tool: t }}] }} }}\n"
        )
    };
    let home = Home::new(&policy(0), json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    let gateway = home.serve();
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let others = futures_util::future::join_all((0..6).map(|_| async {
        while !*stopped.borrow() {
            // What it reads is half written at times: that is refused, and nothing else.
            gateway.api(Method::POST, "policy/reload", Value::Null).await;
        }
    }));
    let own = async {
        for n in 1..=40 {
            home.write_policy(&policy(n));
            let (status, answer) = gateway.api(Method::POST, "policy/reload", Value::Null).await;
            assert_eq!(status, 200, "{answer}");
            let now = gateway.get("policy").await;
            assert!(now["rules"].to_string().contains(&format!("\"r{n}\"")), "{n}, after {}: {now}", answer["version"]);
        }
        stop.send_replace(true);
    };
    tokio::join!(own, others);
}

//! Calls that are held as tasks: in both designs, through a restart, decided in another process, with every end.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, reply, text};
use crate::harness::eventually;
use crate::harness::gateway::Home;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
      - { name: closed, verdict: deny, tool: write_file, path: closed/ }
";

fn home() -> Home {
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    std::fs::create_dir_all(home.root().join("docs")).expect("a folder");
    std::fs::write(home.root().join("docs/a.md"), "a").expect("a file");
    home.with("approvals", json!({ "hold_for": "60s", "expires": "60s", "hold_grace": "1s", "result_ttl": "1s" }))
}

fn write(name: &str) -> Value {
    json!({ "path": name, "content": "written once" })
}

/// Calls a tool as a task; the handle.
async fn begin(agent: &Agent, id: u64, tool: &str, arguments: Value) -> Value {
    let mut params = json!({ "name": tool, "arguments": arguments });
    if agent.session.is_some() {
        params["task"] = json!({ "ttl": 60_000 });
    }
    let mut message = agent.message(id, "tools/call", params);
    if agent.session.is_none() {
        let declared = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declared;
    }
    let answer = reply(agent.post(&message).await, id).await;
    let result = &answer["result"];
    let task = if agent.session.is_some() { result["task"].clone() } else { result.clone() };
    assert_eq!(task["status"], "working", "{answer}");
    if agent.session.is_none() {
        assert_eq!(result["resultType"], "task", "{answer}");
    }
    task
}

async fn ask(agent: &Agent, id: u64, method: &str, task: &Value) -> Value {
    agent.request(id, method, json!({ "taskId": task["taskId"] })).await
}

#[tokio::test]
async fn an_approved_task_runs_at_once_and_its_end_can_be_asked_for_again() {
    let home = home();
    let gateway = home.serve();
    for agent in [Agent::legacy(&gateway.url("work")).await, Agent::modern(&gateway.url("work"))] {
        let name = format!("{}.md", if agent.session.is_some() { "legacy" } else { "modern" });
        let task = begin(&agent, 1, "write_file", write(&name)).await;
        let held = gateway.held(1).await;
        let told = task["statusMessage"].as_str().unwrap_or_default();
        assert!(told.contains("A human is asked") && told.contains(held[0]["id"].as_str().expect("an id")), "{task}");
        assert_eq!((&held[0]["client"]["task"], &held[0]["client"]["will_run"]), (&json!(true), &json!("now")));
        assert_eq!(ask(&agent, 2, "tasks/get", &task).await["result"]["status"], "working");
        assert!(!home.root().join(&name).exists());
        assert_eq!(gateway.approve(&held[0]).await.0, 200);
        let end = eventually("the end of the task", || async {
            let state = ask(&agent, 3, "tasks/get", &task).await;
            (state["result"]["status"] != "working").then_some(state)
        })
        .await;
        assert_eq!(end["result"]["status"], "completed", "{end}");
        assert!(home.root().join(&name).exists());
        // Longer than a result that nobody was attached for: the client asked for it.
        tokio::time::sleep(Duration::from_millis(1500)).await;
        for id in [4, 5] {
            if agent.session.is_some() {
                let result = ask(&agent, id, "tasks/result", &task).await;
                assert_ne!(result["result"]["isError"], true, "{result}");
                let related = &result["result"]["_meta"]["io.modelcontextprotocol/related-task"];
                assert_eq!(related["taskId"], task["taskId"], "{result}");
            } else {
                let state = ask(&agent, id, "tasks/get", &task).await;
                assert_eq!(state["result"]["resultType"], "complete");
                assert_ne!(state["result"]["result"]["isError"], true, "{state}");
                assert!(state["result"]["result"]["content"].is_array(), "{state}");
            }
        }
        let ran = gateway.get(&format!("calls?state=completed&q={name}")).await;
        assert_eq!(ran["items"].as_array().map(Vec::len), Some(1), "{ran}");
        if agent.session.is_some() {
            let listed = agent.request(6, "tasks/list", json!({})).await;
            let listed = listed["result"]["tasks"].as_array().expect("tasks").clone();
            assert_eq!((listed.len(), &listed[0]["taskId"]), (1, &task["taskId"]), "{listed:?}");
        }
        // What policy allows is no task of the gateway's.
        let read = agent.call(7, "read_file", json!({ "path": "docs/a.md" })).await;
        assert_ne!(read["result"]["isError"], true, "{read}");
    }
}

#[tokio::test]
async fn it_is_the_callers_own_and_outlives_the_gateway() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let task = begin(&agent, 1, "write_file", write("a.md")).await;
    let stranger = Agent::legacy(&gateway.url("work")).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(ask(&stranger, 2, method, &task).await["error"]["code"], -32602, "{method}");
    }
    // The identical call of the same client is another call: the first has its client.
    let twin = agent.begin(3, "write_file", write("a.md")).await;
    let held = gateway.held(2).await;
    let plain = held.iter().find(|approval| approval["client"]["task"] != true).expect("the plain call");
    assert_eq!(gateway.reject(plain, "once is enough").await.0, 200);
    assert_eq!(about(&reply(twin, 3).await)["reason"], "approver");

    gateway.crash();
    let (gateway, other) = (home.serve(), home.serve());
    let agent = agent.back_at(&gateway.url("work"));
    let held = other.held(1).await;
    let waiting = agent.post(&agent.message(4, "tasks/result", json!({ "taskId": task["taskId"] }))).await;
    assert_eq!(other.approve(&held[0]).await.0, 200);
    let result = reply(waiting, 4).await;
    assert_ne!(result["result"]["isError"], true, "{result}");
    assert_eq!(std::fs::read_to_string(home.root().join("a.md")).expect("written"), "written once");
}

#[tokio::test]
async fn what_does_not_run_ends_its_task_too() {
    let home = home();
    let gateway = home.serve();
    for agent in [Agent::legacy(&gateway.url("work")).await, Agent::modern(&gateway.url("work"))] {
        let legacy = agent.session.is_some();
        let rejected = begin(&agent, 1, "write_file", write("r.md")).await;
        gateway.reject(&gateway.held(1).await[0], "not today").await;
        let state = ask(&agent, 2, "tasks/get", &rejected).await["result"].clone();
        assert_eq!(state["status"], if legacy { "failed" } else { "completed" }, "{state}");
        let told = if legacy {
            ask(&agent, 3, "tasks/result", &rejected).await["result"].clone()
        } else {
            state["result"].clone()
        };
        assert_eq!(
            (&told["isError"], told["content"][0]["text"].as_str().is_some_and(|t| t.contains("not today"))),
            (&json!(true), true),
            "{told}"
        );

        let cancelled = begin(&agent, 4, "write_file", write("c.md")).await;
        let held = gateway.held(1).await;
        let answer = ask(&agent, 5, "tasks/cancel", &cancelled).await;
        assert!(answer["error"].is_null(), "{answer}");
        assert_eq!(ask(&agent, 6, "tasks/get", &cancelled).await["result"]["status"], "cancelled");
        assert_eq!(gateway.approve(&held[0]).await.0, 410);
        let again = ask(&agent, 7, "tasks/cancel", &cancelled).await;
        assert_eq!(again["error"]["code"] == -32602, legacy, "{again}");

        let stale = begin(&agent, 8, "write_file", write("s.md")).await;
        let held = gateway.held(1).await;
        home.write_policy(&POLICY.replace("path: closed/", "path: [closed/, s.md]"));
        assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
        assert_eq!(gateway.approve(&held[0]).await.0, 200);
        let end = eventually("the end of the task", || async {
            let state = ask(&agent, 9, "tasks/get", &stale).await["result"].clone();
            (state["status"] != "working").then_some(state)
        })
        .await;
        assert!(end["statusMessage"].as_str().is_some_and(|told| told.contains("changed while it was held")), "{end}");
        home.write_policy(POLICY);
        assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);

        // Denied at once, it never was a task.
        let denied = agent.call(10, "write_file", write("closed/a.md")).await;
        assert!(text(&denied).contains("closed"), "{denied}");
    }
}

/// Its client is told as it goes: by the session's own stream (2025-11-25), or on one that it opened for its tasks.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_listens_is_told_of_its_task() {
    let home = home();
    let gateway = home.serve();
    let legacy = Agent::legacy(&gateway.url("work")).await;
    let headers = [
        ("accept", "text/event-stream"),
        ("mcp-session-id", legacy.session.as_deref().expect("a session")),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let mut stream = legacy.http.send(Method::GET, &legacy.url, &headers, "").await;
    let task = begin(&legacy, 1, "write_file", write("legacy.md")).await;
    assert_eq!(gateway.approve(&gateway.held(1).await[0]).await.0, 200);
    let mut told = json!(null);
    while told["status"] != "completed" {
        let (message, _) = stream.event().await.expect("a notification");
        assert_eq!(message["method"], "notifications/tasks/status", "{message}");
        told = message["params"].clone();
        assert_eq!(told["taskId"], task["taskId"], "{told}");
    }

    let modern = Agent::modern(&gateway.url("work"));
    let theirs = task["taskId"].clone();
    let task = begin(&modern, 1, "write_file", write("modern.md")).await;
    // Another's task is none.
    let wish = json!({ "notifications": { "taskIds": [theirs, task["taskId"], "task_of_nobody"] } });
    let mut listening = modern.post(&modern.message(7, "subscriptions/listen", wish)).await;
    let (acknowledged, _) = listening.event().await.expect("an acknowledgement");
    assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
    assert_eq!(acknowledged["params"]["notifications"]["taskIds"], json!([task["taskId"]]), "{acknowledged}");
    assert_eq!(gateway.approve(&gateway.held(1).await[0]).await.0, 200);
    let mut told = json!(null);
    while told["status"] != "completed" {
        let (message, _) = listening.event().await.expect("a notification");
        assert_eq!(message["method"], "notifications/tasks", "{message}");
        told = message["params"].clone();
        assert_eq!((&told["taskId"], &told["_meta"][SUBSCRIPTION]), (&task["taskId"], &json!(7)), "{told}");
    }
    assert!(told["result"]["content"].is_array(), "{told}");
}

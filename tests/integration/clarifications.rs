//! Questions of agents to their people: asked, answered, waited for, taken back; never an approval.

use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, reply, text};
use crate::harness::gateway::{Gateway, Home};

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: may-ask, verdict: allow, upstream: portcullis, tool: ask_user_clarification }
";
const DENIES: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: no-questions, verdict: deny, upstream: portcullis, tool: '@any' }
";
const ASK: &str = "ask_user_clarification";

fn home(policy: &str, approvals: Value) -> Home {
    Home::new(policy, json!({ "work": { "workspace": true, "root": "$ROOT" } }))
        .with("clarifications", json!(true))
        .with("approvals", approvals)
}

fn patient() -> Value {
    json!({ "hold_for": "60s", "expires": "60s" })
}

fn which() -> Value {
    json!({ "question": "Which branch?\nThe \u{202e}old one?", "choices": ["main", "next"] })
}

/// The questions in a state, once there are so many.
async fn questions(gateway: &Gateway, state: &str, many: usize) -> Vec<Value> {
    crate::harness::eventually("the questions", || async {
        let page = gateway.get(&format!("clarifications?state={state}")).await;
        let items = page["items"].as_array().expect("items").clone();
        (items.len() == many).then_some(items)
    })
    .await
}

async fn answer(gateway: &Gateway, id: &str, body: Value) -> (u16, Value) {
    gateway.api(Method::POST, &format!("clarifications/{id}/answer"), body).await
}

fn id(question: &Value) -> &str {
    question["id"].as_str().expect("an id")
}

#[tokio::test]
async fn a_question_is_answered_and_is_no_approval() {
    let home = home(POLICY, patient());
    let gateway = home.serve();
    assert_eq!(gateway.get("me").await["clarifications"], true);
    let agents = [Agent::legacy(&gateway.url("portcullis")).await, Agent::modern(&gateway.url("portcullis"))];
    for (n, agent) in agents.iter().enumerate() {
        let listed = agent.request(1, "tools/list", json!({})).await;
        assert_eq!(listed["result"]["tools"][0]["name"], ASK, "{listed}");
        let asked = agent.begin(2, ASK, which()).await;
        let question = questions(&gateway, "waiting", 1).await.remove(0);
        assert_eq!(question["question"], "Which branch?\nThe \\u{202e}old one?", "{question}");
        assert_eq!((&question["choices"], &question["answer"]), (&json!(["main", "next"]), &Value::Null));

        // Among approvals there is none, by whichever id.
        assert!(gateway.waiting().await.is_empty());
        assert!(gateway.metrics().await.contains("portcullis_approvals_awaiting 0"));
        let call = gateway.get(&format!("calls/{}", id(&question))).await;
        for approval in [call["approval"].as_str().expect("an id"), id(&question)] {
            let body = json!({ "digest": call["digest"] });
            let path = format!("approvals/{approval}");
            assert_eq!(gateway.api(Method::GET, &path, Value::Null).await.0, 404);
            assert_eq!(gateway.api(Method::POST, &format!("{path}/approve"), body).await.0, 404);
            assert_eq!(gateway.api(Method::POST, &format!("{path}/reject"), json!({ "note": "no" })).await.0, 404);
            assert_eq!(gateway.api(Method::POST, &format!("{path}/extend"), json!({ "by_ms": 1000 })).await.0, 404);
        }

        let said = json!({ "answer": "main" });
        let (status, told) = answer(&gateway, id(&question), said.clone()).await;
        assert_eq!((status, &told["state"], &told["answered_by"]), (200, &json!("answered"), &json!("ana")), "{told}");
        let end = reply(asked, 2).await;
        assert_eq!((text(&end), &end["result"]["isError"]), ("The user answered: main", &json!(false)), "{end}");
        assert_eq!(end["result"].get("resultType").is_some(), n == 1, "{end}");
        assert_eq!(answer(&gateway, id(&question), said).await.0, 200, "the same again is no error");
        let (status, problem) = answer(&gateway, id(&question), json!({ "answer": "next" })).await;
        assert_eq!((status, &problem["state"]), (409, &json!("answered")), "{problem}");
        assert_eq!(gateway.get(&format!("calls/{}", id(&question))).await["outcome"], "completed");
    }
    assert_eq!(questions(&gateway, "answered", 2).await.len(), 2);
}

#[tokio::test]
async fn an_approval_is_never_answered() {
    let home = home(POLICY, patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let _held = agent.begin(1, "write_file", json!({ "path": "a.md", "content": "x" })).await;
    let held = gateway.held(1).await.remove(0);
    for id in [&held["id"], &held["call"]["id"]] {
        assert_eq!(answer(&gateway, id.as_str().expect("an id"), json!({ "answer": "yes" })).await.0, 404);
    }
    assert_eq!(gateway.get("clarifications").await["items"], json!([]));
    assert_eq!(gateway.waiting().await.len(), 1);
}

#[tokio::test]
async fn what_looks_like_a_secret_is_sent_only_on_purpose_and_shown_to_nobody_else() {
    let home = home(POLICY, patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("portcullis")).await;
    let asked = agent.begin(1, ASK, which()).await;
    let question = questions(&gateway, "waiting", 1).await.remove(0);
    let secret = "ghp_0123456789abcdefghij0123456789abcdef";
    let (status, problem) = answer(&gateway, id(&question), json!({ "answer": secret })).await;
    assert_eq!((status, &problem["type"]), (422, &json!("urn:portcullis:looks-secret")), "{problem}");
    questions(&gateway, "waiting", 1).await;
    for bad in ["", "  ", &"x".repeat(4_001)] {
        assert_eq!(answer(&gateway, id(&question), json!({ "answer": bad })).await.0, 400);
    }
    let (status, told) = answer(&gateway, id(&question), json!({ "answer": secret, "anyway": true })).await;
    assert_eq!((status, &told["answer"]), (200, &json!("[redacted]")), "{told}");
    assert!(text(&reply(asked, 1).await).contains(secret));
    drop(gateway);
    let audit = std::fs::read_dir(home.state().join("audit")).expect("the log");
    let lines: String =
        audit.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok()).collect::<Vec<_>>().concat();
    assert!(lines.contains("clarification.answered") && !lines.contains(secret), "{lines}");
}

/// In another process, after the agent was told to come back, and after a restart.
#[tokio::test]
async fn a_question_outlives_its_client_and_its_gateway() {
    let home = home(POLICY, json!({ "hold_for": "300ms", "expires": "60s" }));
    let (gateway, other) = (home.serve(), home.serve());
    let agent = Agent::legacy(&gateway.url("portcullis")).await;
    let handed_off = agent.call(1, ASK, which()).await;
    assert!(text(&handed_off).starts_with("Not answered yet"), "{handed_off}");
    assert_eq!(about(&handed_off)["retry"], "same_call");
    let question = questions(&other, "waiting", 1).await.remove(0);
    assert_eq!(question["client"]["state"], "gone");
    gateway.crash();
    let gateway = home.serve();
    assert_eq!(answer(&other, id(&question), json!({ "answer": "main" })).await.0, 200);
    let agent = agent.back_at(&gateway.url("portcullis"));
    let end = agent.call(2, ASK, which()).await;
    assert_eq!(text(&end), "The user answered: main", "{end}");
}

#[tokio::test]
async fn a_question_expires_and_is_withdrawn_like_any_held_call() {
    let short = home(POLICY, json!({ "hold_for": "60s", "expires": "1s" }));
    let gateway = short.serve();
    let agent = Agent::legacy(&gateway.url("portcullis")).await;
    let end = agent.call(1, ASK, which()).await;
    assert_eq!((&about(&end)["reason"], text(&end).starts_with("Not answered")), (&json!("expired"), true), "{end}");
    let expired = questions(&gateway, "expired", 1).await.remove(0);
    assert_eq!(answer(&gateway, id(&expired), json!({ "answer": "main" })).await.0, 410);

    let long = home(POLICY, patient());
    let gateway = long.serve();
    let agent = Agent::legacy(&gateway.url("portcullis")).await;
    let stopped = agent.begin(1, ASK, which()).await;
    let question = questions(&gateway, "waiting", 1).await.remove(0);
    assert_eq!(gateway.api(Method::POST, &format!("calls/{}/cancel", id(&question)), Value::Null).await.0, 200);
    assert_eq!(about(&reply(stopped, 1).await)["state"], "cancelled");
    let paused = agent.begin(2, ASK, which()).await;
    let again = questions(&gateway, "waiting", 1).await.remove(0);
    let path = format!("agents/{}/pause", again["agent"].as_str().expect("a name"));
    assert_eq!(gateway.api(Method::POST, &path, json!({})).await.0, 200);
    assert_eq!(about(&reply(paused, 2).await)["reason"], "paused");
    for ended in [&question, &again] {
        assert_eq!(answer(&gateway, id(ended), json!({ "answer": "main" })).await.0, 410);
    }
    questions(&gateway, "withdrawn", 2).await;
}

#[tokio::test]
async fn only_where_it_is_on_and_policy_lets_it() {
    let home = home(DENIES, patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("portcullis")).await;
    let listed = agent.request(1, "tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"], json!([]), "{listed}");
    let refused = agent.call(2, ASK, which()).await;
    assert_eq!(about(&refused)["reason"], "policy", "{refused}");
    drop(gateway);

    // Where policy asks, there is one question: those whom it names answer it.
    let asks = "
version: 1
approvals: { few: { approvers: [finance] } }
groups:
  default:
    rules:
      - { name: ask-finance, verdict: ask, upstream: portcullis, tool: '@any', approval: few }
";
    let token = "pct_another-approver-token";
    let hash = |token: &str| json!([{ "sha256": hex::encode(<sha2::Sha256 as sha2::Digest>::digest(token)) }]);
    let home = Home::new(asks, json!({ "work": { "workspace": true, "root": "$ROOT" } }))
        .with("clarifications", json!(true))
        .with("approvals", patient())
        .with(
            "approvers",
            json!([
                { "name": "ana", "roles": ["approver"], "groups": ["*"], "tokens": hash(crate::harness::gateway::TOKEN) },
                { "name": "ben", "roles": ["approver"], "groups": ["*"], "teams": ["finance"], "tokens": hash(token) },
                { "name": "eve", "roles": ["viewer"], "groups": ["*"], "teams": ["finance"], "tokens": hash("pct_eve") },
            ]),
        );
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("portcullis")).await;
    for (n, bad) in [
        json!({}),
        json!({ "question": " " }),
        json!({ "question": "x".repeat(2_001) }),
        json!({ "question": "a", "choices": [""] }),
        json!({ "question": "a", "more": 1 }),
    ]
    .into_iter()
    .enumerate()
    {
        let refused = agent.call(n as u64 + 10, ASK, bad).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    let asked = agent.begin(1, ASK, which()).await;
    let question = questions(&gateway, "waiting", 1).await.remove(0);
    assert!(gateway.waiting().await.is_empty());
    let path = format!("clarifications/{}/answer", id(&question));
    let said = json!({ "answer": "next" });
    assert_eq!(answer(&gateway, id(&question), said.clone()).await.0, 403);
    assert_eq!(gateway.api_as("pct_eve", Method::POST, &path, said.clone()).await.0, 403);
    assert_eq!(gateway.api_as(token, Method::POST, &path, said).await.0, 200);
    assert_eq!(text(&reply(asked, 1).await), "The user answered: next");
    drop(gateway);

    let off = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    let gateway = off.serve();
    let answer = Agent::modern(&gateway.url("portcullis")).post(&json!({})).await;
    assert_eq!(answer.status, 404);
    assert_eq!(gateway.get("me").await["clarifications"], false);
    assert_eq!(gateway.get("clarifications").await["items"], json!([]));
}

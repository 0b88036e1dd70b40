//! Who decides: the people and teams that an ask names, how many of them, and who else if they let it wait.

use http::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::agent::{Agent, reply};
use crate::harness::eventually;
use crate::harness::gateway::{Gateway, Home, TOKEN};

const POLICY: &str = "
version: 1
approvals:
  two-finance: { approvers: finance, quorum: 2 }
groups:
  default:
    otherwise: ask
    rules:
      - { name: books, verdict: ask, tool: write_file, path: books/, approval: two-finance, reason: Two of finance. }
      - name: urgent
        verdict: ask
        tool: write_file
        path: urgent/
        approval: { approvers: eve, escalate: { after: 300ms, to: [ana] } }
";

fn home() -> Home {
    let person = |name: &str, teams: &[&str]| {
        let token = if name == "ana" { TOKEN.to_owned() } else { format!("token-of-{name}") };
        json!({ "name": name, "roles": ["approver", "operator", "auditor"], "groups": ["default"], "teams": teams,
                "tokens": [{ "sha256": hex::encode(Sha256::digest(token)) }] })
    };
    let people = json!([person("ana", &["desk"]), person("eve", &["finance"]), person("flo", &["ops", "finance"])]);
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    for folder in ["books", "urgent"] {
        std::fs::create_dir(home.root().join(folder)).expect("a folder");
    }
    home.with("approvers", people).with("approvals", json!({ "hold_for": "30s" }))
}

async fn approve(gateway: &Gateway, who: &str, approval: &Value) -> (u16, Value) {
    let id = approval["id"].as_str().expect("an id");
    let token = if who == "ana" { TOKEN.to_owned() } else { format!("token-of-{who}") };
    let body = json!({ "digest": approval["call"]["digest"] });
    gateway.api_as(&token, Method::POST, &format!("approvals/{id}/approve"), body).await
}

#[tokio::test]
async fn two_of_a_team_must_approve_and_nobody_else_can() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let call = json!({ "path": "books/2026.md", "content": "written once" });
    let answer = agent.begin(1, "write_file", call).await;
    let held = gateway.held(1).await;
    let needed = json!([{ "approval": "two-finance", "approvers": ["finance"], "quorum": 2, "votes": 0 }]);
    assert_eq!(held[0]["requirements"], needed);
    let (status, problem) = approve(&gateway, "ana", &held[0]).await;
    assert_eq!(status, 403, "{problem}");
    assert_eq!(problem["detail"], "this call can be approved by finance only; you may reject it");
    let (status, once) = approve(&gateway, "eve", &held[0]).await;
    assert_eq!((status, &once["state"]), (200, &json!("waiting")), "{once}");
    let (status, again) = approve(&gateway, "eve", &held[0]).await;
    assert_eq!((status, &again["requirements"][0]["votes"]), (200, &json!(1)), "one person is one vote: {again}");
    assert!(!home.root().join("books/2026.md").exists());
    let (status, twice) = approve(&gateway, "flo", &held[0]).await;
    assert_eq!(status, 200, "{twice}");
    let ran = reply(answer, 1).await;
    assert_ne!(ran["result"]["isError"], true, "{ran}");
    let approval = gateway.get(&format!("approvals/{}", held[0]["id"].as_str().expect("an id"))).await;
    let votes: Vec<_> = approval["votes"].as_array().expect("votes").iter().map(|v| (&v["by"], &v["teams"])).collect();
    assert_eq!(votes, [(&json!("eve"), &json!(["finance"])), (&json!("flo"), &json!(["ops", "finance"]))]);
}

#[tokio::test]
async fn what_is_let_wait_is_escalated_and_that_is_written_down() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", json!({ "path": "urgent/a.md", "content": "now" })).await;
    let held = gateway.held(1).await;
    assert_eq!(held[0]["requirements"][0]["escalate"]["to"], json!(["ana"]));
    let escalated = eventually("the escalation", || async {
        gateway.waiting().await.into_iter().find(|approval| !approval["escalated_at"].is_null())
    })
    .await;
    assert_eq!(escalated["requirements"][0]["approvers"], json!(["ana", "eve"]));
    assert_eq!(approve(&gateway, "flo", &escalated).await.0, 403);
    assert_eq!(approve(&gateway, "ana", &escalated).await.0, 200);
    assert_ne!(reply(answer, 1).await["result"]["isError"], true);
    let folder = home.state().join("audit");
    let files = std::fs::read_dir(folder).expect("the log").flatten();
    let logs: String = files.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect();
    assert_eq!(logs.matches(r#""event":"approval.escalated""#).count(), 1);
}

/// One who was taken off the list, or is on it under another name, is not counted beside another.
#[tokio::test]
async fn an_approval_counts_as_long_as_its_voter_may_decide() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", json!({ "path": "books/a.md", "content": "x" })).await;
    let held = gateway.held(1).await;
    assert_eq!(approve(&gateway, "eve", &held[0]).await.0, 200);
    let renamed = serde_json::to_string(&home.section("approvers")).expect("JSON").replace(r#""eve""#, r#""eva""#);
    let home = home.with("approvers", serde_json::from_str(&renamed).expect("JSON"));
    home.write_config();
    assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    let (status, again) = approve(&gateway, "eve", &held[0]).await;
    assert_eq!((status, &again["state"]), (200, &json!("waiting")), "the same token: {again}");
    let by: Vec<_> = again["votes"].as_array().expect("votes").iter().map(|vote| &vote["by"]).collect();
    assert_eq!((by, &again["requirements"][0]["votes"]), (vec![&json!("eva")], &json!(1)));
    assert_eq!(approve(&gateway, "flo", &held[0]).await.0, 200);
    assert_ne!(reply(answer, 1).await["result"]["isError"], true);
}

#[tokio::test]
async fn what_its_owner_alone_could_approve_and_may_not_does_not_load() {
    let eves = json!([{ "name": "builder", "group": "default", "owner": "eve",
        "tokens": [{ "sha256": hex::encode(Sha256::digest("builder")) }] }]);
    let home = home().with("agents", eves);
    let gateway = home.serve();
    home.write_policy(
        &POLICY.replace("approvers: eve, escalate: { after: 300ms, to: [ana] }", "approvers: eve, allow_self: never"),
    );
    let (status, problem) = gateway.api(Method::POST, "policy/reload", Value::Null).await;
    assert!(status >= 400, "{problem}");
    let told = problem.to_string();
    assert!(told.contains("`allow_self: never` leaves out `eve`, who owns an agent of it"), "{told}");
}

#[tokio::test]
async fn a_quorum_that_nobody_can_reach_keeps_the_last_good_policy() {
    let home = home();
    let gateway = home.serve();
    home.write_policy(&POLICY.replace("quorum: 2", "quorum: 3"));
    let (status, problem) = gateway.api(Method::POST, "policy/reload", Value::Null).await;
    assert!(status >= 400, "{problem}");
    let told = problem.to_string();
    assert!(
        told.contains("this approval needs 3 of finance, and only 2 can decide calls of group `default`"),
        "{told}"
    );
    assert_eq!(gateway.get("policy").await["groups"], json!(["default"]));
}

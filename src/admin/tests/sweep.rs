//! Every route of the table, asked by those who may not: what a role or a group keeps from them, no route tells.

use http::StatusCode;
use serde_json::{Value, json};

use super::side::{ANA, Answer, DIGEST, EVE, Side, VIC};
use crate::admin::api;

/// A body that the route takes, so that the refusal is one of the role or the group.
fn body(path: &str) -> Value {
    match path.rsplit('/').next().unwrap() {
        "approve" => json!({"digest": DIGEST}),
        "extend" => json!({"by_ms": 1000}),
        "reveal" => json!({"pointer": "/token"}),
        "decide" => json!([{"id": "apr_1", "decision": "reject"}]),
        "accept" if path.contains('{') => json!({"digest": "x"}),
        "accept" => json!({"upstream": "u", "name": "n", "digest": "x"}),
        "answer" => json!({"answer": "x"}),
        "login" => json!({"token": "x"}),
        "explain" => json!({"group": "default", "method": "ping"}),
        _ => json!({}),
    }
}

/// The path with ids of what there is, or of what there is not.
fn filled(path: &str, there: bool) -> String {
    let number = if there { "1" } else { "9" };
    let ids = [("/approvals/", "apr_"), ("/calls/", "call_"), ("/sessions/", "ses_"), ("/grants/", "gr_")];
    let prefix = ids.iter().find(|(list, _)| path.contains(list)).map_or("id_", |(_, prefix)| prefix);
    let agent = if there { "claude" } else { "nobody" };
    path.replace("{id}", &format!("{prefix}{number}")).replace("{name}", agent).replace("{upstream}", "u")
}

async fn ask(side: &Side, token: &str, method: &str, path: &str, body: &Value) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let body = if method == "get" { String::new() } else { body.to_string() };
    side.ask(&method.to_uppercase(), path, &headers, &body).await
}

/// All but the stream, which does not end, a login, which needs no role, and the document, which is about no call.
fn routes() -> impl Iterator<Item = api::Route> {
    let others = ["/api/v1/events", "/api/v1/login", "/api/v1/openapi.json"];
    api::table().into_iter().filter(move |route| !others.contains(&route.path))
}

#[tokio::test]
async fn a_role_is_needed_where_the_document_says_so_and_nowhere_else() {
    let side = Side::start().await;
    side.hold("1").await;
    for route in routes() {
        let answer = ask(&side, VIC, route.method, &filled(route.path, true), &body(route.path)).await;
        let (name, refused) = (format!("{} {}", route.method, route.path), answer.status == 403);
        match route.role {
            // What is not there is not there for anybody.
            Some(role) => {
                let word = crate::record::word(role);
                let told = refused && answer.text.contains(&format!("needs the role {word}"));
                assert!(told || answer.status == 404, "{name}: {} {}", answer.status, answer.text);
            }
            None => assert!(!refused || !answer.text.contains("needs the role"), "{name}: {}", answer.text),
        }
    }
    let still = side.get(ANA, "approvals/apr_1").await.json();
    assert_eq!((&still["state"], &still["votes"]), (&json!("waiting"), &json!([])), "a viewer changed something");
}

#[tokio::test]
async fn no_route_tells_of_another_group() {
    let side = Side::start().await;
    side.hold("1").await;
    let mut asked = 0;
    for route in routes() {
        let body = body(route.path);
        let there = ask(&side, EVE, route.method, &filled(route.path, true), &body).await;
        for theirs in ["call_1", "apr_1", "claude", "ses_"] {
            let is_her_own = body.to_string().contains(theirs);
            assert!(is_her_own || !there.text.contains(theirs), "{} tells of {theirs}: {}", route.path, there.text);
        }
        if route.path.contains('{') {
            let nowhere = ask(&side, EVE, route.method, &filled(route.path, false), &body).await;
            let (one, other) = ((there.status, &there.text), (nowhere.status, &nowhere.text));
            assert_eq!(one, other, "{}: what is there can be told from what is not", route.path);
            assert_eq!(there.status, StatusCode::NOT_FOUND.as_u16(), "{}", route.path);
            asked += 1;
        }
    }
    assert!(asked > 10, "only {asked}");
    let still = side.get(ANA, "approvals/apr_1").await.json();
    assert_eq!((&still["state"], &still["votes"]), (&json!("waiting"), &json!([])), "another group changed something");
}

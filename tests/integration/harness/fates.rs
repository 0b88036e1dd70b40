//! The fates of a held call: approved, rejected, expired, cancelled. What stands in its arguments says which is meant.

use std::time::Duration;

use serde_json::{Value, json};

use super::gateway::Gateway;

const FATES: [&str; 4] = ["approve", "reject", "expire", "cancel"];

/// What an approver says who rejects.
const NOTE: &str = "do it in docs instead";

/// `approvals` of the configuration under which an undecided call expires while a client still waits.
pub fn approvals() -> Value {
    json!({ "hold_for": "30s", "expires": "3s", "hold_grace": "1s" })
}

/// A call of each fate; `arguments` must carry the word it is given.
pub fn calls(tool: &str, arguments: impl Fn(&str) -> Value) -> Vec<Value> {
    let mut calls: Vec<Value> =
        FATES.iter().map(|fate| json!({ "do": "call", "tool": tool, "arguments": arguments(fate) })).collect();
    calls[3]["cancel_after_ms"] = json!(800);
    calls
}

/// Decides what comes to wait, by what stands in its arguments, until the client is done.
pub async fn decide_while<T>(gateway: &Gateway, client: impl Future<Output = T>) -> T {
    let decide = async {
        loop {
            for approval in gateway.waiting().await {
                let arguments = approval["call"]["arguments"].to_string();
                let answer = match FATES.iter().find(|fate| arguments.contains(**fate)) {
                    Some(&"approve") => gateway.approve(&approval).await,
                    Some(&"reject") => gateway.reject(&approval, NOTE).await,
                    _ => continue,
                };
                // A decision on an earlier round may have come first; anything else is wrong.
                assert!(matches!(answer.0, 200 | 409 | 410), "{answer:?}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        done = client => done,
        () = decide => unreachable!("it decides for ever"),
    }
}

/// Checks what the client was told of each fate.
pub fn check(steps: &[&Value]) {
    let [approved, rejected, expired, cancelled] = steps else { panic!("four steps: {steps:?}") };
    assert!(about(approved).is_null() && approved["result"]["isError"] != true, "{approved}");
    assert_eq!(rejected["result"]["isError"], true, "{rejected}");
    assert_eq!(about(rejected)["reason"], "approver", "{rejected}");
    assert!(said(rejected).contains(NOTE), "{rejected}");
    assert_eq!(expired["result"]["isError"], true, "{expired}");
    assert_eq!(about(expired)["reason"], "expired", "{expired}");
    assert_eq!(cancelled["result"]["cancelled"], true, "{cancelled}");
}

/// Checks how the latest call of each fate ended, as the gateway tells it.
pub async fn check_outcomes(gateway: &Gateway) {
    let calls = gateway.get("calls?limit=50").await;
    for (fate, outcome) in FATES.into_iter().zip(["completed", "rejected", "rejected", "cancelled"]) {
        let is_meant = |call: &&Value| call["arguments"].to_string().contains(fate);
        let call = calls["items"].as_array().expect("calls").iter().find(is_meant);
        assert_eq!(call.map(|call| &call["outcome"]), Some(&json!(outcome)), "{fate}: {calls}");
    }
    assert!(gateway.waiting().await.is_empty());
}

/// What the gateway tells of a call beside a step's result.
pub fn about(step: &Value) -> &Value {
    &step["result"]["_meta"]["dev.portcullis/call"]
}

/// The text of a step's result.
pub fn said(step: &Value) -> &str {
    step["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

//! The API is what its OpenAPI document says, whoever asks: schemathesis makes requests from the document, right ones and
//! wrong ones, and checks every answer against it.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::process::Command;
use tokio::time::timeout;

use crate::harness::agent::Agent;
use crate::harness::gateway::{Gateway, Home, TOKEN};
use crate::harness::peers;

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
      - { name: writes, verdict: ask, tool: '@fs_write', reason: Somebody should look at what is written. }
";
/// Sees, and decides nothing.
const VIEWER: &str = "pct_test-viewer-token";
/// Calls that wait, beside those that were decided.
const WAITING: usize = 6;
/// How long one round may take on a slow machine; it takes a tenth of that here.
const PATIENCE: Duration = Duration::from_secs(400);

#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_no_answer_that_the_document_does_not_know() {
    let workspace = json!({ "work": { "workspace": true, "root": "$ROOT" } });
    let hash = |token: &str| hex::encode(Sha256::digest(token));
    let approvers = json!([
        { "name": "ana", "roles": ["approver", "operator", "auditor"], "groups": ["*"], "tokens": [{ "sha256": hash(TOKEN) }] },
        { "name": "vic", "roles": ["viewer"], "groups": ["default"], "tokens": [{ "sha256": hash(VIEWER) }] },
    ]);
    let home = Home::new(POLICY, workspace).with("approvers", approvers);
    let gateway = home.serve();
    let folder = tempfile::tempdir().expect("a folder");
    let rounds = async {
        let ana = round(&gateway, folder.path(), Some(TOKEN), &["--max-examples", "40"]).await;
        assert!(ana > 1_500, "only {ana} requests");
        let vic =
            round(&gateway, folder.path(), Some(VIEWER), &["--phases", "coverage,stateful", "--max-examples", "10"])
                .await;
        assert!(vic > 500, "only {vic} requests");
        let nobody = round(&gateway, folder.path(), None, &["--phases", "coverage"]).await;
        assert!(nobody > 500, "only {nobody} requests");
    };
    tokio::select! {
        () = rounds => {}
        () = keep_asking(&gateway) => {}
    }
    // It stopped agents and decided calls, and everything still works.
    assert_eq!(gateway.get("me").await["name"], "ana");
}

/// How many requests schemathesis made without a finding.
async fn round(gateway: &Gateway, folder: &Path, token: Option<&str>, more: &[&str]) -> usize {
    let mut command = Command::from(peers::schemathesis());
    command.arg("run").arg(format!("{}/api/v1/openapi.json", gateway.admin));
    command.args([
        "--seed",
        "1",
        "--continue-on-failure",
        "--no-shrink",
        "--request-timeout",
        "20",
        "--warnings",
        "off",
    ]);
    command.args(more).current_dir(folder).env("NO_COLOR", "1").stdin(Stdio::null()).kill_on_drop(true);
    if let Some(token) = token {
        command.arg("--header").arg(format!("Authorization: Bearer {token}"));
    }
    let output = timeout(PATIENCE, command.output()).await.expect("schemathesis comes to an end").expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let document = gateway.get("openapi.json").await;
    let paths = document["paths"].as_object().expect("paths").values();
    let operations: usize = paths.map(|methods| methods.as_object().expect("methods").len()).sum();
    // All but the event stream; where the document itself is does not count.
    assert!(said.contains(&format!("Selected: {}/{}", operations - 2, operations - 1)), "{said}");
    let made = said.lines().find_map(|line| line.trim().split_once(" generated")).expect("how many");
    made.0.replace(',', "").parse().expect("a number")
}

/// Has calls wait, and lets the agent go on whenever it was paused.
async fn keep_asking(gateway: &Gateway) {
    let agent = Agent::legacy(&gateway.url("work")).await;
    let mut open = Vec::new();
    for id in 1.. {
        let waiting = gateway.waiting().await.len();
        if waiting < WAITING {
            gateway.api(Method::POST, "agents/local/resume", Value::Null).await;
            let arguments = json!({ "path": format!("docs/{id}.md"), "content": "x" });
            open.push(agent.begin(id, "write_file", arguments).await);
        }
        tokio::time::sleep(Duration::from_millis(if waiting < WAITING { 20 } else { 300 })).await;
    }
}

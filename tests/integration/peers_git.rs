//! `mcp-server-git` (both eras) through the gateway, driven by the official clients.

use std::process::Command;

use serde_json::{Value, json};

use crate::harness::fates::{self, about, decide_while, said};
use crate::harness::gateway::{Gateway, Home};
use crate::harness::peers::{self, CLIENTS, Client, Way};

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: look, verdict: allow, tool: [git_status, git_log], path: repo/ }
      - { name: no-reset, verdict: deny, tool: git_reset, reason: History is not ours to drop. }
";

fn home() -> Home {
    let home = Home::new(POLICY, json!({}));
    let git = json!({ "command": peers::git(), "root": home.root(), "catalogue": "git", "new_tools": "accept" });
    let repo = home.root().join("repo");
    let script = "git init -q . && git config user.name t && git config user.email t@example.invalid \
                  && echo one > a.txt && git add . && git commit -qm first && echo two >> a.txt";
    std::fs::create_dir(&repo).expect("a folder");
    assert!(Command::new("bash").args(["-ec", script]).current_dir(&repo).status().expect("git").success());
    home.with("upstreams", json!({ "git": git })).with("approvals", fates::approvals())
}

/// Allowed, denied by a rule and by a guardrail, and one of each fate; the branch's name says which.
fn steps(repo: &str, round: &str) -> Value {
    let mut steps = vec![
        json!({ "do": "list" }),
        json!({ "do": "call", "tool": "git_status", "arguments": { "repo_path": repo } }),
        json!({ "do": "call", "tool": "git_reset", "arguments": { "repo_path": repo } }),
        json!({ "do": "call", "tool": "git_status", "arguments": { "repo_path": format!("{repo}/../secrets") } }),
    ];
    let branch = |fate: &str| json!({ "repo_path": repo, "branch_name": format!("{fate}-{round}") });
    steps.extend(fates::calls("git_create_branch", branch));
    json!(steps)
}

async fn drive(client: Client, way: Way, era: &'static str, gateway: &Gateway, repo: &str) {
    let round = format!("{client:?}-{era}");
    let told = decide_while(gateway, client.drives(way, era, steps(repo, &round))).await;
    if era == "modern" {
        assert_eq!(told.version(), "2026-07-28");
    }
    let steps = told.steps();
    assert!(steps[0]["result"]["tools"].as_array().expect("tools").len() >= 10, "{}", steps[0]);
    assert!(said(steps[1]).contains("a.txt"), "{}", steps[1]);
    assert_eq!(about(steps[2])["reason"], "policy", "{}", steps[2]);
    assert!(said(steps[2]).contains("History is not ours to drop"), "{}", steps[2]);
    assert_eq!(about(steps[3])["reason"], "guardrail", "{}", steps[3]);
    fates::check(&steps[4..]);
    fates::check_outcomes(gateway).await;
    let list = Command::new("git").args(["branch", "--list", &format!("*-{round}")]).current_dir(repo).output();
    let made = String::from_utf8(list.expect("git").stdout).expect("UTF-8");
    assert_eq!(made.trim(), format!("approve-{round}"), "only what was approved is there");
}

#[tokio::test]
async fn both_eras_over_http() {
    let home = home();
    let gateway = home.serve();
    let repo = home.path("repo");
    for client in CLIENTS {
        drive(client, Way::Url(gateway.url("git")), "legacy", &gateway, &repo).await;
    }
    for client in [Client::Python, Client::TypeScript2] {
        drive(client, Way::Url(gateway.url("git")), "modern", &gateway, &repo).await;
    }
}

#[tokio::test]
async fn both_eras_over_wrap() {
    let home = home();
    let gateway = home.serve();
    let repo = home.path("repo");
    let command = home.wrap("git", peers::git());
    for client in CLIENTS {
        drive(client, Way::Command(command.clone()), "legacy", &gateway, &repo).await;
    }
    for client in [Client::Python, Client::TypeScript2] {
        drive(client, Way::Command(command.clone()), "modern", &gateway, &repo).await;
    }
}

//! `mcp-server-git` (both eras) through the gateway, driven by the official clients.

use std::process::Command;

use serde_json::{Value, json};

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
    home.with("upstreams", json!({ "git": git })).with("approvals", json!({ "hold_for": "30s", "expires": "60s" }))
}

fn steps(repo: &str, branch: &str) -> Value {
    json!([
        { "do": "list" },
        { "do": "call", "tool": "git_status", "arguments": { "repo_path": repo } },
        { "do": "call", "tool": "git_reset", "arguments": { "repo_path": repo } },
        { "do": "call", "tool": "git_status", "arguments": { "repo_path": format!("{repo}/../secrets") } },
        { "do": "call", "tool": "git_create_branch", "arguments": { "repo_path": repo, "branch_name": branch } },
    ])
}

async fn drive(client: Client, way: Way, era: &'static str, gateway: &Gateway, repo: &str) {
    let branch = format!("{client:?}-{era}");
    let decide = async {
        let held = gateway.held(1).await;
        let (status, answer) = gateway.approve(&held[0]).await;
        assert_eq!(status, 200, "{answer}");
        std::future::pending::<()>().await;
    };
    let said = tokio::select! {
        said = client.drives(way, era, steps(repo, &branch)) => said,
        () = decide => unreachable!("it waits for ever"),
    };
    if era == "modern" {
        assert_eq!(said.version(), "2026-07-28");
    }
    let steps = said.steps();
    let text = |index: usize| steps[index]["result"]["content"][0]["text"].as_str().unwrap_or_default();
    let about = |index: usize| &steps[index]["result"]["_meta"]["dev.portcullis/call"];
    assert!(steps[0]["result"]["tools"].as_array().expect("tools").len() >= 10, "{}", steps[0]);
    assert!(text(1).contains("a.txt"), "{}", steps[1]);
    assert_eq!(about(2)["reason"], "policy", "{}", steps[2]);
    assert!(text(2).contains("History is not ours to drop"), "{}", steps[2]);
    assert_eq!(about(3)["reason"], "guardrail", "{}", steps[3]);
    assert_ne!(steps[4]["result"]["isError"], true, "{}", steps[4]);
    let list = Command::new("git").args(["branch", "--list", &branch]).current_dir(repo).output().expect("git");
    assert!(String::from_utf8_lossy(&list.stdout).contains(&branch), "no branch was made: {}", steps[4]);
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

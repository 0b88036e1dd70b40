//! The official clients drive `server-filesystem` through the gateway: allowed, denied, held and approved, rejected,
//! expired, cancelled; over HTTP and over `wrap`.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::fates::{self, about, decide_while, said};
use crate::harness::gateway::{Gateway, Home, PORTCULLIS};
use crate::harness::peers::{self, Client, Said, Way};

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
";

fn home() -> Home {
    let home = Home::new(POLICY, json!({}));
    let files = json!({
        "command": peers::filesystem(home.root()), "root": home.root(), "catalogue": "filesystem", "new_tools": "accept",
    });
    home.with("upstreams", json!({ "files": files })).with("approvals", fates::approvals())
}

/// Allowed, denied, and one of each fate; the name of the file says which.
fn steps(home: &Home) -> Value {
    let mut steps = vec![
        json!({ "do": "call", "tool": "read_text_file", "arguments": { "path": home.path("docs/a.md") } }),
        json!({ "do": "call", "tool": "read_text_file", "arguments": { "path": home.path("docs/../secrets/key.pem") } }),
        // The clients announce a folder of their own as their root. It does not move the server.
        json!({ "do": "call", "tool": "read_text_file", "arguments": { "path": "docs/b.md" } }),
    ];
    steps
        .extend(fates::calls("write_file", |fate| json!({ "path": home.path(&format!("{fate}.md")), "content": "x" })));
    json!(steps)
}

async fn check(home: &Home, gateway: &Gateway, client: &Said) {
    let steps = client.steps();
    let (allowed, denied) = (steps[0], steps[1]);
    assert_eq!(said(allowed), "hello from a\n", "{allowed}");
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    assert_eq!(about(denied)["reason"], "guardrail", "{denied}");
    assert!(!denied.to_string().contains("the key"), "{denied}");
    assert_eq!(said(steps[2]), "and b\n", "{}", steps[2]);
    fates::check(&steps[3..]);
    assert_eq!(std::fs::read_to_string(home.path("approve.md")).expect("written"), "x");
    for never in ["reject.md", "expire.md", "cancel.md"] {
        assert!(!Path::new(&home.path(never)).exists(), "{never} was written");
    }
    fates::check_outcomes(gateway).await;
    // Refused and stopped calls are not failed ones; the whole story is in the log, unbroken.
    let metrics = gateway.metrics().await;
    assert!(!metrics.contains("outcome=\"failed\""), "{metrics}");
    let verify = std::process::Command::new(PORTCULLIS).args(["audit", "verify", "--dir"]).arg(home.state()).output();
    let verify = verify.expect("it starts");
    assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));
}

async fn over_http(client: Client, era: &'static str) {
    let home = home();
    let gateway = home.serve();
    let way = Way::Url(gateway.url("files"));
    let told = decide_while(&gateway, client.drives(way, era, steps(&home))).await;
    check(&home, &gateway, &told).await;
}

/// The stdio process and `serve` share the state folder; the decisions come through `serve`.
async fn over_wrap(client: Client, era: &'static str) {
    let home = home();
    let gateway = home.serve();
    let told = decide_while(&gateway, client.drives(wrapped(&home), era, steps(&home))).await;
    check(&home, &gateway, &told).await;
}

fn wrapped(home: &Home) -> Way {
    Way::Command(home.wrap("files", peers::filesystem(home.root())))
}

#[tokio::test]
async fn python_over_http() {
    over_http(Client::Python, "auto").await;
}

#[tokio::test]
async fn python_legacy_over_http() {
    over_http(Client::Python, "legacy").await;
}

#[tokio::test]
async fn typescript_1_over_http() {
    over_http(Client::TypeScript1, "legacy").await;
}

#[tokio::test]
async fn typescript_2_over_http() {
    over_http(Client::TypeScript2, "auto").await;
}

#[tokio::test]
async fn python_over_wrap() {
    over_wrap(Client::Python, "auto").await;
}

#[tokio::test]
async fn typescript_1_over_wrap() {
    over_wrap(Client::TypeScript1, "legacy").await;
}

#[tokio::test]
async fn typescript_2_over_wrap() {
    over_wrap(Client::TypeScript2, "auto").await;
}

async fn inspector(wrap: bool) {
    let home = home();
    let gateway = home.serve();
    let way = if wrap { wrapped(&home) } else { Way::Url(gateway.url("files")) };
    let call = async |tool: &'static str, file: &str| {
        let (way, at, arguments) = (way.clone(), home.base(), json!({ "path": home.path(file), "content": "x" }));
        let arguments = if tool == "write_file" { arguments } else { json!({ "path": arguments["path"] }) };
        let client = tokio::task::spawn_blocking(move || peers::inspect(&way, "legacy", &at, tool, &arguments));
        decide_while(&gateway, client).await.expect("the inspector")
    };
    let (code, allowed) = call("read_text_file", "docs/a.md").await;
    assert_eq!((code, said(&allowed)), (0, "hello from a\n"), "{allowed}");
    // 5 is its code for a tool result that is an error.
    let (code, denied) = call("read_text_file", "secrets/key.pem").await;
    assert_eq!((code, &about(&denied)["reason"]), (5, &json!("guardrail")), "{denied}");
    let (code, approved) = call("write_file", "approve.md").await;
    assert_eq!(code, 0, "{approved}");
    assert_eq!(std::fs::read_to_string(home.path("approve.md")).expect("written"), "x");
    let (code, rejected) = call("write_file", "reject.md").await;
    assert_eq!((code, &about(&rejected)["reason"]), (5, &json!("approver")), "{rejected}");
    let (code, expired) = call("write_file", "expire.md").await;
    assert_eq!((code, &about(&expired)["reason"]), (5, &json!("expired")), "{expired}");
    assert!(!Path::new(&home.path("reject.md")).exists() && !Path::new(&home.path("expire.md")).exists());
}

#[tokio::test]
async fn inspector_over_http() {
    inspector(false).await;
}

#[tokio::test]
async fn inspector_over_wrap() {
    inspector(true).await;
}

/// The Inspector has no way to cancel but to end; an approval after that runs nothing.
#[tokio::test]
async fn an_inspector_that_is_gone_runs_nothing() {
    let home = home().with("approvals", json!({ "hold_for": "30s", "expires": "60s", "hold_grace": "1s" }));
    let gateway = home.serve();
    let arguments = json!({ "path": home.path("gone.md"), "content": "x" });
    let way = Way::Url(gateway.url("files"));
    let mut client =
        peers::inspector(&way, "legacy", &home.base(), "write_file", &arguments).spawn().expect("it starts");
    let held = gateway.held(1).await;
    client.kill().expect("it ran");
    client.wait().expect("it ended");
    let (status, answer) = gateway.approve(&held[0]).await;
    assert!(matches!(status, 200 | 410), "{answer}");
    let call = gateway.ended(held[0]["call"]["id"].as_str().expect("an id")).await;
    assert_eq!(call["outcome"], "cancelled", "{call}");
    assert!(!Path::new(&home.path("gone.md")).exists());
}

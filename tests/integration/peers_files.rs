//! The official clients drive `server-filesystem` through the gateway: allowed, denied, held and approved, rejected,
//! expired, cancelled; over HTTP and over `wrap`.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

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
    home.with("upstreams", json!({ "files": files }))
        .with("approvals", json!({ "hold_for": "30s", "expires": "2s", "hold_grace": "1s" }))
}

/// One call of each fate; the name of the file says what the approver does.
fn steps(home: &Home) -> Value {
    let write = |name: &str| json!({ "path": home.path(name), "content": name });
    json!([
        { "do": "call", "tool": "read_text_file", "arguments": { "path": home.path("docs/a.md") } },
        { "do": "call", "tool": "read_text_file", "arguments": { "path": home.path("docs/../secrets/key.pem") } },
        { "do": "call", "tool": "write_file", "arguments": write("approve.md") },
        { "do": "call", "tool": "write_file", "arguments": write("reject.md") },
        { "do": "call", "tool": "write_file", "arguments": write("expire.md") },
        { "do": "call", "tool": "write_file", "arguments": write("cancel.md"), "cancel_after_ms": 800 },
    ])
}

/// Decides what comes to wait, by the name of the file, until the client is done.
async fn decide_while<T>(gateway: &Gateway, client: impl Future<Output = T>) -> T {
    let decide = async {
        loop {
            for approval in gateway.waiting().await {
                let path = approval["call"]["arguments"]["path"].as_str().unwrap_or_default().to_owned();
                let answer = match path.rsplit('/').next() {
                    Some("approve.md") => gateway.approve(&approval).await,
                    Some("reject.md") => gateway.reject(&approval, "write it to docs instead").await,
                    _ => continue,
                };
                // A decision on another pass may have come first; anything else is wrong.
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

fn about(step: &Value) -> &Value {
    &step["result"]["_meta"]["dev.portcullis/call"]
}

fn said(step: &Value) -> &str {
    step["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

async fn check(home: &Home, gateway: &Gateway, said_by_client: &Said) {
    let steps = said_by_client.steps();
    let [allowed, denied, approved, rejected, expired, cancelled] = steps[..] else {
        panic!("six steps: {said_by_client:?}")
    };
    assert_eq!(said(allowed), "hello from a\n", "{allowed}");
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    assert_eq!(about(denied)["reason"], "guardrail", "{denied}");
    assert!(!denied.to_string().contains("the key"), "{denied}");
    assert_ne!(approved["result"]["isError"], true, "{approved}");
    assert_eq!(std::fs::read_to_string(home.path("approve.md")).expect("written"), "approve.md");
    assert_eq!(rejected["result"]["isError"], true, "{rejected}");
    assert_eq!(about(rejected)["reason"], "approver", "{rejected}");
    assert!(said(rejected).contains("write it to docs instead"), "{rejected}");
    assert_eq!(about(expired)["reason"], "expired", "{expired}");
    assert_eq!(cancelled["result"]["cancelled"], true, "{cancelled}");
    for never in ["reject.md", "expire.md", "cancel.md"] {
        assert!(!Path::new(&home.path(never)).exists(), "{never} was written");
    }
    let calls = gateway.get("calls?limit=50").await;
    let outcome = |file: &str| -> Value {
        let ends = |call: &&Value| call["arguments"]["path"].as_str().is_some_and(|path| path.ends_with(file));
        calls["items"].as_array().expect("calls").iter().find(ends).unwrap_or_else(|| panic!("{file}: {calls}"))["outcome"]
            .clone()
    };
    assert_eq!(outcome("approve.md"), "completed");
    assert_eq!(outcome("reject.md"), "rejected");
    assert_eq!(outcome("expire.md"), "rejected");
    assert_eq!(outcome("cancel.md"), "cancelled");
    assert!(gateway.waiting().await.is_empty());
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
    let said = decide_while(&gateway, client.drives(way, era, steps(&home))).await;
    check(&home, &gateway, &said).await;
}

/// The stdio process and `serve` share the state folder; the decisions come through `serve`.
async fn over_wrap(client: Client, era: &'static str) {
    let home = home();
    let gateway = home.serve();
    let said = decide_while(&gateway, client.drives(wrapped(&home), era, steps(&home))).await;
    check(&home, &gateway, &said).await;
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
        let (way, at, arguments) = (way.clone(), home.base(), json!({ "path": home.path(file), "content": file }));
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
    assert_eq!(std::fs::read_to_string(home.path("approve.md")).expect("written"), "approve.md");
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

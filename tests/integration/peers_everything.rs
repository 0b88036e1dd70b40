//! `server-everything` through the gateway: progress, log messages and the server's own requests pass in both directions,
//! as they do without it.

use serde_json::{Value, json};

use crate::harness::fates;
use crate::harness::gateway::{Gateway, Home};
use crate::harness::peers::{self, CLIENTS, Client, Said, Way};

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: tools, verdict: allow, tool: '*' }
      - { name: pages, verdict: allow, method: resources/read }
      - { name: guarded, verdict: ask, tool: echo, args: { message: { regex: '(approve|reject|expire|cancel) .*' } } }
      - { name: no-env, verdict: deny, tool: get-env, reason: The environment holds secrets. }
      - { name: samples, verdict: allow, method: sampling/createMessage }
";

/// What server-everything does beside answering.
fn steps() -> Value {
    json!([
        { "do": "level", "level": "debug" },
        { "do": "call", "tool": "toggle-simulated-logging", "arguments": {} },
        { "do": "call", "tool": "trigger-long-running-operation", "arguments": { "duration": 1, "steps": 4 }, "progress": true },
        { "do": "call", "tool": "trigger-sampling-request", "arguments": { "prompt": "hi", "maxTokens": 10 } },
        { "do": "call", "tool": "trigger-elicitation-request", "arguments": {} },
        { "do": "call", "tool": "get-roots-list", "arguments": {} },
        { "do": "call", "tool": "trigger-long-running-operation", "arguments": { "duration": 20, "steps": 2 }, "cancel_after_ms": 500 },
        { "do": "call", "tool": "get-structured-content", "arguments": { "location": "Chicago" } },
        { "do": "read", "uri": "demo://resource/static/document/features.md" },
        { "do": "together", "calls": [
            { "tool": "echo", "arguments": { "message": "one" } },
            { "tool": "get-sum", "arguments": { "a": 9, "b": 33 } },
            { "tool": "echo", "arguments": { "message": "three" } },
        ] },
        { "do": "wait", "ms": 1000 },
    ])
}

fn check(said: &Said) {
    let steps = said.steps();
    for step in &steps {
        assert!(step.get("error").is_none(), "{step}");
    }
    let text = |index: usize| steps[index]["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text(2).contains("completed"), "{}", steps[2]);
    assert!(text(3).contains("sampled by the peer"), "{}", steps[3]);
    assert!(steps[4].to_string().contains("Name: Peer"), "{}", steps[4]);
    assert!(text(5).contains("file:///tmp"), "{}", steps[5]);
    assert_eq!(steps[6]["result"]["cancelled"], true, "{}", steps[6]);
    assert!(steps[7]["result"]["structuredContent"]["temperature"].is_number(), "{}", steps[7]);
    assert!(steps[8].to_string().contains("Everything Server"), "{}", steps[8]);
    let together: Vec<&str> =
        (0..3).map(|i| steps[9]["result"][i]["content"][0]["text"].as_str().expect("text")).collect();
    assert_eq!(together, ["Echo: one", "The sum of 9 and 33 is 42.", "Echo: three"]);
    let seen = said.seen();
    let progress: Vec<f64> = seen["progress"].as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
    // The TypeScript clients lose the last step where it comes together with the answer, gateway or not.
    assert!(progress.len() >= 3 && progress.is_sorted(), "{seen}");
    assert!(seen["logs"].as_u64() >= Some(1), "{seen}");
    assert_eq!((&seen["sampling"], &seen["elicitation"]), (&json!(1), &json!(1)), "{seen}");
    assert!(seen["roots"].as_u64() >= Some(1), "{seen}");
}

fn home(mut everything: Value) -> Home {
    everything["new_tools"] = json!("accept");
    // Its paths are names, so that the roots are the client's to say.
    everything["filesystem"] = json!("none");
    Home::new(POLICY, json!({ "everything": everything })).with("approvals", fates::approvals())
}

/// Denied, and one of each fate.
async fn decisions(gateway: &Gateway, client: Client, way: Way, era: &'static str) {
    let mut steps = vec![json!({ "do": "call", "tool": "get-env", "arguments": {} })];
    steps.extend(fates::calls("echo", |fate| json!({ "message": format!("{fate} by {client:?}") })));
    let told = fates::decide_while(gateway, client.drives(way, era, json!(steps))).await;
    let steps = told.steps();
    assert_eq!(fates::about(steps[0])["reason"], "policy", "{}", steps[0]);
    fates::check(&steps[1..]);
    assert_eq!(fates::said(steps[1]), format!("Echo: approve by {client:?}"));
    fates::check_outcomes(gateway).await;
}

fn eras(client: Client) -> &'static [&'static str] {
    if client == Client::TypeScript1 { &["legacy"] } else { &["legacy", "auto"] }
}

/// In front of the server over stdio, clients over HTTP.
#[tokio::test]
async fn stdio_server_over_http() {
    let home = home(json!({ "command": peers::everything() }));
    let gateway = home.serve();
    for client in CLIENTS {
        for era in eras(client) {
            check(&client.drives(Way::Url(gateway.url("everything")), era, steps()).await);
        }
    }
}

/// In front of the server over Streamable HTTP.
#[tokio::test]
async fn http_server_over_http() {
    let server = peers::Listening::start(peers::everything_http());
    let url = format!("http://127.0.0.1:{}/mcp", server.port);
    let home = home(json!({ "url": url }));
    let gateway = home.serve();
    for client in CLIENTS {
        let way = Way::Url(gateway.url("everything"));
        check(&client.drives(way.clone(), "legacy", steps()).await);
        decisions(&gateway, client, way, "legacy").await;
    }
}

/// As a stdio server of any client's.
#[tokio::test]
async fn stdio_server_over_wrap() {
    let home = home(json!({ "command": peers::everything() }));
    let gateway = home.serve();
    for client in CLIENTS {
        let way = Way::Command(home.wrap("everything", peers::everything()));
        check(&client.drives(way.clone(), "auto", steps()).await);
        decisions(&gateway, client, way, "auto").await;
    }
}

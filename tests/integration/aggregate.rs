//! `/mcp`, one address for all upstreams: real clients of both eras, with one upstream that is down.

use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, reply, text};
use crate::harness::eventually;
use crate::harness::gateway::{Gateway, Home};
use crate::harness::peers::{self, CLIENTS, Way};

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: everything, verdict: allow, upstream: everything, tool: '*' }
      - { name: pages, verdict: allow, method: resources/read }
      - { name: samples, verdict: allow, method: sampling/createMessage }
      - { name: no-env, verdict: deny, tool: get-env, reason: The environment holds secrets. }
      - { name: docs, verdict: allow, upstream: work, tool: '@fs_any', path: docs/ }
";

fn home() -> Home {
    let upstreams = json!({
        "everything": { "command": peers::everything(), "new_tools": "accept", "filesystem": "none" },
        "gone": { "command": ["false"], "new_tools": "accept" },
        "work": { "workspace": true, "root": "$ROOT" },
    });
    let home = Home::new(POLICY, upstreams).with("approvals", json!({ "hold_for": "60s", "expires": "60s" }));
    std::fs::create_dir_all(home.root().join("docs")).expect("a folder");
    std::fs::write(home.root().join("docs/a.md"), "plans\n").expect("a file");
    home
}

fn all(gateway: &Gateway) -> String {
    gateway.url("").trim_end_matches('/').to_owned()
}

fn names(list: &Value, key: &str) -> Vec<String> {
    let entries = list.as_array().unwrap_or_else(|| panic!("no list: {list}")).iter();
    entries.map(|entry| entry[key].as_str().expect("a text").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn real_clients_find_everything_at_one_address() {
    let home = home();
    let gateway = home.serve();
    let steps = json!([
        { "do": "list" },
        { "do": "call", "tool": "everything__echo", "arguments": { "message": "one" } },
        { "do": "call", "tool": "work__read_file", "arguments": { "path": "docs/a.md" } },
        { "do": "call", "tool": "everything__get-env", "arguments": {} },
        { "do": "call", "tool": "gone__anything", "arguments": {} },
        { "do": "call", "tool": "everything__trigger-long-running-operation", "arguments": { "duration": 1, "steps": 4 }, "progress": true },
        { "do": "call", "tool": "everything__trigger-sampling-request", "arguments": { "prompt": "hi", "maxTokens": 10 } },
        { "do": "call", "tool": "everything__trigger-elicitation-request", "arguments": {} },
        { "do": "read", "uri": "everything+demo://resource/static/document/features.md" },
        { "do": "together", "calls": [
            { "tool": "everything__echo", "arguments": { "message": "two" } },
            { "tool": "work__read_file", "arguments": { "path": "docs/a.md" } },
        ] },
        { "do": "call", "tool": "everything__trigger-long-running-operation", "arguments": { "duration": 20, "steps": 2 }, "cancel_after_ms": 500 },
    ]);
    for client in CLIENTS {
        let said = client.drives(Way::Url(all(&gateway)), "legacy", steps.clone()).await;
        let (steps, seen) = (said.steps(), said.seen());
        let listed = steps[0]["result"].to_string();
        for name in ["everything__echo", "work__read_file", "work__write_file"] {
            assert!(listed.contains(name), "{client:?}: {listed}");
        }
        assert!(!listed.contains("get-env") && !listed.contains("gone__"), "{listed}");
        let told = |at: usize| steps[at]["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        assert_eq!(told(1), "Echo: one", "{}", steps[1]);
        assert!(told(2).contains("plans"), "{}", steps[2]);
        assert!(told(3).contains("no-env"), "{}", steps[3]);
        assert!(steps[4]["error"]["message"].as_str().is_some_and(|what| what.contains("`gone`")), "{}", steps[4]);
        assert!(told(5).contains("completed"), "{}", steps[5]);
        assert!(told(6).contains("sampled by the peer"), "{}", steps[6]);
        assert!(steps[7].to_string().contains("Name: Peer"), "{}", steps[7]);
        assert!(steps[8].to_string().contains("Everything Server"), "{}", steps[8]);
        assert_eq!(steps[9]["result"][0]["content"][0]["text"], "Echo: two", "{}", steps[9]);
        assert_eq!(steps[10]["result"]["cancelled"], true, "{}", steps[10]);
        assert_eq!((&seen["sampling"], &seen["elicitation"]), (&json!(1), &json!(1)), "{seen}");
        assert!(seen["progress"].as_array().is_some_and(|steps| steps.len() >= 3), "{seen}");
    }
    let calls = gateway.get("calls?limit=200").await;
    let echo = calls["items"].as_array().expect("calls").iter().find(|call| call["tool"] == "echo").expect("an echo");
    assert_eq!(echo["upstream"], "everything", "judged and shown under its real name");
    // Each try is a start that ends at once.
    eventually("the one that is down", || async {
        gateway.metrics().await.contains("portcullis_upstream_up{upstream=\"gone\"} 0").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stateless_way_has_one_address_too() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::modern(&all(&gateway));
    let hello = agent.request(1, "server/discover", json!({})).await["result"].clone();
    assert_eq!(
        (&hello["supportedVersions"], &hello["cacheScope"]),
        (&json!(["2026-07-28"]), &json!("private")),
        "{hello}"
    );
    let listed = agent.request(2, "tools/list", json!({})).await["result"].clone();
    assert_eq!((&listed["resultType"], &listed["cacheScope"]), (&json!("complete"), &json!("private")), "{listed}");
    let tools = names(&listed["tools"], "name");
    assert!(tools.iter().any(|name| name == "work__write_file"), "{tools:?}");
    let again = agent.request(3, "tools/list", json!({})).await["result"].clone();
    assert_eq!(listed, again, "the order is fixed");
    let read = agent.call(4, "work__read_file", json!({ "path": "docs/a.md" })).await;
    assert!(text(&read).contains("plans"), "{read}");
    for (id, (name, what)) in
        (5..).zip([("read_file", "UPSTREAM__NAME"), ("nowhere__x", "nowhere"), ("work__nothing", "unknown tool")])
    {
        let answer = agent.call(id, name, json!({})).await;
        assert!(answer["error"]["message"].as_str().is_some_and(|told| told.contains(what)), "{answer}");
    }
    let unknown = agent.request(9, "vendor/x", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    let subscribe = agent.message(10, "subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let mut listening = agent.post(&subscribe).await;
    let (acknowledged, _) = listening.event().await.expect("an acknowledgement");
    assert_eq!(acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 10, "{acknowledged}");
    home.write_policy(&format!("{POLICY}      - {{ name: no-writes, verdict: deny, tool: write_file }}\n"));
    assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    let (changed, _) = listening.event().await.expect("a notification");
    assert_eq!(changed["method"], "notifications/tools/list_changed", "{changed}");
}

/// Held, decided and picked up as at an address of one: also after a restart.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_held_and_picked_up_after_a_restart() {
    let home = home();
    let gateway = home.serve();
    let agent = Agent::legacy(&all(&gateway)).await;
    let stranger = Agent::legacy(&all(&gateway)).await;
    let write = json!({ "path": "new.md", "content": "once" });
    let waiting = agent.begin(1, "work__write_file", write.clone()).await;
    let held = gateway.held(1).await;
    assert_eq!((&held[0]["call"]["upstream"], &held[0]["call"]["tool"]), (&json!("work"), &json!("write_file")));
    drop(waiting);
    gateway.crash();

    let gateway = home.serve();
    let agent = agent.back_at(&all(&gateway));
    let waiting = agent.begin(2, "work__write_file", write.clone()).await;
    let held = gateway.held(1).await;
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    let ran = reply(waiting, 2).await;
    assert_ne!(ran["result"]["isError"], true, "{ran}");
    assert_eq!(std::fs::read_to_string(home.root().join("new.md")).expect("written"), "once");

    // A session is its client's, here as there.
    let stranger = stranger.back_at(&all(&gateway));
    let headers =
        [("mcp-session-id", agent.session.as_deref().expect("a session")), ("mcp-protocol-version", "2025-11-25")];
    let ended = agent.http.send(Method::DELETE, &agent.url, &headers, "").await;
    assert_eq!(ended.status, 204);
    assert_eq!(agent.post(&agent.message(3, "tools/list", json!({}))).await.status, 404);
    let refused = stranger.begin(4, "work__write_file", json!({ "path": "other.md", "content": "x" })).await;
    assert_eq!(gateway.reject(&gateway.held(1).await[0], "no").await.0, 200);
    assert_eq!(about(&reply(refused, 4).await)["reason"], "approver");
    // What only one upstream can tell is told by it alone.
    eventually("the lists of those that are there", || async {
        let prompts = stranger.request(5, "prompts/list", json!({})).await;
        let prompts = names(&prompts["result"]["prompts"], "name");
        (prompts.iter().all(|name| name.starts_with("everything__")) && !prompts.is_empty()).then_some(())
    })
    .await;
    let uris = names(&stranger.request(6, "resources/list", json!({})).await["result"]["resources"], "uri");
    assert!(!uris.is_empty() && uris.iter().all(|uri| uri.starts_with("everything+demo://")), "{uris:?}");
}

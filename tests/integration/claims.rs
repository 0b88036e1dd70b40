//! Signed claims of a request: believed where they are sound, refused aloud where they are not, seen by no executor.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use ring::hmac;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::agent::{Agent, MODERN, about, reply, text};
use crate::harness::eventually;
use crate::harness::gateway::{Gateway, Home};
use crate::harness::http::Http;
use crate::harness::peers;

const TOKEN: &str = "pct_runner";
const SECRET: &str = "what only the runner knows, and the gateway";
const CLAIM: &str = "dev.portcullis/claim";

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: deny
    rules:
      - { name: people-look, verdict: allow, tool: look, source: interactive }
      - { name: people-buy, verdict: ask, tool: buy, source: interactive, reason: Buying is looked at. }
      - { name: no-sub-agents, verdict: deny, tool: '@any', depth: sub, reason: Sub-agents do nothing here. }
";

fn claim(changes: Value) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    let mut payload = json!({ "sub": "runner", "aud": "portcullis", "exp": now + 60, "source": "interactive" });
    for (name, value) in changes.as_object().expect("changes") {
        payload[name] = value.clone();
    }
    let part = |json: Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let signed = format!("{}.{}", part(json!({ "alg": "HS256", "typ": "JWT" })), part(payload));
    let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), signed.as_bytes());
    json!(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac)))
}

/// A call of the agent `runner` with these members in its `_meta`.
async fn begin(gateway: &Gateway, id: u64, tool: &str, meta: Value) -> crate::harness::http::Answer {
    let url = gateway.url("shop");
    let mut message = Agent::modern(&url).message(id, "tools/call", json!({ "name": tool, "arguments": {} }));
    for (name, value) in meta.as_object().expect("members") {
        message["params"]["_meta"][name] = value.clone();
    }
    let bearer = format!("Bearer {TOKEN}");
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("authorization", &bearer),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", tool),
    ];
    Http::new().send(Method::POST, &url, &headers, message.to_string()).await
}

async fn call(gateway: &Gateway, id: u64, tool: &str, meta: Value) -> Value {
    reply(begin(gateway, id, tool, meta).await, id).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_claim_stands_in_for_the_agents_settings() {
    let home = Home::new(POLICY, json!({}));
    let file = home.base().join("tools.json");
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object", "properties": {} } });
    std::fs::write(&file, json!([tool("look"), tool("buy")]).to_string()).expect("the tools");
    let server = peers::fixture("changing.py", &[&file.to_string_lossy()]);
    let shop = json!({ "command": server, "root": home.root(), "new_tools": "accept" });
    let runner = json!({
        "name": "runner", "group": "default", "source": "background", "claims": { "secret": SECRET },
        "tokens": [{ "sha256": hex::encode(Sha256::digest(TOKEN)) }],
    });
    let home = home.with("upstreams", json!({ "shop": shop })).with("agents", json!([runner]));
    let gateway = home.serve();

    let refused = call(&gateway, 1, "look", json!({})).await;
    assert_eq!(about(&refused)["rule"], "otherwise:default", "as the agent is set: {refused}");
    let ran = call(&gateway, 2, "look", json!({ CLAIM: claim(json!({})), "mine": 1 })).await;
    assert_eq!(text(&ran), "ran look", "{ran}");
    let seen = ran["result"]["content"][1]["text"].as_str().expect("what the server saw");
    assert!(seen.contains("\"mine\": 1") && !seen.contains("claim"), "{seen}");
    let id = about(&refused)["call"].as_str().expect("an id");
    assert_eq!(gateway.get(&format!("calls/{id}")).await["source"], "background");

    // The client's own word still tightens, and so does a claim.
    let meta = json!({ CLAIM: claim(json!({})), "dev.portcullis/depth": "sub" });
    assert_eq!(about(&call(&gateway, 3, "look", meta).await)["rule"], "no-sub-agents");
    let meta = json!({ CLAIM: claim(json!({ "depth": "sub" })) });
    assert_eq!(about(&call(&gateway, 4, "look", meta).await)["rule"], "no-sub-agents");

    for (id, claim, why) in [
        (5, claim(json!({ "exp": 1 })), "it has expired"),
        (6, claim(json!({ "sub": "other" })), "`sub` is not the name of the agent"),
        (7, json!("a.b.c"), "not base64url"),
        (8, json!(format!("{}x", claim(json!({})).as_str().expect("a text"))), "its signature is not"),
    ] {
        let refused = call(&gateway, id, "look", json!({ CLAIM: claim })).await;
        assert_eq!(
            (&about(&refused)["rule"], &about(&refused)["reason"]),
            (&json!("claim"), &json!("policy")),
            "{refused}"
        );
        assert!(text(&refused).contains(why), "{refused}");
    }

    // Held, it is what it was when it came: the claim may have expired by the time of the decision.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs();
    let answer = begin(&gateway, 9, "buy", json!({ CLAIM: claim(json!({ "exp": now + 2 })) })).await;
    let held = gateway.held(1).await.remove(0);
    assert_eq!((&held["call"]["source"], &held["call"]["depth"]), (&json!("interactive"), &json!("root")), "{held}");
    eventually("the end of the claim", || async {
        let gone = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs() > now + 2;
        gone.then_some(())
    })
    .await;
    assert_eq!(gateway.approve(&held).await.0, 200);
    assert_eq!(text(&reply(answer, 9).await), "ran buy");
    assert!(!gateway.log().contains(SECRET));
}

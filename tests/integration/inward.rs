//! What an upstream asks of its client is judged too: real clients and `server-everything`, which samples and elicits.

use serde_json::{Value, json};

use crate::harness::eventually;
use crate::harness::gateway::{Gateway, Home};
use crate::harness::peers::{self, CLIENTS, Client, Said, Way};

const POLICY: &str = "
version: 1
groups:
  default:
    otherwise: deny
    rules:
      - { name: tools, verdict: allow, tool: '*' }
RULES";

fn home(rules: &str) -> Home {
    let everything = json!({ "command": peers::everything(), "new_tools": "accept", "filesystem": "none" });
    let ask = "      - { name: samples, verdict: ask, method: sampling/createMessage, reason: A model is asked. }\n";
    let policy = POLICY.replace("RULES", if rules.is_empty() { ask } else { rules });
    Home::new(&policy, json!({ "everything": everything })).with("approvals", json!({ "expires": "60s" }))
}

fn sample() -> Value {
    json!({ "do": "call", "tool": "trigger-sampling-request", "arguments": { "prompt": "hi", "maxTokens": 10 } })
}

fn elicit() -> Value {
    json!({ "do": "call", "tool": "trigger-elicitation-request", "arguments": {} })
}

fn roots() -> Value {
    json!({ "do": "call", "tool": "get-roots-list", "arguments": {} })
}

async fn drive(gateway: &Gateway, client: Client, steps: Value) -> Said {
    client.drives(Way::Url(gateway.url("everything")), "legacy", steps).await
}

async fn calls(gateway: &Gateway, method: &str) -> Vec<Value> {
    let calls = gateway.get("calls?limit=200").await;
    let calls = calls["items"].as_array().expect("calls").iter();
    calls.filter(|call| call["method"] == method).cloned().collect()
}

/// A human decides whether the client's model is asked; the others pass, whatever `otherwise` says.
#[tokio::test(flavor = "multi_thread")]
async fn sampling_waits_for_a_human_and_the_rest_passes() {
    let home = home("");
    let gateway = home.serve();
    for (client, approve) in CLIENTS.into_iter().flat_map(|client| [(client, true), (client, false)]) {
        let decide = async {
            let held = gateway.held(1).await;
            let call = &held[0]["call"];
            assert_eq!((&call["method"], &call["from_upstream"]), (&json!("sampling/createMessage"), &json!(true)));
            assert_eq!((&call["upstream"], &call["tool"]), (&json!("everything"), &json!(null)), "{call}");
            assert_eq!((&held[0]["client"]["will_run"], &held[0]["grant_options"]), (&json!("now"), &json!([])));
            let changed = json!({ "digest": call["digest"], "arguments": { "messages": [] } });
            let path = format!("approvals/{}/approve", held[0]["id"].as_str().expect("an id"));
            let (status, problem) = gateway.api(http::Method::POST, &path, changed).await;
            assert_eq!(status, 409, "what an upstream asks is not changed: {problem}");
            match approve {
                true => assert_eq!(gateway.approve(&held[0]).await.0, 200),
                false => assert_eq!(gateway.reject(&held[0], "no model for this").await.0, 200),
            }
        };
        let (said, ()) = tokio::join!(drive(&gateway, client, json!([sample(), elicit(), roots()])), decide);
        let (steps, seen) = (said.steps(), said.seen());
        let told = steps[0].to_string();
        if approve {
            assert!(told.contains("sampled by the peer"), "{told}");
        } else {
            assert!(told.contains("a human rejected it: no model for this"), "{told}");
        }
        assert_eq!(seen["sampling"], json!(u8::from(approve)), "{seen}");
        assert!(steps[1].to_string().contains("Name: Peer") && steps[2].to_string().contains("file:///tmp"), "{told}");
    }
    let count = |calls: Vec<Value>, outcome: &str| calls.iter().filter(|call| call["outcome"] == outcome).count();
    let clients = CLIENTS.len();
    assert_eq!(count(calls(&gateway, "sampling/createMessage").await, "completed"), clients);
    assert_eq!(count(calls(&gateway, "sampling/createMessage").await, "rejected"), clients);
    assert_eq!(count(calls(&gateway, "elicitation/create").await, "completed"), 2 * clients);
}

/// An upstream that asks much does not fill the room of its agent's own calls.
#[tokio::test(flavor = "multi_thread")]
async fn few_requests_of_one_upstream_wait_at_once() {
    let home = home("");
    let gateway = home.serve();
    let sample = json!({ "tool": "trigger-sampling-request", "arguments": { "prompt": "hi", "maxTokens": 10 } });
    let steps = json!([{ "do": "together", "calls": vec![sample; 7] }]);
    let decide = async {
        let all = || async { calls(&gateway, "sampling/createMessage").await };
        eventually("all of them", || async { Some(all().await).filter(|calls| calls.len() == 7) }).await;
        let held = gateway.held(4).await;
        assert_eq!(held.len(), 4);
        for approval in held {
            assert_eq!(gateway.approve(&approval).await.0, 200);
        }
        all().await
    };
    let (said, calls) = tokio::join!(drive(&gateway, Client::TypeScript1, steps), decide);
    assert_eq!(calls.iter().filter(|call| call["reason"] == "rate_limit").count(), 3, "{calls:?}");
    assert_eq!(said.seen()["sampling"], 4);
}

/// A rule refuses it: the client never hears of it, the server is told why.
#[tokio::test(flavor = "multi_thread")]
async fn a_rule_refuses_what_an_upstream_asks() {
    let home = home(
        "      - { name: no-models, verdict: deny, method: [sampling/createMessage, elicitation/create], reason: Not here. }\n",
    );
    let gateway = home.serve();
    let said = drive(&gateway, Client::TypeScript1, json!([sample(), elicit()])).await;
    let (steps, seen) = (said.steps(), said.seen());
    assert!(steps[0].to_string().contains("no-models") && steps[1].to_string().contains("no-models"), "{steps:?}");
    assert_ne!((&seen["sampling"], &seen["elicitation"]), (&json!(1), &json!(1)), "{seen}");
    assert_eq!((seen["sampling"].as_u64().unwrap_or(0), seen["elicitation"].as_u64().unwrap_or(0)), (0, 0), "{seen}");
    for method in ["sampling/createMessage", "elicitation/create"] {
        assert_eq!(calls(&gateway, method).await[0]["reason"], "policy");
    }
}

/// The one who asked is gone: nobody's model is asked afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_held_ends_with_its_link() {
    let home = home("");
    let gateway = home.serve();
    let mut call = sample();
    call["cancel_after_ms"] = json!(4_000);
    // The client ends the server that it started, and so the server's own upstream.
    let way = Way::Command(home.wrap("everything", peers::everything()));
    let drive = Client::TypeScript1.drives(way, "legacy", json!([call]));
    let (_, held) = tokio::join!(drive, gateway.held(1));
    let ended = eventually("the end of it", || async {
        let calls = calls(&gateway, "sampling/createMessage").await;
        calls.into_iter().find(|call| !call["outcome"].is_null())
    })
    .await;
    assert_eq!(ended["outcome"], "cancelled", "{ended}");
    assert_eq!(gateway.approve(&held[0]).await.0, 410);
}

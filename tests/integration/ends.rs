//! Every call has its end, and every question its answer, whatever breaks beside them.

use std::process::Command;

use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, text};
use crate::harness::gateway::{Gateway, Home, PORTCULLIS};
use crate::harness::peers;

const POLICY: &str = "
version: 1
groups: { default: { otherwise: ask, rules: [{ name: free, verdict: allow, tool: [fine, die] }] } }
";

/// `portcullis serve 2>&1 | head`: what it wants to say cannot be said any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_nobody_reads_costs_no_call_its_end() {
    let home = Home::new(POLICY, json!({}));
    let faulty = json!({ "command": peers::fixture("faulty.py", &[]), "new_tools": "accept" });
    let home = home.with("upstreams", json!({ "faulty": faulty }));
    let mut command = Command::new(PORTCULLIS);
    command.arg("serve").arg("--config").arg(home.write_config()).current_dir(home.base());
    let gateway = Gateway::unheard(command);
    let agent = Agent::legacy(&gateway.url("faulty")).await;

    let died = agent.call(1, "die", json!({})).await;
    assert!(text(&died).starts_with("Failed: "), "{died}");
    let calls = gateway.get("calls").await;
    assert_eq!(calls["items"][0]["outcome"], "failed", "{calls}");

    let held = tokio::spawn({
        let agent = agent.clone();
        async move { agent.call(2, "error", json!({})).await }
    });
    let approval = gateway.held(1).await.remove(0);
    assert_eq!(gateway.approve(&approval).await.0, 200, "an approval that is logged");
    let reply = held.await.expect("a reply");
    assert_eq!(reply["error"]["message"], "its own error", "{reply}");

    let (status, _) = gateway.api(Method::GET, "calls?token=none", Value::Null).await;
    assert_eq!(status, 400, "a warning of the API");
    assert_eq!(text(&agent.call(3, "fine", json!({})).await), "fine");
}

//! "Approve and remember": what a grant lets pass, and all that it does not.

use http::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::agent::{Agent, about, reply};
use crate::harness::eventually;
use crate::harness::gateway::{Gateway, Home, TOKEN};
use crate::harness::peers;

const POLICY: &str = "
version: 1
approvals:
  two: { quorum: 2 }
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
      - { name: writes, verdict: ask, tool: [write_file, edit_file] }
      - { name: legal, verdict: ask, tool: write_file, path: docs/legal/ }
      - { name: closed, verdict: deny, tool: write_file, path: docs/closed/ }
      - { name: pairs, verdict: ask, tool: write_file, path: pairs/, approval: two }
      - { name: commands, verdict: ask, tool: execute_cmd }
      - { name: free, verdict: ask, tool: list_files, approval: { grants: tool } }
      - { name: never, verdict: ask, tool: search_file, approval: { grants: none } }
";

fn home() -> Home {
    let token = |name: &str| if name == "ana" { TOKEN.to_owned() } else { format!("token-of-{name}") };
    let hash = |token: &str| json!([{ "sha256": hex::encode(Sha256::digest(token)) }]);
    let person = |name: &str, roles: Value| json!({ "name": name, "roles": roles, "groups": ["default"], "tokens": hash(&token(name)) });
    let people = json!([
        person("ana", json!(["approver", "operator"])),
        person("eve", json!(["approver"])),
        person("flo", json!(["approver"])),
        person("vic", json!(["viewer"]))
    ]);
    let tokens = json!([hash("one")[0], hash("two")[0]]);
    let agents = json!([{ "name": "claude", "group": "default", "tokens": tokens },
        { "name": "other", "group": "default", "tokens": hash("third") }]);
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    for folder in ["docs/legal", "docs/closed", "docs/deep", "pairs", "secrets"] {
        std::fs::create_dir_all(home.root().join(folder)).expect("a folder");
    }
    std::os::unix::fs::symlink(home.root().join("secrets"), home.root().join("docs/out")).expect("a link");
    std::os::unix::fs::symlink(home.root().join("pairs"), home.root().join("docs/aside")).expect("a link");
    home.with("approvers", people)
        .with("agents", agents)
        .with("approvals", json!({ "hold_for": "60s", "expires": "60s", "hold_grace": "30s" }))
}

fn write(path: &str) -> Value {
    json!({ "path": path, "content": "written" })
}

fn run(command: &str) -> Value {
    json!({ "command": command })
}

async fn claude(gateway: &Gateway, token: &str) -> Agent {
    Agent::modern(&gateway.url("work")).with_token(token).initialized().await
}

async fn remember(gateway: &Gateway, who: &str, approval: &Value, remember: Value) -> (u16, Value) {
    let id = approval["id"].as_str().expect("an id");
    let token = if who == "ana" { TOKEN.to_owned() } else { format!("token-of-{who}") };
    let body = json!({ "digest": approval["call"]["digest"], "remember": remember });
    gateway.api_as(&token, Method::POST, &format!("approvals/{id}/approve"), body).await
}

/// Makes the call, approves it so, and takes its result.
async fn grant(gateway: &Gateway, agent: &Agent, tool: &str, arguments: Value, asked: Value) -> Value {
    let answer = agent.begin(900, tool, arguments).await;
    let held = gateway.held(1).await;
    let (status, approval) = remember(gateway, "ana", &held[0], asked).await;
    assert_eq!(status, 200, "{approval}");
    reply(answer, 900).await;
    let grants = gateway.get("grants").await;
    grants["items"][0].clone()
}

/// Whether the call ran without a question; one that is held is withdrawn.
async fn passes(gateway: &Gateway, agent: &Agent, tool: &str, arguments: Value) -> bool {
    let answer = agent.begin(901, tool, arguments.clone()).await;
    tokio::select! {
        end = reply(answer, 901) => {
            if about(&end)["reason"] == "policy" || about(&end)["reason"] == "guardrail" {
                return false;
            }
            assert!(about(&end)["state"].is_null(), "{end}");
            true
        }
        held = gateway.held(1) => {
            assert_eq!(gateway.reject(&held[0], "no").await.0, 200);
            false
        }
    }
}

#[tokio::test]
async fn a_folder_is_remembered_and_nothing_beside_it() {
    let home = home();
    let gateway = home.serve();
    let agent = claude(&gateway, "one").await;
    let answer = agent.begin(1, "write_file", write("docs/deep/a.md")).await;
    let held = gateway.held(1).await;
    let offered = held[0]["grant_options"].as_array().expect("options");
    let told: Vec<_> =
        offered.iter().map(|option| (option["scope"].as_str().unwrap_or_default(), &option["path"])).collect();
    assert_eq!(told, [("exact", &Value::Null), ("path", &json!("docs/deep/")), ("path", &json!("docs/"))]);
    for bad in [
        json!({ "scope": "tool" }),
        json!({ "scope": "path", "path": "./" }),
        json!({ "scope": "path", "path": "docs/", "ttl_ms": 3_600_000 }),
        json!({ "scope": "path", "path": "docs/", "uses": 0 }),
        json!({ "scope": "path", "path": "docs/", "more": 1 }),
    ] {
        assert_eq!(remember(&gateway, "ana", &held[0], bad.clone()).await.0, 400, "{bad}");
    }
    let asked = json!({ "scope": "path", "path": "docs/", "uses": 9 });
    assert_eq!(remember(&gateway, "ana", &held[0], asked).await.0, 200);
    reply(answer, 1).await;
    let grant = gateway.get("grants").await["items"][0].clone();
    assert_eq!(
        (&grant["rule"], &grant["by"], &grant["uses_left"]),
        (&json!("writes"), &json!(["ana"]), &json!(9)),
        "{grant}"
    );
    assert_eq!((&grant["bound"], &grant["session"]), (&json!("session"), &held[0]["call"]["session"]));

    assert!(passes(&gateway, &agent, "write_file", write("docs/b.md")).await);
    assert!(passes(&gateway, &agent, "write_file", write("docs/deep/../c.md")).await);
    for (path, why) in [
        ("a.md", "another folder"),
        ("docs/../a.md", "another folder, said otherwise"),
        ("docs/out/a.md", "a link to what is guarded"),
        ("docs/aside/a.md", "a link out of it, where another rule asks"),
        ("docs/legal/a.md", "another rule asks there"),
        ("docs/closed/a.md", "denied"),
        ("docs/.git/hooks/pre-commit", "a guardrail asks"),
    ] {
        assert!(!passes(&gateway, &agent, "write_file", write(path)).await, "{path}: {why}");
    }
    let edit = json!({ "path": "docs/b.md", "old_text": "written", "new_text": "x" });
    assert!(!passes(&gateway, &agent, "edit_file", edit).await, "another tool");
    let calls = gateway.get("calls?state=completed").await;
    let by: Vec<_> = calls["items"].as_array().expect("calls").iter().map(|call| &call["grant"]).collect();
    assert_eq!(by.iter().filter(|id| **id == &grant["id"]).count(), 2, "{calls}");
    let now = gateway.get("grants").await["items"][0].clone();
    assert_eq!((&now["uses_left"], &now["used"]), (&json!(7), &json!(2)));
}

#[tokio::test]
async fn it_is_for_its_session_its_credential_and_its_agent() {
    let home = home();
    let gateway = home.serve();
    let agent = claude(&gateway, "one").await;
    let asked = json!({ "scope": "path", "path": "docs/deep/" });
    grant(&gateway, &agent, "write_file", write("docs/deep/a.md"), asked).await;
    assert!(passes(&gateway, &agent, "write_file", write("docs/deep/b.md")).await);
    let again = claude(&gateway, "one").await;
    assert!(!passes(&gateway, &again, "write_file", write("docs/deep/b.md")).await, "another session");
    let asked = json!({ "scope": "path", "path": "docs/", "bound": "agent" });
    grant(&gateway, &agent, "write_file", write("docs/c.md"), asked).await;
    assert!(passes(&gateway, &again, "write_file", write("docs/b.md")).await, "the same agent");
    for token in ["two", "third"] {
        let other = claude(&gateway, token).await;
        assert!(!passes(&gateway, &other, "write_file", write("docs/c.md")).await, "{token}");
    }
    let modern = Agent::modern(&gateway.url("work")).with_token("one");
    let answer = modern.begin(1, "write_file", write("a.md")).await;
    let held = gateway.held(1).await;
    assert_eq!(held[0]["grant_options"][0]["bound"], json!(["agent"]), "there is no session to bind it to");
    gateway.reject(&held[0], "no").await;
    reply(answer, 1).await;
}

#[tokio::test]
async fn words_of_a_command_are_remembered_and_no_more_of_it() {
    let home = home();
    let gateway = home.serve();
    let agent = claude(&gateway, "one").await;
    let made = grant(
        &gateway,
        &agent,
        "execute_cmd",
        run("git branch -v topic"),
        json!({ "scope": "command", "command": "git branch" }),
    )
    .await;
    assert_eq!(made["command"], "git branch", "{made}");
    assert!(passes(&gateway, &agent, "execute_cmd", run("git branch other")).await);
    for command in [
        "git branch -D topic",
        "git status",
        "git push",
        "git branch a && rm -rf docs",
        "git branch a > docs/a.md",
        "git branch $(rm a)",
        "git branch $X",
        "GIT_DIR=/tmp git branch",
        "git -c core.pager=x branch",
        "sudo git branch a",
        "env git branch a",
        "sh -c 'git branch a'",
    ] {
        assert!(!passes(&gateway, &agent, "execute_cmd", run(command)).await, "{command}");
    }
    for command in
        ["python3 x.py", "npm run build", "make all", "./tool a", "bash -c ls", "cargo build", "git branch a; ls"]
    {
        let answer = agent.begin(5, "execute_cmd", run(command)).await;
        let held = gateway.held(1).await;
        let scopes: Vec<_> =
            held[0]["grant_options"].as_array().expect("options").iter().map(|o| o["scope"].clone()).collect();
        assert!(scopes.iter().all(|scope| scope == "exact"), "{command}: {scopes:?}");
        gateway.reject(&held[0], "no").await;
        reply(answer, 5).await;
    }
}

#[tokio::test]
async fn the_very_call_is_remembered_and_the_whole_tool_only_where_the_ask_says_so() {
    let home = home();
    let gateway = home.serve();
    let agent = claude(&gateway, "one").await;
    grant(&gateway, &agent, "write_file", write("docs/a.md"), json!({ "scope": "exact", "uses": 2 })).await;
    assert!(passes(&gateway, &agent, "write_file", write("docs/a.md")).await);
    assert!(!passes(&gateway, &agent, "write_file", json!({ "path": "docs/a.md", "content": "other" })).await);
    assert!(passes(&gateway, &agent, "write_file", write("docs/a.md")).await);
    assert!(!passes(&gateway, &agent, "write_file", write("docs/a.md")).await, "used up");
    assert_eq!(gateway.get("grants").await["items"][0]["state"], "used_up");

    grant(&gateway, &agent, "list_files", json!({ "path": "docs" }), json!({ "scope": "tool" })).await;
    assert!(passes(&gateway, &agent, "list_files", json!({ "path": "pairs" })).await);

    let answer = agent.begin(7, "search_file", json!({ "path": "docs", "pattern": "*.md" })).await;
    let held = gateway.held(1).await;
    assert_eq!(held[0]["grant_options"], json!([]), "its ask says none");
    assert_eq!(remember(&gateway, "ana", &held[0], json!({ "scope": "exact" })).await.0, 400);
    gateway.reject(&held[0], "no").await;
    reply(answer, 7).await;

    let answer = agent.begin(8, "write_file", write("docs/.git/config")).await;
    let held = gateway.held(1).await;
    assert_eq!(held[0]["grant_options"], json!([]), "a guardrail asks");
    gateway.reject(&held[0], "no").await;
    reply(answer, 8).await;
}

#[tokio::test]
async fn it_needs_the_same_people_and_ends_with_them_and_with_its_rule() {
    let home = home();
    let gateway = home.serve();
    let agent = claude(&gateway, "one").await;
    let asked = json!({ "scope": "exact" });
    for (ana, eve, made) in [(asked.clone(), Value::Null, false), (Value::Null, asked.clone(), false)] {
        let answer = agent.begin(1, "write_file", write("pairs/a.md")).await;
        let held = gateway.held(1).await;
        assert_eq!(remember(&gateway, "ana", &held[0], ana).await.0, 200);
        assert_eq!(remember(&gateway, "eve", &held[0], eve).await.0, 200);
        reply(answer, 1).await;
        assert_eq!(!gateway.get("grants").await["items"].as_array().expect("grants").is_empty(), made);
    }
    // `writes` asks there, too: only this very call can be remembered, by both.
    let answer = agent.begin(2, "write_file", write("pairs/b.md")).await;
    let held = gateway.held(1).await;
    assert_eq!(held[0]["grant_options"].as_array().map(Vec::len), Some(1), "{}", held[0]["grant_options"]);
    for who in ["ana", "eve"] {
        assert_eq!(remember(&gateway, who, &held[0], json!({ "scope": "exact" })).await.0, 200);
    }
    reply(answer, 2).await;
    let grant = gateway.get("grants").await["items"][0].clone();
    assert_eq!(grant["by"], json!(["ana", "eve"]));
    assert!(passes(&gateway, &agent, "write_file", write("pairs/b.md")).await);
    // Another quorum is another rule.
    home.write_policy(&POLICY.replace("path: pairs/, approval: two", "path: pairs/, approval: two, reason: Two."));
    assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    assert!(passes(&gateway, &agent, "write_file", write("pairs/b.md")).await, "it says what it said");
    home.write_policy(&POLICY.replace("path: pairs/", "path: [pairs/, more/]"));
    assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    assert!(!passes(&gateway, &agent, "write_file", write("pairs/b.md")).await);
    let ended = gateway.get("grants").await["items"][0].clone();
    assert_eq!((&ended["state"], &ended["ended_by"]), (&json!("ended"), &json!("the rule that it lifts was changed")));
}

#[tokio::test]
async fn it_ends_when_it_is_revoked_in_any_process_and_when_its_approver_may_not_decide() {
    let home = home();
    let (gateway, other) = (home.serve(), home.serve());
    let agent = claude(&gateway, "one").await;
    let asked = json!({ "scope": "path", "path": "docs/" });
    let made = grant(&gateway, &agent, "write_file", write("docs/a.md"), asked.clone()).await;
    let url = format!("grants/{}", made["id"].as_str().expect("an id"));
    assert_eq!(other.api_as("token-of-eve", Method::DELETE, &url, Value::Null).await.0, 403);
    let (status, revoked) = other.api(Method::DELETE, &url, Value::Null).await;
    assert_eq!((status, &revoked["state"], &revoked["ended_by"]), (200, &json!("revoked"), &json!("ana")));
    assert!(!passes(&gateway, &agent, "write_file", write("docs/b.md")).await, "the store says so at once");

    let answer = agent.begin(900, "write_file", write("docs/c.md")).await;
    let held = gateway.held(1).await;
    assert_eq!(remember(&gateway, "eve", &held[0], asked).await.0, 200);
    reply(answer, 900).await;
    assert!(passes(&gateway, &agent, "write_file", write("docs/d.md")).await);
    let mut people = home.section("approvers").clone();
    people.as_array_mut().expect("people").remove(1); // eve
    let home = home.with("approvers", people);
    home.write_config();
    assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
    assert!(!passes(&gateway, &agent, "write_file", write("docs/e.md")).await);
    let log = std::fs::read_dir(home.state().join("audit")).expect("the log").flatten();
    let log: String = log.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect();
    for event in ["grant.created", "grant.revoked", "grant.ended"] {
        assert!(log.contains(&format!(r#""event":"{event}""#)), "{event}");
    }
}

/// Many calls at once, in two processes, on a grant with few uses: exactly so many pass.
#[tokio::test]
async fn whoever_races_no_use_is_taken_twice() {
    let home = home();
    let (gateway, other) = (home.serve(), home.serve());
    let agent = claude(&gateway, "one").await;
    let asked = json!({ "scope": "path", "path": "docs/", "uses": 11, "bound": "agent" });
    grant(&gateway, &agent, "write_file", write("docs/first.md"), asked).await;
    let there = claude(&other, "one").await;
    eventually("the other process to know", || async {
        let known = other.get("grants").await;
        (!known["items"].as_array().expect("grants").is_empty()).then_some(())
    })
    .await;
    eventually("a call to pass there", || async {
        passes(&other, &there, "write_file", write("docs/there.md")).await.then_some(())
    })
    .await;
    let mut answers = Vec::new();
    for n in 0..20u64 {
        let by = if n % 2 == 0 { &agent } else { &there };
        answers.push((n, by.begin(n + 1, "write_file", write(&format!("docs/{n}.md"))).await));
    }
    let held = gateway.held(10).await;
    for approval in &held {
        assert_eq!(gateway.reject(approval, "no").await.0, 200);
    }
    let mut ran = 0;
    for (n, answer) in answers {
        ran += usize::from(reply(answer, n + 1).await["result"]["isError"] != true);
    }
    let written = (0..20).filter(|n| home.root().join(format!("docs/{n}.md")).exists()).count();
    assert_eq!((ran, written, held.len()), (10, 10, 10));
}

/// It was made for the tool as it was defined then.
#[tokio::test]
async fn it_ends_with_the_definition_of_its_tool() {
    let rules = "version: 1\ngroups: { default: { otherwise: deny, rules: [{ name: buying, verdict: ask, tool: buy, approval: { grants: tool } }] } }\n";
    let home = Home::new(rules, json!({}));
    let file = home.base().join("tools.json");
    let offer = |description: &str| {
        let schema = json!({ "type": "object", "properties": {} });
        let tools = json!([{ "name": "buy", "description": description, "inputSchema": schema }]);
        let half = file.with_extension("half");
        std::fs::write(&half, tools.to_string()).expect("the tools");
        std::fs::rename(half, &file).expect("moved");
    };
    offer("Buys.");
    let server = peers::fixture("changing.py", &[&file.to_string_lossy()]);
    let home = home.with("upstreams", json!({ "shop": { "command": server, "root": ".", "new_tools": "accept" } }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("shop")).await;
    let made = grant(&gateway, &agent, "buy", json!({}), json!({ "scope": "tool" })).await;
    assert_eq!((&made["scope"], &made["state"]), (&json!("tool"), &json!("active")), "{made}");
    assert!(passes(&gateway, &agent, "buy", json!({})).await);
    offer("Buys, and tells everybody.");
    agent.request(3, "tools/list", json!({})).await;
    assert!(!passes(&gateway, &agent, "buy", json!({})).await, "another definition");
}

//! What approvers do with a held call beside deciding it: change its arguments, put off its end, look at what was
//! redacted, decide several.

use http::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::agent::{Agent, reply, text};
use crate::harness::gateway::{Gateway, Home, TOKEN};

const POLICY: &str = "
version: 1
approvals:
  two: { quorum: 2 }
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_any', path: docs/ }
      - { name: never, verdict: deny, tool: write_file, path: closed/, reason: Closed for good. }
      - { name: pairs, verdict: ask, tool: write_file, path: pairs/, approval: two }
      - { name: notes, verdict: ask, tool: write_file, path: notes/ }
";

fn home(approvals: Value) -> Home {
    let person = |name: &str, roles: &[&str]| {
        let token = if name == "ana" { TOKEN.to_owned() } else { format!("token-of-{name}") };
        json!({ "name": name, "roles": roles, "groups": ["default"],
                "tokens": [{ "sha256": hex::encode(Sha256::digest(token)) }] })
    };
    let people =
        json!([person("ana", &["approver", "operator"]), person("eve", &["approver"]), person("vic", &["viewer"])]);
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    for folder in ["docs", "closed", "pairs", "notes", "elsewhere"] {
        std::fs::create_dir_all(home.root().join(folder)).expect("a folder");
    }
    std::os::unix::fs::symlink(home.root().join("elsewhere"), home.root().join("notes/link")).expect("a link");
    home.with("approvers", people).with("approvals", approvals)
}

fn patient() -> Value {
    json!({ "hold_for": "30s", "expires": "60s", "hold_grace": "30s" })
}

fn write(path: &str, content: &str) -> Value {
    json!({ "path": path, "content": content })
}

async fn edit(gateway: &Gateway, approval: &Value, arguments: Value) -> (u16, Value) {
    let id = approval["id"].as_str().expect("an id");
    let body = json!({ "digest": approval["call"]["digest"], "note": "as agreed", "arguments": arguments });
    gateway.api(Method::POST, &format!("approvals/{id}/approve"), body).await
}

async fn at(gateway: &Gateway, approval: &Value, what: &str, body: Value) -> (u16, Value) {
    let id = approval["id"].as_str().expect("an id");
    gateway.api(Method::POST, &format!("approvals/{id}/{what}"), body).await
}

fn read(home: &Home, name: &str) -> Option<String> {
    std::fs::read_to_string(home.root().join(name)).ok()
}

#[tokio::test]
async fn the_edited_call_runs_once_and_the_model_is_told_how_it_was_changed() {
    let home = home(patient());
    let gateway = home.serve();
    for (round, agent) in
        [Agent::legacy(&gateway.url("work")).await, Agent::modern(&gateway.url("work"))].iter().enumerate()
    {
        let (asked, instead) = (format!("notes/a{round}.md"), format!("notes/b{round}.md"));
        let answer = agent.begin(1, "write_file", write(&asked, "one")).await;
        let held = gateway.held(1).await;
        let (status, approval) = edit(&gateway, &held[0], write(&instead, "two")).await;
        assert_eq!((status, &approval["edited_from"]["by"]), (200, &json!("ana")), "{approval}");
        assert_eq!(approval["edited_from"]["arguments"], write(&asked, "one"));
        assert_eq!(approval["votes"][0]["digest"], approval["call"]["digest"], "the vote is for what it is now");
        assert_ne!(approval["call"]["digest"], held[0]["call"]["digest"]);
        let ran = reply(answer, 1).await;
        assert_ne!(ran["result"]["isError"], true, "{ran}");
        let told = text(&ran);
        let change = format!(r#"/path was "{asked}" and is "{instead}""#);
        assert!(told.contains("An approver changed the arguments") && told.contains(&change), "{told}");
        assert_eq!((read(&home, &asked), read(&home, &instead).as_deref()), (None, Some("two")));
    }
    let log = std::fs::read_dir(home.state().join("audit")).expect("the log").flatten();
    let log: String = log.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect();
    assert_eq!(log.matches(r#""event":"approval.edited""#).count(), 2);
    assert_eq!(log.matches(r#""event":"call.edited""#).count(), 2);
}

#[tokio::test]
async fn the_identical_retry_of_the_agent_picks_the_edited_call_up() {
    let home = home(json!({ "hold_for": "300ms", "expires": "60s", "hold_grace": "30s" }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let handed_off = agent.call(1, "write_file", write("notes/a.md", "one")).await;
    assert_eq!(handed_off["result"]["isError"], true);
    let held = gateway.held(1).await;
    assert_eq!(edit(&gateway, &held[0], write("notes/b.md", "two")).await.0, 200);
    let ran = agent.call(2, "write_file", write("notes/a.md", "one")).await;
    assert!(text(&ran).contains("An approver changed"), "{ran}");
    assert_eq!((read(&home, "notes/a.md"), read(&home, "notes/b.md").as_deref()), (None, Some("two")));
}

#[tokio::test]
async fn a_denied_or_malformed_edit_changes_nothing() {
    let home = home(patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("notes/a.md", "one")).await;
    let held = gateway.held(1).await;
    let (status, problem) = edit(&gateway, &held[0], write("closed/a.md", "two")).await;
    assert_eq!(status, 422, "{problem}");
    assert!(problem["detail"].as_str().unwrap_or_default().contains("never: Closed for good."), "{problem}");
    let guarded = edit(&gateway, &held[0], write("secrets/a.md", "two")).await;
    assert_eq!(guarded.0, 422, "{guarded:?}");
    for bad in [json!("text"), json!([1]), json!({ "path": 7 })] {
        assert_eq!(edit(&gateway, &held[0], bad.clone()).await.0, 400, "{bad}");
    }
    let id = held[0]["id"].as_str().expect("an id");
    let twice = format!(
        r#"{{"digest":{},"arguments":{{"path":"notes/a.md","path":"closed/a.md"}}}}"#,
        held[0]["call"]["digest"]
    );
    let url = format!("approvals/{id}/approve");
    let (status, problem) = gateway.api_text(TOKEN, Method::POST, &url, twice).await;
    assert_eq!(status, 400, "a key that stands twice: {problem}");
    let stale = json!({ "digest": "sha256:other", "arguments": write("notes/b.md", "x") });
    assert_eq!(gateway.api(Method::POST, &url, stale).await.0, 412);
    let viewer = json!({ "digest": held[0]["call"]["digest"], "arguments": write("notes/b.md", "x") });
    assert_eq!(gateway.api_as("token-of-vic", Method::POST, &url, viewer).await.0, 403);
    let same = gateway.held(1).await;
    assert_eq!(same[0]["call"]["digest"], held[0]["call"]["digest"]);
    assert_eq!(same[0]["edited_from"], Value::Null);
    assert_eq!(gateway.approve(&same[0]).await.0, 200);
    assert_ne!(reply(answer, 1).await["result"]["isError"], true);
    assert_eq!(read(&home, "notes/a.md").as_deref(), Some("one"));
}

/// What the approver was not shown is looked at before it runs: another rule that asks, a link, more people.
#[tokio::test]
async fn an_edit_that_brings_something_new_is_looked_at_again() {
    let home = home(patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    for (id, instead) in [(1, "pairs/a.md"), (2, "notes/link/a.md")] {
        let answer = agent.begin(id, "write_file", write("notes/a.md", "one")).await;
        let held = gateway.held(1).await;
        let (status, approval) = edit(&gateway, &held[0], write(instead, "two")).await;
        assert_eq!((status, &approval["state"]), (200, &json!("waiting")), "{approval}");
        assert_eq!(approval["votes"], json!([]));
        assert_eq!(gateway.approve(&held[0]).await.0, 412, "what was shown before is no longer what would run");
        assert!(read(&home, instead).is_none());
        assert_eq!(gateway.approve(&approval).await.0, 200);
        if id == 1 {
            assert_eq!(gateway.held(1).await[0]["requirements"][0]["votes"], 1, "two are needed there");
            let url = format!("approvals/{}/approve", approval["id"].as_str().expect("an id"));
            let body = json!({ "digest": approval["call"]["digest"] });
            assert_eq!(gateway.api_as("token-of-eve", Method::POST, &url, body).await.0, 200);
        }
        assert_ne!(reply(answer, id).await["result"]["isError"], true);
        assert_eq!(read(&home, instead).as_deref(), Some("two"));
    }
}

#[tokio::test]
async fn earlier_votes_are_void_after_an_edit() {
    let home = home(patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("pairs/a.md", "one")).await;
    let held = gateway.held(1).await;
    let url = format!("approvals/{}/approve", held[0]["id"].as_str().expect("an id"));
    let first = json!({ "digest": held[0]["call"]["digest"] });
    assert_eq!(gateway.api_as("token-of-eve", Method::POST, &url, first).await.0, 200);
    let (status, approval) = edit(&gateway, &held[0], write("pairs/a.md", "two")).await;
    assert_eq!((status, &approval["state"]), (200, &json!("waiting")), "{approval}");
    let by: Vec<_> = approval["votes"].as_array().expect("votes").iter().map(|vote| &vote["by"]).collect();
    assert_eq!(by, [&json!("ana")]);
    let second = json!({ "digest": approval["call"]["digest"] });
    assert_eq!(gateway.api_as("token-of-eve", Method::POST, &url, second).await.0, 200);
    assert_ne!(reply(answer, 1).await["result"]["isError"], true);
    assert_eq!(read(&home, "pairs/a.md").as_deref(), Some("two"));
}

#[tokio::test]
async fn a_secret_that_was_not_shown_stays_the_agents_own_and_its_revelation_is_written_down() {
    let home = home(patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let token = format!("ghp_{}", "a1".repeat(18));
    let answer = agent.begin(1, "write_file", write("notes/a.md", &token)).await;
    let held = gateway.held(1).await;
    assert_eq!(
        (&held[0]["call"]["arguments"]["content"], &held[0]["call"]["redacted"]),
        (&json!("[redacted]"), &json!(["/content"]))
    );
    let told = &held[0]["call"]["hidden"][0];
    assert_eq!(
        (&told["pointer"], &told["mark"], &told["length"]),
        (&json!("/content"), &json!(0), &json!(40)),
        "{told}"
    );
    assert_eq!((&told["starts"], &told["ends"]), (&json!("gh"), &json!("a1")), "{told}");
    let body = json!({ "pointer": "/content" });
    assert_eq!(
        at(&gateway, &held[0], "reveal", body.clone()).await,
        (200, json!({ "pointer": "/content", "value": token }))
    );
    let url = format!("approvals/{}/reveal", held[0]["id"].as_str().expect("an id"));
    assert_eq!(gateway.api_as("token-of-vic", Method::POST, &url, body).await.0, 403);
    assert_eq!(at(&gateway, &held[0], "reveal", json!({ "pointer": "/path" })).await.0, 400);
    let elsewhere = json!({ "path": "[redacted]", "content": "x" });
    assert_eq!(edit(&gateway, &held[0], elsewhere).await.0, 400, "it would run as that very text");
    let hash = told["hash"].clone();
    let (status, approval) = edit(&gateway, &held[0], write("notes/b.md", "[redacted]")).await;
    assert_eq!(approval["call"]["hidden"][0]["hash"], hash, "it is told to be the same: {approval}");
    assert_eq!((status, &approval["call"]["redacted"]), (200, &json!(["/content"])), "{approval}");
    assert_ne!(reply(answer, 1).await["result"]["isError"], true);
    assert_eq!(read(&home, "notes/b.md"), Some(token.clone()));
    let log = std::fs::read_dir(home.state().join("audit")).expect("the log").flatten();
    let log: String = log.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect();
    assert_eq!(log.matches(r#""event":"approval.revealed""#).count(), 1);
    assert!(!log.contains(&token), "the log tells who looked, not what");
}

/// The same secret is told to be the same, also after a restart; another of the same looks is not.
#[tokio::test]
async fn two_secrets_are_told_apart_and_nobody_takes_one_for_the_other() {
    let home = home(patient());
    let (one, other) = (format!("ghp_{}", "a1".repeat(18)), format!("ghp_a1b2{}", "a1".repeat(16)));
    std::fs::write(home.root().join("notes/a.md"), format!("key {one}\n")).expect("a file");
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let _first = agent.begin(1, "write_file", write("notes/a.md", &format!("key {other}\n"))).await;
    let held = gateway.held(1).await;
    let (call, file) = (&held[0]["call"], &files(&gateway, &held[0]).await[0]);
    // What a file has and what it would have look alike, and are not the same.
    assert_eq!(
        (&file["state"], &file["lines"]),
        (&json!("changed"), &json!(["- key [redacted]", "+ key [redacted]"])),
        "{file}"
    );
    let hidden = file["hidden"].as_array().expect("what is hidden");
    let brief = |at: usize| (hidden[at]["pointer"].clone(), hidden[at]["starts"].clone(), hidden[at]["ends"].clone());
    assert_eq!(
        (brief(0), brief(1)),
        ((json!("/lines/0"), json!("gh"), json!("a1")), (json!("/lines/1"), json!("gh"), json!("a1")))
    );
    assert_ne!(hidden[0]["hash"], hidden[1]["hash"]);
    assert_eq!(hidden[1]["hash"], call["hidden"][0]["hash"]);
    assert!(!file.to_string().contains(&one) && !file.to_string().contains(&other), "{file}");
    let hash = call["hidden"][0]["hash"].clone();
    gateway.terminate();

    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let _second =
        agent.begin(1, "write_file", write("notes/new.md", &format!("a [redacted] b {other} c [redacted]"))).await;
    let held = gateway.held(2).await;
    let call =
        &held.iter().find(|one| one["call"]["label"].to_string().contains("new.md")).expect("the second")["call"];
    assert_eq!(call["arguments"]["content"], "a [redacted] b [redacted] c [redacted]");
    assert_eq!((&call["hidden"][0]["mark"], &call["hidden"][0]["hash"]), (&json!(1), &hash), "{call}");
    assert_eq!(call["hidden"].as_array().map(Vec::len), Some(1));
}

/// An agent that writes what stands for a secret gains nothing: it is its own text, and stays it.
#[tokio::test]
async fn a_mark_that_an_agent_wrote_itself_is_its_own_text() {
    let home = home(patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("notes/a.md", "x [redacted] y")).await;
    let held = gateway.held(1).await;
    assert_eq!((&held[0]["call"]["redacted"], &held[0]["call"]["hidden"]), (&json!([]), &json!([])));
    let other = write("notes/b.md", "x [redacted] z");
    assert_eq!(edit(&gateway, &held[0], other).await.0, 400, "nobody knows what is meant");
    let named = json!({ "path": "notes/b.md", "content": "x", "[redacted]": "y" });
    assert_eq!(edit(&gateway, &held[0], named).await.0, 400, "no name either");
    let (status, approval) = edit(&gateway, &held[0], write("notes/b.md", "x [redacted] y")).await;
    assert_eq!(status, 200, "{approval}");
    assert_ne!(reply(answer, 1).await["result"]["isError"], true);
    assert_eq!(read(&home, "notes/b.md").as_deref(), Some("x [redacted] y"));
}

#[tokio::test]
async fn paths_hosts_and_command_words_are_seen_whatever_they_look_like() {
    let token = format!("ghp_{}", "a1".repeat(18));
    // The operator's own secret is called as a folder is.
    let home = home(patient());
    let mut upstreams = home.upstreams();
    upstreams["far"] =
        json!({ "url": "http://127.0.0.1:9/mcp", "headers": { "authorization": "Bearer notes/plan.md" } });
    let home = home.with("upstreams", upstreams);
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let named = write(&format!("notes/{token}.md"), &format!("x {token} notes/plan.md"));
    let (_one, _two) =
        (agent.begin(1, "write_file", named).await, agent.begin(2, "write_file", write("notes/plan.md", "y")).await);
    let line = format!("{token} --token={token} https://{token}.example/");
    let _three = agent.begin(3, "execute_cmd", json!({ "command": line })).await;
    let held = gateway.held(3).await;
    let call = |id: &str| {
        let found = held.iter().find(|one| one["call"]["label"].as_str().is_some_and(|label| label.contains(id)));
        found.unwrap_or_else(|| panic!("{id}: {held:#?}"))["call"].clone()
    };
    let one = call("write_file notes/ghp_");
    assert_eq!(one["arguments"]["path"], format!("notes/{token}.md"));
    assert_eq!(one["arguments"]["content"], "x [redacted] [redacted]", "beside the path it is a secret");
    assert!(one["facets"][0]["lexical"].as_str().is_some_and(|at| at.ends_with(&format!("{token}.md"))), "{one}");
    let two = call("write_file notes/plan.md");
    assert_eq!((&two["arguments"]["path"], &two["redacted"]), (&json!("notes/plan.md"), &json!([])));
    let three = call("execute_cmd");
    let facets = three["facets"].as_array().expect("facets");
    let command = facets.iter().find(|facet| facet["kind"] == "command").expect("a command");
    assert_eq!(command["words"][0], token, "{command}");
    let shown = three["arguments"]["command"].as_str().expect("a text");
    assert!(shown.starts_with(&format!("{token} --token=")), "{shown}");
    assert!(shown.ends_with(&format!(" https://{token}.example/")), "{shown}");
    let url = facets.iter().find(|facet| facet["kind"] == "url").expect("a URL");
    assert_eq!(url["url"], format!("https://{token}.example/"));
}

/// `audit.arguments: none` leaves out what an approver writes in their place, and what is known of secrets in them.
#[tokio::test]
async fn a_log_without_arguments_has_none_of_an_edit_either() {
    let home = home(patient()).with("audit", json!({ "arguments": "none" }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let secret = format!("words of an agent ghp_{}", "a1".repeat(18));
    let answer = agent.begin(1, "write_file", write("notes/a.md", &secret)).await;
    let held = gateway.held(1).await;
    let hash = held[0]["call"]["hidden"][0]["hash"].as_str().expect("a hash").to_owned();
    assert_eq!(edit(&gateway, &held[0], write("notes/a.md", "words of an approver")).await.0, 200);
    assert_ne!(reply(answer, 1).await["result"]["isError"], true);
    let log = std::fs::read_dir(home.state().join("audit")).expect("the log").flatten();
    let log: String = log.map(|file| std::fs::read_to_string(file.path()).unwrap_or_default()).collect();
    assert!(log.contains(r#""event":"approval.edited""#), "{log}");
    for never in ["words of an agent", "words of an approver", &hash] {
        assert!(!log.contains(never), "{never}: {log}");
    }
}

#[tokio::test]
async fn the_first_use_of_a_tool_by_an_agent_is_told() {
    let home = home(patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let is_first = |held: &Value| held["flags"].as_array().is_some_and(|flags| flags.contains(&json!("first_use")));
    let answer = agent.begin(1, "write_file", write("notes/a.md", "one")).await;
    let held = gateway.held(1).await;
    assert!(is_first(&held[0]), "{}", held[0]);
    let sentence = json!("first use of this tool by this agent");
    assert!(held[0]["look_at"].as_array().is_some_and(|look| look.contains(&sentence)), "{}", held[0]);
    // A call that did not run is no use.
    let url = format!("approvals/{}/reject", held[0]["id"].as_str().expect("an id"));
    assert_eq!(gateway.api(Method::POST, &url, json!({ "note": "no" })).await.0, 200);
    reply(answer, 1).await;
    let answer = agent.begin(2, "write_file", write("notes/b.md", "one")).await;
    let held = gateway.held(1).await;
    assert!(is_first(&held[0]), "{}", held[0]);
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    assert_ne!(reply(answer, 2).await["result"]["isError"], true);
    let answer = agent.begin(3, "write_file", write("notes/c.md", "one")).await;
    let held = gateway.held(1).await;
    assert!(!is_first(&held[0]), "{}", held[0]);
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    reply(answer, 3).await;
    gateway.terminate();

    // It is kept, and is of that tool alone.
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let _four = agent.begin(4, "write_file", write("notes/d.md", "one")).await;
    assert!(!is_first(&gateway.held(1).await[0]));
    let edit = json!({ "path": "notes/a.md", "old_text": "one", "new_text": "two" });
    let _five = agent.begin(5, "edit_file", edit).await;
    let held = gateway.held(2).await;
    let five = held.iter().find(|one| one["call"]["tool"] == "edit_file").expect("the edit");
    assert!(is_first(five), "{five}");
}

#[tokio::test]
async fn a_claim_is_a_sign_and_the_end_is_put_off_within_bounds() {
    let home = home(patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let answer = agent.begin(1, "write_file", write("notes/a.md", "one")).await;
    let held = gateway.held(1).await;
    let (_, claimed) = at(&gateway, &held[0], "claim", json!({})).await;
    assert_eq!(claimed["claimed"]["by"], "ana", "{claimed}");
    let id = held[0]["id"].as_str().expect("an id");
    let (status, eves) =
        gateway.api_as("token-of-eve", Method::POST, &format!("approvals/{id}/claim"), json!({})).await;
    assert_eq!((status, &eves["claimed"]["by"]), (200, &json!("ana")), "who looked first is named");
    let (_, free) = at(&gateway, &held[0], "claim", json!({ "release": true })).await;
    assert_eq!(free["claimed"], Value::Null);
    let (status, later) = at(&gateway, &held[0], "extend", json!({ "by_ms": 3_600_000 })).await;
    assert_eq!(status, 200, "{later}");
    let put_off = later["extended_ms"].as_u64().expect("a number");
    assert!((1..=60_000).contains(&put_off), "to `expires` from now at most: {put_off}");
    let none = json!({ "by_ms": 0 });
    assert_eq!(at(&gateway, &held[0], "extend", none).await.0, 409);
    assert_eq!(gateway.approve(&held[0]).await.0, 200, "the digest that was shown is still the one");
    assert_ne!(reply(answer, 1).await["result"]["isError"], true);
    assert_eq!(at(&gateway, &held[0], "extend", json!({ "by_ms": 1000 })).await.0, 410);
}

#[tokio::test]
async fn several_are_decided_each_as_if_it_came_alone() {
    let home = home(patient());
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let names = ["notes/0.md", "notes/1.md", "notes/2.md"];
    let mut answers = Vec::new();
    for (id, name) in (1..).zip(names) {
        answers.push(agent.begin(id, "write_file", write(name, "x")).await);
    }
    let mut held = gateway.held(3).await;
    held.sort_by_key(|approval| approval["call"]["arguments"]["path"].to_string());
    let session = held[0]["call"]["session"].as_str().expect("a session");
    for (query, found) in [
        ("q=NOTES/1.md".to_owned(), 1),
        ("q=write_file%20notes".to_owned(), 3),
        ("q=write_file%20other".to_owned(), 0),
        (format!("session={session}&state=waiting"), 3),
        ("session=ses_other".to_owned(), 0),
        ("group=default".to_owned(), 3),
        ("group=other".to_owned(), 0),
    ] {
        let count = |list: Value| list["items"].as_array().expect("items").len();
        assert_eq!(count(gateway.get(&format!("approvals?{query}")).await), found, "approvals?{query}");
        let query = query.replace("state=waiting", "state=awaiting_approval");
        assert_eq!(count(gateway.get(&format!("calls?{query}")).await), found, "calls?{query}");
    }
    let one = |at: usize, decision: &str, digest: &Value| json!({ "id": held[at]["id"], "decision": decision, "digest": digest, "note": "all at once" });
    let body = json!([
        one(0, "approve", &held[0]["call"]["digest"]),
        one(1, "approve", &held[0]["call"]["digest"]),
        one(2, "reject", &Value::Null),
        { "id": "apr_unknown", "decision": "reject" },
    ]);
    let (status, decided) = gateway.api(Method::POST, "approvals/decide", body).await;
    let items = decided["items"].as_array().expect("items");
    let statuses: Vec<_> = items.iter().map(|item| item["status"].as_u64().expect("a status")).collect();
    assert_eq!((status, statuses), (200, vec![200, 412, 200, 404]), "{decided}");
    assert_eq!(gateway.held(1).await[0]["id"], held[1]["id"]);
    assert_eq!(gateway.reject(&held[1], "no").await.0, 200);
    for (id, answer) in (1..).zip(answers) {
        assert_eq!(reply(answer, id).await["result"]["isError"] == true, id != 1);
    }
    assert_eq!(gateway.api(Method::POST, "approvals/decide", json!([])).await.0, 400);
}

async fn files(gateway: &Gateway, approval: &Value) -> Value {
    gateway.get(&format!("approvals/{}/diff", approval["id"].as_str().expect("an id"))).await["files"].clone()
}

#[tokio::test]
async fn an_approver_sees_what_changes_in_a_file_and_approves_that_very_change() {
    let home = home(patient());
    let lines: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    std::fs::write(home.root().join("notes/a.md"), &lines).expect("a file");
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;

    let answer = agent.begin(1, "write_file", write("notes/a.md", &lines.replace("line 9\n", "line nine\n"))).await;
    let held = gateway.held(1).await;
    let shown = files(&gateway, &held[0]).await;
    let around = ["  line 6", "  line 7", "  line 8", "- line 9", "+ line nine", "  line 10", "  line 11", "  line 12"];
    assert_eq!((&shown[0]["state"], &shown[0]["lines"]), (&json!("changed"), &json!(around)), "{shown}");
    assert_eq!(shown[0]["moved_on"], false);
    // Somebody else changes the file: what was shown is not what would happen.
    std::fs::write(home.root().join("notes/a.md"), "another\n").expect("a file");
    assert_eq!(files(&gateway, &held[0]).await[0]["moved_on"], true);
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    let stale = reply(answer, 1).await;
    assert_eq!(stale["result"]["isError"], true, "{stale}");
    assert!(text(&stale).contains("changed while it was held"), "{stale}");
    assert_eq!(read(&home, "notes/a.md").as_deref(), Some("another\n"));

    let edit =
        json!({ "path": "notes/a.md", "old_text": "another", "new_text": "ghp_a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1" });
    let answer = agent.begin(2, "edit_file", edit).await;
    let held = gateway.held(1).await;
    assert_eq!(files(&gateway, &held[0]).await[0]["lines"], json!(["- another", "+ [redacted]"]));
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    assert_ne!(reply(answer, 2).await["result"]["isError"], true);

    let answer = agent.begin(3, "write_file", write("notes/new.md", "one\ntwo\u{202e}\n")).await;
    let held = gateway.held(1).await;
    let shown = files(&gateway, &held[0]).await;
    assert_eq!((&shown[0]["state"], &shown[0]["lines"][0]), (&json!("new"), &json!("+ one")), "{shown}");
    assert!(!shown.to_string().contains('\u{202e}'), "{shown}");
    // It comes to be meanwhile: nobody was shown that it would be written over.
    std::fs::write(home.root().join("notes/new.md"), "mine\n").expect("a file");
    assert_eq!(gateway.approve(&held[0]).await.0, 200);
    assert_eq!(reply(answer, 3).await["result"]["isError"], true);
    assert_eq!(read(&home, "notes/new.md").as_deref(), Some("mine\n"));
}

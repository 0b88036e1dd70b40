//! The command line: exit codes, help, and what people see when something is wrong.

use assert_cmd::Command;
use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::Agent;
use crate::harness::gateway::{Home, PORTCULLIS, TOKEN};
use crate::harness::peers;

fn portcullis(arguments: &[&str]) -> Command {
    let mut command = Command::new(PORTCULLIS);
    command.args(arguments).env_remove("PORTCULLIS_LOG");
    command
}

fn stdout(command: &mut Command) -> String {
    String::from_utf8(command.assert().success().get_output().stdout.clone()).expect("UTF-8")
}

#[test]
fn help_names_every_command() {
    let help = stdout(&mut portcullis(&["--help"]));
    for command in ["serve", "demo", "init", "stdio", "wrap", "policy", "approvals", "calls", "tools", "audit", "token"]
    {
        assert!(help.contains(command), "{command} is not in\n{help}");
        portcullis(&[command, "--help"]).assert().success();
    }
    assert!(help.contains("Exit codes") || help.contains("exit codes"), "{help}");
    assert!(stdout(&mut portcullis(&["--version"])).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn usage_is_2_and_a_bad_configuration_3() {
    portcullis(&["no-such-command"]).assert().code(2);
    portcullis(&["serve", "--no-such-option"]).assert().code(2);
    portcullis(&["wrap"]).assert().code(2);
    portcullis(&["calls", "list", "--state", "waiting"]).assert().code(2);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("portcullis.yaml");
    std::fs::write(&file, "listen:\n  mcp: { adress: 127.0.0.1:0 }\nupstreams: [1]\n").expect("a file");
    let assert = portcullis(&["serve", "--config", &file.to_string_lossy()]).assert().code(3);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    // All errors at once, each with its place and what to write instead.
    assert!(said.contains("portcullis.yaml:2:") && said.contains("portcullis.yaml:3:"), "{said}");
    assert!(said.contains("address"), "{said}");
}

#[test]
fn a_server_that_cannot_be_started_is_no_success() {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = portcullis(&["wrap", "--", "no-such-program"]);
    let assert = command.env("HOME", home.path()).env_remove("XDG_STATE_HOME").assert().code(1);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("there is no program `no-such-program`"), "{said}");
}

#[test]
fn a_bad_policy_is_shown_with_its_place() {
    let home = Home::new(
        "version: 1\ngroups:\n  default:\n    rules:\n      - { verdict: dney, tool: x }\n      - { verdict: allow, tols: y }\n",
        json!({}),
    );
    let config = home.write_config();
    let assert = portcullis(&["policy", "check", "--config", &config.to_string_lossy()]).assert().code(3);
    let output = assert.get_output();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("policy.yaml:5:") && said.contains("policy.yaml:6:"), "{said}");
    assert!(said.contains("deny") && said.contains("tool"), "{said}");
    portcullis(&["serve", "--config", &config.to_string_lossy()]).assert().code(3);
}

#[test]
fn explain_judges_one_call_or_many() {
    let policy = "version: 1\ngroups:\n  default:\n    rules:\n      - { name: docs, verdict: allow, tool: '@fs_read', path: docs/ }\n";
    let home = Home::new(policy, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    let config = home.write_config().to_string_lossy().into_owned();
    let calls = [
        json!({ "upstream": "work", "tool": "read_file", "arguments": { "path": "docs/a.md" } }),
        json!({ "upstream": "work", "tool": "read_file", "arguments": { "path": "secrets/key.pem" } }),
        json!({ "upstream": "work", "tool": "write_file", "arguments": { "path": "x", "content": "" } }),
        json!({ "upstream": "work", "raw": "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}" }),
    ];
    let lines: String = calls.iter().map(|call| format!("{call}\n")).collect();
    let mut command = portcullis(&["policy", "explain", "--config", &config, "--calls", "-"]);
    let said = stdout(command.write_stdin(lines));
    let verdicts: Vec<Value> =
        said.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["verdict"].clone()).collect();
    assert_eq!(verdicts, ["allow", "deny", "ask", "malformed"], "{said}");
    // Lines that make no sense are told by their number, and the others answered.
    let mut command = portcullis(&["policy", "explain", "--config", &config, "--calls", "-"]);
    let assert = command.write_stdin("{\"tool\":\"x\"}\n{\"tool\"\n").assert().code(1);
    let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(said.contains("line 2: this is not JSON"), "{said}");
    assert_eq!(assert.get_output().stdout.iter().filter(|byte| **byte == b'\n').count(), 2);
    portcullis(&["policy", "explain", "--config", &config]).assert().code(2);
    portcullis(&["policy", "explain", "--config", &config, "--tool", "x", "--group", "nope"]).assert().code(2);
}

#[test]
fn a_new_token_is_told_once_and_its_hash_is_good() {
    let said = stdout(&mut portcullis(&["token", "new"]));
    let hash = said
        .split(|c: char| !c.is_ascii_hexdigit())
        .find(|word| word.len() == 64)
        .unwrap_or_else(|| panic!("no hash in {said}"));
    let token = said
        .split_whitespace()
        .find(|word| hex::encode(<sha2::Sha256 as sha2::Digest>::digest(word.as_bytes())) == hash);
    assert!(token.is_some(), "no word of this has that hash: {said}");
}

/// Numbers that no double holds go to the tool as they were typed.
#[tokio::test]
async fn arguments_that_an_approver_types_keep_every_digit() {
    let home = Home::new("version: 1\ngroups: { default: { otherwise: ask } }\n", json!({}));
    let file = home.base().join("tools.json");
    let schema = json!({ "type": "object", "properties": { "n": { "type": "number" } } });
    std::fs::write(&file, json!([{ "name": "buy", "inputSchema": schema }]).to_string()).expect("the tools");
    let server = peers::fixture("changing.py", &[&file.to_string_lossy()]);
    let upstream = json!({ "shop": { "command": server, "root": ".", "new_tools": "accept" } });
    let home = home.with("upstreams", upstream);
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("shop")).await;
    let answer = agent.begin(1, "buy", json!({ "n": 1 })).await;
    let id = gateway.held(1).await[0]["id"].as_str().expect("an id").to_owned();
    let token_file = home.base().join("token");
    std::fs::write(&token_file, TOKEN).expect("a file");
    let approve = |arguments: &str| {
        let mut command = portcullis(&["approvals", "approve", &id, "--arguments", arguments]);
        command.args(["--url", &gateway.admin, "--token-file", &token_file.to_string_lossy()]);
        command
    };
    approve("{\"n\": 1").assert().code(1);
    let beyond = approve("{\"n\": 18446744073709551617}").assert().code(1).get_output().stderr.clone();
    assert!(String::from_utf8_lossy(&beyond).contains("beyond 64 bits"), "refused, and not rounded");
    approve("{\"n\": [0.1234567890123456789012345, 1.00, 9007199254740993]}").assert().success();
    let ran = crate::harness::agent::reply(answer, 1).await;
    let texts = ran["result"]["content"].as_array().expect("texts").iter();
    let arguments = json!({ "n": ["0.1234567890123456789012345", "1.00", 9_007_199_254_740_993_u64] });
    let told = texts.filter_map(|text| serde_json::from_str(text["text"].as_str()?).ok());
    assert!(told.collect::<Vec<Value>>().contains(&arguments), "{ran}");
}

/// `approvals list|show|approve|reject` against a running gateway.
#[tokio::test(flavor = "multi_thread")]
async fn approvals_are_decided_from_a_terminal() {
    let policy = "version: 1\ngroups: { default: { otherwise: ask } }\n";
    let home = Home::new(policy, json!({ "work": { "workspace": true, "root": "$ROOT" } }));
    let gateway = home.serve();
    let token_file = home.base().join("token");
    std::fs::write(&token_file, TOKEN).expect("a file");
    let agent = Agent::legacy(&gateway.url("work")).await;
    let cli = |words: &[&str]| {
        let mut command = portcullis(&["approvals"]);
        command.args(words).args(["--url", &gateway.admin, "--token-file", &token_file.to_string_lossy()]);
        command
    };
    let secret = json!({ "path": "s.md", "content": format!("key ghp_{}", "a1".repeat(18)) });
    let answer = agent.begin(9, "write_file", secret).await;
    let approval = gateway.held(1).await[0]["id"].as_str().expect("an id").to_owned();
    let shown = stdout(&mut cli(&["show", &approval]));
    assert_eq!(shown.matches(": 40 characters, gh…a1 #").count(), 2, "in the arguments, and in the file: {shown}");
    assert!(shown.contains("/content: 40") && !shown.contains("a1a1"), "{shown}");
    cli(&["reject", &approval, "--note", "no"]).assert().success();
    crate::harness::agent::reply(answer, 9).await;
    for (id, decision) in [(1, "approve"), (2, "reject")] {
        let file = format!("{decision}.md");
        let answer = agent.begin(id, "write_file", json!({ "path": file, "content": "x\u{202e}y" })).await;
        let held = gateway.held(1).await;
        let approval = held[0]["id"].as_str().expect("an id").to_owned();
        let list: Value = serde_json::from_str(&stdout(&mut cli(&["list", "--format", "json"]))).expect("JSON");
        assert!(list.to_string().contains(&approval), "{list}");
        let shown = stdout(&mut cli(&["show", &approval]));
        assert!(shown.contains(&file) && !shown.contains('\u{202e}'), "{shown}");
        let words: &[&str] =
            if decision == "approve" { &["approve", &approval] } else { &["reject", &approval, "--note", "no thanks"] };
        cli(words).assert().success();
        let reply = crate::harness::agent::reply(answer, id).await;
        assert_eq!(reply["result"]["isError"] == json!(true), decision == "reject", "{reply}");
        assert_eq!(home.root().join(&file).exists(), decision == "approve");
        // Decided is decided: the other word comes too late.
        let other: &[&str] =
            if decision == "approve" { &["reject", &approval, "--note", "x"] } else { &["approve", &approval] };
        cli(other).assert().code(1);
    }
    let (status, _) = gateway.api(Method::GET, "approvals/apr_none", Value::Null).await;
    assert_eq!(status, 404);
    cli(&["show", "apr_none"]).assert().code(1);
}

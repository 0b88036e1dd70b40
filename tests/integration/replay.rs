//! `portcullis policy replay`: what a running gateway has written down, judged with other policies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::agent::Agent;
use crate::harness::gateway::{Home, PORTCULLIS};

const POLICY: &str = "
version: 1
guardrails:
  - { name: no-private, verdict: deny, path: '**/private/', reason: Private. }
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
      - { name: looks, verdict: allow, command: [ls, cat], path: docs/ }
      - { name: once, verdict: allow, tool: write_file, path: out/, limit: { per: day, calls: 1 } }
";

const TOKEN: &str = "ghp_a1b2c3d4e5f6a1b2c3d4e5f6a1b2c3d4e5f6";

/// The same policy under another version: its calls are judged again.
fn reworded() -> String {
    format!("{POLICY}# Other words.\n")
}

/// A gateway that was asked for many things, and has ended.
async fn recorded() -> Home {
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }))
        .with("approvals", json!({ "hold_for": "1ms" }));
    fs::create_dir(home.root().join("out")).expect("a folder");
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    let calls = [
        ("read_file", json!({ "path": "docs/a.md" })),
        ("read_file", json!({ "path": "docs/b.md" })),
        ("read_file", json!({ "path": "secrets/key.pem" })),
        ("grep_files", json!({ "path": "docs", "pattern": "hello" })),
        ("write_file", json!({ "path": "src/new.rs", "content": "x" })),
        ("write_file", json!({ "path": "out/a", "content": "x" })),
        ("write_file", json!({ "path": "out/b", "content": "x" })),
        ("execute_cmd", json!({ "command": format!("cat docs/a.md; echo {TOKEN}") })),
    ];
    for (id, (tool, arguments)) in (1..).zip(calls) {
        agent.call(id, tool, arguments).await;
    }
    gateway.terminate();
    // What is judged is what the log has.
    fs::remove_dir_all(home.root()).expect("the tree");
    fs::create_dir(home.root()).expect("an empty one");
    home
}

/// Replays with a policy in a folder of its own; the exit code and what was printed.
fn replay(home: &Home, policy: &str, more: &[&str]) -> (i32, String) {
    let folder = home.base().join("other");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("policy.yaml"), policy).expect("the policy");
    let mut command = Command::new(PORTCULLIS);
    command.args(["policy", "replay", "--config"]).arg(home.base().join("portcullis.yaml")).arg(&folder).args(more);
    let output = command.output().expect("it runs");
    let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
    (output.status.code().expect("an exit code"), said)
}

fn report(home: &Home, policy: &str, more: &[&str]) -> (i32, Value) {
    let (code, said) = replay(home, policy, &[&["--format", "json"], more].concat());
    (code, serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}")))
}

fn counts(report: &Value) -> [u64; 5] {
    ["unchanged", "looser", "stricter", "doubtful", "not_judged"].map(|name| report[name].as_u64().expect(name))
}

#[tokio::test]
async fn what_changes_is_told_and_what_loosens_fails() {
    let home = recorded().await;
    let log = log(&home);
    let text: String = log.iter().map(|file| fs::read_to_string(file).expect("the log")).collect();
    assert!(!text.contains(TOKEN) && text.contains("[redacted]"), "{text}");
    let lines = text.lines().filter(|line| line.contains("\"judged\":")).count();
    assert_eq!(lines, 8, "one line a call:\n{text}");

    // The same policy, from the configuration and from a folder.
    for policy in [POLICY.to_owned(), reworded()] {
        let (code, same) = report(&home, &policy, &[]);
        assert_eq!((code, counts(&same)), (0, [8, 0, 0, 0, 0]), "{same:#}");
    }
    let config = home.base().join("portcullis.yaml");
    let output = Command::new(PORTCULLIS).args(["policy", "replay", "--config"]).arg(config).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.starts_with("calls: 8; 8 unchanged, 0 looser, 0 stricter, 0 not judged exactly, 0 not judged\n"),
        "{said}"
    );

    let looser = POLICY.replace("otherwise: ask", "otherwise: allow");
    let (code, loose) = report(&home, &looser, &[]);
    assert_eq!(code, 1, "{loose:#}");
    let change = &loose["changes"][0];
    assert_eq!((&change["before"], &change["after"]), (&json!("ask"), &json!("allow")), "{loose:#}");
    assert_eq!(
        (&change["before_by"], &change["after_by"]),
        (&json!(["otherwise:default"]), &json!(["otherwise:default"]))
    );
    assert!(change["example"]["label"].as_str().expect("a label").starts_with("write_file src/new.rs"), "{loose:#}");
    assert_eq!(report(&home, &looser, &["--allow-loosening"]).0, 0);
    let (_, table) = replay(&home, &looser, &[]);
    let row = "looser:\n      1  ask by otherwise:default  ->  allow by otherwise:default\n         such as local: write_file src/new.rs";
    assert!(table.starts_with(row), "{table}");

    let stricter = POLICY.replace("verdict: allow, tool: '@fs_read'", "verdict: deny, reason: No., tool: read_file");
    let (code, strict) = report(&home, &stricter, &[]);
    assert_eq!((code, &strict["stricter"], &strict["looser"]), (0, &json!(3), &json!(0)), "{strict:#}");
    // A grep that no rule names any more is asked about; reading is denied.
    let kinds: Vec<(&Value, &Value)> =
        strict["changes"].as_array().expect("changes").iter().map(|c| (&c["after"], &c["count"])).collect();
    assert_eq!(kinds, [(&json!("deny"), &json!(2)), (&json!("ask"), &json!(1))], "{strict:#}");

    let (code, none) = replay(&home, &looser, &["--since", "2999-01-01T00:00:00Z"]);
    assert!(code == 1 && none.contains("there is no such call in the audit log in "), "{none}");
    assert_eq!(report(&home, &looser, &["--agent", "local", "--group", "default"]).1["calls"], 8);
}

#[tokio::test]
async fn what_cannot_be_told_is_counted_with_its_range() {
    let home = recorded().await;
    // Nobody looked for it when `docs` was walked.
    let guards = POLICY.replace("**/private/", "**/drafts/");
    let (code, walked) = report(&home, &guards, &[]);
    assert_eq!((code, counts(&walked)), (0, [7, 0, 0, 1, 0]), "{walked:#}");
    let doubt = &walked["doubts"][0];
    assert_eq!((&doubt["loosest"], &doubt["strictest"]), (&json!("allow"), &json!("ask")), "{walked:#}");
    // A redacted word that a rule names.
    let named =
        POLICY.replace("rules:", "rules:\n      - { name: ship, verdict: deny, command: echo prod, reason: No. }");
    let (code, redacted) = report(&home, &named, &[]);
    assert_eq!((code, counts(&redacted)), (0, [7, 0, 0, 1, 0]), "{redacted:#}");
    assert_eq!(redacted["doubts"][0]["strictest_by"], json!(["ship"]), "{redacted:#}");
    // Where it may be looser too, that fails.
    let (code, may) = report(
        &home,
        &POLICY.replace("otherwise: ask", "otherwise: deny").replace(
            "rules:",
            "rules:\n      - { verdict: allow, tool: write_file, args: { content: { regex: 'x+' } } }",
        ),
        &[],
    );
    assert_eq!(code, 1, "{may:#}");
}

#[tokio::test]
async fn old_lines_broken_chains_and_cut_off_ends_are_told() {
    let home = recorded().await;
    let file = log(&home).remove(0);
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    let whole = fs::read_to_string(&file).expect("the log");

    fs::write(&file, &whole[..whole.len() - 5]).expect("the log");
    let (code, cut) = report(&home, POLICY, &[]);
    assert_eq!((code, &cut["cut_off"][0]["file"]), (0, &json!(name)), "{cut:#}");
    assert!(cut["faults"].as_array().expect("faults").is_empty(), "{cut:#}");

    fs::write(&file, whole.replace("docs/b.md", "docs/c.md")).expect("the log");
    let (code, changed) = report(&home, POLICY, &[]);
    assert_eq!((code, counts(&changed)), (1, [8, 0, 0, 0, 0]), "{changed:#}");
    assert_eq!(changed["faults"][0]["file"], name);
    let (_, told) = replay(&home, POLICY, &[]);
    let place = format!("broken:\n  {}:", file.display());
    assert!(told.contains(&place) && told.contains("the line was changed"), "{told}");

    let unknown = whole.replace("\"judged\":", "\"judgement\":");
    fs::write(&file, unknown).expect("the log");
    let (code, old) = report(&home, &reworded(), &["--allow-loosening"]);
    assert_eq!((code, counts(&old)), (1, [0, 0, 0, 0, 8]), "{old:#}");
    assert_eq!(old["may_be_looser"], 3, "what was not allowed: {old:#}");
    let why = old["unjudged"][0]["why"].as_str().expect("why");
    assert!(why.contains("did not keep what was judged"), "{old:#}");
}

#[tokio::test]
async fn without_arguments_in_the_log_rules_on_them_are_in_doubt() {
    let home = Home::new(POLICY, json!({ "work": { "workspace": true, "root": "$ROOT" } }))
        .with("audit", json!({ "arguments": "none" }));
    let gateway = home.serve();
    let agent = Agent::legacy(&gateway.url("work")).await;
    agent.call(1, "read_file", json!({ "path": "docs/a.md", "mode": "src/raw" })).await;
    agent.call(2, "read_file", json!({ "path": "docs/b.md" })).await;
    gateway.terminate();
    let text = fs::read_to_string(log(&home).remove(0)).expect("the log");
    assert!(!text.contains("src/raw"), "{text}");
    let rule = "{ name: raw, verdict: deny, args: { mode: { eq: raw } }, reason: No. }";
    let (code, said) = report(&home, &POLICY.replace("rules:", &format!("rules:\n      - {rule}")), &[]);
    assert_eq!((code, counts(&said)), (0, [0, 0, 0, 2, 0]), "{said:#}");
    // An unmarked string that was left out may have named what is guarded now.
    let (_, strays) = report(&home, &reworded(), &[]);
    assert_eq!(counts(&strays), [1, 0, 0, 1, 0], "{strays:#}");
}

fn log(home: &Home) -> Vec<PathBuf> {
    let files = fs::read_dir(home.state().join("audit")).expect("the log");
    let is_log = |file: &PathBuf| file.extension() == Some(Path::new("a.jsonl").extension().expect("an extension"));
    files.map(|entry| entry.expect("a file").path()).filter(is_log).collect()
}

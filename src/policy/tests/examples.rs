//! Examples in rules, and `explain`.

use std::collections::BTreeMap;

use serde_json::{Value, json as value};

use super::*;
use crate::clock::Timestamp;
use crate::config::Config;
use crate::identity::Directory;
use crate::policy::{Executor, Unanswerable, explain};

fn errors(rule: &str) -> String {
    let text = format!("version: 1\ngroups:\n  g:\n    rules:\n      - {rule}\n");
    loaded(&[("base.yaml", &text)], plain()).map(|_| String::new()).unwrap_or_else(|found| told(&found))
}

#[test]
fn examples_that_hold_load() {
    for rule in [
        "{verdict: allow, tool: '@fs_read', path: docs/, examples: {match: [{tool: read_file, arguments: {path: docs/a.md}}], not_match: [{tool: read_file, arguments: {path: docs/../src/a}}, {tool: write_file, arguments: {path: docs/a.md, content: x}}]}}",
        "{verdict: deny, tool: refund, upstream: billing, agent: job, args: {amount: {gt: 100}}, reason: r, examples: {match: [{tool: refund, arguments: {amount: 100.5}}, {arguments: {amount: 101}}], not_match: [{tool: refund, arguments: {amount: 100}}, {tool: refund, upstream: other, arguments: {amount: 101}}, {tool: refund, agent: ana, arguments: {amount: 101}}]}}",
        "{verdict: deny, tool: '@shell', reason: r, examples: {match: [rm -rf /], not_match: [{tool: read_file, arguments: {path: a}}]}}",
        "{verdict: allow, method: resources/read, path: docs/, examples: {match: [{method: resources/read, arguments: {uri: 'file:///root/docs/a'}}], not_match: [{method: resources/read, arguments: {uri: 'file:///etc/passwd'}}]}}",
        "{verdict: allow, tool: '@shell', examples: {match: ['ls docs'], not_match: ['ls $X', 'ls > a', 'ls /etc']}}",
    ] {
        assert_eq!(errors(rule), "", "{rule}");
    }
}

#[test]
fn an_example_that_fails_refuses_the_load_where_it_stands() {
    for (rule, says) in [
        (
            "{verdict: allow, tool: '@fs_read', path: docs/, examples: {match: [{tool: read_file, arguments: {path: src/a}}]}}",
            "does not match",
        ),
        ("{verdict: deny, tool: x, reason: r, examples: {not_match: [{tool: X}]}}", "matches this example"),
        (
            "{verdict: allow, tool: '@fs_read', examples: {match: [{tool: unheard_of, arguments: {path: a}}]}}",
            "`heuristic`",
        ),
        ("{verdict: allow, tool: '@shell', examples: {match: ['ls $X']}}", "a floor asks"),
        ("{verdict: allow, command: ls, examples: {match: ['ls; pwd']}}", "does not match"),
        ("{verdict: deny, tool: x, reason: r, examples: {match: [{tol: x}]}}", "did you mean `tool`?"),
        ("{verdict: deny, tool: x, reason: r, examples: {match: [{tool: x, arguments: [1]}]}}", "not an object"),
        ("{verdict: deny, tool: x, reason: r, examples: {matches: [{tool: x}]}}", "did you mean `match`?"),
        ("{verdict: deny, tool: x, reason: r, examples: {match: []}}", "empty"),
    ] {
        let told = errors(rule);
        assert!(told.contains("base.yaml:5:") && told.contains(says), "{rule}\n{told}");
    }
}

/// A workspace, a policy for it, and two upstreams on demand.
struct Bench {
    folder: tempfile::TempDir,
    policy: Policy,
    directory: Directory,
    executors: BTreeMap<String, Executor>,
}

impl Bench {
    fn new(upstreams: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("docs")).unwrap();
        std::fs::write(folder.path().join("docs/a.md"), "a").unwrap();
        let executor = |id: &&str| {
            let config = UpstreamConfig::new(*id, Transport::Workspace, folder.path().to_owned());
            ((*id).to_owned(), Executor::new(config))
        };
        let executors = upstreams.iter().map(executor).collect();
        let policy = guarded(
            "groups:
  default: { rules: [ { name: read, verdict: allow, tool: \"@fs_read\", path: docs/ } ] }
  strict: { otherwise: deny, rules: [ { name: jobs, verdict: deny, source: background, tool: \"@any\", reason: No jobs. } ] }",
        );
        let config = Config::minimal(folder.path().join("state"), PolicyConfig::default(), Vec::new());
        Self { policy, directory: Directory::new(&config), executors, folder }
    }

    fn says(&self, request: &str) -> Value {
        let now = Timestamp::from_millis(0);
        explain(&self.policy, &self.directory, &self.executors, request, Limits::default(), now)
            .unwrap_or_else(|Unanswerable(what)| value!({ "verdict": "unanswerable", "error": what }))
    }
}

#[test]
fn a_call_is_explained_from_what_is_known_of_its_caller() {
    let bench = Bench::new(&["work"]);
    let answer = bench.says(r#"{"tool":"read_file","arguments":{"path":"docs/a.md"}}"#);
    assert_eq!(answer["verdict"], "allow", "{answer:#}");
    assert_eq!(answer["decided_by"], value!(["read"]));
    assert_eq!((&answer["group"], &answer["upstream"]), (&value!("default"), &value!("work")));
    let facet = &answer["facets"][0];
    assert_eq!(
        (&facet["kind"], &facet["access"], &facet["pointer"]),
        (&value!("path"), &value!("read"), &value!("/path"))
    );
    assert_eq!(facet["lexical"], value!(bench.folder.path().join("docs/a.md").to_str().unwrap()));
    assert_eq!(facet["matches"][0]["rule"], "read");

    let answer = bench.says(r#"{"tool":"execute_cmd","arguments":{"command":"ls $X"}}"#);
    assert_eq!(answer["verdict"], "ask");
    assert_eq!(answer["floors"][0]["why"], "shell", "{answer:#}");
    assert!(answer["needed_for_allow"].as_array().unwrap().len() >= 2, "{answer:#}");

    let answer =
        bench.says(r#"{"group":"strict","source":"background","tool":"read_file","arguments":{"path":"docs/a.md"}}"#);
    assert_eq!((&answer["verdict"], &answer["reasons"]), (&value!("deny"), &value!(["No jobs."])));
}

#[test]
fn a_whole_message_is_read_as_strictly_as_from_a_client() {
    let bench = Bench::new(&["work"]);
    let raw = |message: &str| bench.says(&value!({ "raw": message }).to_string());
    let good = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_file","arguments":{"path":"docs/a.md"}}}"#;
    assert_eq!(raw(good)["verdict"], "allow");
    assert_eq!(raw(&good.replace("\"path\"", "\"path\":\"x\",\"path\""))["verdict"], "malformed");
    assert_eq!(raw("not json")["verdict"], "malformed");
    assert_eq!(raw(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#)["verdict"], "allow");
    assert_eq!(raw(r#"{"jsonrpc":"2.0","id":1,"method":"x/y"}"#)["decided_by"], value!(["otherwise:default"]));
    let uri =
        |uri: &str| value!({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": uri}}).to_string();
    let at = format!("file://{}/docs/a.md", bench.folder.path().display());
    assert_eq!(raw(&uri(&at))["verdict"], "allow");
    assert_eq!(raw(&uri("file:///proc/self/environ"))["decided_by"], value!(["builtin:kernel-paths"]));
}

#[test]
fn what_cannot_be_judged_says_why() {
    let one = Bench::new(&["work"]);
    let two = Bench::new(&["work", "other"]);
    for (bench, request, verdict, says) in [
        (&one, r#"{"tool":"read_file ","arguments":{}}"#, "deny", "unknown tool"),
        (&one, r#"{"tool":"read_file","arguments":{"path":5}}"#, "malformed", "/path"),
        (&one, r#"{"tool":"read_file","arguments":{"path":"a","path":"b"}}"#, "malformed", "path"),
        (&one, r#"{"tool":"x","upstream":"wrok"}"#, "unanswerable", "no upstream `wrok`; did you mean `work`?"),
        (&two, r#"{"tool":"x"}"#, "unanswerable", "which `upstream`: there are other, work"),
        (&one, r#"{"tool":"x","agent":"nobody"}"#, "unanswerable", "no agent `nobody`"),
        (&one, r#"{"tool":"x","group":"ghost"}"#, "unanswerable", "no group `ghost`; there is default, strict"),
        (&one, r#"{"tool":"x","method":"x/y"}"#, "unanswerable", "has no tool"),
        (&one, r#"{"toool":"x"}"#, "unanswerable", "did you mean `tool`?"),
        (&one, r#"{"raw":"{}","tool":"x"}"#, "unanswerable", "whole message"),
        (&one, r#"{"arguments":{}}"#, "unanswerable", "say which call"),
        (&one, r#"{"tool":"x""#, "unanswerable", "not JSON"),
        (&one, r#"[]"#, "unanswerable", "not an object"),
    ] {
        let answer = bench.says(request);
        assert_eq!(answer["verdict"], verdict, "{request}");
        assert!(answer.to_string().contains(says), "{request}\n{answer:#}");
    }
}

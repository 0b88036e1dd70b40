#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::audit::{Audit, EVIDENCE};
use crate::clock::Clock;
use crate::config::{AuditConfig, PolicyConfig};
use crate::policy::{Policy, load};
use crate::record::Verdict::{Allow, Ask, Deny};

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn open(&self, process: &str) -> Audit {
        Audit::open(self.dir.path(), process, &AuditConfig::default(), Clock::system()).unwrap()
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("audit")
    }

    /// Replays with a policy of one group `g` with these rules.
    fn replay(&self, rules: &str) -> Report {
        self.replay_those(rules, &Filter::default())
    }

    fn policy(&self, rules: &str) -> Policy {
        let file = self.dir.path().join("policy.yaml");
        fs::write(&file, format!("version: 1\ngroups: {{ g: {{ rules: [ {rules} ] }} }}\n")).unwrap();
        let files = vec![file.display().to_string()];
        load(&PolicyConfig { files, ..PolicyConfig::default() }, &[]).unwrap().policy
    }

    fn replay_those(&self, rules: &str, filter: &Filter) -> Report {
        replay(&self.folder(), &self.policy(rules), filter).unwrap()
    }
}

/// A call of a tool that has nothing but its arguments, as its first line tells of it.
fn call(verdict: &str, by: &[&str], arguments: Value) -> Value {
    json!({
        "id": "call_1", "agent": "ana", "group": "g", "source": "interactive", "depth": "root", "upstream": "u",
        "tool": "t", "method": "tools/call", "label": "t", "arguments": arguments, "verdict": verdict,
        "decided_by": by, "created_at": "2026-11-30T08:00:00Z", "released_at": null, "approval": null,
        EVIDENCE: { "touched": { "facets": [{ "kind": "bare" }] } },
    })
}

/// One that was forwarded at once.
fn begun(verdict: &str, by: &[&str], arguments: Value) -> Value {
    with(call(verdict, by, arguments), "released_at", json!("2026-11-30T08:00:00Z"))
}

fn with(mut call: Value, field: &str, value: Value) -> Value {
    call[field] = value;
    call
}

fn counts(report: &Report) -> [u64; 6] {
    [report.calls, report.unchanged, report.looser, report.stricter, report.doubtful, report.not_judged]
}

const ALLOW: &str = "{ name: a, verdict: allow, tool: t }";

#[test]
fn each_call_is_judged_once_where_it_begins() {
    let place = Place::new();
    let audit = place.open("p1");
    let asked = call("ask", &["otherwise:g"], json!({}));
    audit.write("call.begin", &begun("allow", &["a"], json!({}))).unwrap();
    audit.write("call.end", &with(call("allow", &["a"], json!({})), "released_at", json!("x"))).unwrap();
    audit.write("call.held", &with(asked.clone(), "approval", json!("apr_1"))).unwrap();
    for event in ["call.rejudged", "call.begin", "call.end"] {
        audit.write(event, &with(asked.clone(), "approval", json!("apr_1"))).unwrap();
    }
    audit.write("call.end", &call("deny", &["d"], json!({}))).unwrap();
    // Other events have fields of the same names.
    audit.write("tool.offered", &json!({ "tool": 5, "verdict": [], "approval": {}, "released_at": 1 })).unwrap();
    let report = place.replay(ALLOW);
    assert_eq!(counts(&report), [3, 1, 2, 0, 0, 0], "{report:?}");
    let change = |change: &Change| (change.before, change.after, change.count, change.example.line);
    assert_eq!(report.changes.iter().map(change).collect::<Vec<_>>(), [(Ask, Allow, 1, 4), (Deny, Allow, 1, 8)]);
    assert!(report.faults.is_empty() && report.may_be_looser == 0);
}

#[test]
fn what_a_dead_process_left_open_is_not_counted_again() {
    let place = Place::new();
    place.open("p1").write("call.begin", &begun("allow", &["a"], json!({}))).unwrap();
    drop(place.open("p2"));
    let ends = fs::read_to_string(place.folder().join("p2-0001.jsonl")).unwrap();
    assert!(ends.contains("call.end") && !ends.contains(EVIDENCE), "{ends}");
    assert_eq!(counts(&place.replay(ALLOW)), [1, 1, 0, 0, 0, 0]);
}

#[test]
fn many_files_make_one_report() {
    let place = Place::new();
    for process in ["p1", "p2", "p3"] {
        let audit = place.open(process);
        for _ in 0..3 {
            audit.write("call.begin", &begun("allow", &["a"], json!({}))).unwrap();
        }
    }
    let report = place.replay("{ name: no, verdict: deny, tool: t, reason: No. }");
    assert_eq!(counts(&report), [9, 0, 0, 9, 0, 0]);
    let [change] = report.changes.as_slice() else { panic!("{report:?}") };
    assert_eq!((change.before, change.after, change.count), (Allow, Deny, 9));
    assert_eq!((change.before_by[0].as_str(), change.after_by[0].as_str()), ("a", "no"));
    assert_eq!((change.example.file.as_str(), change.example.line), ("p1-0001.jsonl", 2));
}

#[test]
fn limits_count_as_not_exhausted() {
    let place = Place::new();
    let audit = place.open("p1");
    audit.write("call.held", &call("ask", &["limit:a"], json!({}))).unwrap();
    audit.write("call.held", &call("ask", &["floor:shell", "limit:a"], json!({}))).unwrap();
    let limited = "{ name: a, verdict: allow, tool: t, limit: { per: day, calls: 1, then: ask } }";
    let report = place.replay(limited);
    assert_eq!(counts(&report), [2, 1, 1, 0, 0, 0], "{report:?}");
    assert_eq!(report.changes[0].before_by, ["floor:shell"]);
}

/// What a person let pass for a while, policy asked about.
#[test]
fn a_granted_call_counts_as_asked() {
    let place = Place::new();
    let audit = place.open("p1");
    audit.write("call.begin", &begun("allow", &["grant:gr_1"], json!({}))).unwrap();
    let asking = place.replay("{ name: a, verdict: ask, tool: t }");
    assert_eq!(counts(&asking), [1, 1, 0, 0, 0, 0], "{asking:?}");
    let allowing = place.replay("{ name: a, verdict: allow, tool: t }");
    assert_eq!((allowing.changes[0].before, allowing.changes[0].after), (Ask, Allow));
}

#[test]
fn arguments_and_parameters_are_what_they_were() {
    let place = Place::new();
    let audit = place.open("p1");
    audit
        .write("call.begin", &call("allow", &[], json!({ "arguments.params.x": 1, "params.task": 2, "n": 3 })))
        .unwrap();
    let method = with(call("ask", &[], json!({ "params.uri": "x:y", "a": 1 })), "tool", Value::Null);
    let method = with(method, "method", json!("resources/read"));
    audit
        .write(
            "call.held",
            &with(method, EVIDENCE, json!({ "touched": { "facets": [{ "kind": { "method": "resources/read" } }] } })),
        )
        .unwrap();
    let said = |args: &str| {
        let rule = format!("{{ verdict: deny, args: {{ {args} }}, reason: No. }}, {{ verdict: allow, tool: t }}");
        let report = place.replay(&rule);
        (report.stricter, report.doubtful)
    };
    assert_eq!(said("params.x: { eq: 1 }").0, 1);
    assert_eq!(said("params.task: { eq: 2 }").0, 0, "what a request carries beside its arguments is none of them");
    assert_eq!(said("n: { eq: 3 }").0, 1);
    assert_eq!(said("uri: { eq: \"x:y\" }"), (1, 0));
    assert_eq!(said("/arguments/a: { eq: 1 }"), (1, 0));
    assert_eq!(said("/_meta/a: { eq: 1 }"), (0, 1), "not all of the parameters are in the log");
}

#[test]
fn what_is_left_out_and_what_is_not_kept_is_told() {
    let place = Place::new();
    let audit = place.open("p1");
    let mut old = call("ask", &["otherwise:g"], json!({}));
    old.as_object_mut().unwrap().remove(EVIDENCE);
    audit.write("call.held", &old).unwrap();
    audit.write("call.begin", &with(begun("allow", &["a"], json!({})), EVIDENCE, json!({ "touched": 5 }))).unwrap();
    audit.write("call.begin", &json!({ "id": "call_2" })).unwrap();
    let report = place.replay(ALLOW);
    assert_eq!(counts(&report), [2, 0, 0, 0, 0, 2], "{report:?}");
    assert_eq!(report.may_be_looser, 1, "what was allowed cannot become looser");
    let [fault] = report.faults.as_slice() else { panic!("{report:?}") };
    assert!(fault.line == 4 && fault.what.starts_with("not a call of this log"), "{fault:?}");

    let only = |agent: &str, since: &str| {
        let since = serde_json::from_value(since.into()).ok();
        let filter = Filter { agent: Some(agent.into()), since, group: Some("g".into()) };
        place.replay_those(ALLOW, &filter).calls
    };
    assert_eq!(only("ana", "2026-11-30T08:00:00Z"), 2);
    assert_eq!(only("ana", "2026-11-30T08:00:01Z"), 0);
    assert_eq!(only("eve", "2026-11-30T08:00:00Z"), 0);
}

#[test]
fn the_policy_that_judged_a_call_says_the_same_of_it_whatever_the_log_leaves_out() {
    let place = Place::new();
    let policy = place.policy(ALLOW);
    let hidden = with(begun("allow", &["a"], json!({ "x": "[redacted]" })), "policy", json!(policy.version));
    let unkept = with(call("deny", &["d"], json!({})), EVIDENCE, Value::Null);
    place.open("p1").write("call.begin", &hidden).unwrap();
    place.open("p2").write("call.end", &with(unkept, "policy", json!(policy.version))).unwrap();
    assert_eq!(counts(&place.replay(ALLOW)), [2, 2, 0, 0, 0, 0]);
    assert_eq!(place.replay("{ name: a, verdict: deny, tool: t, reason: r }").not_judged, 1, "another one judges");
}

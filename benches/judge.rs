//! How long the policy takes for one call, with many rules that cannot match it. `docs/performance.md` has the figures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::fmt::Write as _;

use divan::{Bencher, black_box};
use portcullis::catalog::Catalogue;
use portcullis::clock::Timestamp;
use portcullis::config::{PolicyConfig, Transport, UpstreamConfig};
use portcullis::facet::path::Space;
use portcullis::facet::{Touched, extract};
use portcullis::message::{Json, Limits};
use portcullis::policy::{Claimed, Judgement, Policy, Subject, judge, load};
use portcullis::record::{Depth, Source, Verdict};

const RULES: [usize; 3] = [10, 1_000, 10_000];

fn main() {
    divan::main();
}

/// A tool that nothing is known of, and that one rule allows by name; all others name other tools.
#[divan::bench(args = RULES)]
fn plain_call(bencher: Bencher<'_, '_>, rules: usize) {
    Case::new(rules, Kind::Tools, "refund", r#"{"amount":12.5,"order":"A1"}"#).judged(bencher);
}

/// The same among rules on tools, paths, globs over paths and commands alike.
#[divan::bench(args = RULES)]
fn plain_call_among_all_kinds(bencher: Bencher<'_, '_>, rules: usize) {
    Case::new(rules, Kind::All, "refund", r#"{"amount":12.5,"order":"A1"}"#).judged(bencher);
}

/// Reading one file, among rules of all kinds.
#[divan::bench(args = RULES)]
fn path_call(bencher: Bencher<'_, '_>, rules: usize) {
    Case::new(rules, Kind::All, "read_file", r#"{"path":"docs/guide/a.md"}"#).judged(bencher);
}

/// Two commands in a pipe, among rules of all kinds.
#[divan::bench(args = RULES)]
fn shell_call(bencher: Bencher<'_, '_>, rules: usize) {
    Case::new(rules, Kind::All, "execute_cmd", r#"{"command":"git log --oneline -5 docs | head -3"}"#).judged(bencher);
}

/// A program that nobody has described: denied words are looked for in all that it is given.
#[divan::bench(args = RULES)]
fn shell_call_of_an_unknown_program(bencher: Bencher<'_, '_>, rules: usize) {
    Case::new(rules, Kind::All, "execute_cmd", r#"{"command":"looker --level=3 docs/guide docs/guide/a.md"}"#)
        .judged(bencher);
}

/// The same as `shell_call` with everything before the judgement: taking the text apart, resolving its paths.
#[divan::bench]
fn shell_call_with_its_text_taken_apart(bencher: Bencher<'_, '_>) {
    let case = Case::new(10, Kind::All, "execute_cmd", r#"{"command":"git log --oneline -5 docs | head -3"}"#);
    bencher.bench_local(|| case.judge(&case.touched()));
}

/// Which rules there are beside the few that the call is about.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Tools,
    All,
}

/// A policy, a call, and the folder that it is about.
struct Case {
    policy: Policy,
    space: Space,
    tool: &'static str,
    arguments: Json,
    _folder: tempfile::TempDir,
}

impl Case {
    fn new(rules: usize, kind: Kind, tool: &'static str, arguments: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir_all(root.join("docs/guide")).unwrap();
        std::fs::write(root.join("docs/guide/a.md"), "a").unwrap();
        let file = folder.path().join("policy.yaml");
        std::fs::write(&file, policy(rules, kind)).unwrap();
        let files = vec![file.to_str().unwrap().to_owned()];
        let config = PolicyConfig { files, ..PolicyConfig::default() };
        let case = Self {
            policy: load(&config, &[]).expect("the policy loads").policy,
            space: Space::new(&UpstreamConfig::new("work", Transport::Workspace, root)),
            tool,
            arguments: Json::parse(arguments.to_owned().into(), Limits::default()).unwrap(),
            _folder: folder,
        };
        let verdict = case.judge(&case.touched()).verdict;
        assert_eq!(verdict, Verdict::Allow, "what is measured is what agents do all day");
        case
    }

    fn judged(&self, bencher: Bencher<'_, '_>) {
        let touched = self.touched();
        bencher.bench_local(|| self.judge(black_box(&touched)));
    }

    fn touched(&self) -> Touched {
        let entry = Catalogue::builtin("workspace").unwrap().tool(self.tool, None);
        extract(&entry, &self.space, Some(self.arguments.root())).unwrap()
    }

    fn judge(&self, touched: &Touched) -> Judgement {
        let subject = Subject {
            group: "default",
            agent: Some("claude"),
            source: Some(Source::Interactive),
            depth: Some(Depth::Root),
            claimed: Claimed::default(),
            at: Some(Timestamp::from_millis(1_800_000_000_000)),
            upstream: Some("work"),
            tool: Some(self.tool),
            category: None,
            method: "tools/call",
            arguments: Some(self.arguments.root()),
            recorded: None,
        };
        judge(&self.policy, &subject, touched, &self.space)
    }
}

/// Four rules that allow the calls measured here, and others to make up the number.
fn policy(rules: usize, kind: Kind) -> String {
    let mut text = String::from(
        "version: 1
groups:
  default:
    otherwise: ask
    rules:
      - { name: refunds, verdict: allow, tool: refund, args: { amount: { le: 100 } } }
      - { name: reads, verdict: allow, tool: '@fs_read', path: docs/ }
      - { name: looks, verdict: allow, command: [git log, head] }
      - { name: looker, verdict: allow, command: looker, path: docs/ }
",
    );
    for number in 4..rules {
        let matching = match (kind, number % 4) {
            (Kind::Tools, _) | (Kind::All, 0) => format!("tool: tool_{number}, args: {{ amount: {{ gt: {number} }} }}"),
            (Kind::All, 1) => format!("path: [project-{number}/, /srv/data/{number}/]"),
            (Kind::All, 2) => format!("path: '**/private-{number}/*.key', access: read"),
            (Kind::All, _) => format!("command: [program-{number}, tool-{number} run]"),
        };
        let verdict = ["allow", "ask", "deny, reason: No."][number % 3];
        let _ = writeln!(text, "      - {{ name: r{number}, verdict: {verdict}, {matching} }}");
    }
    text
}

//! Shell texts from the text to the verdict: `cargo bench --bench shell`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use divan::{Bencher, black_box};
use portcullis::config::{PolicyConfig, Transport, UpstreamConfig};
use portcullis::facet::extract_shell;
use portcullis::facet::path::Space;
use portcullis::policy::{Claimed, Policy, Subject, judge, load};
use portcullis::record::Verdict;
use tempfile::TempDir;

fn main() {
    divan::main();
}

const POLICY: &str = "version: 1
guardrails:
  - { name: credentials, verdict: deny, path: ['**/.env', '**/.ssh/'], reason: Credentials never reach a model. }
groups:
  default:
    rules:
      - { name: look, verdict: allow, command: [ls, cat, echo, grep, git status, git log, git diff] }
      - { name: write, verdict: allow, command: tee, path: out/ }
      - { name: never, verdict: deny, command: [rm, sudo, curl], reason: Not here. }
      - { name: force, verdict: deny, command: git push, option: [--force, -f], reason: Not by force. }
";

/// A policy, and a root that exists.
struct Bench {
    folder: TempDir,
    policy: Policy,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        std::fs::write(&file, POLICY).unwrap();
        let config = PolicyConfig { files: vec![file.to_string_lossy().into_owned()], ..PolicyConfig::default() };
        let loaded = load(&config, &[]).unwrap_or_else(|errors| panic!("{errors:?}"));
        Self { folder, policy: loaded.policy }
    }

    fn verdict(&self, space: &Space, text: &str) -> Verdict {
        let touched = extract_shell(space, text).unwrap();
        let subject = Subject {
            group: "default",
            agent: Some("local"),
            source: None,
            depth: None,
            upstream: Some("files"),
            tool: Some("run"),
            category: None,
            method: "tools/call",
            arguments: None,
            claimed: Claimed::default(),
            at: None,
            recorded: None,
        };
        judge(&self.policy, &subject, &touched, space).verdict
    }

    fn space(&self) -> Space {
        Space::new(&UpstreamConfig::new("files", Transport::Workspace, self.folder.path().to_owned()))
    }
}

/// 64 KiB of plain words after a program.
fn words(program: &str, word: &str) -> String {
    let mut text = program.to_owned();
    while text.len() + word.len() < 64 * 1024 {
        text.push(' ');
        text.push_str(word);
    }
    text
}

fn texts() -> Vec<(&'static str, String)> {
    vec![
        ("everyday", "cd docs && git log --oneline -5 2>&1 | grep -n fix".to_owned()),
        ("echo", words("echo", "word")),
        ("cat", words("cat", "a/bc")),
        ("untabled", words("tool", "a=bc")),
        ("letters", words("echo", "x")),
        ("commands", "ls;".repeat(64 * 1024 / 3)),
        ("quoted words", words("echo", "'a b' \"c\"")),
        ("expansions", words("echo", "$x")),
        ("one word", format!("echo {}", "x".repeat(64 * 1024 - 8))),
        ("quoted", format!("git commit -m '{}'", "remove rm -rf ".repeat(4_600))),
        ("here", format!("cat <<'E'\n{}E\n", "a line of text\n".repeat(4_300))),
    ]
}

#[divan::bench(args = ["everyday", "echo", "cat", "untabled", "letters", "commands", "quoted words", "expansions", "one word", "quoted", "here"])]
fn judged(bencher: Bencher<'_, '_>, name: &str) {
    let bench = Bench::new();
    let space = bench.space();
    let text = texts().into_iter().find(|(known, _)| *known == name).map(|(_, text)| text).unwrap();
    bencher.bench_local(|| bench.verdict(&space, black_box(&text)));
}

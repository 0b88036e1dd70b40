//! `*.test.yaml`: read strictly, run at load, told apart by `test`.

use super::*;
use crate::policy::suite::{Answer, Tested, Tests};
use crate::policy::test;

const POLICY: &str = "version: 1
guardrails:
  - { name: no-keys, verdict: deny, path: ['**/*.key'], reason: Keys stay here. }
groups:
  default:
    otherwise: ask
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
      - { name: look, verdict: allow, command: [ls, git status] }
      - { name: no-moves, verdict: deny, tool: move_file, reason: Nothing is moved. }
  strict: { otherwise: deny }
  jobs:
    extends: default
    rules:
      - { name: no-mail, verdict: deny, upstream: mail, tool: '@any', reason: No mail. }
";

/// A folder with the policy as `base.yaml` and these other files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("base.yaml", POLICY)].iter().chain(files) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

fn config(folder: &tempfile::TempDir) -> PolicyConfig {
    PolicyConfig { files: vec![folder.path().join("base.yaml").display().to_string()], ..PolicyConfig::default() }
}

fn run(tests: &str) -> Result<Tested, String> {
    let folder = folder(&[("base.test.yaml", tests)]);
    test(&config(&folder), &[], &Tests::Beside).map_err(|found| told(&found))
}

/// What the tests that fail say.
fn failures(tests: &str) -> Vec<String> {
    let tested = run(tests).unwrap_or_else(|told| panic!("{told}"));
    tested.results.iter().filter(|result| !result.passed).map(|result| result.difference()).collect()
}

#[test]
fn tests_that_hold_pass() {
    let tests = "
- { name: docs, group: default, call: { tool: read_file, arguments: { path: docs/a.md } }, verdict: allow, rule: read-docs }
- { call: { tool: read_file, arguments: { path: docs/a.key } }, verdict: deny, rule: [no-keys] }
- { call: git status, verdict: allow, rule: look }
- { call: 'ls docs/../secrets', verdict: deny, rule: 'builtin:secrets' }
- { call: 'ls $X', verdict: ask, rule: ['floor:shell'] }
- { call: { tool: write_file, arguments: { path: a, content: b } }, group: strict, verdict: deny, rule: 'otherwise:strict' }
- { call: { tool: read_file, group: strict, arguments: { path: docs/a.md } }, verdict: deny }
- { call: { tool: read_file, arguments: { path: [1] } }, verdict: malformed }
- { call: { raw: '{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}' }, verdict: malformed }
- { call: { raw: '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}' }, verdict: allow }
- { call: { tool: 'read_file ', arguments: {} }, verdict: deny }
- { group: jobs, call: { upstream: files, tool: send }, verdict: ask, rule: 'otherwise:jobs' }
- { group: jobs, call: { upstream: mail, tool: send }, verdict: deny, rule: no-mail }
";
    assert_eq!(failures(tests), [] as [&str; 0]);
    assert_eq!(failures(&format!("version: 1\ntests:\n{}", tests.trim_start())), [] as [&str; 0]);
}

#[test]
fn a_setup_makes_files_that_links_lead_through() {
    let tests = "
- name: a link out
  setup: [mkdir -p docs, ln -s /etc docs/out]
  call: { tool: read_file, arguments: { path: docs/out/hostname } }
  verdict: ask
- name: a hard link
  setup: [\"mkdir docs && echo x > docs/a.md\", \"ln $ROOT/docs/a.md docs/b.md\"]
  call: { tool: read_file, arguments: { path: $ROOT/docs/b.md } }
  verdict: ask
  rule: 'floor:hard_link'
- name: in a text
  setup: touch a.txt
  call: ls $ROOT/a.txt
  verdict: allow
  rule: look
- name: as names, there is no link
  call: { tool: read_file, arguments: { path: docs/out/hostname } }
  verdict: allow
";
    assert_eq!(failures(tests), [] as [&str; 0]);
}

#[test]
fn a_failing_test_says_what_was_expected_and_what_came() {
    let tests = "
- { call: { tool: read_file, arguments: { path: src/a } }, verdict: allow, rule: read-docs }
- { call: git status, verdict: allow, rule: read-docs }
- { group: jobs, call: { tool: send }, verdict: ask }
";
    assert_eq!(
        failures(tests),
        [
            "expected allow by read-docs, got ask by otherwise:default",
            "expected allow by read-docs, got allow by look",
            "expected ask, got deny by no-mail",
        ]
    );
    let tested = run(tests).unwrap();
    assert_eq!(tested.results[2].got.verdict, Answer::Deny);
    assert!(tested.results[2].got.because[0].contains("`no-mail` names `upstream`"), "{:?}", tested.results[2]);
    let told = told(&tested.good().unwrap_err());
    assert!(told.contains("base.test.yaml:2:3: error: test `"), "{told}");
    assert!(told.contains("fails: expected allow by read-docs, got allow by look"), "{told}");
    assert!(
        told.contains(
            "help: read of /root/src/a (`/path`): no allow of group `default` covers it; the allow `read-docs` ("
        ),
        "{told}"
    );
}

#[test]
fn a_policy_whose_tests_fail_does_not_load() {
    let folder = folder(&[("base.test.yaml", "- { call: ls, verdict: deny }\n")]);
    let told = told(&load(&config(&folder), &[]).unwrap_err());
    assert!(told.contains("base.test.yaml:1:3: error: test `"), "{told}");
    std::fs::write(folder.path().join("base.test.yaml"), "- { call: ls, verdict: allow }\n").unwrap();
    assert!(load(&config(&folder), &[]).is_ok());
}

#[test]
fn each_slip_in_a_test_is_told_with_its_place() {
    for (tests, place, says) in [
        ("", "base.test.yaml: error", "empty"),
        ("- call: ls\n", "1:3", "`verdict` is missing"),
        ("- verdict: ask\n", "1:3", "`call` is missing"),
        ("- { call: ls, verdict: permit }\n", "1:24", "`permit` is none of allow, ask, deny, malformed"),
        ("- { call: ls, verdict: ask, rules: x }\n", "1:29", "did you mean `rule`?"),
        ("- { call: ls, call: pwd, verdict: ask }\n", "1:15", "given twice"),
        ("- { call: ls, verdict: ask, rule: lok }\n", "1:35", "did you mean `look`?"),
        ("- { call: ls, verdict: ask, rule: 'otherwise:defualt' }\n", "1:35", "no rule is called"),
        ("- { call: ls, verdict: ask, group: defualt }\n", "1:36", "did you mean `default`?"),
        ("- { call: { tol: x }, verdict: ask }\n", "1:13", "did you mean `tool`?"),
        ("- { call: { tool: x, arguments: [1] }, verdict: ask }\n", "1:11", "not an object"),
        ("- { call: { tool: x, group: strict }, group: default, verdict: ask }\n", "1:11", "leave one of them out"),
        ("- { call: ls, verdict: ask, setup: [rm -rf x] }\n", "1:37", "`rm` is not known"),
        ("- { name: a, call: ls, verdict: allow }\n- { name: a, call: ls, verdict: allow }\n", "2:3", "already"),
        ("test: []\n", "1:1", "did you mean `tests`?"),
        ("tests: { a: 1 }\n", "1:8", "expected a list"),
        ("ls\n", "1:1", "expected a list"),
    ] {
        let told = run(tests).map(|_| ()).unwrap_err();
        assert!(told.contains(place) && told.contains(says), "{tests}\n{told}");
    }
}

#[test]
fn tests_belong_to_the_policy_they_are_named_after() {
    let failing = "- { call: ls, verdict: deny }\n";
    let other = "version: 1\ngroups: { other: {} }\n";
    let files = [("other.yaml", other), ("other.test.yaml", failing), (".all.test.yaml", failing), ("a.yaml.bak", "")];
    let loads = |folder: &tempfile::TempDir| load(&config(folder), &[]).is_ok();
    let folder = folder(&files);
    assert!(loads(&folder), "tests of a policy that is not loaded are not run");
    std::fs::write(folder.path().join("all.test.yaml"), failing).unwrap();
    assert!(!loads(&folder), "tests of no policy in particular test them all");
    let results = |folder: &tempfile::TempDir, which: Tests| test(&config(folder), &[], &which).unwrap().results.len();
    assert_eq!(results(&folder, Tests::Beside), 1);
    assert_eq!(results(&folder, Tests::Own), 0);
    assert_eq!(results(&folder, Tests::Named(vec![folder.path().join("other.test.yaml")])), 1);
    let lost = Tests::Named(vec![folder.path().join("lost.test.yaml")]);
    assert!(told(&test(&config(&folder), &[], &lost).unwrap_err()).contains("cannot be read"));
}

#[test]
fn coverage_names_the_rules_that_no_passing_test_decides() {
    let tested = run("
- { call: ls, verdict: allow }
- { call: { tool: read_file, arguments: { path: x.key } }, verdict: deny }
- { group: jobs, call: { upstream: mail, tool: send }, verdict: allow }
")
    .unwrap();
    let coverage = tested.coverage();
    let names: Vec<&str> = coverage.undecided.iter().map(|rule| rule.label.as_str()).collect();
    assert_eq!((coverage.decided, names), (2, vec!["read-docs", "no-moves", "no-mail"]));
}

/// What a configured upstream's tools take is what its catalogue says; without one, what a built-in entry of that name does.
#[test]
fn tests_and_examples_know_the_configured_catalogues() {
    use crate::catalog::Catalogue;
    let tool = Catalogue::builtin("filesystem").unwrap().tools["read_text_file"].clone();
    let tests = "
- { call: { upstream: shelf, tool: fetch_page, arguments: { path: docs/a.md } }, verdict: allow, rule: read-docs }
- { call: { tool: fetch_page, arguments: { path: docs/a.md } }, verdict: allow, rule: read-docs }
- { call: { upstream: other, tool: fetch_page, arguments: { path: docs/a.md } }, verdict: ask }
- { call: { upstream: shelf, tool: read_file, arguments: { path: docs/a.md } }, verdict: allow, rule: read-docs }
";
    let folder = folder(&[("base.test.yaml", tests)]);
    let shelf = Catalogue { tools: [("fetch_page".to_owned(), tool)].into() };
    let config = PolicyConfig { catalogues: [("shelf".to_owned(), shelf)].into(), ..config(&folder) };
    let tested = test(&config, &[], &Tests::Beside).unwrap_or_else(|found| panic!("{}", told(&found)));
    let failures: Vec<_> = tested.results.iter().filter(|r| !r.passed).map(|r| r.difference()).collect();
    assert_eq!(failures, [] as [&str; 0]);
}

//! Every lint has a fixture that it finds in the right places, and a page whose bad example it finds and whose better one
//! not.

use std::path::Path;

use super::*;
use crate::clock::Clock;
use crate::config;
use crate::policy::lint::LINTS;

fn read(below: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(below))
        .unwrap_or_else(|e| panic!("{below}: {e}"))
}

/// What all lints say of a policy under a configuration, with a root that has `docs/guide/`, `docs/salaries/` and `src/`.
fn linted(policy: &str, settings: &str) -> Vec<Diagnostic> {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for below in ["docs/guide", "docs/salaries", "src"] {
        std::fs::create_dir_all(at("work").join(below)).unwrap();
    }
    std::fs::write(at("policy.yaml"), policy).unwrap();
    std::fs::write(at("portcullis.yaml"), settings).unwrap();
    let config = config::load(&at("portcullis.yaml")).unwrap_or_else(|found| panic!("{}", told(&found)));
    let mut loaded = load(&config.policy, &[]).unwrap_or_else(|found| panic!("{}", told(&found)));
    loaded.lint(Some(&config), Clock::system().now());
    loaded.warnings
}

fn has(found: &[Diagnostic], code: &str) -> bool {
    found.iter().any(|found| found.code == Some(code))
}

#[test]
fn each_finds_its_fixture_and_nothing_beside_it() {
    for lint in &LINTS {
        let code = lint.code;
        let policy = read(&format!("tests/fixtures/lints/{code}.yaml"));
        let own = format!("tests/fixtures/lints/{code}.portcullis.yaml");
        let is_there = Path::new(env!("CARGO_MANIFEST_DIR")).join(&own).exists();
        let settings = read(if is_there { &own } else { "tests/fixtures/lints/portcullis.yaml" });
        let found = linted(&policy, &settings);
        let expected = policy.lines().next().and_then(|line| line.strip_prefix("# warns at ")).expect(code);
        let (file, places) = match expected.strip_prefix("portcullis ") {
            Some(places) => ("portcullis.yaml", places),
            None => ("policy.yaml", expected),
        };
        let got: Vec<String> = found
            .iter()
            .filter(|found| found.code == Some(code) && found.file.ends_with(file))
            .map(|found| format!("{}:{}", found.line, found.column))
            .collect();
        assert_eq!(got.join(" "), places, "{code}\n{}", told(&found));
        assert!(
            found.iter().all(|found| found.severity == crate::diagnostic::Severity::Warning && found.help.is_some())
        );
    }
}

/// The policy and the configuration among the blocks of a section.
fn example(page: &str, section: &str) -> (String, Option<String>) {
    let (_, rest) =
        page.split_once(&format!("\n## {section}\n")).unwrap_or_else(|| panic!("no `## {section}`:\n{page}"));
    let section = rest.split("\n## ").next().unwrap();
    let (mut policy, mut settings) = (None, None);
    for block in section.split("```yaml\n").skip(1) {
        let text = block.split("```").next().unwrap().to_owned();
        if text.starts_with("# portcullis.yaml\n") { settings = Some(text) } else { policy = Some(text) }
    }
    (policy.unwrap(), settings)
}

#[test]
fn each_has_a_page_that_is_true() {
    let index = read("docs/lints/README.md");
    for lint in &LINTS {
        let code = lint.code;
        let page = read(&format!("docs/lints/{code}.md"));
        assert!(page.starts_with(&format!("# {code}: {}\n", lint.title)), "{page}");
        assert!(index.contains(&format!("| [{code}]({code}.md) | {} |", lint.title)), "{code} is not in the index");
        for section in ["What it finds", "Why it matters"] {
            assert!(page.contains(&format!("\n## {section}\n\n")), "{code}: no `## {section}`");
        }
        for (section, expected) in [("Bad", true), ("Better", false)] {
            let (policy, settings) = example(&page, section);
            let found = linted(&policy, &settings.unwrap_or_else(|| read("tests/fixtures/lints/portcullis.yaml")));
            assert_eq!(has(&found, code), expected, "{code}, {section}\n{}", told(&found));
            assert!(expected || found.is_empty(), "{code}: the better example has another fault\n{}", told(&found));
        }
    }
    let pages = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/lints")).unwrap().count();
    assert_eq!(pages, LINTS.len() + 1, "a page without a lint");
    let codes: std::collections::BTreeSet<&str> = LINTS.iter().map(|lint| lint.code).collect();
    assert_eq!(codes.len(), LINTS.len());
}

#[test]
fn a_date_is_told_a_week_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.yaml");
    let text = "version: 1\ngroups: { g: { rules: [ { verdict: allow, tool: x, path: a, until: 2026-03-10 } ] } }\n";
    std::fs::write(&file, text).unwrap();
    let config = PolicyConfig { files: vec![file.display().to_string()], ..plain() };
    let told_at = |time: &str| {
        let mut loaded = load(&config, &[]).unwrap();
        let at: crate::clock::Timestamp = serde_json::from_value(serde_json::json!(time)).unwrap();
        loaded.lint(None, at);
        loaded.warnings.into_iter().find(|found| found.code == Some("P010")).map(|found| found.message)
    };
    assert_eq!(told_at("2026-03-01T00:00:00Z"), None);
    assert_eq!(told_at("2026-03-05T00:00:00Z").unwrap(), "`until: 2026-03-10` ends in 6 days; the allow is gone then");
    assert_eq!(
        told_at("2026-03-10T23:00:00Z").unwrap(),
        "`until: 2026-03-10` ends within a day; the allow is gone then"
    );
    assert_eq!(told_at("2026-03-11T00:00:00Z").unwrap(), "`until: 2026-03-10` is past; the allow is gone");
}

#[test]
fn many_rules_are_linted_in_time() {
    let rules: String = (0..10_000)
        .map(|i| {
            let verdict = if i % 2 == 0 { "allow" } else { "deny" };
            format!("      - {{ verdict: {verdict}, tool: read_file, path: 'd{i}/', reason: r }}\n")
        })
        .collect();
    let policy = format!("version: 1\ngroups:\n  default:\n    rules:\n{rules}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("p.yaml");
    std::fs::write(&file, policy).unwrap();
    let config = PolicyConfig { files: vec![file.display().to_string()], ..plain() };
    let mut loaded = load(&config, &[]).unwrap();
    let begun = std::time::Instant::now();
    loaded.lint(None, Clock::system().now());
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    assert_eq!(loaded.warnings.iter().filter(|found| found.code == Some("P001")).count(), 0);
}

#[test]
fn the_names_of_unmarked_arguments_are_the_recorded_ones() {
    let marked = |name: &str, argument: &str| {
        let catalogues = crate::catalog::Catalogue::builtin_names().into_iter();
        let mut tools = catalogues.filter_map(crate::catalog::Catalogue::builtin).filter_map(|c| c.tools.get(name));
        tools
            .any(|tool| tool.arguments.iter().any(|(pointer, _)| pointer.0.first().is_some_and(|at| **at == *argument)))
    };
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tools")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let list: serde_json::Value = serde_json::from_str(&text).unwrap();
        for tool in list["tools"].as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            for argument in tool["inputSchema"]["properties"].as_object().into_iter().flatten().map(|(name, _)| name) {
                let is_known =
                    marked(name, argument) || crate::policy::lint::arguments::UNMARKED.contains(&&**argument);
                assert!(is_known, "{name}: add `{argument}` to the list");
            }
        }
    }
}

//! The reference pages are true: every block of YAML loads, every key of the readers is explained, and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use portcullis::catalog::{Argument, Catalogue};
use portcullis::config::{self, PolicyConfig};
use portcullis::diagnostic::Diagnostic;
use portcullis::policy;
use portcullis::record::Access;
use regex::Regex;

/// A field that no reader knows, and that is near to none.
const STRANGER: &str = "qqqqqqqqqqqqqqqqqqqq";

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect(name)
}

/// README.md and all pages of `docs/`.
fn pages() -> Vec<String> {
    let entries = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")).expect("docs/");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let pages = names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}"));
    pages.chain(["README.md".to_owned()]).collect()
}

fn load_policy(text: &str) -> Result<(), Vec<Diagnostic>> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("policy.yaml");
    fs::write(&file, text).expect("a file");
    let config = PolicyConfig { files: vec![file.display().to_string()], ..PolicyConfig::default() };
    policy::load(&config, &[]).map(drop)
}

fn load_config(text: &str) -> Result<(), Vec<Diagnostic>> {
    let folder = tempfile::tempdir().expect("a folder");
    for made in ["work", "policies"] {
        fs::create_dir(folder.path().join(made)).expect("a folder");
    }
    let file = folder.path().join("portcullis.yaml");
    let variable = Regex::new(r"\$\{([A-Z_]+)\}").expect("a pattern");
    let value = |found: &regex::Captures<'_>| match found[1].ends_with("_URL") {
        true => "https://hooks.example/x".to_owned(),
        false => "x".repeat(32),
    };
    fs::write(&file, variable.replace_all(text, value).as_bytes()).expect("a file");
    config::load(&file).map(drop)
}

/// A whole policy of what a page shows of one.
fn whole(kind: &str, text: &str) -> String {
    match kind {
        "rules" => {
            let list = text.strip_prefix("rules:\n").unwrap_or(text);
            let list: String = list.lines().map(|line| format!("      {line}\n")).collect();
            format!("version: 1\ngroups:\n  default:\n    rules:\n{list}")
        }
        _ if text.starts_with("version:") => text.to_owned(),
        _ => format!("version: 1\n{text}"),
    }
}

#[test]
fn every_block_of_yaml_loads() {
    let fence = Regex::new(r"(?ms)^```yaml *(\w*)[^\n]*\n(.*?)^```").expect("a pattern");
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for name in pages() {
        let text = page(&name);
        let first = fence.captures_iter(&text).find(|found| &found[1] == "policy").map(|found| found[2].to_owned());
        for found in fence.captures_iter(&text) {
            let yaml = &found[2];
            let kind = if found[1].is_empty() { guessed(yaml) } else { &found[1] };
            *seen.entry(kind.to_owned()).or_default() += 1;
            let loaded = match kind {
                "policy" | "rules" => load_policy(&whole(kind, yaml)),
                "config" => load_config(yaml),
                "tests" => test_policy(first.as_deref().expect("a policy before its tests"), yaml),
                other => panic!("{name}: a block of `yaml {other}`; say policy, rules, tests or config"),
            };
            if let Err(errors) = loaded {
                let errors: String = errors.iter().map(|error| format!("{error}\n")).collect();
                panic!("{name}: {errors}in\n{yaml}");
            }
        }
    }
    assert!(["policy", "rules", "config"].iter().all(|kind| seen.get(*kind).is_some_and(|n| *n > 1)), "{seen:?}");
}

/// What a block is that does not say so.
fn guessed(yaml: &str) -> &str {
    match yaml.split([':', ' ']).next().unwrap_or_default() {
        "-" if yaml.contains("\n  call:") => "tests",
        "-" | "rules" => "rules",
        "version" | "guardrails" | "groups" | "approvals" | "approval" => "policy",
        _ => "",
    }
}

/// Loads the page's first policy with tests beside it.
fn test_policy(policy_text: &str, tests: &str) -> Result<(), Vec<Diagnostic>> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("policy.yaml");
    fs::write(&file, policy_text).expect("a file");
    fs::write(folder.path().join("policy.test.yaml"), tests).expect("a file");
    let config = PolicyConfig { files: vec![file.display().to_string()], ..PolicyConfig::default() };
    policy::load(&config, &[]).map(drop)
}

/// Where a stranger stands in a policy, and the heading of the table that explains its neighbours.
const POLICY_KEYS: [(&str, &str); 5] = [
    ("Keys of a file", "STRANGER: 1"),
    ("Keys of a group", "groups: { g: { STRANGER: 1 } }"),
    ("Keys of a rule", "groups: { g: { rules: [{ verdict: deny, tool: x, STRANGER: 1 }] } }"),
    ("Matchers of `args`", "groups: { g: { rules: [{ verdict: deny, args: { x: { STRANGER: 1 } } }] } }"),
    ("Keys of an approval", "approvals: { a: { STRANGER: 1 } }"),
];

/// The same of `portcullis.yaml`.
const CONFIG_KEYS: [(&str, &str, &str); 14] = [
    ("docs/configuration.md", "Keys of portcullis.yaml", "STRANGER: 1"),
    ("docs/configuration.md", "`listen`", "listen: { STRANGER: 1 }"),
    ("docs/configuration.md", "`listen.mcp`", "listen: { mcp: { STRANGER: 1 } }"),
    ("docs/configuration.md", "`listen.admin`", "listen: { admin: { STRANGER: 1 } }"),
    ("docs/configuration.md", "`policy`", "policy: { STRANGER: 1 }"),
    ("docs/configuration.md", "An upstream", "upstreams: { u: { STRANGER: 1 } }"),
    ("docs/configuration.md", "An agent", "agents: [{ STRANGER: 1 }]"),
    ("docs/configuration.md", "`claims` of an agent", "agents: [{ claims: { STRANGER: 1 } }]"),
    ("docs/configuration.md", "An approver", "approvers: [{ STRANGER: 1 }]"),
    ("docs/configuration.md", "A token", "agents: [{ tokens: [{ STRANGER: 1 }] }]"),
    ("docs/configuration.md", "`approvals`", "approvals: { STRANGER: 1 }"),
    ("docs/configuration.md", "`audit`", "audit: { STRANGER: 1 }"),
    ("docs/notifications.md", "A channel", "notify: [{ STRANGER: 1 }]"),
    ("docs/catalogue.md", "Keys of a tool", "upstreams: { u: { catalogue: { tools: { t: { STRANGER: 1 } } } } }"),
];

const PATH_KEYS: (&str, &str, &str) = (
    "docs/catalogue.md",
    "Keys of a path",
    "upstreams: { u: { catalogue: { tools: { t: { /a: { path: read, STRANGER: 1 } } } } } }",
);

#[test]
fn every_key_of_a_policy_is_explained_and_no_other() {
    let load = |yaml: &str| load_policy(&format!("version: 1\n{yaml}\n"));
    for (heading, yaml) in POLICY_KEYS {
        compare("docs/policy.md", heading, yaml, &load);
    }
}

#[test]
fn every_key_of_the_configuration_is_explained_and_no_other() {
    for (name, heading, yaml) in CONFIG_KEYS.into_iter().chain([PATH_KEYS]) {
        compare(name, heading, yaml, &|yaml| load_config(&format!("{yaml}\n")));
    }
}

/// Compares a table with what the reader knows where the stranger stands; a key of a later version may be explained.
fn compare(name: &str, heading: &str, yaml: &str, load: &dyn Fn(&str) -> Result<(), Vec<Diagnostic>>) {
    let errors = load(&yaml.replace("STRANGER", STRANGER)).expect_err("a stranger");
    let (explained, known) = (explained(&page(name), heading), known(&errors));
    let missing: Vec<_> = known.difference(&explained).collect();
    assert!(missing.is_empty(), "{name}, {heading}: no word of {missing:?}");
    for key in explained.difference(&known) {
        let errors = load(&yaml.replace("STRANGER", key)).expect_err("a key of a later version");
        let later = format!("`{key}` is not built yet");
        assert!(errors.iter().any(|error| error.message == later), "{name}, {heading}: there is no `{key}`");
    }
}

/// What the reader says that it knows beside the stranger.
fn known(errors: &[Diagnostic]) -> BTreeSet<String> {
    let error = errors.iter().find(|error| error.message.contains(STRANGER)).expect("the stranger is told of");
    let help = error.help.as_deref().and_then(|help| help.strip_prefix("it has ")).expect("what there is");
    help.split(", ").map(str::to_owned).collect()
}

/// The keys in the first column of the first table under a heading.
fn explained(page: &str, heading: &str) -> BTreeSet<String> {
    let lines =
        page.lines().skip_while(|line| line.trim_start_matches('#').trim() != heading || !line.starts_with('#'));
    let table = lines.skip(1).take_while(|line| !line.starts_with('#')).skip_while(|line| !line.starts_with('|'));
    let rows = table.take_while(|line| line.starts_with('|')).skip(2);
    let key = |row: &str| row.split('`').nth(1).map(str::to_owned);
    rows.map(|row| key(row).unwrap_or_else(|| panic!("no key in {row}"))).collect()
}

/// The line after which the page is held equal to the code.
const HELD: &str = "<!-- what follows is held equal to the code by a test; PORTCULLIS_WRITE_DOCS=1 writes it -->\n";

#[test]
fn the_built_in_catalogue_is_listed_as_it_is() {
    let text = page("docs/catalogue.md");
    let (before, listed) = text.split_once(HELD).expect("the line that separates what is written from what is held");
    let wanted = listing();
    if listed != wanted && std::env::var_os("PORTCULLIS_WRITE_DOCS").is_some() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/catalogue.md");
        fs::write(file, format!("{before}{HELD}{wanted}")).expect("docs/catalogue.md");
    } else {
        assert!(listed == wanted, "docs/catalogue.md: run the tests with PORTCULLIS_WRITE_DOCS=1");
    }
}

fn listing() -> String {
    let mut text = String::new();
    for name in Catalogue::builtin_names() {
        let catalogue = Catalogue::builtin(name).expect("a name of the list");
        let _ = writeln!(text, "\n### `{name}`\n\n| tool | category | arguments |\n|---|---|---|");
        for (tool, entry) in &catalogue.tools {
            let mut marks: Vec<String> =
                entry.arguments.iter().map(|(at, argument)| format!("`{at}` {}", word(argument))).collect();
            marks.extend(entry.argv.iter().map(|words| format!("`{}`", words.join(" "))));
            let category = entry.category.as_deref().unwrap_or_default();
            let _ = writeln!(text, "| `{tool}` | {category} | {} |", marks.join(", "));
        }
    }
    text
}

fn word(argument: &Argument) -> String {
    match argument {
        Argument::Path { access, recursive, .. } => {
            let access = match access {
                Some(Access::Read) => "read",
                Some(Access::Write) => "write",
                Some(Access::Delete) => "delete",
                None => "?",
            };
            format!("path {access}{}", if *recursive { " and below" } else { "" })
        }
        other => format!("{other:?}").to_lowercase(),
    }
}

//! What refuses a load, and how it is said.

use super::*;

fn errors(text: &str) -> String {
    match loaded(&[("base.yaml", text)], PolicyConfig::default()) {
        Ok(_) => String::new(),
        Err(found) => told(&found),
    }
}

fn group(rules: &str) -> String {
    format!("version: 1\ngroups:\n  g:\n    rules:\n      - {rules}\n")
}

#[test]
fn each_slip_is_told_with_its_place_and_a_way_out() {
    for (rule, place, says) in [
        ("{verdict: deny, tools: x}", "base.yaml:5:25", "unknown field `tools`"),
        ("{verdict: deny, tools: x}", "base.yaml:5:25", "did you mean `tool`?"),
        ("{tool: x}", "base.yaml:5:9", "`verdict` is missing"),
        ("{verdict: allow}", "base.yaml:5:9", "without a matching field"),
        ("{verdict: on, tool: x}", "base.yaml:5:19", "none of allow, ask, deny"),
        ("{verdict: deny, tool: []}", "base.yaml:5:31", "empty"),
        ("{verdict: deny, tool: ''}", "base.yaml:5:31", "empty"),
        ("{verdict: deny, tool: 5}", "base.yaml:5:31", "expected a text"),
        ("{verdict: deny, tool: '@fs_raed'}", "base.yaml:5:31", "did you mean `@fs_read`?"),
        ("{verdict: deny, path: [docs/, ~/x]}", "base.yaml:5:39", "`~`"),
        ("{verdict: deny, path: 'a['}", "base.yaml:5:31", "`]`"),
        ("{verdict: deny, upstream: Mail}", "base.yaml:5:35", "no upstream can have this id"),
        ("{verdict: deny, category: filesytem}", "base.yaml:5:35", "did you mean `filesystem`?"),
        ("{verdict: deny, access: append}", "base.yaml:5:33", "none of read, write, delete"),
        ("{verdict: deny, command: git -c}", "base.yaml:5:34", "an option among the words"),
        ("{verdict: ask, tool: x, approval: {quorum: 0}}", "base.yaml:5:52", "a quorum that is none"),
        ("{verdict: ask, tool: x, approval: {approvers: [a, b, a]}}", "base.yaml:5:62", "`a` is named twice"),
        ("{verdict: ask, tool: x, approval: {approvers: 'a b'}}", "base.yaml:5:55", "`a b` is no name"),
        ("{verdict: ask, tool: x, approval: {escalate: {after: 5m}}}", "base.yaml:5:54", "`to` is missing"),
        (
            "{verdict: ask, tool: x, approval: {expires: 5m, escalate: {after: 5m, to: a}}}",
            "base.yaml:5:43",
            "`escalate.after` is not before `expires`",
        ),
        ("{verdict: ask, tool: x, approval: boss}", "base.yaml:5:43", "no approval `boss`"),
        ("{verdict: deny, tool: x, approval: {expires: 8h}}", "base.yaml:5:34", "belongs to an ask"),
        (
            "{verdict: deny, tool: x, except: [{tool: y, except: [{tool: z}]}]}",
            "base.yaml:5:53",
            "unknown field `except`",
        ),
        ("{verdict: deny, tool: x, except: [{}]}", "base.yaml:5:43", "without a matching field"),
        ("{verdict: deny, args: {a: 5}}", "base.yaml:5:35", "expected matchers"),
        ("{verdict: deny, args: {a: {}}}", "base.yaml:5:35", "no matcher"),
        ("{verdict: deny, args: {a/b: {eq: 5}}}", "base.yaml:5:32", "write `/a/b`"),
        ("{verdict: deny, args: {a: {gt: '5'}}}", "base.yaml:5:40", "expected a number"),
        ("{verdict: deny, args: {a: {eq: 0x10}}}", "base.yaml:5:40", "expected a number"),
        ("{verdict: deny, args: {a: {regex: 'a)|(b'}}}", "base.yaml:5:43", "regex"),
        ("{verdict: deny, args: {a: {in: []}}}", "base.yaml:5:40", "empty"),
        ("{verdict: deny, tool: x, name: 'builtin:x'}", "base.yaml:5:40", "cannot name"),
        ("{verdict: deny, tool: x, reason: null}", "base.yaml:5:34", "`reason` has no value"),
    ] {
        let told = errors(&group(rule));
        assert!(told.contains(place) && told.contains(says), "{rule}\n{told}");
    }
}

#[test]
fn all_errors_are_told_at_once_over_all_files() {
    let found = loaded(
        &[
            ("a.yaml", "version: 2\ngroups:\n  g:\n    rules: [ { verdict: deny, tool: x, name: n } ]\n"),
            ("b.yaml", "version: 1\napproval: { expires: 0s }\ngroups:\n  g: {}\n  h: { extends: nobody, rules: [ { verdict: maybe, name: n } ] }\n"),
        ],
        plain(),
    )
    .unwrap_err();
    let told = told(&found);
    for says in [
        "version 2",
        "a group `g` already",
        "no group `nobody`",
        "a time span",
        "none of allow",
        "without a matching field",
    ] {
        assert!(told.contains(says), "{says}\n{told}");
    }
}

#[test]
fn names_are_unique_over_all_files() {
    let file =
        |rule: &str| format!("version: 1\nguardrails: [ {{ verdict: deny, tool: x, name: n, reason: r }} ]\n{rule}");
    let told =
        told(&loaded(&[("a.yaml", &file("")), ("b.yaml", &file("approval: { run: always }"))], plain()).unwrap_err());
    assert!(told.contains("b.yaml:2") && told.contains("a rule `n` already") && told.contains("a.yaml:2"), "{told}");
}

#[test]
fn one_top_level_approval_over_all_files() {
    let found = loaded(
        &[("a.yaml", "version: 1\napproval: { run: always }\n"), ("b.yaml", "version: 1\napproval: { run: always }\n")],
        plain(),
    );
    let told = told(&found.unwrap_err());
    assert!(told.contains("b.yaml:2") && told.contains("a second top-level"), "{told}");
}

#[test]
fn inheritance_leads_somewhere_and_never_loosens() {
    let told = errors(
        "version: 1\ngroups:\n  a: { extends: b }\n  b: { extends: c }\n  c: { extends: a }\n  d: { extends: a }\n",
    );
    assert!(told.contains("group `a` extends itself"), "{told}");
    let told = errors(
        "version: 1\ngroups:\n  a: { otherwise: deny }\n  b: { extends: a }\n  c: { extends: b, otherwise: ask }\n",
    );
    assert!(told.contains("base.yaml:5:31") && told.contains("looser"), "{told}");
    assert_eq!(errors("version: 1\ngroups:\n  a: { otherwise: ask }\n  b: { extends: a, otherwise: deny }\n"), "");
}

#[test]
fn a_guardrail_is_deny_or_ask() {
    let told = errors("version: 1\nguardrails:\n  - { verdict: allow, tool: x }\n");
    assert!(told.contains("base.yaml:3:16") && told.contains("deny or ask"), "{told}");
}

#[test]
fn what_the_configuration_requires_must_be_there() {
    let config = |require: &str, disable: &str| PolicyConfig {
        require: vec![require.into()],
        disable: vec![disable.into()],
        ..PolicyConfig::default()
    };
    let file = [("a.yaml", "version: 1\ngroups: { g: {} }\n")];
    assert!(loaded(&file, config("secrets", "runs-later")).is_ok());
    assert!(loaded(&file, config("g", "runs-later")).is_ok());
    assert!(told(&loaded(&file, config("secrets", "secrets")).unwrap_err()).contains("`secrets`"));
    assert!(told(&loaded(&file, config("lost", "secrets")).unwrap_err()).contains("`lost`"));
    assert!(told(&loaded(&file, config("g", "secret")).unwrap_err()).contains("did you mean `secrets`?"));
}

#[test]
fn a_lost_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let glob =
        |pattern: &str| PolicyConfig { files: vec![format!("{}/{pattern}", folder.path().display())], ..plain() };
    std::fs::write(folder.path().join("a.yaml"), "version: 1\n").unwrap();
    std::fs::write(folder.path().join("a.test.yaml"), "[]").unwrap();
    assert_eq!(load(&glob("*.yaml"), &[]).unwrap().files, [folder.path().join("a.yaml")]);
    assert!(told(&load(&glob("b*.yaml"), &[]).unwrap_err()).contains("no policy file matches"));
    assert!(told(&load(&glob("*.test.yaml"), &[]).unwrap_err()).contains("no policy file matches"));
    std::os::unix::fs::symlink("gone", folder.path().join("b.yaml")).unwrap();
    assert!(told(&load(&glob("*.yaml"), &[]).unwrap_err()).contains("cannot be read"));
}

#[test]
fn the_version_knows_names_bytes_and_switches() {
    let text = "version: 1\ngroups: { g: {} }\n";
    let version = |files: &[(&str, &str)], config| loaded(files, config).unwrap().policy.version;
    let first = version(&[("a.yaml", text)], plain());
    assert!(first.starts_with("sha256:") && first.len() == 71, "{first}");
    assert_eq!(first, version(&[("a.yaml", text)], plain()), "wherever the folder is");
    assert_ne!(first, version(&[("a.yaml", &format!("{text}# more\n"))], plain()));
    assert_ne!(first, version(&[("a.yaml", text)], PolicyConfig::default()));
    let two = |a, b| version(&[(a, "version: 1\n"), (b, text)], plain());
    assert_ne!(two("a.yaml", "b.yaml"), two("a.yaml", "c.yaml"));
}

#[test]
fn nameless_rules_are_told_apart() {
    let policy = policy("groups: { g: { rules: [ { verdict: deny, tool: x }, { verdict: ask, tool: x } ] } }");
    let labels: Vec<&str> = policy.rules().iter().map(|rule| rule.label.as_str()).collect();
    assert!(labels[0].ends_with("base.yaml:2") && labels[1].ends_with("base.yaml:2:53"), "{labels:?}");
}

#[test]
fn rules_that_can_never_match_do_not_load() {
    let rule = |fields: &str| errors(&group(&format!("{{verdict: allow, {fields}}}")));
    for (fields, says) in [
        ("tool: t, path: [src/, '!src/x']", "except: [{ path: src/x }]"),
        ("tool: '!t'", "`!` is no negation"),
        ("tool: “t”", "typographic"),
        ("tool: 'a, b'", "[a, b]"),
        ("host: 'a.example,b.example'", "write a list"),
        ("path: 'docs/,src/'", "write a list"),
        ("host: .evil.example", "*.evil.example"),
        ("tool: '@fs_read', access: write", "never matches"),
        ("tool: '@fs_write', access: read", "never matches"),
        ("sql: select, path: docs/", "never matches"),
        ("host: a.example, path: docs/", "never matches"),
        ("host: a.example, table: t", "never matches"),
        ("tool: t, args: { a: { gt: 100, lt: 50 } }", "no number"),
        ("tool: t, args: { a: { ge: 1, lt: 1 } }", "no number"),
        ("tool: t, args: { a: { regex: /x/i } }", "(?i)x"),
    ] {
        let said = rule(fields);
        assert!(said.contains(says), "{fields}: {said}");
    }
    for fields in [
        "tool: 'a{b,c}'",
        "path: 'docs/a,b.md'",
        "tool: ['@fs_read', t], access: write",
        "tool: '@fs_write', access: [read, write]",
        "tool: t, args: { a: { ge: 1, le: 1 }, b: { regex: /srv/x/ } }",
        "sql: select, table: t",
    ] {
        assert_eq!(rule(fields), "", "{fields}");
    }
}

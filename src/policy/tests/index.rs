//! The index against trying every rule, over random rules and calls of every kind of facet.

use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::catalog::{Argument, Tool};
use crate::facet::{Stray, extract};
use crate::policy::commands::denies_a_word;
use crate::policy::index::{Names, Near, RuleSet};
use crate::policy::judge::{matches, target};
use crate::policy::reach;

/// Fields on what a facet is.
const FIELDS: &[&str] = &[
    "command: rm",
    "command: [git push, cat]",
    "command: Cat",
    "command: /usr/bin/cat",
    "command: ./x",
    "command: git status",
    "command: kubectl get",
    "command: xargs",
    "option: -f",
    "option: [--force, -n]",
    "path: docs/",
    "path: [Docs/A, \"**/.env\"]",
    "path: \"**/x/\"",
    "path: \"*.md\"",
    "path: /",
    "path: ./",
    "path: [/etc/, x/y]",
    "access: [write, delete]",
    "host: [docs.example, \"*.evil.example\"]",
    "host: \"@internal\"",
    "sql: [select, delete]",
    "table: [t, \"s.*\"]",
    "method: tools/call",
    "args: { command: { contains: rm } }",
    "tool: \"@shell\"",
    "tool: \"@fs_read\"",
    "tool: t",
    "tool: [T, u]",
    "tool: \"*\"",
    "upstream: files",
    "upstream: \"f*\"",
];

const TEXTS: &[&str] = &[
    "cat docs/a.md",
    "CAT docs/a.md",
    "/bin/cat docs/x/y > DOCS/a",
    "rm -rf x; git push --force",
    "git -C docs push",
    "git $x",
    "$x docs/a",
    "r''m docs/.env",
    "cat 'unfinished",
    "echo `rm x` $(cat docs/a.md)",
    "env X=1 rm x",
    "sh -c 'cat docs/a.md'",
    "xargs rm",
    "./x docs/a",
    "../x/cat a",
    "curl https://a.evil.example/ http://127.0.0.1/",
    "cd docs && cat a.md *.md",
    "kubectl -n x get pods",
    "find . -exec cat {} +",
    "rm.exe x",
    "",
    "# nothing",
    "cat<<E\nrm\nE",
    "function f { rm x; }; f",
];

fn rule() -> impl Strategy<Value = String> {
    // A rule that can never match does not load.
    let may_match = |fields: &Vec<&str>| {
        let has = |names: &[&str]| fields.iter().any(|field| names.iter().any(|name| field.starts_with(name)));
        let things = [has(&["path:", "access:"]), has(&["host:"]), has(&["sql:", "table:"])];
        let reads = has(&["tool: \"@fs_read\""]) && has(&["access:"]);
        things.into_iter().filter(|has| *has).count() < 2 && !reads
    };
    let fields = move || {
        let drawn = proptest::collection::vec(select(FIELDS), 1..4);
        drawn.prop_filter("a rule that can never match", may_match)
    };
    (select(vec!["allow", "ask", "deny"]), fields(), proptest::option::of(fields())).prop_map(
        |(verdict, fields, except)| {
            let list = |mut fields: Vec<&str>| {
                fields.sort_unstable();
                fields.dedup_by_key(|field| field.split(':').next());
                fields.join(", ")
            };
            let except = except.map(|except| format!(", except: [ {{ {} }} ]", list(except))).unwrap_or_default();
            format!("{{ verdict: {verdict}, {}{except}, reason: r }}", list(fields))
        },
    )
}

/// Arguments of a tool that takes everything.
fn arguments() -> impl Strategy<Value = String> {
    let member = |name: &'static str, values: &'static [&'static str]| {
        proptest::option::of(select(values))
            .prop_map(move |value| value.map(|value| format!("\"{name}\": {}", serde_json::json!(value))))
    };
    (
        member("command", TEXTS),
        member("path", &["docs/a.md", "DOCS/A", "/etc/passwd", "x/y", ".", "../w/docs"]),
        member(
            "url",
            &["https://docs.example/a", "http://a.evil.example", "http://[::1]/", "file:///w/docs/a.md", "mailto:a"],
        ),
        member("to", &["a@docs.example", "a@b.evil.example, c@localhost", "nobody"]),
        member("sql", &["select * from t", "delete from s.u", "not sql", "update t set a = 1; select 1"]),
        member("other", &["docs/.env", "rm", "/etc/x"]),
    )
        .prop_map(|(command, path, url, to, sql, other)| {
            let members: Vec<String> = [command, path, url, to, sql, other].into_iter().flatten().collect();
            format!("{{{}}}", members.join(", "))
        })
}

fn everything() -> Tool {
    let path = Argument::Path { access: None, recursive: false, missing: None, base: None, keep_last: false };
    let arguments = [
        ("/command", Argument::Command),
        ("/path", path),
        ("/url", Argument::Url),
        ("/to", Argument::Address),
        ("/sql", Argument::Sql),
    ];
    let arguments = arguments.into_iter().map(|(pointer, argument)| (pointer.parse().unwrap(), argument)).collect();
    Tool { arguments, ..Tool::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_rule_that_matches_is_left_out(
        drawn in proptest::collection::vec(rule(), 1..6),
        arguments in arguments(),
        tool in select(vec!["t", "T", "u", "v"]),
    ) {
        let drawn: Vec<&str> = drawn.iter().map(String::as_str).collect();
        let policy = super::rules(&drawn);
        let space = space();
        let arguments = json(&arguments);
        let Ok(touched) = extract(&everything(), &space, Some(arguments.root())) else { return Ok(()) };
        let subject = Subject { arguments: Some(arguments.root()), ..call(tool) };
        let set = RuleSet::new(policy.rules().to_vec());
        let concerning = set.concerning(&Names::of(&subject));
        for facet in &touched.facets {
            let target = target(facet, &touched.facets);
            let near: Vec<&str> = concerning.near(&Near::of(target)).map(|rule| rule.label.as_str()).collect();
            for rule in policy.rules().iter().filter(|rule| matches(rule, &subject, target)) {
                prop_assert!(near.contains(&rule.label.as_str()), "{rule:?} for {facet:?}");
            }
        }
        for at in touched.strays.iter().flat_map(|Stray { locations, .. }| locations) {
            let near: Vec<&str> = concerning.near(&Near::at(at)).map(|rule| rule.label.as_str()).collect();
            for rule in policy.rules().iter().filter(|rule| reach::guards(&subject, rule, at)) {
                prop_assert!(near.contains(&rule.label.as_str()), "{rule:?} for {at}");
            }
        }
        for command in touched.facets.iter().filter_map(|facet| target(facet, &touched.facets).running) {
            let words = Near::Words(&command.command.seen().names);
            let near: Vec<&str> = concerning.near(&words).map(|rule| rule.label.as_str()).collect();
            let of_the_call = concerning.near(&Near::Every).filter(|rule| denies_a_word(rule, command.command));
            for rule in of_the_call {
                prop_assert!(near.contains(&rule.label.as_str()), "{rule:?} for {:?}", command.command);
            }
        }
    }
}

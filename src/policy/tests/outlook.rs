//! What is said of a tool before it is called must be so whatever it is called with.

use super::*;
use crate::catalog::{Argument, Catalogue, Pointer, Tool};
use crate::policy::{Prospect, outlook};
use crate::record::{Depth, Source, ToolVerdict, Verdict};
use ToolVerdict::{Allow, Ask, Deny, Depends};

fn reader() -> Tool {
    Catalogue::builtin("filesystem").unwrap().tools["read_text_file"].clone()
}

fn of(policy: &Policy, entry: &Tool, takes_text: bool) -> ToolVerdict {
    let prospect = Prospect {
        group: "g",
        agent: Some("ana"),
        source: Some(Source::Interactive),
        depth: Some(Depth::Root),
        at: crate::clock::Timestamp::from_millis(1_796_000_000_000),
        upstream: "files",
        tool: "t",
        entry,
        takes_text,
    };
    outlook(policy, &prospect)
}

fn group(otherwise: &str, given: &[&str]) -> Policy {
    let given: String = given.iter().map(|rule| format!("      - {rule}\n")).collect();
    let given = if given.is_empty() { String::new() } else { format!("    rules:\n{given}") };
    policy(&format!("groups:\n  g:\n    otherwise: {otherwise}\n{given}"))
}

#[test]
fn only_what_names_nothing_of_a_call_decides_for_all() {
    let (bare, reads) = (Tool::default(), reader());
    for (otherwise, given, plain, reading) in [
        ("ask", &[][..], Ask, Ask),
        ("deny", &[], Deny, Deny),
        ("allow", &[], Allow, Depends),
        ("ask", &["{ verdict: deny, tool: T }"], Deny, Deny),
        ("ask", &["{ verdict: deny, upstream: files, tool: \"@any\" }"], Deny, Deny),
        ("ask", &["{ verdict: deny, upstream: mail, tool: \"@any\" }"], Ask, Ask),
        ("ask", &["{ verdict: deny, tool: t, agent: ana }"], Deny, Deny),
        // The client may say that it is another than its settings say.
        ("allow", &["{ verdict: deny, tool: t, source: background }"], Depends, Depends),
        ("ask", &["{ verdict: deny, tool: t, category: shell }"], Deny, Ask),
        ("allow", &["{ verdict: deny, tool: t, path: docs/ }"], Allow, Depends),
        ("allow", &["{ verdict: deny, tool: t, args: { x: { eq: 1 } } }"], Depends, Depends),
        ("allow", &["{ verdict: deny, tool: t, except: [{ args: { x: { eq: 1 } } }] }"], Depends, Depends),
        ("allow", &["{ verdict: deny, tool: t, except: [{ upstream: files }] }"], Allow, Depends),
        ("allow", &["{ verdict: deny, tool: t, except: [{ upstream: mail }] }"], Deny, Deny),
        ("ask", &["{ verdict: allow, tool: t }"], Allow, Depends),
        ("deny", &["{ verdict: allow, tool: \"@fs_read\", path: docs/ }"], Deny, Depends),
        ("allow", &["{ verdict: ask, tool: t }"], Ask, Ask),
        ("allow", &["{ verdict: ask, tool: \"@fs_read\" }"], Allow, Depends),
    ] {
        let policy = group(otherwise, given);
        assert_eq!((of(&policy, &bare, false), of(&policy, &reads, true)), (plain, reading), "{otherwise} {given:?}");
    }
    assert_eq!(of(&policy("groups: { other: { otherwise: allow } }"), &bare, false), Deny, "there is no such group");
    let shadow = "groups:\n  g:\n    mode: shadow\n    until: 2027-06-01\n    otherwise: deny\n    rules: [{ verdict: deny, tool: t }]";
    assert_eq!(of(&policy(shadow), &bare, false), Allow, "in shadow mode only guardrails are obeyed");
    assert_eq!(of(&policy(&shadow.replace("2027", "2026")), &bare, false), Deny, "it is over");
    // A text may name a guarded path.
    assert_eq!(of(&guarded("groups: { g: { otherwise: allow } }"), &bare, true), Depends);
    assert_eq!(of(&guarded("groups: { g: { otherwise: allow } }"), &bare, false), Allow);
}

#[test]
fn an_argument_that_runs_or_opens_anything_is_not_bare() {
    for argument in [Argument::Command, Argument::Url, Argument::Glob, Argument::Cwd, Argument::Stdin, Argument::Code] {
        let entry = Tool { arguments: vec![(Pointer(vec!["x".into()]), argument)], ..Tool::default() };
        assert_eq!(of(&group("allow", &[]), &entry, false), Depends, "{entry:?}");
    }
    let line = Tool { argv: Some(vec!["ls".into()]), ..Tool::default() };
    assert_eq!(of(&group("allow", &[]), &line, false), Depends);
}

proptest::proptest! {
    /// What is said for sure is what the judge says, of a call with a path and of one without.
    #[test]
    fn the_judge_agrees(picked in proptest::collection::vec(0..RULES.len(), 0..5), otherwise in 0..3usize, path in 0..3usize) {
        let given: Vec<&str> = picked.iter().map(|at| RULES[*at]).collect();
        let policy = group(["ask", "deny", "allow"][otherwise], &given);
        let place = ["/w/docs/a", "/w/src/b", "/etc/c"][path];
        for (entry, takes_text, facets) in [
            (Tool::default(), false, vec![Facet { kind: FacetKind::Bare, floors: Vec::new() }]),
            (reader(), true, vec![reads(place)]),
        ] {
            let subject = Subject {
                group: "g", agent: Some("ana"), source: Some(Source::Interactive), depth: Some(Depth::Root),
                upstream: Some("files"), category: entry.category.as_deref(), ..call("t")
            };
            let verdict = judged(&policy, &subject, &facets).verdict;
            let right = match of(&policy, &entry, takes_text) {
                Deny => verdict == Verdict::Deny,
                Ask => verdict != Verdict::Allow,
                Allow => verdict == Verdict::Allow,
                Depends => true,
            };
            proptest::prop_assert!(right, "{given:?} {verdict:?}");
        }
    }
}

const RULES: [&str; 12] = [
    "{ verdict: deny, tool: t }",
    "{ verdict: deny, tool: other }",
    "{ verdict: deny, path: docs/ }",
    "{ verdict: deny, tool: \"@any\", except: [{ path: docs/ }] }",
    "{ verdict: deny, category: filesystem }",
    "{ verdict: deny, category: shell }",
    "{ verdict: ask, tool: \"@fs_any\" }",
    "{ verdict: ask, upstream: files, source: background }",
    "{ verdict: allow, tool: t }",
    "{ verdict: allow, tool: t, except: [{ agent: ana }] }",
    "{ verdict: allow, tool: \"@fs_read\", path: docs/ }",
    "{ verdict: allow, agent: ana, category: filesystem }",
];

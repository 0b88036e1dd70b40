//! Shell texts against real shells: whatever is allowed is run by bash and by dash, in a sandbox of stubs and canaries, and
//! must have done nothing that the policy does not allow.
//!
//! `PORTCULLIS_SHELL_TEXTS` is how many texts are tried (some hundred if it is not set), `PORTCULLIS_SHELL_SEED` where the
//! generator starts. The same numbers give the same texts.

mod everyday;
mod gate;
mod policy;
mod sandbox;
mod texts;

use std::collections::BTreeMap;

use gate::Gate;
use portcullis::record::Verdict;
use sandbox::Sandbox;
use texts::Texts;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn nothing_runs_in_a_shell_that_was_not_allowed() {
    let sandbox = Sandbox::new();
    let gate = Gate::new(sandbox.root(), policy::GENEROUS);
    let mut texts = Texts::new(number("PORTCULLIS_SHELL_SEED", 1));
    let mut seen: BTreeMap<Verdict, u64> = BTreeMap::new();
    let mut wrong = Vec::new();
    for _ in 0..number("PORTCULLIS_SHELL_TEXTS", 600) {
        let text = texts.next_text();
        let verdict = gate.verdict(&text);
        *seen.entry(verdict).or_default() += 1;
        if verdict == Verdict::Allow {
            wrong.extend(sandbox.wrong(&text));
        }
    }
    println!("{seen:?}");
    assert!(wrong.is_empty(), "{} texts did what is not allowed:\n{}", wrong.len(), wrong.join("\n"));
    assert!(seen.get(&Verdict::Allow).is_some_and(|allowed| *allowed > 50), "hardly anything was allowed: {seen:?}");
}

/// The sandbox itself must see what is done.
#[test]
fn the_sandbox_sees_what_is_done() {
    let sandbox = Sandbox::new();
    for text in [
        "rm x",
        "r''m x",
        "echo x > docs/new",
        "cat ../out/file",
        "cat < ../out/file",
        "ls ../out",
        "cat secrets/key.pem",
        "git push",
        "git -c a=b status",
        "echo ~/*",
        "find docs -exec rm {} \\;",
        "sort -o docs/new docs/a.md",
    ] {
        assert!(!sandbox.wrong(text).is_empty(), "{text}");
    }
    for text in ["ls docs", "cat docs/a.md | grep a", "git status", "echo x > /dev/null", "nonesuch"] {
        assert_eq!(sandbox.wrong(text), Vec::<String>::new(), "{text}");
    }
}

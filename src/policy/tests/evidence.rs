//! Calls as the audit log keeps them, judged again.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::subsequence;

use super::laws::{any_call, drawn};
use super::reach::{Tree, all};
use super::*;
use crate::facet::{CommandFacet, Stray, extract_shell};
use crate::message::Json;
use crate::policy::{Evidence, Rejudged};
use crate::record::Verdict;
use crate::secret::{REDACTED, Redaction, Secret};
use Verdict::{Allow, Ask, Deny};

/// A call as the log has it: what was judged, through JSON, and its arguments.
struct Kept {
    evidence: Evidence,
    text: String,
    arguments: Json,
}

impl Kept {
    fn of(touched: &Touched, judgement: &Judgement, arguments: &str, secrets: &[&str]) -> Self {
        let redaction = Redaction::new(secrets.iter().map(|secret| Secret::new(*secret)).collect());
        let evidence = Evidence::of(Some("filesystem"), Claimed::default(), touched, judgement, &redaction, true);
        let text = serde_json::to_string(&evidence).unwrap();
        Self { evidence: serde_json::from_str::<Evidence>(&text).unwrap().ready(), text, arguments: json(arguments) }
    }

    fn judge(&self, policy: &Policy, subject: &Subject<'_>) -> Rejudged {
        self.evidence.judge(policy, &Subject { arguments: Some(self.arguments.root()), ..subject.clone() })
    }
}

/// What was kept of a call that was judged in a tree.
fn kept(policy: &Policy, facets: Vec<Facet>, space: &Space) -> Kept {
    let touched = Touched { facets, ..Touched::default() };
    Kept::of(&touched, &judge(policy, &call("t"), &touched, space), "{}", &[])
}

/// What was kept of a call with these secrets.
fn kept_with(policy: &Policy, facets: Vec<Facet>, secrets: &[&str]) -> Kept {
    let touched = Touched { facets, ..Touched::default() };
    Kept::of(&touched, &judge(policy, &call("t"), &touched, &space()), "{}", secrets)
}

/// The range of what another policy says.
fn range(kept: &Kept, policy: &Policy) -> (Verdict, Verdict) {
    let said = kept.judge(policy, &call("t"));
    assert_eq!(said.doubts.is_empty(), said.loosest == said.strictest, "{said:?}");
    (said.loosest, said.strictest)
}

#[test]
fn a_walk_is_judged_by_what_it_looked_for_and_found() {
    let tree = Tree::new(&["docs/a.md", "src/private/x", "src/keep/y"]);
    let private = "{name: private, verdict: deny, path: \"**/private/\", reason: No.}";
    let keep = "{name: keep, verdict: ask, path: \"**/keep/\", access: [read, write], reason: Ask.}";
    let other = "{name: other, verdict: deny, path: \"**/other/\", reason: No.}";
    let recorded =
        |rules: &[&str], path: &str| kept(&all(rules), vec![tree.facet(Access::Read, path, true)], &tree.space);

    let nothing_met = recorded(&[private], "docs");
    assert_eq!(range(&nothing_met, &all(&[private])), (Allow, Allow));
    assert_eq!(range(&nothing_met, &all(&[])), (Allow, Allow));
    assert_eq!(range(&nothing_met, &all(&[private, other])), (Allow, Ask), "nobody looked for it");
    let renamed = private.replace("name: private", "name: p");
    assert_eq!(range(&nothing_met, &all(&[&renamed])), (Allow, Allow), "it is known by what it guards");
    let excepted = private.replace("reason", "except: [{path: docs/}], reason");
    assert_eq!(range(&nothing_met, &all(&[&excepted])), (Allow, Ask));

    let met = recorded(&[private], "src");
    assert_eq!(range(&met, &all(&[private])), (Ask, Ask));
    assert_eq!(range(&met, &all(&["{verdict: deny, path: src/private/, reason: No.}"])), (Ask, Ask), "it is there");
    assert_eq!(range(&met, &all(&[])), (Allow, Ask), "a link out may lie beyond what was met");
    assert_eq!(range(&met, &all(&[keep])), (Allow, Ask));
    let all_denied = "{verdict: deny, tool: t, reason: No.}";
    assert_eq!(range(&met, &all(&[all_denied])), (Deny, Deny));

    let denied = recorded(&[all_denied], "docs");
    assert_eq!(range(&denied, &all(&[private])), (Allow, Ask), "what is denied is not walked");
    assert_eq!(range(&denied, &all(&[])), (Allow, Ask), "a link may lead out");
}

#[test]
fn what_the_file_system_has_become_changes_nothing() {
    let tree = Tree::new(&["docs/a.md", "real/b"]);
    let policy = all(&["{verdict: deny, path: \"**/private/\", reason: No.}"]);
    let recorded = kept(&policy, vec![tree.facet(Access::Read, "docs", true)], &tree.space);
    tree.link("docs/private", "../real");
    assert_eq!(range(&recorded, &policy), (Allow, Allow));
}

#[test]
fn links_out_and_mounts_are_asked_about_whatever_the_policy() {
    let tree = Tree::new(&["docs/a.md"]);
    tree.link("docs/out", "/usr");
    let recorded = kept(&all(&[]), vec![tree.facet(Access::Read, "docs", true)], &tree.space);
    let said = recorded.judge(&all(&[]), &call("t"));
    assert_eq!((said.strictest, said.strictest_by), (Ask, vec!["floor:recursive_link".to_owned()]));
    assert!(said.doubts.is_empty());
}

#[test]
fn a_redacted_argument_is_looked_at_from_both_sides() {
    let recorded = |arguments: &str| {
        let touched = Touched { facets: vec![bare()], ..Touched::default() };
        let said = judge(&all(&[]), &call("t"), &touched, &space());
        Kept::of(&touched, &said, &arguments.replace("SECRET", REDACTED), &[])
    };
    let allow = rules(&["{verdict: allow, args: {/to/name: {eq: ana}}}"]);
    assert_eq!(range(&recorded(r#"{"to":{"name":"ana"}}"#), &allow), (Allow, Allow));
    assert_eq!(range(&recorded(r#"{"to":{"name":"SECRET"}}"#), &allow), (Allow, Ask));
    assert_eq!(range(&recorded(r#"{"to":"SECRET"}"#), &allow), (Allow, Ask));
    assert_eq!(range(&recorded(r#""SECRET""#), &allow), (Allow, Ask), "arguments that were left out");
    assert_eq!(range(&recorded(r#"{"SECRET":1}"#), &allow), (Allow, Ask), "a name that may be another");
    assert_eq!(range(&recorded(r#"{"to":{"name":"eve","pin":"SECRET"}}"#), &allow), (Ask, Ask));

    let deny = rules(&["{verdict: deny, args: {to: {regex: \"a.*\"}}, reason: No.}"]);
    assert_eq!(range(&recorded(r#"{"to":"SECRET"}"#), &deny), (Ask, Deny));
    let there = rules(&["{verdict: deny, args: {to: {present: true}}, reason: No.}"]);
    assert_eq!(range(&recorded(r#"{"to":"SECRET"}"#), &there), (Deny, Deny), "a redacted argument is there");
    // Numbers that JSON readers round are kept as texts.
    let number = rules(&["{verdict: allow, args: {n: {lt: 1}}}"]);
    assert_eq!(range(&recorded(r#"{"n":"0.1234567890123456789"}"#), &number), (Allow, Ask));
    assert_eq!(range(&recorded(r#"{"n":"0.5"}"#), &number), (Ask, Ask), "a text");
}

#[test]
fn an_ask_that_may_not_match_leaves_room_for_a_stricter_otherwise() {
    let touched = Touched { facets: vec![bare()], ..Touched::default() };
    let said = judge(&all(&[]), &call("t"), &touched, &space());
    let recorded = Kept::of(&touched, &said, &format!(r#"{{"to":"{REDACTED}"}}"#), &[]);
    let strict = |rules: &str| policy(&format!("groups: {{ g: {{ otherwise: deny, rules: [ {rules} ] }} }}\n"));
    let ask = "{verdict: ask, args: {to: {eq: ana}}}";
    assert_eq!(range(&recorded, &strict(ask)), (Ask, Deny));
    assert_eq!(range(&recorded, &strict(&format!("{ask}, {{verdict: ask, tool: t}}"))), (Ask, Ask));
    assert_eq!(range(&recorded, &strict(&format!("{ask}, {{verdict: allow, tool: t}}"))), (Allow, Ask));
}

#[test]
fn a_secret_in_a_command_matters_only_where_a_rule_looks_at_it() {
    let token = "tuna-salad-deluxe";
    let text = format!("curl -H 'X: {token}' https://api.example/; deploy {token} now");
    let touched = extract_shell(&space(), &text).unwrap();
    let recorded = Kept::of(&touched, &judge(&all(&[]), &call("t"), &touched, &space()), "{}", &[token]);
    assert!(!recorded.text.contains(token) && recorded.text.contains(REDACTED), "{}", recorded.text);
    let said = |more: &str| range(&recorded, &rules(&[more]));
    assert_eq!(said("{verdict: deny, command: curl, reason: No.}"), (Deny, Deny));
    assert_eq!(said("{verdict: deny, command: wget, reason: No.}"), (Ask, Ask));
    assert_eq!(said("{verdict: deny, command: deploy, reason: No.}"), (Deny, Deny));
    assert_eq!(said("{verdict: deny, command: deploy tuna, reason: No.}"), (Ask, Deny));
    assert_eq!(said("{verdict: deny, host: api.example, reason: No.}"), (Deny, Deny));
}

#[test]
fn a_path_with_a_hidden_part_is_still_told_by_its_other_parts() {
    let recorded = |path: &str, secret: &str| kept_with(&all(&[]), vec![reads(path)], &[secret]);
    let deny = |path: &str| all(&[&format!("{{verdict: deny, path: \"{path}\", reason: No.}}")]);
    let inner = recorded("/w/docs/tuna-salad.md", "tuna-salad");
    for (path, said) in [
        ("docs/", (Deny, Deny)),
        ("src/", (Allow, Allow)),
        ("**/secrets/", (Allow, Allow)),
        ("**/beef-salad.md", (Allow, Deny)),
        ("*/*", (Deny, Deny)),
        ("**/*.md", (Allow, Deny)),
        ("/etc/", (Allow, Allow)),
    ] {
        assert_eq!(range(&inner, &deny(path)), said, "{path}");
    }
    let whole = recorded("/w/a/tuna-salad/b", "a/tuna-salad");
    assert!(!whole.text.contains("/b"), "{}", whole.text);
    assert_eq!(range(&whole, &deny("**/secrets/")), (Allow, Deny), "nothing is known of it");
    assert_eq!(range(&whole, &all(&["{verdict: ask, path: /}"])), (Ask, Ask));
    let allow = rules(&["{verdict: allow, tool: t, path: docs/}"]);
    assert_eq!((range(&inner, &allow), range(&whole, &allow)), ((Allow, Allow), (Allow, Ask)));
}

#[test]
fn commands_and_what_they_name_are_judged_as_they_were() {
    let policy = rules(&[
        "{verdict: allow, command: [cat, ls, git log], path: docs/}",
        "{verdict: deny, command: git push, reason: No.}",
        "{verdict: ask, option: --force}",
        "{verdict: deny, path: \"**/keys/\", reason: No.}",
    ]);
    for text in [
        "cat docs/a.md",
        "cat docs/a.md src/b",
        "ls docs | cat",
        "git log docs/a.md",
        "git -C docs push",
        "git log --force",
        "cat $X/keys/a",
        "tool push keys/a",
        "sh -c 'git push'",
        "if true; then",
    ] {
        let touched = extract_shell(&space(), text).unwrap();
        let live = judge(&policy, &call("t"), &touched, &space());
        let said = Kept::of(&touched, &live, "{}", &[]).judge(&policy, &call("t"));
        assert_eq!(
            (said.loosest, said.strictest, said.strictest_by),
            (live.verdict, live.verdict, live.decided_by),
            "{text}"
        );
    }
}

#[test]
fn the_call_within_a_call_is_judged_too_and_its_arguments_are_not_kept() {
    let inner = crate::facet::Inner {
        tool: "refund".into(),
        category: None,
        arguments: Some(Arc::new(json(r#"{"amount":5000}"#).into_root())),
        touched: Touched { facets: vec![reads("/w/docs/a")], ..Touched::default() },
    };
    let touched = Touched { facets: vec![bare()], inner: Some(Box::new(inner)), ..Touched::default() };
    let recorded = Kept::of(&touched, &judge(&all(&[]), &call("t"), &touched, &space()), "{}", &[]);
    assert!(!recorded.text.contains("5000"), "{}", recorded.text);
    let said = |more: &str| range(&recorded, &all(&[more]));
    assert_eq!(said("{verdict: deny, tool: refund, reason: No.}"), (Deny, Deny));
    assert_eq!(said("{verdict: deny, path: docs/, reason: No.}"), (Deny, Deny));
    assert_eq!(said("{verdict: deny, args: {amount: {gt: 100}}, reason: No.}"), (Allow, Deny));
}

#[test]
fn a_refusal_for_a_new_tool_stays_whatever_the_policy() {
    let touched = Touched { facets: vec![floored(bare(), FloorWhy::NewTool)], ..Touched::default() };
    let mut refused = judge(&all(&[]), &call("t"), &touched, &space());
    let asked = Kept::of(&touched, &refused, "{}", &[]);
    assert_eq!(range(&asked, &all(&[])), (Ask, Ask));
    (refused.verdict, refused.decided_by) = (Deny, vec!["floor:new_tool".to_owned()]);
    assert_eq!(range(&Kept::of(&touched, &refused, "{}", &[]), &all(&[])), (Deny, Deny));
    refused.decided_by = vec!["claim".to_owned()];
    assert_eq!(range(&Kept::of(&touched, &refused, "{}", &[]), &all(&[])), (Deny, Deny));
}

#[test]
fn a_program_that_nobody_described_may_hide_a_denied_word() {
    let word = |text: &str| crate::facet::Argument { text: text.into(), known: true };
    let command = CommandFacet { words: vec![word("tool")], rest: vec![word("tuna-salad")], ..CommandFacet::default() };
    let facet = Facet { kind: FacetKind::Command(Arc::new(command)), floors: Vec::new() };
    let touched = Touched { facets: vec![facet], ..Touched::default() };
    let policy = rules(&["{verdict: allow, command: tool}", "{verdict: deny, command: rm, reason: No.}"]);
    let live = judge(&policy, &call("t"), &touched, &space());
    assert_eq!(live.verdict, Allow);
    assert_eq!(range(&Kept::of(&touched, &live, "{}", &[]), &policy), (Allow, Allow));
    assert_eq!(range(&Kept::of(&touched, &live, "{}", &["tuna-salad"]), &policy), (Allow, Ask));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_verdict_lies_in_the_range_and_is_it_where_nothing_is_hidden(
        then in drawn(),
        now in drawn(),
        call in any_call(),
        secrets in subsequence(vec!["/w/docs", "docs/a", "/DOCS/a", "/w/src/a", "/w/x/y", "x/y/zz", "/etc/x"], 0..4),
        hidden in any::<bool>(),
    ) {
        let touched = Touched { facets: call.facets, strays: call.strays, ..Touched::default() };
        let arguments = json(call.arguments);
        let subject = Subject { arguments: Some(arguments.root()), category: Some("filesystem"), ..super::call(call.tool) };
        let (then, now) = (then.load(false), now.load(false));
        let shown = if hidden { call.arguments.replace('6', &format!("\"{REDACTED}\"")).replace("\"\"", "\"") } else { call.arguments.to_owned() };
        let recorded = Kept::of(&touched, &judge(&then, &subject, &touched, &space()), &shown, &secrets);
        for policy in [&then, &now] {
            let live = judge(policy, &subject, &touched, &space());
            let said = recorded.judge(policy, &subject);
            prop_assert!(said.loosest <= live.verdict && live.verdict <= said.strictest, "{said:?} {live:?}");
            if secrets.is_empty() && !hidden {
                prop_assert_eq!((said.strictest, &said.strictest_by), (live.verdict, &live.decided_by));
                prop_assert!(said.doubts.is_empty());
            }
        }
    }

    #[test]
    fn strays_that_are_left_out_may_be_anything(drawn in drawn(), call in any_call()) {
        let policy = drawn.load(false);
        let subject = super::call(call.tool);
        let stray = Stray { pointer: "/q".into(), sent: "x".into(), locations: vec![at("/w/docs/a"), at("/etc/x")] };
        let touched = Touched { facets: call.facets, strays: vec![stray], ..Touched::default() };
        let live = judge(&policy, &subject, &touched, &space());
        let kept = Evidence::of(Some("filesystem"), Claimed::default(), &touched, &live, &Redaction::default(), false);
        let kept: Evidence = serde_json::from_value(serde_json::to_value(kept).unwrap()).unwrap();
        let said = kept.ready().judge(&policy, &subject);
        prop_assert!(said.loosest <= live.verdict && live.verdict <= said.strictest, "{said:?} {live:?}");
    }
}

//! Shadow mode, and what ends at a date.

use super::*;
use crate::clock::Timestamp;
use crate::record::Verdict::{Allow, Ask, Deny};

fn time(text: &str) -> Timestamp {
    serde_json::from_value(text.into()).unwrap()
}

fn at_time<'a>(tool: &'a str, text: &str) -> Subject<'a> {
    Subject { at: Some(time(text)), ..call(tool) }
}

fn shadow(judgement: &Judgement) -> Option<(crate::record::Verdict, Vec<&str>)> {
    let shadow = judgement.shadow.as_ref()?;
    Some((shadow.verdict, shadow.decided_by.iter().map(String::as_str).collect()))
}

fn refused(text: &str) -> String {
    loaded(&[("base.yaml", &format!("version: 1\n{text}"))], plain())
        .map(|_| String::new())
        .unwrap_or_else(|e| told(&e))
}

#[test]
fn a_rule_in_shadow_mode_is_told_of_and_not_obeyed() {
    let policy = rules(&[
        "{name: read, verdict: allow, tool: t}",
        "{name: new, verdict: deny, tool: t, path: docs/, mode: shadow, reason: To be.}",
        "{name: loose, verdict: allow, tool: u, mode: shadow}",
        "{name: strict, verdict: ask, tool: u, mode: enforce}",
    ]);
    let judgement = judged(&policy, &call("t"), &[reads("/w/docs/a"), reads("/w/src/a")]);
    assert_eq!((judgement.verdict, judgement.decided_by.as_slice()), (Allow, &["read".to_owned()][..]));
    assert_eq!(shadow(&judgement), Some((Deny, vec!["new"])));
    assert!(judgement.reasons.is_empty());
    let matches = &judgement.facets[0].record.matches;
    assert_eq!(
        matches.iter().map(|m| (m.rule.as_str(), m.shadow)).collect::<Vec<_>>(),
        [("new", true), ("read", false)]
    );
    assert_eq!(shadow(&judged(&policy, &call("t"), &[reads("/w/src/a")])), None, "nothing in shadow mode matched");
    let judgement = judged(&policy, &call("u"), &[bare()]);
    assert_eq!((judgement.verdict, shadow(&judgement)), (Ask, Some((Ask, vec!["strict"]))));
}

#[test]
fn an_allow_in_shadow_mode_takes_the_place_of_nothing() {
    let policy = rules(&["{name: loose, verdict: allow, tool: t, mode: shadow}"]);
    let judgement = judged(&policy, &call("t"), &[bare()]);
    assert_eq!((judgement.verdict, judgement.decided_by.as_slice()), (Ask, &["otherwise:g".to_owned()][..]));
    assert_eq!(shadow(&judgement), Some((Allow, vec!["loose"])));
}

#[test]
fn a_guarded_string_is_let_be_in_shadow_mode() {
    let policy = rules(&[
        "{name: all, verdict: allow, tool: t}",
        "{name: new, verdict: deny, path: docs/, mode: shadow, reason: To be.}",
    ]);
    let stray = crate::facet::Stray { pointer: "/q".into(), sent: "docs/a".into(), locations: vec![at("/w/docs/a")] };
    let touched = Touched { facets: vec![bare()], strays: vec![stray], ..Touched::default() };
    let judgement = judge(&policy, &call("t"), &touched, &space());
    assert_eq!((judgement.verdict, shadow(&judgement)), (Allow, Some((Deny, vec!["new"]))));
}

#[test]
fn a_deny_in_shadow_mode_hides_no_words_from_an_allow() {
    let rule = |mode| {
        rules(&[
            "{name: tools, verdict: allow, command: tool, path: ./}",
            &format!("{{name: no-rm, verdict: deny, command: rm, mode: {mode}, reason: No.}}"),
        ])
    };
    let config = UpstreamConfig::new("files", Transport::Workspace, "/root".into());
    let space = Space::new(&UpstreamConfig { filesystem: crate::config::FileSystem::None, ..config });
    let touched = crate::facet::extract_shell(&space, "tool rm").unwrap();
    let says = |mode| {
        let policy = rule(mode);
        let judgement = judge(&policy, &call("run_shell"), &touched, &space);
        (judgement.verdict, judgement.shadow.map(|shadow| shadow.verdict))
    };
    assert_eq!(says("enforce"), (Ask, None), "an unknown program may run its operands");
    assert_eq!(says("shadow"), (Allow, Some(Ask)));
}

#[test]
fn in_a_group_in_shadow_mode_only_guardrails_are_obeyed() {
    let policy = policy(
        "guardrails: [ { name: never, verdict: deny, path: '**/x/', reason: No. } ]
groups:
  g:
    mode: shadow
    until: 2030-12-31
    otherwise: deny
    rules: [ { name: ask, verdict: ask, tool: t, path: docs/ }, { name: ok, verdict: allow, tool: t, path: src/ } ]
  child: { extends: g, rules: [] }",
    );
    let during = at_time("t", "2030-12-31T23:59:59.999Z");
    let after = at_time("t", "2031-01-01T00:00:00Z");
    for (facet, trial) in [
        (reads("/w/docs/a"), (Ask, "ask")),
        (reads("/w/src/a"), (Allow, "ok")),
        (reads("/w/b"), (Deny, "otherwise:g")),
        (floored(reads("/w/src/a"), FloorWhy::HardLink), (Ask, "floor:hard_link")),
    ] {
        let judgement = judged(&policy, &during, std::slice::from_ref(&facet));
        assert_eq!((judgement.verdict, judgement.decided_by.as_slice()), (Allow, &["shadow:g".to_owned()][..]));
        assert_eq!(shadow(&judgement), Some((trial.0, vec![trial.1])));
        let judgement = judged(&policy, &after, &[facet]);
        assert_eq!((judgement.verdict, shadow(&judgement)), (trial.0, None));
        assert_eq!(judgement.decided_by, [trial.1]);
    }
    let judgement = judged(&policy, &during, &[reads("/w/docs/x/a")]);
    assert_eq!((judgement.verdict, judgement.decided_by.as_slice()), (Deny, &["never".to_owned()][..]));
    assert_eq!(judgement.rejection, Some(crate::record::Rejection::Guardrail));
    let child = judged(&policy, &Subject { group: "child", ..during.clone() }, &[reads("/w/docs/a")]);
    assert_eq!((child.verdict, shadow(&child)), (Ask, None), "the mode is not inherited");
}

#[test]
fn an_allow_ends_and_a_shadow_rule_begins_at_its_date() {
    let policy = rules(&[
        "{name: trip, verdict: allow, tool: t, until: 2030-06-01}",
        "{name: soon, verdict: deny, tool: u, mode: shadow, until: '2030-06-01T12:00:00+02:00', reason: Then.}",
    ]);
    let says = |tool, text| {
        let judgement = judged(&policy, &at_time(tool, text), &[bare()]);
        (judgement.verdict, judgement.shadow.map(|shadow| shadow.verdict))
    };
    assert_eq!(says("t", "2030-06-01T23:59:59Z"), (Allow, None));
    assert_eq!(says("t", "2030-06-02T00:00:00Z"), (Ask, None));
    assert_eq!(says("u", "2030-06-01T09:59:59Z"), (Ask, Some(Deny)));
    assert_eq!(says("u", "2030-06-01T10:00:00Z"), (Deny, None));
}

#[test]
fn the_examples_of_what_has_ended_still_hold() {
    let rule = "{verdict: allow, command: ls, until: 2020-01-01, examples: {match: [ls docs], not_match: [ls /etc]}}";
    assert_eq!(judged(&rules(&[rule]), &at_time("t", "2026-01-01T00:00:00Z"), &[bare()]).verdict, Ask);
}

#[test]
fn what_makes_no_sense_is_refused_where_it_stands() {
    let one = |rule: &str| refused(&format!("groups: {{ g: {{ rules: [ {rule} ] }} }}"));
    for (rule, said) in [
        ("{verdict: deny, tool: t, until: 2030-01-01, reason: r}", "belongs to an allow"),
        ("{verdict: ask, tool: t, mode: enforce, until: 2030-01-01}", "belongs to an allow"),
        ("{verdict: allow, tool: t, mode: shadow, until: 2030-01-01}", "does `until` end the allow"),
        ("{verdict: allow, tool: t, mode: shadw}", "did you mean `shadow`?"),
        ("{verdict: allow, tool: t, until: 2030-02-30}", "is no date"),
        ("{verdict: allow, tool: t, until: tomorrow}", "is no date"),
        ("{verdict: allow, tool: t, until: '2030-01-01T00:00:00'}", "is no date"),
        ("{verdict: allow, tool: t, until: 20300101}", "expected a text"),
        ("{verdict: allow, tool: t, except: [{tool: u, mode: shadow}]}", "unknown field `mode`"),
    ] {
        let got = one(rule);
        assert!(got.contains(said), "{rule}: {got}");
    }
    assert_eq!(one("{verdict: ask, tool: t, mode: shadow}"), "");
    let guardrail = refused("guardrails: [ { verdict: deny, tool: t, mode: shadow, until: 2030-01-01, reason: r } ]");
    assert!(guardrail.contains("a guardrail cannot be in shadow mode"), "{guardrail}");
    for (group, said) in [
        ("{ mode: shadow }", "needs `until`"),
        ("{ until: 2030-01-01 }", "belongs to `mode: shadow`"),
        ("{ mode: enforce, until: 2030-01-01 }", "belongs to `mode: shadow`"),
    ] {
        let got = refused(&format!("groups: {{ g: {group} }}"));
        assert!(got.contains(said) && got.lines().count() < 6, "{group}: {got}");
    }
}

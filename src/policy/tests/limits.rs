//! Limits: what a call takes of them, and what is refused in them.

use std::sync::Arc;

use super::*;
use crate::facet::Inner;
use crate::policy::Charge;
use crate::record::Verdict::{Allow, Ask, Deny};

const REFUNDS: &str = "{name: refunds, verdict: allow, tool: refund, limit: {per: day, sum: /amount, max: 500, by: [agent, /order], then: ask}}";

fn charges(rules_: &[&str], subject: &Subject<'_>, arguments: &str, facets: &[Facet]) -> (Judgement, Vec<Charge>) {
    let arguments = json(arguments);
    let subject = Subject { arguments: Some(arguments.root()), ..subject.clone() };
    let judgement = judged(&rules(rules_), &subject, facets);
    let charges = judgement.charges.clone();
    (judgement, charges)
}

fn amount(charge: &Charge) -> Option<String> {
    charge.amount.as_ref().map(ToString::to_string)
}

#[test]
fn a_call_takes_what_its_allow_counts() {
    let (judgement, found) = charges(&[REFUNDS], &call("refund"), r#"{"amount":12.50,"order":"A1"}"#, &[bare()]);
    assert_eq!((judgement.verdict, found.len()), (Allow, 1));
    assert_eq!(amount(&found[0]).as_deref(), Some("12.5"));
    assert_eq!((found[0].words.as_str(), found[0].rate), ("a sum of 500 in /amount per day", None));
    let key = |subject: &Subject<'_>, arguments| charges(&[REFUNDS], subject, arguments, &[bare()]).1[0].key.clone();
    let own = key(&call("refund"), r#"{"amount":1,"order":"A1"}"#);
    assert_eq!(own, found[0].key);
    assert_eq!(own, key(&call("refund"), r#"{"amount":1,"order":" a1 "}"#), "no other spelling opens another counter");
    assert_ne!(own, key(&call("refund"), r#"{"amount":1,"order":"A2"}"#));
    assert_ne!(own, key(&Subject { agent: Some("other"), ..call("refund") }, r#"{"amount":1,"order":"A1"}"#));
}

#[test]
fn what_cannot_be_told_has_no_amount() {
    for arguments in [
        r#"{"order":"A1"}"#,
        r#"{"amount":"12","order":"A1"}"#,
        r#"{"amount":-1,"order":"A1"}"#,
        r#"{"amount":1}"#,
        r#"{"amount":1,"order":{}}"#,
        r#"{"amount":{"n":1},"order":"A1"}"#,
    ] {
        let (judgement, found) = charges(&[REFUNDS], &call("refund"), arguments, &[bare()]);
        assert_eq!((judgement.verdict, amount(&found[0])), (Allow, None), "{arguments}");
        assert!(!found[0].can_wait());
    }
}

#[test]
fn every_allow_that_matches_counts_once_and_only_allows_that_are_obeyed() {
    let minute = "{name: few, verdict: allow, tool: '@any', limit: {per: minute, calls: 30, by: agent}}";
    let shadow = "{name: new, verdict: allow, tool: '@any', mode: shadow, limit: {per: week, calls: 1}}";
    let ask = "{name: ask, verdict: ask, tool: refund}";
    let arguments = r#"{"amount":1,"order":"A1"}"#;
    let facets = [reads("/w/a"), reads("/w/b")];
    let (judgement, found) = charges(&[REFUNDS, minute, shadow, ask], &call("refund"), arguments, &facets);
    assert_eq!(judgement.verdict, Ask);
    assert_eq!(found.iter().map(|charge| charge.rule.as_str()).collect::<Vec<_>>(), ["few", "refunds"]);
    assert_eq!(found[0].rate.map(u32::from), Some(30));
    let deny = "{name: deny, verdict: deny, tool: refund, reason: No.}";
    assert!(charges(&[REFUNDS, deny], &call("refund"), arguments, &[bare()]).1.is_empty());
    assert_eq!(charges(&[REFUNDS, deny], &call("refund"), arguments, &[bare()]).0.verdict, Deny);
}

#[test]
fn over_a_limit_that_asks_the_call_is_held_in_its_name() {
    let (judgement, found) = charges(&[REFUNDS], &call("refund"), r#"{"amount":1,"order":"A1"}"#, &[bare()]);
    let over = judgement.clone().over(&found);
    assert_eq!((over.verdict, over.decided_by.as_slice()), (Ask, &["limit:refunds".to_owned()][..]));
    assert_eq!(over.requirement.unwrap().asked_by, ["limit:refunds"]);
    assert_eq!(judgement.clone().over(&[]).verdict, Allow);
    let ask = "{name: ask, verdict: ask, tool: refund, approval: {severity: high}}";
    let (judgement, found) = charges(&[REFUNDS, ask], &call("refund"), r#"{"amount":1,"order":"A1"}"#, &[bare()]);
    let over = judgement.over(&found);
    assert_eq!(over.decided_by, ["ask", "limit:refunds"]);
    assert_eq!(over.requirement.unwrap().severity, crate::record::Severity::High);
}

#[test]
fn slips_in_a_limit_are_told() {
    for (limit, said) in [
        ("{per: minute}", "a limit is of `calls`, or of a `sum` with its `max`"),
        ("{calls: 3}", "`per` is missing"),
        ("{per: minute, calls: 3, max: 5}", "a limit is of `calls`"),
        ("{per: minute, sum: /a}", "a limit is of `calls`"),
        ("{per: month, calls: 3}", "`month` is none of second, minute, hour, day, week"),
        ("{per: day, calls: 0}", "limits nothing, or allows nothing"),
        ("{per: day, sum: /a, max: -1}", "`max` is less than 0"),
        ("{per: day, sum: /a, max: 1e60}", "`max` has too many digits"),
        ("{per: day, sum: /a, max: many}", "expected a number"),
        ("{per: day, sum: /a~2, max: 1}", "is no JSON pointer"),
        ("{per: day, calls: 1, by: agnt}", "`by`: `agnt` tells no calls apart"),
        ("{per: day, calls: 1, by: []}", "the list is empty"),
        ("{per: day, calls: 1, then: deny}", "`deny` is none of reject, ask"),
        ("{per: day, calls: 1, bye: agent}", "did you mean `by`?"),
    ] {
        let text = format!(
            "version: 1\ngroups: {{ g: {{ rules: [ {{name: r, verdict: allow, tool: t, limit: {limit}}} ] }} }}"
        );
        let found =
            loaded(&[("base.yaml", &text)], plain()).map(|_| String::new()).unwrap_or_else(|found| told(&found));
        assert!(found.contains(said), "{limit}: {found}");
    }
    let text = "version: 1\ngroups: { g: { rules: [ {verdict: ask, tool: t, limit: {per: day, calls: 1}} ] } }";
    let found = loaded(&[("base.yaml", text)], plain()).map(|_| String::new()).unwrap_or_else(|found| told(&found));
    assert!(found.contains("`limit` belongs to an allow"), "{found}");
}

#[test]
fn a_call_within_a_call_takes_by_its_own_arguments() {
    let bridged = |outer: &str, inner: &str| {
        let (outer, inner) = (json(outer), json(inner));
        let subject = Subject { arguments: Some(outer.root()), ..call("call_tool") };
        let inner = Inner {
            tool: "refund".into(),
            category: None,
            arguments: Some(Arc::new(inner.into_root())),
            touched: Touched { facets: vec![bare()], ..Touched::default() },
        };
        let touched = Touched { facets: vec![bare()], inner: Some(Box::new(inner)), ..Touched::default() };
        let bridge = "{name: bridge, verdict: allow, tool: call_tool, limit: {per: day, calls: 5}}";
        judge(&rules(&[REFUNDS, bridge]), &subject, &touched, &space())
    };
    let outer = r#"{"name":"refund","amount":0,"order":"B","arguments":{"amount":100,"order":"A"}}"#;
    let judgement = bridged(outer, r#"{"amount":100,"order":"A"}"#);
    let found: Vec<_> = judgement.charges.iter().map(|charge| (charge.rule.as_str(), amount(charge))).collect();
    assert_eq!(found, [("bridge", Some("1".into())), ("refunds", Some("100".into()))]);
    assert_eq!(judgement.verdict, Allow);
    let direct = charges(&[REFUNDS], &call("refund"), r#"{"amount":1,"order":"A"}"#, &[bare()]).1;
    assert_eq!(judgement.charges[1].key, direct[0].key, "no bridge opens another counter");
    assert_eq!(amount(&bridged(outer, r#"{"order":"A"}"#).charges[1]), None);
    // One rule that allows both takes for each.
    let both = "{name: both, verdict: allow, tool: '@any', limit: {per: day, calls: 5}}";
    let touched = Touched {
        facets: vec![bare()],
        inner: Some(Box::new(Inner {
            tool: "refund".into(),
            category: None,
            arguments: None,
            touched: Touched { facets: vec![bare()], ..Touched::default() },
        })),
        ..Touched::default()
    };
    let judgement = judge(&rules(&[both]), &call("call_tool"), &touched, &space());
    assert_eq!(judgement.charges.iter().map(|charge| charge.rule.as_str()).collect::<Vec<_>>(), ["both", "both"]);
    assert_eq!(judgement.charges[0].key, judgement.charges[1].key);
}

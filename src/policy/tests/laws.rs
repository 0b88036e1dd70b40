//! The laws of policy.md, over random small policies and calls.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::config::ApprovalsConfig;
use crate::facet::Stray;
use crate::policy::Requirement;
use crate::policy::index::{Names, Near, RuleSet};
use crate::policy::judge::{matches, target};
use crate::record::{FacetRecord, Verdict};

/// A policy as the lines of its lists.
#[derive(Clone, Debug)]
pub(super) struct Drawn {
    guardrails: Vec<String>,
    base: Vec<String>,
    group: Vec<String>,
    otherwise: (&'static str, &'static str),
}

/// A call as facets and strays.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub tool: &'static str,
    pub arguments: &'static str,
    pub facets: Vec<Facet>,
    pub strays: Vec<Stray>,
}

impl Drawn {
    /// In one file, or each list in a file of its own.
    pub fn load(&self, apart: bool) -> Policy {
        let list = |rules: &[String]| {
            let named: String = rules
                .iter()
                .map(|rule| format!("{{ name: {}, {rule} }}, ", hex::encode(rule).replace('e', "_e")))
                .collect();
            format!("[ {named} ]")
        };
        let (base, own) = self.otherwise;
        let guardrails = format!("guardrails: {}\n", list(&self.guardrails));
        let first = format!("groups: {{ base: {{ otherwise: {base}, rules: {} }} }}\n", list(&self.base));
        let second =
            format!("extends: base, otherwise: {own}, approval: {{ expires: 10m }}, rules: {}", list(&self.group));
        let texts = if apart {
            vec![guardrails, first, format!("groups: {{ g: {{ {second} }} }}\n")]
        } else {
            let groups = first.replace(" }\n", &format!(", g: {{ {second} }} }}\n"));
            vec![format!("{guardrails}{groups}")]
        };
        let names: Vec<String> = (0..texts.len()).rev().map(|n| format!("{n}.yaml")).collect();
        let texts: Vec<String> = texts.iter().map(|text| format!("version: 1\n{text}")).collect();
        let files: Vec<(&str, &str)> =
            names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_str())).collect();
        loaded(&files, plain()).unwrap_or_else(|found| panic!("{}", told(&found))).policy
    }
}

impl Call {
    fn judge(&self, policy: &Policy) -> Judgement {
        let arguments = json(self.arguments);
        let subject = Subject { arguments: Some(arguments.root()), category: None, ..call(self.tool) };
        judge(
            policy,
            &subject,
            &Touched { facets: self.facets.clone(), strays: self.strays.clone(), ..Touched::default() },
            &space(),
        )
    }
}

fn field() -> impl Strategy<Value = &'static str> {
    select(vec![
        "tool: t",
        "tool: [t, u]",
        "tool: \"*\"",
        "tool: \"@any\"",
        "tool: \"@fs_read\"",
        "tool: \"@fs_write\"",
        "tool: \"@shell\"",
        "path: docs/",
        "path: [docs/, src/a]",
        "path: [\"docs/*\", /etc/]",
        "path: \"*.md\"",
        "path: Docs/A",
        "path: \"**/x/\"",
        "path: /",
        "access: read",
        "access: [write, delete]",
        "upstream: files",
        "upstream: \"m*\"",
        "category: shell",
        "depth: root",
        "args: { n: { gt: 5 } }",
        "args: { n: { present: false } }",
    ])
}

fn fields() -> impl Strategy<Value = String> {
    proptest::collection::vec(field(), 1..3)
        .prop_map(|mut fields| {
            fields.sort_unstable();
            fields.dedup_by_key(|field| field.split(':').next());
            fields.join(", ")
        })
        .prop_filter("a rule that can never match does not load", |fields| {
            let both = |tool: &str, access: &str| fields.contains(tool) && fields.contains(access);
            !both("@fs_read", "access: [write, delete]") && !both("@fs_write", "access: read")
        })
}

/// A rule but for its name.
fn rule(verdicts: &'static [&'static str]) -> impl Strategy<Value = String> {
    let approval = select(vec![
        "",
        ", approval: { expires: 1m, run: always }",
        ", approval: { expires: 8h, severity: high, grants: tool }",
        ", approval: { hold_for: 1s, allow_self: never, reason_required: true, grants: none }",
    ]);
    (select(verdicts), fields(), proptest::option::of(fields()), approval).prop_map(
        |(verdict, fields, except, approval)| {
            let except = except.map(|except| format!(", except: [ {{ {except} }} ]")).unwrap_or_default();
            let approval = if verdict == "ask" { approval } else { "" };
            format!("verdict: {verdict}, {fields}{except}{approval}, reason: r{}", fields.len())
        },
    )
}

/// Rules without repeats: each is named by its text.
fn rules_of(verdicts: &'static [&'static str]) -> impl Strategy<Value = Vec<String>> {
    proptest::collection::btree_set(rule(verdicts), 0..4).prop_map(|rules| rules.into_iter().collect::<Vec<_>>())
}

pub(super) fn drawn() -> impl Strategy<Value = Drawn> {
    let otherwise = select(vec![
        ("ask", "ask"),
        ("allow", "allow"),
        ("allow", "ask"),
        ("allow", "deny"),
        ("ask", "deny"),
        ("deny", "deny"),
    ]);
    (rules_of(&["ask", "deny"]), rules_of(&["allow", "ask", "deny"]), rules_of(&["allow", "ask", "deny"]), otherwise)
        .prop_map(|(guardrails, base, mut group, otherwise)| {
            let apart = |rule: &String| !base.contains(rule) && !guardrails.contains(rule);
            group.retain(apart);
            let mut base = base;
            base.retain(|rule| !guardrails.contains(rule));
            Drawn { guardrails, base, group, otherwise }
        })
}

fn place() -> impl Strategy<Value = &'static str> {
    select(vec!["/w/docs/a", "/w/DOCS/a", "/w/src/a", "/w/x/y", "/w/docs/x/y", "/etc/x", "/w"])
}

fn facet() -> impl Strategy<Value = Facet> {
    let access = select(vec![None, Some(Access::Read), Some(Access::Write)]);
    let path = (access, place(), proptest::collection::vec(place(), 0..2))
        .prop_map(|(access, lexical, physical)| linked(access, lexical, &physical));
    let command = Just(Facet { kind: FacetKind::Command(Default::default()), floors: vec![] });
    let floor = proptest::option::weighted(0.3, select(vec![FloorWhy::HardLink, FloorWhy::Heuristic, FloorWhy::Shell]));
    (prop_oneof![4 => path, 1 => command, 1 => Just(bare())], floor)
        .prop_map(|(facet, floor)| floor.map_or(facet.clone(), |why| floored(facet, why)))
}

pub(super) fn any_call() -> impl Strategy<Value = Call> {
    let stray = place().prop_map(|at_| Stray { pointer: "/q".into(), sent: at_.into(), locations: vec![at(at_)] });
    (
        select(vec!["t", "u", "T"]),
        select(vec!["{}", r#"{"n":6}"#, r#"{"n":"6"}"#, r#"{"n":1}"#]),
        proptest::collection::vec(facet(), 1..3),
        proptest::collection::vec(stray, 0..2),
    )
        .prop_map(|(tool, arguments, facets, strays)| Call { tool, arguments, facets, strays })
}

/// What rules, guardrails and floors say of a facet, `otherwise` and allows left out.
fn tightening(record: &FacetRecord) -> Verdict {
    let floor = if record.floors.is_empty() { Verdict::Allow } else { Verdict::Ask };
    record.matches.iter().map(|found| found.verdict).max().unwrap_or(Verdict::Allow).max(floor)
}

fn is_as_strict(new: &Judgement, old: &Judgement) {
    assert!(new.verdict >= old.verdict, "{new:?}\nafter\n{old:?}");
    if let (Some(new), Some(old)) = (&new.requirement, &old.requirement) {
        requires_as_much(new, old);
    }
}

fn requires_as_much(new: &Requirement, old: &Requirement) {
    let configured = ApprovalsConfig::default();
    let (terms, before) = (new.terms(&configured), old.terms(&configured));
    assert!(terms.expires <= before.expires && terms.hold_for <= before.hold_for, "{new:?}\nafter\n{old:?}");
    assert!(terms.allow_self <= before.allow_self && new.grants <= old.grants, "{new:?}\nafter\n{old:?}");
    assert!(new.severity >= old.severity && new.run_always <= old.run_always, "{new:?}\nafter\n{old:?}");
    assert!(new.reason_required >= old.reason_required, "{new:?}\nafter\n{old:?}");
    assert!(old.asked_by.iter().all(|by| new.asked_by.contains(by)), "{new:?}\nafter\n{old:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_rules_and_files_changes_nothing(
        drawn in drawn(),
        call in any_call(),
        order in proptest::collection::vec(any::<Index>(), 12),
    ) {
        let mut shuffled = drawn.clone();
        let mut order = order.into_iter();
        for list in [&mut shuffled.guardrails, &mut shuffled.base, &mut shuffled.group] {
            for last in (1..list.len()).rev() {
                let other = order.next().map_or(0, |index| index.index(last + 1));
                list.swap(last, other);
            }
        }
        let one = call.judge(&drawn.load(false));
        let other = call.judge(&shuffled.load(true));
        prop_assert_eq!(&one.decided_by, &other.decided_by);
        prop_assert_eq!((one.verdict, one.rejection, one.requirement), (other.verdict, other.rejection, other.requirement));
        prop_assert_eq!(one.reasons, other.reasons);
        let verdicts = |facets: &[crate::policy::FacetJudgement]| -> Vec<(Verdict, Vec<String>)> {
            let rules = |record: &FacetRecord| record.matches.iter().map(|found| found.rule.clone()).collect();
            facets.iter().map(|facet| (facet.record.verdict, rules(&facet.record))).collect()
        };
        prop_assert_eq!(verdicts(&one.facets), verdicts(&other.facets));
    }

    #[test]
    fn a_deny_or_a_guardrail_never_loosens(
        drawn in drawn(),
        call in any_call(),
        deny in rule(&["deny"]),
        guardrail in rule(&["ask", "deny"]),
    ) {
        let old = call.judge(&drawn.load(false));
        let mut more = drawn.clone();
        more.group.push(format!("{deny}, examples: {{}}"));
        is_as_strict(&call.judge(&more.load(false)), &old);
        let mut more = drawn;
        more.guardrails.push(format!("{guardrail}, examples: {{}}"));
        is_as_strict(&call.judge(&more.load(false)), &old);
    }

    #[test]
    fn a_floor_never_loosens(drawn in drawn(), call in any_call(), which in any::<Index>()) {
        let policy = drawn.load(false);
        let old = call.judge(&policy);
        let mut more = call.clone();
        let which = which.index(more.facets.len());
        more.facets[which].floors.push(Floor { why: FloorWhy::Invisible, detail: None });
        is_as_strict(&more.judge(&policy), &old);
    }

    #[test]
    fn an_ask_or_an_allow_never_loosens_what_rules_guardrails_and_floors_say(
        drawn in drawn(),
        call in any_call(),
        added in rule(&["ask", "allow"]),
    ) {
        let old = call.judge(&drawn.load(false));
        let mut more = drawn;
        more.group.push(format!("{added}, examples: {{}}"));
        let new = call.judge(&more.load(false));
        for (new, old) in new.facets.iter().zip(&old.facets) {
            prop_assert!(new.record.verdict >= tightening(&old.record));
            prop_assert!(tightening(&new.record) >= tightening(&old.record));
        }
        if let (Some(new), Some(old)) = (&new.requirement, &old.requirement)
            && !old.asked_by.contains(&"otherwise:g".to_owned())
        {
            requires_as_much(new, old);
        }
    }

    #[test]
    fn a_shadow_rule_changes_no_verdict(
        drawn in drawn(),
        call in any_call(),
        added in rule(&["allow", "ask", "deny"]),
    ) {
        let old = call.judge(&drawn.load(false));
        let mut more = drawn.clone();
        more.group.push(format!("{added}, mode: shadow"));
        let new = call.judge(&more.load(false));
        prop_assert_eq!((new.verdict, new.rejection, &new.requirement), (old.verdict, old.rejection, &old.requirement));
        prop_assert_eq!((&new.decided_by, &new.reasons), (&old.decided_by, &old.reasons));
        // And it would say what it says without shadow mode.
        let mut enforced = drawn;
        enforced.group.push(format!("{added}, mode: enforce"));
        let enforced = call.judge(&enforced.load(false));
        if let Some(shadow) = new.shadow {
            prop_assert_eq!(shadow.verdict, enforced.verdict);
            prop_assert_eq!(shadow.decided_by.len(), enforced.decided_by.len());
        } else {
            prop_assert_eq!(new.verdict, enforced.verdict);
        }
    }

    #[test]
    fn the_index_leaves_out_no_rule_that_matches(drawn in drawn(), call in any_call()) {
        let policy = drawn.load(false);
        let arguments = json(call.arguments);
        let subject = Subject { arguments: Some(arguments.root()), category: None, ..super::call(call.tool) };
        let set = RuleSet::new(policy.rules().to_vec());
        let concerning = set.concerning(&Names::of(&subject));
        for facet in &call.facets {
            let target = target(facet, &call.facets);
            let near: Vec<&str> = concerning.near(&Near::of(target)).map(|rule| rule.label.as_str()).collect();
            for rule in policy.rules().iter().filter(|rule| matches(rule, &subject, target)) {
                prop_assert!(near.contains(&rule.label.as_str()), "{} for {facet:?}", rule.label);
            }
        }
    }
}

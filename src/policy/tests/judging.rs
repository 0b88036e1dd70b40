//! "How a call is judged": strictest wins, what is added, what is required.

use std::time::Duration;

use super::*;
use crate::config::ApprovalsConfig;
use crate::facet::Stray;
use crate::record::{Rejection, Severity, Verdict};
use Verdict::{Allow, Ask, Deny};

const SMALL: &str = "
groups:
  g:
    otherwise: ask
    rules:
      - { name: docs, verdict: allow, path: docs/ }
      - { name: writes, verdict: ask, path: docs/, access: write, reason: Look first. }
      - { name: private, verdict: deny, path: docs/private/, reason: Not for models. }
";

fn labels(judgement: &Judgement) -> Vec<&str> {
    judgement.decided_by.iter().map(String::as_str).collect()
}

#[test]
fn the_strictest_match_wins_and_names_itself() {
    let policy = policy(SMALL);
    let judgement = judged(&policy, &call("t"), &[reads("/w/docs/a")]);
    assert_eq!((judgement.verdict, labels(&judgement)), (Allow, vec!["docs"]));
    assert!(judgement.requirement.is_none());

    let judgement = judged(&policy, &call("t"), &[writes("/w/docs/a")]);
    assert_eq!((judgement.verdict, labels(&judgement)), (Ask, vec!["writes"]));
    assert_eq!(judgement.reasons, ["Look first."]);

    let judgement = judged(&policy, &call("t"), &[writes("/w/docs/private/a"), reads("/w/docs/a")]);
    assert_eq!((judgement.verdict, labels(&judgement)), (Deny, vec!["private"]));
    assert_eq!(judgement.rejection, Some(Rejection::Policy));
    assert_eq!(judgement.facets.iter().map(|f| f.record.verdict).collect::<Vec<_>>(), [Deny, Allow]);

    let judgement = judged(&policy, &call("t"), &[reads("/w/src/a")]);
    assert_eq!((judgement.verdict, labels(&judgement)), (Ask, vec!["otherwise:g"]));
}

#[test]
fn floors_are_added_and_never_lifted() {
    let policy = policy(SMALL);
    let judgement = judged(&policy, &call("t"), &[floored(reads("/w/docs/a"), FloorWhy::HardLink)]);
    assert_eq!((judgement.verdict, labels(&judgement)), (Ask, vec!["floor:hard_link"]));
    assert_eq!(judgement.facets[0].record.floors[0].why, "hard_link");
    let needed = needed(&policy, &call("t"), &[floored(reads("/w/docs/a"), FloorWhy::HardLink)]);
    assert!(needed.len() == 1 && needed[0].contains("hard_link"), "{needed:?}");
    let judgement = judged(&policy, &call("t"), &[floored(reads("/w/docs/private/a"), FloorWhy::HardLink)]);
    assert_eq!((judgement.verdict, labels(&judgement)), (Deny, vec!["private"]));
}

#[test]
fn guardrails_are_added_to_otherwise_too() {
    let text = format!(
        "guardrails:\n  - {{ name: keys, verdict: ask, path: \"**/*.pem\", reason: Keys. }}\n{}",
        SMALL.replace("otherwise: ask", "otherwise: deny")
    );
    let judgement = judged(&policy(&text), &call("t"), &[reads("/w/src/a.pem")]);
    assert_eq!((judgement.verdict, labels(&judgement)), (Deny, vec!["otherwise:g"]));
    let judgement = judged(&policy(&text), &call("t"), &[reads("/w/docs/a.pem")]);
    assert_eq!((judgement.verdict, labels(&judgement)), (Ask, vec!["keys"]));
}

#[test]
fn the_built_in_guardrails_hold_for_every_group() {
    let policy = guarded("groups: { g: { rules: [ { name: all, verdict: allow, tool: \"@any\" } ] } }");
    for (facet, verdict, by) in [
        (reads("/w/a/secrets/key.pem"), Deny, "builtin:secrets"),
        (reads("/w/SECRETS/key.pem"), Deny, "builtin:secrets"),
        (reads("/proc/self/environ"), Deny, "builtin:kernel-paths"),
        (reads("/dev/null"), Deny, "builtin:kernel-paths"),
        (reads("/etc/portcullis/tokens/x"), Deny, "builtin:own-files"),
        (writes("/w/.git/hooks/pre-commit"), Ask, "builtin:runs-later"),
        (writes("/w/pkg/package.json"), Ask, "builtin:runs-later"),
        (writes("/w/home/.bash_profile"), Ask, "builtin:runs-later"),
        (reads("/w/.git/HEAD"), Allow, "all"),
        (reads("/w/docs/my-secrets.md"), Allow, "all"),
    ] {
        let judgement = judged(&policy, &call("t"), std::slice::from_ref(&facet));
        assert_eq!((judgement.verdict, labels(&judgement)), (verdict, vec![by]), "{facet:?}");
        if verdict == Deny {
            assert_eq!(judgement.rejection, Some(Rejection::Guardrail));
        }
    }
}

#[test]
fn the_policys_own_files_are_denied_even_before_they_exist() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("base.yaml");
    std::fs::write(&file, "version: 1\ngroups: { g: { rules: [ { verdict: allow, tool: \"@any\" } ] } }").unwrap();
    let config = PolicyConfig { files: vec![format!("{}/*.yaml", folder.path().display())], ..PolicyConfig::default() };
    let policy = load(&config, &[]).unwrap().policy;
    for name in ["base.yaml", "evil.yaml", "x.test.yaml"] {
        let path = folder.path().join(name);
        let judgement = judged(&policy, &call("t"), &[writes(path.to_str().unwrap())]);
        assert_eq!((judgement.verdict, labels(&judgement)), (Deny, vec!["builtin:own-files"]), "{name}");
    }
}

#[test]
fn a_group_that_does_not_exist_denies() {
    let policy = policy(SMALL);
    let judgement = judged(&policy, &Subject { group: "ghost", ..call("t") }, &[reads("/w/docs/a")]);
    assert_eq!((judgement.verdict, labels(&judgement)), (Deny, vec!["group:ghost"]));
    assert_eq!(judgement.rejection, Some(Rejection::Policy));
    let needed = needed(&policy, &Subject { group: "ghost", ..call("t") }, &[reads("/w/docs/a")]);
    assert!(needed[0].contains("no policy file has a group `ghost`"), "{needed:?}");
}

#[test]
fn what_touches_nothing_known_is_judged_all_the_same() {
    let policy = rules(&["{name: t, verdict: allow, tool: t}"]);
    assert_eq!(judged(&policy, &call("t"), &[]).verdict, Allow);
    assert_eq!(judged(&policy, &call("other"), &[]).verdict, Ask);
}

#[test]
fn a_group_has_the_rules_of_all_it_extends() {
    let policy = policy(
        "groups:
  base: { otherwise: ask, rules: [ { name: no-mail, verdict: deny, upstream: mail, tool: \"@any\", reason: No. } ] }
  g: { extends: base, otherwise: deny, rules: [ { name: ok, verdict: allow, tool: t } ] }
  late: { extends: g }",
    );
    let mail = Subject { upstream: Some("mail"), ..call("t") };
    assert_eq!(labels(&judged(&policy, &mail, &[bare()])), ["no-mail"]);
    assert_eq!(labels(&judged(&policy, &call("t"), &[bare()])), ["ok"]);
    let late = Subject { group: "late", ..call("x") };
    let judgement = judged(&policy, &late, &[bare()]);
    assert_eq!((judgement.verdict, labels(&judgement)), (Deny, vec!["otherwise:late"]));
}

#[test]
fn every_ask_that_matched_must_be_met() {
    let policy = policy(
        "approvals:
  slow: { expires: 8h, run: always, severity: high, grants: tool }
approval: { reason_required: true }
groups:
  g:
    approval: { expires: 5m }
    rules:
      - { name: one, verdict: ask, tool: t, approval: slow }
      - { name: two, verdict: ask, path: docs/ }
      - { name: three, verdict: ask, path: src/, approval: { hold_for: 2s, run: always } }
  other: { rules: [ { verdict: ask, tool: x } ] }",
    );
    let configured = ApprovalsConfig::default();
    let one = judged(&policy, &call("t"), &[bare()]).requirement.unwrap();
    assert_eq!(one.terms(&configured).expires, Duration::from_secs(8 * 3600));
    assert!(one.run_always && !one.reason_required);
    assert_eq!(one.severity, Severity::High);

    let two = judged(&policy, &call("t"), &[reads("/w/docs/a")]).requirement.unwrap();
    assert_eq!(two.asked_by, ["one", "two"]);
    assert_eq!(two.terms(&configured).expires, Duration::from_secs(300), "`two` takes the group's approval");
    assert!(!two.run_always);
    assert_eq!(two.severity, Severity::High);

    let three =
        judged(&policy, &call("t"), &[reads("/w/src/a"), floored(bare(), FloorWhy::OptionLike)]).requirement.unwrap();
    assert_eq!(three.asked_by, ["floor:option_like", "one", "three"]);
    assert_eq!(three.terms(&configured).hold_for, Duration::from_secs(2));

    let other = judged(&policy, &Subject { group: "other", ..call("x") }, &[bare()]).requirement.unwrap();
    assert!(other.reason_required, "the top-level approval stands in for the group's");
}

#[test]
fn guarded_paths_reach_unmarked_strings() {
    let policy = guarded(
        "groups:
  g:
    rules:
      - { name: all, verdict: allow, tool: \"@any\" }
      - { name: outside, verdict: deny, path: /, except: [ { path: ./ } ], reason: Outside. }
      - { name: keep, verdict: ask, path: keep/, except: [ { path: keep/open/ } ] }",
    );
    let stray = |path: &str| Stray { pointer: "/q".into(), sent: path.into(), locations: vec![at("/w/x"), at(path)] };
    for (path, verdict, by) in [
        ("/w/secrets/key", Deny, "builtin:secrets"),
        ("/proc/self/environ", Deny, "builtin:kernel-paths"),
        ("/w/keep/a", Ask, "keep"),
        ("/w/keep/open/a", Allow, "all"),
        ("/etc/passwd", Allow, "all"),
        ("/w/hello", Allow, "all"),
    ] {
        let touched = Touched { facets: vec![bare()], strays: vec![stray(path)], ..Touched::default() };
        let judgement = judge(&policy, &call("t"), &touched, &space());
        assert_eq!((judgement.verdict, labels(&judgement)), (verdict, vec![by]), "{path}");
        assert_eq!(judgement.facets.len(), if verdict == Allow { 1 } else { 2 }, "{path}");
    }
}

#[test]
fn sampling_asks_where_no_rule_matches() {
    let policy = policy(
        "groups: { g: { otherwise: allow, rules: [ { name: no, verdict: deny, agent: x, method: sampling/createMessage } ] } }",
    );
    let facet = |method: &str| Facet { kind: FacetKind::Method(method.into()), floors: vec![] };
    let subject = |method| Subject { tool: None, category: None, method, ..call("") };
    let sampling = "sampling/createMessage";
    assert_eq!(judged(&policy, &subject(sampling), &[facet(sampling)]).verdict, Ask);
    assert_eq!(judged(&policy, &subject("x/y"), &[facet("x/y")]).verdict, Allow);
    let named = Subject { agent: Some("x"), ..subject(sampling) };
    assert_eq!(judged(&policy, &named, &[facet(sampling)]).verdict, Deny);
}

#[test]
fn no_allow_on_hosts_or_paths_covers_an_unmarked_host() {
    use crate::facet::AddressFacet;
    let address = |host: &str, unmarked| Facet {
        kind: FacetKind::Address(AddressFacet { address: format!("x@{host}"), host: Some(host.to_owned()), unmarked }),
        floors: Vec::new(),
    };
    let policy = policy(
        "
guardrails: [ { name: inside, verdict: deny, host: \"@internal\", reason: No. } ]
groups:
  g:
    otherwise: ask
    rules:
      - { name: tell, verdict: allow, tool: tell, host: a.example }
      - { name: files, verdict: allow, tool: [tell, note], path: docs/ }
      - { name: note, verdict: allow, tool: note }
",
    );
    let says = |tool: &'static str, facets: &[Facet]| judged(&policy, &call(tool), facets).verdict;
    assert_eq!(says("tell", &[address("a.example", false)]), Allow);
    for host in ["a.example", "b.example"] {
        assert_eq!(says("tell", &[address("a.example", false), address(host, true)]), Ask, "{host}");
        assert_eq!(says("note", &[address(host, true)]), Allow, "{host}");
    }
    assert_eq!(says("note", &[address("169.254.169.254", true)]), Deny);
}

#[test]
fn an_allow_but_for_some_hosts_covers_no_url_without_one() {
    use crate::facet::UrlFacet;
    let url = |host: Option<&str>| Facet {
        kind: FacetKind::Url(UrlFacet { url: "u".into(), host: host.map(Into::into), command: None, unmarked: false }),
        floors: Vec::new(),
    };
    let policy = policy(
        "
groups:
  g:
    otherwise: ask
    rules:
      - { name: out, verdict: allow, tool: fetch, except: [ { host: \"@internal\" } ] }
      - { name: inside, verdict: deny, host: \"@internal\", reason: No. }
",
    );
    let says = |host: Option<&str>| judged(&policy, &call("fetch"), &[url(host)]).verdict;
    assert_eq!((says(Some("a.example")), says(Some("127.0.0.1")), says(None)), (Allow, Deny, Ask));
}

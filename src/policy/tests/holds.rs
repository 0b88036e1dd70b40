//! "How a field holds": sides, exceptions, three values.

use super::*;
use crate::policy::{Claim, Claimed};
use crate::record::{Depth, Source, Verdict};
use Verdict::{Allow, Ask, Deny};

fn says(rules_: &[&str], subject: &Subject<'_>, facet: Facet) -> Verdict {
    judged(&rules(rules_), subject, &[facet]).verdict
}

#[test]
fn an_allow_takes_the_physical_path_and_a_deny_either() {
    let link_out = linked(Some(Access::Read), "/w/docs/a", &["/w/private/a"]);
    let link_in = linked(Some(Access::Read), "/w/private/a", &["/w/docs/a"]);
    let allow = "{verdict: allow, path: docs/}";
    assert_eq!(says(&[allow], &call("t"), link_out.clone()), Ask);
    assert_eq!(says(&[allow], &call("t"), link_in.clone()), Allow);
    let deny = "{verdict: deny, path: private/}";
    for facet in [link_out, link_in] {
        assert_eq!(says(&[allow, deny], &call("t"), facet), Deny);
    }
}

#[test]
fn an_allow_needs_every_physical_path_of_a_delete() {
    let kept_and_followed = linked(Some(Access::Delete), "/w/docs/l", &["/w/docs/l", "/w/private"]);
    assert_eq!(says(&["{verdict: allow, path: docs/}"], &call("t"), kept_and_followed.clone()), Ask);
    assert_eq!(says(&["{verdict: deny, path: private/}"], &call("t"), kept_and_followed), Deny);
}

#[test]
fn without_a_physical_path_both_sides_are_lexical() {
    let name = linked(Some(Access::Read), "/w/docs/a", &[]);
    assert_eq!(says(&["{verdict: allow, path: docs/}"], &call("t"), name.clone()), Allow);
    assert_eq!(says(&["{verdict: deny, path: DOCS/}"], &call("t"), name), Deny);
}

#[test]
fn an_exception_to_a_deny_holds_only_exactly_on_both_paths() {
    let deny = "{verdict: deny, path: /, except: [{path: ./}]}";
    let otherwise = Ask;
    assert_eq!(says(&[deny], &call("t"), reads("/w/docs/a")), otherwise);
    assert_eq!(says(&[deny], &call("t"), reads("/etc/passwd")), Deny);
    assert_eq!(says(&[deny], &call("t"), linked(Some(Access::Read), "/w/a", &["/etc/passwd"])), Deny);
    assert_eq!(says(&[deny], &call("t"), linked(Some(Access::Read), "/link/a", &["/w/a"])), Deny);
    let by_name = "{verdict: deny, tool: \"@any\", except: [{tool: read_file}]}";
    assert_eq!(says(&[by_name], &call("read_file"), bare()), otherwise);
    assert_eq!(says(&[by_name], &call("Read_File"), bare()), Deny);
}

#[test]
fn an_exception_to_an_allow_holds_widely() {
    let allow = "{verdict: allow, tool: \"@any\", except: [{path: private/}, {access: delete}]}";
    assert_eq!(says(&[allow], &call("t"), reads("/w/docs/a")), Allow);
    assert_eq!(says(&[allow], &call("t"), reads("/w/PRIVATE/a")), Ask);
    assert_eq!(says(&[allow], &call("t"), linked(Some(Access::Read), "/w/private/a", &["/w/docs/a"])), Ask);
    assert_eq!(says(&[allow], &call("t"), linked(None, "/w/docs/a", &["/w/docs/a"])), Ask, "it may be a delete");
    assert_eq!(says(&[allow], &call("t"), bare()), Allow, "what has no path is no exception");
}

#[test]
fn unknown_access_is_every_one_for_a_deny_and_none_for_an_allow() {
    let unknown = || linked(None, "/w/a", &["/w/a"]);
    for (field, word) in
        [("access", "read"), ("access", "[write, delete]"), ("tool", "\"@fs_write\""), ("tool", "\"@fs_read\"")]
    {
        assert_eq!(says(&[&format!("{{verdict: deny, {field}: {word}}}")], &call("t"), unknown()), Deny, "{word}");
        assert_eq!(says(&[&format!("{{verdict: allow, {field}: {word}}}")], &call("t"), unknown()), Ask, "{word}");
    }
    assert_eq!(says(&["{verdict: allow, tool: \"@fs_any\"}"], &call("t"), unknown()), Allow);
}

#[test]
fn one_false_field_is_enough_whatever_else_is_unknown() {
    let both = |verdict: &str| format!("{{verdict: {verdict}, upstream: mail, args: {{n: {{gt: 5}}}}}}");
    let arguments = json(r#"{"n":"six"}"#);
    let here = |upstream| Subject { upstream: Some(upstream), arguments: Some(arguments.root()), ..call("t") };
    assert_eq!(says(&[&both("deny")], &here("mail"), bare()), Deny, "unknown tightens");
    assert_eq!(says(&[&both("allow")], &here("mail"), bare()), Ask, "unknown does not loosen");
    assert_eq!(says(&[&both("deny")], &here("files"), bare()), Ask, "false is false");
}

#[test]
fn names_fold_for_a_deny_only() {
    let all =
        ["{verdict: allow, tool: read_file}", "{verdict: deny, tool: delete_all}", "{verdict: ask, tool: write_file}"];
    for (tool, verdict) in [
        ("read_file", Allow),
        ("read_file ", Ask),
        ("read_file\t", Ask),
        ("Read_File", Ask),
        ("readFile", Ask),
        ("read-file", Ask),
        ("read_file_and_delete", Ask),
        ("\u{ff52}\u{ff45}\u{ff41}\u{ff44}_file", Ask),
        ("delete_all", Deny),
        (" delete_all", Deny),
        ("DELETE_ALL", Deny),
        ("delete\u{200b}_all", Deny),
        ("delete_all_drafts", Ask),
    ] {
        assert_eq!(says(&all, &call(tool), bare()), verdict, "{tool:?}");
    }
}

#[test]
fn names_and_any_cover_tool_calls_only() {
    let resource = Subject { tool: None, category: None, method: "resources/read", ..call("") };
    for rule in ["tool: \"@any\"", "tool: \"*\"", "category: \"*\""] {
        assert_eq!(says(&[&format!("{{verdict: deny, {rule}}}")], &resource, reads("/w/a")), Ask, "{rule}");
    }
    for rule in ["tool: \"@fs_read\"", "tool: \"@fs_any\"", "method: resources/read", "path: ./", "access: read"] {
        assert_eq!(says(&[&format!("{{verdict: allow, {rule}}}")], &resource, reads("/w/a")), Allow, "{rule}");
    }
}

#[test]
fn a_guess_satisfies_no_class_of_an_allow() {
    let guess = || floored(reads("/w/a"), FloorWhy::Heuristic);
    let allows = ["{name: class, verdict: allow, tool: \"@fs_read\"}", "{name: name, verdict: allow, tool: t}"];
    let matches: Vec<String> = judged(&rules(&allows), &call("t"), &[guess()]).facets[0]
        .record
        .matches
        .iter()
        .map(|found| found.rule.clone())
        .collect();
    assert_eq!(matches, ["name"]);
    assert_eq!(says(&["{verdict: deny, tool: \"@fs_read\"}"], &call("t"), guess()), Deny);
}

#[test]
fn a_field_that_the_facet_lacks_is_false() {
    assert_eq!(says(&["{verdict: deny, path: ./}"], &call("t"), bare()), Ask);
    assert_eq!(says(&["{verdict: deny, tool: \"@shell\"}"], &call("t"), bare()), Ask);
    let shell = floored(Facet { kind: FacetKind::Command(Default::default()), floors: vec![] }, FloorWhy::Shell);
    assert_eq!(says(&["{verdict: deny, tool: \"@shell\"}"], &call("t"), shell), Deny);
}

#[test]
fn a_tool_that_no_catalogue_knows_may_be_of_any_category() {
    let stranger = Subject { category: None, ..call("t") };
    assert_eq!(says(&["{verdict: deny, category: shell}"], &stranger, bare()), Deny);
    assert_eq!(says(&["{verdict: allow, category: filesystem}"], &stranger, bare()), Ask);
}

#[test]
fn callers_are_told_apart() {
    let sub = Subject { depth: Some(Depth::Sub), source: Some(Source::Background), ..call("t") };
    for rule in [
        "{verdict: deny, depth: sub}",
        "{verdict: deny, source: background}",
        "{verdict: deny, agent: \"cl*\", depth: sub}",
    ] {
        assert_eq!(says(&[rule], &sub, bare()), Deny, "{rule}");
        assert_eq!(says(&[rule], &call("t"), bare()), Ask, "{rule}");
    }
}

#[test]
fn what_a_client_says_of_itself_only_tightens() {
    let said = |source, depth| Subject { claimed: Claimed { source, depth }, ..call("t") };
    let claims = said(Claim::Said(Source::Background), Claim::Said(Depth::Sub));
    for field in ["source: background", "depth: sub", "source: interactive", "depth: root"] {
        assert_eq!(says(&[&format!("{{verdict: deny, {field}}}")], &claims, bare()), Deny, "{field}");
    }
    for (field, verdict) in [("source: background", Ask), ("depth: sub", Ask), ("source: interactive", Allow)] {
        assert_eq!(says(&[&format!("{{verdict: allow, {field}}}")], &claims, bare()), verdict, "{field}");
    }
    // An exception to an allow tightens, one to a deny loosens.
    assert_eq!(says(&["{verdict: allow, tool: t, except: [{depth: sub}]}"], &claims, bare()), Ask);
    assert_eq!(says(&["{verdict: deny, tool: t, except: [{depth: sub}]}"], &claims, bare()), Deny);
    let odd = said(Claim::Unreadable, Claim::Unreadable);
    assert_eq!(says(&["{verdict: deny, depth: sub}"], &odd, bare()), Deny);
    assert_eq!(says(&["{verdict: allow, depth: root}"], &odd, bare()), Allow);
    assert_eq!(says(&["{verdict: deny, depth: sub}"], &call("t"), bare()), Ask);
}

#[test]
fn arguments_compare_exactly_by_pointer() {
    let big = json(r#"{"amount":9007199254740993,"to":["ana@x.example","Eve@x.example"],"o":{"k":"AB"}}"#);
    let subject = Subject { arguments: Some(big.root()), ..call("t") };
    for (args, deny, allow) in [
        ("{amount: {gt: 9007199254740992}}", Deny, Allow),
        ("{amount: {gt: 9007199254740993}}", Ask, Ask),
        ("{amount: {eq: 9007199254740992}}", Ask, Ask),
        ("{amount: {ge: 1, lt: 1e16}}", Deny, Allow),
        ("{/to/*: {glob: \"*@x.example\"}}", Deny, Allow),
        ("{/to/*: {eq: eve@x.example}}", Deny, Ask),
        ("{/to/0: {contains: ana}}", Deny, Allow),
        ("{/o/k: {regex: \"[A-Z]+\"}}", Deny, Allow),
        ("{/o/k: {regex: \"A\"}}", Ask, Ask),
        ("{/o/k: {in: [ab, cd]}}", Deny, Ask),
        ("{/o/k: {gt: 5}}", Deny, Ask),
        ("{nothing: {eq: 5}}", Ask, Ask),
        ("{nothing: {eq: 5, default: 5}}", Deny, Allow),
        ("{nothing: {present: false}, amount: {present: true}}", Deny, Allow),
    ] {
        assert_eq!(says(&[&format!("{{verdict: deny, args: {args}}}")], &subject, bare()), deny, "deny {args}");
        assert_eq!(says(&[&format!("{{verdict: allow, args: {args}}}")], &subject, bare()), allow, "allow {args}");
    }
}

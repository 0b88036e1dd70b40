//! Guarded paths below recursive facets, on a real file system.

use super::*;
use crate::config::ApprovalsConfig;
use crate::record::{Severity, Verdict};
use Verdict::{Allow, Ask, Deny};

pub(super) struct Tree {
    folder: tempfile::TempDir,
    pub space: Space,
}

impl Tree {
    pub fn new(files: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "x").unwrap();
        }
        let config = UpstreamConfig::new("files", Transport::Command(Vec::new()), folder.path().to_owned());
        Self { space: Space::new(&config), folder }
    }

    pub fn link(&self, at: &str, to: &str) {
        std::os::unix::fs::symlink(to, self.folder.path().join(at)).unwrap();
    }

    pub fn facet(&self, access: Access, path: &str, recursive: bool) -> Facet {
        let lexical = self.folder.path().join(path);
        let kind = FacetKind::Path(PathFacet {
            access: Some(access),
            pointer: "/path".into(),
            sent: path.into(),
            physical: vec![self.space.locate(&lexical.canonicalize().unwrap())],
            lexical: self.space.locate(&lexical),
            canonical: None,
            recursive,
            command: None,
            part: None,
            below: None,
        });
        Facet { kind, floors: Vec::new() }
    }

    fn judge(&self, policy: &Policy, facet: Facet) -> Judgement {
        judge(
            policy,
            &call("t"),
            &Touched { facets: vec![facet], strays: Vec::new(), ..Touched::default() },
            &self.space,
        )
    }
}

pub(super) fn all(more: &[&str]) -> Policy {
    rules(&[&["{name: all, verdict: allow, tool: \"@any\"}"], more].concat())
}

#[test]
fn a_guarded_path_below_is_a_floor_that_names_it() {
    let tree = Tree::new(&["docs/a.md", "src/private/x"]);
    let policy = all(&["{name: private, verdict: deny, path: \"**/private/\", reason: No.}"]);
    let judgement = tree.judge(&policy, tree.facet(Access::Read, "", true));
    assert_eq!((judgement.verdict, judgement.decided_by), (Ask, vec!["floor:recursive_guarded".to_owned()]));
    let detail = judgement.facets[0].record.floors[0].detail.clone().unwrap();
    assert!(detail.contains("src/private") && detail.contains("`private`"), "{detail}");
    assert_eq!(tree.judge(&policy, tree.facet(Access::Read, "", false)).verdict, Allow, "a listing stays where it is");
    assert_eq!(tree.judge(&policy, tree.facet(Access::Read, "docs", true)).verdict, Allow);
    assert_eq!(tree.judge(&policy, tree.facet(Access::Read, "src/private", true)).verdict, Deny);
}

#[test]
fn rules_on_everything_and_exceptions_are_left_out() {
    let tree = Tree::new(&["docs/a.md", "keep/open/b.md"]);
    let outside = all(&["{verdict: deny, path: /, except: [{path: ./}], reason: Outside.}"]);
    assert_eq!(tree.judge(&outside, tree.facet(Access::Read, "", true)).verdict, Allow);
    let keep = all(&["{verdict: deny, path: \"keep/*\", except: [{path: keep/open/}], reason: Kept.}"]);
    assert_eq!(tree.judge(&keep, tree.facet(Access::Read, "", true)).verdict, Allow);
    let writes = all(&["{verdict: deny, path: keep/, access: write, reason: Kept.}"]);
    assert_eq!(tree.judge(&writes, tree.facet(Access::Read, "", true)).verdict, Allow);
    assert_eq!(tree.judge(&writes, tree.facet(Access::Write, "", true)).verdict, Ask);
}

#[test]
fn a_delete_takes_away_all_that_is_below() {
    let tree = Tree::new(&["a/private/x", "b/c"]);
    let policy = all(&["{name: private, verdict: deny, path: a/private/, reason: No.}"]);
    assert_eq!(tree.judge(&policy, tree.facet(Access::Delete, "a", false)).verdict, Ask);
    assert_eq!(tree.judge(&policy, tree.facet(Access::Delete, "b", false)).verdict, Allow);
    tree.link("b/out", "/usr");
    assert_eq!(
        tree.judge(&policy, tree.facet(Access::Delete, "b", false)).verdict,
        Allow,
        "the link goes, not what it leads to"
    );
    assert_eq!(tree.judge(&policy, tree.facet(Access::Read, "b", true)).decided_by, ["floor:recursive_link"]);
}

#[test]
fn a_rule_below_a_link_holds_by_the_links_name_too() {
    let tree = Tree::new(&["real/inner/x"]);
    tree.link("alias", "real");
    let policy = all(&["{verdict: deny, path: alias/inner/, reason: No.}"]);
    assert_eq!(tree.judge(&policy, tree.facet(Access::Read, "alias", true)).verdict, Ask);
}

#[test]
fn the_floor_carries_the_approvals_of_the_asks_it_would_reach() {
    let tree = Tree::new(&["a/private/x", "b/keep/x", "c/other/x"]);
    let policy = all(&[
        "{verdict: deny, path: \"**/private/\", reason: No.}",
        "{verdict: ask, path: \"**/keep/\", approval: {severity: high, expires: 1m}}",
        "{verdict: ask, path: c/never/, approval: {severity: critical}}",
    ]);
    let judgement = tree.judge(&policy, tree.facet(Access::Read, "", true));
    let requirement = judgement.requirement.unwrap();
    assert_eq!(requirement.severity, Severity::High);
    assert_eq!(requirement.terms(&ApprovalsConfig::default()).expires.as_secs(), 60);
}

#[test]
fn only_what_goes_on_below_is_walked() {
    let tree = Tree::new(&["docs/a.md"]);
    let touched = |facet: Facet| Touched { facets: vec![facet], strays: Vec::new(), ..Touched::default() };
    assert!(crate::policy::needs_walk(&touched(tree.facet(Access::Read, "docs", true))));
    assert!(crate::policy::needs_walk(&touched(tree.facet(Access::Delete, "docs", false))));
    assert!(!crate::policy::needs_walk(&touched(tree.facet(Access::Read, "docs", false))));
    assert!(!crate::policy::needs_walk(&touched(bare())));
}

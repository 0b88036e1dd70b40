//! The packs in `policies/`: each loads by itself and beside all others, and names no tool that nobody has.

use std::path::Path;

use super::*;
use crate::catalog::Catalogue;
use crate::pattern::Side;
use crate::policy::fields::ToolTerm;

/// The policy files of the repository.
fn packs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_pack = |file: &PathBuf| {
        let name = file.to_str().unwrap();
        name.ends_with(".yaml") && !name.ends_with(".test.yaml")
    };
    let mut packs: Vec<PathBuf> = files.filter(is_pack).collect();
    packs.sort();
    packs
}

fn load_packs(files: &[PathBuf]) -> Loaded {
    let files = files.iter().map(|file| file.to_str().unwrap().to_owned()).collect();
    let config = PolicyConfig { files, ..PolicyConfig::default() };
    let mut loaded = load(&config, &[]).unwrap_or_else(|found| panic!("{}", told(&found)));
    loaded.lint(None, crate::clock::Clock::system().now());
    // What a pack allows on purpose (a hole, a test runner) is said beside the rule.
    loaded.warnings.retain(|found| !matches!(found.code, Some("P002" | "P013")));
    assert!(loaded.warnings.is_empty(), "{}", told(&loaded.warnings));
    loaded
}

#[test]
fn each_loads_by_itself_and_all_together() {
    let packs = packs();
    assert!(packs.len() >= 9, "{packs:?}");
    let alone: usize = packs.iter().map(|pack| load_packs(std::slice::from_ref(pack)).policy.groups().count()).sum();
    assert_eq!(load_packs(&packs).policy.groups().count(), alone, "no group stands in two packs");
}

#[test]
fn every_rule_has_a_name_and_a_reason_and_every_pack_tests() {
    let packs = packs();
    for rule in load_packs(&packs).policy.rules().iter().filter(|rule| rule.file.is_some()) {
        assert!(!rule.label.contains(':'), "{}: a rule without a name", rule.label);
        assert!(rule.reason.as_ref().is_some_and(|reason| reason.ends_with('.')), "{}: no reason", rule.label);
    }
    for pack in packs {
        assert!(pack.with_extension("test.yaml").exists(), "{}", pack.display());
    }
}

#[test]
fn every_tool_that_a_pack_names_is_in_a_built_in_catalogue() {
    let known: Vec<&str> = Catalogue::builtin_names()
        .into_iter()
        .filter_map(Catalogue::builtin)
        .flat_map(|catalogue| catalogue.tools.keys().map(String::as_str))
        .collect();
    let mut named = 0;
    for rule in load_packs(&packs()).policy.rules() {
        for term in [&rule.fields].into_iter().chain(&rule.except).flat_map(|fields| &fields.tool) {
            if let ToolTerm::Name(pattern) = term {
                named += 1;
                assert!(known.iter().any(|tool| pattern.matches(tool, Side::Exact)), "{}: {pattern:?}", rule.label);
            }
        }
    }
    assert!(named > 50, "{named}");
}

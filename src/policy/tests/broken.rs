//! Slips that people make in policies and tests: each is told at its place, with what to do. The snapshot is read by
//! people, as they would read the messages.

use std::path::{Path, PathBuf};

use super::*;
use crate::diagnostic::Severity;
use crate::policy::suite::{Tested, Tests};
use crate::policy::test;

/// Files of which no line in particular is wrong.
const WHOLE: [&str; 3] = ["empty.yaml", "only-comments.yaml", "utf-16.yaml"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/broken")
}

/// The policies in a folder, each by itself; sorted.
fn policies(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|file| file.is_file() && !file.to_string_lossy().ends_with(".test.yaml")).collect();
    files.sort();
    files
}

/// What is wrong with these files and the tests that belong to them.
fn wrong(files: &[PathBuf]) -> Vec<Diagnostic> {
    let files = files.iter().map(|file| file.display().to_string()).collect();
    let config = PolicyConfig { files, ..plain() };
    test(&config, &[], &Tests::Own).and_then(Tested::good).map(|loaded| loaded.files).unwrap_err()
}

fn snapshot(found: &[Diagnostic]) -> String {
    let text = told(found);
    text.replace(&format!("{}/", folder().display()), "").replace("tests/fixtures/broken/", "")
}

#[test]
fn each_slip_is_told_as_a_person_needs_it() {
    let mut cases: Vec<Vec<PathBuf>> = policies(&folder()).into_iter().map(|file| vec![file]).collect();
    cases.push(policies(&folder().join("two-files")));
    cases.extend(policies(&folder().join("tests")).into_iter().map(|file| vec![file]));
    assert!(cases.len() >= 60, "{}", cases.len());
    let mut all = String::new();
    for files in &cases {
        let found = wrong(files);
        for found in &found {
            assert_eq!(found.severity, Severity::Error, "{found}");
            let is_whole = WHOLE.iter().any(|name| found.file.ends_with(name));
            assert!((found.line > 0 && found.column > 0) != is_whole, "{found}");
        }
        all.push_str(&snapshot(&found));
        all.push_str("\n\n");
    }
    insta::assert_snapshot!(all);
}

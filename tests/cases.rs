//! Runs the cases of `tests/cases/` (or of the folder in `PORTCULLIS_CASES`): what a safe gate must say to real bypasses
//! and to benign calls. `tests/cases/README.md` says what the fields mean.
//!
//! One line a failing case, then what was left out and why, then `cases: N passed, M failed, K skipped`.

#![allow(clippy::print_stdout)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "runner/case.rs"]
mod case;
#[path = "runner/fixture.rs"]
mod fixture;
#[path = "integration/harness/http.rs"]
mod http;
#[path = "runner/live.rs"]
mod live;
#[path = "runner/neutral.rs"]
mod neutral;
#[path = "runner/play.rs"]
mod play;
#[path = "runner/steps.rs"]
mod steps;
#[path = "runner/tree.rs"]
mod tree;

use std::collections::BTreeMap;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use case::Case;
use play::Played;

fn main() -> ExitCode {
    let folder = std::env::var_os("PORTCULLIS_CASES")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases"), PathBuf::from);
    match read_all(&folder) {
        Ok(cases) if cases.is_empty() => {
            println!("no case in {}", folder.display());
            ExitCode::FAILURE
        }
        Ok(cases) => run_all(&cases),
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(cases: &[Case]) -> ExitCode {
    let (mut passed, mut failed) = (0, 0);
    let mut skipped: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for case in cases {
        // A panic is that case's failure, not the end of the run.
        let played = catch_unwind(|| play::play(case)).unwrap_or_else(|_| Played::Broken("a panic".to_owned()));
        match played {
            Played::Said { got, .. } if case.expect.accepts(&got) => passed += 1,
            Played::Said { got, detail } => {
                failed += 1;
                println!("FAIL {}: expected {}, got {got} ({detail}); {}", case.id, case.expect, case.why);
            }
            Played::Broken(what) => {
                failed += 1;
                println!("FAIL {}: expected {}, got nothing ({what}); {}", case.id, case.expect, case.why);
            }
            Played::Skipped(why) => skipped.entry(why).or_default().push(&case.id),
        }
    }
    for (why, ids) in &skipped {
        match ids.len() {
            1..=8 => println!("skipped, {why}: {}", ids.join(" ")),
            many => println!("skipped, {why}: {many} cases"),
        }
    }
    let left_out: usize = skipped.values().map(Vec::len).sum();
    println!("cases: {passed} passed, {failed} failed, {left_out} skipped");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every line of every `*.jsonl` in the folder, in the order of the files' names.
fn read_all(folder: &Path) -> Result<Vec<Case>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("cannot list {}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|ext| ext == "jsonl"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let at = format!("{}:{}", file.display(), number + 1);
            cases.push(serde_json::from_str(line).map_err(|e| format!("{at}: {e}"))?);
        }
    }
    Ok(cases)
}

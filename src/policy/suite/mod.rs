//! The `*.test.yaml` beside a policy: calls, with the verdict and the rules that are expected. A policy whose tests fail
//! does not load.

mod read;
mod run;
mod setup;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::called::Catalogues;
use super::find;
pub use super::find::{is_test, tested};
use super::load::Loaded;
use super::model::{Policy, Rule};
use crate::config::yaml::{Mark, Report};
use crate::diagnostic::{Diagnostic, shown};
use crate::record::{FacetRecord, Verdict};

/// Which tests are run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Tests {
    /// Every `*.test.yaml` in the folders of the policy files, but those named after a policy file that is not loaded.
    Beside,
    /// Only those named after the policy files: of `base.yaml`, `base.test.yaml`.
    Own,
    /// These files.
    Named(Vec<PathBuf>),
}

/// What a call comes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It runs.
    Allow,
    /// It is held.
    Ask,
    /// It is refused.
    Deny,
    /// It cannot be read, and is refused before any rule is tried.
    Malformed,
}

impl From<Verdict> for Answer {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Allow => Self::Allow,
            Verdict::Ask => Self::Ask,
            Verdict::Deny => Self::Deny,
        }
    }
}

impl Answer {
    /// The word in YAML and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::Malformed => "malformed",
        }
    }
}

/// One test that was run.
#[derive(Debug, Serialize)]
pub struct TestResult {
    /// Its name, or `file:line`.
    pub name: String,
    /// The file, as the operator named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// Whether all is as expected.
    pub passed: bool,
    /// What is expected.
    pub expected: Expected,
    /// What the policy says.
    pub got: Got,
}

/// What a test expects.
#[derive(Debug, Serialize)]
pub struct Expected {
    /// The verdict.
    pub verdict: Answer,
    /// Rules that must be among those that decide.
    pub rule: Vec<String>,
}

/// What the policy says of a test's call.
#[derive(Debug, Serialize)]
pub struct Got {
    /// The verdict.
    pub verdict: Answer,
    /// As in `policy explain`.
    pub decided_by: Vec<String>,
    /// Each facet with the rules that matched.
    pub facets: Vec<FacetRecord>,
    /// What would have been needed for an allow, or why the call is malformed or passes.
    pub because: Vec<String>,
}

/// A policy with its tests run.
#[derive(Debug)]
pub struct Tested {
    /// The policy, whether its tests pass or not.
    pub loaded: Loaded,
    /// Every test, in file order.
    pub results: Vec<TestResult>,
    reports: Vec<Report>,
}

/// Which rules the tests decide.
#[derive(Debug)]
pub struct Coverage {
    /// Rules and guardrails of the policy files that a passing test is decided by.
    pub decided: usize,
    /// The others, in file order.
    pub undecided: Vec<Arc<Rule>>,
}

impl Tested {
    /// The policy, if every test passes.
    ///
    /// # Errors
    /// Each failing test, at its place.
    pub fn good(mut self) -> Result<Loaded, Vec<Diagnostic>> {
        if self.results.iter().all(|result| result.passed) {
            return Ok(self.loaded);
        }
        for result in self.results.iter().filter(|result| !result.passed) {
            if let Some(report) = self.reports.iter_mut().find(|report| report.file() == result.file) {
                let at = Mark { line: result.line, column: result.column };
                report.error(at, format!("test `{}` fails: {}", result.name, result.difference()));
                report.help(result.got.because.first().map(String::as_str));
            }
        }
        Err(self.reports.into_iter().flat_map(Report::into_diagnostics).collect())
    }

    /// Which rules the passing tests decide.
    pub fn coverage(&self) -> Coverage {
        let passed = self.results.iter().filter(|result| result.passed);
        let deciding: BTreeSet<&str> = passed.flat_map(|result| &result.got.decided_by).map(String::as_str).collect();
        let own = self.loaded.policy.rules().iter().filter(|rule| rule.file.is_some());
        let (decided, undecided): (Vec<_>, Vec<_>) = own.cloned().partition(|rule| deciding.contains(&*rule.label));
        Coverage { decided: decided.len(), undecided }
    }
}

impl TestResult {
    /// Expected and got, in a sentence.
    pub fn difference(&self) -> String {
        format!(
            "expected {}, got {}",
            said(self.expected.verdict, &self.expected.rule),
            said(self.got.verdict, &self.got.decided_by)
        )
    }
}

/// A verdict and what decides it.
pub fn said(verdict: Answer, by: &[String]) -> String {
    if by.is_empty() { verdict.as_str().into() } else { format!("{} by {}", verdict.as_str(), by.join(", ")) }
}

/// The tests of a policy, read but not run.
pub(super) type Drafts = Vec<(Report, Vec<read::Draft>)>;

/// Reads the tests of these policy files; what is wrong with one is in its report.
///
/// # Errors
/// A folder or a file that cannot be read.
pub(super) fn read(policies: &[PathBuf], which: &Tests) -> Result<Drafts, Box<Diagnostic>> {
    let unreadable = |path: &Path, error| Box::new(Diagnostic::whole(shown(path), format!("cannot be read: {error}")));
    let files = match which {
        Tests::Named(files) => Ok(files.clone()),
        Tests::Beside | Tests::Own => find::tests(policies, *which == Tests::Own),
    };
    let files = files.map_err(|(folder, error)| unreadable(&folder, error))?;
    let read = |file: PathBuf| match std::fs::read(&file) {
        Ok(bytes) => Ok(read::file(&shown(&file), &bytes)),
        Err(error) => Err(unreadable(&file, error)),
    };
    files.into_iter().map(read).collect()
}

/// Runs the tests. What one asks for that the policy does not have is an error in its report.
pub(super) fn run(policy: &Policy, drafts: Drafts, catalogues: &Catalogues) -> (Vec<Report>, Vec<TestResult>) {
    let mut results = Vec::new();
    let mut reports = Vec::new();
    for (mut report, tests) in drafts {
        results.extend(tests.iter().filter_map(|test| run::run(policy, test, catalogues, &mut report)));
        reports.push(report);
    }
    (reports, results)
}

/// Puts the policy and its tests together, unless a test could not be run.
pub(super) fn finish(loaded: Loaded, drafts: Drafts, catalogues: &Catalogues) -> Result<Tested, Vec<Diagnostic>> {
    let (reports, results) = run(&loaded.policy, drafts, catalogues);
    if reports.iter().any(Report::has_errors) {
        return Err(reports.into_iter().flat_map(Report::into_diagnostics).collect());
    }
    Ok(Tested { loaded, results, reports })
}

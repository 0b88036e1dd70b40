//! `portcullis policy test`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use super::explain::describe;
use crate::cli::client::{CONFIG_FILE, Failure, Format, print};
use crate::cli::exit::Exit;
use crate::config::{self, Config, PolicyConfig};
use crate::diagnostic::Diagnostic;
use crate::pattern::visible;
use crate::policy;
use crate::policy::suite::{Coverage, TestResult, Tested, Tests, is_test, said, tested};

/// Which tests to run.
#[derive(Args, Debug)]
pub struct Test {
    /// The gateway's configuration [default: portcullis.yaml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Test files to run alone, or policy files to test by themselves, instead of those that the configuration names
    files: Vec<PathBuf>,
    /// Name the rules that no test decides
    #[arg(long)]
    coverage: bool,
    /// For people, or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl Test {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let (text, exit) = self.report();
        print(&text)?;
        Ok(exit)
    }

    fn report(&self) -> (String, Exit) {
        match (self.test(), self.format) {
            (Ok(tested), format) => {
                let passes = tested.results.iter().all(|result| result.passed);
                let coverage = self.coverage.then(|| tested.coverage());
                let text = match format {
                    Format::Json => for_programs(&tested, coverage.as_ref()).to_string(),
                    Format::Human => for_people(&tested, coverage.as_ref()),
                };
                (text, if passes { Exit::Done } else { Exit::Failed })
            }
            (Err(findings), Format::Json) => {
                (json!({ "valid": false, "findings": findings }).to_string(), Exit::Invalid)
            }
            (Err(findings), Format::Human) => {
                let mut text: String = findings.iter().map(|finding| format!("{finding}\n\n")).collect();
                text.push_str("no test was run: the policy does not load");
                (text, Exit::Invalid)
            }
        }
    }

    fn test(&self) -> Result<Tested, Vec<Diagnostic>> {
        let file = self.config.clone().unwrap_or_else(|| PathBuf::from(CONFIG_FILE));
        let (tests, policies): (Vec<&PathBuf>, Vec<&PathBuf>) = self.files.iter().partition(|file| is_test(file));
        let is_needed = self.config.is_some() || self.files.is_empty() || file.exists();
        let config = if is_needed { Some(config::load(&file)?) } else { None };
        let which = match (tests.is_empty(), policies.is_empty()) {
            (false, _) => Tests::Named(tests.iter().map(|file| absolute(file)).collect()),
            (true, false) => Tests::Own,
            (true, true) => Tests::Beside,
        };
        let own = config.as_ref().map(policy::own_files).unwrap_or_default();
        let policy = match &config {
            Some(config) if policies.is_empty() => config.policy.clone(),
            _ => alone(config.as_ref(), &policies, &tests)?,
        };
        policy::test(&policy, &own, &which)
    }
}

/// The policy files that are named, or that the test files are named after, by themselves: single ones need not have
/// what all of them together must.
fn alone(config: Option<&Config>, policies: &[&PathBuf], tests: &[&PathBuf]) -> Result<PolicyConfig, Vec<Diagnostic>> {
    let mut files: Vec<PathBuf> = policies.iter().map(|file| (*file).clone()).collect();
    if policies.is_empty() {
        for test in tests {
            let lost = || {
                let message = "no policy file is called after these tests";
                let help = "name the policy file too, or the configuration with --config";
                vec![Diagnostic { help: Some(help.into()), ..Diagnostic::whole(test.display().to_string(), message) }]
            };
            files.push(tested(test).ok_or_else(lost)?);
        }
    }
    let files = files.iter().map(|file| super::check::literal(file)).collect();
    let policy = config.map(|config| config.policy.clone()).unwrap_or_default();
    Ok(PolicyConfig { files, require: Vec::new(), ..policy })
}

fn absolute(file: &Path) -> PathBuf {
    std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf())
}

fn for_programs(tested: &Tested, coverage: Option<&Coverage>) -> Value {
    let passed = tested.results.iter().filter(|result| result.passed).count();
    let mut answer = json!({
        "valid": true,
        "version": tested.loaded.policy.version,
        "passed": passed,
        "failed": tested.results.len() - passed,
        "tests": tested.results,
    });
    if let (Some(coverage), Some(answer)) = (coverage, answer.as_object_mut()) {
        let undecided = coverage.undecided.iter().map(|rule| {
            json!({ "name": rule.label, "file": rule.file, "line": rule.line, "verdict": rule.verdict, "guardrail": rule.guardrail })
        });
        let total = coverage.decided + coverage.undecided.len();
        answer.insert(
            "coverage".into(),
            json!({ "decided": coverage.decided, "total": total, "undecided": undecided.collect::<Vec<_>>() }),
        );
    }
    answer
}

fn for_people(tested: &Tested, coverage: Option<&Coverage>) -> String {
    let mut text = String::new();
    let (passed, failed): (Vec<_>, Vec<_>) = tested.results.iter().partition(|result| result.passed);
    for result in &failed {
        text.push_str(&told(result));
        text.push_str("\n\n");
    }
    if let Some(coverage) = coverage {
        text.push_str(&covered(coverage));
    }
    if tested.results.is_empty() {
        text.push_str("no tests: put them into `*.test.yaml` beside the policy files\n");
    }
    let _ = write!(text, "tests: {} passed, {} failed", passed.len(), failed.len());
    text
}

/// A failing test: expected and got side by side, then each facet that decided.
fn told(result: &TestResult) -> String {
    let TestResult { name, file, line, column, expected, got, .. } = result;
    let mut text = format!("{file}:{line}:{column}: FAIL {name}");
    let _ = write!(text, "\n  expected {}", said(expected.verdict, &expected.rule));
    let _ = write!(text, "\n  got      {}", said(got.verdict, &got.decided_by));
    for facet in got.facets.iter().filter(|facet| got.verdict == facet.verdict.into()) {
        for line in describe(facet).lines().filter(|line| !line.is_empty()) {
            let _ = write!(text, "\n    {line}");
        }
    }
    for sentence in &got.because {
        let _ = write!(text, "\n  {sentence}");
    }
    // What a call names is shown as text, whatever characters it has.
    text.lines().map(visible).collect::<Vec<_>>().join("\n")
}

fn covered(coverage: &Coverage) -> String {
    let mut text = String::new();
    if !coverage.undecided.is_empty() {
        text.push_str("decided by no test:\n");
    }
    for rule in &coverage.undecided {
        let (file, line) = (rule.file.as_deref().unwrap_or_default(), rule.line.unwrap_or_default());
        let what = if rule.guardrail { "guardrail" } else { "rule" };
        let _ = writeln!(text, "  {file}:{line}: {what} {}", rule.label);
    }
    let total = coverage.decided + coverage.undecided.len();
    let _ = writeln!(text, "coverage: {} of {total} rules and guardrails", coverage.decided);
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        test: Test,
    }

    const POLICY: &str = "version: 1
groups:
  default:
    rules:
      - { name: read-docs, verdict: allow, tool: '@fs_read', path: docs/ }
      - { name: no-mail, verdict: deny, upstream: mail, tool: '@any', reason: No mail. }
";

    /// A folder with a configuration, a policy and its tests; answers the report of a command line, the folder left out.
    fn report(tests: &str, line: &[&str]) -> (String, Exit) {
        let folder = tempfile::tempdir().unwrap();
        let config = "policy: { files: [base.yaml] }\nupstreams: { w: { workspace: true, root: . } }\n";
        for (name, text) in [("portcullis.yaml", config), ("base.yaml", POLICY), ("base.test.yaml", tests)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let at = |word: &&str| word.replace("DIR", folder.path().to_str().unwrap());
        let line = Line::try_parse_from(["test".to_owned()].into_iter().chain(line.iter().map(at))).unwrap();
        let (text, exit) = line.test.report();
        (text.replace(&format!("{}/", folder.path().display()), ""), exit)
    }

    const CONFIG: [&str; 2] = ["--config", "DIR/portcullis.yaml"];

    #[test]
    fn a_failing_test_is_shown_beside_what_was_expected() {
        let tests = "
- name: docs are read
  call: { upstream: w, tool: read_file, arguments: { path: docs/a.md } }
  verdict: allow
  rule: read-docs
- name: so are sources
  call: { upstream: w, tool: read_file, arguments: { path: src/a.rs } }
  verdict: allow
- name: a text
  call: git status
  verdict: ask
";
        let (text, exit) = report(tests, &[&CONFIG[..], &["--coverage"]].concat());
        assert_eq!(exit, Exit::Failed);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn programs_get_every_test() {
        let tests =
            "- { name: t, call: { upstream: w, tool: read_file, arguments: { path: docs/a.md } }, verdict: allow }\n";
        for line in [&CONFIG[..], &["DIR/base.yaml"], &["DIR/base.test.yaml"]] {
            let (text, exit) = report(tests, &[line, &["--format", "json", "--coverage"]].concat());
            let json: Value = serde_json::from_str(&text).unwrap();
            assert_eq!((exit, &json["passed"], &json["failed"]), (Exit::Done, &json!(1), &json!(0)), "{text}");
            assert_eq!(json["tests"][0]["got"]["decided_by"], json!(["read-docs"]));
            assert_eq!(json["coverage"]["undecided"][0]["name"], "no-mail");
        }
    }

    #[test]
    fn a_policy_that_does_not_load_is_no_failing_test() {
        let (text, exit) = report("- { call: ls, verdict: maybe }\n", &CONFIG);
        assert_eq!(exit, Exit::Invalid);
        assert!(text.contains("base.test.yaml:1:24: error: `maybe`") && text.ends_with("does not load"), "{text}");
        let (text, exit) = report("[]\n", &CONFIG);
        assert_eq!(exit, Exit::Done);
        assert!(text.starts_with("no tests: ") && text.ends_with("tests: 0 passed, 0 failed"), "{text}");
    }
}

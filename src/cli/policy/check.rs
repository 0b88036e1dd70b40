//! `portcullis policy check`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::admin;
use crate::cli::client::{CONFIG_FILE, Failure, Format, print};
use crate::cli::exit::Exit;
use crate::clock::Clock;
use crate::config::{self, Config, PolicyConfig};
use crate::diagnostic::{Diagnostic, Severity, did_you_mean, shown};
use crate::identity::Directory;
use crate::policy::suite::{Tested, Tests};
use crate::policy::{self, Loaded};

/// What to check.
#[derive(Args, Debug)]
pub struct Check {
    /// The gateway's configuration [default: portcullis.yaml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Policy files to check by themselves, instead of those that the configuration names
    files: Vec<PathBuf>,
    /// Fail on a warning too, with exit code 1
    #[arg(long)]
    deny_lints: bool,
    /// For people, or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

/// Where policy files are looked for, beside the configuration, if that cannot say.
const USUAL_FILES: &str = "policies/*.yaml";

/// What came of it.
struct Checked {
    /// The policy, if it and the configuration are valid.
    loaded: Option<Loaded>,
    findings: Vec<Diagnostic>,
    files: Vec<PathBuf>,
    /// Which policy was looked at with an invalid configuration.
    note: Option<String>,
}

impl Check {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let (text, exit) = self.report();
        print(&text)?;
        Ok(exit)
    }

    fn report(&self) -> (String, Exit) {
        let checked = self.check();
        let text = match self.format {
            Format::Json => for_programs(&checked),
            Format::Human => for_people(&checked),
        };
        let is_linted = checked.findings.iter().any(|finding| finding.code.is_some());
        let exit = match checked.loaded {
            None => Exit::Invalid,
            Some(_) if self.deny_lints && is_linted => Exit::Failed,
            Some(_) => Exit::Done,
        };
        (text, exit)
    }

    /// Looks at the policy also where the configuration is invalid, so that all errors are told at once.
    fn check(&self) -> Checked {
        let unfit: Vec<Diagnostic> = self.files.iter().filter_map(|file| unfit(file)).collect();
        if !unfit.is_empty() {
            return Checked { loaded: None, findings: unfit, files: Vec::new(), note: None };
        }
        let file = self.config.clone().unwrap_or_else(|| PathBuf::from(CONFIG_FILE));
        // Files by themselves need no configuration, unless one is named or there.
        let needed = self.files.is_empty() || self.config.is_some() || file.exists();
        let (config, mut findings) = match needed.then(|| config::load(&file)) {
            Some(Ok(config)) => (Some(config), Vec::new()),
            Some(Err(findings)) => (None, findings),
            None => (None, Vec::new()),
        };
        let is_valid = findings.is_empty();
        let (policy, note) = match &config {
            Some(config) => (config.policy.clone(), None),
            None => salvage(&file),
        };
        let (policy, note) = if self.files.is_empty() { (policy, note) } else { (self.alone(policy), None) };
        let files = policy::files(&policy);
        let mut loaded = None;
        if is_valid || !files.is_empty() {
            let own = config.as_ref().map_or_else(|| vec![file], policy::own_files);
            let which = if self.files.is_empty() { Tests::Beside } else { Tests::Own };
            let staff = config.as_ref().filter(|_| self.files.is_empty()).map(staff);
            let good = policy::test(&policy, &own, &which).and_then(Tested::good);
            let good = match staff {
                Some(staff) => good.and_then(|good| good.staffed(&staff)),
                None => good,
            };
            match good {
                Ok(mut found) => {
                    let config = config.filter(|_| self.files.is_empty());
                    found.lint(config.as_ref(), Clock::system().now());
                    findings.append(&mut found.warnings);
                    loaded = Some(found).filter(|_| is_valid);
                }
                Err(found) => findings.extend(found),
            }
        }
        let lacks = |finding: &Diagnostic| {
            finding.message.starts_with("there is no group") || finding.message.starts_with("there is no approval")
        };
        let note = note.or_else(|| {
            let alone = !self.files.is_empty() && findings.iter().any(lacks);
            alone.then(|| {
                "files that are named are checked alone; without names, all files of the configuration are".into()
            })
        });
        Checked { loaded, findings, files, note }
    }

    /// The files that were named: single ones need not have what all of them together must.
    fn alone(&self, base: PolicyConfig) -> PolicyConfig {
        // What a shell makes of `policies/*.yaml` names their tests too.
        let policies: Vec<&PathBuf> = self.files.iter().filter(|file| !policy::suite::is_test(file)).collect();
        let named = if policies.is_empty() { self.files.iter().collect() } else { policies };
        let files = named.into_iter().map(|file| literal(file)).collect();
        PolicyConfig { files, require: Vec::new(), ..base }
    }
}

/// Why a file that was named cannot be checked, if it is none.
fn unfit(file: &Path) -> Option<Diagnostic> {
    let (message, help) = if file.is_dir() {
        ("this is a folder", format!("name its files: {}", file.join("*.yaml").display()))
    } else if file.exists() {
        return None;
    } else {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let beside = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names: Vec<String> = beside.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let written = file.file_name().unwrap_or_default().to_string_lossy();
        let near = did_you_mean(&written, names.iter().map(String::as_str).filter(|name| name.ends_with(".yaml")));
        let help = match near {
            Some(near) => format!("did you mean `{}`?", file.with_file_name(near).display()),
            None => "name a policy file, or none to check those of the configuration".into(),
        };
        ("there is no such file", help)
    };
    Some(Diagnostic { help: Some(help), ..Diagnostic::whole(file.display().to_string(), message) })
}

/// Who could decide.
fn staff(config: &Config) -> Directory {
    let directory = Directory::new(config);
    if config.approvers.is_empty() { directory.with_approver(admin::stand_in()) } else { directory }
}

/// The policy of an invalid configuration, as far as it can be read, and what to say of that.
fn salvage(file: &Path) -> (PolicyConfig, Option<String>) {
    if let Some(policy) = config::policy_of(file) {
        return (policy, None);
    }
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let folder = absolute.parent().unwrap_or(Path::new("/"));
    let files = vec![format!("{}/{USUAL_FILES}", literal(folder))];
    let note =
        format!("`policy.files` could not be read; those of {} were", file.with_file_name(USUAL_FILES).display());
    (PolicyConfig { files, ..PolicyConfig::default() }, Some(note))
}

/// A glob that names this file only, whatever characters it has.
pub(super) fn literal(file: &Path) -> String {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
    let mut glob = String::new();
    for c in absolute.to_string_lossy().chars() {
        if "*?[]{}\\".contains(c) {
            glob.push('\\');
        }
        glob.push(c);
    }
    glob
}

fn for_programs(checked: &Checked) -> String {
    let files: Vec<String> = checked.files.iter().map(|file| file.display().to_string()).collect();
    json!({
        "valid": checked.loaded.is_some(),
        "version": checked.loaded.as_ref().map(|loaded| &loaded.policy.version),
        "files": files,
        "findings": checked.findings,
        "note": checked.note,
    })
    .to_string()
}

fn for_people(checked: &Checked) -> String {
    let mut text = String::new();
    for finding in &checked.findings {
        text.push_str(&format!("{finding}\n\n"));
    }
    let of = |severity| checked.findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings) = (many(of(Severity::Error), "error"), many(of(Severity::Warning), "warning"));
    let files = many(checked.files.len(), "policy file");
    let Some(Loaded { policy, .. }) = &checked.loaded else {
        text.push_str(&format!("invalid: {errors}, {warnings}; {files} read"));
        checked.files.iter().for_each(|file| text.push_str(&format!("\n  {}", shown(file))));
        checked.note.iter().for_each(|note| text.push_str(&format!("\n{note}")));
        return text;
    };
    let own = policy.rules().iter().filter(|rule| rule.file.is_some());
    let (guardrails, rules): (Vec<_>, Vec<_>) = own.partition(|rule| rule.guardrail);
    text.push_str(&format!(
        "valid: {files}, {}, {}, {}; {warnings}\nversion {}",
        many(policy.groups().count(), "group"),
        many(rules.len(), "rule"),
        many(guardrails.len(), "guardrail"),
        policy.version
    ));
    text
}

fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use clap::Parser;
    use serde_json::Value;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        check: Check,
    }

    fn check(line: &[&str]) -> (String, Exit) {
        Line::try_parse_from([&["check"], line].concat()).unwrap().check.report()
    }

    #[test]
    fn a_name_of_no_file_is_told() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("base.yaml"), "version: 1\ngroups: { default: {} }\n").unwrap();
        let said = |name: &str| check(&[&folder.path().join(name).display().to_string()]);
        for (name, told) in [
            ("bse.yaml", "/base.yaml`?"),
            ("other.yaml", "name a policy file, or none"),
            ("", "name its files"),
            ("none/here.yaml", "there is no such file"),
        ] {
            let (text, exit) = said(name);
            assert!(text.contains(told) && exit == Exit::Invalid, "{name}: {text}");
        }
        assert_eq!(said("base.yaml").1, Exit::Done);
    }

    #[test]
    fn a_good_configuration_is_summed_up_and_a_bad_one_is_told_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("portcullis.yaml");
        let policy = folder.path().join("a [draft].yaml");
        std::fs::write(&config, "policy: { files: ['*.yml'] }\nupstreams: { w: { workspace: true, root: . } }\n")
            .unwrap();
        std::fs::write(folder.path().join("base.yml"), "version: 1\ngroups: { default: {} }\n").unwrap();
        std::fs::write(
            &policy,
            "version: 1\ngroups: { g: { rules: [ { tools: x }, { verdict: ask, path: '$X' } ] } }\n",
        )
        .unwrap();
        let config = config.to_str().unwrap();

        let (text, exit) = check(&["--config", config]);
        assert_eq!(exit, Exit::Done, "{text}");
        assert!(
            text.starts_with("valid: 1 policy file, 1 group, 0 rules, 0 guardrails; 0 warnings\nversion sha256:"),
            "{text}"
        );

        let (text, exit) = check(&["--config", config, policy.to_str().unwrap()]);
        assert_eq!(exit, Exit::Invalid);
        assert!(text.contains("\n\ninvalid: 4 errors, 0 warnings; 1 policy file read\n"), "{text}");

        let (text, exit) = check(&["--format", "json", policy.to_str().unwrap()]);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((exit, &json["valid"]), (Exit::Invalid, &Value::Bool(false)));
        assert_eq!(json["findings"][0]["line"], 2);
        assert_eq!(json["findings"].as_array().unwrap().len(), 4, "{json:#}");
    }
    #[test]
    fn the_policy_is_told_with_a_broken_configuration() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("portcullis.yaml");
        for (name, rule) in [("policies", "{ name: a, verdict: alow, path: x }"), ("rules", "{ name: b }")] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            let text = format!("version: 1\ngroups:\n  default:\n    rules:\n      - {rule}\n");
            std::fs::write(folder.path().join(name).join("p.yaml"), text).unwrap();
        }
        let told = |text: &str| {
            std::fs::write(&config, text).unwrap();
            let (text, exit) = check(&["--config", config.to_str().unwrap()]);
            assert_eq!(exit, Exit::Invalid, "{text}");
            text.replace(&format!("{}/", folder.path().display()), "")
        };
        insta::assert_snapshot!(told("policy: { files: [rules/*.yaml], disable: [secret] }\nupstream: {}\n"));
        insta::assert_snapshot!(told("policy: [policies/*.yaml]\nupstreams: {}\n"));
        insta::assert_snapshot!(told("policy: {\n"));

        std::fs::write(folder.path().join("rules/p.yaml"), "version: 1\ngroups: { default: {} }\n").unwrap();
        let text = told("policy: { files: [rules/*.yaml] }\nupstream: {}\n");
        assert!(text.ends_with("invalid: 2 errors, 0 warnings; 1 policy file read\n  rules/p.yaml"), "{text}");
        std::fs::remove_dir_all(folder.path().join("policies")).unwrap();
        let text = told("policy: {\n");
        assert!(text.contains("invalid: 1 error, 0 warnings; 0 policy files read\n`policy.files` could not"), "{text}");
    }
}

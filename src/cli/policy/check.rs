//! `portcullis policy check`.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use crate::cli::client::{CONFIG_FILE, Failure, Format, print};
use crate::cli::exit::Exit;
use crate::config::{self, PolicyConfig};
use crate::diagnostic::{Diagnostic, Severity};
use crate::policy::{self, Loaded};

/// What to check.
#[derive(Args, Debug)]
pub struct Check {
    /// The gateway's configuration [default: portcullis.yaml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Policy files to check by themselves, instead of those that the configuration names
    files: Vec<PathBuf>,
    /// For people, or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl Check {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let (text, exit) = self.report();
        print(&text)?;
        Ok(exit)
    }

    fn report(&self) -> (String, Exit) {
        let (loaded, findings) = match self.load() {
            Ok(mut loaded) => {
                let warnings = std::mem::take(&mut loaded.warnings);
                (Some(loaded), warnings)
            }
            Err(findings) => (None, findings),
        };
        let text = match self.format {
            Format::Json => for_programs(loaded.as_ref(), &findings),
            Format::Human => for_people(loaded.as_ref(), &findings),
        };
        (text, if loaded.is_some() { Exit::Done } else { Exit::Invalid })
    }

    fn load(&self) -> Result<Loaded, Vec<Diagnostic>> {
        let found = self.config.clone().or_else(|| Some(PathBuf::from(CONFIG_FILE)).filter(|file| file.exists()));
        let config = match found {
            Some(file) => Some(config::load(&file)?),
            None if self.files.is_empty() => Some(config::load(Path::new(CONFIG_FILE))?),
            None => None,
        };
        let own = config.as_ref().map(policy::own_files).unwrap_or_default();
        if self.files.is_empty() {
            let config = config.map_or_else(|| config::load(Path::new(CONFIG_FILE)), Ok)?;
            let mut loaded = policy::load(&config.policy, &own)?;
            loaded.warnings.extend(policy::strangers(&config, &loaded.policy));
            return Ok(loaded);
        }
        // Single files need not have what all of them together must.
        let disable = config.map(|config| config.policy.disable).unwrap_or_default();
        let files = self.files.iter().map(|file| literal(file)).collect();
        policy::load(&PolicyConfig { files, require: Vec::new(), disable }, &own)
    }
}

/// A glob that names this file only, whatever characters it has.
fn literal(file: &Path) -> String {
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

fn for_programs(loaded: Option<&Loaded>, findings: &[Diagnostic]) -> String {
    let files: Option<Vec<String>> =
        loaded.map(|loaded| loaded.files.iter().map(|file| file.display().to_string()).collect());
    json!({
        "valid": loaded.is_some(),
        "version": loaded.map(|loaded| &loaded.policy.version),
        "files": files,
        "findings": findings,
    })
    .to_string()
}

fn for_people(loaded: Option<&Loaded>, findings: &[Diagnostic]) -> String {
    let mut text = String::new();
    for finding in findings {
        text.push_str(&format!("{finding}\n\n"));
    }
    let of = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let warnings = many(of(Severity::Warning), "warning");
    match loaded {
        Some(Loaded { policy, files, .. }) => {
            let own = policy.rules().iter().filter(|rule| rule.file.is_some());
            let (guardrails, rules): (Vec<_>, Vec<_>) = own.partition(|rule| rule.guardrail);
            let groups = policy.groups().count();
            text.push_str(&format!(
                "valid: {}, {}, {}, {}; {warnings}\nversion {}",
                many(files.len(), "file"),
                many(groups, "group"),
                many(rules.len(), "rule"),
                many(guardrails.len(), "guardrail"),
                policy.version
            ));
        }
        None => text.push_str(&format!("invalid: {}, {warnings}", many(of(Severity::Error), "error"))),
    }
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
            text.starts_with("valid: 1 file, 1 group, 0 rules, 0 guardrails; 0 warnings\nversion sha256:"),
            "{text}"
        );

        let (text, exit) = check(&["--config", config, policy.to_str().unwrap()]);
        assert_eq!(exit, Exit::Invalid);
        assert!(text.ends_with("invalid: 4 errors, 0 warnings"), "{text}");

        let (text, exit) = check(&["--format", "json", policy.to_str().unwrap()]);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((exit, &json["valid"]), (Exit::Invalid, &Value::Bool(false)));
        assert_eq!(json["findings"][0]["line"], 2);
        assert_eq!(json["findings"].as_array().unwrap().len(), 4, "{json:#}");
    }
}

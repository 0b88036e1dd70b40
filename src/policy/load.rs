//! YAML → a checked [`Policy`], all errors at once.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::model::Policy;
use super::suite::{self, Tested, Tests};
use super::{builtin, examples, find, link, read};
use crate::config::{BUILT_IN_GUARDRAILS, Config, PolicyConfig};
use crate::diagnostic::{Diagnostic, Severity, did_you_mean, shown};

/// A policy, and what a person should look at.
#[derive(Debug)]
pub struct Loaded {
    /// The policy.
    pub policy: Policy,
    /// What [`Loaded::lint`] found.
    pub warnings: Vec<Diagnostic>,
    /// The files it came from.
    pub files: Vec<PathBuf>,
    /// Their names, as the operator knows them, and bytes, until they are linted.
    pub(super) sources: Vec<(String, Vec<u8>)>,
}

/// Loads every file that `config.files` names, adds the built-in guardrails, runs the examples, and the tests beside the
/// files.
/// `own_files` are the gateway's policy, config, store, audit and tokens (absolute), denied by `own-files`; the policy
/// files are added to them.
///
/// # Errors
/// Everything that is wrong, in file order.
pub fn load(config: &PolicyConfig, own_files: &[PathBuf]) -> Result<Loaded, Vec<Diagnostic>> {
    test(config, own_files, &Tests::Beside)?.good()
}

/// Loads a policy as [`load`] does, to be tried in the place of another: `own-files` guards what it guards `in_force`.
///
/// # Errors
/// Everything that is wrong, in file order.
pub fn load_instead(
    config: &PolicyConfig,
    own_files: &[PathBuf],
    in_force: &PolicyConfig,
) -> Result<Loaded, Vec<Diagnostic>> {
    tested(config, own_files, in_force, &Tests::Beside)?.good()
}

/// Loads a policy as [`load`] does, and runs those tests; that one fails is no error here.
///
/// # Errors
/// Everything that is wrong, in file order.
pub fn test(config: &PolicyConfig, own_files: &[PathBuf], which: &Tests) -> Result<Tested, Vec<Diagnostic>> {
    tested(config, own_files, config, which)
}

fn tested(
    config: &PolicyConfig,
    own_files: &[PathBuf],
    in_force: &PolicyConfig,
    which: &Tests,
) -> Result<Tested, Vec<Diagnostic>> {
    let (files, lost) = find::files(&config.files);
    let help =
        "correct `policy.files` in portcullis.yaml, or bring the file back: a lost file must not be a looser policy";
    let lost = lost.into_iter().map(|(glob, what)| Diagnostic { help: Some(help.into()), ..of_file(&glob, what) });
    let mut found: Vec<Diagnostic> = lost.collect();
    let mut sources = Vec::new();
    for file in &files {
        match std::fs::read(file) {
            Ok(bytes) => sources.push((file.as_path(), bytes)),
            Err(error) => found.push(of_file(&shown(file), format!("cannot be read: {error}"))),
        }
    }

    let mut read: Vec<link::Read> = sources.iter().map(|(path, bytes)| read::file(&shown(path), bytes)).collect();
    read.iter_mut().for_each(|(report, draft)| examples::check(draft, &config.catalogues, report));

    let mut own: Vec<PathBuf> = own_files.to_vec();
    own.extend(find::files(&in_force.files).0);
    let builtin = builtin::guardrails(&config.disable, &own, &in_force.files).unwrap_or_else(|error| {
        found.push(of_file("policy.files", format!("a glob that is no pattern: {}", error.what)));
        Vec::new()
    });
    let (reports, mut policy) = link::link(read, builtin);
    found.extend(reports.into_iter().flat_map(|report| report.into_diagnostics()));

    for name in config.disable.iter().filter(|name| !BUILT_IN_GUARDRAILS.contains(&name.as_str())) {
        let near = did_you_mean(name, BUILT_IN_GUARDRAILS).unwrap_or("secrets");
        let message = format!("`policy.disable`: there is no built-in guardrail `{name}`");
        found.push(Diagnostic { help: Some(format!("did you mean `{near}`?")), ..of_file(CONFIG, message) });
    }
    // What is missing only because of other errors is not told.
    let broken = |found: &[Diagnostic]| found.iter().any(|finding| finding.severity == Severity::Error);
    if !broken(&found) {
        found.extend(link::missing(&policy, &config.require).into_iter().map(|name| {
            let known = policy.rules.iter().filter(|rule| rule.guardrail).map(|rule| rule.label.as_str());
            let near = did_you_mean(name, known.chain(policy.groups()));
            let lost = || "a file may be lost, or a guardrail switched off".to_owned();
            let help = near.map_or_else(lost, |near| format!("did you mean `{near}`? else {}", lost()));
            let message = format!("`policy.require`: no guardrail and no group is named `{name}`");
            Diagnostic { help: Some(help), ..of_file(CONFIG, message) }
        }));
    }
    let tests = suite::read(&files, which).unwrap_or_else(|error| {
        found.push(*error);
        Vec::new()
    });
    if broken(&found) || tests.iter().any(|(report, _)| report.has_errors()) {
        found.extend(tests.into_iter().flat_map(|(report, _)| report.into_diagnostics()));
        return Err(found);
    }
    policy.version = version(&sources, &config.disable);
    let sources = sources.into_iter().map(|(path, bytes)| (shown(path), bytes)).collect();
    suite::finish(Loaded { policy, warnings: Vec::new(), files, sources }, tests, &config.catalogues)
}

/// The files that [`load`] would read.
pub fn files(config: &PolicyConfig) -> Vec<PathBuf> {
    find::files(&config.files).0
}

/// The gateway's files that `own-files` denies besides the policy: the configuration, and the folder of store, audit and
/// tokens.
pub fn own_files(config: &Config) -> Vec<PathBuf> {
    config.file.iter().chain([&config.state_dir]).cloned().collect()
}

/// Where `require` and `disable` stand.
const CONFIG: &str = "portcullis.yaml";

/// An error that belongs to no line.
fn of_file(file: &str, message: String) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        file: file.into(),
        line: 0,
        column: 0,
        message,
        help: None,
        snippet: None,
        code: None,
    }
}

/// `sha256:…` over the files, named from their common folder, and the switched-off built-ins.
fn version(sources: &[(&Path, Vec<u8>)], disabled: &[String]) -> String {
    let folder = sources.iter().map(|(path, _)| path.parent().unwrap_or(path)).reduce(|common, folder| {
        common.ancestors().find(|ancestor| folder.starts_with(ancestor)).unwrap_or(Path::new("/"))
    });
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(bytes);
    };
    for (path, bytes) in sources {
        let name = folder.and_then(|folder| path.strip_prefix(folder).ok()).unwrap_or(path);
        add(name.as_os_str().as_encoded_bytes());
        add(bytes);
    }
    let mut disabled: Vec<&String> = disabled.iter().collect();
    disabled.sort_unstable();
    disabled.dedup();
    add(b"disabled");
    disabled.iter().for_each(|name| add(name.as_bytes()));
    format!("sha256:{}", hex::encode(hash.finalize()))
}

//! `portcullis init`: a configuration and a policy to start from.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Exit;
use super::say;
use crate::policy;

/// The policy that a new setup starts with, and that commands without a configuration use.
pub const BASE_POLICY: &str = include_str!("../../policies/base.yaml");

/// Its tests.
const BASE_TESTS: &str = include_str!("../../policies/base.test.yaml");

/// The configuration that a new setup starts with.
pub const QUICKSTART: &str = include_str!("../../examples/quickstart/portcullis.yaml");

/// The folder that the new setup's workspace serves.
const WORK: &str = "work";

/// Write a commented portcullis.yaml and policies/ to start from
#[derive(Args, Debug)]
pub struct Init {
    /// Where to write them; made if it is not there
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
}

impl Init {
    /// Runs the command.
    pub fn run(self) -> Exit {
        let mut out = io::stdout().lock();
        let done = init(&self.folder).and_then(|written| report(&mut out, &self.folder, &written));
        match done {
            Ok(()) => Exit::Done,
            Err(error) => {
                say::tell(error);
                Exit::Failed
            }
        }
    }
}

/// Writes the files, none over one that is there, and answers what was written.
///
/// # Errors
/// A file is there already (then nothing is written), or one cannot be written.
pub fn init(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let policies = folder.join("policies");
    let schema = format!("{:#}\n", policy::schema());
    let files = [
        (folder.join("portcullis.yaml"), QUICKSTART),
        (policies.join("base.yaml"), BASE_POLICY),
        (policies.join("base.test.yaml"), BASE_TESTS),
        (policies.join("policy.schema.json"), schema.as_str()),
    ];
    if let Some((there, _)) = files.iter().find(|(file, _)| fs::symlink_metadata(file).is_ok()) {
        let message = format!(
            "{} is there already, and nothing was written; name another folder or move it away",
            there.display()
        );
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    let work = folder.join(WORK);
    for made in [&work, &policies] {
        fs::create_dir_all(made).map_err(|error| told(made, &error))?;
    }
    for (file, text) in &files {
        let write = fs::File::create_new(file).and_then(|mut new| new.write_all(text.as_bytes()));
        write.map_err(|error| told(file, &error))?;
    }
    Ok(files.into_iter().map(|(file, _)| file).chain([work]).collect())
}

fn told(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{} cannot be written: {error}", path.display()))
}

fn report(out: &mut impl Write, folder: &Path, written: &[PathBuf]) -> io::Result<()> {
    for path in written {
        writeln!(out, "wrote {}", path.display())?;
    }
    let start = if folder == Path::new(".") { String::new() } else { format!("cd {} && ", folder.display()) };
    writeln!(out, "next: {start}portcullis serve")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::config::{self, Transport};

    #[test]
    fn what_it_writes_loads_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("new");
        assert_eq!(init(&target).unwrap().len(), 5);
        let config = config::load(&target.join("portcullis.yaml")).unwrap();
        assert!(matches!(config.upstreams["workspace"].transport, Transport::Workspace));
        let mut loaded = policy::load(&config.policy, &[]).unwrap();
        loaded.lint(Some(&config), crate::clock::Clock::system().now());
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
        assert_eq!(loaded.files, [target.join("policies/base.yaml")]);
    }

    #[test]
    fn the_example_in_the_repository_loads() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/quickstart/portcullis.yaml");
        let config = config::load(&file).unwrap();
        let mut loaded = policy::load(&config.policy, &[]).unwrap();
        // Its packs are for more upstreams than it configures, and allow some things on purpose.
        loaded.lint(None, crate::clock::Clock::system().now());
        loaded.warnings.retain(|found| !matches!(found.code, Some("P002" | "P013")));
        assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    }

    #[test]
    fn what_it_has_commented_out_loads_too() {
        let folder = tempfile::tempdir().unwrap();
        init(folder.path()).unwrap();
        let file = folder.path().join("portcullis.yaml");
        let field = regex::Regex::new(r"(?m)^( *)# ( *(?:- \{|[a-z]+: ?(?:[\[{.h]|filesystem|none|$)))").unwrap();
        let text = field.replace_all(QUICKSTART, "$1$2").replace("${MCP_TOKEN}", "x");
        let text = text.replacen('…', &"a".repeat(64), 1).replacen('…', &"b".repeat(64), 1);
        fs::write(&file, text).unwrap();
        let config = config::load(&file).unwrap();
        assert_eq!(config.upstreams.keys().collect::<Vec<_>>(), ["files", "remote", "workspace"]);
        assert_eq!((config.agents.len(), config.approvers.len()), (1, 1));
    }

    #[test]
    fn it_writes_over_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("policies")).unwrap();
        fs::write(folder.path().join("policies/base.yaml"), "mine").unwrap();
        let error = init(folder.path()).unwrap_err().to_string();
        assert!(error.contains("base.yaml is there already"), "{error}");
        assert!(!folder.path().join("portcullis.yaml").exists());
        assert_eq!(fs::read_to_string(folder.path().join("policies/base.yaml")).unwrap(), "mine");
    }
}

//! `portcullis audit`: whether the log is whole.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use super::client::{CONFIG_FILE, Failure, Format, print};
use super::exit::Exit;
use crate::audit::verify::{ChainReport, Report, verify};
use crate::config;
use crate::pattern::visible;

/// Check the audit log.
#[derive(Subcommand, Debug)]
pub enum Audit {
    /// Check that no line was changed, removed or added within a chain; exit 1 and FILE:LINE of the first fault if one was.
    ///
    /// Whoever can write the folder can remove a whole chain, or the last lines of one that no later start has sealed:
    /// keep a copy elsewhere.
    Verify(Verify),
}

/// Which log.
#[derive(Args, Debug)]
pub struct Verify {
    /// The audit folder, or the state folder it is in [default: the configuration's]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// The gateway's configuration, for its state folder [default: portcullis.yaml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// For people, or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl Audit {
    /// Runs the command.
    pub fn run(self) -> Exit {
        let Self::Verify(verify) = self;
        verify.run().unwrap_or_else(|failure| failure.report())
    }
}

impl Verify {
    fn run(self) -> Result<Exit, Failure> {
        let folder = folder(self.dir.as_deref(), self.config.as_deref())?;
        let report = verify(&folder).map_err(|error| Failure::Other(error.to_string()))?;
        if report.chains.is_empty() {
            return Err(Failure::Other(format!("there is no audit log in {}", folder.display())));
        }
        match self.format {
            Format::Json => print(&json!({ "whole": report.is_whole(), "chains": report.chains }).to_string())?,
            Format::Human => print(&text(&report, &folder))?,
        }
        Ok(if report.is_whole() { Exit::Done } else { Exit::Failed })
    }
}

/// The audit folder: the one that is given or the one in it, else that of the configuration's state folder.
pub fn folder(dir: Option<&Path>, config: Option<&Path>) -> Result<PathBuf, Failure> {
    let given = match dir {
        Some(dir) => dir.to_owned(),
        None => state_dir(config)?,
    };
    let inner = given.join("audit");
    Ok(if inner.is_dir() { inner } else { given })
}

fn state_dir(config: Option<&Path>) -> Result<PathBuf, Failure> {
    let usual = Path::new(CONFIG_FILE);
    match config.or_else(|| usual.exists().then_some(usual)) {
        Some(file) => Ok(config::load(file).map_err(Failure::Config)?.state_dir),
        None => config::default_state_dir(&|name| std::env::var(name).ok())
            .ok_or_else(|| Failure::Other("there is no configuration and no home folder; give --dir".into())),
    }
}

fn text(report: &Report, folder: &Path) -> String {
    let mut lines: Vec<String> = report.chains.iter().map(|chain| chain_line(chain, folder)).collect();
    let broken = report.chains.iter().filter(|chain| chain.fault.is_some()).count();
    lines.push(format!("chains: {} whole, {broken} broken", report.chains.len() - broken));
    lines.join("\n")
}

fn chain_line(chain: &ChainReport, folder: &Path) -> String {
    let until = chain.until.as_deref().map(|at| format!(", until {}", visible(at))).unwrap_or_default();
    let name = visible(&chain.chain);
    match &chain.fault {
        None => format!("{name}: whole, {} lines in {} files{until}", chain.lines, chain.files),
        Some(fault) => {
            let place = visible(&folder.join(&fault.file).display().to_string());
            let what = visible(&fault.what);
            format!("{name}: broken at {place}:{}: {what}; {} lines before are whole{until}", fault.line, chain.lines)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;
    use crate::clock::Clock;
    use crate::config::AuditConfig;

    fn run(dir: &Path) -> Exit {
        Audit::Verify(Verify { dir: Some(dir.to_owned()), config: None, format: Format::Human }).run()
    }

    #[test]
    fn a_whole_log_is_done_and_a_broken_one_has_failed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(run(dir.path()), Exit::Failed, "nothing there is no success");
        let audit = crate::audit::Audit::open(dir.path(), "p1", &AuditConfig::default(), Clock::system()).unwrap();
        audit.write("call.end", &json!({ "id": "call_1" })).unwrap();
        audit.write("call.end", &json!({ "id": "call_2" })).unwrap();
        assert_eq!(run(dir.path()), Exit::Done, "the state folder");
        let folder = dir.path().join("audit");
        assert_eq!(run(&folder), Exit::Done, "the audit folder");
        let file = folder.join("p1-0001.jsonl");
        fs::write(&file, fs::read_to_string(&file).unwrap().replace("call_1", "call_9")).unwrap();
        assert_eq!(run(&folder), Exit::Failed);
        let said = text(&verify(&folder).unwrap(), &folder);
        assert!(said.contains(&format!("broken at {}:2: the line was changed", file.display())), "{said}");
        assert!(said.ends_with("chains: 0 whole, 1 broken"), "{said}");
    }
}

//! `portcullis policy replay`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;

use super::check::literal;
use crate::cli::audit::folder;
use crate::cli::client::{CONFIG_FILE, Failure, Format, print};
use crate::cli::exit::Exit;
use crate::clock::Timestamp;
use crate::config;
use crate::pattern::visible;
use crate::policy;
use crate::record::{Verdict, word};
use crate::replay::{Example, Filter, Report, replay};

/// Which policy, and which calls.
#[derive(Args, Debug)]
pub struct Replay {
    /// Policy files, or folders of them, to judge with instead of those that the configuration names
    policies: Vec<PathBuf>,
    /// The gateway's configuration, for its policy and its state folder [default: portcullis.yaml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The audit folder, or the state folder it is in [default: the configuration's]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Only calls received at or after this time (RFC 3339)
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<Timestamp>,
    /// Only calls of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Only calls of agents of this group
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// Exit with 0 although something becomes looser
    #[arg(long)]
    allow_loosening: bool,
    /// For people, or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl Replay {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let policy = self.policy()?;
        let folder = folder(self.dir.as_deref(), self.config.as_deref())?;
        let filter = Filter { since: self.since, agent: self.agent.clone(), group: self.group.clone() };
        let report = replay(&folder, &policy, &filter).map_err(|error| Failure::Other(error.to_string()))?;
        if report.calls == 0 && report.faults.is_empty() {
            return Err(Failure::Other(format!("there is no such call in the audit log in {}", folder.display())));
        }
        match self.format {
            Format::Json => print(&serde_json::to_string(&report).unwrap_or_default())?,
            Format::Human => print(&shown(&report, &folder))?,
        }
        let loosens = report.looser + report.may_be_looser > 0 && !self.allow_loosening;
        Ok(if loosens || !report.faults.is_empty() { Exit::Failed } else { Exit::Done })
    }

    fn policy(&self) -> Result<policy::Policy, Failure> {
        let file = self.config.clone().unwrap_or_else(|| PathBuf::from(CONFIG_FILE));
        let is_needed = self.config.is_some() || self.policies.is_empty() || file.exists();
        let config = if is_needed { Some(config::load(&file).map_err(Failure::Config)?) } else { None };
        let own = config.as_ref().map(policy::own_files).unwrap_or_default();
        let in_force = config.map(|config| config.policy).unwrap_or_default();
        let mut named = in_force.clone();
        if !self.policies.is_empty() {
            named.files = self.policies.iter().map(|path| glob(path)).collect();
        }
        Ok(policy::load_instead(&named, &own, &in_force).map_err(Failure::Config)?.policy)
    }
}

/// The policy files that a path names: itself, or those in it.
fn glob(path: &Path) -> String {
    if path.is_dir() { format!("{}/*.{{yaml,yml}}", literal(path)) } else { literal(path) }
}

fn time(text: &str) -> Result<Timestamp, String> {
    serde_json::from_value(text.into()).map_err(|_| "a time is written like 2026-11-30T08:00:00Z".to_owned())
}

/// For people: a table of what changes, then what cannot be told.
fn shown(report: &Report, folder: &Path) -> String {
    let Report { calls, unchanged, looser, stricter, doubtful, not_judged, may_be_looser, .. } = report;
    let mut text = String::new();
    for (title, is_looser) in [("looser", true), ("stricter", false)] {
        let rows = report.changes.iter().filter(|change| (change.after < change.before) == is_looser);
        for (at, change) in rows.enumerate() {
            if at == 0 {
                let _ = writeln!(text, "{title}:");
            }
            let (before, after) = (said(change.before, &change.before_by), said(change.after, &change.after_by));
            row(&mut text, change.count, &format!("{before}  ->  {after}"), &change.example);
        }
    }
    for (at, doubt) in report.doubts.iter().enumerate() {
        if at == 0 {
            text.push_str("cannot be judged exactly:\n");
        }
        let (before, loosest) = (said(doubt.before, &doubt.before_by), said(doubt.loosest, &doubt.loosest_by));
        let strictest = said(doubt.strictest, &doubt.strictest_by);
        let what = format!("{before}  ->  {loosest}  or stricter, up to  {strictest}");
        row(&mut text, doubt.count, &what, &doubt.example);
        doubt.why.iter().for_each(|why| text.push_str(&format!("{:9}because {why}\n", "")));
    }
    for (at, kind) in report.unjudged.iter().enumerate() {
        if at == 0 {
            text.push_str("cannot be judged:\n");
        }
        row(&mut text, kind.count, &format!("{}: {}", word(kind.before), kind.why), &kind.example);
    }
    for (title, faults) in [("broken:", &report.faults), ("cut off, and left out:", &report.cut_off)] {
        for (at, fault) in faults.iter().enumerate() {
            if at == 0 {
                let _ = writeln!(text, "{title}");
            }
            let file = visible(&folder.join(&fault.file).display().to_string());
            let _ = writeln!(text, "  {file}:{}: {}", fault.line, visible(&fault.what));
        }
    }
    let _ = write!(
        text,
        "calls: {calls}; {unchanged} unchanged, {looser} looser, {stricter} stricter, {doubtful} not judged exactly, \
         {not_judged} not judged"
    );
    if *may_be_looser > 0 {
        let unsure = doubtful + not_judged;
        let _ = write!(text, "; {may_be_looser} of the {unsure} that were not judged exactly may be looser");
    }
    let _ = write!(text, "\npolicy {}", report.policy);
    text
}

fn row(text: &mut String, count: u64, what: &str, example: &Example) {
    let Example { file, line, call: _, at, agent, label } = example;
    let _ = writeln!(text, "{count:>7}  {}", visible(what));
    let _ = writeln!(text, "{:9}such as {}: {} ({at}, {}:{line})", "", visible(agent), visible(label), visible(file));
}

fn said(verdict: Verdict, by: &[String]) -> String {
    format!("{} by {}", word(verdict), by.join(", "))
}

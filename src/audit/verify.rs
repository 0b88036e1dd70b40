//! Whether every chain in a folder is whole.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::AuditError;
use super::files::{self, ChainFile};
use crate::process;

/// What was found of each chain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// By name.
    pub chains: Vec<ChainReport>,
}

impl Report {
    /// Whether no chain is broken.
    pub fn is_whole(&self) -> bool {
        self.chains.iter().all(|chain| chain.fault.is_none())
    }
}

/// What was found of one chain.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ChainReport {
    /// The process that wrote it.
    pub chain: String,
    /// How many files there are.
    pub files: usize,
    /// How many lines are whole, up to the first fault.
    pub lines: u64,
    /// When the last of them was written.
    pub until: Option<String>,
    /// The first fault, if there is one.
    pub fault: Option<Fault>,
}

/// Where a chain is broken first.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fault {
    /// The file's name in the folder.
    pub file: String,
    /// Its line, from 1.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// Verifies every chain in an audit folder. A chain that a living process writes may end in half a line.
///
/// # Errors
/// The folder or a file cannot be read.
pub fn verify(folder: &Path) -> Result<Report, AuditError> {
    let cannot = |error: io::Error| AuditError(format!("{}: {error}", folder.display()));
    let chains = files::chains(folder).map_err(cannot)?;
    let mut walks = BTreeMap::new();
    for (chain, files) in &chains {
        let alive = folder.parent().is_some_and(|state_dir| process::is_alive(state_dir, chain));
        walks.insert(chain.clone(), walk(files, alive).map_err(cannot)?);
    }
    let ends: Vec<End> = walks.values_mut().flat_map(|walk| std::mem::take(&mut walk.ends)).collect();
    let removed: HashSet<String> =
        walks.values().flat_map(|walk| &walk.removed).filter_map(|file| files::chain_of(file)).collect();
    for end in ends {
        match walks.get_mut(&end.chain) {
            Some(walk) => walk.must_end_at(&end),
            None if removed.contains(&end.chain) => {}
            None => {
                let what = format!("a later chain saw it end with line {}", end.last_seq);
                walks.insert(end.chain.clone(), Walk::gone(&end.chain, &what));
            }
        }
    }
    for chain in files::ended(folder).map_err(cannot)? {
        if !walks.contains_key(&chain) && !removed.contains(&chain) {
            let gone = Walk::gone(&chain, "a later process marked its end");
            walks.insert(chain, gone);
        }
    }
    let report = |(chain, walk): (String, Walk)| ChainReport {
        files: chains.get(&chain).map_or(0, Vec::len),
        chain,
        lines: walk.lines,
        until: walk.until,
        fault: walk.fault,
    };
    Ok(Report { chains: walks.into_iter().map(report).collect() })
}

/// What every line begins with.
#[derive(Deserialize)]
struct Link {
    seq: u64,
    at: String,
    prev: Option<String>,
    event: String,
}

/// A later process' note of where a chain ended.
#[derive(Deserialize)]
struct End {
    chain: String,
    last_seq: u64,
    last: Option<String>,
}

/// A note that a file was removed for its age.
#[derive(Deserialize)]
struct Removed {
    file: String,
}

/// One chain, line by line.
#[derive(Default)]
struct Walk {
    lines: u64,
    seq: u64,
    last: Option<String>,
    until: Option<String>,
    /// File and line of the last good line.
    at: (String, u64),
    fault: Option<Fault>,
    ends: Vec<End>,
    removed: HashSet<String>,
}

fn walk(files: &[ChainFile], alive: bool) -> io::Result<Walk> {
    let mut walk = Walk::default();
    let (first, last) = (files.first().map_or(1, |file| file.number), files.last().map_or(1, |file| file.number));
    for (file, expected) in files.iter().zip(first..) {
        let name = file.name();
        if file.number != expected {
            walk.break_at(&name, 1, format!("the file with number {expected:04} before it is missing"));
            return Ok(walk);
        }
        let begins_late = file.number == first && first > 1;
        let last_file = file.number == last;
        let done = files::each_line(&file.path, |line, bytes, whole| {
            if !whole && alive && last_file {
                return ControlFlow::Break(());
            }
            match walk.step(&name, line, bytes, whole, begins_late && line == 1) {
                Ok(()) => ControlFlow::Continue(()),
                Err((line, what)) => {
                    walk.break_at(&name, line, what);
                    ControlFlow::Break(())
                }
            }
        })?;
        if done.is_break() {
            return Ok(walk);
        }
    }
    if let Some(file) = files.first() {
        let name = file.name();
        let chain = name.rsplit_once('-').map_or("", |(chain, _)| chain);
        let mut gone = (1..first).map(|number| files::name(chain, number));
        if let Some(gone) = gone.find(|gone| !walk.removed.contains(gone)) {
            walk.break_at(&name, 1, format!("{gone} is missing, and no line says that it was removed"));
        }
    }
    Ok(walk)
}

impl Walk {
    /// A chain of which nothing is left.
    fn gone(chain: &str, known: &str) -> Self {
        let mut walk = Self::default();
        let what = format!("the whole chain is missing, and no line says that it was removed: {known}");
        walk.break_at(&files::name(chain, 1), 1, what);
        walk
    }

    fn step(
        &mut self,
        file: &str,
        line: u64,
        bytes: &[u8],
        whole: bool,
        begins_late: bool,
    ) -> Result<(), (u64, String)> {
        if !whole {
            return Err((line, "the line is cut off".into()));
        }
        let link: Link =
            serde_json::from_slice(bytes).map_err(|error| (line, format!("not a line of this log: {error}")))?;
        if begins_late {
            self.seq = link.seq.saturating_sub(1);
            self.last.clone_from(&link.prev);
        }
        let expected = self.seq + 1;
        if link.seq != expected {
            return Err((line, format!("line {expected} of the chain should stand here, and line {} does", link.seq)));
        }
        if link.prev != self.last {
            let (before, at) = &self.at;
            return Err(match &self.last {
                // The line before is the likelier to have been changed, unless it is in another file.
                Some(_) if before == file => (*at, "the line was changed: the next one has another hash of it".into()),
                Some(_) => (line, format!("it does not follow on {before}:{at}, which has another hash")),
                None => (line, "the first line of a chain follows on none".into()),
            });
        }
        self.note(&link.event, bytes);
        self.lines += 1;
        self.seq = link.seq;
        self.last = Some(files::hash(bytes));
        self.until = Some(link.at);
        self.at = (file.to_owned(), line);
        Ok(())
    }

    fn note(&mut self, event: &str, bytes: &[u8]) {
        match event {
            "audit.recovered" => self.ends.extend(serde_json::from_slice::<End>(bytes)),
            "audit.removed" => self.removed.extend(serde_json::from_slice::<Removed>(bytes).map(|note| note.file)),
            _ => {}
        }
    }

    fn must_end_at(&mut self, end: &End) {
        if self.fault.is_none() && (self.seq, &self.last) != (end.last_seq, &end.last) {
            let (file, line) = self.at.clone();
            let what = if self.seq < end.last_seq {
                format!("lines are missing after it: the chain ended with line {}", end.last_seq)
            } else {
                "it is not the line that the chain ended with".into()
            };
            self.break_at(&file, line, what);
        }
    }

    fn break_at(&mut self, file: &str, line: u64, what: String) {
        self.fault = Some(Fault { file: file.to_owned(), line, what });
    }
}

//! The calls of an audit log, judged with another policy: what would change, and what cannot be told.
//!
//! A call is judged on what the log kept of it ([`Evidence`](crate::policy::Evidence)), as if made then: neither today's
//! file system nor today's date changes the answer. What the log does not tell is looked at from both sides; a call whose
//! verdict hangs on it is counted apart, with the range.

mod line;
mod tally;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use self::tally::Tally;
pub use self::tally::{Change, Doubtful, Example, NotJudged, Report};
use crate::audit::verify::Fault;
use crate::audit::{AuditError, read, verify};
use crate::clock::Timestamp;
use crate::policy::Policy;

/// Which calls to judge.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those received at or after.
    pub since: Option<Timestamp>,
    /// Only those of this agent.
    pub agent: Option<String>,
    /// Only those of agents of this group.
    pub group: Option<String>,
}

/// Judges every recorded call of an audit folder, file beside file on all cores, while the chains are verified. A last
/// line that is cut off is left out, and told.
///
/// # Errors
/// The folder or a file cannot be read.
pub fn replay(folder: &Path, policy: &Policy, filter: &Filter) -> Result<Report, AuditError> {
    let files = read::files(folder)?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut tally = Tally::default();
        while let Some((number, file)) = take(&next, &files) {
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            read::each_line(file, |line, bytes, whole| {
                let at = Place { file: number, line };
                match whole {
                    true => line::judge(bytes, policy, filter, at, &name, &mut tally),
                    false => tally.cut_off(at, &name),
                }
            })?;
        }
        Ok(tally)
    };
    let cores = thread::available_parallelism().map_or(1, usize::from).min(files.len()).max(1);
    thread::scope(|scope| {
        let verified = scope.spawn(|| verify::verify(folder));
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
        let mut all: Tally = work()?;
        for other in others {
            all.add(joined(other.join())?);
        }
        let chains = joined(verified.join())?.chains;
        Ok(all.report(&policy.version, chains.into_iter().filter_map(|chain| chain.fault).collect()))
    })
}

/// Where a line stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Place {
    /// The file's number in the folder.
    file: usize,
    /// From 1.
    line: u64,
}

fn take<'a, T>(next: &AtomicUsize, all: &'a [T]) -> Option<(usize, &'a T)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    all.get(number).map(|one| (number, one))
}

fn joined<T>(done: thread::Result<Result<T, AuditError>>) -> Result<T, AuditError> {
    done.unwrap_or_else(|_| Err(AuditError("a thread that read it has ended; this is a fault of portcullis".into())))
}

/// A fault at a line.
fn fault(file: &str, line: u64, what: impl Into<String>) -> Fault {
    Fault { file: file.to_owned(), line, what: what.into() }
}

#[cfg(test)]
mod tests;

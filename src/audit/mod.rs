//! A hash-chained log of JSON lines, one file chain per process in the state folder.
//!
//! A line is `{"seq","at","prev","event",…}`: `seq` counts from 1 within the chain, `prev` is `sha256:` and the SHA-256 of
//! the line before without its line feed, null in the first line of a chain. The first line of a later file links to the
//! last of the file before. What is given to [`Audit::write`] is already redacted.

mod chain;
mod files;
pub mod read;
mod recover;
pub mod verify;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use self::chain::Chain;
use crate::clock::Clock;
use crate::config::AuditConfig;

/// The field that holds what a call was judged on, in the first line about it.
pub const EVIDENCE: &str = "judged";

/// How long lines are gathered before they are brought to the disk together.
const BATCH: Duration = Duration::from_millis(100);

/// This process' chain. Cheap to clone.
#[derive(Clone)]
pub struct Audit {
    open: Arc<Open>,
}

struct Open {
    chain: Arc<Chain>,
    wake: SyncSender<()>,
}

/// Why a line could not be written: nothing may be forwarded then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditError(pub String);

impl std::fmt::Display for AuditError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "audit log: {}", self.0)
    }
}

impl std::error::Error for AuditError {}

impl Audit {
    /// Opens a new chain in `state_dir/audit`; a begin without an end in the chain of a dead process is ended there as
    /// Failed, "may have run". (Held calls are ended by the store, which knows more of them.)
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn open(state_dir: &Path, process: &str, config: &AuditConfig, clock: Clock) -> Result<Self, AuditError> {
        let chain = Arc::new(Chain::open(state_dir, process, config, clock)?);
        recover::recover(&chain, state_dir)?;
        let (wake, woken) = sync_channel(1);
        let gathered = chain.clone();
        Builder::new()
            .name("audit".into())
            .spawn(move || bring_to_disk(&gathered, &woken))
            .map_err(|error| AuditError(format!("no thread for it: {error}")))?;
        Ok(Self { open: Arc::new(Open { chain, wake }) })
    }

    /// Appends one line with one `write(2)`; may run on an async thread (unless each line is synced: then it waits for
    /// the disk, as the operator chose). `fields` is an object; its own `seq`, `at`, `prev` and `event` are left out.
    ///
    /// # Errors
    /// It could not be written, or earlier lines could not be brought to the disk; nothing may be forwarded.
    pub fn write(&self, event: &str, fields: &serde_json::Value) -> Result<(), AuditError> {
        let written = self.open.chain.write(event, fields);
        // Full: the thread is about to look anyway.
        let _ = self.open.wake.try_send(());
        written
    }

    /// As [`Audit::write`], for a line that permits nothing: earlier lines that could not be brought to the disk are no
    /// fault of it.
    ///
    /// # Errors
    /// It could not be written.
    pub fn append(&self, event: &str, fields: &serde_json::Value) -> Result<(), AuditError> {
        let written = self.open.chain.put_down(event, fields);
        let _ = self.open.wake.try_send(());
        written
    }

    /// Whether the log keeps the arguments of calls (`audit.arguments`, as it was when the log was opened).
    pub fn keeps_arguments(&self) -> bool {
        self.open.chain.keeps_arguments()
    }

    /// Whether the last write succeeded. After a fault it tries again, and the log then tells of the gap.
    ///
    /// # Errors
    /// What is wrong.
    pub fn healthy(&self) -> Result<(), AuditError> {
        match self.open.chain.fault() {
            None => Ok(()),
            Some(fault) => self.write("audit.resumed", &serde_json::json!({ "fault": fault })),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.chain.sync();
    }
}

fn bring_to_disk(chain: &Chain, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        std::thread::sleep(BATCH);
        chain.sync();
    }
}

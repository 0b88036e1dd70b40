//! A hash-chained log of JSON lines, one file chain per process in the state folder.

use std::path::Path;

use crate::clock::Clock;
use crate::config::AuditConfig;

/// This process' chain. Cheap to clone.
#[derive(Clone)]
pub struct Audit {}

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
    /// Failed, "may have run".
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn open(state_dir: &Path, process: &str, config: &AuditConfig, clock: Clock) -> Result<Self, AuditError> {
        let _ = (state_dir, process, config, clock);
        unimplemented!()
    }

    /// Appends one line with one `write(2)`; may run on an async thread.
    ///
    /// # Errors
    /// It could not be written; nothing may be forwarded.
    pub fn write(&self, event: &str, fields: &serde_json::Value) -> Result<(), AuditError> {
        let _ = (event, fields);
        unimplemented!()
    }

    /// Whether the last write succeeded.
    pub fn healthy(&self) -> Result<(), AuditError> {
        unimplemented!()
    }
}

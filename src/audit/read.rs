//! Reading a log line by line, whether or not its chains are whole.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::AuditError;
use super::files;

/// The files of an audit folder, chain by chain, each chain's in order.
///
/// # Errors
/// The folder cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, AuditError> {
    let chains = files::chains(folder).map_err(|error| cannot(folder, &error))?;
    Ok(chains.into_values().flatten().map(|file| file.path).collect())
}

/// Gives each line of a file, without its line feed, with its number from 1 and whether it had one: a line without may
/// be cut off.
///
/// # Errors
/// The file cannot be read.
pub fn each_line(file: &Path, mut look: impl FnMut(u64, &[u8], bool)) -> Result<(), AuditError> {
    files::each_line(file, |number, line, whole| {
        look(number, line, whole);
        ControlFlow::Continue(())
    })
    .map(drop)
    .map_err(|error| cannot(file, &error))
}

fn cannot(path: &Path, error: &io::Error) -> AuditError {
    AuditError(format!("{}: {error}", path.display()))
}

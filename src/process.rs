//! Which gateway processes on one state folder are alive: each holds a lock on a file of its own as long as it lives.
//!
//! The operating system lets go of the lock however the process ends, so that a killed one is known to be dead at once.
//! The file is opened close-on-exec: a child that outlives the gateway does not keep it alive.

mod claim;

pub use claim::{Claim, claimed};

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The folder of the lock files inside a state folder.
const FOLDER: &str = "processes";

/// This process' (or, in tests, one of its stores') sign of life; dropping it is the end.
#[derive(Debug)]
pub struct Alive {
    id: String,
    path: PathBuf,
    lock: File,
}

impl Alive {
    /// Takes a new random id and locks its file.
    ///
    /// # Errors
    /// The folder cannot be written, or there is no randomness.
    pub fn register(state_dir: &Path) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let id = format!("p{}", hex::encode(random));
        private_dir(&state_dir.join(FOLDER))?;
        let path = state_dir.join(FOLDER).join(&id);
        let lock = locked(&path)?;
        Ok(Self { id, path, lock })
    }

    /// Makes the sign of life again if somebody removed it; whether that was needed. Until every process has done so, one
    /// whose sign is missing need not be dead.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn renew(&mut self, state_dir: &Path) -> io::Result<bool> {
        if is_at(&self.lock, &self.path) {
            return Ok(false);
        }
        private_dir(&state_dir.join(FOLDER))?;
        self.lock = locked(&self.path)?;
        Ok(true)
    }

    /// The process' name.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        // Left behind, it is swept by the next process.
        let _ = fs::remove_file(&self.path);
    }
}

/// Makes a file and locks it.
fn locked(path: &Path) -> io::Result<File> {
    loop {
        let file = private_file(path)?;
        file.lock()?;
        // Between the two lines above a sweep may have taken the file for a dead process' and removed it.
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// Whether an open file is the one at a path.
fn is_at(file: &File, path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| file.metadata().is_ok_and(|ours| there.ino() == ours.ino()))
}

/// Whether a process lives; what cannot be told counts as alive, so that nobody's calls are ended by mistake.
pub fn is_alive(state_dir: &Path, id: &str) -> bool {
    match File::open(state_dir.join(FOLDER).join(id)) {
        // Shared, so that two processes that look at once do not take each other for the owner.
        Ok(file) => file.try_lock_shared().is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Whether a process lives without any doubt: what is trusted for its sake must not outlive it.
fn surely_alive(state_dir: &Path, id: &str) -> bool {
    let lock = File::open(state_dir.join(FOLDER).join(id)).map(|file| file.try_lock_shared());
    matches!(lock, Ok(Err(TryLockError::WouldBlock)))
}

/// Removes the files of dead processes.
///
/// # Errors
/// The folder cannot be read.
pub fn sweep(state_dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(state_dir.join(FOLDER))? {
        let path = entry?.path();
        let Ok(file) = File::open(&path) else { continue };
        match file.try_lock() {
            // Removed while locked: a process that is about to register under this name then sees that it is gone.
            Ok(()) => fs::remove_file(&path).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    claim::sweep(state_dir);
    Ok(())
}

/// Makes a folder that only its owner can enter, if it is not there; one that others may write into is refused.
///
/// # Errors
/// It cannot be made, or others may write into it.
pub fn private_dir(path: &Path) -> io::Result<()> {
    let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at)?;
    if fs::metadata(path)?.mode() & 0o022 != 0 {
        let what = format!("{} can be written by others; run `chmod 700 {0}`", path.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    Ok(())
}

/// Opens a file for writing that only its owner can read, and makes it if it is not there.
///
/// # Errors
/// It cannot be opened or made.
pub fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_process_lives_until_it_lets_go() {
        let dir = tempfile::tempdir().unwrap();
        let one = Alive::register(dir.path()).unwrap();
        let two = Alive::register(dir.path()).unwrap();
        assert_ne!(one.id(), two.id());
        assert!(is_alive(dir.path(), one.id()));
        let id = one.id().to_owned();
        drop(one);
        assert!(!is_alive(dir.path(), &id));
        assert!(!is_alive(dir.path(), "never"));
        assert!(is_alive(dir.path(), two.id()));
    }

    #[test]
    fn a_sign_of_life_that_was_removed_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut living = Alive::register(dir.path()).unwrap();
        assert!(!living.renew(dir.path()).unwrap());
        fs::remove_dir_all(dir.path().join(FOLDER)).unwrap();
        assert!(living.renew(dir.path()).unwrap());
        assert!(is_alive(dir.path(), living.id()));
        assert!(!living.renew(dir.path()).unwrap());
    }

    #[test]
    fn a_sweep_takes_the_dead_only() {
        let dir = tempfile::tempdir().unwrap();
        let living = Alive::register(dir.path()).unwrap();
        fs::write(dir.path().join(FOLDER).join("killed"), "").unwrap();
        sweep(dir.path()).unwrap();
        assert!(!dir.path().join(FOLDER).join("killed").exists());
        assert!(is_alive(dir.path(), living.id()));
    }

    #[test]
    fn a_folder_that_others_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let made = dir.path().join("a/b");
        private_dir(&made).unwrap();
        assert_eq!(fs::metadata(&made).unwrap().mode() & 0o777, 0o700);
        fs::set_permissions(&made, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(private_dir(&made).unwrap_err().to_string().contains("chmod 700"));
    }
}

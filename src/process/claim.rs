//! Where the approvers' side of a living process on a state folder listens: its own word, in a folder that only the
//! operator can write.
//!
//! An address alone proves nothing: while no gateway runs, anyone on the machine can listen there. Whoever is about to
//! send a token, or to say where calls are decided, asks here first.

use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{private_dir, private_file, surely_alive};

/// The folder of the claims inside a state folder: a file a process, named like its sign of life.
const FOLDER: &str = "admin";

/// This process' claim; dropping it takes it back.
#[derive(Debug)]
pub struct Claim(PathBuf);

impl Claim {
    /// Says that the process `id` listens on `address`, which it does already.
    ///
    /// # Errors
    /// The folder cannot be written, or others can write it.
    pub fn make(state_dir: &Path, id: &str, address: SocketAddr) -> io::Result<Self> {
        let folder = state_dir.join(FOLDER);
        private_dir(&folder)?;
        let path = folder.join(id);
        let mut file = private_file(&path)?;
        file.set_len(0)?;
        write!(file, "{address}")?;
        Ok(Self(path))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // One that is left behind says nothing without its process.
        let _ = fs::remove_file(&self.0);
    }
}

/// Where the living processes on a state folder say that their approvers' side is, in a fixed order.
pub fn claimed(state_dir: &Path) -> Vec<SocketAddr> {
    let Ok(entries) = fs::read_dir(state_dir.join(FOLDER)) else { return Vec::new() };
    let mut found: Vec<SocketAddr> = entries
        .flatten()
        .filter_map(|entry| read(state_dir, &entry.path(), &entry.file_name().to_string_lossy()))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Removes the claims of processes that are dead.
pub(super) fn sweep(state_dir: &Path) {
    let Ok(entries) = fs::read_dir(state_dir.join(FOLDER)) else { return };
    for entry in entries.flatten() {
        if !super::is_alive(state_dir, &entry.file_name().to_string_lossy()) {
            // Another process may sweep as well.
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn read(state_dir: &Path, path: &Path, id: &str) -> Option<SocketAddr> {
    let found = fs::symlink_metadata(path).ok()?;
    let we = rustix::process::geteuid().as_raw();
    let is_ours = found.is_file() && found.mode() & 0o022 == 0 && (we == 0 || found.uid() == we || found.uid() == 0);
    let address = fs::read_to_string(path).ok()?.parse().ok()?;
    (is_ours && surely_alive(state_dir, id)).then_some(address)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::process::Alive;

    #[test]
    fn only_the_living_are_believed_and_only_their_own_files() {
        let dir = tempfile::tempdir().unwrap();
        let address = "127.0.0.1:7071".parse().unwrap();
        assert!(claimed(dir.path()).is_empty(), "no folder");
        let alive = Alive::register(dir.path()).unwrap();
        let claim = Claim::make(dir.path(), alive.id(), address).unwrap();
        assert_eq!(claimed(dir.path()), [address]);
        let file = dir.path().join(FOLDER).join(alive.id());
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);

        fs::write(dir.path().join(FOLDER).join("never"), "127.0.0.1:1").unwrap();
        let killed = Alive::register(dir.path()).unwrap();
        let left = Claim::make(dir.path(), killed.id(), "127.0.0.1:2".parse().unwrap()).unwrap();
        drop(killed);
        assert_eq!(claimed(dir.path()), [address], "a process that never was, and one that is dead");

        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(claimed(dir.path()).is_empty(), "anyone could have written it");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();

        super::sweep(dir.path());
        assert_eq!(fs::read_dir(dir.path().join(FOLDER)).unwrap().count(), 1);
        drop((claim, left));
        assert!(claimed(dir.path()).is_empty() && !file.exists());
    }
}

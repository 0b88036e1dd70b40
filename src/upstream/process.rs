//! Children in process groups of their own.
//!
//! A group is killed when its child is dropped, however that comes about. If the gateway itself is killed with SIGKILL,
//! nothing can run here: a child then sees its standard input close, which ends a well-made server. (A parent-death
//! signal could only be set with `unsafe` code.)

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use super::place::environment;

/// A command that will lead a process group of its own, with nothing on its standard streams. Variables of the gateway
/// (`PORTCULLIS_*`) are not passed on.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env_clear().envs(environment());
    command
}

/// Looks for a program where a child that is started in `cwd` would find it: at its path, or in the folders of `PATH`.
///
/// # Errors
/// It is not there, or may not be run; in a sentence that says what to do.
pub fn find_program(name: &str, cwd: &Path) -> Result<(), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places: Vec<PathBuf> = if name.contains('/') {
        vec![cwd.join(name)]
    } else {
        std::env::split_paths(&path).map(|folder| cwd.join(folder).join(name)).collect()
    };
    let found: Vec<PathBuf> = places.into_iter().filter(|place| place.is_file()).collect();
    if found.is_empty() {
        return Err(format!("there is no program `{name}`; install it, or give its full path"));
    }
    if found.iter().any(|place| access(place, Access::EXEC_OK).is_ok()) {
        return Ok(());
    }
    Err(format!("`{name}` may not be run; make it executable"))
}

/// A child's process group; killed when dropped.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The group that a child made by [`command`] leads.
    pub fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// Sends a signal to all of it. That nobody is left to get it is no error.
    pub fn signal(&self, signal: Signal) {
        if let Some(leader) = self.0 {
            let _gone = kill_process_group(leader, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_program_is_found_where_its_child_would_find_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server"), "#!/bin/sh\n").unwrap();
        assert_eq!(find_program("sh", folder.path()), Ok(()));
        assert_eq!(find_program("/bin/sh", folder.path()), Ok(()));
        for (name, what) in [
            ("no-such-program", "there is no program"),
            ("server", "there is no program"),
            ("./server", "may not be run"),
            ("/bin", "there is no program"),
        ] {
            assert!(find_program(name, folder.path()).unwrap_err().contains(what), "{name}");
        }
    }

    #[tokio::test]
    async fn a_dropped_group_is_dead() {
        let mut child = command("sleep").arg("1000").spawn().unwrap();
        drop(Group::of(&child));
        let status = tokio::time::timeout(Duration::from_secs(5), child.wait()).await.unwrap().unwrap();
        assert!(!status.success());
    }
}

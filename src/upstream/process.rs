//! Children in process groups of their own.
//!
//! A group is killed when its child is dropped, however that comes about. If the gateway itself is killed with SIGKILL,
//! nothing can run here: a child then sees its standard input close, which ends a well-made server. (A parent-death
//! signal could only be set with `unsafe` code.)

use std::ffi::OsStr;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

/// A command that will lead a process group of its own, with nothing on its standard streams. Variables of the gateway
/// (`PORTCULLIS_*`) are not passed on.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.process_group(0).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    for name in std::env::vars_os().map(|(name, _)| name).filter(|name| is_ours(name)) {
        command.env_remove(name);
    }
    command
}

fn is_ours(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"PORTCULLIS_")
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
    fn only_the_gateways_own_variables_are_kept_back() {
        assert!(is_ours(OsStr::new("PORTCULLIS_CONFIG")));
        assert!(!is_ours(OsStr::new("PATH")) && !is_ours(OsStr::new("MY_PORTCULLIS_X")));
    }

    #[tokio::test]
    async fn a_dropped_group_is_dead() {
        let mut child = command("sleep").arg("1000").spawn().unwrap();
        drop(Group::of(&child));
        let status = tokio::time::timeout(Duration::from_secs(5), child.wait()).await.unwrap().unwrap();
        assert!(!status.success());
    }
}

//! What the process tells its caller.

use std::process::ExitCode;

/// The exit codes of every command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// The check or the operation failed.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// The configuration or the policy is invalid.
    Invalid = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

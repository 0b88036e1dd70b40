//! `portcullis policy`: checking and testing a policy, explaining what it says of a call, and replaying recorded calls,
//! without a running gateway.

mod check;
mod explain;
mod replay;
mod test;

use clap::Subcommand;

use super::client::print;
use super::exit::Exit;
use crate::policy::schema;

pub use check::Check;
pub use explain::Explain;
pub use replay::Replay;
pub use test::Test;

/// Check, test, explain and replay policies.
#[derive(Subcommand, Debug)]
pub enum Policy {
    /// Say everything that is wrong with the configuration and its policy files
    Check(Check),
    /// Run the tests beside the policy files
    Test(Test),
    /// Print the JSON Schema of policy files, for editors
    Schema,
    /// Say what the policy says of a call, and why
    Explain(Box<Explain>),
    /// Judge the calls of the audit log with another policy, and say what changes.
    ///
    /// Each call is judged on what the log kept of it, as if made then: neither redaction nor today's file system changes
    /// the answer. Verdicts are compared, not who approves an ask; before is what policy said, whatever a grant let pass;
    /// limits count as not exhausted. What the log does not tell is looked at from both sides, and counted apart where
    /// that matters.
    ///
    /// Exit codes: 0 nothing becomes looser; 1 something does, or may, or the log is broken or has no such call; 2 usage;
    /// 3 configuration or policy invalid.
    Replay(Replay),
}

impl Policy {
    /// Runs the command. Blocks.
    pub fn run(self) -> Exit {
        let done = match self {
            Self::Check(check) => check.run(),
            Self::Test(test) => test.run(),
            Self::Schema => print(&format!("{:#}", schema())).map(|()| Exit::Done),
            Self::Explain(explain) => explain.run(),
            Self::Replay(replay) => replay.run(),
        };
        done.unwrap_or_else(|failure| failure.report())
    }
}

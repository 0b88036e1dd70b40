//! An executor that is a child process and speaks JSON lines on its standard streams (MCP, "Transports", stdio).
//!
//! Each link has a child of its own, so a server's requests, notifications and progress have one owner. A child that
//! dies takes its own link along and no other; starting the next one waits out a pause that grows with quick deaths.

mod child;
mod lines;
mod link;
mod log;
mod read;
mod waiting;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use super::backoff::Backoff;
use super::place::place;
use super::slots::Slots;
use super::{MAX_AT_ONCE, lock, not_run};
use crate::gate::{Fault, Link, Opening, Place, Upstream, UpstreamError};

/// Longer pauses after a crash are told instead of waited out.
const PATIENCE: Duration = Duration::from_secs(5);

/// An executor started by a command.
#[derive(Debug)]
pub struct StdioUpstream {
    program: Arc<Program>,
    slots: Slots,
}

/// What is started, and how its children have fared.
#[derive(Debug)]
struct Program {
    id: String,
    command: Vec<String>,
    cwd: PathBuf,
    /// The longest line that is read, in bytes.
    max_line: usize,
    /// How long a child may take to end, before SIGTERM and again before SIGKILL.
    grace: Duration,
    backoff: Mutex<Backoff>,
    up: AtomicBool,
}

impl StdioUpstream {
    /// An upstream whose links run `command` (program and arguments) in `cwd`, with the gateway's environment except
    /// `PORTCULLIS_*`.
    pub fn new(id: &str, command: &[String], cwd: &Path) -> Self {
        Self::with_limits(id, command, cwd, super::MAX_MESSAGE, Duration::from_secs(2))
    }

    fn with_limits(id: &str, command: &[String], cwd: &Path, max_line: usize, grace: Duration) -> Self {
        let program = Program {
            id: id.to_owned(),
            command: command.to_vec(),
            cwd: cwd.to_owned(),
            max_line,
            grace,
            backoff: Mutex::default(),
            up: AtomicBool::new(true),
        };
        Self { program: Arc::new(program), slots: Slots::new(MAX_AT_ONCE) }
    }
}

impl Upstream for StdioUpstream {
    fn id(&self) -> &str {
        &self.program.id
    }

    fn place(&self) -> Place {
        let Program { command, cwd, .. } = &*self.program;
        let parts = command.iter().map(String::as_bytes).chain([cwd.as_os_str().as_encoded_bytes()]);
        place("stdio", parts, &cwd.display().to_string(), true)
    }

    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<Arc<dyn Link>, UpstreamError>> {
        Box::pin(async move {
            let id = &self.program.id;
            let slot = self.slots.take(&opening.agent).ok_or_else(|| {
                let what = format!(
                    "upstream `{id}` cannot have another child for this agent (at most {MAX_AT_ONCE} in all, and none \
                     takes what others need); end sessions that are not used"
                );
                not_run(Fault::Unreachable, what)
            })?;
            self.program.wait_out_backoff().await?;
            let link = child::start(&self.program, slot, opening.inbound)?;
            Ok(Arc::new(link) as Arc<dyn Link>)
        })
    }

    fn is_up(&self) -> bool {
        self.program.up.load(Ordering::Relaxed)
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.slots.end())
    }
}

impl Program {
    async fn wait_out_backoff(&self) -> Result<(), UpstreamError> {
        let (remaining, failures) = {
            let backoff = lock(&self.backoff);
            (backoff.remaining(Instant::now()), backoff.failures)
        };
        if remaining > PATIENCE {
            let id = &self.id;
            let seconds = remaining.as_secs() + 1;
            let what = format!(
                "upstream `{id}` ended {failures} times soon after its start; it is started again in {seconds} s; the \
                 gateway's log has what it said"
            );
            return Err(not_run(Fault::Unreachable, what));
        }
        tokio::time::sleep(remaining).await;
        Ok(())
    }

    fn set_up(&self, up: bool) {
        self.up.store(up, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;

//! The ways to an executor: a child process, Streamable HTTP, the built-in workspace.
//!
//! Each implements [`Upstream`] and [`Link`](crate::gate::Link). A link only transports: ids and progress tokens are
//! the gate's own, and everything that comes back goes, in order, into the channel that the gate opened the link with.

pub mod http;
pub mod own;
pub mod stdio;
pub mod workspace;

mod backoff;
mod place;
mod process;
mod slots;

pub use process::find_program;

use std::sync::Arc;

use bytes::Bytes;

use crate::config::{Transport, UpstreamConfig};
use crate::gate::{Fault, Upstream, UpstreamError};
use crate::message::compose;

/// The executor that the configuration describes. Nothing is started or connected yet; what is wrong with a command or
/// a URL is told by [`Upstream::open`].
pub fn build(config: &UpstreamConfig) -> Arc<dyn Upstream> {
    match &config.transport {
        Transport::Command(command) => Arc::new(stdio::StdioUpstream::new(&config.id, command, &config.cwd)),
        Transport::Url { url, headers } => Arc::new(http::HttpUpstream::new(&config.id, url, headers)),
        Transport::Own => Arc::new(own::Own),
        Transport::Workspace => Arc::new(workspace::Workspace::new(&config.id, &config.root)),
    }
}

/// The target of log lines about executors.
const LOG: &str = "portcullis::upstream";

/// The largest message that is read from an executor, in bytes.
const MAX_MESSAGE: usize = 64 << 20;

/// How many children, or runs of the workspace, one upstream may have at a time; agents share them ([`slots`]).
const MAX_AT_ONCE: usize = 64;

/// Something broke before the request could have had an effect.
fn not_run(fault: Fault, what: impl Into<String>) -> UpstreamError {
    UpstreamError { fault, what: what.into(), may_have_run: false }
}

/// Something broke after the request may have reached the executor.
fn may_have_run(fault: Fault, what: impl Into<String>) -> UpstreamError {
    UpstreamError { fault, what: what.into(), may_have_run: true }
}

/// The notification that tells an executor to stop working on a request (MCP, "Cancellation").
fn cancelled(id: u64, reason: &str) -> Bytes {
    let params = serde_json::json!({ "requestId": id, "reason": reason });
    compose::notification("notifications/cancelled", Some(&params))
}

/// Locks a mutex whose data stays whole even if a holder panicked.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

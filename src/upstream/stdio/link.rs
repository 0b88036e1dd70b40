//! The gate's end of a child's conversation.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};

use super::waiting::{Sending, Waiting};
use crate::gate::{Fault, Link, Outgoing, Permit, UpstreamError};
use crate::upstream::{cancelled, may_have_run, not_run};

/// How long a cancellation may wait for a child that does not read.
const STOP: Duration = Duration::from_secs(2);

/// One child.
pub(super) struct StdioLink {
    pub upstream: String,
    pub writer: mpsc::Sender<ToWrite>,
    pub waiting: Arc<Waiting>,
    pub closing: watch::Sender<bool>,
    pub ended: watch::Receiver<bool>,
}

/// A line for the child. It is not written if nobody waits any more for `written`.
pub(super) struct ToWrite {
    pub line: Bytes,
    pub written: oneshot::Sender<io::Result<()>>,
}

impl StdioLink {
    async fn write(&self, line: Bytes) -> Result<(), UpstreamError> {
        let (written, answer) = oneshot::channel();
        let id = &self.upstream;
        if self.writer.send(ToWrite { line, written }).await.is_err() {
            return Err(not_run(Fault::Died, format!("upstream `{id}` has ended; open a new session")));
        }
        match answer.await {
            Ok(Ok(())) => Ok(()),
            // Without its line feed, the line is no message yet: nothing ran.
            Ok(Err(error)) => {
                Err(not_run(Fault::Died, format!("upstream `{id}` does not take input any more ({})", error.kind())))
            }
            Err(_) => Err(may_have_run(Fault::Died, format!("upstream `{id}` ended while it was being written to"))),
        }
    }
}

impl Link for StdioLink {
    fn send(&self, _permit: Permit, message: Outgoing) -> BoxFuture<'_, Result<(), UpstreamError>> {
        Box::pin(async move {
            let sending = Sending::new(&self.waiting, message.id, &message.method);
            let outcome = self.write(one_line(&message.bytes)).await;
            sending.ended(outcome)
        })
    }

    fn stop(&self, id: u64, reason: &str) -> BoxFuture<'_, ()> {
        let may_be_cancelled = self.waiting.remove(id).unwrap_or(false);
        let notification = may_be_cancelled.then(|| one_line(&cancelled(id, reason)));
        Box::pin(async move {
            if let Some(line) = notification {
                // A child that is dead or does not read will not hear it either way.
                let _unheard = tokio::time::timeout(STOP, self.write(line)).await;
            }
        })
    }

    fn session(&self) -> Option<String> {
        None
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.closing.send_replace(true);
            // An error means that it ended before.
            let mut ended = self.ended.clone();
            let _ended = ended.wait_for(|ended| *ended).await;
        })
    }
}

/// The message on one line: a raw line break in JSON stands only between tokens, where a blank says the same.
fn one_line(message: &[u8]) -> Bytes {
    let mut line = Vec::with_capacity(message.len() + 1);
    line.extend(message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    line.push(b'\n');
    line.into()
}

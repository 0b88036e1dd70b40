//! The gate's end of a conversation with the workspace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::driver::drive;
use super::protocol::{self, Answer};
use super::root::Root;
use super::tool::{Output, ToolExecution};
use crate::gate::{Era, Inbound, Link, Opening, Outgoing, Permit, UpstreamError};
use crate::message::Message;
use crate::upstream::slots::Slots;
use crate::upstream::{LOG, lock};

/// One conversation.
pub(super) struct WorkspaceLink {
    shared: Arc<Shared>,
}

struct Shared {
    root: Root,
    agent: String,
    era: Era,
    slots: Arc<Slots>,
    inbound: mpsc::Sender<Inbound>,
    open: Mutex<HashMap<u64, Open>>,
}

/// A request that is not answered.
struct Open {
    /// Dropped to stop its run.
    _stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl WorkspaceLink {
    pub fn new(root: Root, slots: Arc<Slots>, opening: Opening) -> Self {
        let Opening { agent, era, inbound, .. } = opening;
        let shared = Shared { root, agent, era, slots, inbound, open: Mutex::default() };
        Self { shared: Arc::new(shared) }
    }
}

impl Link for WorkspaceLink {
    fn send(&self, permit: Permit, message: Outgoing) -> BoxFuture<'_, Result<(), UpstreamError>> {
        if let Some(id) = message.id {
            let shared = Arc::clone(&self.shared);
            let root = Arc::new(shared.root.for_call(permit.other_names()));
            let (stop, stopped) = oneshot::channel();
            // Locked until the request is on the list, so that its end finds it there.
            let mut open = lock(&self.shared.open);
            let task = tokio::spawn(async move { shared.answer(id, message, &root, stopped).await });
            open.insert(id, Open { _stop: stop, task });
        }
        // A notification or an answer says nothing that the workspace waits for.
        Box::pin(std::future::ready(Ok(())))
    }

    fn stop(&self, id: u64, _reason: &str) -> BoxFuture<'_, ()> {
        drop(lock(&self.shared.open).remove(&id));
        Box::pin(std::future::ready(()))
    }

    fn session(&self) -> Option<String> {
        None
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let open = std::mem::take(&mut *lock(&self.shared.open));
        Box::pin(async move {
            let tasks: Vec<JoinHandle<()>> = open.into_values().map(|Open { task, .. }| task).collect();
            for task in tasks {
                // A run that panicked has ended too.
                let _ended = task.await;
            }
        })
    }
}

impl Drop for WorkspaceLink {
    fn drop(&mut self) {
        lock(&self.shared.open).clear();
    }
}

impl Shared {
    async fn answer(&self, id: u64, message: Outgoing, root: &Arc<Root>, stopped: oneshot::Receiver<()>) {
        let answer = match protocol::answer(self.era, id, &message) {
            Answer::Now(answer) => Some(answer),
            Answer::Run(tool, arguments) => {
                let run = || tool.start(root, arguments);
                self.run(id, run, stopped).await
            }
        };
        let waited = lock(&self.open).remove(&id).is_some();
        let Some(answer) = answer.filter(|_| waited) else { return };
        match Message::framed(answer) {
            Ok(message) => {
                // Nobody to tell is no error.
                let _unheard = self.inbound.send(Inbound::Message { message, related: Some(id) }).await;
            }
            Err(error) => tracing::error!(target: LOG, fault = "gateway", "the workspace made a bad answer: {error}"),
        }
    }

    /// The answer of a run; none if it was stopped.
    async fn run(
        &self,
        id: u64,
        start: impl FnOnce() -> Arc<dyn ToolExecution>,
        stopped: oneshot::Receiver<()>,
    ) -> Option<Bytes> {
        let Some(mut slot) = self.slots.take(&self.agent) else {
            let text = "the workspace runs as many calls of this agent as leave room for others; try again when some \
                        have ended";
            let text = text.to_owned();
            return Some(protocol::result(self.era, id, &Output { text, failed: true }));
        };
        let execution = start();
        let cancelled = async {
            tokio::select! {
                _ = stopped => {}
                () = slot.ending() => {}
            }
        };
        let output = drive(&*execution, cancelled).await?;
        Some(protocol::result(self.era, id, &output))
    }
}

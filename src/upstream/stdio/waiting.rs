//! The requests that a child has not answered.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::gate::UpstreamError;
use crate::message::{Kind, Message};
use crate::upstream::lock;

/// Requests on their way, by id, with whether they may be cancelled.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<HashMap<u64, bool>>);

/// What became of something that a child sent.
pub(super) enum Admitted {
    /// Goes on to the gate.
    Message,
    /// An answer to nothing that waits: the id is wrong, or the request was stopped.
    Stray,
}

impl Waiting {
    /// A request is about to be sent.
    pub fn add(&self, id: u64, method: &str) {
        // A client must not cancel `initialize` (MCP 2025-11-25, "Cancellation").
        lock(&self.0).insert(id, method != "initialize");
    }

    /// Nothing that comes for this request is passed on from now. `None`: it did not wait; else whether it may be
    /// cancelled.
    pub fn remove(&self, id: u64) -> Option<bool> {
        lock(&self.0).remove(&id)
    }

    /// Takes an answer's request off the list.
    pub fn admit(&self, message: &Message) -> Admitted {
        let waited = || message.id().and_then(|id| id.parse().ok()).and_then(|id| self.remove(id)).is_some();
        match message.kind() {
            Kind::Response if !waited() => Admitted::Stray,
            _ => Admitted::Message,
        }
    }
}

/// A request that is being sent; taken off the list again unless it gets through.
pub(super) struct Sending<'a> {
    waiting: &'a Waiting,
    id: Option<u64>,
}

impl<'a> Sending<'a> {
    pub fn new(waiting: &'a Waiting, id: Option<u64>, method: &str) -> Self {
        if let Some(id) = id {
            waiting.add(id, method);
        }
        Self { waiting, id }
    }

    /// It is written if `outcome` says so.
    pub fn ended(mut self, outcome: Result<(), UpstreamError>) -> Result<(), UpstreamError> {
        if outcome.is_ok() {
            self.id = None;
        }
        outcome
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.waiting.remove(id);
        }
    }
}

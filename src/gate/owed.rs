//! What must still be written down: how held calls ended and lines of the audit log that could not be stored when they
//! came, and what a task leaves behind that breaks off.
//!
//! It is paid, in order, as soon as store and log work again, and before the gateway counts as ready.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::Gate;
use crate::approval::Event;
use crate::audit::AuditError;
use crate::record::{CallState, Outcome};
use crate::store::StoreError;

/// How many lines of the audit log are remembered, and how many bytes of them: an agent decides how large a call is.
const LINES: (usize, usize) = (10_000, 64 << 20);

/// What is said of a call whose task broke off.
const BROKE_OFF: &str = "the gateway broke off while the call was running; it may have run";

/// All that is owed.
#[derive(Default)]
pub struct Owed {
    events: Mutex<VecDeque<(String, Event)>>,
    lines: Mutex<Lines>,
    /// Only one pays at a time.
    paying: tokio::sync::Mutex<()>,
    came: Notify,
}

#[derive(Default)]
struct Lines {
    queue: VecDeque<(String, String)>,
    bytes: usize,
    /// How many were too many.
    lost: u64,
}

/// What a task leaves behind if it panics.
pub enum Unsettled {
    /// A held call that has to hear of this event.
    Held(String, Event),
    /// A call that is not held and runs.
    Running(String),
}

impl Unsettled {
    /// A held call that a client waits for.
    pub fn attached(call: &str) -> Self {
        Self::Held(call.to_owned(), Event::Detach { handed_off: false })
    }

    /// A held call that runs.
    pub fn claimed(call: &str) -> Self {
        let finish = Event::Finish {
            outcome: Outcome::Failed,
            kept: None,
            tool_error: None,
            detail: Some(BROKE_OFF.to_owned()),
            may_have_run: true,
        };
        Self::Held(call.to_owned(), finish)
    }
}

/// Dropped while its task panics, it settles what the task leaves behind; else it does nothing.
pub struct Net(Option<(Arc<Gate>, Unsettled)>);

impl Net {
    /// Stretched as long as it is kept.
    pub fn under(gate: &Arc<Gate>, left: Unsettled) -> Self {
        Self(Some((Arc::clone(gate), left)))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let (Some((gate, left)), Ok(runtime)) = (self.0.take(), Handle::try_current())
        {
            // Elsewhere: a second panic while one is under way would end the process.
            runtime.spawn(async move { gate.settle(left).await });
        }
    }
}

impl Owed {
    /// When something is owed that was not before.
    pub async fn came(&self) {
        self.came.notified().await;
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.events().is_empty() && self.lines().queue.is_empty()
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<(String, Event)>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    /// Brings an event to a held call that must not be lost: if the store does not work, it is owed.
    pub(super) async fn must(&self, call: &str, event: Event) {
        // What is owed to the same call comes first.
        let behind = self.owed.events().iter().any(|(owed, _)| owed == call);
        if behind || self.bring(call, event.clone()).await.is_err() {
            self.owed.events().push_back((call.to_owned(), event));
            self.owed.came.notify_one();
        }
    }

    /// An error only if it is to be tried again: a call that refuses the event has ended otherwise by now.
    async fn bring(&self, call: &str, event: Event) -> Result<(), StoreError> {
        let applied = match event {
            Event::Deliver | Event::Detach { .. } => self.store.apply(call, event).await,
            _ => self.apply(call, event).await,
        };
        match applied {
            Err(error @ StoreError::Unavailable(_)) => {
                self.store_failed(&error);
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Keeps a line that could not be written.
    pub(super) fn owe_line(&self, event: &str, fields: &Value) {
        let fields = fields.to_string();
        let mut lines = self.owed.lines();
        if lines.queue.len() >= LINES.0 || lines.bytes + fields.len() > LINES.1 {
            lines.lost += 1;
            return;
        }
        lines.bytes += fields.len();
        lines.queue.push_back((event.to_owned(), fields));
        self.owed.came.notify_one();
    }

    /// Tells the store what it is owed.
    ///
    /// # Errors
    /// It does not work; what is left stays owed.
    pub(super) async fn pay_events(&self) -> Result<(), StoreError> {
        let _turn = self.owed.paying.lock().await;
        loop {
            let next = self.owed.events().front().cloned();
            let Some((call, event)) = next else { return Ok(()) };
            self.bring(&call, event).await?;
            self.owed.events().pop_front();
        }
    }

    /// Writes the lines that the log is owed.
    ///
    /// # Errors
    /// It cannot be written; what is left stays owed.
    pub(super) fn pay_lines(&self) -> Result<(), AuditError> {
        let mut lines = self.owed.lines();
        while let Some((event, fields)) = lines.queue.front() {
            let size = fields.len();
            self.audit.append(event, &serde_json::from_str(fields).unwrap_or_default())?;
            lines.queue.pop_front();
            lines.bytes -= size;
        }
        if lines.lost > 0 {
            self.audit.append("audit.lost", &json!({ "lines": lines.lost }))?;
            lines.lost = 0;
        }
        Ok(())
    }

    async fn settle(&self, left: Unsettled) {
        match left {
            Unsettled::Held(call, event) => self.must(&call, event).await,
            Unsettled::Running(call) => {
                let Some(record) = self.recent.get(&call).filter(|record| record.outcome.is_none()) else { return };
                let mut record = (*record).clone();
                record.state = CallState::Failed;
                record.detail = Some(BROKE_OFF.to_owned());
                record.may_have_run = true;
                self.ended(&mut record, None);
            }
        }
    }
}

//! Calls that were not held, in memory: the newest, for people who look.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use serde_json::Value;
use tokio::sync::broadcast;

use super::{CallFilter, GateEvent};
use crate::record::CallRecord;

/// How many calls are remembered, and how many bytes of arguments in all: an agent decides how large a call is.
const KEPT: (usize, usize) = (1_000, 64 << 20);

/// The newest calls of this process that policy allowed or denied outright.
pub struct Recent {
    calls: DashMap<String, Arc<CallRecord>>,
    order: Mutex<Order>,
    events: broadcast::Sender<GateEvent>,
}

/// The remembered calls, oldest first, each with what it takes.
#[derive(Default)]
struct Order {
    ids: VecDeque<(String, usize)>,
    bytes: usize,
}

impl Recent {
    /// Remembers nothing yet; tells `events` of each change.
    pub fn new(events: broadcast::Sender<GateEvent>) -> Self {
        Self { calls: DashMap::new(), order: Mutex::default(), events }
    }

    /// Remembers the call as it is now.
    pub fn put(&self, record: CallRecord) {
        let record = Arc::new(record);
        if self.calls.insert(record.id.clone(), Arc::clone(&record)).is_none() {
            let mut order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
            let bytes = bytes_of(&record.arguments);
            order.ids.push_back((record.id.clone(), bytes));
            order.bytes += bytes;
            self.forget(&mut order);
        }
        // Nobody listening is no fault.
        let _ = self.events.send(GateEvent::Call(record));
    }

    /// Forgets the oldest while there are too many.
    fn forget(&self, order: &mut Order) {
        for _ in 0..order.ids.len() {
            if order.ids.len() <= KEPT.0 && order.bytes <= KEPT.1 {
                return;
            }
            let Some((oldest, bytes)) = order.ids.pop_front() else { return };
            // A call that still runs goes to the end instead: an operator must be able to find it.
            if self.calls.get(&oldest).is_some_and(|record| record.outcome.is_none()) {
                order.ids.push_back((oldest, bytes));
            } else {
                order.bytes -= bytes;
                self.calls.remove(&oldest);
            }
        }
    }

    /// One call.
    pub fn get(&self, id: &str) -> Option<Arc<CallRecord>> {
        self.calls.get(id).map(|r| Arc::clone(&r))
    }

    /// Those that fit the filter, newest first; paging is the caller's.
    pub fn list(&self, filter: &CallFilter) -> Vec<CallRecord> {
        let mut found: Vec<CallRecord> =
            self.calls.iter().filter(|r| fits(filter, r)).map(|r| CallRecord::clone(&r)).collect();
        found.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| b.id.cmp(&a.id)));
        found
    }
}

/// Whether a call is one that the filter asks for.
pub fn fits(filter: &CallFilter, record: &CallRecord) -> bool {
    let state = serde_json::to_value(record.state).ok();
    let is = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|w| w == has);
    is(&filter.state, state.as_ref().and_then(|s| s.as_str()).unwrap_or_default())
        && is(&filter.agent, &record.agent)
        && is(&filter.upstream, &record.upstream)
        && filter.since.is_none_or(|since| record.created_at >= since)
        && filter.groups.as_ref().is_none_or(|groups| groups.iter().any(|g| g == "*" || *g == record.group))
        && filter.session.as_ref().is_none_or(|session| record.session.as_ref() == Some(session))
        && (filter.words.is_empty() || has_words(&filter.words, record))
}

/// Whether all words stand in what a list shows of a call.
fn has_words(words: &[String], record: &CallRecord) -> bool {
    let tool = record.tool.as_deref().unwrap_or_default();
    let by = record.decided_by.join(" ");
    let approval = record.approval.as_deref().unwrap_or_default();
    let shown =
        [&record.label, tool, &by, &record.agent, &record.upstream, &record.id, approval].join(" ").to_lowercase();
    words.iter().all(|word| shown.contains(&word.to_lowercase()))
}

/// About what a value takes in memory.
fn bytes_of(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(elements) => elements.iter().map(bytes_of).sum(),
            Value::Object(members) => members.iter().map(|(key, value)| 2 * key.len() + bytes_of(value)).sum(),
        }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::record::{CallState, Outcome};

    fn call(id: usize, bytes: usize, outcome: Option<Outcome>) -> CallRecord {
        let mut record = crate::approval::tests::held("1").approval.call;
        record.id = format!("call_{id}");
        record.state = outcome.map_or(CallState::Running, |_| CallState::Completed);
        record.outcome = outcome;
        record.arguments = serde_json::json!({ "text": "x".repeat(bytes) });
        record
    }

    #[test]
    fn large_calls_are_forgotten_sooner_but_not_while_they_run() {
        let recent = Recent::new(broadcast::channel(4).0);
        recent.put(call(0, 1 << 20, None));
        for id in 1..200 {
            recent.put(call(id, 1 << 20, Some(Outcome::Completed)));
        }
        let kept = recent.list(&CallFilter::default());
        assert!((50..=64).contains(&kept.len()), "{}", kept.len());
        assert!(recent.get("call_0").is_some() && recent.get("call_199").is_some());
        assert!(recent.get("call_1").is_none());
        for id in 200..1_500 {
            recent.put(call(id, 1, Some(Outcome::Completed)));
        }
        assert_eq!(recent.list(&CallFilter::default()).len(), KEPT.0);
    }
}

//! Calls that were not held, in memory: the newest, for people who look.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use dashmap::DashMap;
use tokio::sync::broadcast;

use super::{CallFilter, GateEvent};
use crate::record::CallRecord;

/// How many ended calls are remembered.
const KEPT: usize = 1_000;

/// The newest calls of this process that policy allowed or denied outright.
pub struct Recent {
    calls: DashMap<String, Arc<CallRecord>>,
    order: Mutex<VecDeque<String>>,
    events: broadcast::Sender<GateEvent>,
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
            order.push_back(record.id.clone());
            if order.len() > KEPT {
                // A call that still runs goes to the end instead: an operator must be able to find it.
                if let Some(oldest) = order.pop_front() {
                    match self.calls.get(&oldest).map(|r| r.outcome.is_none()) {
                        Some(true) => order.push_back(oldest),
                        _ => drop(self.calls.remove(&oldest)),
                    }
                }
            }
        }
        // Nobody listening is no fault.
        let _ = self.events.send(GateEvent::Call(record));
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
}

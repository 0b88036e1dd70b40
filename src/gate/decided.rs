//! How often each rule has decided.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::policy::Policy;

/// Calls that each rule of a policy has decided since this process started, by the rule's label. What one policy counts,
/// the next goes on counting: the counters are made when a policy is loaded, so that a call only adds to one.
#[derive(Clone, Debug, Default)]
pub struct Decided(Arc<HashMap<String, Arc<AtomicU64>>>);

impl Decided {
    /// Counters for all rules of a policy, in the place of those of the one before it.
    pub(super) fn of(policy: &Policy, before: &Self) -> Self {
        let counter = |label: &String| (label.clone(), before.0.get(label).cloned().unwrap_or_default());
        Self(Arc::new(policy.rules().iter().map(|rule| counter(&rule.label)).collect()))
    }

    /// One more call, decided by these, of which some may be no rules.
    pub(super) fn count(&self, decided_by: &[String]) {
        for counter in decided_by.iter().filter_map(|label| self.0.get(label)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many calls a rule has decided, alone or with others.
    pub fn times(&self, label: &str) -> u64 {
        self.0.get(label).map_or(0, |counter| counter.load(Ordering::Relaxed))
    }
}

//! Prometheus metrics with bounded labels.

use std::time::Duration;

use crate::record::{Decision, Outcome, Rejection, Verdict};

/// All metrics of this process. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {}

impl Metrics {
    /// A registry of its own.
    pub fn new() -> Self {
        unimplemented!()
    }
    /// A call ended; `tool` is `other` where the upstream never listed it.
    pub fn call_ended(&self, upstream: &str, tool: &str, group: &str, outcome: Outcome) {
        let _ = (upstream, tool, group, outcome);
        unimplemented!()
    }
    /// A call was rejected.
    pub fn rejected(&self, group: &str, reason: Rejection) {
        let _ = (group, reason);
        unimplemented!()
    }
    /// A call was judged in `took`.
    pub fn judged(&self, group: &str, verdict: Verdict, took: Duration) {
        let _ = (group, verdict, took);
        unimplemented!()
    }
    /// How many approvals wait now.
    pub fn awaiting(&self, count: i64) {
        let _ = count;
        unimplemented!()
    }
    /// An approval was decided after `waited`.
    pub fn decided(&self, decision: Decision, channel: &str, waited: Duration) {
        let _ = (decision, channel, waited);
        unimplemented!()
    }
    /// The upstream took so long for one call.
    pub fn call_took(&self, upstream: &str, took: Duration) {
        let _ = (upstream, took);
        unimplemented!()
    }
    /// Whether an upstream answers.
    pub fn upstream_up(&self, upstream: &str, up: bool) {
        let _ = (upstream, up);
        unimplemented!()
    }
    /// A policy was loaded (`ok`) or refused (`error`).
    pub fn policy_reload(&self, result: &str) {
        let _ = result;
        unimplemented!()
    }
    /// The version in force.
    pub fn policy_version(&self, version: &str) {
        let _ = version;
        unimplemented!()
    }
    /// The text exposition format, version 0.0.4.
    pub fn render(&self) -> String {
        unimplemented!()
    }
    /// Calls by outcome, for the demo's table: (upstream, tool, outcome, count).
    pub fn calls(&self) -> Vec<(String, String, String, u64)> {
        unimplemented!()
    }
}

//! Prometheus metrics with bounded labels.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

use crate::record::{Decision, NotifiedState, Outcome, Rejection, Verdict};

/// How many (upstream, tool, group) are counted apart; whatever comes after them is `other`.
const APART: usize = 2_000;

/// The label value for what is not counted apart.
pub const OTHER: &str = "other";

/// Seconds a judgement takes: microseconds, unless it walks a folder.
const JUDGING: &[f64] = &[0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1];

/// Seconds an upstream takes for a call, up to its usual time limit and beyond.
const CALLING: &[f64] =
    &[0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 600.0];

/// Seconds a human takes.
const DECIDING: &[f64] =
    &[1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0];

/// All metrics of this process. Cheap to clone.
#[derive(Clone)]
pub struct Metrics {
    all: Arc<All>,
}

struct All {
    registry: Registry,
    apart: Mutex<HashSet<[Box<str>; 3]>>,
    calls: IntCounterVec,
    rejections: IntCounterVec,
    verdicts: IntCounterVec,
    awaiting: IntGauge,
    decisions: IntCounterVec,
    wait: Histogram,
    judge: Histogram,
    call: HistogramVec,
    up: IntGaugeVec,
    policy: IntGaugeVec,
    reloads: IntCounterVec,
    tools: IntCounterVec,
    notifications: IntCounterVec,
}

impl Metrics {
    /// A registry of its own.
    pub fn new() -> Self {
        let registry = Registry::new();
        let add = |collector: Box<dyn Collector>| made(registry.register(collector));
        let counter = |name: &str, help: &str, labels: &[&str]| {
            let vec = made(IntCounterVec::new(Opts::new(name, help), labels));
            add(Box::new(vec.clone()));
            vec
        };
        let gauge = |name: &str, help: &str, labels: &[&str]| {
            let vec = made(IntGaugeVec::new(Opts::new(name, help), labels));
            add(Box::new(vec.clone()));
            vec
        };
        let seconds = |name: &str, help: &str, buckets: &[f64]| {
            let histogram = made(Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec())));
            add(Box::new(histogram.clone()));
            histogram
        };
        let calls = counter(
            "portcullis_calls_total",
            "Calls that ended, by how they ended; rejected and cancelled are not failures.",
            &["upstream", "tool", "group", "outcome"],
        );
        let rejections =
            counter("portcullis_rejections_total", "Calls that were rejected, by reason.", &["group", "reason"]);
        let verdicts =
            counter("portcullis_verdicts_total", "What the policy said of calls.", &["group", "verdict", "mode"]);
        let awaiting = made(IntGauge::new("portcullis_approvals_awaiting", "Calls that wait for a human now."));
        add(Box::new(awaiting.clone()));
        let decisions =
            counter("portcullis_approval_decisions_total", "What humans decided, and where.", &["decision", "channel"]);
        let wait =
            seconds("portcullis_approval_wait_seconds", "How long calls waited for a human's decision.", DECIDING);
        let judge = seconds("portcullis_judge_seconds", "How long judging a call took.", JUDGING);
        let opts = HistogramOpts::new(
            "portcullis_call_seconds",
            "How long upstreams took for calls; never includes the wait for a human.",
        );
        let call = made(HistogramVec::new(opts.buckets(CALLING.to_vec()), &["upstream"]));
        add(Box::new(call.clone()));
        let up = gauge("portcullis_upstream_up", "Whether the last contact with an upstream worked.", &["upstream"]);
        let policy = gauge("portcullis_policy_info", "The version of the policy in force.", &["version"]);
        let reloads = counter("portcullis_policy_reloads_total", "Loads of the policy, by result.", &["result"]);
        let tools = counter(
            "portcullis_tools_offered_total",
            "Definitions of tools that were not known before, or are not the accepted ones.",
            &["upstream", "state"],
        );
        let notifications = counter(
            "portcullis_notifications_total",
            "Held calls of which people were told, or could not be, by channel.",
            &["channel", "result"],
        );
        let all = All {
            apart: Mutex::default(),
            calls,
            rejections,
            verdicts,
            awaiting,
            decisions,
            wait,
            judge,
            call,
            up,
            policy,
            reloads,
            tools,
            notifications,
            registry,
        };
        Self { all: Arc::new(all) }
    }

    /// A call ended; `tool` is `other` where the upstream never listed it.
    pub fn call_ended(&self, upstream: &str, tool: &str, group: &str, outcome: Outcome) {
        let tool = if self.is_apart(upstream, tool, group) { tool } else { OTHER };
        self.all.calls.with_label_values(&[upstream, tool, group, outcome.as_str()]).inc();
    }

    /// A call was rejected.
    pub fn rejected(&self, group: &str, reason: Rejection) {
        self.all.rejections.with_label_values(&[group, reason.as_str()]).inc();
    }

    /// A call was judged in `took`.
    pub fn judged(&self, took: Duration) {
        self.all.judge.observe(took.as_secs_f64());
    }

    /// The verdict on a call, as it is obeyed.
    pub fn said(&self, group: &str, verdict: Verdict) {
        self.count(group, verdict, "enforce");
    }

    /// What would have been said of a call had nothing been in shadow mode.
    pub fn shadowed(&self, group: &str, verdict: Verdict) {
        self.count(group, verdict, "shadow");
    }

    fn count(&self, group: &str, verdict: Verdict, mode: &str) {
        let verdict = match verdict {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        };
        self.all.verdicts.with_label_values(&[group, verdict, mode]).inc();
    }

    /// An upstream offered a tool that is `new` or `changed`.
    pub fn tool_seen(&self, upstream: &str, state: &str) {
        self.all.tools.with_label_values(&[upstream, state]).inc();
    }

    /// People were told of a held call by a configured channel, or could not be.
    pub fn notified(&self, channel: &str, result: NotifiedState) {
        self.all.notifications.with_label_values(&[channel, result.as_str()]).inc();
    }

    /// How many approvals wait now.
    pub fn awaiting(&self, count: i64) {
        self.all.awaiting.set(count);
    }

    /// An approval was decided after `waited`.
    pub fn decided(&self, decision: Decision, channel: &str, waited: Duration) {
        let decision = match decision {
            Decision::Approve => "approve",
            Decision::Reject => "reject",
        };
        let channel = if ["inbox", "api", "cli"].contains(&channel) { channel } else { OTHER };
        self.all.decisions.with_label_values(&[decision, channel]).inc();
        self.all.wait.observe(waited.as_secs_f64());
    }

    /// The upstream took so long for one call.
    pub fn call_took(&self, upstream: &str, took: Duration) {
        self.all.call.with_label_values(&[upstream]).observe(took.as_secs_f64());
    }

    /// Whether an upstream answers.
    pub fn upstream_up(&self, upstream: &str, up: bool) {
        self.all.up.with_label_values(&[upstream]).set(i64::from(up));
    }

    /// A policy was loaded (`ok`) or refused (`error`).
    pub fn policy_reload(&self, result: &str) {
        let result = if result == "ok" { result } else { "error" };
        self.all.reloads.with_label_values(&[result]).inc();
    }

    /// The version in force.
    pub fn policy_version(&self, version: &str) {
        self.all.policy.reset();
        self.all.policy.with_label_values(&[version]).set(1);
    }

    /// The text exposition format, version 0.0.4.
    pub fn render(&self) -> String {
        TextEncoder::new().encode_to_string(&self.all.registry.gather()).unwrap_or_else(|error| {
            tracing::error!(%error, "the metrics could not be written");
            String::new()
        })
    }

    /// Calls by outcome, for the demo's table: (upstream, tool, outcome, count).
    pub fn calls(&self) -> Vec<(String, String, String, u64)> {
        let mut counts: BTreeMap<_, u64> = BTreeMap::new();
        for family in self.all.calls.collect() {
            for metric in family.get_metric() {
                let label = |name: &str| {
                    let found = metric.get_label().iter().find(|label| label.name() == name);
                    found.map(|label| label.value().to_owned()).unwrap_or_default()
                };
                // Counted one by one, so whole; beyond 2^53 nobody compares.
                let count = metric.get_counter().get_value() as u64;
                *counts.entry((label("upstream"), label("tool"), label("outcome"))).or_default() += count;
            }
        }
        counts.into_iter().map(|((upstream, tool, outcome), count)| (upstream, tool, outcome, count)).collect()
    }

    /// Whether these labels are counted apart: all are, until there are too many.
    fn is_apart(&self, upstream: &str, tool: &str, group: &str) -> bool {
        let labels = [upstream.into(), tool.into(), group.into()];
        let mut apart = self.all.apart.lock().unwrap_or_else(PoisonError::into_inner);
        apart.contains(&labels) || (apart.len() < APART && apart.insert(labels))
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// A metric that was just described.
#[expect(clippy::expect_used, reason = "names and labels are constants, and a test makes them all")]
fn made<T>(result: prometheus::Result<T>) -> T {
    result.expect("metrics have good names, once each")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn names_and_labels_are_the_contract() {
        let metrics = Metrics::new();
        metrics.call_ended("files", "read_file", "default", Outcome::Completed);
        metrics.rejected("default", Rejection::RateLimit);
        metrics.said("default", Verdict::Ask);
        metrics.judged(Duration::from_micros(40));
        metrics.shadowed("default", Verdict::Deny);
        metrics.awaiting(3);
        metrics.decided(Decision::Approve, "inbox", Duration::from_secs(7));
        metrics.decided(Decision::Reject, "pigeon", Duration::from_secs(7));
        metrics.call_took("files", Duration::from_millis(20));
        metrics.upstream_up("files", true);
        metrics.policy_reload("ok");
        metrics.policy_reload("whatever");
        metrics.notified("slack:ops", NotifiedState::Delivered);
        metrics.policy_version("sha256:old");
        metrics.policy_version("sha256:new");
        let text = metrics.render();
        for line in [
            r#"portcullis_calls_total{group="default",outcome="completed",tool="read_file",upstream="files"} 1"#,
            r#"portcullis_rejections_total{group="default",reason="rate_limit"} 1"#,
            r#"portcullis_verdicts_total{group="default",mode="enforce",verdict="ask"} 1"#,
            r#"portcullis_verdicts_total{group="default",mode="shadow",verdict="deny"} 1"#,
            "portcullis_approvals_awaiting 3",
            r#"portcullis_approval_decisions_total{channel="inbox",decision="approve"} 1"#,
            r#"portcullis_approval_decisions_total{channel="other",decision="reject"} 1"#,
            "portcullis_approval_wait_seconds_count 2",
            r#"portcullis_approval_wait_seconds_bucket{le="10"} 2"#,
            r#"portcullis_judge_seconds_bucket{le="0.00005"} 1"#,
            r#"portcullis_call_seconds_bucket{upstream="files",le="0.025"} 1"#,
            r#"portcullis_upstream_up{upstream="files"} 1"#,
            r#"portcullis_policy_info{version="sha256:new"} 1"#,
            r#"portcullis_policy_reloads_total{result="error"} 1"#,
            r#"portcullis_notifications_total{channel="slack:ops",result="delivered"} 1"#,
            r#"portcullis_policy_reloads_total{result="ok"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
        }
        assert!(!text.contains("sha256:old"));
    }

    #[test]
    fn a_flood_of_tools_is_other() {
        let metrics = Metrics::new();
        for i in 0..APART + 500 {
            metrics.call_ended("files", &format!("tool{i}"), "default", Outcome::Failed);
        }
        metrics.call_ended("files", "tool0", "default", Outcome::Failed);
        let calls = metrics.calls();
        assert_eq!(calls.len(), APART + 1);
        let count = |tool: &str| calls.iter().find(|call| call.1 == tool).unwrap().3;
        assert_eq!((count("other"), count("tool0")), (500, 2));
    }

    #[test]
    fn calls_are_added_up_over_groups() {
        let metrics = Metrics::new();
        metrics.call_ended("files", "read", "a", Outcome::Completed);
        metrics.call_ended("files", "read", "b", Outcome::Completed);
        metrics.call_ended("files", "read", "a", Outcome::Rejected);
        let row = |outcome: &str, count| ("files".to_owned(), "read".to_owned(), outcome.to_owned(), count);
        assert_eq!(metrics.calls(), [row("completed", 2), row("rejected", 1)]);
    }
}

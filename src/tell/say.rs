//! A word in the words of people: what every kind of channel puts into its own form.

use super::asks::Ask;
use super::plan::{Topic, Word};
use super::text::tame;
use crate::record::{Severity, word};

/// How many calls a message names; the others are counted.
const NAMED: usize = 5;

/// What is said, safe to be shown as plain text.
pub struct Saying {
    /// The whole in one line, in our own words.
    pub headline: String,
    /// The calls.
    pub items: Vec<Item>,
    /// How many more there are.
    pub more: usize,
    /// Where they are decided.
    pub link: String,
    /// The most urgent.
    pub severity: Severity,
}

/// One call.
pub struct Item {
    /// What it would do. An agent wrote of it.
    pub label: String,
    /// Where, why, until when; or how it ended.
    pub detail: String,
    /// Where it is decided.
    pub link: String,
}

/// Puts a word into words. `ended`: all that ended of the message and is still known; `base`: where the inbox is.
pub fn saying(said: &Word, ended: &[Ask], base: &str) -> Saying {
    let all: Vec<&Ask> = said.waiting.iter().chain(ended).collect();
    let items = all.iter().take(NAMED).map(|ask| Item {
        label: tame(&ask.label),
        detail: if ask.waits() { waits(ask) } else { tame(&ask.ended) },
        link: link(base, &ask.approval),
    });
    let first = all.first();
    Saying {
        headline: headline(said, ended),
        items: items.collect(),
        more: all.len().saturating_sub(NAMED),
        link: first.map_or_else(|| format!("{base}/#/waiting"), |ask| link(base, &ask.approval)),
        severity: all.iter().map(|ask| ask.severity).max().unwrap_or_default(),
    }
}

/// Where an approval is decided. It takes the reader's own login.
pub fn link(base: &str, approval: &str) -> String {
    format!("{}/#/approvals/{approval}", base.trim_end_matches('/'))
}

fn headline(said: &Word, ended: &[Ask]) -> String {
    let agent = said.waiting.iter().chain(ended).next().map_or("an agent", |ask| ask.agent.as_str());
    let agent = tame(agent);
    let severity = said.waiting.iter().map(|ask| ask.severity).max().unwrap_or_default();
    let urgent = if severity > Severity::Normal { format!(" ({})", word(severity)) } else { String::new() };
    let many = match said.waiting.len() {
        1 => format!("a call of {agent} waits for a decision{urgent}"),
        many => format!("{many} calls of {agent} wait for a decision{urgent}"),
    };
    match said.topic {
        Topic::Opened | Topic::Updated => many,
        Topic::Reminded => format!("reminder: {many}"),
        Topic::Escalated => format!("escalated: {many}"),
        Topic::Closed => match ended {
            [one] => format!("a call of {agent}: {}", tame(&one.ended)),
            many => format!("{} calls of {agent} are decided", many.len()),
        },
    }
}

fn waits(ask: &Ask) -> String {
    let tool = ask.tool.as_deref().map_or_else(|| ask.upstream.clone(), |tool| format!("{}/{tool}", ask.upstream));
    let mut parts =
        vec![tame(&tool), format!("group {}", tame(&ask.group)), format!("severity {}", word(ask.severity))];
    if !ask.rules.is_empty() {
        parts.push(tame(&format!("asked by {}", ask.rules.join(", "))));
    }
    parts.extend(ask.reason.as_deref().map(tame));
    if !ask.approvers.is_empty() {
        parts.push(tame(&format!("for {}", ask.approvers.join(", "))));
    }
    parts.push(format!("until {}", ask.expires_at));
    parts.join(" · ")
}

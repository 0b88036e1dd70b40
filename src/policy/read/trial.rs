//! `mode` and `until`: what is only tried out, and what ends by itself.

use crate::clock::Timestamp;
use crate::config::yaml::{Entry, Fields, Node, Report};
use crate::record::Verdict;

pub(super) const MODE: [(&str, bool); 2] = [("enforce", false), ("shadow", true)];

/// `mode` and `until` as they were written.
pub(super) struct Trial<'a> {
    mode: Option<(&'a Entry, bool)>,
    until: Option<(&'a Entry, Option<Timestamp>)>,
}

impl<'a> Trial<'a> {
    /// Takes both fields of a rule or a group.
    pub fn of(fields: &mut Fields<'a>, report: &mut Report) -> Self {
        let mode = fields.entry("mode").and_then(|entry| Some((entry, entry.value.choice(&MODE, report)?)));
        let until = fields.entry("until").map(|entry| (entry, until(&entry.value, report)));
        Self { mode, until }
    }

    /// A rule's: whether it is in shadow mode, and when that, or the allow, ends.
    pub fn of_rule(self, verdict: Verdict, guardrail: bool, report: &mut Report) -> (bool, Option<Timestamp>) {
        let shadow = self.mode.filter(|(_, shadow)| *shadow);
        if let Some((entry, _)) = shadow.filter(|_| guardrail) {
            report
                .error(entry.at, "a guardrail cannot be in shadow mode: it is always obeyed")
                .help("remove `mode`, or try it out first as a rule of a group");
            return (false, None);
        }
        if let Some((entry, _)) = &self.until {
            if verdict != Verdict::Allow && shadow.is_none() {
                let help = "remove it, or write `mode: shadow` to try the rule out until then";
                report.error(entry.at, "`until` belongs to an allow, or to shadow mode").help(help);
            } else if verdict == Verdict::Allow && shadow.is_some() {
                let help = "an allow in shadow mode has no date of its own: remove `until`, or `mode: shadow`";
                report.error(entry.at, "does `until` end the allow, or its shadow mode?").help(help);
            }
        }
        (shadow.is_some(), self.until.and_then(|(_, until)| until))
    }

    /// A group's: until when it is in shadow mode, if it is.
    pub fn of_group(self, report: &mut Report) -> Option<Timestamp> {
        match (self.mode.filter(|(_, shadow)| *shadow), self.until) {
            (Some((entry, _)), None) => {
                let help = "write `until: 2030-12-31`: a trial that nobody ends must not leave a group open";
                report.error(entry.at, "a group in shadow mode needs `until`").help(help);
                None
            }
            (None, Some((entry, _))) => {
                report
                    .error(entry.at, "`until` of a group belongs to `mode: shadow`")
                    .help("remove it, or add the mode");
                None
            }
            (Some(_), Some((_, until))) => until,
            (None, None) => None,
        }
    }
}

/// A date stands for the end of that day in UTC; a time (RFC 3339) for itself.
fn until(node: &Node, report: &mut Report) -> Option<Timestamp> {
    let text = node.text(report)?;
    let read = || {
        let is_date = text.len() == 10;
        let at = if is_date {
            let date: jiff::civil::Date = text.parse().ok()?;
            date.tomorrow().ok()?.at(0, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp()
        } else {
            text.parse::<jiff::Timestamp>().ok()?
        };
        Some(Timestamp::from_millis(at.as_millisecond()))
    };
    let found = read();
    if found.is_none() {
        report
            .error(node.at, format!("`{text}` is no date"))
            .help("write `2030-12-31` (until the end of that day, UTC) or `2030-12-31T18:00:00Z`");
    }
    found
}

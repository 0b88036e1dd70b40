//! The `limit` of an allow.

use std::num::NonZeroU32;

use super::args::{number, pointer};
use super::shape;
use crate::config::yaml::{Entry, Fields, Node, Report};
use crate::policy::limit::{By, Limit, Of, Period, Then};
use crate::record::Verdict;

pub(super) const PERIOD: [(&str, Period); 5] = [
    ("second", Period::Second),
    ("minute", Period::Minute),
    ("hour", Period::Hour),
    ("day", Period::Day),
    ("week", Period::Week),
];
pub(super) const THEN: [(&str, Then); 2] = [("reject", Then::Reject), ("ask", Then::Ask)];

/// Reads `{per: minute, calls: 30, by: agent}` or `{per: day, sum: /amount, max: 500, by: [agent, /order_id], then: ask}`.
pub(super) fn limit(entry: &Entry, verdict: Verdict, report: &mut Report) -> Option<Limit> {
    if verdict != Verdict::Allow {
        report
            .error(entry.at, "`limit` belongs to an allow")
            .help("what is denied or asked runs no more often than that");
        return None;
    }
    let mut fields = Fields::new(&entry.value, "`limit`", report)?;
    let period = fields.required("per", report).and_then(|node| node.choice(&PERIOD, report));
    let of = counted(&mut fields, report);
    let by = fields.optional("by").and_then(|node| node.one_or_more(report)).unwrap_or_default();
    let by: Vec<Option<By>> = by.iter().map(|node| shared(node, report)).collect();
    let then = fields.optional("then").map_or(Some(Then::Reject), |node| node.choice(&THEN, report));
    shape::LIMIT.finish(fields, report);
    Some(Limit { period: period?, of: of?, by: by.into_iter().collect::<Option<_>>()?, then: then? })
}

/// `calls`, or `sum` with `max`.
fn counted(fields: &mut Fields<'_>, report: &mut Report) -> Option<Of> {
    let (calls, sum, max) = (fields.optional("calls"), fields.optional("sum"), fields.optional("max"));
    match (calls, sum, max) {
        (Some(node), None, None) => {
            let most = node.integer(report)?;
            let calls = u32::try_from(most).ok().and_then(NonZeroU32::new);
            if calls.is_none() {
                let help = "write a number from 1 to 4294967295; what may never run is a deny";
                report.error(node.at, format!("`calls: {most}` limits nothing, or allows nothing")).help(help);
            }
            calls.map(Of::Calls)
        }
        (None, Some(sum), Some(max)) => {
            let pointer = pointer(sum.text(report)?, sum.at, report);
            let most = number(max, report)?;
            if most.is_negative() {
                report
                    .error(max.at, "`max` is less than 0")
                    .help("a sum of amounts never is; what may never run is a deny");
                return None;
            }
            if !most.is_countable() {
                let help = "it may have 40 digits before the point, and 40 behind it";
                report.error(max.at, "`max` has too many digits").help(help);
                return None;
            }
            Some(Of::Sum { name: sum.text(report)?.into(), pointer: pointer?, max: most })
        }
        _ => {
            let help = "write `calls: 30`, or `sum: /amount` with `max: 500`";
            report.error(fields.at, "a limit is of `calls`, or of a `sum` with its `max`").help(help);
            None
        }
    }
}

fn shared(node: &Node, report: &mut Report) -> Option<By> {
    let text = node.text(report)?;
    if text == "agent" {
        return Some(By::Agent);
    }
    if !text.starts_with('/') {
        report
            .error(node.at, format!("`by`: `{text}` tells no calls apart"))
            .help("write `agent`, or the JSON pointer of an argument: `/order_id`");
        return None;
    }
    pointer(text, node.at, report).map(By::Argument)
}

//! The examples that rules carry: a policy whose examples fail does not load.

use super::called::{Called, Catalogues};
use super::judge::{Subject, calls, matches, target};
use super::model::Rule;
use super::reach::guards;
use super::read::{FileDraft, RuleDraft};
use crate::config::yaml::{Node, Report};
use crate::config::{FileSystem, Transport, UpstreamConfig};
use crate::facet::Facet;
use crate::facet::path::Space;
use crate::record::Verdict;

/// The `examples` of one rule.
#[derive(Debug, Default)]
pub(super) struct Examples {
    /// `match`: for an allow, the rule alone covers every facet and there is no floor; else it matches one at least.
    pub matching: Vec<Node>,
    /// `not_match`: the negation.
    pub not_matching: Vec<Node>,
}

/// Runs the examples of one file.
pub(super) fn check(draft: &FileDraft, catalogues: &Catalogues, report: &mut Report) {
    let groups = draft.groups.iter().flat_map(|group| &group.rules);
    for RuleDraft { rule, examples, .. } in draft.guardrails.iter().chain(groups) {
        for (nodes, wanted) in [(&examples.matching, true), (&examples.not_matching, false)] {
            for node in nodes {
                run(rule, node, wanted, catalogues, report);
            }
        }
    }
}

fn run(rule: &Rule, node: &Node, wanted: bool, catalogues: &Catalogues, report: &mut Report) {
    let Some(read) = Called::read(node, &Space::new(&nowhere()), None, catalogues, report) else { return };
    let called = match read {
        Ok(called) => called,
        Err(what) => {
            report.error(node.at, format!("the gateway refuses this call unread: {what}"));
            return;
        }
    };
    let (holds, but) = verdict(rule, &called);
    if holds != wanted {
        let help = match (wanted, but) {
            (true, Some(but)) => but,
            (true, None) => "widen the rule, or move the example to `not_match`".into(),
            (false, _) => "narrow the rule, or move the example to `match`".into(),
        };
        let said = if wanted { "does not match" } else { "matches" };
        report.error(node.at, format!("rule `{}` {said} this example", rule.label)).help(&*help);
    }
}

/// Whether the rule matches as `match` means it, and what is in the way.
fn verdict(rule: &Rule, called: &Called) -> (bool, Option<String>) {
    let calls = calls(&called.request.subject("", &called.tool, None), &called.touched);
    let hit = |subject: &Subject<'_>, facets: &[Facet]| {
        let hits = facets.iter().filter(|facet| matches(rule, subject, target(facet, facets))).count();
        (hits > 0, hits == facets.len())
    };
    if rule.verdict != Verdict::Allow {
        let holds = calls.iter().any(|(subject, touched)| {
            let mut places = touched.strays.iter().flat_map(|stray| &stray.locations);
            hit(subject, &touched.facets).0 || places.any(|at| guards(subject, rule, at))
        });
        return (holds, None);
    }
    let floor = calls.iter().flat_map(|(_, touched)| &touched.facets).flat_map(|facet| &facet.floors).next();
    let but = floor.map(|floor| format!("a floor asks, whatever allows it: `{}`", floor.why.as_str()));
    (floor.is_none() && calls.iter().all(|(subject, touched)| hit(subject, &touched.facets).1), but)
}

/// `filesystem: none` with root `/root`.
pub(super) fn nowhere() -> UpstreamConfig {
    let config = UpstreamConfig::new("example", Transport::Command(Vec::new()), "/root".into());
    UpstreamConfig { filesystem: FileSystem::None, ..config }
}

//! What an allow would have needed, in sentences.

use super::bench::{Bench, Judged};
use super::fields::Target;
use super::judge::target;
use super::model::Rule;
use super::near;
use crate::facet::{Facet, FloorWhy};
use crate::record::{Access, FacetKindRecord, Verdict};

/// One sentence for each thing that stands between the call and an allow, facet by facet: those of `facets`, then
/// unmarked strings.
pub(super) fn needed_for_allow(bench: &Bench<'_>, facets: &[Facet], judged: &[Judged<'_>]) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    let targets = facets.iter().map(|facet| Some(target(facet, facets))).chain(std::iter::repeat(None));
    for (judged, target) in judged.iter().zip(targets) {
        if judged.record.verdict == Verdict::Allow {
            continue;
        }
        let what = name(&judged.record.kind);
        let obstacles = || judged.said.iter().filter(|said| said.counts.now && said.verdict != Verdict::Allow);
        for said in obstacles() {
            if let Some(rule) = said.rule {
                sentences.push(format!("{what}: {}", by_rule(rule)));
            } else if said.label.starts_with("group:") {
                let group = bench.subject.group;
                sentences
                    .push(format!("no policy file has a group `{group}`; add it, or give the agent another group"));
            }
        }
        let covered = judged.said.iter().any(|said| said.counts.now && said.verdict == Verdict::Allow);
        if let (Some(target), Some(_), false) = (target, bench.group, covered) {
            sentences.push(format!("{what}: {}", uncovered(bench, target, &judged.record.kind)));
        }
        // Floors come last.
        for said in obstacles() {
            let Some(floor) = said.label.strip_prefix("floor:") else { continue };
            let why =
                said.detail.as_deref().unwrap_or_else(|| FloorWhy::sentence_of(floor).unwrap_or("it needs a person"));
            sentences.push(format!("{what}: {why} (floor `{floor}`); no allow lifts that, an approval does"));
        }
    }
    sentences
}

/// A rule that says deny or ask.
fn by_rule(rule: &Rule) -> String {
    let label = &rule.label;
    match (rule.verdict, rule.guardrail) {
        (Verdict::Deny, true) => format!("the guardrail `{label}` denies it, and no rule lifts a guardrail"),
        (_, true) => format!("the guardrail `{label}` asks, and only an approval of this very call answers it"),
        (Verdict::Deny, false) => {
            format!("the rule `{label}` denies it, and no allow lifts a deny; add an exception to that rule")
        }
        (_, false) => format!("the rule `{label}` asks, and no allow lifts an ask; add an exception to that rule"),
    }
}

/// That no allow covers a facet, and how near one comes.
fn uncovered(bench: &Bench<'_>, target: Target<'_>, kind: &FacetKindRecord) -> String {
    let group = bench.subject.group;
    let near = near::nearest(bench, target);
    if near.is_empty() {
        return format!("no allow of group `{group}` covers it; {}", rule_for(kind));
    }
    format!("no allow of group `{group}` covers it; {}", near.join("; "))
}

fn name(kind: &FacetKindRecord) -> String {
    match kind {
        FacetKindRecord::Path { access, pointer, lexical, physical, .. } => {
            let verb = match access {
                Some(Access::Read) => "read",
                Some(Access::Write) => "write",
                Some(Access::Delete) => "delete",
                None => "use",
            };
            let at = if pointer.is_empty() { String::new() } else { format!(" (`{pointer}`)") };
            match physical {
                Some(physical) if physical != lexical => format!("{verb} of {lexical}, really {physical}{at}"),
                _ => format!("{verb} of {lexical}{at}"),
            }
        }
        FacetKindRecord::Command { words, .. } => format!("command `{}`", words.join(" ")),
        FacetKindRecord::Url { url, .. } => format!("URL {url}"),
        FacetKindRecord::Address { address, .. } => format!("address {address}"),
        FacetKindRecord::Sql { kinds, tables } if kinds.is_empty() && tables.is_empty() => {
            "SQL that is not read".into()
        }
        FacetKindRecord::Sql { kinds, tables } if tables.is_empty() => format!("SQL ({})", kinds.join(", ")),
        FacetKindRecord::Sql { kinds, tables } => format!("SQL ({}) on {}", kinds.join(", "), tables.join(", ")),
        FacetKindRecord::Method { method } => format!("method `{method}`"),
        FacetKindRecord::Bare => "the call".into(),
    }
}

fn rule_for(kind: &FacetKindRecord) -> &'static str {
    match kind {
        FacetKindRecord::Path { access: None, .. } => {
            "an allow with `tool` and `path` would, or a catalogue entry that says how the path is used"
        }
        FacetKindRecord::Path { .. } => "an allow with `path`, and `tool` or `access`, would",
        FacetKindRecord::Method { .. } => "an allow with `method` would",
        FacetKindRecord::Command { .. } => {
            "an allow with `command` would, with `option` too where an option runs programs or writes files, and with `path` \
             where it writes or leaves the root"
        }
        FacetKindRecord::Url { command: Some(_), .. } => "an allow with `command` and `host` would",
        FacetKindRecord::Url { .. } | FacetKindRecord::Address { .. } => "an allow with `tool` or `host` would",
        FacetKindRecord::Sql { .. } => "an allow with `sql` and `tool` would",
        FacetKindRecord::Bare => "an allow with `tool` would",
    }
}

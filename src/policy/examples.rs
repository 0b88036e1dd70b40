//! The examples that rules carry: a policy whose examples fail does not load.

use super::judge::{matches, target};
use super::model::Rule;
use super::reach::guards;
use super::read::{FileDraft, RuleDraft};
use super::request::Request;
use crate::catalog::{Catalogue, Tool};
use crate::config::yaml::{Node, Report};
use crate::config::{FileSystem, Transport, UpstreamConfig};
use crate::facet::path::Space;
use crate::facet::{Facet, Malformed, Touched, extract_shell};
use crate::message::Limits;
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
pub(super) fn check(draft: &FileDraft, report: &mut Report) {
    let groups = draft.groups.iter().flat_map(|group| &group.rules);
    for RuleDraft { rule, examples, .. } in draft.guardrails.iter().chain(groups) {
        for (nodes, wanted) in [(&examples.matching, true), (&examples.not_matching, false)] {
            for node in nodes {
                run(rule, node, wanted, report);
            }
        }
    }
}

fn run(rule: &Rule, node: &Node, wanted: bool, report: &mut Report) {
    let Some(example) = Example::read(node, report) else { return };
    let (holds, but) = verdict(rule, &example);
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
fn verdict(rule: &Rule, example: &Example) -> (bool, Option<String>) {
    let subject = example.request.subject("", &example.tool, None);
    let facets = &example.touched.facets;
    let hit = |facet: &Facet| matches(rule, &subject, target(facet, facets));
    if rule.verdict != Verdict::Allow {
        let mut places = example.touched.strays.iter().flat_map(|stray| &stray.locations);
        return (facets.iter().any(hit) || places.any(|at| guards(&subject, rule, at)), None);
    }
    let floor = facets.iter().flat_map(|facet| &facet.floors).next();
    let but = floor.map(|floor| format!("a floor asks, whatever allows it: `{}`", floor.why.as_str()));
    (floor.is_none() && facets.iter().all(hit), but)
}

struct Example {
    request: Request,
    tool: Tool,
    touched: Touched,
}

impl Example {
    fn read(node: &Node, report: &mut Report) -> Option<Self> {
        if node.scalar().is_some() {
            let read = Self::command(node.text(report)?);
            let help = "an example is a shell command, or what `policy explain` takes";
            return read
                .map_err(|what| report.error(node.at, format!("no command can be read here: {what}")).help(help))
                .ok();
        }
        let text = node.json(report)?;
        let read = Request::parse(&text, Limits::default()).and_then(|request| {
            let tool = request.entry(&catalogue(&request));
            let touched = request.touched(&tool, &Space::new(&nowhere())).map_err(|error| error.to_string())?;
            Ok(Self { request, tool, touched })
        });
        read.map_err(|what| {
            report
                .error(node.at, format!("no call can be read here: {what}"))
                .help("an example is what `policy explain` takes, or a shell command");
        })
        .ok()
    }

    /// A shell text, whatever tool it is given to.
    fn command(text: &str) -> Result<Self, Malformed> {
        let request = Request { method: super::model::TOOLS_CALL.into(), ..Request::default() };
        let touched = extract_shell(&Space::new(&nowhere()), text)?;
        Ok(Self { request, tool: Tool::default(), touched })
    }
}

/// The first built-in catalogue that knows the tool, the workspace's before others: an example names no upstream.
fn catalogue(request: &Request) -> Catalogue {
    let knows = |catalogue: &&Catalogue| request.tool.as_ref().is_some_and(|tool| catalogue.tools.contains_key(tool));
    let mut names = Catalogue::builtin_names();
    names.sort_by_key(|name| (*name != "workspace", *name));
    names.into_iter().filter_map(Catalogue::builtin).find(knows).cloned().unwrap_or_default()
}

/// `filesystem: none` with root `/root`.
pub(super) fn nowhere() -> UpstreamConfig {
    let config = UpstreamConfig::new("example", Transport::Command(Vec::new()), "/root".into());
    UpstreamConfig { filesystem: FileSystem::None, ..config }
}

//! What rules and groups rely on: folders, agents, dates.

use std::collections::BTreeSet;

use super::Findings;
use super::places::{Bench, field, items, texts};
use super::tools::{is_named, matches};
use super::wider::plain_path;
use crate::config::yaml::Mark;
use crate::config::{FileSystem, UpstreamConfig};
use crate::diagnostic::did_you_mean;
use crate::record::Verdict;

/// How long before its end a date is told, in days.
const NEAR: i64 = 7;
const DAY: i64 = 86_400_000;

/// P005: a plain relative path that no shared root has.
pub fn missing_paths(bench: &Bench<'_>, findings: &mut Findings) {
    let Some(config) = bench.config else { return };
    for placed in &bench.rules {
        let concerned = config.upstreams.values().filter(|upstream| is_named(placed.node, &upstream.id));
        let shared: Vec<&UpstreamConfig> =
            concerned.filter(|upstream| upstream.filesystem == FileSystem::Shared).collect();
        if shared.is_empty() || findings.is_full(placed.file) {
            continue;
        }
        for (text, at) in placed.everywhere("path") {
            let Some(components) = plain_path(text) else { continue };
            let path: std::path::PathBuf = components.iter().collect();
            if shared.iter().any(|upstream| upstream.root.join(&path).symlink_metadata().is_ok()) {
                continue;
            }
            let roots: Vec<&str> = shared.iter().map(|upstream| upstream.id.as_str()).collect();
            let near = shared.iter().find_map(|upstream| neighbour(upstream, &path));
            let help = near.map_or_else(
                || "correct it; if the path is yet to come, this goes away with it".into(),
                |near| format!("did you mean `{near}`?"),
            );
            findings.add(placed.file, at, format!("`{text}` is not there, in the root of {}", roots.join(", ")), help);
        }
    }
}

/// The nearest name in the folder that holds the path.
fn neighbour(upstream: &UpstreamConfig, path: &std::path::Path) -> Option<String> {
    let folder = path.parent()?;
    let found = std::fs::read_dir(upstream.root.join(folder)).ok()?;
    let names: Vec<String> = found.take(1000).filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let near = did_you_mean(path.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(folder.join(near).display().to_string())
}

/// P006: agents are configured, and none is in the group or in one that extends it.
pub fn unused_groups(bench: &Bench<'_>, findings: &mut Findings) {
    let Some(config) = bench.config.filter(|config| !config.agents.is_empty()) else { return };
    let used: BTreeSet<&str> = config
        .agents
        .iter()
        .filter_map(|agent| bench.groups.iter().find(|group| group.name == agent.group))
        .flat_map(|group| bench.line(group.name))
        .collect();
    // One that must be there is not to be removed.
    let required = |name: &str| config.policy.require.iter().any(|required| required == name);
    for group in bench.groups.iter().filter(|group| !used.contains(group.name) && !required(group.name)) {
        let message = format!("no agent is in group `{}`, nor in one that extends it", group.name);
        findings.add(group.file, group.at, message, "put an agent into it in portcullis.yaml, or remove it");
    }
}

/// P017: a rule names an agent that is not configured. Where none is, there is `local`.
pub fn unknown_agents(bench: &Bench<'_>, findings: &mut Findings) {
    let Some(config) = bench.config else { return };
    let only = config.agents.is_empty().then_some("local");
    let known = || config.agents.iter().map(|agent| agent.name.as_str()).chain(only);
    for placed in &bench.rules {
        for (text, at) in placed.everywhere("agent") {
            if known().any(|name| matches(text, name)) {
                continue;
            }
            let near = did_you_mean(text, known()).map(|near| format!("did you mean `{near}`?"));
            let help = near.unwrap_or_else(|| match only {
                Some(_) => "there is only `local` as long as portcullis.yaml has no `agents`".to_owned(),
                None => format!("there is {}", known().collect::<Vec<_>>().join(", ")),
            });
            findings.add(placed.file, at, format!("no agent `{text}` is configured"), help);
        }
    }
}

/// P015: an agent or approver of a group that no policy has: an agent is denied everything, an approver sees nothing.
pub fn unknown_groups(bench: &Bench<'_>, findings: &mut Findings) {
    let Some((settings, file)) = bench.settings else { return };
    for (list, kind, named) in [("agents", "agent", "group"), ("approvers", "approver", "groups")] {
        for person in field(settings, list).into_iter().flat_map(items) {
            let name = texts(person, "name").first().map(|(name, _)| *name).unwrap_or_default();
            for (group, at) in texts(person, named) {
                if group == "*" || bench.policy.groups().any(|known| known == group) {
                    continue;
                }
                let near = did_you_mean(group, bench.policy.groups()).map(|near| format!("did you mean `{near}`?"));
                let message = format!("{kind} `{name}` is in the group `{group}`, which no policy has");
                findings.add(file, at, message, near.unwrap_or_else(|| "add the group to a policy file".into()));
            }
        }
    }
}

/// P010.
pub fn dates(bench: &Bench<'_>, findings: &mut Findings) {
    let rules = bench.rules.iter().filter_map(|placed| {
        let ends = match (placed.rule.verdict, placed.rule.shadow) {
            (Verdict::Allow, false) => "the allow is gone then",
            _ => "the rule is obeyed then",
        };
        Some((placed.file, placed.node, placed.rule.until?, ends))
    });
    let groups = bench.groups.iter().filter_map(|group| {
        let until = bench.policy.groups.get(group.name)?.shadow_until?;
        Some((group.file, group.node, until, "the group's rules are obeyed then"))
    });
    for (file, node, until, ends) in rules.chain(groups) {
        let left = until.as_millis().saturating_sub(bench.now.as_millis());
        let Some((text, at)): Option<(&str, Mark)> = texts(node, "until").first().copied() else { continue };
        if left <= 0 {
            let help = "remove what has ended, or give it another date";
            findings.add(file, at, format!("`until: {text}` is past; {}", ends.replace(" then", "")), help);
        } else if left <= NEAR * DAY {
            let message = match left / DAY {
                0 => format!("`until: {text}` ends within a day; {ends}"),
                1 => format!("`until: {text}` ends in a day; {ends}"),
                days => format!("`until: {text}` ends in {days} days; {ends}"),
            };
            findings.add(file, at, message, "move the date if that is too early");
        }
    }
}

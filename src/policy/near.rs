//! Which allow comes nearest to a facet that none covers, and what it lacks.

use super::bench::Bench;
use super::commands::{Running, covers};
use super::fields::{Fields, Reading, Target, Thing, ToolTerm};
use super::model::{Rule, TOOLS_CALL};
use super::statements::TablePattern;
use crate::record::{Access, Verdict, word};

/// How many allows are named.
const NAMED: usize = 3;
/// Allows that lack more than this are about something else.
const FAR: usize = 2;

/// The allows that come nearest, each in a sentence about what it lacks.
pub(super) fn nearest(bench: &Bench<'_>, target: Target<'_>) -> Vec<String> {
    let mut near: Vec<(usize, String)> = bench
        .allows()
        .filter(|(rule, _)| is_about(bench, &rule.fields, target))
        .map(|(rule, is_obeyed)| {
            let lacks = lacks(bench, rule, is_obeyed, target);
            let place = match (&rule.file, rule.line) {
                (Some(file), Some(line)) if rule.label != format!("{file}:{line}") => format!(" ({file}:{line})"),
                _ => String::new(),
            };
            (lacks.len(), format!("the allow `{}`{place} {}", rule.label, lacks.join(" and ")))
        })
        .filter(|(lacks, _)| (1..=FAR).contains(lacks))
        .collect();
    near.sort();
    let fewest = near.first().map_or(0, |(lacks, _)| *lacks);
    near.into_iter().filter(|(lacks, _)| *lacks == fewest).take(NAMED).map(|(_, sentence)| sentence).collect()
}

/// Whether an allow is about this kind of thing at all.
fn is_about(bench: &Bench<'_>, fields: &Fields, target: Target<'_>) -> bool {
    let is_class = |term: &ToolTerm| matches!(term, ToolTerm::Path | ToolTerm::PathRead | ToolTerm::PathWrite);
    let of_paths = !fields.tool.is_empty() && fields.tool.iter().all(is_class);
    let of_commands = !(fields.command.is_empty() && fields.option.is_empty());
    let of_sql = !(fields.sql.is_empty() && fields.table.is_empty());
    let fits = match target.thing {
        Thing::Path { .. } => fields.host.is_empty(),
        Thing::Command => !of_paths,
        Thing::Remote { .. } => fields.path.is_empty() && !of_paths,
        Thing::Sql(_) | Thing::Other => fields.path.is_empty() && fields.host.is_empty() && !of_paths,
    };
    let called = bench.subject.method == TOOLS_CALL || fields.tool.is_empty();
    let is_sql = matches!(target.thing, Thing::Sql(_));
    fits && called && (!of_commands || target.running.is_some()) && (!of_sql || is_sql)
}

/// What keeps an allow from a facet, one phrase each; empty if nothing does.
fn lacks(bench: &Bench<'_>, rule: &Rule, is_obeyed: bool, target: Target<'_>) -> Vec<String> {
    let subject = bench.subject;
    let failing = rule.fields.failing(subject, target, Reading::Allow);
    let mut lacks: Vec<String> = failing.iter().map(|name| phrase(&rule.fields, name, target)).collect();
    if failing.is_empty() && !covers(&rule.fields, target) {
        lacks.push(uncovered(&rule.fields, target));
    }
    let exception = Reading::of_exception(Verdict::Allow);
    if rule.except.iter().any(|fields| exception.holds(fields.hold(subject, target, exception))) {
        lacks.push("has an exception for it".into());
    }
    if bench.hides_denied(target.running).now {
        lacks.push("does not cover a command that may run others where its words contain a denied one".into());
    }
    match (rule.until, is_obeyed) {
        (Some(until), false) => lacks.push(format!("ended at {until}")),
        (None, false) => lacks.push("is in shadow mode".into()),
        (_, true) => {}
    }
    lacks
}

/// A field that does not hold.
fn phrase(fields: &Fields, name: &str, target: Target<'_>) -> String {
    let texts = fields.texts(name);
    let list = texts.join(", ");
    match name {
        "tool" if target.guessed => "takes no argument whose meaning is guessed from its name".into(),
        "tool" if fields.tool.iter().all(|term| matches!(term, ToolTerm::PathRead)) => "covers read only".into(),
        "tool" if fields.tool.iter().all(|term| matches!(term, ToolTerm::PathWrite)) => {
            "covers write and delete only".into()
        }
        "path" | "access" | "command" | "host" | "sql" | "table" if !list.is_empty() => format!("covers {list} only"),
        "host" => "is for other hosts".into(),
        "option" => format!("needs one of the options {list}"),
        "args" => format!("needs its `args` on {list} to hold"),
        _ => format!("is for `{name}` {list} only"),
    }
}

/// Why an allow whose fields hold does not cover a command or what it names (policy.md, "What an allow covers in a
/// shell text").
fn uncovered(fields: &Fields, target: Target<'_>) -> String {
    match (target.thing, target.running) {
        (Thing::Command, Some(Running { command, .. })) => {
            let missing = command.powers.iter().filter(|names| !names.iter().any(|name| fields.option.contains(name)));
            let missing: Vec<String> = missing.filter_map(|names| Some(format!("`{}`", names.first()?))).collect();
            format!("does not name in `option` what runs programs or writes files: {}", missing.join(", "))
        }
        (Thing::Path { access: Some(Access::Read), .. }, _) => {
            "has no `path`, and so covers only what commands read inside the root".into()
        }
        _ => "has no `path`, and so covers only what commands read".into(),
    }
}

impl Fields {
    /// A field's entries as they were written, or the like of it.
    fn texts(&self, name: &str) -> Vec<String> {
        match name {
            "tool" => self.tool.iter().map(|term| term.text().to_owned()).collect(),
            "upstream" => self.upstream.iter().map(|pattern| pattern.text().to_owned()).collect(),
            "category" => self.category.iter().map(|pattern| pattern.text().to_owned()).collect(),
            "path" => self.path.texts().map(str::to_owned).collect(),
            "access" => self.access.iter().map(word).collect(),
            "command" => self.command.iter().map(|words| format!("`{}`", words.text())).collect(),
            "option" => self.option.clone(),
            "sql" => self.sql.iter().map(|kind| kind.as_str().to_owned()).collect(),
            "table" => self.table.iter().map(TablePattern::text).collect(),
            "method" => self.method.iter().map(|pattern| pattern.text().to_owned()).collect(),
            "args" => self.args.iter().map(|test| format!("`{}`", test.name())).collect(),
            "agent" => self.agent.iter().map(|pattern| pattern.text().to_owned()).collect(),
            "depth" => self.depth.iter().map(word).collect(),
            "source" => self.source.iter().map(word).collect(),
            _ => Vec::new(),
        }
    }
}

//! The matching fields of a rule or of an exception.

use super::args;
use super::shape::{self, Field, Shape, field};
use crate::config::is_upstream_id;
use crate::config::yaml::{Fields as Yaml, Node, Report};
use crate::diagnostic::did_you_mean;
use crate::facet::StatementKind;
use crate::pattern::{NamePattern, PathPattern, PatternError};
use crate::policy::commands::{WordsPattern, option};
use crate::policy::fields::{Fields, Paths, ToolTerm};
use crate::policy::hosts::HostPattern;
use crate::policy::statements::TablePattern;
use crate::record::{Access, Depth, Source};

/// The fields that can match.
pub(super) static MATCHING: &[Field] = &[
    field(
        "tool",
        Shape::OneOrMore(&Shape::TextSuchAs(shape::classes)),
        "A tool's name, a glob, or a class of what calls do.",
    ),
    field("upstream", Shape::OneOrMore(&Shape::Text), "The configured id, or a glob."),
    field(
        "category",
        Shape::OneOrMore(&Shape::TextSuchAs(|| CATEGORIES.to_vec())),
        "What the catalogue says of the tool.",
    ),
    field(
        "path",
        Shape::OneOrMore(&Shape::Text),
        "A folder with all below it (`docs/`), a file, or a glob; from the upstream's root, absolute with a leading slash, `**/x` at any depth.",
    ),
    field("access", Shape::OneOrMore(&Shape::Word(|| shape::names(&ACCESS))), "How the path is used."),
    field("command", Shape::OneOrMore(&Shape::Text), "The words that a simple command starts with, such as `git log`."),
    field("option", Shape::OneOrMore(&Shape::Text), "Options that are present, in any place; any of the list."),
    field(
        "host",
        Shape::OneOrMore(&Shape::Text),
        "A URL's host or an address's domain: a name, a glob, an address block, `@internal`.",
    ),
    field(
        "sql",
        Shape::OneOrMore(&Shape::Word(|| shape::names(&StatementKind::ALL))),
        "Kinds of SQL statements; an allow must name all that the text holds.",
    ),
    field(
        "table",
        Shape::OneOrMore(&Shape::Text),
        "Tables that the statements name: `users`, `public.*`, `*` for every one.",
    ),
    field("method", Shape::OneOrMore(&Shape::Text), "An MCP method, such as `resources/read`."),
    field(
        "args",
        Shape::Named(&Shape::Fields(&shape::MATCHERS)),
        "Tests on arguments, by JSON pointer (`/to/*`) or top-level name; all must hold.",
    ),
    field("agent", Shape::OneOrMore(&Shape::Text), "Who calls: a name or a glob."),
    field(
        "depth",
        Shape::OneOrMore(&Shape::Word(|| shape::names(&DEPTH))),
        "root: started by a person. sub: by another agent.",
    ),
    field(
        "source",
        Shape::OneOrMore(&Shape::Word(|| shape::names(&SOURCE))),
        "interactive: a person is present. background: a job.",
    ),
];

const CATEGORIES: [&str; 7] = ["filesystem", "shell", "subagent", "introspection", "config", "network", "other"];
const ACCESS: [(&str, Access); 3] = [("read", Access::Read), ("write", Access::Write), ("delete", Access::Delete)];
const DEPTH: [(&str, Depth); 2] = [("root", Depth::Root), ("sub", Depth::Sub)];
const SOURCE: [(&str, Source); 2] = [("interactive", Source::Interactive), ("background", Source::Background)];

/// Takes the matching fields; an error if there is not one.
pub(super) fn matching(yaml: &mut Yaml<'_>, what: &str, report: &mut Report) -> Fields {
    if !MATCHING.iter().any(|field| yaml.has(field.name)) {
        report
            .error(yaml.at, format!("{what} without a matching field would match everything"))
            .help("say what it is about: `tool`, `path`, …; every tool call is `tool: \"@any\"`");
    }
    apart(yaml, what, report);
    let mut path = Paths::default();
    let entries = each(yaml, "path", report, |text| PathPattern::parse(text).map(PathPattern::with_physical));
    entries.into_iter().for_each(|entry| path.push(entry));
    let at = yaml.at;
    let fields = Fields {
        tool: each(yaml, "tool", report, tool),
        upstream: each(yaml, "upstream", report, upstream),
        category: each(yaml, "category", report, category),
        path,
        access: words(yaml, "access", &ACCESS, report),
        command: each(yaml, "command", report, WordsPattern::parse),
        option: each(yaml, "option", report, option),
        host: each(yaml, "host", report, HostPattern::parse),
        sql: words(yaml, "sql", &StatementKind::ALL, report),
        table: each(yaml, "table", report, TablePattern::parse),
        method: each(yaml, "method", report, NamePattern::parse),
        args: yaml.optional("args").map(|node| args::tests(node, report)).unwrap_or_default(),
        agent: each(yaml, "agent", report, NamePattern::parse),
        depth: words(yaml, "depth", &DEPTH, report),
        source: words(yaml, "source", &SOURCE, report),
    };
    if let Some((class, access)) = at_odds(&fields) {
        report
            .error(at, format!("{what} with `tool: \"{class}\"` and that `access` never matches"))
            .help(format!("write `access: {access}`, or leave it out").as_str());
    }
    fields
}

/// A class of tools that no access of the rule is of, and what it is of.
fn at_odds(fields: &Fields) -> Option<(&'static str, &'static str)> {
    let all = |class: fn(&ToolTerm) -> bool| !fields.tool.is_empty() && fields.tool.iter().all(class);
    if fields.access.is_empty() {
        None
    } else if all(|term| matches!(term, ToolTerm::PathRead)) && !fields.access.contains(&Access::Read) {
        Some(("@fs_read", "read"))
    } else if all(|term| matches!(term, ToolTerm::PathWrite)) && fields.access.iter().all(|one| *one == Access::Read) {
        Some(("@fs_write", "[write, delete]"))
    } else {
        None
    }
}

/// Refuses fields of which each thing that a call touches has one only: a path, a host or an SQL text.
fn apart(yaml: &Yaml<'_>, what: &str, report: &mut Report) {
    const PARTS: [(&str, &[&str]); 3] =
        [("a path", &["path", "access"]), ("a host", &["host"]), ("an SQL text", &["sql", "table"])];
    let named = |fields: &[&'static str]| fields.iter().copied().find(|field| yaml.has(field));
    let found: Vec<_> = PARTS.iter().filter_map(|(thing, fields)| Some((*thing, named(fields)?))).collect();
    if let [(one, first), (other, second), ..] = found.as_slice() {
        report
            .error(
                yaml.at,
                format!("{what} with both `{first}` and `{second}` never matches: nothing is {one} and {other}"),
            )
            .help("write a rule for each");
    }
}

/// The exceptions of a rule.
pub(super) fn exceptions(node: &Node, report: &mut Report) -> Vec<Fields> {
    let nodes = node.one_or_more(report).unwrap_or_default();
    nodes
        .iter()
        .filter_map(|node| {
            let mut yaml = Yaml::new(node, "an exception", report)?;
            let fields = matching(&mut yaml, "an exception", report);
            shape::EXCEPTION.finish(yaml, report);
            Some(fields)
        })
        .collect()
}

fn each<T>(
    yaml: &mut Yaml<'_>,
    name: &'static str,
    report: &mut Report,
    parse: impl Fn(&str) -> Result<T, PatternError>,
) -> Vec<T> {
    let nodes = yaml.optional(name).and_then(|node| node.one_or_more(report)).unwrap_or_default();
    nodes.iter().filter_map(|node| pattern(node, name, report, &parse)).collect()
}

/// One text that is a pattern.
pub(super) fn pattern<T>(
    node: &Node,
    name: &str,
    report: &mut Report,
    parse: impl Fn(&str) -> Result<T, PatternError>,
) -> Option<T> {
    let text = node.text(report)?;
    let parse = |text: &str| plain(name, text).and_then(|()| parse(text));
    parse(text)
        .map_err(|error| {
            report.error(node.at, format!("`{name}`: `{text}`: {}", error.what)).help(error.help.as_deref());
        })
        .ok()
}

/// Refuses what other languages of patterns have, and ours would take for a part of a name.
fn plain(name: &str, text: &str) -> Result<(), PatternError> {
    const TYPOGRAPHIC: [char; 8] = ['“', '”', '„', '‟', '‘', '’', '‚', '‛'];
    let wrong = |what: &str, help: String| Err(PatternError { what: what.into(), help: Some(help) });
    if !MATCHING.iter().any(|field| field.name == name) {
        return Ok(());
    }
    if let Some(rest) = text.strip_prefix('!') {
        return wrong("`!` is no negation", format!("put it under `except: [{{ {name}: {rest} }}]`"));
    }
    let list = |text: &str| text.split(',').map(str::trim).collect::<Vec<_>>().join(", ");
    let is_a_list = match name {
        "tool" | "host" | "command" | "table" => text.contains(',') && !text.contains(['{', '[', '"']),
        // A file may well have a comma in its name.
        "path" => text.contains("/,") || text.contains(", "),
        _ => false,
    };
    if is_a_list {
        return wrong("a comma does not part entries", format!("write a list: `[{}]`", list(text)));
    }
    if text.starts_with(TYPOGRAPHIC) || text.ends_with(TYPOGRAPHIC) {
        return wrong("typographic quotes are part of the text", "write `\"`, or no quotes".into());
    }
    Ok(())
}

fn words<T: Copy>(yaml: &mut Yaml<'_>, name: &'static str, words: &[(&str, T)], report: &mut Report) -> Vec<T> {
    let nodes = yaml.optional(name).and_then(|node| node.one_or_more(report)).unwrap_or_default();
    nodes.iter().filter_map(|node| node.choice(words, report)).collect()
}

fn tool(text: &str) -> Result<ToolTerm, PatternError> {
    if !text.starts_with('@') {
        return NamePattern::parse(text).map(ToolTerm::Name);
    }
    let classes = ToolTerm::CLASSES.iter();
    classes.clone().find(|(name, _)| *name == text).map(|(_, class)| class.clone()).ok_or_else(|| {
        let near = did_you_mean(text, classes.clone().map(|(name, _)| *name));
        let all: Vec<&str> = classes.map(|(name, _)| *name).collect();
        PatternError {
            what: "no such class of tools".into(),
            help: Some(
                near.map_or_else(|| format!("there is {}", all.join(", ")), |near| format!("did you mean `{near}`?")),
            ),
        }
    })
}

fn upstream(text: &str) -> Result<NamePattern, PatternError> {
    let pattern = NamePattern::parse(text)?;
    if pattern.literal().is_some_and(|id| !is_upstream_id(id)) {
        return Err(PatternError {
            what: "no upstream can have this id".into(),
            help: Some("an id is 1 to 32 lower-case letters, digits and `-`".into()),
        });
    }
    Ok(pattern)
}

fn category(text: &str) -> Result<NamePattern, PatternError> {
    let pattern = NamePattern::parse(text)?;
    if pattern.literal().is_some_and(|literal| !CATEGORIES.contains(&literal)) {
        let near = did_you_mean(text, CATEGORIES).map(|near| format!("did you mean `{near}`?"));
        return Err(PatternError {
            what: "no such category".into(),
            help: near.or_else(|| Some(format!("there is {}", CATEGORIES.join(", ")))),
        });
    }
    Ok(pattern)
}

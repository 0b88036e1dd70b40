//! Rules that lie within others. Only what is certain is told.

use std::collections::{HashMap, HashSet};

use super::Findings;
use super::places::{Bench, Placed, conditions, field, items, texts};
use crate::config::yaml::{Kind, Node};
use crate::pattern::{Location, NamePattern, PathPattern, Side};
use crate::policy::model::Rule;
use crate::record::Verdict;

/// Pairs of rules that are compared at most: a policy of thousands of rules on one tool must load all the same.
const MAX_PAIRS: usize = 100_000;

/// P001: whatever the rule matches, a stricter one matches too.
pub fn never_decides(bench: &Bench<'_>, findings: &mut Findings) {
    let tightens = |rule: &Rule| rule.verdict != Verdict::Allow && !rule.shadow && rule.except.is_empty();
    let index = Index::new(bench.rules.iter().filter(|wide| tightens(wide.rule)));
    let mut pairs = MAX_PAIRS;
    for narrow in &bench.rules {
        let is_obeyed_with = |wide: &Placed<'_>| match (wide.group, narrow.group) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(wide), Some(narrow)) => bench.line(narrow).contains(&wide),
        };
        let stricter = index.candidates(narrow).filter(|wide| wide.rule.verdict > narrow.rule.verdict);
        let covering = take(stricter, &mut pairs).find(|wide| covers(wide.node, narrow.node) && is_obeyed_with(wide));
        if let Some(wide) = covering {
            let (own, other) = (&narrow.rule.label, &wide.rule.label);
            let does = if wide.rule.verdict == Verdict::Deny { "denies" } else { "asks about" };
            let message = format!("`{own}` can never decide: `{other}` ({}) {does} all that it matches", wide.at());
            let help = format!("remove it, or give `{other}` an `except` for what it matches");
            findings.add(narrow.file, narrow.node.at, message, help);
        }
    }
}

/// P002: a deny takes a part out of what an allow of its group lets in, and nothing else does.
pub fn holes(bench: &Bench<'_>, findings: &mut Findings) {
    let index = Index::new(bench.rules.iter().filter(|allow| allow.rule.verdict == Verdict::Allow));
    let mut pairs = MAX_PAIRS;
    let mut told: HashSet<&str> = HashSet::new();
    let denies = |rule: &Rule| rule.verdict == Verdict::Deny && !rule.shadow;
    for deny in bench.rules.iter().filter(|deny| deny.group.is_some() && denies(deny.rule)) {
        let excepted =
            |allow: &Placed<'_>| field(allow.node, "except").into_iter().flat_map(items).any(|e| covers(e, deny.node));
        let of_its_group = |allow: &Placed<'_>| {
            let (Some(own), Some(other)) = (deny.group, allow.group) else { return false };
            bench.line(own).contains(&other)
        };
        for allow in take(index.candidates(deny), &mut pairs) {
            let is_hole = covers(allow.node, deny.node) && of_its_group(allow) && !excepted(allow);
            // Once for each allow is enough.
            if !is_hole || !told.insert(&allow.rule.label) {
                continue;
            }
            let (own, other) = (&allow.rule.label, &deny.rule.label);
            let message =
                format!("the allow `{own}` is wider than the deny `{other}` ({}), which is a hole in it", deny.at());
            let help = format!("give `{own}` an `except` that says the same: it holds even if the deny is lost");
            findings.add(allow.file, allow.node.at, message, help);
        }
    }
}

/// As many as the budget has left.
fn take<'b, T>(found: impl Iterator<Item = T> + 'b, budget: &'b mut usize) -> impl Iterator<Item = T> + 'b {
    found.map_while(move |one| {
        *budget = budget.checked_sub(1)?;
        Some(one)
    })
}

/// Rules that may be wider than others, by the tools they name.
struct Index<'r, 'a> {
    by_tool: HashMap<&'a str, Vec<&'r Placed<'a>>>,
    rest: Vec<&'r Placed<'a>>,
}

impl<'r, 'a> Index<'r, 'a> {
    fn new(rules: impl Iterator<Item = &'r Placed<'a>>) -> Self {
        let mut index = Self { by_tool: HashMap::new(), rest: Vec::new() };
        for rule in rules {
            let tools = texts(rule.node, "tool");
            if tools.is_empty() || tools.iter().any(|(tool, _)| !is_plain(tool)) {
                index.rest.push(rule);
                continue;
            }
            for (tool, _) in tools {
                index.by_tool.entry(tool).or_default().push(rule);
            }
        }
        index
    }

    /// Those that could cover a rule.
    fn candidates(&self, narrow: &Placed<'a>) -> impl Iterator<Item = &'r Placed<'a>> {
        let first = texts(narrow.node, "tool").first().map(|(tool, _)| *tool);
        let named = first.and_then(|tool| self.by_tool.get(tool)).map(Vec::as_slice).unwrap_or_default();
        named.iter().chain(&self.rest).copied()
    }
}

/// Whether the fields of one rule surely hold wherever those of the other do.
fn covers(wide: &Node, narrow: &Node) -> bool {
    conditions(wide).all(|condition| {
        let Some(own) = field(narrow, &condition.key) else { return false };
        if same(&condition.value, own) {
            return true;
        }
        let entries = items(own);
        !entries.is_empty()
            && entries
                .iter()
                .all(|entry| items(&condition.value).iter().any(|wider| entry_covers(&condition.key, wider, entry)))
    })
}

/// Whether one entry of a field that means "any of them" holds wherever the other does.
fn entry_covers(field: &str, wide: &Node, narrow: &Node) -> bool {
    let (Some(wide), Some(narrow)) = (wide.scalar(), narrow.scalar()) else { return false };
    let (wide, narrow) = (&*wide.text, &*narrow.text);
    match field {
        _ if wide == narrow => true,
        "tool" if wide == "@any" => !narrow.starts_with('@') || narrow == "@shell",
        "tool" if wide == "@fs_any" => matches!(narrow, "@fs_read" | "@fs_write"),
        "tool" if wide.starts_with('@') || narrow.starts_with('@') => false,
        "tool" | "upstream" | "category" | "method" | "agent" => name_covers(wide, narrow),
        "path" => path_covers(wide, narrow),
        "command" => {
            let mut words = narrow.split_whitespace();
            wide.split_whitespace().all(|word| words.next() == Some(word))
        }
        _ => false,
    }
}

fn name_covers(wide: &str, narrow: &str) -> bool {
    let literal = NamePattern::parse(narrow).is_ok_and(|pattern| pattern.literal() == Some(narrow));
    literal && NamePattern::parse(wide).is_ok_and(|pattern| pattern.matches(narrow, Side::Exact))
}

/// Whether an entry names a plain relative path and all below it, and the other too.
fn path_covers(wide: &str, narrow: &str) -> bool {
    let Ok(wide) = PathPattern::parse(wide) else { return false };
    if wide.is_everything() {
        return true;
    }
    let Some(components) = plain_path(narrow) else { return false };
    let at = |more: Option<&str>| {
        let root = std::iter::once("root");
        let names: Vec<Box<str>> = root.chain(components.iter().copied()).chain(more).map(Box::from).collect();
        Location::new(names, Some(1))
    };
    // A name that no pattern was written for.
    let below = "\u{10fffd}";
    !wide.text().starts_with('/') && wide.matches(&at(None), Side::Exact) && wide.matches(&at(Some(below)), Side::Exact)
}

/// The components of a relative path without wildcards.
pub fn plain_path(text: &str) -> Option<Vec<&str>> {
    let is_relative = !text.starts_with('/') && !text.split('/').any(|part| part == "..");
    let components = text.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    (is_relative && is_plain(text)).then_some(components)
}

/// Whether a text has no wildcards and names no class.
pub fn is_plain(text: &str) -> bool {
    !text.starts_with('@') && !text.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

/// Whether two values are the same, wherever they stand.
fn same(one: &Node, other: &Node) -> bool {
    match (&one.kind, &other.kind) {
        (Kind::Scalar(one), Kind::Scalar(other)) => one == other,
        (Kind::Sequence(one), Kind::Sequence(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Kind::Mapping(one), Kind::Mapping(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| one.key == other.key && same(&one.value, &other.value))
        }
        _ => false,
    }
}

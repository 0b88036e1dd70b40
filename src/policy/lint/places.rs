//! The policy with the places of all that is written in it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::config::Config;
use crate::config::yaml::{self, Entry, Kind, Mark, Node, Report};
use crate::diagnostic::shown;
use crate::policy::model::{Policy, Rule};

/// The fields of a rule that match nothing.
const OTHER_FIELDS: [&str; 9] =
    ["name", "verdict", "reason", "examples", "approval", "mode", "until", "limit", "except"];

/// The trees of all files; the configuration's is the last.
pub struct Sources {
    trees: Vec<Option<Node>>,
    files: Vec<String>,
}

impl Sources {
    /// Reads the files again, and the configuration.
    pub fn read(files: Vec<(String, Vec<u8>)>, config: Option<&Config>) -> (Self, Vec<Report>) {
        let config = config.and_then(|config| config.file.as_deref()).and_then(bytes);
        let read = files.into_iter().chain(config).map(|(file, bytes)| yaml::read(&file, &bytes));
        let (reports, trees): (Vec<Report>, Vec<Option<Node>>) = read.unzip();
        let files = reports.iter().map(|report| report.file().to_owned()).collect();
        (Self { trees, files }, reports)
    }
}

fn bytes(file: &Path) -> Option<(String, Vec<u8>)> {
    Some((shown(file), std::fs::read(file).ok()?))
}

/// All that lints look at.
pub struct Bench<'a> {
    pub config: Option<&'a Config>,
    pub now: Timestamp,
    pub rules: Vec<Placed<'a>>,
    pub groups: Vec<PlacedGroup<'a>>,
    /// The configuration's tree, and the number of its file.
    pub settings: Option<(&'a Node, usize)>,
    pub policy: &'a Policy,
}

/// A rule and where it is written.
pub struct Placed<'a> {
    pub rule: &'a Rule,
    pub node: &'a Node,
    pub file: usize,
    /// None for a guardrail.
    pub group: Option<&'a str>,
}

/// A group and where it is written.
pub struct PlacedGroup<'a> {
    pub name: &'a str,
    pub at: Mark,
    pub node: &'a Node,
    pub file: usize,
}

impl<'a> Bench<'a> {
    pub fn new(policy: &'a Policy, sources: &'a Sources, config: Option<&'a Config>, now: Timestamp) -> Self {
        let by_place: HashMap<_, &'a Arc<Rule>> =
            policy.rules().iter().map(|rule| ((rule.file.as_deref(), rule.line, rule.column), rule)).collect();
        let has_settings = config.is_some_and(|config| config.file.is_some());
        let policies = sources.trees.len().saturating_sub(usize::from(has_settings));
        let mut bench = Self { config, now, rules: Vec::new(), groups: Vec::new(), settings: None, policy };
        for ((file, tree), name) in sources.trees.iter().enumerate().zip(&sources.files) {
            let Some(tree) = tree else { continue };
            if file >= policies {
                bench.settings = Some((tree, file));
                continue;
            }
            let mut place = |node: &'a Node, group| {
                let key = (Some(name.as_str()), Some(node.at.line), Some(node.at.column));
                if let Some(rule) = by_place.get(&key) {
                    bench.rules.push(Placed { rule, node, file, group });
                }
            };
            field(tree, "guardrails").into_iter().flat_map(items).for_each(|node| place(node, None));
            for entry in field(tree, "groups").into_iter().flat_map(entries) {
                field(&entry.value, "rules").into_iter().flat_map(items).for_each(|node| place(node, Some(&entry.key)));
                bench.groups.push(PlacedGroup { name: &entry.key, at: entry.at, node: &entry.value, file });
            }
        }
        bench
    }

    /// A group, and those that it extends, nearest first.
    pub fn line(&self, group: &'a str) -> Vec<&'a str> {
        let mut line = vec![group];
        let parent = |name: &str| self.groups.iter().find(|group| group.name == name)?.parent();
        while let Some(next) = line.last().and_then(|last| parent(last)).filter(|next| !line.contains(next)) {
            line.push(next);
        }
        line
    }
}

impl<'a> PlacedGroup<'a> {
    /// The group that it extends.
    pub fn parent(&self) -> Option<&'a str> {
        field(self.node, "extends")?.scalar().map(|scalar| &*scalar.text)
    }
}

impl<'a> Placed<'a> {
    /// The entries of a field, in the rule and in its exceptions.
    pub fn everywhere(&self, name: &str) -> Vec<(&'a str, Mark)> {
        let exceptions = field(self.node, "except").into_iter().flat_map(items);
        std::iter::once(self.node).chain(exceptions).flat_map(|node| texts(node, name)).collect()
    }

    /// Where it is written, for messages.
    pub fn at(&self) -> String {
        format!("{}:{}", self.rule.file.as_deref().unwrap_or_default(), self.node.at.line)
    }
}

/// The fields of a mapping; none of anything else.
pub fn entries(node: &Node) -> &[Entry] {
    match &node.kind {
        Kind::Mapping(entries) => entries,
        _ => &[],
    }
}

/// The value of a field.
pub fn field<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    entries(node).iter().find(|entry| *entry.key == *name).map(|entry| &entry.value)
}

/// The elements of a list, or the one thing that stands for it.
pub fn items(node: &Node) -> &[Node] {
    match &node.kind {
        Kind::Sequence(nodes) => nodes,
        _ => std::slice::from_ref(node),
    }
}

/// The texts of a field with their places.
pub fn texts<'n>(node: &'n Node, name: &str) -> Vec<(&'n str, Mark)> {
    let found = field(node, name).into_iter().flat_map(items);
    found.filter_map(|item| Some((&*item.scalar()?.text, item.at))).collect()
}

/// The fields that say what a rule matches.
pub fn conditions(node: &Node) -> impl Iterator<Item = &Entry> {
    entries(node).iter().filter(|entry| !OTHER_FIELDS.contains(&&*entry.key))
}

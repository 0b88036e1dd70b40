//! Which rules could match a call, and which of those a facet of it, without trying each.
//!
//! A rule is filed under what a call must have for it to match: the tool or the upstream it names, and below that the
//! first word of its commands, or one name that every path it covers contains. Keys are folded: the index may offer a
//! rule too many, never one too few.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::commands;
use super::fields::{Target, Thing, ToolTerm};
use super::judge::Subject;
use super::model::{Rule, TOOLS_CALL};
use crate::pattern::{Location, fold};

/// Rules with their index.
#[derive(Debug, Default)]
pub(super) struct RuleSet {
    rules: Vec<Arc<Rule>>,
    by_tool: HashMap<String, Shelf>,
    by_upstream: HashMap<String, Shelf>,
    rest: Shelf,
}

/// Rules of one tool, of one upstream, or of any, by number.
#[derive(Debug, Default)]
struct Shelf {
    by_program: HashMap<String, Vec<u32>>,
    by_component: HashMap<String, Vec<u32>>,
    rest: Vec<u32>,
    /// All that have `command`.
    commands: Vec<u32>,
    /// Those by a name that each of their programs has, and those with a program that has none.
    by_name: HashMap<String, Vec<u32>>,
    nameless: Vec<u32>,
    all: Vec<u32>,
}

impl RuleSet {
    /// Builds the index.
    pub fn new(rules: Vec<Arc<Rule>>) -> Self {
        let mut set = Self { rules, ..Self::default() };
        for (rule, number) in set.rules.iter().zip(0u32..) {
            let tools = literals(&rule.fields.tool, ToolTerm::literal);
            let upstreams = literals(&rule.fields.upstream, |pattern| pattern.literal());
            let (map, keys) = match (tools, upstreams) {
                (Some(keys), _) => (&mut set.by_tool, keys),
                (None, Some(keys)) => (&mut set.by_upstream, keys),
                (None, None) => {
                    set.rest.add(rule, number);
                    continue;
                }
            };
            for key in keys {
                map.entry(key).or_default().add(rule, number);
            }
        }
        set
    }

    /// Every rule.
    pub fn all(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(AsRef::as_ref)
    }

    /// The rules that could match a call.
    pub fn concerning<'a>(&'a self, names: &Names) -> Concerning<'a> {
        if names.unknown_tool || names.upstream.is_none() {
            return Concerning { set: self, shelves: None };
        }
        let found = |map: &'a HashMap<String, Shelf>, key: Option<&String>| key.and_then(|key| map.get(key));
        let shelves = [
            found(&self.by_tool, names.tool.as_ref()),
            found(&self.by_upstream, names.upstream.as_ref()),
            Some(&self.rest),
        ];
        Concerning { set: self, shelves: Some(shelves) }
    }
}

impl Shelf {
    fn add(&mut self, rule: &Rule, number: u32) {
        // A rule with two names that fold to one.
        let add = |to: &mut Vec<u32>| {
            if to.last() != Some(&number) {
                to.push(number)
            }
        };
        add(&mut self.all);
        let programs: Vec<&str> = rule.fields.command.iter().filter_map(|pattern| pattern.program()).collect();
        if !programs.is_empty() {
            add(&mut self.commands);
            programs.iter().for_each(|program| add(self.by_program.entry((*program).to_owned()).or_default()));
            for pattern in &rule.fields.command {
                match pattern.name() {
                    Some(name) => add(self.by_name.entry(name.to_owned()).or_default()),
                    None => add(&mut self.nameless),
                }
            }
            return;
        }
        match rule.fields.path.landmarks() {
            Some(names) => names.iter().for_each(|name| add(self.by_component.entry((*name).to_owned()).or_default())),
            None => add(&mut self.rest),
        }
    }

    fn find(&self, near: &Near<'_>, found: &mut Vec<u32>) {
        let mut add = |numbers: Option<&Vec<u32>>| found.extend(numbers.into_iter().flatten());
        match near {
            Near::Every => add(Some(&self.all)),
            Near::Words(names) => {
                add(Some(&self.nameless));
                if !self.by_name.is_empty() {
                    names.iter().for_each(|name| add(self.by_name.get(name)));
                }
            }
            Near::These { components, program, unread } => {
                add(Some(&self.rest));
                if !self.by_component.is_empty() {
                    components.iter().for_each(|name| add(self.by_component.get(*name)));
                }
                match program {
                    _ if *unread => add(Some(&self.commands)),
                    Some(program) => add(self.by_program.get(program)),
                    None => {}
                }
            }
        }
    }
}

/// The part of a set that could match one call.
#[derive(Clone, Copy)]
pub(super) struct Concerning<'a> {
    set: &'a RuleSet,
    /// None: every rule could.
    shelves: Option<[Option<&'a Shelf>; 3]>,
}

impl<'a> Concerning<'a> {
    /// Those that could match what is near, each once.
    pub fn near(&self, near: &Near<'_>) -> impl Iterator<Item = &'a Rule> + use<'a> {
        let mut numbers = Vec::new();
        match &self.shelves {
            Some(shelves) => shelves.iter().flatten().for_each(|shelf| shelf.find(near, &mut numbers)),
            None => numbers.extend((0u32..).take(self.set.rules.len())),
        }
        numbers.sort_unstable();
        numbers.dedup();
        let rules = &self.set.rules;
        let rule = |number: u32| rules.get(usize::try_from(number).ok()?).map(Arc::as_ref);
        numbers.into_iter().filter_map(rule)
    }
}

/// What is looked for in the index.
pub(super) enum Near<'a> {
    /// Any rule.
    Every,
    /// Rules on a program that is among these names.
    Words(&'a HashSet<String>),
    /// Rules for a facet.
    These {
        /// The folded components of its paths.
        components: Vec<&'a str>,
        /// Its command's program.
        program: Option<String>,
        /// Whether it is a shell text that nobody understands: any command may be in it.
        unread: bool,
    },
}

impl<'a> Near<'a> {
    /// A facet.
    pub fn of(target: Target<'a>) -> Self {
        let mut components = Vec::new();
        match (target.thing, target.running) {
            (Thing::Path { lexical, physical, .. }, _) => {
                std::iter::once(lexical).chain(physical).for_each(|at| add(at, &mut components));
            }
            // An allow on a command is compared with all places that the command names, or where it runs.
            (Thing::Command, Some(running)) => {
                for place in running.named(false) {
                    if let Thing::Path { lexical, physical, .. } = place.thing {
                        std::iter::once(lexical).chain(physical).for_each(|at| add(at, &mut components));
                    }
                }
                running.command.cwd.iter().for_each(|at| add(at, &mut components));
            }
            _ => {}
        }
        let command = target.running.map(|running| running.command);
        Self::These {
            components,
            program: command.and_then(|command| command.words.first()).map(|word| commands::program(&word.text)),
            unread: command.is_some_and(|command| command.unread.is_some()),
        }
    }

    /// A place that an unmarked string may name.
    pub fn at(place: &'a Location) -> Self {
        let mut components = Vec::new();
        add(place, &mut components);
        Self::These { components, program: None, unread: false }
    }
}

fn add<'a>(at: &'a Location, components: &mut Vec<&'a str>) {
    components.extend(at.folded().components.iter().map(|name| &**name));
}

/// A subject's names as the index knows them.
#[derive(Debug)]
pub(super) struct Names {
    tool: Option<String>,
    upstream: Option<String>,
    /// A tool call whose tool was left out (examples only).
    unknown_tool: bool,
}

impl Names {
    pub fn of(subject: &Subject<'_>) -> Self {
        Self {
            tool: subject.tool.map(fold),
            upstream: subject.upstream.map(fold),
            unknown_tool: subject.tool.is_none() && subject.method == TOOLS_CALL,
        }
    }

    /// Of calls of a tool.
    pub fn of_tool(upstream: &str, tool: &str) -> Self {
        Self { tool: Some(fold(tool)), upstream: Some(fold(upstream)), unknown_tool: false }
    }
}

/// The folded literals, if there are terms and all of them are literal.
fn literals<T>(terms: &[T], literal: impl Fn(&T) -> Option<&str>) -> Option<Vec<String>> {
    if terms.is_empty() {
        return None;
    }
    terms.iter().map(|term| literal(term).map(fold)).collect()
}

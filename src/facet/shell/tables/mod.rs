//! What is known of the programs that people allow most: their options and their operands.
//!
//! Only what is known to do no more than read is listed without a mark; what is missing counts as a power.

mod aliases;
mod files;
mod git;
mod net;
mod text;
mod tools;

pub(in crate::facet) use aliases::canonical;
pub(super) use git::is_a_commit;

use std::collections::HashMap;
use std::sync::LazyLock;

use super::arguments::Arguments;
use super::options::Options;
use super::programs::is_a_switch;
use super::words::Word;
use super::{Place, not_understood};
use crate::record::Access;

/// How a program, or one of its subcommands, is described.
type Line = (&'static str, Operands, &'static str);

/// A program with subcommands: its names, the options that stand before them, and their lines.
type FamilyLines = (&'static str, &'static str, &'static [&'static [Line]]);

/// Subcommands whose first operand says what they do, and those that only look.
type Looks = &'static [(&'static str, &'static [&'static str])];

/// A program with its options.
#[derive(Debug)]
pub(super) enum Program {
    /// One without subcommands.
    Plain(Row),
    /// One with subcommands.
    Family(Family),
}

/// A program with subcommands.
#[derive(Debug)]
pub(super) struct Family {
    /// Its own options.
    pub options: Options,
    /// Whether those may follow the subcommand, too.
    pub anywhere: bool,
    /// Whether it looks for a repository of git where it runs.
    pub in_repository: bool,
    pub rows: Vec<Row>,
    /// Subcommands whose first operand says what they do, and those that are described.
    pub looks: Looks,
}

/// A program or a subcommand.
#[derive(Debug)]
pub(super) struct Row {
    pub names: Vec<&'static str>,
    pub options: Options,
    pub operands: Operands,
    /// Whether no option does harm, whatever it is.
    pub harmless: bool,
}

/// What the words are that are no options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operands {
    /// Texts that name nothing; no option does harm.
    Harmless,
    /// Texts that name nothing.
    Text,
    /// Paths.
    Paths(Option<Access>),
    /// Paths that are read; without one, the directory it runs in.
    Listed,
    /// A pattern, then paths that are read; without one, where it goes on below directories, the one it runs in.
    Pattern,
    /// As `Pattern`, and it always goes on below directories.
    PatternBelow,
    /// A path that is read, then one that is written.
    InOut,
    /// What is copied, and where to.
    Copy,
    /// What is moved, and where to.
    Move,
    /// A repository, which may be a path or a URL, then names in it.
    Remote,
    /// What a repository has.
    Git(git::Named),
}

impl Family {
    /// What a subcommand that is not described is known to change without naming it.
    pub fn changed_by(&self, subcommand: &str) -> Vec<Place> {
        if self.in_repository { git::changed_by(subcommand) } else { Vec::new() }
    }
}

/// Whether a program's first operand says what it does.
pub(in crate::facet) fn has_subcommands(name: &str) -> bool {
    matches!(program(name), Some(Program::Family(_)))
}

/// The program of that name, if it is known.
pub(super) fn program(name: &str) -> Option<&'static Program> {
    static PROGRAMS: LazyLock<HashMap<&'static str, Program>> = LazyLock::new(|| {
        let mut programs = HashMap::new();
        let plain = [text::PROGRAMS, files::PROGRAMS, net::PROGRAMS].into_iter().flatten();
        for (names, operands, options) in plain {
            for name in names.split_whitespace() {
                programs.insert(name, Program::Plain(row(name, *operands, options)));
            }
        }
        let families = [git::FAMILY, tools::KUBECTL, tools::DOCKER, tools::NPM, tools::CARGO, tools::PIP];
        for (names, options, lines) in families {
            // Those that take their own options before a subcommand only.
            let anywhere = !matches!(names, "git" | "docker");
            let looks = match names {
                "git" => git::LOOKS,
                _ => tools::LOOKS.iter().find(|(name, _)| *name == names).map_or(&[][..], |(_, looks)| looks),
            };
            for name in names.split_whitespace() {
                let rows = lines
                    .iter()
                    .copied()
                    .flatten()
                    .map(|(names, operands, options)| row(names, *operands, options))
                    .collect();
                let family =
                    Family { options: Options::parse(options), anywhere, in_repository: names == "git", rows, looks };
                programs.insert(name, Program::Family(family));
            }
        }
        programs
    });
    PROGRAMS.get(name)
}

fn row(names: &'static str, operands: Operands, options: &'static str) -> Row {
    Row {
        names: names.split_whitespace().collect(),
        options: Options::parse(options),
        operands,
        harmless: operands == Operands::Harmless,
    }
}

impl Operands {
    /// Adds the paths that the operands name.
    pub fn places(self, found: &mut Arguments) {
        if let Self::Git(named) = self {
            return named.places(found);
        }
        let operands = std::mem::take(&mut found.operands);
        let last = operands.len().saturating_sub(1);
        let below = self == Self::PatternBelow;
        let skipped = usize::from((below || self == Self::Pattern) && !found.pattern);
        let recursive = found.recursive || below;
        for (at, word) in operands.iter().enumerate().skip(skipped) {
            let (access, recursive) = match self {
                Self::Git(_) => continue,
                Self::Harmless | Self::Text => {
                    // Names are all that it is given.
                    if word.pattern {
                        let deeper = word.text.get(word.prefix.len()..).is_some_and(|rest| rest.contains('/'));
                        found.places.push(Place { pattern: deeper, ..Place::matched(word) }.recursive(deeper));
                    }
                    continue;
                }
                Self::Remote => {
                    match word.known() {
                        Some(text) if at == 0 && text.contains([':', '/', '.']) => {
                            found.places.push(Place::read(text).recursive(true))
                        }
                        Some(_) => {}
                        None => found.floors.push(not_understood("a repository that only a running shell knows")),
                    }
                    continue;
                }
                Self::Paths(access) => (access, recursive),
                Self::Listed | Self::Pattern | Self::PatternBelow => (Some(Access::Read), recursive),
                Self::InOut => (Some(if at == 0 { Access::Read } else { Access::Write }), false),
                Self::Copy | Self::Move if at == last && last > 0 && !found.pattern => (Some(Access::Write), false),
                Self::Copy => (Some(Access::Read), recursive),
                Self::Move => (Some(Access::Delete), true),
            };
            match word.known() {
                Some("-") => {}
                // Behind `--`: an option of another program.
                Some(text) if access.is_none() && text.starts_with('-') => {
                    let value = text.split_once('=').map(|(_, value)| value).filter(|value| !is_a_switch(value));
                    found.places.extend(value.map(|value| Place::new(value, None)));
                    found
                        .places
                        .extend(text.get(2..).filter(|rest| rest.contains('/')).map(|rest| Place::new(rest, None)));
                    found.hints.push(text.to_owned());
                }
                Some(text) => {
                    let word = access.is_none().then_some(at);
                    found.places.push(Place { word, ..Place::new(text, access).recursive(recursive) });
                }
                None if word.pattern && access == Some(Access::Read) => {
                    found.places.push(Place::matched(word));
                }
                None => {
                    found.floors.push(not_understood("a path that only a running shell knows"));
                    found.hints.push(word.text.clone());
                    // What a pattern can match lies in this folder.
                    if let Some((folder, _)) = word.prefix.rsplit_once('/') {
                        found.places.push(Place::new(format!("{folder}/"), access).recursive(recursive));
                    }
                }
            }
        }
        let whole = match self {
            Self::Listed | Self::PatternBelow => true,
            Self::Pattern => found.recursive,
            _ => false,
        };
        if whole && operands.len() <= skipped {
            found.places.push(Place::read(".").recursive(recursive));
        }
        if matches!(self, Self::Copy | Self::Move) {
            into_a_folder(&operands, self == Self::Move, found);
        }
        found.operands = operands;
    }
}

/// What is copied or moved into a folder lies there under its own name.
fn into_a_folder(operands: &[Word], moves: bool, found: &mut Arguments) {
    let has = |names: &[&str]| found.options.iter().any(|option| names.contains(&option.as_str()));
    let recursive = moves || found.recursive;
    let links = recursive || has(&["-d", "-P", "-s", "-l"]);
    let (whole, never) = (has(&["--parents"]), has(&["-T"]));
    for place in found.places.iter_mut().filter(|place| place.access == Some(Access::Write)) {
        place.links = links;
    }
    let (sources, folder) = match (found.values("-t").last(), operands.split_last()) {
        (Some(folder), _) => (operands, folder),
        (None, Some((folder, sources))) => (sources, Some(folder)),
        (None, None) => return,
    };
    let Some(folder) = folder.and_then(Word::known).filter(|_| !never).map(str::to_owned) else { return };
    for source in sources {
        // Any name may stand for what a pattern stands for.
        let name = source.known().unwrap_or(".");
        let place = Place::within(&folder, name, Access::Write);
        let text = if whole { name.trim_start_matches('/').to_owned() } else { place.text.clone() };
        let recursive = recursive || source.known().is_none();
        found.places.push(Place { text, links, ..place }.recursive(recursive));
    }
}

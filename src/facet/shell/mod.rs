//! Shell texts taken apart: every simple command with what it names, and what is not understood.
//!
//! [`script`] and [`argv`] know no file system and no policy. They fail closed: what two parsers do not agree on, what
//! only a running shell could tell, and what is read as code is a floor, which asks whatever allows the rest.

mod arguments;
mod budget;
mod check;
mod find;
mod flow;
mod options;
mod programs;
mod simple;
mod special;
mod tables;
mod tree;
mod words;
mod worker;
mod wrappers;

use serde::{Deserialize, Serialize};

use self::words::Word;
use super::recorded::Word as Recorded;
use super::{Floor, FloorWhy};
use crate::record::Access;

pub(super) use simple::is_harmless_variable;
pub(super) use tables::{canonical, has_subcommands as is_family};
pub(super) use worker::{argv, script};

/// A shell text, taken apart.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// Every simple command, those inside others included.
    pub commands: Vec<Command>,
    /// Whether some run at the same time, or again after those that follow them.
    pub unordered: bool,
}

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// The program, its subcommand and its operands; options and their values are left out where they are known.
    pub words: Vec<Argument>,
    /// Everything that follows the program.
    pub rest: Vec<Argument>,
    /// Options that are present, by every name they have.
    pub options: Vec<String>,
    /// Options that run programs or write files, each by every name it has.
    pub powers: Vec<Vec<String>>,
    /// Whether the program's options are known.
    pub tabled: bool,
    /// Paths that it names or redirects to.
    pub places: Vec<Place>,
    /// Texts that might lead to a path, with parts that only a running shell knows.
    pub hints: Vec<String>,
    /// The directories it may run in, from where the call starts; none is one that is not known.
    pub bases: Vec<Option<String>>,
    /// The text that is not understood, where this stands for one.
    pub unread: Option<String>,
    /// Asks that no allow lifts.
    pub floors: Vec<Floor>,
}

/// A word of a command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "Recorded", into = "Recorded")]
pub struct Argument {
    /// What the program is given; as it was written, where only a running shell could tell.
    pub text: String,
    /// Whether that is what the program is given.
    pub known: bool,
}

/// A path that a command names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// As the program is given it.
    pub text: String,
    /// How it is used, if that is known.
    pub access: Option<Access>,
    /// Whether the program goes on below it.
    pub recursive: bool,
    /// Whether it stands for all files in it that a pattern matches.
    pub pattern: bool,
    /// Whether the last component counts as it is, too.
    pub keep_last: bool,
    /// The directory that relative paths start at, where an option names one.
    pub below: Option<String>,
    /// Whether it starts at the top of the repository that this directory lies in (`HEAD:path` of `git`).
    pub top: bool,
    /// Which word of the command it is, where nobody knows whether that is a path at all.
    pub word: Option<usize>,
    /// Whether it counts only where the folder that it lies below is one: what is copied into a folder keeps its name.
    pub into: bool,
    /// Whether what is written there may be a link, or hold some.
    pub links: bool,
    /// When the command touches it at all.
    pub when: When,
}

/// When a command touches a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum When {
    Always,
    /// If there is such a file: the word means something else where there is none.
    There,
    /// If a file of that name was seen.
    Seen,
    /// Unless there are files of all the first names, and of any at all: it goes on to those alone.
    Unless {
        all_of: Vec<String>,
        one_of: Vec<String>,
    },
    /// Never: git looks for its repository there.
    Repository,
}

impl Place {
    fn new(text: impl Into<String>, access: impl Into<Option<Access>>) -> Self {
        let access = access.into();
        let keep_last = access == Some(Access::Delete);
        Self {
            text: text.into(),
            access,
            recursive: false,
            pattern: false,
            keep_last,
            below: None,
            top: false,
            word: None,
            when: When::Always,
            into: false,
            links: false,
        }
    }

    fn read(text: impl Into<String>) -> Self {
        Self::new(text, Access::Read)
    }

    /// The files that a word stands for are read.
    fn matched(word: &Word) -> Self {
        let folder = word.prefix.rsplit_once('/').map_or(".", |(folder, _)| folder);
        let folder = if folder.is_empty() { "/" } else { folder };
        Self { recursive: true, pattern: true, ..Self::read(folder) }
    }

    fn recursive(self, recursive: bool) -> Self {
        Self { recursive, ..self }
    }

    /// What a name becomes in a folder that it is copied into.
    fn within(folder: &str, name: &str, access: impl Into<Option<Access>>) -> Self {
        let name = base_name(name.trim_end_matches('/'));
        // All that lies in `x/.` and `..` is copied.
        let name = if matches!(name, "" | "..") { "." } else { name };
        Self { below: Some(folder.to_owned()), into: true, ..Self::new(name, access) }
    }

    /// Whether there may be links there after it was used so.
    pub fn may_hold_links(&self) -> bool {
        match self.access {
            None => true,
            Some(Access::Write) => self.recursive || self.links,
            Some(Access::Read | Access::Delete) => false,
        }
    }
}

impl Command {
    /// A text that is not understood, and why.
    fn not_understood(text: &str, why: &str) -> Self {
        Self {
            words: vec![Argument { text: text.to_owned(), known: false }],
            unread: Some(text.to_owned()),
            bases: vec![None],
            floors: vec![not_understood(why)],
            ..Self::default()
        }
    }
}

/// A text that is not for these shells.
pub(super) fn not_read(text: &str, why: &str) -> Script {
    Script { commands: vec![Command::not_understood(text, why)], unordered: false }
}

/// A floor for what is not fully understood.
fn not_understood(why: impl Into<String>) -> Floor {
    Floor::because(FloorWhy::Shell, why)
}

/// The file name of a program.
fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

#[cfg(test)]
mod tests;

//! Which arguments of a tool are what: built-in entries by name, the operator's own, and guesses that only tighten.

mod builtin;
mod guess;
mod pointer;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::record::Access;

pub use guess::argument as guessed_argument;
pub use pointer::{Pointer, Selected};

/// The entries that an upstream uses.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Catalogue {
    /// By tool name.
    pub tools: BTreeMap<String, Tool>,
}

impl Catalogue {
    /// A built-in entry (`filesystem`, `git`, `workspace`, …), if there is one of that name.
    pub fn builtin(name: &str) -> Option<&'static Self> {
        builtin::catalogues().iter().find(|(known, _)| *known == name).map(|(_, catalogue)| catalogue)
    }

    /// The names of the built-in entries.
    pub fn builtin_names() -> Vec<&'static str> {
        builtin::catalogues().iter().map(|(name, _)| *name).collect()
    }

    /// The entry for a tool, or one guessed from its schema (`heuristic`), which adds facets and floors only.
    pub fn tool(&self, name: &str, input_schema: Option<&serde_json::Value>) -> Tool {
        let mut tool = self.tools.get(name).cloned().unwrap_or_else(|| guess::tool(input_schema));
        if !tool.heuristic {
            for (pointer, argument) in &mut tool.arguments {
                let list = *argument == Argument::Command && guess::declares_a_list(input_schema, pointer);
                if list {
                    *argument = Argument::Words;
                }
            }
        }
        if let Some(unwrap) = &mut tool.unwrap {
            unwrap.within = Some(Arc::new(self.clone()));
        }
        tool
    }
}

/// What a tool's arguments are.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tool {
    /// filesystem, shell, subagent, introspection, config, network, other.
    pub category: Option<String>,
    /// What each argument is, by JSON pointer.
    pub arguments: Vec<(Pointer, Argument)>,
    /// A command line put together from literals and pointers (starting with `/`).
    pub argv: Option<Vec<String>>,
    /// The boolean that makes the tool go on below its paths, where it has one: without it, or where it is `false`, no
    /// path of the call is recursive. Only for tools that are known to obey it.
    pub recursive_if: Option<Pointer>,
    /// The argument that names a folder in which git looks for its repository, where there is one.
    pub repository: Option<Pointer>,
    /// How it says what it writes into a file, where that is known.
    pub writes: Option<Writes>,
    /// For a bridge tool: where it names the tool that it calls, and that tool's arguments.
    pub unwrap: Option<Unwrap>,
    /// Which SQL its texts are; none where that is not known.
    pub dialect: Option<Dialect>,
    /// Whether this was guessed, not written.
    pub heuristic: bool,
}

impl Tool {
    /// Whether what its arguments touch is found by parsing a language, which may take much longer than looking paths
    /// up: not on a thread that serves others.
    pub fn is_parsed(&self) -> bool {
        self.argv.is_some()
            || self
                .arguments
                .iter()
                .any(|(_, argument)| matches!(argument, Argument::Command | Argument::Words | Argument::Sql))
    }

    /// Whether it runs commands.
    pub fn runs_commands(&self) -> bool {
        self.argv.is_some()
            || self.unwrap.is_some()
            || self.arguments.iter().any(|(_, argument)| matches!(argument, Argument::Command | Argument::Words))
    }
}

/// How a tool says what it writes into a file: enough to show people what would change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Writes {
    /// The path argument.
    pub path: Pointer,
    /// What becomes of the file.
    pub how: Writing,
}

/// What a tool makes of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Writing {
    /// The text of this argument is all of it; where the second argument has that value, it is added at the end.
    Whole(Pointer, Option<(Pointer, &'static str)>),
    /// Texts are replaced: in each element of the list (the arguments themselves where there is none), the member of the
    /// first name by that of the second.
    Replaced(Option<Pointer>, &'static str, &'static str),
}

/// How a bridge tool (`call_tool`) says what it calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unwrap {
    /// The name of a tool of the same upstream.
    pub name: Pointer,
    /// An object, or a text of JSON.
    pub arguments: Pointer,
    /// Where that tool is looked up.
    pub within: Option<Arc<Catalogue>>,
}

/// How a text holds a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// One JSON text.
    Json,
    /// One YAML document.
    Yaml,
}

impl Format {
    /// The formats by their names in `portcullis.yaml`.
    pub const ALL: [(&str, Self); 2] = [("json", Self::Json), ("yaml", Self::Yaml)];

    /// Its name for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Yaml => "YAML",
        }
    }
}

/// The SQL of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    /// The dialects by their names in `portcullis.yaml`.
    pub const ALL: [(&str, Self); 3] = [("postgres", Self::Postgres), ("mysql", Self::MySql), ("sqlite", Self::Sqlite)];
}

/// What one argument is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// A path.
    Path {
        /// How it is used; none where that is not known.
        access: Option<Access>,
        /// Whether the tool goes on below it (a delete takes along what is there in any case).
        recursive: bool,
        /// What the tool takes where the argument is left out; none: the root, for a recursive tool; empty: nothing.
        missing: Option<String>,
        /// The argument that relative paths start at.
        base: Option<Pointer>,
        /// Judge with the last component kept and followed (move, link; a delete always is).
        keep_last: bool,
    },
    /// A glob below the tool's path argument.
    Glob,
    /// A shell text.
    Command,
    /// A command line as an array of words, which no shell reads; or a shell text.
    Words,
    /// A text that runs, but in no shell that starts here: a program in another language, or in another place.
    Code,
    /// The working directory of the tool's command or of its relative paths.
    Cwd,
    /// Environment variables of the command.
    Env,
    /// Text given to the command.
    Stdin,
    /// A URL.
    Url,
    /// E-mail addresses: one, a list in a text, or a list of texts.
    Address,
    /// A text of one or several SQL statements.
    Sql,
    /// A text that holds a value: pointers, of the catalogue and of rules, go through it.
    Decode(Format),
    /// Text that names nothing.
    Text,
    /// Never shown.
    Secret,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn commands_and_command_lines_are_parsed_and_paths_are_not() {
        let parsed = |catalogue: &str, tool: &str| Catalogue::builtin(catalogue).unwrap().tools[tool].is_parsed();
        assert!(parsed("workspace", "execute_cmd"));
        assert!(!parsed("workspace", "read_file"));
        let argv = Tool { argv: Some(vec!["kubectl".to_owned()]), ..Tool::default() };
        assert!(argv.is_parsed() && !Tool::default().is_parsed());
    }
}

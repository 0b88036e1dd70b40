//! Which arguments of a tool are what: built-in entries by name, the operator's own, and guesses that only tighten.

use std::collections::BTreeMap;

use crate::record::Access;

/// The entries that an upstream uses.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// By tool name.
    pub tools: BTreeMap<String, Tool>,
}

impl Catalogue {
    /// A built-in entry (`filesystem`, `git`, `workspace`, …), if there is one of that name.
    pub fn builtin(name: &str) -> Option<&'static Self> {
        let _ = name;
        unimplemented!()
    }

    /// The names of the built-in entries.
    pub fn builtin_names() -> Vec<&'static str> {
        unimplemented!()
    }

    /// The entry for a tool, or one guessed from its schema (`heuristic`), which adds facets and floors only.
    pub fn tool(&self, name: &str, input_schema: Option<&serde_json::Value>) -> Tool {
        let _ = (name, input_schema);
        unimplemented!()
    }
}

/// What a tool's arguments are.
#[derive(Clone, Debug, Default)]
pub struct Tool {
    /// filesystem, shell, subagent, introspection, config, network, other.
    pub category: Option<String>,
    /// What each argument is, by JSON pointer.
    pub arguments: Vec<(Pointer, Argument)>,
    /// A command line put together from literals and pointers (starting with `/`).
    pub argv: Option<Vec<String>>,
    /// Whether this was guessed, not written.
    pub heuristic: bool,
}

/// A JSON pointer (RFC 6901) in which `*` stands for every element.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pointer(pub Vec<Box<str>>);

/// What one argument is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// A path.
    Path {
        /// How it is used; none where that is not known.
        access: Option<Access>,
        /// Whether the tool goes on below it.
        recursive: bool,
        /// What the tool takes where the argument is left out; none: the root, for a recursive tool.
        missing: Option<String>,
        /// The argument that relative paths start at.
        base: Option<Pointer>,
        /// Judge with the last component kept and followed (delete, move, link).
        keep_last: bool,
    },
    /// A glob below the tool's path argument.
    Glob,
    /// A shell text, or an array of words where the tool's schema declares one.
    Command,
    /// The working directory of the tool's command or of its relative paths.
    Cwd,
    /// Environment variables of the command.
    Env,
    /// Text given to the command.
    Stdin,
    /// A URL.
    Url,
    /// Text that names nothing.
    Text,
    /// Never shown.
    Secret,
}

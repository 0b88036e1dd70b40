//! The built-in entries: one table a server, in the words of `portcullis.yaml`.
//!
//! What a table leaves unmarked is still tried against guarded paths, and may not start with `-`; `TEXT` says that an
//! argument names nothing.

mod desktop_commander;
mod files;
mod hosted;
mod kubernetes;
mod playwright;
mod shell;

use std::sync::LazyLock;

use super::{Argument, Catalogue, Dialect, Pointer, Tool, Writes, Writing};
use crate::record::Access;

/// Every built-in entry with its name.
pub(super) fn catalogues() -> &'static [(&'static str, Catalogue)] {
    static CATALOGUES: LazyLock<Vec<(&'static str, Catalogue)>> =
        LazyLock::new(|| SERVERS.iter().map(|server| (server.name, server.catalogue())).collect());
    &CATALOGUES
}

const SERVERS: &[Server] = &[
    files::FILESYSTEM,
    files::GIT,
    files::WORKSPACE,
    shell::SHELL,
    desktop_commander::DESKTOP_COMMANDER,
    kubernetes::KUBERNETES,
    playwright::PLAYWRIGHT,
    hosted::FETCH,
    hosted::GITHUB,
    hosted::SQLITE,
    hosted::MEMORY,
    hosted::CONTEXT7,
    hosted::TIME,
    hosted::SEQUENTIAL_THINKING,
    hosted::EVERYTHING,
];

/// One server's table.
struct Server {
    name: &'static str,
    /// The category of its tools, unless a line says another.
    category: &'static str,
    tools: &'static [Line],
}

/// One tool.
struct Line {
    tool: &'static str,
    category: Option<&'static str>,
    arguments: &'static [(&'static str, Mark)],
    argv: &'static [&'static str],
    recursive_if: Option<&'static str>,
    repository: Option<&'static str>,
    writes: Option<Write>,
    dialect: Option<Dialect>,
}

/// How a tool says what it writes, as [`Writing`].
#[derive(Clone, Copy)]
enum Write {
    Whole { path: &'static str, text: &'static str, append: Option<(&'static str, &'static str)> },
    Replaced { path: &'static str, each: Option<&'static str>, old: &'static str, new: &'static str },
}

const fn tool(tool: &'static str, arguments: &'static [(&'static str, Mark)]) -> Line {
    Line {
        tool,
        category: None,
        arguments,
        argv: &[],
        recursive_if: None,
        repository: None,
        writes: None,
        dialect: None,
    }
}

impl Line {
    const fn category(self, category: &'static str) -> Self {
        Self { category: Some(category), ..self }
    }

    const fn argv(self, argv: &'static [&'static str]) -> Self {
        Self { argv, ..self }
    }

    const fn dialect(self, dialect: Dialect) -> Self {
        Self { dialect: Some(dialect), ..self }
    }

    const fn repository(self, pointer: &'static str) -> Self {
        Self { repository: Some(pointer), ..self }
    }

    /// It writes `text` into the file `path`.
    const fn whole(self, path: &'static str, text: &'static str) -> Self {
        Self { writes: Some(Write::Whole { path, text, append: None }), ..self }
    }

    /// It writes `text` into the file `path`, or adds it to that where `switch` is `value`.
    const fn whole_unless(
        self,
        path: &'static str,
        text: &'static str,
        switch: &'static str,
        value: &'static str,
    ) -> Self {
        Self { writes: Some(Write::Whole { path, text, append: Some((switch, value)) }), ..self }
    }

    /// It replaces `old` by `new` in the file `path`, once for each element of `each` where that is given.
    const fn replaced(
        self,
        path: &'static str,
        each: Option<&'static str>,
        old: &'static str,
        new: &'static str,
    ) -> Self {
        Self { writes: Some(Write::Replaced { path, each, old, new }), ..self }
    }

    const fn recursive_if(self, pointer: &'static str) -> Self {
        Self { recursive_if: Some(pointer), ..self }
    }
}

/// What an argument is.
#[derive(Clone, Copy)]
enum Mark {
    Path { access: Option<Access>, recursive: bool, missing: Option<&'static str>, keep_last: bool },
    Glob,
    Command,
    Words,
    Code,
    Cwd,
    Stdin,
    Url,
    Sql,
    Text,
}

const READ: Mark = path(Some(Access::Read));
const WRITE: Mark = path(Some(Access::Write));
/// Judged with all that is below, and with the last component kept and followed, as every delete.
const DELETE: Mark = path(Some(Access::Delete));
/// Of a tool that does more than read or write it (applies it, uploads it, runs it): no allow for a class covers that,
/// only one that names the tool.
const USED: Mark = path(None);
const GLOB: Mark = Mark::Glob;
const COMMAND: Mark = Mark::Command;
const WORDS: Mark = Mark::Words;
const CODE: Mark = Mark::Code;
const CWD: Mark = Mark::Cwd;
const STDIN: Mark = Mark::Stdin;
const URL: Mark = Mark::Url;
const SQL: Mark = Mark::Sql;
const TEXT: Mark = Mark::Text;

const fn path(access: Option<Access>) -> Mark {
    Mark::Path { access, recursive: false, missing: None, keep_last: false }
}

impl Mark {
    /// The tool goes on below it.
    const fn recursive(self) -> Self {
        match self {
            Self::Path { access, missing, keep_last, .. } => Self::Path { access, recursive: true, missing, keep_last },
            other => other,
        }
    }

    /// What the tool takes where it is left out.
    const fn missing(self, path: &'static str) -> Self {
        match self {
            Self::Path { access, recursive, keep_last, .. } => {
                Self::Path { access, recursive, missing: Some(path), keep_last }
            }
            other => other,
        }
    }

    /// A link in the last place is meant itself, or followed: tools differ.
    const fn keep_last(self) -> Self {
        match self {
            Self::Path { access, recursive, missing, .. } => Self::Path { access, recursive, missing, keep_last: true },
            other => other,
        }
    }

    fn argument(self) -> Argument {
        match self {
            Self::Path { access, recursive, missing, keep_last } => {
                Argument::Path { access, recursive, missing: missing.map(str::to_owned), base: None, keep_last }
            }
            Self::Glob => Argument::Glob,
            Self::Command => Argument::Command,
            Self::Words => Argument::Words,
            Self::Code => Argument::Code,
            Self::Cwd => Argument::Cwd,
            Self::Stdin => Argument::Stdin,
            Self::Url => Argument::Url,
            Self::Sql => Argument::Sql,
            Self::Text => Argument::Text,
        }
    }
}

impl Server {
    fn catalogue(&self) -> Catalogue {
        Catalogue { tools: self.tools.iter().map(|line| (line.tool.to_owned(), line.entry(self.category))).collect() }
    }
}

impl Line {
    fn entry(&self, category: &str) -> Tool {
        Tool {
            category: Some(self.category.unwrap_or(category).to_owned()),
            arguments: self.arguments.iter().map(|(at, mark)| (pointer(at), mark.argument())).collect(),
            argv: (!self.argv.is_empty()).then(|| self.argv.iter().map(|&word| word.to_owned()).collect()),
            recursive_if: self.recursive_if.map(pointer),
            repository: self.repository.map(pointer),
            writes: self.writes.map(Write::entry),
            unwrap: None,
            dialect: self.dialect,
            heuristic: false,
        }
    }
}

impl Write {
    fn entry(self) -> Writes {
        let (path, how) = match self {
            Self::Whole { path, text, append } => {
                (path, Writing::Whole(pointer(text), append.map(|(switch, value)| (pointer(switch), value))))
            }
            Self::Replaced { path, each, old, new } => (path, Writing::Replaced(each.map(pointer), old, new)),
        };
        Writes { path: pointer(path), how }
    }
}

/// A pointer of a table, none of which needs an escape (a test reads them all against the servers' schemas).
fn pointer(text: &str) -> Pointer {
    Pointer(text.split('/').skip(1).map(Box::from).collect())
}

#[cfg(test)]
mod tests;

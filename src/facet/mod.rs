//! What a call touches, as candidates. Knows no policy.
//!
//! [`extract`] turns a call's arguments, read through the catalogue's entry for its tool, into [`Touched`]: facets to be
//! judged one by one, and stray strings that only guarded paths look at.

mod extract;
pub mod path;
mod recorded;
mod shell;
mod sql;
mod url;
mod worker;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

pub use shell::Argument;
pub use sql::{SqlFacet, StatementKind};

pub use extract::{extract, extract_resource, extract_shell};

use crate::message::Value;
use crate::pattern::{Location, fold};
use crate::record::{Access, command_line};

/// Everything a call touches. As the audit log keeps it, it has all that a judgement looks at, and no more.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Touched {
    /// At least one; [`FacetKind::Bare`] or [`FacetKind::Method`] where there is nothing else.
    pub facets: Vec<Facet>,
    /// Unmarked strings that may name a path; never a facet that needs an allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub strays: Vec<Stray>,
    /// The call that a bridge tool makes, judged beside its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Box<Inner>>,
    /// The arguments with texts decoded as the catalogue says, if it does. Only that there are some is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "recorded::arguments")]
    pub decoded: Option<Arc<Value>>,
}

/// The call within the call of a bridge tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Inner {
    /// The tool's name, at the same upstream.
    pub tool: String,
    /// The catalogue's category of that tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// Its arguments. Only that there are some is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "recorded::arguments")]
    pub arguments: Option<Arc<Value>>,
    /// What it touches.
    pub touched: Touched,
}

/// One thing a call would touch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Facet {
    /// What it is.
    pub kind: FacetKind,
    /// Asks that no allow lifts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub floors: Vec<Floor>,
}

/// What a facet is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FacetKind {
    /// A path and how it is used.
    Path(PathFacet),
    /// A simple command of a shell text, or a command line.
    Command(#[serde(with = "recorded::shared")] Arc<CommandFacet>),
    /// A URL.
    Url(UrlFacet),
    /// An e-mail address.
    Address(AddressFacet),
    /// An SQL text.
    Sql(SqlFacet),
    /// A method other than a tool call.
    Method(String),
    /// Nothing else is known.
    Bare,
}

/// A simple command, as far as it is understood.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandFacet {
    /// The program, its subcommand and its operands, without the options that are known and their values.
    pub words: Vec<Argument>,
    /// Everything that follows the program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rest: Vec<Argument>,
    /// Options that are present, by every name they have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// Options that run programs or write files, each by every name it has: an allow must name one of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub powers: Vec<Vec<String>>,
    /// Whether the program's options are known.
    pub tabled: bool,
    /// The whole text, where this stands for one that is not understood.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Where it runs; none where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Location>,
    /// What [`Self::seen`] has found: each of its paths asks for it, under every rule.
    #[serde(skip)]
    pub(crate) found: OnceLock<Seen>,
    /// What [`Self::brief`] is: the record of each of its paths has it.
    #[serde(skip)]
    pub(crate) short: OnceLock<String>,
}

/// What all that follows a program holds.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The names in it, folded: `x` and `y` of `--a=x:y`.
    pub names: HashSet<String>,
    /// Whether a word of it is known only to a running shell.
    pub dynamic: bool,
}

impl CommandFacet {
    /// The command line as a person reads it.
    pub fn shown(&self) -> String {
        self.line(usize::MAX)
    }

    /// As [`Self::shown`], words of more than 200 bytes and what follows the first 200 bytes left out: for what there is
    /// much of. A word is never cut, for half a secret is not recognised as one.
    pub fn brief(&self) -> String {
        self.short.get_or_init(|| self.line(200)).clone()
    }

    fn line(&self, most: usize) -> String {
        if let Some(text) = &self.unread {
            return if text.len() > most { "…".to_owned() } else { text.clone() };
        }
        let all = || self.words.iter().take(1).chain(&self.rest);
        let mut room = most;
        let fits = |word: &&Argument| {
            room = room.saturating_sub(word.text.len());
            room > 0
        };
        let kept: Vec<&Argument> = all().take_while(fits).collect();
        let cut = (kept.len() < all().count()).then_some(("…", false));
        command_line(kept.into_iter().map(|word| (word.text.as_str(), word.known)).chain(cut))
    }

    /// What all that follows the program holds; looked for once.
    pub fn seen(&self) -> &Seen {
        self.found.get_or_init(|| {
            let mut seen = Seen::default();
            for word in &self.rest {
                seen.dynamic |= !word.known;
                for name in names(&word.text) {
                    seen.names.extend(name.strip_suffix(".exe").map(str::to_owned));
                    seen.names.insert(name);
                }
            }
            seen
        })
    }
}

/// The words that follow a program, the name of its subcommand replaced by the one that stands for all it has; none
/// where that is the one they have, or nobody knows.
pub fn canonical(program: &str, words: &[Argument]) -> Option<Vec<Argument>> {
    let plain: Vec<&str> = words.iter().take(2).take_while(|word| word.known).map(|word| &*word.text).collect();
    let (name, taken) = shell::canonical(program, &plain)?;
    let name = name.into_iter().map(|text| Argument { text: text.to_owned(), known: true });
    Some(name.chain(words.iter().skip(taken).cloned()).collect())
}

/// The names in a text, folded; quotes and backslashes part nothing.
pub fn names(text: &str) -> Vec<String> {
    let quotes = |c: char| matches!(c, '\'' | '"' | '\\');
    let plain: Cow<'_, str> = match text.contains(quotes) {
        true => text.replace("\\\n", "").chars().filter(|c| !quotes(*c)).collect(),
        false => Cow::Borrowed(text),
    };
    let parts = |c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '+'));
    fold(&plain).split(parts).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A URL that a call names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UrlFacet {
    /// As it was sent.
    #[serde(skip)]
    pub url: String,
    /// The host as a browser reads it: lower-case ASCII, IPv6 in brackets. None where the URL has none, or, with the
    /// floor [`FloorWhy::OddUrl`], where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The command that names it: the last one before it.
    #[serde(default, rename = "of_command", skip_serializing_if = "Option::is_none", with = "recorded::command")]
    pub command: Option<Arc<CommandFacet>>,
    /// Whether nobody says that the argument is a URL: no `host` of an allow covers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmarked: bool,
}

/// An e-mail address that a call names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddressFacet {
    /// As it was sent, without a display name.
    #[serde(skip)]
    pub address: String,
    /// Its domain, in the form of [`UrlFacet::host`]; none, with a floor, where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether nobody says that the argument is an address: no `host` of an allow covers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmarked: bool,
}

/// A path that a call names.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PathFacet {
    /// How it is used; none where the catalogue does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<Access>,
    /// JSON pointer into the arguments (empty where the argument was left out and a default stands in; `/uri` of the
    /// params for resources).
    #[serde(skip)]
    pub pointer: String,
    /// The text as it was sent.
    #[serde(skip)]
    pub sent: String,
    /// With `.` and `..` folded.
    pub lexical: Location,
    /// Where it really leads; more than one for a delete, move or link (the last component kept, and followed); empty
    /// where the gateway does not share the file system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub physical: Vec<Location>,
    /// The canonical path to forward where `forward_paths: canonical`: links resolved, the last component kept for a
    /// delete, move or link. None where the argument must go on as it was sent (a glob, a URL, a guess), where another
    /// facet of the same argument has it, or where the upstream has no name for that path.
    #[serde(skip)]
    pub canonical: Option<String>,
    /// Whether the tool goes on below it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recursive: bool,
    /// The command that names it: the last one before it.
    #[serde(default, rename = "of_command", skip_serializing_if = "Option::is_none", with = "recorded::command")]
    pub command: Option<Arc<CommandFacet>>,
    /// What it is to that command, where it is no plain operand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// What was found below it, in a call out of the audit log that was walked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below: Option<Box<Below>>,
}

/// What a path is to the command that names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// One of its words, by number, where nobody knows whether that is a path at all: a rule on the command may name it.
    Word(usize),
    /// The directory that the call lets it run in.
    Base,
}

/// What a walk below a path found: what another policy would have found there.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Below {
    /// What was looked for: the numbers of what rules guard.
    pub sought: Vec<u64>,
    /// Places that one of those guards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub met: Vec<Location>,
    /// Whether a link leaves the root.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub link_out: bool,
    /// Whether there is another mount.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mount: bool,
    /// Whether the budget ran out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub exhausted: bool,
    /// Whether the walk ended where it met something: more may lie below.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// An ask that no allow lifts. Recorded by its word.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(from = "FloorWhy", into = "FloorWhy")]
pub struct Floor {
    /// The stable word.
    pub why: FloorWhy,
    /// The sentence for people, if the word does not say it all.
    pub detail: Option<String>,
}

impl Floor {
    /// A floor whose word says it all.
    pub const fn new(why: FloorWhy) -> Self {
        Self { why, detail: None }
    }

    /// A floor with its sentence.
    pub fn because(why: FloorWhy, detail: impl Into<String>) -> Self {
        Self { why, detail: Some(detail.into()) }
    }
}

impl From<FloorWhy> for Floor {
    fn from(why: FloorWhy) -> Self {
        Self::new(why)
    }
}

impl From<Floor> for FloorWhy {
    fn from(floor: Floor) -> Self {
        floor.why
    }
}

/// The stable words of floors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FloorWhy {
    /// A shell text that is not fully understood.
    Shell,
    /// Control, bidi or invisible characters.
    Invisible,
    /// A path operand that the upstream may expand or read in another way (`~`, `$NAME`, backslash, drive, …).
    Spelling,
    /// A link that leads nowhere, or in a circle.
    DanglingLink,
    /// The file has other hard links.
    HardLink,
    /// Another mount lies at or below the path.
    Mount,
    /// A remote file system may hide links.
    RemoteLinks,
    /// A recursive tool could reach a guarded path.
    RecursiveGuarded,
    /// A recursive tool could leave the root by a link.
    RecursiveLink,
    /// A recursive tool was too large to be walked.
    RecursiveBudget,
    /// A guess from a name in the schema, never the catalogue's word.
    Heuristic,
    /// An unmarked argument that starts with `-`.
    OptionLike,
    /// A URL that cannot be read, or that others read differently.
    OddUrl,
    /// An SQL text that is not fully understood.
    Sql,
    /// A text that the catalogue says is JSON or YAML, and that is not.
    NotDecoded,
    /// A bridge tool whose inner call cannot be told.
    Bridge,
    /// An e-mail address that cannot be read, or that others read differently.
    OddAddress,
    /// The tool is new, or its definition is not the accepted one.
    NewTool,
}

impl FloorWhy {
    /// All of them.
    pub const ALL: [Self; 18] = [
        Self::Shell,
        Self::Invisible,
        Self::Spelling,
        Self::DanglingLink,
        Self::HardLink,
        Self::Mount,
        Self::RemoteLinks,
        Self::RecursiveGuarded,
        Self::RecursiveLink,
        Self::RecursiveBudget,
        Self::Heuristic,
        Self::OptionLike,
        Self::OddUrl,
        Self::Sql,
        Self::NotDecoded,
        Self::Bridge,
        Self::OddAddress,
        Self::NewTool,
    ];

    /// The word in JSON, metrics and `decided_by`.
    pub const fn as_str(self) -> &'static str {
        self.told().0
    }

    /// What it means, in a sentence without its full stop.
    pub const fn sentence(self) -> &'static str {
        self.told().1
    }

    const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Shell => ("shell", "the shell text is not fully understood"),
            Self::Invisible => ("invisible", "it holds characters that nobody can see"),
            Self::Spelling => ("spelling", "the server may read a path in another way than it is written"),
            Self::DanglingLink => ("dangling_link", "a link leads nowhere, or in a circle"),
            Self::HardLink => ("hard_link", "the file has other names (hard links)"),
            Self::Mount => ("mount", "another file system is mounted there"),
            Self::RemoteLinks => ("remote_links", "the file system is remote: it may hide links"),
            Self::RecursiveGuarded => {
                ("recursive_guarded", "it goes through a folder that holds something a rule guards")
            }
            Self::RecursiveLink => {
                ("recursive_link", "it goes through a folder, and a link in it leads out of the root")
            }
            Self::RecursiveBudget => {
                ("recursive_budget", "it goes through a folder that is too large to be looked through")
            }
            Self::Heuristic => {
                ("heuristic", "what an argument is was guessed from its name; a catalogue entry would say it")
            }
            Self::OptionLike => ("option_like", "an argument starts with `-` and may be read as an option"),
            Self::OddUrl => ("odd_url", "a URL can be read in more than one way"),
            Self::Sql => ("sql", "the SQL text is not fully understood"),
            Self::NotDecoded => ("not_decoded", "a text that should be JSON or YAML is not"),
            Self::Bridge => ("bridge", "it calls another tool, and it cannot be told which, or with what"),
            Self::OddAddress => ("odd_address", "an e-mail address can be read in more than one way"),
            Self::NewTool => ("new_tool", "no operator has accepted this tool as it is defined now"),
        }
    }

    /// The sentence of a word.
    pub fn sentence_of(word: &str) -> Option<&'static str> {
        Self::ALL.into_iter().find(|why| why.as_str() == word).map(Self::sentence)
    }
}

/// An unmarked string, tried as a path against the root, the working directory and the folder of each path argument.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stray {
    /// JSON pointer into the arguments.
    #[serde(skip)]
    pub pointer: String,
    /// The text as it was sent.
    #[serde(skip)]
    pub sent: String,
    /// Where it might point, lexically.
    pub locations: Vec<Location>,
}

/// Arguments that no upstream may see: answered as malformed, nothing is judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// JSON pointer into the arguments.
    pub pointer: String,
    /// What is wrong, in plain English.
    pub what: String,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "argument `{}`: {}", self.pointer, self.what)
    }
}

impl std::error::Error for Malformed {}

/// Whether the first operand of that program says what it does (`git push`).
pub fn has_subcommands(program: &str) -> bool {
    shell::is_family(program)
}

#[cfg(test)]
mod tests {
    use super::FloorWhy;

    #[test]
    fn the_page_on_the_policy_language_tells_every_floor() {
        let page = include_str!("../../docs/policy.md");
        let rows = FloorWhy::ALL.map(|why| format!("| `floor:{}` | {} |", why.as_str(), why.sentence()));
        for row in rows {
            assert!(page.contains(&row), "docs/policy.md lacks this line:\n{row}");
        }
    }
}

//! A strict YAML tree that remembers where everything stands, and a reader that reports every error at once.
//!
//! [`read`] turns a file's bytes into a [`Report`] and, where the text is YAML at all, a [`Node`]. The tree is the same
//! whichever parser a person has in mind: duplicate keys, nulls, tags, anchors, aliases, merge keys, directives, a
//! second document and characters that nobody can see are errors, and YAML 1.2 core decides what is no text (`no`, `on`
//! and `off` are).
//!
//! The reading methods take the [`Report`], say what is wrong in it, and answer `None`; a node that is already reported
//! ([`Kind::Broken`]) says nothing again. So a loader reads all it can and looks at [`Report::has_errors`] at the end:
//!
//! ```
//! use portcullis::config::yaml::{self, Fields};
//!
//! let (mut report, root) = yaml::read("a.yaml", b"name: ana\nhold: 50s\ncolour: red\n");
//! let root = root.unwrap();
//! let mut fields = Fields::new(&root, "the file", &mut report).unwrap();
//! let name = fields.required("name", &mut report).and_then(|n| n.text(&mut report));
//! let hold = fields.optional("hold").and_then(|n| n.duration(&mut report));
//! fields.finish(&mut report);
//! assert_eq!((name, hold.unwrap().as_secs()), (Some("ana"), 50));
//! assert_eq!(report.into_diagnostics()[0].message, "unknown field `colour` in the file");
//! ```

mod fields;
mod parse;
mod read;
mod report;
#[cfg(test)]
mod tests;

pub use fields::Fields;
pub use parse::read;
pub use read::SPANS;
pub use report::Report;

/// A place in a file: line and column (in characters), both from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Mark {
    /// Line, from 1; 0 means the file as a whole.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

impl Mark {
    /// The file as a whole.
    pub const FILE: Self = Self { line: 0, column: 0 };
}

/// A value and its place.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// Where it begins.
    pub at: Mark,
    /// What it is.
    pub kind: Kind,
}

/// What a node is.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// A text, number or truth value.
    Scalar(Scalar),
    /// A list.
    Sequence(Vec<Node>),
    /// Fields in order, keys unique.
    Mapping(Vec<Entry>),
    /// Something that was already reported (a null, an alias, a tagged value); readers pass over it silently.
    Broken,
}

/// A scalar as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scalar {
    /// The text after unescaping.
    pub text: Box<str>,
    /// Whether it was written without quotes, and so may be a number or a truth value.
    pub plain: bool,
}

/// One field of a mapping.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The key, of whatever look.
    pub key: Box<str>,
    /// Where the key stands.
    pub at: Mark,
    /// Its value.
    pub value: Node,
}

/// What a scalar is in YAML 1.2's core schema (section 10.3.2).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Core {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer or a float; the text keeps its digits.
    Number,
    /// Anything else, and everything in quotes.
    Text,
}

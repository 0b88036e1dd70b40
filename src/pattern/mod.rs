//! Globs over names and paths, compared exactly where they loosen and widely where they tighten.

use std::fmt;

/// How a pattern compares: what loosens exactly, what tightens widely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Byte for byte.
    Exact,
    /// Case, Unicode form (NFC), edge blanks and invisible characters folded; a file's pattern also covers a folder of
    /// that name.
    Wide,
}

/// An absolute path as components, and how many of them are the upstream's root.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Location {
    /// All components from `/`.
    pub components: Vec<Box<str>>,
    /// How many leading components are the root's, where the path lies in it.
    pub root: Option<usize>,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.components.is_empty() {
            return f.write_str("/");
        }
        self.components.iter().try_for_each(|c| write!(f, "/{c}"))
    }
}

/// Why a pattern is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatternError {
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub help: Option<String>,
}

/// A `path` entry of the policy language.
#[derive(Clone, Debug)]
pub struct PathPattern {
    text: String,
}

impl PathPattern {
    /// Reads one entry: `docs/`, `docs/a.md`, `**/x/`, `./`, `/`, `/srv/data/`, globs within a component.
    ///
    /// # Errors
    /// `~`, `$`, an empty entry, a bad glob.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let _ = text;
        unimplemented!()
    }

    /// The entry as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the path is, or lies below, what the entry names.
    pub fn matches(&self, at: &Location, side: Side) -> bool {
        let _ = (at, side);
        unimplemented!()
    }

    /// Whether the entry is `/` (or `/**`), which guards everything and so nothing in particular.
    pub fn is_everything(&self) -> bool {
        unimplemented!()
    }
}

/// A name or a glob over names (`*`, `?`, `[…]`, `{a,b}`).
#[derive(Clone, Debug)]
pub struct NamePattern {
    text: String,
}

impl NamePattern {
    /// Reads a name or a glob.
    ///
    /// # Errors
    /// Empty, or a bad glob.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let _ = text;
        unimplemented!()
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is a plain name without wildcards (policies are indexed by it).
    pub fn literal(&self) -> Option<&str> {
        unimplemented!()
    }

    /// Whether the name fits.
    pub fn matches(&self, name: &str, side: Side) -> bool {
        let _ = (name, side);
        unimplemented!()
    }
}

/// Folds what [`Side::Wide`] ignores: case, Unicode form, edge blanks, invisible characters.
pub fn fold(text: &str) -> String {
    let _ = text;
    unimplemented!()
}

/// Control, format, bidi and invisible characters: what a person cannot see.
pub fn is_invisible(c: char) -> bool {
    let _ = c;
    unimplemented!()
}

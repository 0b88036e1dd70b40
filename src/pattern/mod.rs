//! Globs over names and paths, compared exactly where they loosen and widely where they tighten.

mod fold;
mod glob;
mod location;
mod name;
mod path;
#[cfg(test)]
mod tests;

pub use fold::{fold, is_invisible, visible};
pub use location::{Location, Parts};
pub use name::NamePattern;
pub use path::PathPattern;

/// How a pattern compares: what loosens exactly, what tightens widely.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Byte for byte.
    Exact,
    /// Also with case, Unicode form (NFC), edge blanks and invisible characters folded; a file's pattern also covers a
    /// folder of that name. Whatever holds exactly holds widely.
    Wide,
}

/// Why a pattern is refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PatternError {
    /// What is wrong.
    pub what: String,
    /// What to write instead.
    pub help: Option<String>,
}

impl PatternError {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), help: None }
    }

    fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

//! Calls out of the audit log: what it does not tell may be anything, which is looked at from both sides.

use std::cell::Cell;

use super::commands::{self, WordsPattern};
use super::fields::{Target, Thing, Truth};
use crate::facet::{Argument, CommandFacet};
use crate::message::json::is_inexact;
use crate::pattern::{Location, PathPattern, Side};
use crate::secret::REDACTED;

/// What is taken to be the case where the log does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lean {
    /// What makes the verdict stricter: a deny or ask holds, an allow does not.
    Strict,
    /// What makes it looser.
    Loose,
}

/// What the log does not tell of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Doubt {
    /// An argument.
    Argument,
    /// A part of a path, command, host or table.
    Text,
    /// What lies below a folder.
    Below,
}

impl Doubt {
    const ALL: [Self; 3] = [Self::Argument, Self::Text, Self::Below];

    /// For people.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Argument => "a rule looks at an argument that was redacted or left out of the log",
            Self::Text => "a rule looks at a path, command, host or table with a part that is not in the log",
            Self::Below => "a rule guards what was not looked for when the folder was walked",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The state of one judgement of a recorded call.
#[derive(Clone, Debug)]
pub struct Recorded {
    lean: Lean,
    doubts: Cell<u8>,
}

impl Recorded {
    pub(super) const fn leaning(lean: Lean) -> Self {
        Self { lean, doubts: Cell::new(0) }
    }

    /// The opposite side of the same call.
    pub(super) const fn turned(&self) -> Self {
        Self::leaning(match self.lean {
            Lean::Strict => Lean::Loose,
            Lean::Loose => Lean::Strict,
        })
    }

    pub(super) const fn is_strict(&self) -> bool {
        matches!(self.lean, Lean::Strict)
    }

    /// Whether something that makes a verdict stricter is the case, which the log does not tell.
    pub(super) fn tightens(&self, doubt: Doubt) -> bool {
        self.doubts.set(self.doubts.get() | doubt.bit());
        self.is_strict()
    }

    /// How a field holds of what the log does not tell.
    pub(super) fn holds(&self, doubt: Doubt, side: Side) -> Truth {
        match (self.tightens(doubt), side) {
            (true, _) => Truth::Unknown,
            (false, Side::Exact) => Truth::True,
            (false, Side::Wide) => Truth::False,
        }
    }

    /// Whether an entry of `path` names a place with a part that the log does not tell.
    pub(super) fn covers(&self, pattern: &PathPattern, at: &Location, side: Side) -> bool {
        let is_untold = matches!(&*at.components, [name] if **name == *REDACTED) && !pattern.is_everything();
        let known = if is_untold { None } else { pattern.matches_around(REDACTED, at, side) };
        known.unwrap_or_else(|| self.tightens(Doubt::Text) == (side == Side::Wide))
    }

    /// What the verdict may have hung on.
    pub(super) fn doubts(&self) -> impl Iterator<Item = Doubt> {
        let found = self.doubts.get();
        Doubt::ALL.into_iter().filter(move |doubt| found & doubt.bit() != 0)
    }
}

/// How a field holds: as `test` says, unless the log hides what it looks at.
pub(super) fn unless(
    recorded: Option<&Recorded>,
    side: Side,
    is_hidden: impl FnOnce() -> bool,
    test: impl FnOnce() -> Truth,
) -> Truth {
    match recorded {
        Some(recorded) if is_hidden() => recorded.holds(Doubt::Text, side),
        _ => test(),
    }
}

/// Whether a part of a text is not told.
pub(super) fn hides(text: &str) -> bool {
    text.contains(REDACTED)
}

/// Whether an argument's text stands for another value: for a secret, or for a number that the log cannot keep.
pub(super) fn hides_value(text: &str) -> bool {
    hides(text) || is_inexact(text)
}

/// Whether a part of a place is not told.
pub(super) fn hides_place(at: &Location) -> bool {
    at.components.iter().any(|name| hides(name))
}

/// Whether a part of a path is not told, in either spelling.
fn hides_path(thing: Thing<'_>) -> bool {
    match thing {
        Thing::Path { lexical, physical, .. } => hides_place(lexical) || physical.iter().any(hides_place),
        _ => false,
    }
}

/// Whether the host is not told.
pub(super) fn hides_host(thing: Thing<'_>) -> bool {
    matches!(thing, Thing::Remote { host: Some(host), .. } if hides(host))
}

/// Whether a table is not told.
pub(super) fn hides_table(thing: Thing<'_>) -> bool {
    matches!(thing, Thing::Sql(sql) if sql.tables.iter().any(|table| hides(table)))
}

/// Whether a word is not told that would be compared with those of a pattern.
pub(super) fn hides_words(command: &CommandFacet, pattern: &WordsPattern) -> bool {
    if command.unread.as_deref().is_some_and(hides) {
        return true;
    }
    let is_another =
        |word: &Argument| !hides(&word.text) && Some(commands::program(&word.text).as_str()) != pattern.program();
    if command.words.first().is_none_or(is_another) {
        return false;
    }
    let understood = command.tabled && command.powers.is_empty();
    command.words.iter().take(pattern.len()).any(|word| hides(&word.text))
        || (pattern.len() > 1 && !understood && hides_rest(command))
}

/// Whether a word behind the program is not told.
pub(super) fn hides_rest(command: &CommandFacet) -> bool {
    command.rest.iter().any(|word| hides(&word.text))
}

/// Whether an option is not told.
pub(super) fn hides_option(command: &CommandFacet) -> bool {
    command.unread.as_deref().is_some_and(hides) || command.options.iter().any(|option| hides(option))
}

/// Whether rules cannot be looked up by what a facet names.
pub(super) fn hides_names(target: Target<'_>) -> bool {
    let named = |target: &Target<'_>| hides_path(target.thing);
    named(&target)
        || target.running.is_some_and(|running| {
            running.command.words.first().is_some_and(|program| hides(&program.text))
                || running.command.cwd.as_ref().is_some_and(hides_place)
                || running.named(false).any(|place| named(&place))
        })
}

//! Globs over one name: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}`, `\` before a wildcard.
//!
//! Translated to `regex` rather than left to `globset`, which compares bytes: there `?` is a third of `€`, and case is
//! folded for ASCII only.

use std::sync::OnceLock;

use regex::Regex;

use super::fold::{fold_cow, fold_inner, is_invisible};
use super::{PatternError, Side};

/// Braces may stand in braces this deep.
const MAX_BRACES: usize = 4;
const WILDCARDS: &str = "*?[]{}";

/// A compiled glob: a plain text, or a pair of expressions for the two sides.
#[derive(Clone, Debug)]
pub(super) enum Glob {
    /// No wildcards.
    Literal { exact: Box<str>, wide: Box<str> },
    /// Wildcards.
    Pattern {
        exact: Regex,
        wide: Wide,
        /// What stands before the first of them, folded.
        start: Box<str>,
    },
}

/// The expression for folded texts, which no allow needs: it is compiled when it is first asked.
#[derive(Clone, Debug)]
pub(super) struct Wide {
    text: Box<str>,
    made: OnceLock<Option<Regex>>,
}

impl Wide {
    /// What cannot be compiled fits everything: this side tightens.
    fn is_match(&self, folded: &str) -> bool {
        let made = self.made.get_or_init(|| Regex::new(&self.text).ok());
        made.as_ref().is_none_or(|wide| wide.is_match(folded))
    }
}

impl Glob {
    /// Compiles a glob over a name or one component of a path.
    ///
    /// # Errors
    /// Invisible characters, blanks at an edge, and syntax that would mean something else than it looks like.
    pub(super) fn parse(text: &str) -> Result<Self, PatternError> {
        if let Some(hidden) = text.chars().find(|c| is_invisible(*c)) {
            let what = format!("contains U+{:04X}, which nobody can see", hidden as u32);
            return Err(PatternError::new(what).help("remove it, or match it with `?`"));
        }
        if text.trim() != text {
            return Err(
                PatternError::new("a name begins or ends with a blank").help("remove the blank, or match it with `?`")
            );
        }
        let mut writer = Writer::default();
        writer.read(text)?;
        writer.finish()
    }

    /// The glob that fits this text only, whatever characters it has.
    pub(super) fn exactly(text: &str) -> Self {
        Self::Literal { exact: text.into(), wide: fold_cow(text).into() }
    }

    /// Whether it fits a text as it is.
    pub(super) fn fits(&self, text: &str) -> bool {
        match self {
            Self::Literal { exact, .. } => **exact == *text,
            Self::Pattern { exact, .. } => exact.is_match(text),
        }
    }

    /// Whether it fits a text that was folded.
    pub(super) fn fits_folded(&self, folded: &str) -> bool {
        match self {
            Self::Literal { wide, .. } => **wide == *folded,
            Self::Pattern { wide, .. } => wide.is_match(folded),
        }
    }

    /// Whether it may fit a text in which `hidden` stands for another.
    pub(super) fn may_fit(&self, text: &str, hidden: &str) -> bool {
        let (before, after) = (text.split(hidden).next().unwrap_or_default(), text.rsplit(hidden).next());
        // What folds together with what is hidden is left out.
        let before = fold_cow(before.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()));
        let after = fold_cow(after.unwrap_or_default().trim_start_matches(|c: char| !c.is_ascii_alphanumeric()));
        match self {
            Self::Literal { wide, .. } => wide.starts_with(&*before) && wide.ends_with(&*after),
            Self::Pattern { start, .. } => start.starts_with(&*before) || before.starts_with(&**start),
        }
    }

    /// Whether it fits, from one side.
    pub(super) fn matches(&self, text: &str, side: Side) -> bool {
        self.fits(text) || (side == Side::Wide && self.fits_folded(&fold_cow(text)))
    }

    /// The plain text, if there are no wildcards.
    pub(super) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal { exact, .. } => Some(exact),
            Self::Pattern { .. } => None,
        }
    }

    /// The plain text as it is compared with folded ones, if there are no wildcards and anything is left of it.
    pub(super) fn folded_literal(&self) -> Option<&str> {
        match self {
            Self::Literal { wide, .. } if !wide.is_empty() => Some(wide),
            Self::Literal { .. } | Self::Pattern { .. } => None,
        }
    }

    /// Whether it is `*`.
    pub(super) fn is_star(&self) -> bool {
        matches!(self, Self::Pattern { exact, .. } if exact.as_str() == r"(?s)\A(?:.*)\z")
    }
}

/// Writes both expressions in one pass over the glob.
#[derive(Default)]
struct Writer {
    exact: String,
    wide: String,
    /// Plain text not yet written: folded as a whole, so that letters and their accents stay together.
    run: String,
    /// What stands before the first wildcard, folded.
    start: String,
    wild: bool,
    braces: usize,
}

impl Writer {
    fn read(&mut self, text: &str) -> Result<(), PatternError> {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '*' => self.both(".*"),
                '?' => self.both("."),
                '[' => self.class(&mut chars)?,
                ']' => {
                    return Err(PatternError::new("a `]` without its `[`").help("write `\\]` for the character itself"));
                }
                '{' if self.braces == MAX_BRACES => return Err(PatternError::new("braces are nested too deeply")),
                '{' => {
                    self.both("(?:");
                    self.braces += 1;
                }
                ',' if self.braces > 0 => {
                    self.alternative()?;
                    self.both("|");
                }
                '}' if self.braces > 0 => {
                    self.alternative()?;
                    self.both(")");
                    self.braces -= 1;
                }
                '}' => {
                    return Err(PatternError::new("a `}` without its `{`").help("write `\\}` for the character itself"));
                }
                '\\' => self.run.push(escaped(chars.next())?),
                c => self.run.push(c),
            }
        }
        if self.braces > 0 {
            return Err(PatternError::new("a `{` without its `}`")
                .help("braces stay within one name: `{a,b}/c`, not `{a/c,b/c}`"));
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Glob, PatternError> {
        if !self.wild {
            return Ok(Glob::Literal { wide: fold_inner(&self.run).into(), exact: self.run.into() });
        }
        self.flush();
        let whole = |body: &str| format!(r"(?s)\A(?:{body})\z");
        let exact = Regex::new(&whole(&self.exact))
            .map_err(|_| PatternError::new("the glob is too large").help("split it into several entries"))?;
        let wide = Wide { text: whole(&self.wide).into(), made: OnceLock::new() };
        Ok(Glob::Pattern { exact, wide, start: self.start.into() })
    }

    fn flush(&mut self) {
        self.exact.push_str(&regex::escape(&self.run));
        self.wide.push_str(&regex::escape(&fold_inner(&self.run)));
        self.run.clear();
    }

    /// Ends the plain text before a wildcard.
    fn wildcard(&mut self) {
        if !self.wild {
            self.start = fold_inner(&self.run);
        }
        self.wild = true;
        self.flush();
    }

    fn both(&mut self, regex: &str) {
        self.wildcard();
        self.exact.push_str(regex);
        self.wide.push_str(regex);
    }

    /// Ends one alternative of a brace: a blank beside its comma or brace is a slip that would never match.
    fn alternative(&self) -> Result<(), PatternError> {
        let opened_by_blank = self.run.starts_with(' ') && (self.exact.ends_with("(?:") || self.exact.ends_with('|'));
        if opened_by_blank || self.run.ends_with(' ') {
            return Err(PatternError::new("a blank beside `{`, `,` or `}` counts as part of the name")
                .help("write `{a,b}`, not `{a, b}`"));
        }
        Ok(())
    }

    fn class(&mut self, chars: &mut std::str::Chars<'_>) -> Result<(), PatternError> {
        let unclosed = || {
            PatternError::new("a `[` without its `]`")
                .help("a set stays within one name; write `\\[` for the character itself")
        };
        let mut set = String::new();
        let mut negated = false;
        let mut first = true;
        loop {
            let low = match chars.next().ok_or_else(unclosed)? {
                ']' if set.is_empty() => return Err(PatternError::new("an empty `[]` matches nothing")),
                ']' => break,
                '!' | '^' if first => {
                    negated = true;
                    first = false;
                    continue;
                }
                '\\' => chars.next().ok_or_else(unclosed)?,
                c => c,
            };
            first = false;
            let mut ahead = chars.clone();
            let mut high = low;
            if ahead.next() == Some('-')
                && let Some(end) = ahead.next().filter(|c| *c != ']')
            {
                high = if end == '\\' { ahead.next().ok_or_else(unclosed)? } else { end };
                *chars = ahead;
            }
            if high < low {
                return Err(PatternError::new(format!("the range `{low}-{high}` is empty"))
                    .help(format!("write `{high}-{low}`")));
            }
            set.push_str(&regex::escape(low.encode_utf8(&mut [0; 4])));
            if high > low {
                set.push('-');
                set.push_str(&regex::escape(high.encode_utf8(&mut [0; 4])));
            }
        }
        self.wildcard();
        let (exact, wide) = if negated {
            // Without regard to case a negated set would exclude more, and the strict side must not match less.
            (format!("[^{set}]"), format!("[^{set}]"))
        } else {
            (format!("[{set}]"), format!("(?i:[{set}])"))
        };
        self.exact.push_str(&exact);
        self.wide.push_str(&wide);
        Ok(())
    }
}

/// The character after a `\`: only a wildcard or another `\`, so that a path written the Windows way is not lost.
fn escaped(next: Option<char>) -> Result<char, PatternError> {
    match next {
        Some(c) if WILDCARDS.contains(c) || c == '\\' || c == ',' => Ok(c),
        _ => Err(PatternError::new("a `\\` only stands before a wildcard")
            .help("write `/` between folders, and `\\\\` for a backslash in a name")),
    }
}

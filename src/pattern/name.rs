//! Names and globs over names.

use super::glob::Glob;
use super::{PatternError, Side};

/// A name or a glob over names (`*`, `?`, `[…]`, `{a,b}`; `\` before a wildcard takes it as it is).
#[derive(Clone, Debug)]
pub struct NamePattern {
    text: Box<str>,
    glob: Glob,
}

impl NamePattern {
    /// Reads a name or a glob.
    ///
    /// # Errors
    /// Empty, a bad glob, blanks at an edge, invisible characters.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::new("an empty name matches nothing").help("write a name, or `*` for any"));
        }
        Ok(Self { text: text.into(), glob: Glob::parse(text)? })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The plain name, if there are no wildcards (policies are indexed by it).
    pub fn literal(&self) -> Option<&str> {
        self.glob.literal()
    }

    /// Whether the name fits.
    pub fn matches(&self, name: &str, side: Side) -> bool {
        self.glob.matches(name, side)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn holds(pattern: &str, name: &str, side: Side) -> bool {
        NamePattern::parse(pattern).unwrap().matches(name, side)
    }

    #[test]
    fn an_allow_takes_names_as_they_are() {
        assert!(holds("read_file", "read_file", Side::Exact));
        for near in [
            "Read_File",
            "read_file ",
            "read_file\t",
            "read_file\nx",
            "read_file_and_delete",
            "read-file",
            "read\u{200b}_file",
        ] {
            assert!(!holds("read_file", near, Side::Exact), "{near:?}");
        }
    }

    #[test]
    fn a_deny_takes_names_that_could_be_meant() {
        for near in ["delete_all", "DELETE_ALL", " delete_all", "delete_all\n", "dele\u{200d}te_all"] {
            assert!(holds("delete_all", near, Side::Wide), "{near:?}");
        }
        assert!(!holds("delete_all", "delete_all_drafts", Side::Wide), "a longer name is another tool");
        assert!(!holds("read.file", "readXfile", Side::Wide), "a dot is a dot");
    }

    #[test]
    fn globs_span_the_whole_name() {
        assert!(holds("read_*", "read_file", Side::Exact));
        assert!(!holds("read_*", "thread_file", Side::Exact));
        assert!(!holds("read_*", "READ_FILE", Side::Exact));
        assert!(holds("read_*", "READ_FILE", Side::Wide));
        assert!(holds("{read,list}_file?", "list_files", Side::Exact));
        assert!(holds("*", "any\nthing", Side::Exact), "`*` stops at nothing in a name");
        assert!(holds("f?", "f\u{20ac}", Side::Exact), "`?` is one character, not one byte");
        assert!(holds("[!a-c]x", "dx", Side::Exact) && !holds("[!a-c]x", "bx", Side::Exact));
        assert!(holds(r"a\*b", "a*b", Side::Exact) && !holds(r"a\*b", "axb", Side::Exact));
    }

    #[test]
    fn only_plain_names_are_literal() {
        assert_eq!(NamePattern::parse("fs.read_file").unwrap().literal(), Some("fs.read_file"));
        assert_eq!(NamePattern::parse(r"a\*b").unwrap().literal(), Some("a*b"));
        assert_eq!(NamePattern::parse("read_*").unwrap().literal(), None);
    }

    #[test]
    fn what_would_silently_mean_something_else_is_refused() {
        for (text, says) in [
            ("", "empty"),
            (" a", "blank"),
            ("a\u{200b}", "U+200B"),
            ("a[", "`]`"),
            ("a]", "`[`"),
            ("[]", "empty"),
            ("{a", "`}`"),
            ("a}", "`{`"),
            ("{a, b}", "blank"),
            ("{a ,b}", "blank"),
            ("[z-a]", "range"),
            (r"a\b", "wildcard"),
            (r"a\", "wildcard"),
            ("{{{{{a}}}}}", "nested"),
        ] {
            let error = NamePattern::parse(text).unwrap_err();
            assert!(error.what.contains(says), "{text:?}: {}", error.what);
        }
    }
}

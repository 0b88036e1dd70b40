//! The options of a program, written as one readable text.
//!
//! Entries are parted by blanks. An entry is the names of one option, parted by `|`, and what it means:
//!
//! | suffix | meaning |
//! |---|---|
//! | none | takes nothing |
//! | `=` | takes a text |
//! | `=?` | takes a text only where it is attached |
//! | `=~` | takes a text only where it is attached to the long name |
//! | `=2` | takes two texts |
//! | `=<`, `=>` | takes a path that is read, written (a written one is a power) |
//! | `=@` | takes a directory in which the rest happens |
//! | `=:` | takes a text in which a file that is read may stand after `:` |
//! | `=@f` | takes a text, or a file after `@` |
//! | `=f` | takes a text in which a file may stand after `@`, `<` or `=` |
//! | `=-f` | takes a text in which a file may stand after `file=` |
//! | `=2<` | takes a text and a path that is read |
//! | `!` | is a power: runs programs, or writes; an allow must name it |
//! | `*` | goes on below directories, or reads a whole tree |
//! | `^` | takes the place of the pattern among the operands |
//!
//! `-#` stands for a number, as in `head -5`. An option that is not there is a power: nobody knows what it does.

use crate::record::Access;

/// What an option takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Takes {
    Nothing,
    /// Only where it is attached.
    Attached,
    /// Only where it is attached to the long name.
    AttachedToLong,
    Text,
    TwoTexts,
    /// A text that can name a file.
    Named(By),
    /// A text that can name a file after `:`.
    Located,
    Path(Access),
    Directory,
    /// A name, then a path.
    NameAndPath,
}

/// How a text names a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// `@FILE`.
    At,
    /// `@FILE`, `name@FILE`, `name=@FILE`, `name=<FILE`.
    Sign,
    /// `jsonpath-file=FILE`.
    File,
}

impl By {
    /// The file that a text names.
    pub fn file(self, text: &str) -> Option<&str> {
        let sign = ['@', '<', '='];
        let file = match self {
            Self::At => text.strip_prefix('@'),
            Self::Sign => text.split_once(sign).map(|(_, file)| file.trim_start_matches(sign)),
            Self::File => text.split_once('=').filter(|(kind, _)| kind.ends_with("file")).map(|(_, file)| file),
        };
        file.filter(|file| !file.is_empty())
    }
}

/// One option.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub names: Vec<&'static str>,
    pub takes: Takes,
    pub power: bool,
    /// Whether it is one only because of the path that it writes.
    pub power_by_path: bool,
    pub recursive: bool,
    pub pattern: bool,
}

/// All options of a program.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    entries: Vec<Entry>,
    /// Whether a number is one.
    pub numbers: bool,
}

impl Options {
    /// Reads the text form.
    pub fn parse(text: &'static str) -> Self {
        let mut options = Self::default();
        for word in text.split_whitespace() {
            if word == "-#" {
                options.numbers = true;
            } else {
                options.entries.push(entry(word));
            }
        }
        options
    }

    /// These and those.
    pub fn and(&self, more: &Self) -> Self {
        let entries = self.entries.iter().chain(&more.entries).cloned().collect();
        Self { entries, numbers: self.numbers || more.numbers }
    }

    /// Whether none of them names a file, runs a program or goes on below directories.
    pub fn is_inert(&self) -> bool {
        let inert = |entry: &Entry| {
            let names_nothing = matches!(
                entry.takes,
                Takes::Nothing | Takes::Attached | Takes::AttachedToLong | Takes::Text | Takes::TwoTexts
            );
            names_nothing && !entry.power && !entry.pattern
        };
        self.entries.iter().all(inert)
    }

    /// The option of that name.
    pub fn exact(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.names.contains(&name))
    }

    /// What a long name may be short for.
    pub fn abbreviated(&self, name: &str) -> Vec<&Entry> {
        let begins = |entry: &&Entry| entry.names.iter().any(|full| full.starts_with("--") && full.starts_with(name));
        self.entries.iter().filter(begins).collect()
    }
}

fn entry(word: &'static str) -> Entry {
    let unmarked = word.trim_end_matches(['!', '*', '^']);
    let marks = word.get(unmarked.len()..).unwrap_or_default();
    let kinds = [
        ("=?", Takes::Attached),
        ("=~", Takes::AttachedToLong),
        ("=2", Takes::TwoTexts),
        ("=<", Takes::Path(Access::Read)),
        ("=>", Takes::Path(Access::Write)),
        ("=@f", Takes::Named(By::At)),
        ("=-f", Takes::Named(By::File)),
        ("=@", Takes::Directory),
        ("=f", Takes::Named(By::Sign)),
        ("=:", Takes::Located),
        ("=2<", Takes::NameAndPath),
        ("=", Takes::Text),
    ];
    let found = kinds.into_iter().find_map(|(suffix, takes)| Some((unmarked.strip_suffix(suffix)?, takes)));
    let (names, takes) = found.unwrap_or((unmarked, Takes::Nothing));
    Entry {
        names: names.split('|').collect(),
        takes,
        power: marks.contains('!') || takes == Takes::Path(Access::Write),
        power_by_path: !marks.contains('!') && takes == Takes::Path(Access::Write),
        recursive: marks.contains('*'),
        pattern: marks.contains('^'),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn entries_are_read_by_their_suffixes() {
        let options = Options::parse("-i|--ignore-case -e|--regexp=^ -r* --pre=! -o|--output=> -C=@ -#");
        assert!(options.numbers);
        let plain = options.exact("--ignore-case").unwrap();
        assert_eq!((plain.takes, plain.power, plain.pattern), (Takes::Nothing, false, false));
        let pattern = options.exact("-e").unwrap();
        assert_eq!((pattern.takes, pattern.pattern), (Takes::Text, true));
        assert!(options.exact("-r").unwrap().recursive);
        assert!(options.exact("--pre").unwrap().power && options.exact("-o").unwrap().power);
        assert_eq!(options.exact("-C").unwrap().takes, Takes::Directory);
        assert!(options.exact("--outp").is_none());
        assert_eq!(options.abbreviated("--outp").len(), 1);
    }
}

//! The arguments of a command, read by the options of its program.

use super::flow::{below, is_deep};
use super::options::{By, Entry, Options, Takes};
use super::words::Word;
use super::{Place, not_understood};
use crate::facet::Floor;

/// What the arguments come to.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// What is no option and no option's value.
    pub operands: Vec<Word>,
    /// How many operands stood before `--`.
    pub before_dashes: Option<usize>,
    pub options: Vec<String>,
    /// What options were given, each by the names of the option; none inside where the value is missing.
    pub values: Vec<(Vec<&'static str>, Option<Word>)>,
    pub powers: Vec<Vec<String>>,
    pub places: Vec<Place>,
    pub hints: Vec<String>,
    pub floors: Vec<Floor>,
    pub recursive: bool,
    /// Whether an option gave the pattern.
    pub pattern: bool,
    /// Where the rest happens.
    pub directory: Option<String>,
    /// Whether that is not known.
    pub lost: bool,
    /// How many words were read, where reading stops at the first operand.
    pub used: usize,
}

impl Arguments {
    /// The values of an option, as they follow each other; none inside where one is missing.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Option<&'a Word>> {
        self.values.iter().filter(move |(names, _)| names.contains(&name)).map(|(_, value)| value.as_ref())
    }

    /// Lints are names: `-D warnings`, behind the dashes of `cargo clippy`.
    pub fn drop_lints(&mut self) {
        let Some(dashes) = self.before_dashes else { return };
        let is_lint = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b':'));
        let is_plain = |pair: &[Word]| match pair {
            [level, lint] => {
                matches!(level.known(), Some("-D" | "-W" | "-A" | "-F")) && lint.known().is_some_and(is_lint)
            }
            _ => false,
        };
        if self.operands.get(dashes..).unwrap_or_default().chunks(2).all(is_plain) {
            self.operands.truncate(dashes);
        }
    }

    /// Adds what more arguments of the same command came to.
    pub fn add(&mut self, more: Self) {
        self.options.extend(more.options);
        self.values.extend(more.values);
        self.powers.extend(more.powers);
        self.places.extend(more.places);
        self.hints.extend(more.hints);
        self.floors.extend(more.floors);
    }
}

/// How arguments are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Until {
    /// All of them.
    End,
    /// The first operand, at which another command begins.
    Operand,
}

/// Reads the words that follow a program. `harmless`: whatever an option may be, it does no harm.
pub(super) fn read(options: &Options, words: &[Word], until: Until, harmless: bool) -> Arguments {
    let mut reader = Reader { options, harmless, found: Arguments::default(), words, at: 0 };
    while let Some(word) = words.get(reader.at) {
        let option = reader.found.before_dashes.is_none() && reader.is_option(word);
        if !option && until == Until::Operand {
            break;
        }
        reader.at += 1;
        if option {
            reader.option(word)
        } else {
            reader.found.operands.push(word.clone())
        }
        if until == Until::Operand && reader.found.before_dashes.is_some() {
            break;
        }
    }
    reader.found.used = reader.at;
    reader.found
}

struct Reader<'a> {
    options: &'a Options,
    harmless: bool,
    found: Arguments,
    words: &'a [Word],
    at: usize,
}

impl Reader<'_> {
    /// Whether a word is an option; one that only might be is a floor.
    fn is_option(&mut self, word: &Word) -> bool {
        if word.known {
            return word.text.len() > 1 && word.text.starts_with('-');
        }
        if word.prefix.starts_with('-') {
            return true;
        }
        // Files that a pattern stands for begin as it does.
        if word.pattern && (!word.prefix.is_empty() || self.options.is_inert()) {
            return false;
        }
        if word.prefix.is_empty() || word.splits {
            self.floor("a word that only a running shell knows may be an option");
        }
        false
    }

    fn floor(&mut self, why: &str) {
        if !self.harmless {
            self.found.floors.push(not_understood(why));
        }
    }

    fn option(&mut self, word: &Word) {
        let text = if word.known { word.text.as_str() } else { word.prefix.as_str() };
        if word.known && text == "--" {
            self.found.before_dashes = Some(self.found.operands.len());
            return;
        }
        let (name, attached) = match text.split_once('=') {
            Some((name, _)) => (name, Some(word.after(name.len() + 1))),
            None => (text, None),
        };
        if !word.known && attached.is_none() {
            self.floor("an option that only a running shell knows");
            self.found.hints.push(word.text.clone());
            return;
        }
        if let Some(entry) = self.options.exact(name) {
            self.take(&entry.clone(), attached);
        } else if name.starts_with("--") {
            self.long(name, attached);
        } else if self.options.numbers && word.known && text.bytes().skip(1).all(|byte| byte.is_ascii_digit()) {
            self.found.options.push("-#".to_owned());
        } else {
            self.bundle(word);
        }
    }

    fn long(&mut self, name: &str, attached: Option<Word>) {
        let entries: Vec<Entry> = self.options.abbreviated(name).into_iter().cloned().collect();
        match entries.as_slice() {
            [] => self.unknown(name, attached),
            [one] => self.take(one, attached),
            several => {
                // The program refuses it or takes one of them.
                for entry in several {
                    self.note(entry);
                    self.found.values.push((entry.names.clone(), attached.clone()));
                }
                self.found.hints.extend(attached.map(|word| word.text));
                self.floor("an abbreviated option that can be several");
            }
        }
    }

    /// Short options in one word, the last with its value.
    fn bundle(&mut self, word: &Word) {
        for (at, c) in word.text.char_indices().skip(1) {
            let end = at + c.len_utf8();
            let Some(entry) = self.options.exact(&format!("-{c}")).cloned() else {
                self.unknown(&format!("-{c}"), None);
                self.found.options.push(word.text.clone());
                self.found.hints.push(word.text.clone());
                // What follows may be its value.
                continue;
            };
            let rest = (end < word.text.len()).then(|| word.after(end));
            match entry.takes {
                Takes::Nothing | Takes::AttachedToLong => self.note(&entry),
                Takes::Attached => {
                    self.note(&entry);
                    return;
                }
                _ => {
                    self.take(&entry, rest);
                    return;
                }
            }
        }
    }

    /// An option that is not in the table.
    fn unknown(&mut self, name: &str, attached: Option<Word>) {
        self.found.options.push(name.to_owned());
        self.found.hints.extend(attached.map(|word| word.text));
        if !self.harmless {
            self.found.powers.push(vec![name.to_owned()]);
        }
    }

    fn note(&mut self, entry: &Entry) {
        let names = || entry.names.iter().map(|name| (*name).to_owned());
        self.found.options.extend(names());
        if entry.power {
            self.found.powers.push(names().collect());
        }
        self.found.recursive |= entry.recursive;
        self.found.pattern |= entry.pattern;
    }

    fn take(&mut self, entry: &Entry, attached: Option<Word>) {
        self.note(entry);
        if matches!(entry.takes, Takes::Nothing | Takes::Attached | Takes::AttachedToLong) {
            if let Some(value) = attached {
                self.whole(&value, true);
                self.found.hints.extend((entry.takes == Takes::Nothing).then_some(value.text));
            }
            return;
        }
        let given = attached.is_some();
        let value = attached.or_else(|| self.next());
        self.found.values.push((entry.names.clone(), value.clone()));
        let Some(value) = value else { return };
        match entry.takes {
            // What is written there is gone: nothing is written.
            Takes::Path(_) if value.known() == Some("/dev/null") && entry.power_by_path => {
                self.found.powers.pop();
            }
            Takes::Path(access) => self.path(&value, Place::new("", access)),
            Takes::Directory => {
                let before = self.found.directory.take().unwrap_or_default();
                if is_deep(&before) {
                    self.found.floors.push(not_understood("more changes of the directory than are followed"));
                    self.found.lost = true;
                    self.found.directory = Some(before);
                    return;
                }
                self.path(&value, Place { below: Some(before.clone()), ..Place::read("") });
                self.found.lost |= !value.known;
                self.found.directory = Some(below(&before, &value.text));
            }
            Takes::Named(by) => match value.known().map(|text| by.file(text)) {
                Some(Some(file)) if by == By::Sign && file.contains([',', ';', '"']) => {
                    self.floor("a value that can name several files")
                }
                Some(Some(file)) => self.path(&Word::literal(file), Place::read("")),
                Some(None) => {}
                None if by == By::At && !value.splits && !value.prefix.is_empty() && !value.prefix.starts_with('@') => {
                }
                None => self.floor("a value that can name a file"),
            },
            // `-L 1,5:FILE`, `-L :FUNCTION:FILE`: a name with `:` in it may begin at any of them.
            Takes::Located => match value.known() {
                Some(text) => {
                    let ends = text.match_indices(':').filter_map(|(at, _)| text.get(at + 1..));
                    self.found.places.extend(ends.filter(|file| !file.is_empty()).map(Place::read));
                }
                None => self.floor("a value that can name a file"),
            },
            Takes::NameAndPath => {
                if let Some(path) = self.next() {
                    self.path(&path, Place::read(""));
                }
            }
            Takes::TwoTexts => {
                self.whole(&value, given);
                if let Some(second) = self.next() {
                    self.whole(&second, false);
                }
            }
            Takes::Text | Takes::Nothing | Takes::Attached | Takes::AttachedToLong => self.whole(&value, given),
        }
    }

    /// A value that must not become several words. `--include=*.rs`: every name begins with the option.
    fn whole(&mut self, value: &Word, attached: bool) {
        if !value.known && value.splits && !(attached && value.pattern) {
            self.floor("a value that may become several words");
        }
    }

    fn next(&mut self) -> Option<Word> {
        let word = self.words.get(self.at)?.clone();
        self.at += 1;
        Some(word)
    }

    fn path(&mut self, value: &Word, place: Place) {
        match value.known() {
            Some("-") => {}
            Some(text) => self.found.places.push(Place { text: text.to_owned(), ..place }),
            None => {
                self.found.floors.push(not_understood("a path that only a running shell knows"));
                self.found.hints.push(value.text.clone());
            }
        }
    }
}

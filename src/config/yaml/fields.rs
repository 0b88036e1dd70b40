//! The fields of one mapping, taken by name.

use super::{Entry, Mark, Node, Report};
use crate::diagnostic::did_you_mean;

/// Takes the fields of a mapping one by one; what nobody asked for is unknown.
#[derive(Debug)]
pub struct Fields<'a> {
    /// Where the mapping begins.
    pub at: Mark,
    what: String,
    entries: &'a [Entry],
    asked: Vec<&'static str>,
    /// Keys that were dealt with otherwise than by asking for them.
    taken: Vec<&'a str>,
}

impl<'a> Fields<'a> {
    /// The fields of `node`, which messages call `what` (`a rule`, `upstream "files"`). None, and an error, if it is no
    /// mapping.
    pub fn new(node: &'a Node, what: impl Into<String>, report: &mut Report) -> Option<Self> {
        let what = what.into();
        let entries = node.mapping_of(&what, report)?;
        Some(Self { at: node.at, what, entries, asked: Vec::new(), taken: Vec::new() })
    }

    /// The value of a field, if it is there.
    pub fn optional(&mut self, name: &'static str) -> Option<&'a Node> {
        self.entry(name).map(|entry| &entry.value)
    }

    /// The field with its key's place, if it is there.
    pub fn entry(&mut self, name: &'static str) -> Option<&'a Entry> {
        if !self.asked.contains(&name) {
            self.asked.push(name);
        }
        self.entries.iter().find(|entry| *entry.key == *name)
    }

    /// The value of a field; an error if it is not there.
    pub fn required(&mut self, name: &'static str, report: &mut Report) -> Option<&'a Node> {
        let found = self.optional(name);
        if found.is_none() {
            report.error(self.at, format!("`{name}` is missing in {}", self.what));
        }
        found
    }

    /// A field of a later version: an error if it is there, so that nobody relies on what would not happen.
    pub fn later(&mut self, name: &'static str, report: &mut Report) {
        if let Some(entry) = self.entries.iter().find(|entry| *entry.key == *name) {
            self.taken.push(&entry.key);
            report.error(entry.at, format!("`{name}` is not built yet")).help("leave it out; a later version reads it");
        }
    }

    /// A field that people expect here and that does not exist: an error if it is there, with what to write instead.
    pub fn misplaced(&mut self, name: &'static str, help: &str, report: &mut Report) {
        if let Some(entry) = self.entries.iter().find(|entry| *entry.key == *name) {
            self.taken.push(&entry.key);
            report.error(entry.at, format!("unknown field `{name}` in {}", self.what)).help(help);
        }
    }

    /// The fields whose names are data; `form` is how messages show such a name (`/ARGUMENT`).
    pub fn rest(&mut self, form: &'static str, belongs: impl Fn(&str) -> bool) -> Vec<&'a Entry> {
        self.asked.push(form);
        let found: Vec<&Entry> = self.entries.iter().filter(|entry| belongs(&entry.key)).collect();
        self.taken.extend(found.iter().map(|entry| &*entry.key));
        found
    }

    /// Whether a field is there, without taking it.
    pub fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|entry| *entry.key == *name)
    }

    /// Whether exactly these fields were asked for, in whatever order.
    pub fn has_asked_for(&self, names: impl Iterator<Item = &'static str>) -> bool {
        let (mut names, mut asked): (Vec<&str>, Vec<&str>) = (names.collect(), self.asked.clone());
        names.sort_unstable();
        asked.sort_unstable();
        names == asked
    }

    /// Reports every field that nobody asked for, with the nearest name that somebody did. Call it last.
    pub fn finish(self, report: &mut Report) {
        let known = |key: &str| self.asked.contains(&key) || self.taken.contains(&key);
        for entry in self.entries.iter().filter(|entry| !known(&entry.key)) {
            let near = did_you_mean(&entry.key, self.asked.iter().copied());
            let help = near
                .map_or_else(|| format!("it has {}", self.asked.join(", ")), |near| format!("did you mean `{near}`?"));
            report.error(entry.at, format!("unknown field `{}` in {}", entry.key, self.what)).help(&*help);
        }
    }
}

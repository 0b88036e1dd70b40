//! Strings that the catalogue does not know: tried against guarded paths, and guessed at by their names.

use std::borrow::Cow;

use super::*;
use crate::catalog::guessed_argument;
use crate::facet::Part;
use crate::facet::path::other_texts;
use crate::pattern::Location;

/// How many places all strays of a call may name together, and how long one may be.
const MAX_PLACES: usize = 65_536;
const MAX_STRAYS: usize = 4_096;
const MAX_BYTES: usize = 4_096;

/// How often a long text is let climb.
const MAX_CLIMB: usize = 512;
/// How many `=` and `:` may stand before a path.
const MAX_MARKS: usize = 8;

/// What is known of a string by the marks around it.
enum Known {
    /// A facet stands for it, or it names nothing.
    Fully,
    /// It is a program's text, and facets stand for what it names.
    Text,
    /// A facet stands for it, which does not say which paths are in it.
    InPart,
    /// Nothing.
    Not,
}

impl<'a> Call<'a> {
    /// Goes through all strings of the arguments.
    pub(super) fn unmarked(&mut self) {
        if let Some(arguments) = self.arguments {
            self.look(arguments, &mut Vec::new(), &mut String::new());
        }
    }

    fn look(&mut self, value: &'a Value, keys: &mut Vec<&'a str>, at: &mut String) {
        match &value.kind {
            Kind::String(text) => self.string(text, keys, at),
            Kind::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let length = at.len();
                    at.push_str(&format!("/{index}"));
                    keys.push("*");
                    self.look(item, keys, at);
                    keys.pop();
                    at.truncate(length);
                }
            }
            Kind::Object(members) => {
                for member in members {
                    let length = at.len();
                    at.push_str(&Pointer(vec![member.key.clone()]).to_string());
                    if member.key.contains(['/', '\\']) {
                        self.loose.push((at.clone(), &member.key));
                    }
                    keys.push(&member.key);
                    self.look(&member.value, keys, at);
                    keys.pop();
                    at.truncate(length);
                }
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => {}
        }
    }

    fn string(&mut self, text: &'a str, keys: &[&str], at: &str) {
        let known = self.known(keys);
        if matches!(known, Known::Fully) {
            return;
        }
        if matches!(known, Known::Text) {
            return self.programs.push((at.to_owned(), text));
        }
        self.loose.push((at.to_owned(), text));
        if matches!(known, Known::InPart) {
            return;
        }
        if text.starts_with('-') {
            self.floors.push(Floor::because(FloorWhy::OptionLike, format!("`{at}` starts with `-`")));
        }
        let name = keys.iter().rev().find(|key| **key != "*").copied().unwrap_or_default();
        let guessed_already = self.tool.heuristic && self.tool.arguments.iter().any(|(p, _)| p.fits(keys));
        if guessed_already {
            return;
        }
        if self.facets.len() >= MAX_STRAYS {
            let detail = "more strings in the arguments than can be looked at";
            return self.floors.push(Floor::because(FloorWhy::Heuristic, detail));
        }
        // As where no entry says anything of the tool: an entry that leaves an argument out makes nothing looser.
        match guessed_argument(name) {
            Some(Argument::Path { .. }) => self.guess_path(at, text),
            Some(guess @ (Argument::Url | Argument::Command)) => self.guess(&guess, at, text),
            _ => self.guess_host(text),
        }
    }

    /// A URL or a command by its argument's name only.
    fn guess(&mut self, what: &Argument, at: &str, text: &'a str) {
        let known = std::mem::replace(&mut self.guessing, true);
        let read = match what {
            Argument::Command => self.shell_text(at, text),
            _ => self.add_url(at.to_owned(), text),
        };
        if let Err(malformed) = read {
            self.floors.push(Floor::because(FloorWhy::Heuristic, malformed.what));
        }
        self.guessing = known;
    }

    fn known(&self, keys: &[&str]) -> Known {
        if self.tool.heuristic {
            return Known::Not;
        }
        // The inner call has facets and strays of its own.
        if self.tool.unwrap.as_ref().is_some_and(|u| u.name.fits(keys) || u.arguments.covers(keys)) {
            return Known::Fully;
        }
        let mut known = Known::Not;
        for (pointer, argument) in &self.tool.arguments {
            match argument {
                Argument::Command | Argument::Words | Argument::Code if pointer.fits(keys) => known = Known::Text,
                // The words of a list are read one by one, and what may be a path among them is tried.
                Argument::Words if pointer.covers(keys) => return Known::Fully,
                Argument::Command | Argument::Code | Argument::Env if pointer.covers(keys) => known = Known::InPart,
                Argument::Url | Argument::Sql | Argument::Decode(_) if pointer.fits(keys) => known = Known::InPart,
                Argument::Address if pointer.covers(keys) => return Known::Fully,
                Argument::Command
                | Argument::Words
                | Argument::Code
                | Argument::Env
                | Argument::Url
                | Argument::Sql
                | Argument::Decode(_) => {}
                _ if pointer.fits(keys) => return Known::Fully,
                _ => {}
            }
        }
        let argv = self.tool.argv.iter().flatten().filter_map(|word| word.parse::<Pointer>().ok());
        if argv.into_iter().any(|pointer| pointer.fits(keys)) { Known::InPart } else { known }
    }

    /// Tries every loose string as a path.
    pub(super) fn try_strays(&mut self) {
        if self.loose.is_empty() && self.programs.is_empty() {
            return;
        }
        let is_argument = |path: &PathFacet| path.command.is_none() || path.part == Some(Part::Base);
        let (bases, of_texts) = (self.starts(|_| true), self.starts(is_argument));
        let loose = std::mem::take(&mut self.loose).into_iter().map(|(pointer, text)| (pointer, text, &bases));
        // A text as a whole does not start at what it names itself.
        let texts = std::mem::take(&mut self.programs).into_iter().map(|(pointer, text)| (pointer, text, &of_texts));
        let mut places = 0_usize;
        for (count, (pointer, text, bases)) in loose.chain(texts).enumerate() {
            let mut locations: Vec<Location> = Vec::new();
            for candidate in candidates(text) {
                for at in self.space.guess(&candidate, bases) {
                    if !locations.contains(&at) {
                        locations.push(at);
                    }
                }
            }
            places += locations.len();
            if count >= MAX_STRAYS || places > MAX_PLACES {
                let detail = "more strings in the arguments than can be looked at";
                self.floors.push(Floor::because(FloorWhy::Heuristic, detail));
                return;
            }
            if !locations.is_empty() {
                self.strays.push(Stray { pointer, sent: text.to_owned(), locations });
            }
        }
    }
}

/// The paths that a string might be, or hold: itself, the value of an option or setting, what follows a revision, a URI.
pub(super) fn candidates(text: &str) -> Vec<String> {
    // A reader in C stops at a NUL.
    let text = text.split('\0').next().unwrap_or_default().trim();
    let text = text.trim_matches(['"', '\'', '`']);
    if text.chars().any(char::is_control) {
        return Vec::new();
    }
    let text = &*folded_if_long(text);
    if text.is_empty() || text.len() > MAX_BYTES {
        return Vec::new();
    }
    let mut found = vec![text.to_owned()];
    // `HEAD:PATH`, `--set a=b=PATH` in one word.
    let word = text.split(char::is_whitespace).next().unwrap_or_default();
    let marks = word.match_indices(['=', ':']).take(MAX_MARKS);
    found.extend(marks.filter_map(|(at, mark)| text.get(at + mark.len()..)).map(str::to_owned));
    // A pathspec of git: `:(icase)PATH`.
    found.extend(text.strip_prefix(":(").and_then(|rest| rest.split_once(')')).map(|(_, path)| path.to_owned()));
    found.extend(text.strip_prefix('@').map(str::to_owned));
    // `-fPATH`.
    found.extend(text.strip_prefix('-').map(|rest| rest.chars().skip(1).collect()));
    for plain in found.clone() {
        found.extend(other_texts(&plain));
    }
    found.retain(|candidate| !candidate.is_empty());
    found.sort();
    found.dedup();
    found
}

/// A text that is too long for a path may still be one to a tool that folds `.` and `..` by itself.
fn folded_if_long(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_BYTES {
        return Cow::Borrowed(text);
    }
    let mut kept: Vec<&str> = Vec::new();
    for component in text.split('/') {
        match component {
            "" | "." => {}
            ".." if kept.last().is_some_and(|last| *last != "..") => drop(kept.pop()),
            // Nothing lies deeper, and the top is its own parent.
            ".." if kept.len() >= MAX_CLIMB => {}
            name => kept.push(name),
        }
    }
    let top = if text.starts_with('/') { "/" } else { "" };
    Cow::Owned(format!("{top}{}", kept.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_what_holds_them() {
        for text in [
            "secrets/key.pem",
            " secrets/key.pem\n",
            "'secrets/key.pem'",
            "--output=secrets/key.pem",
            "-fsecrets/key.pem",
            "key=secrets/key.pem",
            "HEAD:secrets/key.pem",
            "a=b=secrets/key.pem",
            ":(top,icase)secrets/key.pem",
            "@secrets/key.pem",
            "secrets\\key.pem",
            "secrets%2Fkey.pem",
            "secrets/key.pem\0.md",
            "ｓecrets/key.pem",
        ] {
            assert!(candidates(text).iter().any(|c| c == "secrets/key.pem"), "{text:?}: {:?}", candidates(text));
        }
        for text in [
            "file:///r/secrets/x",
            "FILE://host/r/secrets/x",
            "view-source:file:///r/secrets/x",
            "jar:file:/r/secrets/x",
        ] {
            assert!(candidates(text).iter().any(|c| c == "/r/secrets/x"), "{text}: {:?}", candidates(text));
        }
    }

    #[test]
    fn what_only_folding_makes_short_is_a_path() {
        for padding in ["./", "docs/../", "/", "../"] {
            let text = format!("{}secrets/key.pem", padding.repeat(3000));
            assert!(candidates(&text).iter().any(|c| c.ends_with("secrets/key.pem")), "{padding}");
        }
        assert!(candidates(&"x/".repeat(3000)).is_empty());
    }

    #[test]
    fn prose_is_no_path() {
        assert!(candidates("two\nlines").is_empty() && candidates("  ").is_empty());
        assert!(!candidates("note the place: secrets/key.pem").iter().any(|c| c.trim() == "secrets/key.pem"));
    }
}

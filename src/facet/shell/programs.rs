//! From a program and its arguments to what the command does.

use super::arguments::{Arguments, Until, read};
use super::flow::{Bases, Flow};
use super::simple::{Given, Walk, command, under};
use super::tables::{Operands, Program};
use super::words::{Word, joined};
use super::{Command, Place, When, base_name, find, not_understood, special, tables, wrappers};
use crate::record::Access;

impl Walk {
    /// One simple command.
    pub fn run(&mut self, words: Vec<Word>, mut given: Given, bases: &Bases) -> Flow {
        if !self.spend(&words) {
            return Flow::same(bases);
        }
        let Some(first) = words.first() else {
            self.push(command(&words, given, bases));
            return Flow::same(bases);
        };
        // No program is called like an option: what runs before it may have been read in another way than it is here.
        let Some(program) = first.known().filter(|name| !name.starts_with('-')).map(str::to_owned) else {
            let why = if first.known {
                "an option where a command is due"
            } else {
                "the command word is known only when it runs"
            };
            given.floors.push(not_understood(why));
            self.push(Command { unread: Some(joined(&words)), ..command(&words, given, bases) });
            return Flow::same(bases);
        };
        if program.contains('/') {
            given.places.push(Place::read(&program));
        }
        let name = base_name(&program).to_owned();
        if let Some(why) = special::changes_the_shell(&name, words.get(1..).unwrap_or_default()) {
            given.floors.push(not_understood(why));
        }
        if let Some(wrapper) = wrappers::find(&name) {
            return self.wrapped(wrapper, &words, given, bases);
        }
        let arguments = words.get(1..).unwrap_or_default();
        match name.as_str() {
            "cd" | "pushd" => return self.change_directory(&words, given, bases),
            "find" => {
                self.find(&words, given, bases);
                return Flow::same(bases);
            }
            "tar" => special::tar(arguments, &mut given),
            _ => {}
        }
        // Another program of that name takes what it likes.
        let usual = program == name || ["/bin/", "/usr/bin/"].iter().any(|at| program.strip_prefix(at) == Some(&name));
        let mut made = match tables::program(&name).filter(|_| usual) {
            Some(Program::Plain(row)) => {
                let mut found = read(&row.options, arguments, Until::End, row.harmless);
                special::look_at_values(&name, &mut found);
                tabled(&words, found, row.operands, given, bases, None)
            }
            Some(Program::Family(known)) => family(&words, known, given, bases),
            None => untabled(&words, given, bases),
        };
        special::look_closer(&name, arguments, &mut made);
        self.push(made);
        Flow::same(bases)
    }

    fn find(&mut self, words: &[Word], given: Given, bases: &Bases) {
        let found = find::read(words.get(1..).unwrap_or_default());
        for inner in found.runs {
            let mut given = Given::default();
            if inner.iter().any(|word| !word.known && !word.pattern) || inner.first().is_none_or(|word| !word.known) {
                given.floors.push(not_understood("runs with names that `find` puts in"));
            }
            self.run(inner, given, bases);
        }
        let made = tabled(words, found.arguments, Operands::Text, given, bases, None);
        self.push(made);
    }

    fn change_directory(&mut self, words: &[Word], given: Given, bases: &Bases) -> Flow {
        let options = super::options::Options::parse("-P -L -e -@");
        let found = read(&options, words.get(1..).unwrap_or_default(), Until::End, false);
        let target = match found.operands.as_slice() {
            [one] if one.text != "-" && !one.text.starts_with('+') => one.known().map(str::to_owned),
            _ => None,
        };
        let elsewhere =
            given.places.iter().any(|place| place.access != Some(Access::Write)) || !given.floors.is_empty();
        let mut made = tabled(words, found, Operands::Paths(Some(Access::Read)), given, bases, None);
        if target.is_none() {
            made.floors.push(not_understood("a directory that only a running shell knows"));
        }
        self.push(made);
        match target {
            Some(target) if !elsewhere => Flow { ok: bases.into(&target), err: bases.clone() },
            _ => Flow { ok: Bases::unknown(), err: bases.clone() },
        }
    }
}

/// A command whose program's options are known.
fn tabled(
    words: &[Word],
    mut found: Arguments,
    operands: Operands,
    given: Given,
    bases: &Bases,
    subcommand: Option<&str>,
) -> Command {
    operands.places(&mut found);
    if let Some(directory) = found.directory.clone() {
        under(&mut found.places, &directory);
    }
    let mut made = command(words, given, bases);
    let subcommand = subcommand.map(|name| Word::literal(name).argument());
    shift(&mut found.places, 1 + usize::from(subcommand.is_some()));
    made.words.extend(subcommand.into_iter().chain(found.operands.iter().map(Word::argument)));
    made.options = found.options;
    made.powers = found.powers;
    made.places.append(&mut found.places);
    made.hints.append(&mut found.hints);
    made.floors.append(&mut found.floors);
    if found.lost {
        made.bases = vec![None];
    }
    made.tabled = true;
    made
}

/// A program with subcommands: its own options stand before them.
fn family(words: &[Word], known: &tables::Family, given: Given, bases: &Bases) -> Command {
    let arguments = words.get(1..).unwrap_or_default();
    // `cargo +TOOLCHAIN build`.
    let toolchain = arguments.first().filter(|word| word.text.starts_with('+'));
    let arguments = arguments.get(usize::from(toolchain.is_some())..).unwrap_or_default();
    let mut outer = read(&known.options, arguments, Until::Operand, false);
    if let Some(toolchain) = toolchain {
        outer.options.push("+".to_owned());
        outer.powers.push(vec!["+".to_owned(), toolchain.text.clone()]);
    }
    if known.in_repository {
        outer.places.push(Place { when: When::Repository, ..Place::read(".") });
    }
    let rest = arguments.get(outer.used..).unwrap_or_default();
    let Some((name, inner)) = rest.split_first() else {
        return tabled(words, outer, Operands::Text, given, bases, None);
    };
    let Some(subcommand) = name.known() else {
        let mut made = untabled(words, given, bases);
        made.floors.push(not_understood("a subcommand that only a running shell knows"));
        return made;
    };
    let Some(row) = known.rows.iter().find(|row| row.names.contains(&subcommand)) else {
        outer.places.extend(known.changed_by(subcommand));
        return unlisted(words, outer, rest, subcommand, given, bases);
    };
    let both = known.anywhere.then(|| row.options.and(&known.options));
    let mut found = read(both.as_ref().unwrap_or(&row.options), inner, Until::End, row.harmless);
    let looks = known
        .looks
        .iter()
        .find(|(names, _)| names.split(' ').any(|name| name == subcommand))
        .map_or(&[][..], |(_, looks)| looks);
    if name.text == "clippy" {
        found.drop_lints();
    }
    let does = found.operands.first().filter(|_| !looks.is_empty());
    if let Some(does) = does.filter(|does| does.known().is_none_or(|does| !looks.contains(&does))) {
        outer.places.extend(known.changed_by(subcommand));
        return unlisted(words, outer, rest, &does.text.clone(), given, bases);
    }
    found.options.splice(0..0, outer.options);
    found.powers.splice(0..0, outer.powers);
    found.places.splice(0..0, outer.places);
    found.hints.splice(0..0, outer.hints);
    found.floors.splice(0..0, outer.floors);
    found.lost |= outer.lost;
    found.directory = outer.directory.or(found.directory);
    tabled(words, found, row.operands, given, bases, Some(subcommand))
}

/// A subcommand that is not described: it may be anybody's own, and run anything. An allow must name it.
fn unlisted(
    words: &[Word],
    mut outer: Arguments,
    rest: &[Word],
    power: &str,
    mut given: Given,
    bases: &Bases,
) -> Command {
    let redirected = std::mem::take(&mut given.places);
    let (subcommand, inner) = rest.split_at(1.min(rest.len()));
    let own: Vec<Word> = words.iter().take(1).chain(inner).cloned().collect();
    let mut made = untabled(&own, given, bases);
    made.words.splice(1..1, subcommand.iter().map(Word::argument));
    shift(&mut made.places, subcommand.len());
    made.rest = words.iter().skip(1).map(Word::argument).collect();
    made.places.append(&mut outer.places);
    if let Some(directory) = &outer.directory {
        under(&mut made.places, directory);
    }
    made.places.extend(redirected);
    made.options.splice(0..0, outer.options);
    made.powers = outer.powers;
    made.powers.push(vec![power.to_owned()]);
    made.hints.append(&mut outer.hints);
    made.floors.append(&mut outer.floors);
    if outer.lost {
        made.bases = vec![None];
    }
    made
}

/// What no file is named for as the value of an option: `--watch=false`, `--jobs=4`.
pub(super) fn is_a_switch(value: &str) -> bool {
    matches!(value, "true" | "false") || (!value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The words that places stand in come later by as many.
fn shift(places: &mut [Place], by: usize) {
    places.iter_mut().filter_map(|place| place.word.as_mut()).for_each(|word| *word += by);
}

/// What may be paths in a text that nobody understands; a URL stays whole.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let is_url = text.contains("://");
    text.split(move |c| !is_url && matches!(c, '=' | ':' | '@' | ',')).filter(|part| !part.is_empty())
}

/// A command of a program that nobody has described: every word may be a path, and used in any way.
fn untabled(words: &[Word], given: Given, bases: &Bases) -> Command {
    let mut made = command(words, given, bases);
    for (at, word) in words.iter().enumerate().skip(1) {
        made.words.push(word.argument());
        let Some(text) = word.known() else {
            made.floors.push(not_understood("a word that only a running shell knows"));
            made.hints.push(word.text.clone());
            continue;
        };
        if !text.starts_with('-') {
            // `of=FILE`, `host:FILE`, `@FILE`.
            let named = std::iter::once(text).chain(parts(text).skip(1));
            made.places.extend(named.map(|part| Place { word: Some(at), ..Place::new(part, None) }));
            made.hints.push(text.to_owned());
        } else if text.len() > 1 {
            let name = text.split_once('=').map_or(text, |(name, _)| name);
            made.options.push(name.to_owned());
            if let Some((_, value)) = text.split_once('=').filter(|(_, value)| !is_a_switch(value)) {
                made.places.push(Place::new(value, None));
                made.places.extend(parts(value).skip(1).map(|part| Place::new(part, None)));
            } else if let Some(value) = text.get(2..).filter(|value| !text.starts_with("--") && value.contains('/')) {
                // `-v/:/host`.
                made.places.extend(parts(value).map(|part| Place::new(part, None)));
            }
            made.hints.push(text.to_owned());
        }
    }
    made
}

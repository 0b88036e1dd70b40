//! Simple commands: assignments, redirects and words, before anybody knows the program.

use brush_parser::ast::{self, AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem, IoRedirect};

use super::flow::{Bases, Flow};
use super::words::{Bindings, Met, Word, joined};
use super::{Argument, Command, Place, Script, not_understood};
use crate::facet::Floor;
use crate::record::Access;

/// Commands of one text; more are not looked at.
const MAX_COMMANDS: usize = 512;
/// Bytes of words that are looked at for one text, those that loops and wrappers repeat counted again.
const MAX_WALKED: usize = 1024 * 1024;
/// What a command costs of them, however short it is.
const LEAST: usize = 256;

/// A text while it is taken apart.
#[derive(Debug, Default)]
pub(super) struct Walk {
    commands: Vec<Command>,
    /// Whether some commands run at the same time, or again after others.
    pub unordered: bool,
    /// Bytes that were looked at.
    pub walked: usize,
    /// The command words as they stand in the text, for the second parser.
    pub names: Vec<String>,
    pub depth: usize,
    /// Variables of loops over plain words.
    pub bindings: Bindings,
    /// Whether the next command word was told of already, as that of what runs it.
    pub told: bool,
}

/// What a command is given besides its words.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub met: Met,
    pub places: Vec<Place>,
    pub hints: Vec<String>,
    pub floors: Vec<Floor>,
    /// Whether something but the caller's input is read from standard input.
    pub input: bool,
    /// Whether it is looked at in the readings of all shells.
    pub every_reading: bool,
}

impl Given {
    /// Whether a word before a redirect may be a part of it: `{fd}>file` opens the file, and sets a variable.
    fn names_descriptor(&mut self, raw: &str, before_redirect: bool) -> bool {
        let name = raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let is_one = before_redirect
            && name
                .is_some_and(|name| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        if is_one {
            self.floors.push(not_understood("a redirect that sets a variable"));
        }
        is_one
    }

    /// A file that is opened before the command runs.
    pub fn redirected(&mut self, raw: &str, accesses: &[Access]) {
        let word = self.met.word(raw);
        let Some(text) = word.known() else {
            self.floors.push(not_understood("a redirect to what only a running shell knows"));
            self.hints.push(word.text);
            return;
        };
        self.places.extend(accesses.iter().map(|access| Place::new(text, *access)));
    }
}

impl Walk {
    /// A shell text.
    pub fn text(text: &str) -> Script {
        let mut walk = Self::default();
        walk.script(text, &Bases::start());
        walk.done(text)
    }

    /// A command line that no shell reads.
    pub fn words(words: Vec<Word>) -> Script {
        let text = joined(&words);
        let mut walk = Self::default();
        walk.run(words, Given::default(), &Bases::start());
        walk.done(&text)
    }

    fn done(mut self, text: &str) -> Script {
        if self.is_spent() {
            let why = "the shell text does more than is looked at";
            self.commands.push(Command::not_understood(text, why));
        }
        Script { commands: self.commands, unordered: self.unordered }
    }

    /// Whether the text does more than is looked at: the walk goes no further, and the text is not understood.
    pub fn is_spent(&self) -> bool {
        self.walked > MAX_WALKED || self.commands.len() > MAX_COMMANDS
    }

    /// Counts what a command consists of; false where that is too much.
    pub fn spend(&mut self, words: &[Word]) -> bool {
        let bytes: usize = words.iter().map(|word| word.text.len() + 16).sum();
        self.walked += bytes.max(LEAST);
        !self.is_spent()
    }

    /// What a command is given before anything is read.
    pub fn given(&self) -> Given {
        Given { met: Met { bindings: self.bindings.clone(), ..Met::default() }, ..Given::default() }
    }

    pub fn push(&mut self, command: Command) {
        if !self.is_spent() {
            self.commands.push(command);
        }
    }

    /// Gives a variable its value; what it was before is gone.
    pub fn bind(&mut self, name: &str, value: Option<String>) {
        self.bindings.retain(|(known, _)| known != name);
        self.bindings.push((name.to_owned(), value));
    }

    /// A floor of the text as a whole.
    pub fn floor(&mut self, why: &str) {
        self.push(Command { bases: vec![None], floors: vec![not_understood(why)], ..Command::default() });
    }

    /// A simple command, in every way that shells read it: who runs the text is not known.
    pub fn simple(&mut self, simple: &ast::SimpleCommand, bases: &Bases) -> Flow {
        let told = self.told;
        let (flow, differs) = self.simple_as(simple, bases, false);
        if !differs {
            return flow;
        }
        let names = self.names.len();
        self.told = told;
        let (other, _) = self.simple_as(simple, bases, true);
        // The second parser sees the text once.
        self.names.truncate(names);
        Flow { ok: flow.ok.or(&other.ok), err: flow.err.or(&other.err) }
    }

    fn simple_as(&mut self, simple: &ast::SimpleCommand, bases: &Bases, posix: bool) -> (Flow, bool) {
        let mut given = Given { every_reading: true, ..self.given() };
        given.met.posix = posix;
        let mut words: Vec<Word> = Vec::new();
        for item in simple.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, _) => assign(assignment, &mut given),
                other => self.item(other, &mut words, &mut given, bases),
            }
        }
        let items = || simple.suffix.iter().flat_map(|suffix| &suffix.0);
        let redirects =
            |item: Option<&CommandPrefixOrSuffixItem>| matches!(item, Some(CommandPrefixOrSuffixItem::IoRedirect(_)));
        if let Some(name) = &simple.word_or_name {
            let timed = std::mem::take(&mut self.told);
            if !timed {
                self.names.push(name.value.clone());
            }
            // `time -- ls`: the end of the options of `time`.
            let ends_options = timed && name.value == "--";
            let is_descriptor = given.names_descriptor(&name.value, redirects(items().next()));
            if !ends_options && !is_descriptor {
                words.push(given.met.word(&name.value));
            }
        }
        for (at, item) in items().enumerate() {
            match item {
                CommandPrefixOrSuffixItem::Word(word)
                    if given.names_descriptor(&word.value, redirects(items().nth(at + 1))) => {}
                item => self.item(item, &mut words, &mut given, bases),
            }
        }
        let apart = |item: &CommandPrefixOrSuffixItem| {
            matches!(item, CommandPrefixOrSuffixItem::IoRedirect(IoRedirect::OutputAndError(..)))
        };
        let mut more = items().skip_while(|item| !apart(item)).skip(1);
        if more.any(|item| !matches!(item, CommandPrefixOrSuffixItem::IoRedirect(_))) {
            given.floors.push(not_understood("words after `&>`, which other shells read as a command"));
        }
        let apart = simple.prefix.iter().flat_map(|prefix| &prefix.0).chain(items()).any(apart);
        let differs = given.met.differs;
        let flow = self.finish(words, given, bases);
        // Other shells read `&>` as `&`: the command runs in a shell of its own, and what follows is another one.
        let flow = if apart { Flow { ok: flow.ok.or(bases), err: flow.err.or(bases) } } else { flow };
        (flow, differs)
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, words: &mut Vec<Word>, given: &mut Given, bases: &Bases) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                given.input |= matches!(redirect, IoRedirect::HereDocument(..) | IoRedirect::HereString(..));
                self.redirect(redirect, given, bases);
            }
            CommandPrefixOrSuffixItem::Word(word) => given.met.words(&word.value, words),
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                if matches!(assignment.value, AssignmentValue::Array(_))
                    || matches!(assignment.name, AssignmentName::ArrayElementName(..))
                {
                    assign(assignment, given);
                }
                words.push(given.met.word(&word.value));
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.list(&subshell.list, bases);
                words.push(Word::unknown("<(…)"));
            }
        }
    }

    /// Judges what a command consists of, and what runs while it is put together.
    pub fn finish(&mut self, words: Vec<Word>, mut given: Given, bases: &Bases) -> Flow {
        for script in std::mem::take(&mut given.met.scripts) {
            self.substitution(&script, bases);
        }
        given.floors.append(&mut given.met.floors);
        if given.met.differs && !given.every_reading {
            given.floors.push(not_understood("`$'…'`, which not all shells read in one way"));
        }
        if words.is_empty() && given.places.is_empty() && given.floors.is_empty() {
            return Flow::same(bases);
        }
        self.run(words, given, bases)
    }
}

/// What a command line comes to: a command with its places, in each directory it may run in.
pub(super) fn command(words: &[Word], given: Given, bases: &Bases) -> Command {
    let rest: Vec<Argument> = words.iter().skip(1).map(Word::argument).collect();
    Command {
        words: words.iter().take(1).map(Word::argument).collect(),
        rest,
        places: given.places,
        hints: given.hints,
        bases: bases.all().to_vec(),
        floors: given.floors,
        ..Command::default()
    }
}

/// Where relative paths start after an option such as `-C`; the directory itself knows where it starts.
pub(super) fn under(places: &mut [Place], directory: &str) {
    for place in places.iter_mut().filter(|place| place.below.is_none()) {
        place.below = Some(directory.to_owned());
    }
}

/// An assignment before a command, or without one.
fn assign(assignment: &ast::Assignment, given: &mut Given) {
    let name = match &assignment.name {
        AssignmentName::VariableName(name) => name.as_str(),
        AssignmentName::ArrayElementName(_, index) => {
            given.met.arithmetic(index);
            ""
        }
    };
    match &assignment.value {
        AssignmentValue::Scalar(word) => {
            given.met.word(&word.value);
        }
        AssignmentValue::Array(elements) => {
            for (key, value) in elements {
                key.iter().for_each(|key| given.met.arithmetic(&key.value));
                given.met.word(&value.value);
            }
        }
    }
    if !is_harmless_variable(name) {
        given.floors.push(not_understood(format!("sets the variable `{name}`, which can change what runs")));
    }
}

/// Whether no program finds what it runs, reads or writes by this variable.
pub(in crate::facet) fn is_harmless_variable(name: &str) -> bool {
    const NAMES: [&str; 17] = [
        "LANG",
        "LANGUAGE",
        "TZ",
        "NO_COLOR",
        "FORCE_COLOR",
        "CLICOLOR",
        "CLICOLOR_FORCE",
        "CARGO_TERM_COLOR",
        "TERM",
        "COLUMNS",
        "LINES",
        "CI",
        "RUST_BACKTRACE",
        "RUST_LOG",
        "NODE_ENV",
        "DEBIAN_FRONTEND",
        "SOURCE_DATE_EPOCH",
    ];
    const LOCALES: [&str; 8] =
        ["LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LC_MONETARY", "LC_NUMERIC", "LC_TIME", "LC_PAPER"];
    NAMES.contains(&name) || LOCALES.contains(&name)
}

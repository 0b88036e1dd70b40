//! Commands: shell texts and command lines, and the paths they name.

use std::path::Path;

use super::*;
use crate::facet::shell::{self, Command, Place, Script, When, is_harmless_variable};
use crate::facet::{CommandFacet, Part};
use crate::pattern::{Location, is_invisible};

/// Facets of a call beyond which a command's paths are looked at by their names only: each is looked up on disk, and
/// judged by every rule.
const MAX_FACETS: usize = 512;
/// Of them, those that go on below a folder or take it away: each is walked for up to 50 ms.
const MAX_WALKED: usize = 64;
/// Texts of a call that are tried as paths by their names.
const MAX_HINTS: usize = 1_024;

/// A place, as a command of a text uses it.
struct Used {
    /// The number of the command's facet.
    command: usize,
    word: Option<usize>,
    links: bool,
    places: Vec<Location>,
}

impl Used {
    fn of(command: usize, place: &Place, facet: &Facet) -> Option<Self> {
        let FacetKind::Path(path) = &facet.kind else { return None };
        let places = std::iter::once(&path.lexical).chain(&path.physical).cloned().collect();
        Some(Self { command, word: place.word, links: place.may_hold_links(), places })
    }

    fn lies_in(&self, other: &Self) -> bool {
        let within = |at: &Location| {
            other.places.iter().any(|above| at.folded().components.starts_with(&above.folded().components))
        };
        self.places.iter().any(within)
    }
}

impl<'a> Call<'a> {
    /// A command; `list`: it may be given as its words.
    pub(super) fn command_argument(&mut self, pointer: &Pointer, list: bool) -> Result<(), Malformed> {
        for selected in self.select(pointer) {
            let (at, value) = match selected {
                Selected::Found(at, value) => (at, Some(value)),
                Selected::TooShallow(at, _) => (at, None),
            };
            match value.map(|value| (&value.kind, words(value))) {
                Some((Kind::String(text), _)) => self.shell_text(&at, text)?,
                Some((Kind::Array(_), Some(words))) if list || self.tool.heuristic => {
                    // Servers that run lists have taken such a word for a pipe or a redirect.
                    let operator = |word: &String| word.trim() != word || word.is_empty() || word.contains('|');
                    if words
                        .iter()
                        .any(|word| operator(word) || [";", "&", "&&", "<", ">", ">>"].contains(&word.as_str()))
                    {
                        let why = "a word that some servers read as a part of a shell text";
                        self.floors.push(Floor::because(FloorWhy::Shell, why));
                    }
                    self.command_words(&at, &words)?;
                }
                _ if self.tool.heuristic => {}
                Some((Kind::Array(_), _)) if !list => {
                    let what = "a command given as a list, which the tool's schema does not declare".to_owned();
                    return Err(Malformed { pointer: at, what });
                }
                _ => {
                    let what = if list {
                        "a command must be a string or a list of strings"
                    } else {
                        "a command must be a string"
                    };
                    return Err(Malformed { pointer: at, what: what.to_owned() });
                }
            }
        }
        Ok(())
    }

    /// A text that runs, but that no shell we know reads.
    pub(super) fn code_argument(&mut self, pointer: &Pointer) {
        for selected in self.select(pointer) {
            let (Selected::Found(at, value) | Selected::TooShallow(at, value)) = selected;
            let text = scalar(value).or_else(|| words(value).map(|words| words.join(" "))).unwrap_or_default();
            self.commands(&at, shell::not_read(&text, "code that is not read here"));
        }
    }

    /// The command line that the catalogue puts together.
    pub(super) fn command_line(&mut self) -> Result<(), Malformed> {
        let Some(argv) = &self.tool.argv else { return Ok(()) };
        let mut words: Vec<String> = Vec::new();
        for word in argv {
            let Ok(pointer) = word.parse::<Pointer>() else {
                words.push(word.clone());
                continue;
            };
            let mut plain = true;
            for selected in self.select(&pointer) {
                let (Selected::Found(at, value) | Selected::TooShallow(at, value)) = selected;
                match scalar(value) {
                    Some(text) => words.push(text),
                    None => plain &= value.kind == Kind::Null,
                }
                // A list was due, or a name became part of the command line, in a way that is not known.
                plain &= at.matches('/').count() == pointer.0.len();
                plain &= at.rsplit('/').next().is_none_or(|key| !word.ends_with('*') || key.parse::<usize>().is_ok());
            }
            if !plain {
                let why = format!("a command line put together from `{word}` in a form that is not known");
                self.floors.push(Floor::because(FloorWhy::Shell, why));
            }
        }
        self.command_words("", &words)
    }

    pub(super) fn shell_text(&mut self, at: &str, text: &str) -> Result<(), Malformed> {
        self.check_characters(at, text)?;
        let script = shell::script(text);
        self.commands(at, script);
        Ok(())
    }

    fn command_words(&mut self, at: &str, words: &[String]) -> Result<(), Malformed> {
        for word in words {
            self.check_characters(at, word)?;
        }
        let script = shell::argv(words);
        self.commands(at, script);
        Ok(())
    }

    fn check_characters(&mut self, at: &str, text: &str) -> Result<(), Malformed> {
        if text.contains('\0') {
            return Err(Malformed { pointer: at.to_owned(), what: "a NUL in a command".to_owned() });
        }
        if text.chars().any(|c| is_invisible(c) && !matches!(c, '\n' | '\t')) {
            self.floors.push(Floor::new(FloorWhy::Invisible));
        }
        Ok(())
    }

    fn commands(&mut self, at: &str, script: Script) {
        if self.space.has_another_shell() {
            self.floors.push(Floor::because(FloorWhy::Shell, "another shell than those that are understood reads it"));
        }
        self.surroundings(script.commands.iter().any(|command| !command.tabled));
        if script.commands.is_empty() {
            // Blanks and comments: nothing runs, and still it is a command that is judged.
            self.add(FacetKind::Command(Arc::default()), Vec::new());
        }
        let first = self.facets.len();
        // What an earlier command of the text writes is there when a later one runs.
        let mut still = true;
        let mut used: Vec<Used> = Vec::new();
        for command in script.commands {
            let only_reads = command.tabled && command.places.iter().all(|place| place.access == Some(Access::Read));
            self.command(at, command, still, &mut used);
            still &= only_reads;
        }
        self.beside_links(&used, script.unordered);
        self.run_in_bases(first);
    }

    /// The directory that the call chooses is where its first command runs: what covers that command there covers it.
    fn run_in_bases(&mut self, first: usize) {
        let Some(Facet { kind: FacetKind::Command(command), .. }) = self.facets.get(first) else { return };
        let command = Arc::clone(command);
        let count = std::mem::take(&mut self.bases).min(first);
        let mut bases: Vec<Facet> = self.facets.drain(..count).collect();
        for facet in &mut bases {
            if let FacetKind::Path(path) = &mut facet.kind {
                path.command = Some(Arc::clone(&command));
                path.part = Some(Part::Base);
            }
        }
        let behind = first - count + 1;
        self.facets.splice(behind..behind, bases);
    }

    /// A place that is looked up now may lead elsewhere by then: at or below what another command of the text makes, there
    /// may be a link.
    fn beside_links(&mut self, used: &[Used], unordered: bool) {
        for made in used.iter().filter(|made| made.links) {
            for later in used.iter().filter(|later| later.command > made.command || unordered) {
                if later.command == made.command || !later.lies_in(made) || self.is_same_subcommand(later, made) {
                    continue;
                }
                let floor =
                    Floor::because(FloorWhy::Shell, "a path through what another command makes, which may be a link");
                if let Some(own) = self.facets.get_mut(later.command)
                    && !own.floors.contains(&floor)
                {
                    own.floors.push(floor);
                }
            }
        }
    }

    /// Whether two words can only be the same subcommand of the same program: `gh pr list; gh pr status`.
    fn is_same_subcommand(&self, a: &Used, b: &Used) -> bool {
        let words = |used: &Used| match self.facets.get(used.command).map(|facet| &facet.kind) {
            Some(FacetKind::Command(command)) => command.words.get(..=used.word?).map(<[_]>::to_vec),
            _ => None,
        };
        let plain =
            |word: &shell::Argument| word.known && !word.text.starts_with('-') && !word.text.contains(['/', '.']);
        words(a).is_some_and(|words_of_a| words_of_a.iter().all(plain) && words(b) == Some(words_of_a))
    }

    /// What the call gives to its commands beside their words.
    fn surroundings(&mut self, untabled: bool) {
        let of = |wanted: Argument| {
            let marked = self.tool.arguments.iter().filter(move |(_, argument)| *argument == wanted);
            marked.flat_map(|(pointer, _)| self.select(pointer)).filter_map(|selected| match selected {
                Selected::Found(_, value) => Some(value),
                Selected::TooShallow(..) => None,
            })
        };
        let named = of(Argument::Env).flat_map(Value::members).find(|member| !is_harmless_variable(&member.key));
        let odd = of(Argument::Env).any(|value| !matches!(value.kind, Kind::Object(_) | Kind::Null));
        let input = of(Argument::Stdin).any(|value| value.kind != Kind::Null);
        let mut floor = |why: String| self.floors.push(Floor::because(FloorWhy::Shell, why));
        if let Some(member) = named {
            floor(format!("sets the variable `{}`, which can change what runs", member.key));
        }
        if odd {
            floor("variables in a form that is not known".to_owned());
        }
        if input && untabled {
            floor("input to a program that may run what it reads".to_owned());
        }
    }

    /// `still`: nothing was written since the call was made. What it uses is added to `used`.
    fn command(&mut self, at: &str, command: Command, still: bool, used: &mut Vec<Used>) {
        let start = self.cwd.as_ref().map(|cwd| cwd.text().to_owned()).unwrap_or_default();
        let mut floors = command.floors;
        floors.extend(self.guessing.then(|| guessed("a command")));
        let mut reads: Vec<(Option<Plain>, Place)> = Vec::new();
        let (mut cwd, mut into) = (None, Vec::new());
        for base in &command.bases {
            let directory = base.as_ref().map(|base| below(&start, base));
            if directory.is_none() && command.places.iter().any(|place| !place.text.starts_with('/')) {
                floors.push(Floor::because(FloorWhy::Shell, "a path in a directory that only a running shell knows"));
            }
            if let Some(directory) = &directory {
                cwd = self.directory(directory);
            }
            for place in &command.places {
                if place.text == "/dev/null" || place.text.is_empty() {
                    continue;
                }
                let inner = place.below.as_deref().unwrap_or_default();
                let base = match &directory {
                    Some(directory) => below(directory, inner),
                    None if place.text.starts_with('/') || inner.starts_with('/') => inner.to_owned(),
                    None => continue,
                };
                if place.when == When::Repository {
                    floors.extend(self.repository(&base, still));
                    continue;
                }
                let there = |text: &str| self.is_there(&base, text).filter(|_| still);
                let is_touched = match &place.when {
                    When::Always | When::Repository => true,
                    When::There => there(&place.text) != Some(false),
                    When::Seen => self.is_there(&base, &place.text) == Some(true),
                    When::Unless { all_of, one_of } => {
                        let seen = |text: &String| there(text) == Some(true);
                        !all_of.iter().all(seen) || !all_of.iter().chain(one_of).any(seen)
                    }
                };
                if !is_touched {
                    continue;
                }
                let base = match place.top.then(|| self.top_of(&base)) {
                    Some(Some(top)) => top,
                    Some(None) if !base.is_empty() => {
                        let why = "a path from the top of a repository, where nobody can look for it";
                        floors.push(Floor::because(FloorWhy::Shell, why));
                        base
                    }
                    _ => base,
                };
                if place.into && !self.is_folder(&base) {
                    into.push(below(&base, &place.text));
                    continue;
                }
                match self.space.plain(&base) {
                    _ if base.is_empty() => reads.push((None, place.clone())),
                    Ok(plain) => reads.push((Some(plain), place.clone())),
                    Err(what) => floors.push(Floor::because(FloorWhy::Spelling, what)),
                }
            }
        }
        if command.bases.iter().any(Option::is_none) {
            cwd = None;
        }
        let facet = Arc::new(CommandFacet {
            words: command.words,
            rest: command.rest,
            options: command.options,
            powers: command.powers,
            tabled: command.tabled,
            unread: command.unread,
            cwd,
            ..CommandFacet::default()
        });
        let index = self.facets.len();
        self.add(FacetKind::Command(Arc::clone(&facet)), Vec::new());
        for hint in command.hints.iter().chain(&into) {
            self.hint(at, hint);
        }
        for (base, place) in reads {
            let walked = place.recursive || place.access == Some(Access::Delete);
            if self.facets.len() >= MAX_FACETS || (walked && self.walked >= MAX_WALKED) {
                floors.push(Floor::because(FloorWhy::Shell, "names more paths than are looked up"));
                let text = base.map_or_else(|| place.text.clone(), |base| below(base.text(), &place.text));
                self.hint(at, &text);
                continue;
            }
            self.walked += usize::from(walked);
            match self.place(at, &facet, base.as_ref(), &place) {
                Ok(()) => used.extend(self.facets.last().and_then(|facet| Used::of(index, &place, facet))),
                Err(floor) => floors.push(floor),
            }
        }
        if let Some(own) = self.facets.get_mut(index) {
            own.floors.extend(floors);
        }
    }

    /// A path of a command.
    fn place(
        &mut self,
        at: &str,
        command: &Arc<CommandFacet>,
        base: Option<&Plain>,
        place: &Place,
    ) -> Result<(), Floor> {
        let text = place.text.as_str();
        if text.contains("://") {
            let odd = |what| Floor::because(FloorWhy::OddUrl, what);
            return self.url_of_command(at, command, text).map_err(odd);
        }
        if file_rest(text).is_some() {
            return Err(Floor::because(FloorWhy::Spelling, "a path that reads like a `file:` URI"));
        }
        let plain = self.space.plain(text).map_err(|what| Floor::because(FloorWhy::Spelling, what))?;
        let used = Use { access: place.access, recursive: place.recursive, keep_last: place.keep_last };
        self.add_path(at, text, &plain, base, used);
        self.as_sent(self.guessing.then(|| guessed("a command")));
        if let Some(Facet { kind: FacetKind::Path(path), floors }) = self.facets.last_mut() {
            if place.pattern && path.physical.is_empty() {
                let why = "a pattern, where nobody can look what it stands for";
                floors.push(Floor::because(FloorWhy::Shell, why));
            }
            path.command = Some(Arc::clone(command));
            path.part = place.word.map(Part::Word);
        }
        Ok(())
    }

    /// A text that might lead to a guarded path.
    pub(super) fn hint(&mut self, at: &str, text: &str) {
        if self.strays.len() >= MAX_HINTS {
            let floor = Floor::because(FloorWhy::Shell, "more texts that may be paths than are looked at");
            if self.floors.last() != Some(&floor) {
                self.floors.push(floor);
            }
            return;
        }
        let texts = stray::candidates(text);
        let locations: Vec<Location> = texts.iter().flat_map(|text| self.space.guess(text, &[])).collect();
        if !locations.is_empty() {
            self.strays.push(Stray { pointer: at.to_owned(), sent: text.to_owned(), locations });
        }
    }

    /// Whether a folder stands there, as far as anybody can look.
    fn is_folder(&self, text: &str) -> bool {
        let Ok(plain) = self.space.plain(text) else { return true };
        let physical = self.space.read(&plain, None, false).physical;
        physical.iter().any(|at| Path::new(&at.to_string()).is_dir())
    }

    /// Where a command runs.
    fn directory(&self, text: &str) -> Option<Location> {
        let plain = self.space.plain(if text.is_empty() { "." } else { text }).ok()?;
        let reading = self.space.read(&plain, None, false);
        Some(reading.physical.into_iter().next().unwrap_or(reading.lexical))
    }
}

pub(super) fn below(base: &str, path: &str) -> String {
    match (base, path) {
        ("", path) => path.to_owned(),
        (base, "") => base.to_owned(),
        (_, path) if path.starts_with('/') => path.to_owned(),
        (base, path) => format!("{base}/{path}"),
    }
}

/// The words of a list of texts.
fn words(value: &Value) -> Option<Vec<String>> {
    match &value.kind {
        Kind::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

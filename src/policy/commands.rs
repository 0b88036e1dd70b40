//! Commands as rules see them: the words they start with, their options, and what an allow covers of them (policy.md,
//! "What an allow covers in a shell text").

use std::sync::Arc;

use super::fields::{Fields, Target, Thing, Truth};
use super::judge::target;
use super::model::Rule;
use crate::facet::{Argument, CommandFacet, Facet, FacetKind, Part, canonical, names};
use crate::pattern::{PatternError, Side, fold, is_invisible};
use crate::record::{Access, Verdict};

/// A command, and the facets among which its paths are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Running<'a> {
    pub command: &'a Arc<CommandFacet>,
    pub facets: &'a [Facet],
}

impl<'a> Running<'a> {
    /// The URLs, or the paths, that the command names: they stand between it and the next one.
    pub fn named(self, urls: bool) -> impl Iterator<Item = Target<'a>> {
        let own = move |facet: &&Facet| {
            let command = match &facet.kind {
                FacetKind::Path(path) if !urls && path.part != Some(Part::Base) => path.command.as_ref(),
                FacetKind::Url(url) if urls => url.command.as_ref(),
                _ => None,
            };
            command.is_some_and(|command| Arc::ptr_eq(command, self.command))
        };
        let is_it = move |facet: &&Facet| match &facet.kind {
            FacetKind::Command(command) => !Arc::ptr_eq(command, self.command),
            _ => true,
        };
        let following = self.facets.iter().skip_while(is_it).skip(1);
        let up_to_next = following.take_while(|facet| !matches!(facet.kind, FacetKind::Command(_)));
        up_to_next.filter(own).map(move |facet| target(facet, self.facets))
    }
}

/// The words that a command starts with.
#[derive(Debug)]
pub(super) struct WordsPattern {
    words: Vec<String>,
    /// Folded, the program without its folder.
    folded: Vec<String>,
    /// The same with the name of the subcommand that stands for all it has, if it has several.
    canonical: Option<Vec<String>>,
    /// The names in each of those.
    names: Vec<Vec<String>>,
}

impl WordsPattern {
    /// Reads `git push`.
    ///
    /// # Errors
    /// No word, an option, or what only a shell understands.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let wrong = |what: &str, help: &str| PatternError { what: what.into(), help: Some(help.into()) };
        if words.is_empty() {
            return Err(wrong(
                "an empty command matches nothing",
                "write the words it starts with, such as `git push`",
            ));
        }
        if words.iter().skip(1).any(|word| word.starts_with('-')) {
            return Err(wrong(
                "an option among the words of a command",
                "options may stand anywhere: name them in `option`",
            ));
        }
        if text.contains(['|', '&', ';', '<', '>', '$', '`', '"', '\'', '\\', '*', '?'])
            || text.chars().any(is_invisible)
        {
            return Err(wrong(
                "a command is named by its plain words",
                "write the words it starts with; what a shell puts around them is taken apart before",
            ));
        }
        let folded: Vec<String> =
            words.iter().enumerate().map(|(at, word)| if at == 0 { program(word) } else { fold(word) }).collect();
        let names = folded.iter().map(|word| names(word)).collect();
        let canonical = folded.split_first().and_then(|(program, words)| {
            let words: Vec<Argument> = words.iter().map(|word| Argument { text: word.clone(), known: true }).collect();
            Some(canonical(program, &words)?.into_iter().map(|word| word.text).collect())
        });
        Ok(Self { words, folded, canonical, names })
    }

    /// How many they are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// The program, folded and without its folder.
    pub fn program(&self) -> Option<&str> {
        self.folded.first().map(String::as_str)
    }

    /// A name that the program has; none where it has none.
    pub fn name(&self) -> Option<&str> {
        self.names.first()?.first().map(String::as_str)
    }

    /// The words as they were written.
    pub fn text(&self) -> String {
        self.words.join(" ")
    }
}

/// A program as what tightens sees it: without its folder, and without what Windows leaves out.
pub(super) fn program(word: &str) -> String {
    let name = fold(word.rsplit(['/', '\\']).next().unwrap_or(word));
    if is_test(&name) {
        return "test".to_owned();
    }
    name.strip_suffix(".exe").map_or(name.clone(), str::to_owned)
}

/// Whether a command starts with these words.
pub(super) fn starts_with(pattern: &WordsPattern, running: Option<Running<'_>>, side: Side) -> Truth {
    let Some(Running { command, .. }) = running else { return Truth::False };
    if side == Side::Exact {
        // As it is understood, or just as it is written (`cargo +nightly check`).
        let written = command.words.iter().take(1).chain(&command.rest);
        return (command.unread.is_none() && (begin(command.words.iter(), pattern) || begin(written, pattern))).into();
    }
    if let Some(text) = &command.unread {
        return mentions(text, pattern).into();
    }
    let Some(((first, words), (own, more))) = command.words.split_first().zip(pattern.folded.split_first()) else {
        return Truth::False;
    };
    if program(&first.text) != *own {
        return Truth::False;
    }
    let is_option = |word: &Argument| word.text.starts_with('-');
    // As it is written, and by the name that stands for all that the subcommand has.
    let holds = |words: &[Argument], skips: &dyn Fn(&Argument) -> bool| {
        let (before, after) = words.split_at(words.iter().take_while(|word| skips(word)).count());
        let renamed = canonical(own, after).map(|after| [before, &after].concat());
        let wanted = pattern.canonical.as_deref().unwrap_or(more);
        in_order(words, more, skips).max(in_order(renamed.as_deref().unwrap_or(words), wanted, skips))
    };
    let understood = holds(words, &|_| false);
    if !may_run_words(command) {
        return understood;
    }
    // What an unknown option takes may have been read as a word, or a word as what it takes.
    understood.max(holds(&command.rest, &is_option))
}

/// Whether known words begin with just those of a pattern.
fn begin<'a>(words: impl Iterator<Item = &'a Argument>, pattern: &WordsPattern) -> bool {
    let text = |word: &'a Argument| word.known.then_some(word.text.as_str());
    let mut own = pattern.words.iter();
    let mut words = words.take(pattern.words.len());
    let program = words.next().and_then(text).zip(own.next());
    program.is_some_and(|(given, named)| given == named || (named == "test" && is_test(given)))
        && words.map(text).eq(own.map(|word| Some(word.as_str())))
}

/// Whether a program is `test` by another name.
fn is_test(program: &str) -> bool {
    matches!(program, "[" | "[[")
}

/// Whether words begin with those of a pattern, widely; those that `skips` names are passed over, each with the next if need be.
fn in_order(words: &[Argument], pattern: &[String], skips: impl Fn(&Argument) -> bool) -> Truth {
    let mut wanted = pattern.iter().peekable();
    let mut after_skipped = false;
    for word in words {
        let Some(next) = wanted.peek() else { break };
        if !word.known {
            return Truth::Unknown;
        }
        if means(&word.text, next) {
            wanted.next();
            after_skipped = false;
        } else if skips(word) {
            if word.text.split_once('=').is_some_and(|(_, value)| means(value, next)) {
                wanted.next();
            }
            after_skipped = true;
        } else if word.text.contains(['/', ',']) {
            // `pod/a secret/b`: each may be of its own kind.
        } else if !std::mem::take(&mut after_skipped) {
            return Truth::False;
        }
    }
    wanted.peek().is_none().into()
}

/// Whether a word may stand for that of a pattern: `secret/db`, `secrets.v1.` and `pods,secrets` are secrets, and so is
/// what lies below them in `/api/v1/secrets`.
fn means(word: &str, wanted: &str) -> bool {
    let word = fold(word);
    let is_it = |part: &str| part == wanted || part.split('.').next() == Some(wanted);
    let below = |part: &str| {
        let depth = if part.starts_with('/') { usize::MAX } else { 1 };
        part.split('/').take(depth).any(is_it)
    };
    word == wanted || word.split(',').any(below)
}

/// Whether all words of a pattern stand in a text that nobody understands.
fn mentions(text: &str, pattern: &WordsPattern) -> bool {
    let parts = names(text);
    let stands = |name: &String| parts.iter().any(|part| part == name || part.strip_suffix(".exe") == Some(name));
    pattern.names.iter().flatten().all(stands)
}

/// Whether a command has an option.
pub(super) fn has_option(option: &str, running: Option<Running<'_>>, side: Side) -> Truth {
    let Some(Running { command, .. }) = running else { return Truth::False };
    if command.options.iter().any(|given| given == option) {
        return Truth::True;
    }
    if side == Side::Exact {
        return Truth::False;
    }
    if let Some(text) = &command.unread {
        return text.contains(option).into();
    }
    let short = option.strip_prefix('-').filter(|rest| rest.chars().count() == 1);
    let may_be = |given: &String| {
        let abbreviated = given.len() > 2 && given.starts_with("--") && option.starts_with(given.as_str());
        let bundled = given.starts_with('-') && !given.starts_with("--") && short.is_some_and(|c| given.contains(c));
        abbreviated || (bundled && !command.tabled)
    };
    if command.options.iter().any(may_be) {
        return Truth::True;
    }
    if command.seen().dynamic { Truth::Unknown } else { Truth::False }
}

/// Whether an allow covers a command, or a path of one, besides that its fields hold.
pub(super) fn covers(fields: &Fields, target: Target<'_>) -> bool {
    let Some(Running { command, .. }) = target.running else { return true };
    match target.thing {
        Thing::Path { access, part, .. } if fields.path.is_empty() => {
            // A word that the rule itself names is what the rule is about, whatever it may be besides.
            let named = |at: usize| patterns_of(fields, target.running).any(|pattern| pattern.words.len() > at);
            (access == Some(Access::Read) && target.thing.is_inside())
                || matches!(part, Some(Part::Word(at)) if named(at))
        }
        // Whom a command reaches is never covered by its words alone.
        Thing::Remote { .. } => !fields.host.is_empty(),
        Thing::Path { .. } | Thing::Sql(_) | Thing::Other => true,
        Thing::Command => {
            command.powers.iter().all(|names| names.iter().any(|name| is_named(fields, name, target.running)))
        }
    }
}

/// Whether a rule names a power: in `option`, or, if it is a subcommand, among the words of `command`.
fn is_named(fields: &Fields, power: &String, running: Option<Running<'_>>) -> bool {
    fields.option.contains(power)
        || patterns_of(fields, running).any(|pattern| pattern.words.iter().skip(1).any(|word| word == power))
}

/// The entries of `command` that a command starts with, word by word.
fn patterns_of<'a>(fields: &'a Fields, running: Option<Running<'a>>) -> impl Iterator<Item = &'a WordsPattern> {
    fields.command.iter().filter(move |pattern| starts_with(pattern, running, Side::Exact) == Truth::True)
}

/// Whether a command may run what its words name: its program is not described, or it is given an option or an operand
/// that runs programs.
pub(super) fn may_run_words(command: &CommandFacet) -> bool {
    !command.tabled || !command.powers.is_empty()
}

/// Whether a rule denies a program that stands among the words of a command.
pub(super) fn denies_a_word(rule: &Rule, command: &CommandFacet) -> bool {
    let stands = |name: &String| command.seen().names.contains(name);
    let holds = |pattern: &WordsPattern| pattern.names.first().is_some_and(|names| names.iter().all(stands));
    rule.verdict == Verdict::Deny && rule.fields.command.iter().any(holds)
}

/// Reads an entry of `option`.
///
/// # Errors
/// What is no option.
pub(super) fn option(text: &str) -> Result<String, PatternError> {
    let name = text.strip_prefix("--").or_else(|| text.strip_prefix('-')).unwrap_or(text);
    if name.is_empty() || text.contains(|c: char| c.is_whitespace() || c == '=' || is_invisible(c)) {
        return Err(PatternError {
            what: "no option has this name".into(),
            help: Some("write it as it is given, without its value: `-c`, `--output`".into()),
        });
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn argument(text: &str) -> Argument {
        Argument { text: text.trim_start_matches('$').to_owned(), known: !text.starts_with('$') }
    }

    fn command(words: &[&str], rest: &[&str], tabled: bool) -> Arc<CommandFacet> {
        let all = |words: &[&str]| words.iter().copied().map(argument).collect();
        Arc::new(CommandFacet { words: all(words), rest: all(rest), tabled, ..CommandFacet::default() })
    }

    fn holds(pattern: &str, command: &Arc<CommandFacet>, side: Side) -> Truth {
        starts_with(&WordsPattern::parse(pattern).unwrap(), Some(Running { command, facets: &[] }), side)
    }

    #[test]
    fn an_allow_takes_the_words_as_they_are() {
        let push = command(&["git", "push", "origin"], &["push", "origin"], true);
        assert_eq!(holds("git push", &push, Side::Exact), Truth::True);
        assert_eq!(holds("git", &push, Side::Exact), Truth::True);
        for near in ["gi", "Git push", "git pus", "git push origin main", "git origin", "/usr/bin/git"] {
            assert_eq!(holds(near, &push, Side::Exact), Truth::False, "{near}");
        }
        assert_eq!(holds("git push", &command(&["git", "$push"], &["$push"], true), Side::Exact), Truth::False);
    }

    #[test]
    fn a_deny_takes_what_might_be_meant() {
        for words in [["/bin/rm", "x"], ["RM", "x"], ["rm.exe", "x"]] {
            assert_eq!(holds("rm", &command(&words, &["x"], true), Side::Wide), Truth::True, "{words:?}");
        }
        let hidden = command(&["tool", "-n", "x", "delete"], &["-n", "x", "delete"], false);
        assert_eq!(holds("tool delete", &hidden, Side::Wide), Truth::True);
        assert_eq!(holds("tool delete", &hidden, Side::Exact), Truth::False);
        for secrets in ["secret/db", "pods,secret", "secret.v1.apps", "pod/a,secret/b", "/api/v1/secret", "Secret/x"] {
            let words = ["kubectl", "get", secrets];
            assert_eq!(
                holds("kubectl get secret", &command(&words, &words[1..], true), Side::Wide),
                Truth::True,
                "{secrets}"
            );
            assert_eq!(
                holds("kubectl get secret", &command(&words, &words[1..], true), Side::Exact),
                Truth::False,
                "{secrets}"
            );
        }
        let raw = command(&["kubectl", "get"], &["get", "--raw=/api/v1/secret"], false);
        assert_eq!(holds("kubectl get secret", &raw, Side::Wide), Truth::True);
        let two = ["kubectl", "get", "pod/a", "secret/b"];
        assert_eq!(holds("kubectl get secret", &command(&two, &two[1..], true), Side::Wide), Truth::True);
        let other = ["kubectl", "get", "pods/secret-free"];
        assert_eq!(holds("kubectl get secret", &command(&other, &other[1..], true), Side::Wide), Truth::False);
        let data = command(&["git", "commit", "push"], &["commit", "push"], true);
        assert_eq!(holds("git push", &data, Side::Wide), Truth::False);
        assert_eq!(holds("git push", &command(&["git", "$x"], &["$x"], true), Side::Wide), Truth::Unknown);
        assert_eq!(holds("rm", &command(&["rmdir"], &[], true), Side::Wide), Truth::False);
    }

    #[test]
    fn a_deny_knows_every_name_of_a_subcommand() {
        for (pattern, words) in [
            ("git add", ["git", "stage", "x"]),
            ("git stage", ["git", "add", "x"]),
            ("cargo run", ["cargo", "r", "x"]),
            ("npm install", ["npm", "i", "x"]),
            ("npm rm", ["npm", "un", "x"]),
            ("docker rm", ["docker", "container", "rm"]),
            ("docker container", ["docker", "container", "rm"]),
        ] {
            let written = command(&words, &words[1..], true);
            assert_eq!(holds(pattern, &written, Side::Wide), Truth::True, "{pattern}");
        }
        assert_eq!(holds("git add", &command(&["git", "stage"], &["stage"], true), Side::Exact), Truth::False);
        assert_eq!(holds("docker rmi", &command(&["docker", "rm"], &["rm"], true), Side::Wide), Truth::False);
        let hidden = command(&["docker", "--x", "container", "rm"], &["--x", "container", "rm"], false);
        assert_eq!(holds("docker rm", &hidden, Side::Wide), Truth::True);
    }

    #[test]
    fn what_is_not_understood_is_searched_for_denied_words() {
        let unread = Arc::new(CommandFacet { unread: Some("ls; r''m -rf x".into()), ..CommandFacet::default() });
        assert_eq!(holds("rm", &unread, Side::Wide), Truth::True);
        assert_eq!(holds("rm", &unread, Side::Exact), Truth::False);
        assert_eq!(holds("curl", &unread, Side::Wide), Truth::False);
    }

    #[test]
    fn words_that_no_command_starts_with_are_refused() {
        for text in ["", "git -c", "git log | sh", "rm *", "$X"] {
            assert!(WordsPattern::parse(text).is_err(), "{text}");
        }
        for text in ["", "-", "--", "--x=y", "-o f"] {
            assert!(option(text).is_err(), "{text}");
        }
        assert!(option("-n").is_ok() && option("w").is_ok());
    }
}

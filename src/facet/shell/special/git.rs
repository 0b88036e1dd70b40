//! `git`: what its operands and the values of its options bring in beyond its table.

use super::super::tables::is_a_commit;
use super::super::words::Word;
use super::super::{Command, not_understood};

/// Adds what a known subcommand does beyond what its options are marked for.
pub(super) fn look_closer(arguments: &[Word], made: &mut Command) {
    // `git --version` is `git version`.
    if made.words.len() == 1 && has_any(made, &["--version"]) {
        made.words.push(Word::literal("version").argument());
    }
    let Some(subcommand) = made.words.get(1).filter(|word| made.tabled && word.known).map(|word| word.text.clone())
    else {
        return;
    };
    let operands = made.words.len().saturating_sub(2);
    let has = |wanted: &[&str]| made.options.iter().any(|option| wanted.contains(&option.as_str()));
    let value = |begins: fn(&str) -> bool| arguments.iter().any(|word| begins(&word.text));
    let power = |power: &'static [&'static str]| Some(power);
    const EDITS: &[&str] = &["-e", "--edit"];
    const REMOVES: &[&str] = &["delete", "expire", "drop"];
    let found = match subcommand.as_str() {
        // Without a text, an editor asks for one.
        "commit" => {
            let rewords = value(|text| text.contains("amend:") || text.contains("reword:"));
            let told = has(&["-m", "-F", "-C", "--no-edit", "--dry-run", "--short", "--porcelain", "--long", "-z"])
                || (has(&["--fixup"]) && !rewords);
            if told { None } else { power(EDITS) }
        }
        "tag" if has(&["-a"]) && !has(&["-m", "-F"]) => power(EDITS),
        "revert" if !has(&["--no-edit", "-n", "--abort", "--quit", "--skip"]) => power(EDITS),
        "cherry-pick" if has(&["--continue"]) => power(EDITS),
        "pull" if arguments.iter().any(is_interactive) => power(&["-i", "--interactive"]),
        // A format can check signatures, by a program.
        "log" | "show" | "shortlog" | "reflog" | "rev-list" | "whatchanged" | "stash" | "branch" | "tag"
        | "for-each-ref"
            if arguments.iter().any(checks_signatures) =>
        {
            power(&["--show-signature"])
        }
        "reflog" if !made.words.get(2).is_none_or(|word| word.known && !REMOVES.contains(&word.text.as_str())) => {
            power(REMOVES)
        }
        "config" => {
            let first = made.words.get(2).map(|word| word.text.as_str());
            let reads = has(&["--get", "--get-all", "--get-regexp", "--get-urlmatch", "-l"])
                || matches!(first, Some("get" | "list"))
                || operands <= 1 && !matches!(first, Some("edit"));
            if reads { None } else { power(&["set"]) }
        }
        // `ext::COMMAND` and its like are programs.
        "fetch" | "pull" | "push" | "ls-remote" if value(|text| text.contains("::")) => power(&["--upload-pack"]),
        _ => None,
    };
    made.powers.extend(found.map(|names| names.iter().map(|name| (*name).to_owned()).collect()));
    // A name of its own makes any object look like a commit.
    let is_odd = |text: &str| !is_a_commit(text.trim_start_matches('+')) && !text.contains('*');
    let named = match subcommand.as_str() {
        "tag" if !has_any(made, &["--list"]) => made.words.get(3).is_some_and(|word| is_odd(&word.text)),
        "fetch" | "pull" | "push" => made.words.iter().skip(3).any(|word| {
            word.text.rsplit_once(':').is_some_and(|(from, to)| !from.is_empty() && !to.is_empty() && is_odd(from))
        }),
        _ => false,
    };
    if named {
        made.floors.push(not_understood("gives a name to an object that need not be a commit"));
    }
}

fn has_any(made: &Command, wanted: &[&str]) -> bool {
    made.options.iter().any(|option| wanted.contains(&option.as_str()))
}

/// `--rebase=interactive`, and whatever it is short for.
fn is_interactive(word: &Word) -> bool {
    let value = match word.text.strip_prefix("--r") {
        Some(rest) => rest.split_once('=').map(|(_, value)| value),
        None => word.text.strip_prefix("-r"),
    };
    value.is_some_and(|value| !word.known || value.starts_with('i'))
}

/// `%G?` and `%(signature)`; a format that only a running shell knows may be one.
fn checks_signatures(word: &Word) -> bool {
    let format = word.text.starts_with("--fo") || word.text.starts_with("--pr");
    word.text.contains("%G") || word.text.contains("%(signature") || (!word.known && format)
}

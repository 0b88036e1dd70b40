//! `tar`: the archive, what goes into it or comes out of it, and what it runs.

use super::super::simple::Given;
use super::super::tables::{self, Program};
use super::super::words::Word;
use super::super::{Command, Place, not_understood};
use crate::record::Access;

/// Options of `tar` by their full names, but for those that are read below.
const TAR: [&str; 18] = [
    "--gzip",
    "--bzip2",
    "--xz",
    "--zstd",
    "--verbose",
    "--preserve-permissions",
    "--keep-old-files",
    "--to-stdout",
    "--dereference",
    "--auto-compress",
    "--exclude",
    "--strip-components",
    "--wildcards",
    "--no-same-owner",
    "--no-same-permissions",
    "--overwrite",
    "--help",
    "--version",
];

/// `tar xf a`: letters of options without a dash.
pub(super) fn old_options(arguments: &[Word], made: &mut Command) {
    let Some(letters) = arguments.first().and_then(Word::known).filter(|text| !text.starts_with('-')) else { return };
    let Some(Program::Plain(row)) = tables::program("tar") else { return };
    for letter in letters.chars() {
        let name = format!("-{letter}");
        let entry = row.options.exact(&name);
        let names: Vec<String> =
            entry.map_or(vec![name], |entry| entry.names.iter().map(|&name| name.into()).collect());
        if entry.is_none_or(|entry| entry.power) {
            made.powers.push(names.clone());
        }
        made.options.extend(names);
    }
}

/// `tar -C`. A second one starts from the first in some versions and beside it in others.
fn change_to(to: String, folder: &mut Option<String>, given: &mut Given) {
    if folder.replace(to).is_some() {
        given.floors.push(not_understood("a second folder that `tar` changes to"));
    }
}

/// `tar`: the archive, what goes into it or comes out of it, and what it runs.
pub(in super::super) fn tar(arguments: &[Word], given: &mut Given) {
    let mut operation = None;
    let mut words = arguments.iter();
    let mut folder: Option<String> = None;
    let mut archives: Vec<(Option<String>, Word)> = Vec::new();
    let mut operands: Vec<(Option<String>, Word)> = Vec::new();
    let mut first = true;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let letters = if first && !text.starts_with('-') {
            Some(text)
        } else {
            text.strip_prefix('-').filter(|t| !t.starts_with('-'))
        };
        first = false;
        match (text, letters) {
            ("--create" | "--append" | "--update", _) => operation = Some('c'),
            ("--extract" | "--get", _) => operation = Some('x'),
            ("--list", _) => operation = Some('t'),
            ("--file", _) => archives.extend(words.next().map(|word| (folder.clone(), word.clone()))),
            ("--directory", _) => {
                if let Some(word) = words.next() {
                    change_to(word.text.clone(), &mut folder, given);
                }
            }
            ("--exclude", _) => {
                words.next();
            }
            (long, _) if long.starts_with("--file=") => archives.push((folder.clone(), word.after("--file=".len()))),
            (long, _) if long.starts_with("--directory=") => {
                change_to(word.after("--directory=".len()).text, &mut folder, given);
            }
            (long, _) if long.starts_with("--") => {
                // `--fil=x`: which option it is depends on the version.
                let name = long.split('=').next().unwrap_or_default();
                if !TAR.contains(&name) {
                    given.floors.push(not_understood("an option of `tar` that is not known by this name"));
                }
            }
            (_, Some(letters)) => {
                for (at, letter) in letters.char_indices() {
                    if matches!(letter, 'I' | 'F' | 'T' | 'X' | 'V' | 'g' | 'K' | 'N' | 'H' | 'L' | 'P') {
                        given.floors.push(not_understood("an option of `tar` that may run a program or read a list"));
                    }
                    match letter {
                        'c' | 'r' | 'u' => operation = Some('c'),
                        'x' => operation = Some('x'),
                        't' => operation = Some('t'),
                        'f' | 'C' | 'T' | 'X' | 'I' | 'K' | 'N' | 'b' | 'g' | 'H' | 'L' | 'V' | 'F' => {
                            let attached =
                                letters.get(at + 1..).filter(|rest| !rest.is_empty() && text.starts_with('-'));
                            let value = attached.map(Word::literal).or_else(|| words.next().cloned());
                            match (letter, value) {
                                ('f', Some(value)) => archives.push((folder.clone(), value)),
                                ('C', Some(value)) => change_to(value.text, &mut folder, given),
                                _ => {}
                            }
                            if attached.is_some() {
                                break;
                            }
                        }
                        _ => {}
                    }
                }
            }
            _ => operands.push((folder.clone(), word.clone())),
        }
    }
    let (archive, member) = match operation {
        Some('c') => (Some(Access::Write), Some(Access::Read)),
        Some('t') => (Some(Access::Read), None),
        Some('x') => (Some(Access::Read), None),
        _ => (None, None),
    };
    let mut add = |below: &Option<String>, word: &Word, access: Option<Access>, recursive: bool| match word.known() {
        Some("-") => {}
        Some(text) if text.contains(':') => {
            given.floors.push(not_understood("`tar` can take a name with `:` for another machine"))
        }
        Some(text) => {
            given.places.push(Place { below: below.clone(), ..Place::new(text, access).recursive(recursive) })
        }
        None => given.floors.push(not_understood("a path that only a running shell knows")),
    };
    for (_, word) in &archives {
        add(&None, word, archive, false);
    }
    if operation == Some('c') || operation.is_none() {
        for (below, word) in &operands {
            add(below, word, member, true);
        }
    }
    if operation != Some('c') && operation != Some('t') {
        add(&None, &Word::literal(folder.as_deref().unwrap_or(".")), Some(Access::Write), true);
    }
}

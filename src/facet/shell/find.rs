//! `find`: where it starts, and what its expression does.

use super::arguments::Arguments;
use super::words::Word;
use super::{Place, not_understood};
use crate::record::Access;

/// What a `find` comes to.
#[derive(Debug, Default)]
pub(super) struct Find {
    pub arguments: Arguments,
    /// The commands that it runs.
    pub runs: Vec<Vec<Word>>,
}

const PLAIN: &str = "-depth -d -daystart -follow -ignore_readdir_race -noignore_readdir_race -mount -xdev -noleaf \
    -warn -nowarn -true -false -empty -executable -readable -writable -nogroup -nouser -print -print0 -ls -prune -quit \
    -not -a -and -o -or ! ( ) , -H -L -P";
const WITH_TEXT: &str = "-maxdepth -mindepth -regextype -amin -atime -cmin -ctime -mmin -mtime -used -fstype -gid \
    -group -ilname -lname -iname -name -inum -ipath -path -wholename -iwholename -iregex -regex -links -perm -size \
    -type -xtype -uid -user -context -printf -D";
const WITH_FILE: &str = "-newer -anewer -cnewer -samefile -files0-from";
const WRITES: &str = "-fprint -fprint0 -fls -fprintf";
const RUNS: &str = "-exec -execdir -ok -okdir";

fn among(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// Reads the words after `find`.
pub(super) fn read(words: &[Word]) -> Find {
    let mut find = Find::default();
    let listed = words.iter().any(|word| word.text == "-files0-from");
    let mut words = words.iter();
    let mut access = Access::Read;
    let mut starts = true;
    let (mut shallow, mut deep) = (false, false);
    while let Some(word) = words.next() {
        let found = &mut find.arguments;
        let Some(text) = word.known() else {
            found.floors.push(not_understood("a word that only a running shell knows may be part of what `find` does"));
            found.hints.push(word.text.clone());
            continue;
        };
        let expression = text.starts_with('-') || among("! ( ) ,", text);
        if starts && !expression {
            found.operands.push(word.clone());
            continue;
        }
        starts &= among("-H -L -P", text) || text.starts_with("-O");
        if expression && text != "(" && text != ")" {
            found.options.push(text.to_owned());
        }
        let power = |found: &mut Arguments| found.powers.push(vec![text.to_owned()]);
        if among(RUNS, text) {
            power(found);
            // `./NAME` where each is found, or the start and what lies below it.
            let folder = match found.operands.as_slice() {
                _ if text != "-exec" || listed => None,
                [] => Some("."),
                [one] => one.known().filter(|start| !start.starts_with('-')).map(|start| start.trim_end_matches('/')),
                _ => None,
            };
            find.runs.push(command_of(&mut words, folder.map(str::to_owned).as_deref()));
        } else if text == "-delete" {
            power(found);
            access = Access::Delete;
        } else if among(WRITES, text) {
            power(found);
            path(found, words.next(), Access::Write);
            if text == "-fprintf" {
                words.next();
            }
        } else if among(WITH_FILE, text) || text.starts_with("-newer") {
            path(found, words.next(), Access::Read);
        } else if among(WITH_TEXT, text) {
            let value = words.next();
            if text == "-maxdepth" {
                match value.and_then(Word::known) {
                    Some("0" | "1") => shallow = true,
                    _ => deep = true,
                }
            }
            if value.is_some_and(|value| value.splits) {
                found.floors.push(not_understood("a value that may become several words"));
            }
        } else if !among(PLAIN, text) && !text.starts_with("-O") {
            power(found);
        }
    }
    let found = &mut find.arguments;
    let mut roots: Vec<String> = found.operands.iter().map(|word| word.text.clone()).collect();
    if roots.is_empty() {
        roots.push(".".to_owned());
    }
    found.places.extend(roots.into_iter().map(|root| Place::new(root, access).recursive(deep || !shallow)));
    find
}

fn path(found: &mut Arguments, word: Option<&Word>, access: Access) {
    match word.map(|word| (word.known(), word)) {
        Some((Some(text), _)) => found.places.push(Place::new(text, access)),
        Some((None, word)) => {
            found.floors.push(not_understood("a path that only a running shell knows"));
            found.hints.push(word.text.clone());
        }
        None => {}
    }
}

/// The words up to `;` or `{} +`; a name that is put in is not known.
fn command_of<'a>(words: &mut impl Iterator<Item = &'a Word>, folder: Option<&str>) -> Vec<Word> {
    let mut command: Vec<Word> = Vec::new();
    for word in words {
        match word.known() {
            Some(";") => break,
            Some("+") if command.last().is_some_and(|last| last.text.contains("{}")) => break,
            Some(text) if text.contains("{}") => command.push(match folder {
                Some(folder) if text == "{}" && !folder.is_empty() => Word::below(text, folder),
                _ => Word::unknown(text),
            }),
            _ => command.push(word.clone()),
        }
    }
    command
}

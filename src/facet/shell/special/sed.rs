//! `sed`: scripts that do more than print, delete or replace lines.

use std::sync::LazyLock;

use regex::Regex;

use super::super::words::Word;
use super::super::{Command, Place};
use crate::record::Access;

/// A script that only prints, deletes or replaces lines.
pub(super) fn look_closer(arguments: &[Word], made: &mut Command) {
    static PLAIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // A delimiter ends nothing within brackets: none may stand there.
        let class = |end: &str| if end == ":" { "" } else { r"\[:[a-z]+:\]|" };
        let part = |end: &str| format!(r"(\\.|\[\^?\]?({}\\[tn]|[^\[\]\\\n{end}])*\]|[^{end}\[\\\n])", class(end));
        let address = format!(r"(\d+(~\d+)?|\$|/{}+/I?)", part("/"));
        let ends = ["/", r"\|", ",", "#", "@", ":"];
        let replaces = ends.map(|end| format!(r"{end}{0}*{end}(\\.|[^{end}\\\n])*{end}", part(end)));
        let maps = ends.map(|end| format!(r"{end}(\\.|[^{end}\\\n])*{end}(\\.|[^{end}\\\n])*{end}"));
        let replace = format!("s({})[gpiI0-9]*|y({})", replaces.join("|"), maps.join("|"));
        let at = format!(r"\s*({address}(,[+~]?{address})?)?\s*!?\s*");
        let command = format!(r"{at}([pdqQDNPGHgxhn=]|{replace})\s*");
        let group = format!(r"{at}\{{{command}(;{command})*;?\s*\}}\s*");
        Regex::new(&format!("^({command}|{group})(;({command}|{group}))*;?\\s*$")).ok()
    });
    if made.options.iter().any(|option| option == "-i") {
        let written = made.places.iter().map(|place| Place { access: Some(Access::Write), ..place.clone() });
        let written: Vec<Place> = written.collect();
        made.places.extend(written);
    }
    let mut scripts: Vec<&Word> = Vec::new();
    let mut words = arguments.iter();
    let mut operands = 0;
    let mut given = false;
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-e" | "--expression" => {
                given = true;
                scripts.extend(words.next());
            }
            text if text.starts_with('-') => {
                // `-es/a/b/`, `--expression=…`, `-ne p`: not told apart, and so not plain.
                if text.starts_with("--e") || (!text.starts_with("--") && text.contains('e')) {
                    given = true;
                    scripts.push(word);
                }
            }
            _ => {
                operands += 1;
                if operands == 1 && !given {
                    scripts.push(word);
                }
            }
        }
    }
    // Whichever word is the script, the first operand is one unless an option gave it.
    let plain =
        |word: &&Word| word.known().is_some_and(|text| PLAIN.as_ref().is_some_and(|plain| plain.is_match(text)));
    if !scripts.iter().all(plain) {
        made.powers.push(vec!["w".to_owned(), "e".to_owned()]);
        for word in scripts {
            // `w FILE` and `r FILE` name files to the end of the line.
            for line in word.text.split(['\n', ';']) {
                if let Some((_, file)) = line.split_once(['w', 'r', 'W', 'R']) {
                    made.hints.push(file.trim().to_owned());
                }
            }
        }
    }
}

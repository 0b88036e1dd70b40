//! What a table cannot say: programs that read code out of their operands, or that change the shell itself.

use std::sync::LazyLock;

use regex::Regex;

use super::simple::Given;
use super::words::Word;
use super::{Command, Place, not_understood};
use crate::record::Access;

/// Builtins that change what later words mean, or run what is not in the text.
const CHANGES: [&str; 33] = [
    "alias",
    "unalias",
    "hash",
    "set",
    "shopt",
    "trap",
    "enable",
    "source",
    ".",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "let",
    "bind",
    "complete",
    "compgen",
    "popd",
    "dirs",
    "fc",
    "history",
    "caller",
    "coproc",
    "wait",
    "disown",
    "umask",
    "ulimit",
];

/// Programs that run code which is not judged, or take a command line in a way that is not known here.
const RUNNERS: [&str; 72] = [
    "python",
    "python2",
    "python3",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "tclsh",
    "wish",
    "expect",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "osascript",
    "Rscript",
    "julia",
    "ghci",
    "scala",
    "groovy",
    "java",
    "gdb",
    "lldb",
    "strace",
    "ltrace",
    "script",
    "chroot",
    "unshare",
    "nsenter",
    "runuser",
    "pkexec",
    "systemd-run",
    "at",
    "batch",
    "crontab",
    "flock",
    "ionice",
    "chrt",
    "taskset",
    "numactl",
    "unbuffer",
    "chronic",
    "npx",
    "pnpx",
    "bunx",
    "uvx",
    "pipx",
    "make",
    "gmake",
    "ninja",
    "vi",
    "vim",
    "nvim",
    "emacs",
    "ed",
    "ex",
    "nano",
    "less",
    "more",
    "man",
    "pwsh",
    "powershell",
    "cmd",
    "pwsh.exe",
    "powershell.exe",
    "cmd.exe",
    "screen",
];

/// Why a program by itself is more than its words say.
pub(super) fn changes_the_shell(name: &str) -> Option<String> {
    let plain = name.to_ascii_lowercase();
    let versioned = plain.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if CHANGES.contains(&name) {
        return Some(format!("`{name}` changes what the shell does with the rest"));
    }
    if RUNNERS.iter().any(|runner| *runner == plain || *runner == versioned) {
        return Some(format!("`{name}` runs code that is not judged"));
    }
    plain.starts_with("ld-").then(|| "the loader runs a program".to_owned())
}

/// Adds what only the operands of a program tell.
pub(super) fn look_closer(name: &str, arguments: &[Word], made: &mut Command) {
    match name {
        "sed" => sed(arguments, made),
        "curl" => curl(made),
        "jq" => jq(made),
        "printf" => printf(arguments, made),
        "test" | "[" => test(arguments, made),
        // A time without a `+` sets the clock.
        "date" if made.words.iter().skip(1).any(|word| !word.known || !word.text.starts_with('+')) => {
            made.powers.push(vec!["-s".to_owned(), "--set".to_owned()]);
        }
        _ => {}
    }
}

/// A script that only prints, deletes or replaces lines.
fn sed(arguments: &[Word], made: &mut Command) {
    static PLAIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
        // A delimiter ends nothing within brackets: none may stand there.
        let part = |end: &str| format!(r"(\\.|\[\^?\]?[^\[\]\\\n{end}]*\]|[^{end}\[\\\n])");
        let address = format!(r"(\d+(~\d+)?|\$|/{}+/I?)", part("/"));
        let replaces = ["/", r"\|", ",", "#"].map(|end| format!(r"{end}{0}*{end}(\\.|[^{end}\\\n])*{end}", part(end)));
        let replace = format!("s({})[gpiI0-9]*", replaces.join("|"));
        let command = format!(r"\s*({address}(,[+~]?{address})?)?\s*!?\s*([pdqQDNPGHgxhn=]|{replace})\s*");
        Regex::new(&format!("^{command}(;{command})*$")).ok()
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

/// Operands are URLs, with or without a scheme.
fn curl(made: &mut Command) {
    for word in made.words.iter().skip(1) {
        let text = &word.text;
        if !word.known {
            made.floors.push(not_understood("a URL that only a running shell knows"));
        } else if text.contains("://") || text.to_ascii_lowercase().starts_with("file:") {
            made.places.push(Place::read(text));
        } else {
            made.places.push(Place::read(format!("http://{text}")));
        }
    }
}

/// A filter that reads modules.
fn jq(made: &mut Command) {
    if made
        .words
        .iter()
        .any(|word| ["import", "include", "input_filename", "$ENV", "env"].iter().any(|w| word.text.contains(w)))
    {
        made.powers.push(vec!["import".to_owned(), "include".to_owned()]);
    }
}

fn printf(arguments: &[Word], made: &mut Command) {
    let Some(first) = arguments.first() else { return };
    if first.text.starts_with("-v") || (!first.known && !first.prefix.starts_with('%')) {
        made.floors.push(not_understood("`printf -v` can evaluate data as code"));
    }
    // A format that begins like an option is none of the known ones.
    made.powers.retain(|names| names.iter().any(|name| name == "-v"));
}

fn test(arguments: &[Word], made: &mut Command) {
    let mut words = arguments.iter().peekable();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if matches!(text, "-v" | "-R" | "-o" | "-t") || (!word.known && word.splits) {
            made.floors.push(not_understood("a test can evaluate data as code"));
        } else if matches!(text, "-nt" | "-ot" | "-ef") {
            made.floors.push(not_understood("a test that compares files"));
        } else if text.len() == 2
            && text.starts_with('-')
            && !matches!(text, "-z" | "-n" | "-a")
            && let Some(file) = words.peek()
        {
            match file.known() {
                Some(path) => made.places.push(Place::read(path)),
                None => made.floors.push(not_understood("a path that only a running shell knows")),
            }
        }
    }
    // Its operators are no options.
    made.powers.clear();
    made.options.clear();
}

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

/// `tar -C`. A second one starts from the first in some versions and beside it in others.
fn change_to(to: String, folder: &mut Option<String>, given: &mut Given) {
    if folder.replace(to).is_some() {
        given.floors.push(not_understood("a second folder that `tar` changes to"));
    }
}

/// `tar`: the archive, what goes into it or comes out of it, and what it runs.
pub(super) fn tar(arguments: &[Word], given: &mut Given) {
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
                    if matches!(letter, 'I' | 'F' | 'T' | 'X' | 'V' | 'g' | 'K' | 'N' | 'H' | 'L') {
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

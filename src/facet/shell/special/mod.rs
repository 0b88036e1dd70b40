//! What a table cannot say: programs that read code out of their operands, or that change the shell itself.

mod git;
mod sed;
mod tar;

pub(super) use tar::tar;

use super::arguments::Arguments;
use super::words::Word;
use super::{Command, Place, not_understood};

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
pub(super) fn changes_the_shell(name: &str, arguments: &[Word]) -> Option<String> {
    if name == "set" && arguments.iter().all(stops_early) {
        return None;
    }
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

/// A word of `set` that only makes a shell stop at errors, or show what it does.
fn stops_early(word: &Word) -> bool {
    const NAMES: [&str; 4] = ["pipefail", "errexit", "nounset", "xtrace"];
    let letters = |text: &str| text.strip_prefix('-').is_some_and(|rest| rest.chars().all(|c| "euxo".contains(c)));
    word.known().is_some_and(|text| text.len() > 1 && letters(text) || NAMES.contains(&text))
}

/// Adds what only the values of a program's options tell.
pub(super) fn look_at_values(name: &str, found: &mut Arguments) {
    if name != "curl" {
        return;
    }
    let texts = |name: &str| -> Vec<String> { found.values(name).flatten().map(|word| word.text.clone()).collect() };
    let (sent, saved, told) = (texts("-T"), texts("-o"), texts("-w"));
    let globs = !found.options.iter().any(|option| option == "-g");
    let mut floor = |why: &str| found.floors.push(not_understood(why));
    // It reads patterns itself: `-T 'a[0-9]'` sends ten files, and `#1` stands for what a pattern in the URL stood for.
    if globs && sent.iter().any(|text| text.contains(['{', '['])) {
        floor("`curl -T` sends every file that a pattern stands for");
    }
    if globs && saved.iter().any(|text| text.contains('#')) {
        floor("`curl -o` puts parts of the URL into the name of a file");
    }
    if told.iter().any(|text| text.contains("%output{") || text.starts_with('@')) {
        floor("`curl -w` can write files");
    }
    let parts = sent.iter().chain(&told).flat_map(|text| text.split(['{', '}', ',']));
    found.hints.extend(parts.filter(|part| !part.is_empty()).map(str::to_owned));
}

/// Adds what only the operands of a program tell.
pub(super) fn look_closer(name: &str, arguments: &[Word], made: &mut Command) {
    match name {
        "git" => git::look_closer(arguments, made),
        "sed" => sed::look_closer(arguments, made),
        "curl" => curl(made),
        "jq" => jq(arguments, made),
        "kubectl" => kubectl(arguments, made),
        "printf" => printf(arguments, made),
        "ln" | "install" => into_a_folder(made),
        "tar" => tar::old_options(arguments, made),
        "test" | "[" => test(arguments, made),
        // A time without a `+` sets the clock.
        "date" if made.words.iter().skip(1).any(|word| !word.known || !word.text.starts_with('+')) => {
            made.powers.push(vec!["-s".to_owned(), "--set".to_owned()]);
        }
        _ => {}
    }
}

/// What is linked or installed into a folder lies there under its own name.
fn into_a_folder(made: &mut Command) {
    if made.options.iter().any(|option| option.starts_with("-t") || option.starts_with("--t")) {
        made.floors.push(not_understood("a folder that is named by an option"));
    }
    let operands: Vec<&str> =
        made.places.iter().filter(|place| place.word.is_some()).map(|place| &*place.text).collect();
    if let Some((folder, sources)) = operands.split_last() {
        let within: Vec<Place> = sources.iter().map(|source| Place::within(folder, source, None)).collect();
        made.places.extend(within);
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

/// A filter that reads modules, or all variables: `import`, `include` and `env` where no key can stand.
fn jq(arguments: &[Word], made: &mut Command) {
    let stands = |text: &str, word: &str, not_after: &str| {
        text.match_indices(word).any(|(at, _)| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            let after = text.get(at + word.len()..).and_then(|text| text.chars().next());
            let within = |c: char| c.is_alphanumeric() || c == '_';
            // `{env}` and `{env: 1}` name a key.
            let is_key = before == Some('{') && matches!(after, Some(':' | '}' | ','));
            !is_key && !before.is_some_and(|c| within(c) || not_after.contains(c)) && !after.is_some_and(within)
        })
    };
    let does_more = |text: &str| {
        ["import", "include"].iter().any(|word| stands(text, word, ".\"{[$"))
            || stands(text, "env", ".\"$")
            || stands(text, "ENV", ".\"")
    };
    // The names of files are no filter; `.[]` without quotes reads like one.
    if arguments.iter().any(|word| (!word.known && !word.pattern) || does_more(&word.text)) {
        made.powers.push(vec!["import".to_owned(), "include".to_owned()]);
    }
}

/// A template that stands in a file.
fn kubectl(arguments: &[Word], made: &mut Command) {
    if made.options.iter().any(|option| option == "--template")
        && arguments.iter().any(|word| !word.known || word.text.ends_with("file"))
    {
        made.powers.push(vec!["--template".to_owned()]);
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

//! What the operands of `git` name: revisions, which print whatever lies in the repository, and pathspecs, which git
//! takes as patterns even where the shell does not (gitglossary(7), "pathspec"; gitrevisions(7)).

use super::super::super::arguments::Arguments;
use super::super::super::words::Word;
use super::super::super::{Place, When, not_understood};
use super::super::Operands;
use crate::record::Access;

/// What the operands of a subcommand are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super::super) enum Named {
    /// Pathspecs whose names are read.
    Names,
    /// Pathspecs; all of the work tree where none is given and an option goes on (`add -A`, `commit -a`).
    Files(Option<Access>),
    /// A branch or a commit to go to, or pathspecs: before `--`, what is no file is no path.
    Checkout,
    /// A branch or a commit to go to.
    Switch,
    /// As `Checkout`; what is reset is the index, with some options the work tree too.
    Reset,
    /// Commits, by which the work tree becomes another.
    Commits,
    /// A repository and what is fetched from it, by which the work tree becomes another.
    Pull,
    /// Patches that are read; they say which files are written.
    Patches,
    /// Pathspecs of what is removed; all from where it runs on where none is given.
    Clean,
    /// As `Files`, after a word that says what is done.
    Stash,
    /// Revisions and pathspecs: what is in them is read where an option prints it.
    Log,
    /// Revisions and pathspecs: what is in them is read.
    Contents,
    /// As `Contents`, unless no more than names and numbers is told.
    Differences,
    /// A pattern, then revisions and pathspecs of which all is read, from where it runs on.
    Grep,
    /// Objects, and what they hold is read.
    Objects,
}

/// Options that add revisions to those that are named, or objects.
const ADDS: &[&str] = &[
    "--all",
    "--branches",
    "--tags",
    "--remotes",
    "--glob",
    "--reflog",
    "-g",
    "--walk-reflogs",
    "--bisect",
    "--batch",
    "--batch-check",
    "--batch-command",
    "--batch-all-objects",
];

impl Named {
    /// Adds the paths that the operands name.
    pub fn places(self, found: &mut Arguments) {
        let operands = std::mem::take(&mut found.operands);
        match self {
            Self::Stash => stash(&operands, found),
            Self::Differences => {
                let own = if tells_names(found) { Self::Log } else { Self::Contents };
                own.named(&operands, own.access(), found);
            }
            Self::Switch | Self::Commits | Self::Pull | Self::Patches => {
                found.operands.clone_from(&operands);
                match self {
                    Self::Pull => Operands::Remote,
                    Self::Patches => Operands::Paths(Some(Access::Read)),
                    _ => Operands::Text,
                }
                .places(found);
            }
            _ => self.named(&operands, self.access(), found),
        }
        self.changes(&operands, found);
        found.operands = operands;
    }

    /// Adds what is changed besides the files that are named: other commits have other files, in any place.
    fn changes(self, operands: &[Word], found: &mut Arguments) {
        let here = |access| Place::new(".", access).recursive(true);
        match self {
            Self::Checkout => found.places.extend(goes_to(operands, found).into_iter().flat_map(work_tree)),
            Self::Switch if !operands.is_empty() || has(found, &["-f", "--discard-changes", "--orphan"]) => {
                found.places.extend(work_tree(When::Always));
            }
            Self::Reset if has(found, &["--hard", "--merge", "--keep"]) => {
                found.places.extend(work_tree(When::Always));
            }
            Self::Commits | Self::Pull => found.places.extend(work_tree(When::Always)),
            Self::Patches
                if !has(found, &["--stat", "--numstat", "--summary", "--check"]) || has(found, &["--apply"]) =>
            {
                found.places.extend([here(Access::Write), here(Access::Delete)]);
            }
            Self::Clean if operands.is_empty() => found.places.push(here(Access::Delete)),
            _ => {}
        }
    }

    fn access(self) -> Option<Access> {
        match self {
            Self::Files(access) => access,
            Self::Checkout | Self::Reset => None,
            Self::Clean => Some(Access::Delete),
            _ => Some(Access::Read),
        }
    }

    /// Whether the whole tree is touched where no path is named.
    fn is_whole(self, found: &Arguments) -> bool {
        match self {
            Self::Contents | Self::Grep | Self::Objects => true,
            Self::Files(_) | Self::Stash | Self::Log => found.recursive,
            _ => false,
        }
    }

    fn named(self, operands: &[Word], access: Option<Access>, found: &mut Arguments) {
        let skipped = usize::from(self == Self::Grep && !found.pattern);
        let operands = operands.get(skipped..).unwrap_or_default();
        let dashes = found.before_dashes.map(|at| at.saturating_sub(skipped).min(operands.len()));
        let only_paths =
            matches!(self, Self::Names | Self::Files(_) | Self::Clean | Self::Stash) || has(found, &["--no-index"]);
        let recursive = match self {
            Self::Names => false,
            Self::Log => found.recursive,
            _ => true,
        };
        // What `--` parts from the paths is no path, and without one git takes a word for a path only if it is there.
        let (before, after) = operands.split_at(if only_paths { 0 } else { dashes.unwrap_or(operands.len()) });
        let mut met = Met::default();
        for word in before {
            match word.known() {
                _ if word.pattern => met.path(word, access, recursive, found),
                Some(text) if self == Self::Objects && TYPES.contains(&text) => {}
                Some(text) => met.revision(text, access, recursive, dashes.is_some(), found),
                None => met.path(word, access, recursive, found),
            }
        }
        for word in after {
            met.path(word, access, recursive, found);
        }
        if met.excluded && !met.paths {
            found.places.push(Place { top: true, ..Place::new(".", access) }.recursive(true));
        }
        if !self.is_whole(found) {
            return;
        }
        // An object may be a tree, in which paths start anew, or a file.
        let plain = matches!(self, Self::Log | Self::Files(_) | Self::Stash);
        let adds = self != Self::Grep && !plain && has(found, ADDS);
        let only_files = met.files && !met.paths && met.names.is_empty() && met.objects.is_empty();
        // It searches below where it runs, or in whatever object it is given.
        let top = self != Self::Grep || !met.objects.is_empty();
        let named = match self {
            _ if adds => false,
            Self::Objects => only_files,
            Self::Contents | Self::Grep if only_files => true,
            _ => met.paths && (plain || met.objects.is_empty()),
        };
        if named {
            return;
        }
        // Without `--`, git takes for paths what is there.
        let when = match dashes {
            None if !adds && self != Self::Objects && !(met.names.is_empty() && met.objects.is_empty()) => {
                if plain {
                    met.names.append(&mut met.objects);
                }
                When::Unless { all_of: met.objects, one_of: met.names }
            }
            _ => When::Always,
        };
        found.places.push(Place { top, when, ..Place::new(".", access) }.recursive(true));
    }
}

fn has(found: &Arguments, names: &[&str]) -> bool {
    found.options.iter().any(|option| names.contains(&&**option))
}

/// Whether `diff` is told to print which files differ, and given no option that prints or searches what is in them.
fn tells_names(found: &Arguments) -> bool {
    #[rustfmt::skip]
    const NAMES: [&str; 10] = [
        "--stat", "--shortstat", "--numstat", "--dirstat", "--name-only", "--name-status", "--summary",
        "--compact-summary", "--quiet", "--no-patch",
    ];
    #[rustfmt::skip]
    const MORE: [&str; 28] = [
        "-s", "--cached", "--staged", "--merge-base", "-z", "--color", "--no-color", "--no-renames", "-M",
        "--find-renames", "--exit-code", "--diff-filter", "--relative", "--no-relative", "--abbrev", "--no-abbrev",
        "--no-ext-diff", "--no-textconv", "-w", "--ignore-all-space", "-b", "--ignore-space-change",
        "--ignore-submodules", "--stat-width", "--stat-count", "-P", "--no-pager", "--no-optional-locks",
    ];
    has(found, &NAMES) && found.options.iter().all(|option| NAMES.contains(&&**option) || MORE.contains(&&**option))
}

/// All of the work tree: files of it are written, and removed.
fn work_tree(when: When) -> [Place; 2] {
    [Access::Write, Access::Delete]
        .map(|access| Place { top: true, when: when.clone(), ..Place::new(".", access) }.recursive(true))
}

/// When `checkout` goes to another commit, if it does, and so writes more than the files that it names.
fn goes_to(operands: &[Word], found: &Arguments) -> Option<When> {
    let dashes = found.before_dashes.map(|at| at.min(operands.len()));
    let makes = has(found, &["-b", "-B", "--orphan"]);
    if has(found, &["--pathspec-from-file"]) {
        return Some(When::Always);
    }
    match (operands, dashes) {
        (_, Some(at)) if at < operands.len() => None,
        // Without a name it throws local changes away, if it is told so, and otherwise leaves them.
        ([], _) => has(found, &["-f"]).then_some(When::Always),
        // What is a file is taken for one; a pattern stands for files.
        ([one], None) if !makes => match one.known() {
            Some(text) => Some(When::Unless { all_of: vec![text.to_owned()], one_of: Vec::new() }),
            None => (!one.pattern).then_some(When::Always),
        },
        ([_], _) => Some(When::Always),
        // A commit, and files of it.
        _ => None,
    }
}

/// What a subcommand that is not described is known to change.
pub(in super::super::super) fn changed_by(subcommand: &str) -> Vec<Place> {
    match subcommand {
        "am" | "bisect" | "checkout-index" | "filter-branch" | "filter-repo" | "lfs" | "merge-index"
        | "merge-one-file" | "merge-ours" | "merge-recursive" | "merge-resolve" | "merge-subtree" | "mergetool"
        | "p4" | "quiltimport" | "read-tree" | "rerere" | "sparse-checkout" | "submodule" | "subtree" | "svn" => {
            work_tree(When::Always).into()
        }
        "bundle" | "clone" | "fast-export" | "format-patch" | "init" | "init-db" | "worktree" => {
            vec![Place::new(".", Access::Write)]
        }
        _ => Vec::new(),
    }
}

/// What `cat-file` may be told of an object before its name.
const TYPES: &[&str] = &["blob", "tree", "commit", "tag"];

/// What was met among operands.
#[derive(Default)]
struct Met {
    /// Whether a path was named that is surely one.
    paths: bool,
    /// Whether one was taken out.
    excluded: bool,
    /// Whether `rev:path` was named, which is read.
    files: bool,
    /// What may be a path, and as a revision is a commit.
    names: Vec<String>,
    /// What may be a path, and as a revision any object.
    objects: Vec<String>,
}

impl Met {
    /// A word that may be a revision; `surely`: it is one.
    fn revision(&mut self, text: &str, access: Option<Access>, recursive: bool, surely: bool, found: &mut Arguments) {
        let spec = pathspec(text);
        let is_file = in_a_revision(text).is_some_and(|(revision, path)| {
            let top = !matches!(path.split('/').next(), Some("." | ".."));
            found.places.push(Place { top, ..Place::read(path) }.recursive(recursive));
            found.hints.push(path.to_owned());
            !text.contains("..") && is_a_commit(revision.strip_suffix("^{tree}").unwrap_or(revision))
        });
        // No revision has a wildcard, but for what is in braces or after `:`.
        let is_path = (matches!(spec, Spec::Below(_)) || is_no_name(text)) && !text.contains([':', '{']);
        self.files |= is_file;
        match is_a_commit(text) {
            _ if is_file || is_path => {}
            true => self.names.push(text.to_owned()),
            false => self.objects.push(text.to_owned()),
        }
        found.hints.push(text.to_owned());
        match spec {
            _ if surely => {}
            Spec::Path(_) if !is_path => {
                // What is named like a revision is hardly a file.
                let odd = is_file || text.contains(['~', '^']) || text.contains("..");
                let when = if odd { When::Seen } else { When::There };
                found.places.push(Place { when, ..Place::new(text, access) }.recursive(recursive));
            }
            _ => {
                let paths = self.paths;
                self.spec(text, access, recursive, found);
                self.paths = paths || is_path;
            }
        }
    }

    fn path(&mut self, word: &Word, access: Option<Access>, recursive: bool, found: &mut Arguments) {
        match word.known() {
            Some(text) => self.spec(text, access, recursive, found),
            None if word.pattern && access == Some(Access::Read) => {
                self.paths = true;
                found.places.push(Place::matched(word));
            }
            None => {
                found.floors.push(not_understood("a path that only a running shell knows"));
                found.hints.push(word.text.clone());
                // What a pattern can match lies in this folder.
                if let Some((folder, _)) = word.prefix.rsplit_once('/') {
                    found.places.push(Place::new(format!("{folder}/"), access).recursive(recursive));
                }
            }
        }
    }

    fn spec(&mut self, text: &str, access: Option<Access>, recursive: bool, found: &mut Arguments) {
        let place = match pathspec(text) {
            Spec::Excluded => {
                self.excluded = true;
                return;
            }
            Spec::Path(path) => Place::new(path, access).recursive(recursive),
            Spec::Below(folder) => Place::new(folder, access).recursive(true),
            Spec::BelowTop(folder) => Place { top: true, ..Place::new(folder, access) }.recursive(true),
        };
        self.paths = true;
        found.places.push(place);
        found.hints.push(text.to_owned());
    }
}

/// `stash`: without a word or with `push` it takes changes out of the work tree, and `pop` writes them back.
fn stash(operands: &[Word], found: &mut Arguments) {
    let everything = [Access::Read, Access::Write, Access::Delete];
    let does = operands.first().filter(|_| found.before_dashes != Some(0));
    let (accesses, paths): (&[Access], &[Word]) = match does.map(|word| word.known().unwrap_or_default()) {
        None => (&everything, operands),
        Some("push") => (&everything, operands.get(1..).unwrap_or_default()),
        Some("list" | "show") if found.recursive => (&[Access::Read], &[]),
        Some("list" | "show" | "drop" | "clear" | "store") => return,
        Some("create") => (&[Access::Read], &[]),
        Some("pop" | "apply" | "branch") => (&[Access::Write, Access::Delete], &[]),
        Some(_) => (&everything, &[]),
    };
    found.before_dashes = None;
    found.recursive = true;
    for access in accesses {
        Named::Stash.named(paths, Some(*access), found);
    }
}

/// What a pathspec can match.
#[derive(PartialEq, Eq, Debug)]
enum Spec {
    /// That path.
    Path(String),
    /// What lies below that folder.
    Below(String),
    /// The same, from the top of the repository on.
    BelowTop(String),
    /// What others match.
    Excluded,
}

/// Reads a pathspec, as if nothing made it literal.
fn pathspec(text: &str) -> Spec {
    let Some(magic) = text.strip_prefix(':') else {
        return match below(text) {
            (path, false) => Spec::Path(path),
            (folder, true) => Spec::Below(folder),
        };
    };
    let (words, path): (Vec<&str>, &str) = match magic.strip_prefix('(').and_then(|long| long.split_once(')')) {
        Some((words, path)) => (words.split(',').collect(), path),
        None => {
            let path = magic.trim_start_matches(['/', '!', '^']);
            let signs = magic.strip_suffix(path).unwrap_or_default();
            (signs.split("").filter(|sign| !sign.is_empty()).collect(), path.strip_prefix(':').unwrap_or(path))
        }
    };
    // `:` alone stands for everything, `icase` leads anywhere, and attributes may hold what parts words.
    let known = |word: &&str| matches!(*word, "" | "/" | "top" | "glob" | "literal" | "!" | "^" | "exclude");
    if magic.is_empty() || !words.iter().all(known) {
        return Spec::BelowTop(".".to_owned());
    }
    let has = |names: &[&str]| words.iter().any(|word| names.contains(word));
    match below(path).0 {
        _ if has(&["!", "^", "exclude"]) => Spec::Excluded,
        folder if has(&["/", "top"]) => Spec::BelowTop(folder),
        folder => Spec::Below(folder),
    }
}

/// The path before the first component that matches other names than its own, and whether there is one. `..` is folded
/// before anything is matched.
fn below(text: &str) -> (String, bool) {
    let is_wild = |part: &str| part.contains(['*', '?', '[', '\\']);
    if !text.split('/').any(is_wild) {
        return (if text.is_empty() { ".".to_owned() } else { text.to_owned() }, false);
    }
    let mut kept: Vec<&str> = Vec::new();
    for part in text.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match (part, kept.last()) {
            ("..", Some(last)) if *last != ".." => drop(kept.pop()),
            _ => kept.push(part),
        }
    }
    let wild = kept.iter().any(|part| is_wild(part));
    let folder = kept.iter().take_while(|part| !is_wild(part)).copied().collect::<Vec<_>>().join("/");
    let folder = match (text.starts_with('/'), folder.is_empty()) {
        (true, _) => format!("/{folder}"),
        (false, true) => ".".to_owned(),
        (false, false) => folder,
    };
    (folder, wild)
}

/// `rev:path` with both its parts; a `:` within braces is none of it (`HEAD^{/fix: it}`, `HEAD@{10:30}`).
fn in_a_revision(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let at = text.char_indices().find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => return Some(at),
            _ => {}
        }
        None
    })?;
    let (revision, path) = (text.get(..at)?, text.get(at + 1..)?);
    // `:(top)path`, `:0:path`.
    let path = if revision.is_empty() { path.rsplit([':', ')']).next()? } else { path };
    (!path.is_empty()).then_some((revision, path))
}

/// Whether no branch and no revision is named so (git-check-ref-format(1)): `../x`, `.env`, `docs/`.
fn is_no_name(text: &str) -> bool {
    let is_range = text.starts_with("..") && text != ".." && !text.starts_with("../");
    !is_range && (text.starts_with(['/', '.']) || text.ends_with('/') || text.contains("//") || text.contains("/."))
}

/// Whether a text, if it is a revision, names commits and neither a tree nor a file: `main`, `HEAD~1`, `a..b`. Hashes can
/// be those of any object; a tag on another than a commit asks where it is made.
pub(in super::super::super) fn is_a_commit(text: &str) -> bool {
    if let Some((from, to)) = text.split_once("...").or_else(|| text.split_once("..")) {
        return text != ".." && [from, to].iter().all(|end| end.is_empty() || is_a_commit(end));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./@{}~^-".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '@' | '_'));
    let hash = |name: &str| name.len() >= 4 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let described = |name: &str| name.rsplit_once("-g").is_some_and(|(_, name)| hash(name));
    let name = text.split_once("@{").map_or(text, |(name, _)| name);
    let marked = name.contains(['~', '^']);
    begins && text.chars().all(plain) && !text.contains("^{") && (marked || !(hash(name) || described(name)))
}

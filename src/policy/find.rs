//! Which files the globs of `policy.files` name.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::pattern::{NamePattern, Side};

/// How many folders `**` goes down.
const MAX_DEPTH: usize = 16;

/// The policy files, sorted, and each glob that names none, with what is wrong: a lost file must not be a looser
/// policy. `*.test.yaml` is never one; a name that starts with a dot only where the glob says so.
pub(super) fn files(globs: &[String]) -> (Vec<PathBuf>, Vec<(String, String)>) {
    let (mut files, mut lost) = (BTreeSet::new(), Vec::new());
    for glob in globs {
        let mut found = BTreeSet::new();
        let parts: Vec<&str> = glob.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        match expand(Path::new("/"), &parts, 0, &mut found) {
            Ok(()) if found.is_empty() => lost.push((glob.clone(), "no policy file matches".into())),
            Ok(()) => files.extend(found),
            Err(what) => lost.push((glob.clone(), what)),
        }
    }
    (files.into_iter().collect(), lost)
}

/// What the name of a file of tests ends with.
const TEST: &str = ".test.yaml";

/// Whether a file holds tests, and so is never a policy.
pub fn is_test(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().ends_with(TEST))
}

/// The policy file that `NAME.test.yaml` belongs to, if it is there: `NAME.yaml` or `NAME.yml` beside it.
pub fn tested(test: &Path) -> Option<PathBuf> {
    let name = test.file_name()?.to_str()?.strip_suffix(TEST)?;
    ["yaml", "yml"].map(|extension| test.with_file_name(format!("{name}.{extension}"))).into_iter().find(|f| f.exists())
}

/// The test files in the folders of these policy files, sorted, but for those that belong to a policy file that is not
/// among them. A file whose policy is not there tests all of them, unless only those that `belong` are wanted. Names that
/// start with a dot are left out.
///
/// # Errors
/// A folder that cannot be listed.
pub(super) fn tests(policies: &[PathBuf], belong: bool) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let folders: BTreeSet<&Path> = policies.iter().filter_map(|file| file.parent()).collect();
    let mut tests = Vec::new();
    for folder in folders {
        let unreadable = |error| (folder.to_path_buf(), error);
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let file = entry.path();
            if !is_test(&file) || entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            if tested(&file).map_or(!belong, |policy| policies.contains(&policy)) {
                tests.push(file);
            }
        }
    }
    tests.sort();
    Ok(tests)
}

fn expand(folder: &Path, parts: &[&str], depth: usize, found: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let Some((part, rest)) = parts.split_first() else {
        let is_test = is_test(folder);
        // A link that leads nowhere is a lost file: reading it says so.
        if !is_test && (folder.is_file() || (folder.is_symlink() && !folder.exists())) {
            found.insert(folder.to_path_buf());
        }
        return Ok(());
    };
    if *part == ".." {
        return expand(&folder.join(part), rest, depth, found);
    }
    let deep = *part == "**";
    let pattern = NamePattern::parse(if deep { "*" } else { part }).map_err(|error| error.what)?;
    if let Some(name) = pattern.literal() {
        return expand(&folder.join(name), rest, depth, found);
    }
    if deep {
        expand(folder, rest, depth, found)?;
    }
    if !folder.is_dir() {
        return Ok(());
    }
    if depth > MAX_DEPTH {
        return Err(format!("{} lies too deep for `**`", folder.display()));
    }
    let unreadable = |error: std::io::Error| format!("{} cannot be read: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !pattern.matches(&name, Side::Exact) || (name.starts_with('.') && !part.starts_with('.')) {
            continue;
        }
        if !deep {
            expand(&entry.path(), rest, depth, found)?;
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            expand(&entry.path(), parts, depth + 1, found)?;
        }
    }
    Ok(())
}

//! How a path in a call is read: lexically and physically.

mod read;
mod resolve;
mod spelling;
mod uri;
mod walk;

use std::path::{Component, Path, PathBuf};

use crate::config::{FileSystem, Os, UpstreamConfig};
use crate::pattern::{Location, fold};

pub(super) use read::{Plain, other_texts};
pub(super) use uri::{file_rest, scheme};
pub use walk::{Walked, walk};

/// The names of a path, from `/`.
type Names = Vec<Box<str>>;

/// The file system that an upstream works in, as the gateway knows it.
#[derive(Clone, Debug)]
pub struct Space {
    root: PathBuf,
    /// The root in both spellings, as configured and with its links resolved; the longer one first.
    roots: Vec<Names>,
    /// The root with its links resolved.
    real_root: PathBuf,
    /// The root in the upstream's view.
    their_root: String,
    /// Where relative paths start, in the upstream's view.
    cwd: Names,
    mapped: Vec<Mapped>,
    filesystem: FileSystem,
    ignores_case: bool,
    hard_links_ask: bool,
    reader: spelling::Reader,
}

/// One entry of `path_map`.
#[derive(Clone, Debug)]
struct Mapped {
    /// The folder as the upstream names it.
    theirs: Names,
    /// As we name it.
    ours: Names,
    /// As we name it, with links resolved.
    real: Names,
}

impl Space {
    /// Reads the settings of an upstream; the root is made absolute and resolved once.
    pub fn new(config: &UpstreamConfig) -> Self {
        let root = absolute(&config.root);
        let shared = config.filesystem == FileSystem::Shared;
        let real = |path: &Path| {
            if shared {
                resolve::resolve(names(path).iter().map(|n| &**n), Path::new("/")).path
            } else {
                path.to_owned()
            }
        };
        let real_root = real(&root);
        let mut roots = vec![names(&root), names(&real_root)];
        roots.sort_by_key(|root| std::cmp::Reverse(root.len()));
        roots.dedup();
        let mut mapped: Vec<Mapped> = Vec::new();
        for (theirs, ours) in &config.path_map {
            let ours = absolute(ours);
            mapped.push(Mapped {
                theirs: fold_names(theirs.split('/')),
                real: names(&real(&ours)),
                ours: names(&ours),
            });
        }
        // The longest folder that holds a path decides.
        mapped.sort_by_key(|m| std::cmp::Reverse(m.theirs.len()));
        let mut space = Self {
            root,
            roots,
            real_root,
            their_root: String::new(),
            cwd: names(&absolute(&config.cwd)),
            mapped,
            filesystem: config.filesystem,
            ignores_case: config.case_insensitive || config.os == Os::Windows,
            hard_links_ask: config.hard_links_ask,
            reader: spelling::Reader::new(config),
        };
        space.cwd = space.their_names(&space.cwd).unwrap_or(space.cwd);
        let root = names(&space.root);
        space.their_root = Location::new(space.their_names(&root).unwrap_or(root), None).to_string();
        space
    }

    /// Whether its commands are read by a shell other than those we know.
    pub(super) fn has_another_shell(&self) -> bool {
        self.reader.windows
    }

    /// The root as configured, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The root in the upstream's view.
    pub fn their_root(&self) -> &str {
        &self.their_root
    }

    /// A location for an absolute lexical path, relative to the root where it lies below it in either spelling.
    pub fn locate(&self, absolute: &Path) -> Location {
        self.place(names(absolute))
    }

    /// The location of names that are ours.
    fn place(&self, names: Names) -> Location {
        let root = self.roots.iter().find(|root| self.starts_with(&names, root)).map(Vec::len);
        Location::new(names, root)
    }

    /// The location in the root that a location outside it would have, if case and Unicode form did not matter.
    fn place_widely(&self, outside: &Location) -> Option<Location> {
        if outside.root.is_some() {
            return None;
        }
        let root = self.roots.iter().find(|root| starts_with(&outside.components, root, |a, b| fold(a) == fold(b)))?;
        Some(Location::new(outside.components.clone(), Some(root.len())))
    }

    fn starts_with(&self, names: &[Box<str>], start: &[Box<str>]) -> bool {
        if self.ignores_case {
            starts_with(names, start, |a, b| a == b || fold(a) == fold(b))
        } else {
            names.starts_with(start)
        }
    }

    /// Our names for a path that the upstream names so; none where `path_map` has no place for it.
    fn our_names(&self, theirs: &[Box<str>]) -> Option<Names> {
        if self.mapped.is_empty() {
            return Some(theirs.to_vec());
        }
        let mapped = self.mapped.iter().find(|m| self.starts_with(theirs, &m.theirs))?;
        Some(mapped.ours.iter().chain(theirs.iter().skip(mapped.theirs.len())).cloned().collect())
    }

    /// The upstream's names for a path of ours; none where it does not see it.
    fn their_names(&self, ours: &[Box<str>]) -> Option<Names> {
        if self.mapped.is_empty() {
            return Some(ours.to_vec());
        }
        let fits = |m: &&Mapped| ours.starts_with(&m.ours) || ours.starts_with(&m.real);
        let mapped = self.mapped.iter().filter(fits).max_by_key(|m| m.ours.len())?;
        let skipped = if ours.starts_with(&mapped.ours) { mapped.ours.len() } else { mapped.real.len() };
        Some(mapped.theirs.iter().chain(ours.iter().skip(skipped)).cloned().collect())
    }
}

fn starts_with(names: &[Box<str>], start: &[Box<str>], same: impl Fn(&str, &str) -> bool) -> bool {
    names.len() >= start.len() && names.iter().zip(start).all(|(a, b)| same(a, b))
}

/// Absolute, with `.` and `..` folded.
fn absolute(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    std::iter::once("/").chain(names(&absolute).iter().map(|n| &**n)).collect()
}

/// The names of an absolute path, `.` and `..` folded. Names that are no UTF-8 are shown with U+FFFD.
fn names(path: &Path) -> Names {
    let components = path.components().map(Component::as_os_str);
    fold_names(components.map(|c| c.to_string_lossy()).filter(|c| c != "/"))
}

/// Folds `.` and `..` as text; the top is its own parent.
fn fold_names<N: AsRef<str>>(components: impl IntoIterator<Item = N>) -> Names {
    let mut folded = Names::new();
    for component in components {
        match component.as_ref() {
            "" | "." => {}
            ".." => {
                folded.pop();
            }
            name => folded.push(name.into()),
        }
    }
    folded
}

#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

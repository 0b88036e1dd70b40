//! What a recursive tool would meet below a folder, within a budget.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::resolve::{Seen, look, resolve};
use super::{Names, Space, names};
use crate::config::FileSystem;
use crate::pattern::Location;

/// What a walk below a folder found.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Walked {
    /// The first guarded path below, if there is one.
    pub guarded: Option<String>,
    /// A link that leaves the root.
    pub link_out: Option<String>,
    /// Another mount below.
    pub mount: Option<String>,
    /// The budget (20,000 entries or 50 ms) ran out first, or a folder could not be read.
    pub exhausted: bool,
}

const MAX_ENTRIES: usize = 20_000;
const MAX_TIME: Duration = Duration::from_millis(50);
/// How many entries pass between two looks at the clock.
const CLOCK_EVERY: usize = 32;

/// Walks below a folder within its budget, stopping at the first path that `guarded` names. Blocking.
///
/// A link's target is asked for, and walked too where it lies in the root, since the tool may follow it. Where the file
/// system is not shared there is nothing to walk.
pub fn walk(space: &Space, from: &Location, guarded: &mut dyn FnMut(&Location) -> bool) -> Walked {
    walk_within(MAX_ENTRIES, space, from, guarded)
}

fn walk_within(
    entries_left: usize,
    space: &Space,
    from: &Location,
    guarded: &mut dyn FnMut(&Location) -> bool,
) -> Walked {
    let mut walk =
        Walk { space, guarded, entries_left, found: Walked::default(), folders: VecDeque::new(), seen: HashSet::new() };
    if space.filesystem == FileSystem::Shared {
        let real = resolve(from.components.iter().map(|n| &**n), &space.real_root).path;
        let linked = names(&real) != from.components;
        walk.folders.push_back(Folder { real, names: from.components.clone(), linked });
        walk.run();
    }
    walk.found
}

struct Walk<'a> {
    space: &'a Space,
    guarded: &'a mut dyn FnMut(&Location) -> bool,
    entries_left: usize,
    found: Walked,
    folders: VecDeque<Folder>,
    /// Resolved folders that were walked or are about to be.
    seen: HashSet<PathBuf>,
}

struct Folder {
    real: PathBuf,
    /// As the tool would name it.
    names: Names,
    /// Whether that name leads through a link.
    linked: bool,
}

impl Walk<'_> {
    fn run(&mut self) {
        let end = Instant::now() + MAX_TIME;
        while let Some(folder) = self.folders.pop_front() {
            if !self.seen.insert(folder.real.clone()) {
                continue;
            }
            let Ok(listing) = std::fs::read_dir(&folder.real) else {
                // A file has nothing below it; a folder that we cannot read may have.
                self.found.exhausted |= folder.real.is_dir();
                continue;
            };
            for entry in listing {
                if self.entries_left == 0 || (self.entries_left.is_multiple_of(CLOCK_EVERY) && Instant::now() > end) {
                    self.found.exhausted = true;
                    return;
                }
                self.entries_left -= 1;
                let Ok(entry) = entry else {
                    self.found.exhausted = true;
                    continue;
                };
                if self.visit(&folder, &entry) {
                    return;
                }
            }
        }
    }

    /// Looks at one entry; whether the walk is over.
    fn visit(&mut self, folder: &Folder, entry: &std::fs::DirEntry) -> bool {
        let mut below = folder.names.clone();
        below.push(entry.file_name().to_string_lossy().into());
        let at = self.space.place(below);
        if self.guard(&at) || (folder.linked && self.guard(&self.space.locate(&entry.path()))) {
            return true;
        }
        let Ok(kind) = entry.file_type() else {
            self.found.exhausted = true;
            return false;
        };
        if kind.is_symlink() {
            return self.follow(&entry.path(), &at);
        }
        self.note_mount(&entry.path(), &at);
        if kind.is_dir() {
            self.folders.push_back(Folder { real: entry.path(), names: at.components.clone(), linked: folder.linked });
        }
        false
    }

    fn follow(&mut self, link: &Path, at: &Location) -> bool {
        let names = names(link);
        let target = resolve(names.iter().map(|n| &**n), &self.space.real_root).path;
        let leads = self.space.locate(&target);
        if self.guard(&leads) {
            return true;
        }
        if leads.root.is_none() {
            self.found.link_out.get_or_insert_with(|| at.to_string());
        } else if target.is_dir() {
            self.folders.push_back(Folder { real: target, names: leads.components.clone(), linked: false });
        }
        false
    }

    fn guard(&mut self, at: &Location) -> bool {
        let guarded = (self.guarded)(at);
        if guarded {
            self.found.guarded = Some(at.to_string());
        }
        guarded
    }

    fn note_mount(&mut self, path: &Path, at: &Location) {
        if self.found.mount.is_some() {
            return;
        }
        if let Ok(Seen::Other { mount: true, .. }) = look(path) {
            self.found.mount.get_or_insert_with(|| at.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::testing::Tree;
    use super::*;

    /// Walks `from`, with every path guarded that has the component.
    fn below(tree: &Tree, from: &str, guarded: &str) -> Walked {
        let space = tree.space(|_| {});
        walk(&space, &space.locate(&tree.root.join(from)), &mut |at| at.components.iter().any(|c| **c == *guarded))
    }

    #[test]
    fn a_guarded_path_below_is_found() {
        let tree = Tree::new(&["docs/a.md", "docs/deep/er/x.pem", "secrets/key.pem"]);
        let found = below(&tree, "", "secrets").guarded.unwrap();
        assert_eq!(Path::new(&found), tree.root.join("secrets"));
        assert!(below(&tree, "", "x.pem").guarded.is_some());
        assert_eq!(below(&tree, "docs", "secrets"), Walked::default());
        assert_eq!(below(&tree, "docs/a.md", "secrets"), Walked::default());
        assert_eq!(below(&tree, "nowhere", "secrets"), Walked::default());
    }

    #[test]
    fn links_are_told_and_followed_inside_the_root() {
        let tree = Tree::new(&["docs/a.md", "secrets/key.pem", "other/secrets/x", "src/main.rs"]);
        tree.link("docs/more", "../secrets");
        assert!(below(&tree, "docs", "secrets").guarded.is_some(), "straight into it");
        tree.remove("docs/more");
        tree.link("docs/up", "../other");
        assert!(below(&tree, "docs", "secrets").guarded.is_some(), "a guarded path below the target");
        tree.remove("docs/up");
        tree.link("docs/loop", ".");
        tree.link("docs/src", "../src");
        assert_eq!(below(&tree, "docs", "secrets"), Walked::default());
        tree.link("docs/out", "/usr");
        assert!(below(&tree, "docs", "secrets").link_out.unwrap().ends_with("/docs/out"));
    }

    #[test]
    fn the_budget_is_kept() {
        let tree = Tree::new(&["docs/a", "docs/b", "docs/c/d/secrets"]);
        let space = tree.space(|_| {});
        let docs = space.locate(&tree.root.join("docs"));
        let within = |entries: usize| {
            walk_within(entries, &space, &docs, &mut |at| at.components.iter().any(|c| **c == *"secrets"))
        };
        assert_eq!(within(4), Walked { exhausted: true, ..Walked::default() });
        assert!(within(5).guarded.is_some() && !within(5).exhausted);
    }

    #[test]
    fn a_folder_behind_a_link_is_asked_for_by_both_names() {
        let tree = Tree::new(&["other/deep/x"]);
        tree.link("docs", "other");
        let space = tree.space(|_| {});
        let mut asked = Vec::new();
        walk(&space, &space.locate(&tree.root.join("docs")), &mut |at| {
            asked.push(at.below_root().unwrap().join("/"));
            false
        });
        assert_eq!(asked, ["docs/deep", "other/deep", "docs/deep/x", "other/deep/x"]);
    }

    #[test]
    fn a_file_system_that_is_not_ours_is_not_walked() {
        let tree = Tree::new(&["secrets/key.pem"]);
        let space = tree.space(|config| config.filesystem = FileSystem::Remote);
        assert_eq!(walk(&space, &space.locate(&tree.root), &mut |_| true), Walked::default());
    }
}

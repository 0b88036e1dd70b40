//! Where a path really leads, component by component, as the kernel would walk it.
//!
//! Unlike `realpath(3)` this also follows what does not exist yet, tells a dangling link and a circle, sees mounts, and
//! never looks through `/proc`, whose links mean something else to each process.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::facet::{Floor, FloorWhy};

/// As many links as Linux follows (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// Where a path leads.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// Without links, as far as it exists; what does not exist is folded lexically.
    pub path: PathBuf,
    /// Dangling links, circles, mounts.
    pub floors: Vec<Floor>,
    /// How many hard links the file has; 0 where it is no regular file or does not exist.
    pub hard_links: u64,
}

impl Resolved {
    fn floor(&mut self, why: FloorWhy, detail: String) {
        let floor = Floor::because(why, detail);
        if !self.floors.contains(&floor) {
            self.floors.push(floor);
        }
    }
}

/// Walks the names from `/`. `root` is the upstream's, resolved: a mount below it is told.
pub(super) fn resolve<'a>(names: impl IntoIterator<Item = &'a str>, root: &Path) -> Resolved {
    let mut resolved = Resolved { path: PathBuf::from("/"), ..Resolved::default() };
    let mut rest: VecDeque<OsString> = names.into_iter().map(OsString::from).collect();
    // How many of the names at the front of `rest` come from a link's target.
    let mut from_link = 0_usize;
    let mut links = 0_usize;
    while let Some(name) = rest.pop_front() {
        let in_link = from_link > 0;
        from_link = from_link.saturating_sub(1);
        resolved.hard_links = 0;
        if name == ".." {
            resolved.path.pop();
            continue;
        }
        if name.is_empty() || name == "." {
            continue;
        }
        resolved.path.push(&name);
        if in_kernel_paths(&resolved.path) {
            continue;
        }
        match look(&resolved.path) {
            Ok(Seen::Link(target)) => {
                links += 1;
                if links > MAX_LINKS {
                    resolved.floor(FloorWhy::DanglingLink, "links lead in a circle".to_owned());
                    fold_onto(&mut resolved.path, rest);
                    return resolved;
                }
                resolved.path.pop();
                from_link += enter(&target, &mut resolved.path, &mut rest);
            }
            Ok(Seen::Other { hard_links, mount }) => {
                resolved.hard_links = hard_links;
                if mount && resolved.path != root && resolved.path.starts_with(root) {
                    let detail = format!("another mount at {}", resolved.path.display());
                    resolved.floor(FloorWhy::Mount, detail);
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                if in_link {
                    let detail = format!("a link leads to {}, which does not exist", resolved.path.display());
                    resolved.floor(FloorWhy::DanglingLink, detail);
                }
            }
            Err(error) => {
                let detail = format!("{} cannot be looked at: {error}", resolved.path.display());
                resolved.floor(FloorWhy::DanglingLink, detail);
            }
        }
    }
    resolved
}

/// Puts a link's target in front of what is left, and says how many names that is.
fn enter(target: &Path, at: &mut PathBuf, rest: &mut VecDeque<OsString>) -> usize {
    if target.is_absolute() {
        at.clear();
        at.push("/");
    }
    let mut entered = 0;
    for component in target.components().rev() {
        if let Component::Normal(_) | Component::ParentDir = component {
            rest.push_front(component.as_os_str().to_owned());
            entered += 1;
        }
    }
    entered
}

fn fold_onto(at: &mut PathBuf, rest: impl IntoIterator<Item = OsString>) {
    for name in rest {
        if name == ".." {
            at.pop();
        } else if !name.is_empty() && name != "." {
            at.push(name);
        }
    }
}

/// The trees that the kernel makes up: each process sees others, so we do not look.
fn in_kernel_paths(path: &Path) -> bool {
    let mut components = path.components().skip(1);
    components
        .next()
        .is_some_and(|first| [OsStr::new("proc"), OsStr::new("sys"), OsStr::new("dev")].contains(&first.as_os_str()))
}

/// What is at a path, links not followed.
#[derive(Debug)]
pub(super) enum Seen {
    /// A symbolic link with its target.
    Link(PathBuf),
    /// Anything else.
    Other {
        /// Of a regular file; else 0.
        hard_links: u64,
        /// Whether a file system is mounted here.
        mount: bool,
    },
}

/// One metadata look-up.
#[cfg(target_os = "linux")]
pub(super) fn look(path: &Path) -> io::Result<Seen> {
    use rustix::fs::{AtFlags, CWD, FileType, StatxAttributes, StatxFlags};

    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let stat = rustix::fs::statx(CWD, path, flags, StatxFlags::TYPE | StatxFlags::NLINK)?;
    match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::Symlink => std::fs::read_link(path).map(Seen::Link),
        kind => Ok(Seen::Other {
            hard_links: if kind == FileType::RegularFile { stat.stx_nlink.into() } else { 0 },
            mount: stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        }),
    }
}

/// One metadata look-up; a mount shows by its device.
#[cfg(not(target_os = "linux"))]
pub(super) fn look(path: &Path) -> io::Result<Seen> {
    use std::os::unix::fs::MetadataExt;

    let stat = path.symlink_metadata()?;
    if stat.is_symlink() {
        return path.read_link().map(Seen::Link);
    }
    let above = path.parent().and_then(|parent| parent.metadata().ok());
    Ok(Seen::Other {
        hard_links: if stat.is_file() { stat.nlink() } else { 0 },
        mount: above.is_some_and(|above| above.dev() != stat.dev()),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["docs", "secrets", "docs/sub"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        std::fs::write(root.join("secrets/key.pem"), "k").unwrap();
        std::fs::write(root.join("docs/a.md"), "a").unwrap();
        (dir, root)
    }

    fn at(root: &Path, path: &str) -> Resolved {
        let whole = format!("{}/{path}", root.display());
        resolve(whole.split('/'), root)
    }

    #[test]
    fn links_are_followed_and_missing_names_kept() {
        let (_dir, root) = tree();
        symlink("l2", root.join("docs/l3")).unwrap();
        symlink("l1", root.join("docs/l2")).unwrap();
        symlink("../secrets/key.pem", root.join("docs/l1")).unwrap();
        symlink("../secrets", root.join("docs/dir")).unwrap();
        for (path, leads) in [
            ("docs/l3", "secrets/key.pem"),
            ("docs/dir/key.pem", "secrets/key.pem"),
            ("docs/dir/new/deeper.txt", "secrets/new/deeper.txt"),
            ("docs/dir/none/../key.pem", "secrets/key.pem"),
            ("docs/dir/..", ""),
            ("docs/nope/../../secrets/key.pem", "secrets/key.pem"),
            ("docs/a.md/", "docs/a.md"),
            ("docs/./sub/../a.md", "docs/a.md"),
        ] {
            let resolved = at(&root, path);
            assert_eq!(resolved.path, root.join(leads).components().collect::<PathBuf>(), "{path}");
            assert!(resolved.floors.is_empty(), "{path}");
        }
    }

    #[test]
    fn a_dangling_link_leads_where_it_points() {
        let (_dir, root) = tree();
        symlink("../secrets/later", root.join("docs/dangling")).unwrap();
        symlink("dangling", root.join("docs/second")).unwrap();
        for path in ["docs/dangling", "docs/second", "docs/dangling/x"] {
            let resolved = at(&root, path);
            assert!(resolved.path.starts_with(root.join("secrets/later")), "{path}");
            assert!(resolved.floors.iter().any(|f| f.why == FloorWhy::DanglingLink), "{path}");
        }
    }

    #[test]
    fn a_circle_ends() {
        let (_dir, root) = tree();
        symlink("loop", root.join("docs/loop")).unwrap();
        symlink("b/x", root.join("docs/a")).unwrap();
        symlink("a/x", root.join("docs/b")).unwrap();
        for path in ["docs/loop/x", "docs/loop", "docs/a", "docs/b/y"] {
            assert!(at(&root, path).floors.iter().any(|f| f.why == FloorWhy::DanglingLink), "{path}");
        }
    }

    #[test]
    fn hard_links_are_counted() {
        let (_dir, root) = tree();
        std::fs::hard_link(root.join("secrets/key.pem"), root.join("docs/hard.md")).unwrap();
        symlink("hard.md", root.join("docs/soft.md")).unwrap();
        assert_eq!(at(&root, "docs/hard.md").hard_links, 2);
        assert_eq!(at(&root, "docs/soft.md").hard_links, 2);
        assert_eq!(at(&root, "docs/a.md").hard_links, 1);
        assert_eq!(at(&root, "docs").hard_links, 0, "a folder's links are its subfolders");
        assert_eq!(at(&root, "docs/hard.md/..").hard_links, 0);
    }

    #[test]
    fn the_kernels_own_links_are_not_ours_to_follow() {
        let (_dir, root) = tree();
        symlink("/proc/self/cwd/secrets", root.join("docs/cwd")).unwrap();
        assert_eq!(at(&root, "docs/cwd/key.pem").path, Path::new("/proc/self/cwd/secrets/key.pem"));
        assert_eq!(resolve(["dev", "fd", "3"], &root).path, Path::new("/dev/fd/3"));
        assert_eq!(resolve(["proc", "self", "..", "..", "etc"], &root).path, Path::new("/etc"));
    }

    #[test]
    fn the_top_is_its_own_parent() {
        assert_eq!(resolve(["..", "..", "usr"], Path::new("/x")).path, Path::new("/usr"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Where everything exists we agree with the kernel.
        #[test]
        fn what_exists_is_what_realpath_says(
            links in prop::collection::vec((0..6_usize, prop::collection::vec(0..9_usize, 1..5)), 0..6),
            asked in prop::collection::vec(0..9_usize, 1..8),
        ) {
            const NAMES: [&str; 9] = ["docs", "secrets", "sub", "a.md", "l0", "l1", "l2", "..", "."];
            let (_dir, root) = tree();
            let spell = |picks: &[usize]| picks.iter().map(|i| NAMES.get(*i).copied().unwrap()).collect::<Vec<_>>().join("/");
            for (place, target) in &links {
                let folder = ["", "docs", "secrets", "docs/sub", "", "docs"].get(*place).copied().unwrap();
                let name = ["l0", "l1", "l2"].get(place % 3).copied().unwrap();
                let _ = symlink(spell(target), root.join(folder).join(name));
            }
            let path = spell(&asked);
            let resolved = at(&root, &path);
            match root.join(&path).canonicalize() {
                Ok(real) => {
                    prop_assert_eq!(&resolved.path, &real);
                    prop_assert!(resolved.floors.iter().all(|f| f.why != FloorWhy::DanglingLink));
                }
                Err(_) => prop_assert!(resolved.path.is_absolute()),
            }
        }
    }
}

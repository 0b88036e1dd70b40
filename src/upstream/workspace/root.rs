//! The folder, and the only ways to open something below it.
//!
//! Everything is opened relative to a descriptor of the root, and no symbolic link is followed on the way: by `openat2`
//! where the kernel has it, else component by component with `O_NOFOLLOW`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;

use crate::pattern::fold;

/// A folder that is opened to be looked into; never a link.
pub(super) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// A file that is opened to be read; never a link, and never waiting for the other end of a pipe.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folder of a workspace, as one call sees it.
#[derive(Debug)]
pub(super) struct Root {
    dir: Arc<OwnedFd>,
    path: Arc<Path>,
    /// Whether a file that the call names may have other names (hard links).
    pub other_names: bool,
}

/// A path below the root, checked as a text: no `..`, nothing guarded.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Place {
    components: Vec<String>,
}

/// Whether a name is out of bounds for every tool.
pub(super) fn is_guarded(name: &str) -> bool {
    fold(name) == "secrets"
}

impl Root {
    /// # Errors
    /// The folder cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let dir = rustix::fs::open(&path, FOLDER, Mode::empty())?;
        Ok(Self { dir: Arc::new(dir), path: path.into(), other_names: false })
    }

    /// The same folder for a call that was judged with or without regard to other names.
    pub fn for_call(&self, other_names: bool) -> Self {
        Self { dir: Arc::clone(&self.dir), path: Arc::clone(&self.path), other_names }
    }

    /// Reads a path: absolute and below the canonical root, or relative to it.
    ///
    /// # Errors
    /// It leads elsewhere, or to something guarded; for the model.
    pub fn place(&self, text: &str) -> Result<Place, String> {
        let path = Path::new(text);
        let below = if path.is_absolute() {
            path.strip_prefix(&*self.path)
                .map_err(|_| format!("`{text}` is outside the workspace; name a path below {}", self.path.display()))?
        } else {
            path
        };
        let mut components = Vec::new();
        for component in below.components() {
            match component {
                Component::CurDir => {}
                Component::Normal(name) => components.push(name.to_string_lossy().into_owned()),
                _ => return Err(format!("`{text}` holds `..`; name the path without it")),
            }
        }
        if components.iter().any(|name| is_guarded(name)) {
            return Err(format!("`{text}` is refused: nothing in a folder called `secrets` is opened here"));
        }
        Ok(Place { components })
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// It cannot be opened, or a link is in the way; for the model.
    pub fn folder(&self, place: &Place) -> Result<OwnedFd, String> {
        self.beneath(&place.components, FOLDER).map_err(|errno| place.told(errno))
    }

    /// Opens a regular file for reading.
    ///
    /// # Errors
    /// It cannot be opened, is no file, or a link is in the way; for the model.
    pub fn file(&self, place: &Place) -> Result<File, String> {
        let file = self.beneath(&place.components, FILE).map_err(|errno| place.told(errno))?;
        regular(file, self.other_names).map_err(|errno| place.told(errno))
    }

    /// Opens the folder in which a path's last component stands, and tells that component. With `create`, folders that
    /// are missing are made.
    ///
    /// # Errors
    /// It cannot be opened, the path is the root itself, or a link is in the way; for the model.
    pub fn parent<'a>(&self, place: &'a Place, create: bool) -> Result<(OwnedFd, &'a str), String> {
        let Some((name, parents)) = place.components.split_last() else {
            return Err("the path names the workspace's own folder; name a file".into());
        };
        let folder = match self.beneath(parents, FOLDER) {
            Err(Errno::NOENT) if create => self.make(parents),
            other => other,
        };
        Ok((folder.map_err(|errno| place.told(errno))?, name))
    }

    fn make(&self, components: &[String]) -> Result<OwnedFd, Errno> {
        let mut dir = openat(&self.dir, ".", FOLDER, Mode::empty())?;
        for name in components {
            dir = match openat(&dir, name, FOLDER, Mode::empty()) {
                Err(Errno::NOENT) => {
                    match mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(errno),
                    }
                    openat(&dir, name, FOLDER, Mode::empty())?
                }
                other => other?,
            };
        }
        Ok(dir)
    }

    #[cfg(target_os = "linux")]
    fn beneath(&self, components: &[String], flags: OFlags) -> Result<OwnedFd, Errno> {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let path: PathBuf = if components.is_empty() { ".".into() } else { components.iter().collect() };
        match openat2(&self.dir, path, flags, Mode::empty(), resolve) {
            // An old kernel, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM) => walk(self.dir.as_fd(), components, flags),
            other => other,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn beneath(&self, components: &[String], flags: OFlags) -> Result<OwnedFd, Errno> {
        walk(self.dir.as_fd(), components, flags)
    }
}

impl Place {
    /// The path below the root; empty for the root itself.
    pub fn text(&self) -> String {
        self.components.join("/")
    }

    /// What an error of the system means here, for the model.
    pub fn told(&self, errno: Errno) -> String {
        let path = if self.components.is_empty() { ".".to_owned() } else { self.text() };
        match errno {
            Errno::LOOP | Errno::XDEV => {
                format!("`{path}` goes through a symbolic link, which is never followed; name the real path")
            }
            Errno::NOENT => format!("there is no `{path}`"),
            Errno::NOTDIR => {
                format!("`{path}` is not there: a part of it is a file or a link where a folder is needed")
            }
            Errno::ISDIR => format!("`{path}` is a folder; name a file"),
            Errno::MLINK => {
                format!("`{path}` has other names (hard links) since the call was judged; nothing was done, call again")
            }
            Errno::INVAL => format!("`{path}` is no regular file"),
            Errno::ACCESS | Errno::PERM => format!("the gateway's user may not open `{path}`"),
            errno => format!("`{path}` cannot be opened: {}", io::Error::from(errno)),
        }
    }
}

/// A regular file, else `EISDIR` or `EINVAL`; `EMLINK` if it has other names and must not.
pub(super) fn regular(file: OwnedFd, other_names: bool) -> Result<File, Errno> {
    let stat = fstat(&file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if !other_names && stat.st_nlink > 1 => Err(Errno::MLINK),
        FileType::RegularFile => Ok(file.into()),
        FileType::Directory => Err(Errno::ISDIR),
        _ => Err(Errno::INVAL),
    }
}

/// Opens a file in a folder for reading, without following a link.
pub(super) fn file_in(folder: impl AsFd, name: impl rustix::path::Arg, other_names: bool) -> Result<File, Errno> {
    regular(openat(folder, name, FILE, Mode::empty())?, other_names)
}

/// Opens component by component; a link on the way, or at the end, is an error.
fn walk(root: std::os::fd::BorrowedFd<'_>, components: &[String], flags: OFlags) -> Result<OwnedFd, Errno> {
    let Some((last, parents)) = components.split_last() else {
        return openat(root, ".", flags, Mode::empty());
    };
    let mut dir = openat(root, ".", FOLDER, Mode::empty())?;
    for name in parents {
        dir = openat(&dir, name, FOLDER, Mode::empty())?;
    }
    openat(&dir, last, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn sample() -> (tempfile::TempDir, Root) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for name in ["docs/deep", "secrets"] {
            fs::create_dir_all(path.join(name)).unwrap();
        }
        fs::write(path.join("docs/deep/a.md"), "a").unwrap();
        fs::write(path.join("secrets/key"), "hidden").unwrap();
        symlink("../secrets", path.join("docs/out")).unwrap();
        symlink("../../secrets/key", path.join("docs/deep/key")).unwrap();
        symlink("deep", path.join("docs/same")).unwrap();
        let root = Root::open(path).unwrap();
        (folder, root)
    }

    #[test]
    fn reads_paths_only_below_the_root() {
        let (folder, root) = sample();
        let absolute = folder.path().canonicalize().unwrap().join("docs//./a.md");
        assert_eq!(root.place(absolute.to_str().unwrap()).unwrap().text(), "docs/a.md");
        assert_eq!(root.place("").unwrap().text(), "");
        for outside in ["/etc/passwd", "/", "..", "docs/../docs/a", "../x"] {
            root.place(outside).unwrap_err();
        }
        let sibling = format!("{}-else/x", folder.path().canonicalize().unwrap().display());
        root.place(&sibling).unwrap_err();
    }

    #[test]
    fn every_spelling_of_secrets_is_refused() {
        let (_folder, root) = sample();
        for path in ["secrets", "secrets/key", "./SECRETS/key", "docs/Secrets ", "sec\u{200b}rets/key", "\u{17f}ecrets"]
        {
            assert!(root.place(path).unwrap_err().contains("refused"), "{path}");
        }
        root.place("docs/secrets.md").unwrap();
    }

    #[test]
    fn no_link_is_followed_with_or_without_openat2() {
        let (_folder, root) = sample();
        for (path, opens) in [
            ("docs/deep/a.md", true),
            ("docs/out/key", false),
            ("docs/deep/key", false),
            ("docs/same/a.md", false),
            ("docs/out", false),
        ] {
            let place = root.place(path).unwrap();
            assert_eq!(root.beneath(&place.components, FILE).is_ok(), opens, "{path}");
            assert_eq!(walk(root.dir.as_fd(), &place.components, FILE).is_ok(), opens, "{path} component by component");
        }
        let mut text = String::new();
        root.file(&root.place("docs/deep/a.md").unwrap()).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "a");
    }

    #[test]
    fn folders_are_made_without_following_links() {
        let (folder, root) = sample();
        let place = root.place("docs/new/er/file").unwrap();
        assert_eq!(root.parent(&place, true).unwrap().1, "file");
        assert!(folder.path().join("docs/new/er").is_dir());
        root.parent(&root.place("docs/out/new/file").unwrap(), true).unwrap_err();
        assert!(!folder.path().join("secrets/new").exists());
    }

    #[test]
    fn a_pipe_is_no_file_and_does_not_block() {
        let (folder, root) = sample();
        rustix::fs::mkfifoat(rustix::fs::CWD, folder.path().join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
        let told = root.file(&root.place("pipe").unwrap()).unwrap_err();
        assert_eq!(told, "`pipe` is no regular file");
        assert!(root.file(&root.place("docs").unwrap()).unwrap_err().contains("is a folder"));
    }
}

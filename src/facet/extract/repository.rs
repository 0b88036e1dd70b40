//! Where git finds its repository, and what it takes for one (gitrepository-layout(5)).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::command::below;
use super::*;
use crate::pattern::Location;

impl Call<'_> {
    /// A folder that a tool of git works in.
    pub(super) fn repository_argument(&mut self) -> Result<(), Malformed> {
        let Some(pointer) = &self.tool.repository else { return Ok(()) };
        for (_, text) in self.texts(pointer, "a path")? {
            let floor = self.repository(text, true);
            self.floors.extend(floor);
        }
        Ok(())
    }

    /// A floor where git would take a folder that is named like any other for a repository: by its `config` it runs
    /// what whoever wrote it likes. `still`: nothing was written since the call was made.
    pub(super) fn repository(&self, base: &str, still: bool) -> Option<Floor> {
        let folder = self.folder(base)?;
        let odd = folder.ancestors().find_map(|folder| {
            let usual = is_repository(&folder.join(".git"), None);
            (usual || is_repository(folder, None)).then_some(!usual)
        });
        let why = if folder.iter().any(|name| name == ".git") {
            "git within a `.git` folder, where it reads paths in another way"
        } else if odd == Some(true) {
            "a folder that git takes for a repository, whose settings can run programs"
        } else if !still && !is_repository(&folder.join(".git"), None) {
            "git in a folder that this text may make a repository first"
        } else {
            return None;
        };
        Some(Floor::because(FloorWhy::Shell, why))
    }

    /// Where the repository starts that a directory lies in, or that directory if it lies in none; none where nobody
    /// can look.
    pub(super) fn top_of(&self, base: &str) -> Option<String> {
        let folder = self.folder(base)?;
        let above = || folder.ancestors().enumerate();
        // One that git does not take for a repository may only be passed over if there is another.
        let top = above()
            .find(|(_, folder)| is_repository(&folder.join(".git"), None))
            .or_else(|| above().find(|(_, folder)| folder.join(".git").symlink_metadata().is_ok()));
        Some(match top {
            None | Some((0, _)) => base.to_owned(),
            Some((up, _)) => below(base, &vec![".."; up].join("/")),
        })
    }

    /// Whether there is a file or a folder of that name, as git looks for what may be a revision instead; none where
    /// nobody can look, or git does not.
    pub(super) fn is_there(&self, base: &str, text: &str) -> Option<bool> {
        let base = if base.is_empty() { None } else { Some(self.space.plain(base).ok()?) };
        let plain = self.space.plain(text).ok()?;
        let at = self.space.read(&plain, base.as_ref(), true).physical.into_iter().next()?;
        Some(on_disk(&at).symlink_metadata().is_ok())
    }

    /// A directory on disk; none where nobody can look.
    fn folder(&self, base: &str) -> Option<PathBuf> {
        let plain = self.space.plain(if base.is_empty() { "." } else { base }).ok()?;
        self.space.read(&plain, None, false).physical.first().map(on_disk)
    }
}

/// Whether a write to a place makes git take a folder that is named like any other for a repository, or changes one.
pub(super) fn makes_one(at: &Location) -> bool {
    let path = on_disk(at);
    if path.iter().any(|name| name == ".git") {
        return false;
    }
    let folders = path.ancestors().zip(path.ancestors().skip(1));
    folders
        .into_iter()
        .any(|(new, folder)| is_repository(folder, new.file_name()) && !is_repository(&folder.join(".git"), None))
}

/// Whether git takes a folder for the place of a repository, or a file for its name, once it has `more`.
fn is_repository(at: &Path, more: Option<&OsStr>) -> bool {
    let has = |name: &str| more == Some(OsStr::new(name)) || at.join(name).symlink_metadata().is_ok();
    at.is_file() || (has("HEAD") && (has("commondir") || (has("objects") && has("refs"))))
}

fn on_disk(at: &Location) -> PathBuf {
    at.components.iter().fold(PathBuf::from("/"), |path, name| path.join(&**name))
}

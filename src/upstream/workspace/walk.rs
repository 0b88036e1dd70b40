//! Walking below a folder within bounds, without following links and past everything guarded.

use std::ffi::{CStr, CString};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, openat, statat};

use super::root::{FOLDER, is_guarded};
use super::tool::Stop;

/// How many entries are looked at.
const MAX_ENTRIES: usize = 20_000;
/// How many folders deep.
const MAX_DEPTH: usize = 32;

/// One entry of a folder.
pub(super) struct Entry<'a> {
    /// The folder that it stands in.
    pub folder: &'a OwnedFd,
    /// Its name, to be opened.
    pub raw_name: &'a CStr,
    /// Its name, to be shown.
    pub name: &'a str,
    /// Its path below the folder where the walk began.
    pub path: &'a str,
    /// What it is.
    pub kind: FileType,
}

/// What was left out of a walk.
#[derive(Debug, Default)]
pub(super) struct Left {
    entries: usize,
    guarded: usize,
    unreadable: usize,
    too_many: bool,
    too_deep: bool,
}

impl Left {
    /// Says what was left out; empty if nothing was.
    pub fn note(&self) -> String {
        let mut note = String::new();
        let mut say = |holds: bool, what: &str| {
            if holds {
                note.push_str(what);
            }
        };
        say(self.too_many, &format!("[stopped after {MAX_ENTRIES} entries; name a folder further down]\n"));
        say(self.too_deep, &format!("[folders more than {MAX_DEPTH} deep were left out]\n"));
        say(self.guarded > 0, &format!("[guarded and left out: {}]\n", self.guarded));
        say(self.unreadable > 0, &format!("[folders that could not be read: {}]\n", self.unreadable));
        note
    }
}

/// Visits the entries of a folder in the order of their names, with all below if `recursive`, until the visitor breaks.
///
/// # Errors
/// The run was stopped, or the folder cannot be read; for the model.
pub(super) fn walk(
    folder: &OwnedFd,
    recursive: bool,
    stop: &Stop,
    visit: &mut dyn FnMut(&Entry<'_>) -> ControlFlow<()>,
) -> Result<Left, String> {
    let mut walk = Walk { recursive, stop, visit, left: Left::default() };
    // That the visitor has enough is no error.
    let _enough = walk.folder(folder, "", 0)?;
    Ok(walk.left)
}

struct Walk<'a> {
    recursive: bool,
    stop: &'a Stop,
    visit: &'a mut dyn FnMut(&Entry<'_>) -> ControlFlow<()>,
    left: Left,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &OwnedFd, prefix: &str, depth: usize) -> Result<ControlFlow<()>, String> {
        let entries = match self.entries(folder) {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(format!("the folder cannot be read: {error}")),
            Err(_) => {
                self.left.unreadable += 1;
                return Ok(ControlFlow::Continue(()));
            }
        };
        for (raw_name, kind) in entries {
            self.stop.check()?;
            let name = raw_name.to_string_lossy();
            if is_guarded(&name) {
                self.left.guarded += 1;
                continue;
            }
            let path = format!("{prefix}{name}");
            let entry = Entry { folder, raw_name: &raw_name, name: &name, path: &path, kind };
            if (self.visit)(&entry).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if !self.recursive || kind != FileType::Directory {
                continue;
            }
            if depth + 1 >= MAX_DEPTH {
                self.left.too_deep = true;
                continue;
            }
            match openat(folder, raw_name.as_c_str(), FOLDER, Mode::empty()) {
                Ok(below) => {
                    if self.folder(&below, &format!("{path}/"), depth + 1)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Err(_) => self.left.unreadable += 1,
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The entries of one folder by name, as many as the walk may yet look at.
    fn entries(&mut self, folder: &OwnedFd) -> rustix::io::Result<Vec<(CString, FileType)>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if self.left.entries >= MAX_ENTRIES {
                self.left.too_many = true;
                break;
            }
            self.left.entries += 1;
            let kind = match entry.file_type() {
                FileType::Unknown => statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                known => known,
            };
            entries.push((name.to_owned(), kind));
        }
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(entries)
    }
}

//! Giving a file new content: by renaming where that is possible, so that nobody sees half of it.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fchmod, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

use crate::secret::random_id;
use crate::upstream::workspace::root::regular;
use crate::upstream::workspace::tool::Stop;

/// Why a file was not written.
pub(super) enum Unwritten {
    /// Told to stop before it was changed.
    Stopped(String),
    /// The system refused.
    Refused(Errno),
}

impl From<Errno> for Unwritten {
    fn from(errno: Errno) -> Self {
        Self::Refused(errno)
    }
}

/// Writes a file in an open folder. An existing one keeps its mode; what is no regular file, a link too, is refused, and
/// one with other names where there must be none.
pub(super) fn replace(
    folder: &OwnedFd,
    name: &str,
    content: &[u8],
    other_names: bool,
    stop: &Stop,
) -> Result<(), Unwritten> {
    let mode = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if !other_names && stat.st_nlink > 1 => return Err(Errno::MLINK.into()),
            FileType::RegularFile => Some(Mode::from_raw_mode(stat.st_mode)),
            FileType::Symlink => return Err(Errno::LOOP.into()),
            FileType::Directory => return Err(Errno::ISDIR.into()),
            _ => return Err(Errno::INVAL.into()),
        },
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(errno.into()),
    };
    stop.check().map_err(Unwritten::Stopped)?;
    let new = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let draft = random_id(".portcullis-draft-", 9);
    match openat(folder, &draft, new, Mode::from_raw_mode(0o666)) {
        Ok(file) => {
            let written = fill(file, mode, content).and_then(|()| {
                stop.check().map_err(Unwritten::Stopped)?;
                Ok(renameat(folder, &draft, folder, name)?)
            });
            if written.is_err() {
                // What cannot be removed either stays behind under a name that tells whose it is.
                let _left = unlinkat(folder, &draft, AtFlags::empty());
            }
            written
        }
        // A file that may be written in a folder that may not: in place.
        Err(Errno::ACCESS | Errno::PERM) if mode.is_some() => {
            let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let file = regular(openat(folder, name, flags, Mode::empty())?, other_names)?;
            file.set_len(0).map_err(errno)?;
            fill(file.into(), None, content)
        }
        Err(errno) => Err(errno.into()),
    }
}

fn fill(file: OwnedFd, mode: Option<Mode>, content: &[u8]) -> Result<(), Unwritten> {
    if let Some(mode) = mode {
        fchmod(&file, mode)?;
    }
    let mut file = File::from(file);
    file.write_all(content).and_then(|()| file.sync_all()).map_err(errno)?;
    Ok(())
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

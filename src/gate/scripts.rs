//! The content of what a call would run as a script: what was approved must be what runs (design.md, "Bound to the exact
//! call").

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use sha2::{Digest, Sha256};

use crate::approval::Script;
use crate::facet::{CommandFacet, FacetKind, PathFacet, Touched};
use crate::record::Access;

/// The largest script that is bound, in bytes.
const LARGEST: u64 = 1 << 20;

/// Scripts of one call that are read.
const MOST: usize = 16;

/// Shells; they run the file that they are given.
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// The scripts of a call as they are now. Reads files: not on a thread that serves others.
pub fn read(touched: &Touched) -> Vec<Script> {
    let mut scripts: Vec<Script> = Vec::new();
    for path in touched.facets.iter().filter_map(|facet| match &facet.kind {
        FacetKind::Path(path) => Some(path),
        _ => None,
    }) {
        if !path.command.as_ref().is_some_and(|command| runs(command, path)) {
            continue;
        }
        for at in path.physical.iter().filter(|at| at.below_root().is_some()) {
            let path = at.to_string();
            if scripts.iter().any(|known| known.path == path) {
                continue;
            }
            match content(&path) {
                Content::NoFile => {}
                Content::Bytes(bytes) if scripts.len() < MOST => {
                    scripts.push(Script { path, content: Some(hash(&bytes)), shown: false });
                }
                Content::Bytes(_) | Content::Unbound => scripts.push(Script { path, content: None, shown: false }),
            }
        }
    }
    scripts.sort_by(|a, b| a.path.cmp(&b.path));
    scripts
}

/// The first script that is not the same any more.
pub fn changed<'a>(shown: &'a [Script], now: &'a [Script]) -> Option<&'a str> {
    let gone = shown.iter().find(|script| !now.contains(script));
    gone.or_else(|| now.iter().find(|script| !shown.contains(script))).map(|script| script.path.as_str())
}

/// Whether a command would run a file that it names: it is the program itself, a shell's operand, or anything that a
/// program is given of which nobody knows what it does with it.
fn runs(command: &Arc<CommandFacet>, path: &PathFacet) -> bool {
    if path.access == Some(Access::Write) || path.access == Some(Access::Delete) {
        return false;
    }
    let program = command.words.first().map(|word| word.text.as_str()).unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or(program);
    path.sent == program || SHELLS.contains(&name) || !command.tabled
}

/// A file as it is now.
pub enum Content {
    /// All of it.
    Bytes(Vec<u8>),
    /// Too large, or not to be read.
    Unbound,
    /// Nothing there, or no regular file.
    NoFile,
}

/// How a content is named in what an approval binds.
pub fn hash(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// Reads a file of at most 1 MiB. Not on a thread that serves others.
pub fn content(path: &str) -> Content {
    // A pipe must not keep anybody waiting.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Content::NoFile,
        Err(_) => return Content::Unbound,
    };
    match file.metadata() {
        Ok(found) if found.is_file() => {}
        _ => return Content::NoFile,
    }
    let mut bytes = Vec::new();
    match file.take(LARGEST + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 <= LARGEST => Content::Bytes(bytes),
        _ => Content::Unbound,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use std::fs;

    use super::*;
    use crate::config::{Transport, UpstreamConfig};
    use crate::facet::extract_shell;
    use crate::facet::path::Space;

    fn space(root: &std::path::Path) -> Space {
        Space::new(&UpstreamConfig::new("work", Transport::Workspace, root.to_owned()))
    }

    #[test]
    fn what_would_run_is_bound_and_what_is_only_read_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["deploy.sh", "tool.py", "notes.md"] {
            fs::write(root.join(name), name).unwrap();
        }
        fs::write(root.join("large.sh"), vec![b'#'; (1 << 20) + 1]).unwrap();
        let space = space(&root);
        let scripts = |text: &str| read(&extract_shell(&space, text).unwrap());
        let names = |text: &str| -> Vec<String> {
            let name = |script: Script| script.path.strip_prefix(root.to_str().unwrap()).unwrap().to_owned();
            scripts(text).into_iter().map(name).collect()
        };
        for (text, bound) in [
            ("sh deploy.sh", "/deploy.sh"),
            ("./deploy.sh --now", "/deploy.sh"),
            ("env LANG=C bash deploy.sh > notes.md", "/deploy.sh"),
            ("cat notes.md && python3 tool.py", "/tool.py"),
            (". ./deploy.sh", "/deploy.sh"),
        ] {
            assert_eq!(names(text), [bound], "{text}");
        }
        for text in ["cat notes.md", "git add deploy.sh", "sh missing.sh", "echo hi > deploy.sh", "sh /etc/passwd"] {
            assert!(names(text).is_empty(), "{text}");
        }
        assert_eq!(scripts("sh large.sh")[0].content, None);

        let shown = scripts("sh deploy.sh");
        assert_eq!(changed(&shown, &scripts("sh deploy.sh")), None);
        fs::write(root.join("deploy.sh"), "rm -rf /").unwrap();
        assert!(changed(&shown, &scripts("sh deploy.sh")).unwrap().ends_with("/deploy.sh"));
        fs::remove_file(root.join("deploy.sh")).unwrap();
        assert!(changed(&shown, &scripts("sh deploy.sh")).is_some());
    }
}

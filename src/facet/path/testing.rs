//! A small tree and the space over it, for tests.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::Space;
use crate::config::{Transport, UpstreamConfig};

/// A temporary folder with files in it.
pub(in crate::facet) struct Tree {
    _dir: tempfile::TempDir,
    pub root: PathBuf,
}

impl Tree {
    pub(in crate::facet) fn new(files: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        Self { _dir: dir, root }
    }

    /// `docs/a.md`, `src/main.rs` and `secrets/key.pem`.
    pub(in crate::facet) fn usual() -> Self {
        Self::new(&["docs/a.md", "src/main.rs", "secrets/key.pem"])
    }

    pub(in crate::facet) fn link(&self, at: &str, target: &str) {
        symlink(target, self.root.join(at)).unwrap();
    }

    pub(in crate::facet) fn remove(&self, at: &str) {
        std::fs::remove_file(self.root.join(at)).unwrap();
    }

    /// `$ROOT` in a text, replaced.
    pub(in crate::facet) fn fill(&self, text: &str) -> String {
        text.replace("$ROOT", self.root.to_str().unwrap())
    }

    pub(in crate::facet) fn space(&self, change: impl FnOnce(&mut UpstreamConfig)) -> Space {
        let mut config = UpstreamConfig::new("files", Transport::Workspace, self.root.clone());
        change(&mut config);
        Space::new(&config)
    }
}

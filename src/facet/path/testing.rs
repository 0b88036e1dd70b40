//! A small tree and the space over it, for tests.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::Duration;

use super::Space;
use crate::catalog::Catalogue;
use crate::config::{FileSystem, ForwardPaths, OnDisconnect, Os, Transport, UpstreamConfig};

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
        let mut config = UpstreamConfig {
            id: "files".to_owned(),
            transport: Transport::Workspace,
            root: self.root.clone(),
            cwd: self.root.clone(),
            filesystem: FileSystem::Shared,
            os: Os::Linux,
            case_insensitive: false,
            path_map: Vec::new(),
            expands_tilde: false,
            expands_env: false,
            forward_paths: ForwardPaths::AsSent,
            hard_links_ask: true,
            catalogue: Catalogue::default(),
            on_disconnect: OnDisconnect::Auto,
            timeout: Duration::from_secs(1),
        };
        change(&mut config);
        Space::new(&config)
    }
}

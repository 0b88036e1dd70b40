//! The built-in executor: files and commands below one folder, in process.
//!
//! It opens only the path it is given, component by component without links: where the gateway forwards the canonical
//! path that was judged, nothing that is swapped in between can lead elsewhere. It never lists, searches or opens
//! anything called `secrets`, whatever the policy says. `execute_cmd` is another matter: a command can reach what the
//! gateway's own user can, and is only as safe as the policy that lets it pass.

mod driver;
mod execute;
mod files;
mod link;
mod protocol;
mod root;
mod tool;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;

use super::place::place;
use super::slots::Slots;
use super::{MAX_AT_ONCE, not_run};
use crate::gate::{Fault, Link, Opening, Place, Upstream, UpstreamError};
use link::WorkspaceLink;
use root::Root;

/// The built-in executor on one folder.
#[derive(Debug)]
pub struct Workspace {
    id: String,
    root: PathBuf,
    slots: Arc<Slots>,
    up: AtomicBool,
}

impl Workspace {
    /// A workspace on the folder `root`; it is opened with each link.
    pub fn new(id: &str, root: &Path) -> Self {
        Self {
            id: id.to_owned(),
            root: root.to_owned(),
            slots: Arc::new(Slots::new(MAX_AT_ONCE)),
            up: AtomicBool::new(true),
        }
    }
}

impl Upstream for Workspace {
    fn id(&self) -> &str {
        &self.id
    }

    fn place(&self) -> Place {
        place("workspace", [self.root.as_os_str().as_encoded_bytes()], &self.root.display().to_string(), true)
    }

    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<Arc<dyn Link>, UpstreamError>> {
        Box::pin(async move {
            let root = Root::open(&self.root);
            self.up.store(root.is_ok(), Ordering::Relaxed);
            let root = root.map_err(|error| {
                let (id, root) = (&self.id, self.root.display());
                let what = format!("workspace `{id}` cannot open its folder {root} ({error}); create it or set `root`");
                not_run(Fault::Unreachable, what)
            })?;
            let link = WorkspaceLink::new(root, Arc::clone(&self.slots), opening);
            Ok(Arc::new(link) as Arc<dyn Link>)
        })
    }

    fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.slots.end())
    }
}

#[cfg(test)]
mod tests;

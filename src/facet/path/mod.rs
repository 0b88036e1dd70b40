//! How a path in a call is read: lexically and physically.

use std::path::{Path, PathBuf};

use crate::config::UpstreamConfig;
use crate::pattern::Location;

/// The file system that an upstream works in, as the gateway knows it.
#[derive(Clone, Debug)]
pub struct Space {
    pub(crate) root: PathBuf,
}

impl Space {
    /// Reads the settings of an upstream; the root is made absolute and resolved once.
    pub fn new(config: &UpstreamConfig) -> Self {
        let _ = config;
        unimplemented!()
    }

    /// The root as configured, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A location for an absolute lexical path, relative to the root where it lies below it in either spelling.
    pub fn locate(&self, absolute: &Path) -> Location {
        let _ = absolute;
        unimplemented!()
    }
}

/// What a walk below a folder found.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    /// The first guarded path below, if there is one.
    pub guarded: Option<String>,
    /// A link that leaves the root.
    pub link_out: Option<String>,
    /// Another mount below.
    pub mount: Option<String>,
    /// The budget (20,000 entries or 50 ms) ran out first.
    pub exhausted: bool,
}

/// Walks below a folder within its budget, stopping at the first path that `guarded` names. Blocking.
pub fn walk(space: &Space, from: &Location, guarded: &mut dyn FnMut(&Location) -> bool) -> Walked {
    let _ = (space, from, guarded);
    unimplemented!()
}

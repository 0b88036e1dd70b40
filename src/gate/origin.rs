//! Which process runs a held call, where several share a state folder: the one that serves it, and after its end one
//! with the very same executor.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{Executor, Gate, Place, Session, Upstream};
use crate::approval::{Held, Origin};
use crate::config::UpstreamConfig;
use crate::store::{Retry, StoreError};

/// How long after its stream closed a session counts as left by its client, for calls to be picked up elsewhere. Clients
/// open a broken stream again within a second or two.
const LEFT: Duration = Duration::from_secs(5);

/// The same for a session that never had a stream: from its last request on.
const SILENT: Duration = Duration::from_secs(60);

/// An executor's place, under its name and with the root that its paths are judged by.
pub fn place(upstream: &dyn Upstream, config: &UpstreamConfig) -> Place {
    let Place { digest, shown } = upstream.place();
    let mut hash = Sha256::new();
    for part in [config.id.as_bytes(), digest.as_bytes(), config.root.as_os_str().as_encoded_bytes()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    Place { digest: hex::encode(hash.finalize()), shown }
}

impl Executor {
    /// Where a call that is held now would run; the store adds the process.
    pub(super) fn origin(&self) -> Origin {
        Origin { process: None, gone_since: None, executor: self.place.digest.clone() }
    }
}

impl Gate {
    /// Whether this process serves a held call.
    pub(super) fn serves(&self, held: &Held) -> bool {
        held.intent.origin.process.as_deref() == Some(self.store.process())
    }

    /// Whether nobody serves a held call, and this process could.
    pub(super) fn could_adopt(&self, held: &Held) -> bool {
        let origin = &held.intent.origin;
        held.call().outcome.is_none()
            && origin.process.is_none()
            && self.executors.values().any(|executor| executor.place.digest == origin.executor)
    }

    /// Takes over what nobody serves any more.
    pub(super) async fn adopt(&self) -> Result<Vec<Held>, StoreError> {
        let agents = self.directory().agents().iter().map(|agent| agent.config.name.clone()).collect();
        let executors = self.executors.values().map(|executor| executor.place.digest.clone()).collect();
        self.store.adopt(agents, executors).await
    }

    /// The sessions of an agent at an upstream that its clients have left without a word: some end theirs by closing all
    /// connections.
    fn left_sessions(&self, agent: &str, upstream: &str) -> Vec<String> {
        let of = |session: &Arc<Session>| session.agent == agent && session.executor.id() == upstream;
        let left = self.sessions.iter().filter(|session| of(session) && session.is_left(LEFT, SILENT));
        left.map(|session| session.key().clone()).collect()
    }
}

impl Session {
    /// What an identical call that comes in this session may pick up.
    pub(super) fn retry(&self, attach_key: String) -> Retry {
        Retry {
            agent: self.agent.clone(),
            attach_key,
            session: self.key().map(str::to_owned),
            executor: self.executor.place.digest.clone(),
            left: self.gate.left_sessions(&self.agent, self.executor.id()),
        }
    }
}

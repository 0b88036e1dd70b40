//! The pipeline: every client message goes through here, and only here is anything forwarded.
//!
//! A listener parses a message, finds its [`Session`] and hands it over; it gets an [`Exchange`] back, a channel of what
//! is to be told the client. Everything in between (judging, holding, forwarding, recording) is in this room.

mod link;
mod permit;
mod session;

pub use link::{Era, Fault, Inbound, Link, Opening, Outgoing, Upstream, UpstreamError};
pub use permit::Permit;
pub use session::{Exchange, Reply, Session, ToClient};

use std::sync::Arc;

use tokio::sync::{broadcast, mpsc};

use crate::config::Config;
use crate::identity::{Agent, Directory};
use crate::message::Message;
use crate::metrics::Metrics;
use crate::policy::Policy;
use crate::record::CallRecord;
use crate::store::Store;

/// The gateway's core. Shared as `Arc<Gate>`.
pub struct Gate {}

/// The policy in force, as `GET policy` shows it.
#[derive(Clone)]
pub struct InForce {
    /// The policy.
    pub policy: Arc<Policy>,
    /// When it was loaded.
    pub loaded_at: crate::clock::Timestamp,
    /// The files it came from.
    pub files: Vec<String>,
    /// Why the last reload was refused, if it was.
    pub error: Option<String>,
}

/// Something changed that the inbox shows.
#[derive(Clone, Debug)]
pub enum GateEvent {
    /// A call that was not held changed (held ones come from the store).
    Call(Arc<CallRecord>),
    /// The policy was loaded or refused.
    Policy,
}

/// Which calls to list.
#[derive(Clone, Debug, Default)]
pub struct CallFilter {
    /// `running`, `completed`, …
    pub state: Option<String>,
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only of this upstream.
    pub upstream: Option<String>,
    /// Only created at or after.
    pub since: Option<crate::clock::Timestamp>,
    /// Only of these groups; none: all.
    pub groups: Option<Vec<String>>,
    /// At most so many (0: 50).
    pub limit: usize,
    /// Where the last page ended.
    pub cursor: Option<String>,
}

impl Gate {
    // ---- what listeners call -------------------------------------------------------------------------------------

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        unimplemented!()
    }

    /// Who is known.
    pub fn directory(&self) -> Arc<Directory> {
        unimplemented!()
    }

    /// Whether an upstream of that id is configured.
    pub fn has_upstream(&self, id: &str) -> bool {
        let _ = id;
        unimplemented!()
    }

    /// A legacy `initialize`: opens a session and answers it. `Err` is the finished JSON-RPC error reply.
    ///
    /// # Errors
    /// The reply to give: the upstream cannot be reached, does not speak a legacy version, too many sessions, draining.
    pub async fn initialize(
        self: &Arc<Self>,
        agent: Arc<Agent>,
        upstream: &str,
        message: Message,
    ) -> Result<(Arc<Session>, Reply), Reply> {
        let _ = (agent, upstream, message);
        unimplemented!()
    }

    /// A legacy session by the id the gateway issued, if it is this agent's and this upstream's; restored from the store
    /// after a restart. `Ok(None)`: unknown or ended (HTTP 404).
    ///
    /// # Errors
    /// The store does not work, or the upstream cannot be reached again.
    pub async fn session(
        self: &Arc<Self>,
        agent: &Arc<Agent>,
        upstream: &str,
        id: &str,
    ) -> Result<Option<Arc<Session>>, Reply> {
        let _ = (agent, upstream, id);
        unimplemented!()
    }

    /// The stateless way of the modern protocol: one per agent and upstream.
    pub fn stateless(self: &Arc<Self>, agent: &Arc<Agent>, upstream: &str) -> Option<Arc<Session>> {
        let _ = (agent, upstream);
        unimplemented!()
    }

    // ---- what the admin side calls -------------------------------------------------------------------------------

    /// The store, for approvals.
    pub fn store(&self) -> &Store {
        unimplemented!()
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        unimplemented!()
    }

    /// The policy in force.
    pub fn policy(&self) -> InForce {
        unimplemented!()
    }

    /// Loads configuration's policy files again; a bad file keeps the last good policy.
    ///
    /// # Errors
    /// What is wrong, ready to print.
    pub async fn reload(&self) -> Result<InForce, Vec<crate::diagnostic::Diagnostic>> {
        unimplemented!()
    }

    /// Recent calls, held and not held, newest first.
    ///
    /// # Errors
    /// The store does not work.
    pub async fn calls(
        &self,
        filter: CallFilter,
    ) -> Result<(Vec<CallRecord>, Option<String>), crate::store::StoreError> {
        let _ = filter;
        unimplemented!()
    }

    /// One call.
    ///
    /// # Errors
    /// Not found, or the store does not work.
    pub async fn call(&self, id: &str) -> Result<CallRecord, crate::store::StoreError> {
        let _ = id;
        unimplemented!()
    }

    /// Stops a call, waiting or running, on behalf of an operator.
    ///
    /// # Errors
    /// Not found, ended already, or the store does not work.
    pub async fn cancel(&self, id: &str, by: &str) -> Result<CallRecord, crate::store::StoreError> {
        let _ = (id, by);
        unimplemented!()
    }

    /// Votes on an approval: the one way for every channel. Checks the digest; counts and audits the decision.
    ///
    /// # Errors
    /// As the state machine says.
    pub async fn vote(
        &self,
        approval: &str,
        vote: crate::record::Vote,
    ) -> Result<crate::approval::Held, crate::store::StoreError> {
        let _ = (approval, vote);
        unimplemented!()
    }

    /// Changes of calls that are not held, and of the policy.
    pub fn events(&self) -> broadcast::Receiver<GateEvent> {
        unimplemented!()
    }

    /// Whether calls can be forwarded: store, audit, policy.
    ///
    /// # Errors
    /// What is wrong, one line each.
    pub async fn ready(&self) -> Result<(), Vec<String>> {
        unimplemented!()
    }
}

/// How many messages may wait between a gate and a listener before the far side is slowed.
pub const CHANNEL: usize = 64;

#[expect(dead_code, reason = "kept until the session room uses it")]
type ClientSender = mpsc::Sender<ToClient>;

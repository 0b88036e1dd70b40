//! Which tools each agent has used: whoever decides is told of a first use.

use dashmap::DashSet;

use super::Gate;
use crate::config::RESERVED_UPSTREAM;
use crate::record::CallRecord;

/// The flag on an approval of a call to a tool that its agent had not used when it was held.
pub const FIRST_USE: &str = "first_use";

/// Agent, upstream and tool.
type Use = (String, String, String);

/// What this process knows to be in the store.
#[derive(Default)]
pub struct Uses(DashSet<Use>);

impl Gate {
    /// Whether no call of its agent to the tool of a call has been forwarded yet.
    pub(super) async fn is_first_use(&self, call: &CallRecord) -> bool {
        let Some((agent, upstream, tool)) = used(call).filter(|used| !self.uses.0.contains(used)) else { return false };
        // If the store does not work, what comes next says so.
        self.store.is_used(&agent, &upstream, &tool).await.is_ok_and(|is_used| !is_used)
    }

    /// A call is forwarded: its tool is used from now on.
    pub(super) fn is_used(&self, call: &CallRecord) {
        let Some(used) = used(call).filter(|used| !self.uses.0.contains(used)) else { return };
        self.uses.0.insert(used.clone());
        let store = self.store.clone();
        tokio::spawn(async move {
            // What is not kept is told as a first use once more, after a restart.
            if let Err(error) = store.used(&used.0, &used.1, &used.2).await {
                tracing::debug!(%error, "the use of a tool is not kept");
            }
        });
    }
}

/// The gateway's own tools are nobody's first.
fn used(call: &CallRecord) -> Option<Use> {
    let tool = call.tool.clone().filter(|_| call.upstream != RESERVED_UPSTREAM)?;
    Some((call.agent.clone(), call.upstream.clone(), tool))
}

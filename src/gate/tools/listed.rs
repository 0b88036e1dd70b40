//! `tools/list` as a client may see it: without what is denied it whatever it sends, every other byte as it came.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::super::{Gate, Session};
use super::page::Page;
use super::{Asked, Definition};
use crate::message::{Message, Span, compose};
use crate::policy::{Policy, Prospect, outlook};
use crate::record::ToolVerdict;
use crate::store::StoredTool;

impl Session {
    /// Learns from the answer to the client's `tools/list`, `asked` for as it says, and says what to change in it: of the tools that were read,
    /// those stay of which not every call is refused. A first list that counts as accepted is read whole before.
    ///
    /// # Errors
    /// Why the answer is no list that may reach a client.
    pub(in crate::gate) async fn listed(
        self: &Arc<Self>,
        request: &Message,
        answer: &Message,
        asked: Option<Asked>,
    ) -> Result<Vec<(Span, String)>, String> {
        let Some(result) = answer.result() else { return Ok(Vec::new()) };
        let page = Page::read(result).inspect_err(|_| {
            // What is offered now is not known.
            self.tools.mark_stale();
        })?;
        self.read_first_list(request).await;
        let cursor = request.at(&["params", "cursor"]).map(|(_, raw)| raw);
        // What is no text is no page that we were told of.
        let cursor = cursor.and_then(|raw| serde_json::from_str(raw).unwrap_or_else(|_| Some(raw.to_owned())));
        let pins = &self.executor.pins;
        let learned = self.tools.heard(pins, page, cursor.as_deref(), asked, self.gate.clock.now());
        self.gate.tell_of_odd(&self.executor, &learned.odd);
        self.gate.saw(&self.executor, learned.sightings, false).await;
        Ok(self.list_edits(answer, &learned.tools, learned.odd.is_empty()))
    }

    /// What to change in a list of which these tools were read, `all` if nothing else stands in it.
    fn list_edits(
        &self,
        answer: &Message,
        tools: &[(&str, String, Arc<Definition>)],
        all: bool,
    ) -> Vec<(Span, String)> {
        let mut edits = Vec::new();
        if let Some((span, raw)) = answer.at(&["result", "cacheScope"])
            && raw != "\"private\""
        {
            // What is left out is left out for this agent (MCP 2026-07-28, caching).
            edits.push((span, "\"private\"".to_owned()));
        }
        let policy = self.gate.policy().policy;
        let kept = tools.iter().filter(|(_, name, definition)| !self.denies(&policy, name, definition));
        let kept: Vec<&str> = kept.map(|(raw, ..)| *raw).collect();
        if (!all || kept.len() < tools.len())
            && let Some((span, _)) = answer.at(&["result", "tools"])
        {
            edits.push((span, format!("[{}]", kept.join(","))));
        }
        self.tools.listed_without(self.hidden(&policy));
        edits
    }

    /// The tools of which every call is refused to this session's agent.
    fn hidden(&self, policy: &Policy) -> BTreeSet<String> {
        let known = self.tools.all();
        let denied = known.iter().filter(|(name, definition)| self.denies(policy, name, definition));
        denied.map(|(name, _)| name.clone()).collect()
    }

    fn denies(&self, policy: &Policy, name: &str, definition: &Definition) -> bool {
        let Some(agent) = self.agent() else { return true };
        let agent = &agent.config;
        let prospect = Prospect {
            group: &agent.group,
            agent: Some(&agent.name),
            // A signed claim may say otherwise.
            source: agent.claims.is_none().then_some(agent.source),
            depth: agent.claims.is_none().then_some(agent.depth),
            at: self.gate.clock.now(),
            upstream: self.executor.id(),
            tool: name,
            entry: &definition.entry,
            takes_text: definition.takes_text,
        };
        self.executor.pins.refuses(name, &definition.digest) || outlook(policy, &prospect) == ToolVerdict::Deny
    }

    /// Tells the client that its list changed, where its last one would be another now.
    fn list_may_have_changed(&self, policy: &Policy) {
        if self.tools.would_list_without(self.hidden(policy)) {
            self.list_changed();
        }
    }
}

/// Tells every session whose visible tools are others than in its last list.
pub fn announce(gate: &Gate) {
    let policy = gate.policy().policy;
    for session in conversations(gate) {
        session.list_may_have_changed(&policy);
    }
}

/// Makes the sessions of an upstream look again that know one of these tools otherwise.
pub fn compare(gate: &Gate, upstream: &str, offered: &[StoredTool]) {
    for session in conversations(gate).iter().filter(|session| session.executor.id() == upstream) {
        session.tools.compare(offered);
    }
}

/// All sessions, collected: what is done with them takes locks of its own.
fn conversations(gate: &Gate) -> Vec<Arc<Session>> {
    let legacy = gate.sessions.iter().map(|session| session.value().clone());
    legacy.chain(gate.stateless.iter().map(|session| session.value().clone())).collect()
}

/// The notification, for a `subscriptions/listen` of that raw id where the protocol has those.
pub fn list_changed(subscription: Option<&str>) -> bytes::Bytes {
    let id = subscription.and_then(|raw| serde_json::from_str::<Value>(raw).ok());
    let params = id.map(|id| serde_json::json!({ "_meta": { "io.modelcontextprotocol/subscriptionId": id } }));
    compose::notification("notifications/tools/list_changed", params.as_ref())
}

//! Asking an upstream for its tools without a client, so that an operator can see and accept them before any agent
//! comes.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use super::super::link::{Era, Fault, UpstreamError};
use super::super::session::Handshake;
use super::super::{Executor, Gate, Permit, Session};
use crate::identity::Agent;
use crate::message::{Limits, Message, compose};

/// How long an upstream may take over it: less than whoever asks waits.
const WITHIN: Duration = Duration::from_secs(20);

/// The versions that the gateway asks in.
const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// What came of asking one upstream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refreshed {
    /// Its id.
    pub upstream: String,
    /// How many tools it lists now, or why it cannot be asked.
    pub tools: Result<usize, UpstreamError>,
}

impl Gate {
    /// Asks one upstream, or all, for their tools, all at once, and remembers them as if a client had listed them.
    /// None where there is no upstream of that id. What was begun is ended even if nobody waits for it.
    pub async fn refresh_tools(self: &Arc<Self>, upstream: Option<&str>) -> Option<Vec<Refreshed>> {
        let asked: Vec<Arc<Executor>> = match upstream {
            Some(id) => vec![Arc::clone(self.executors.get(id)?)],
            None => self.executors.values().cloned().collect(),
        };
        Some(self.ask_all(asked).await)
    }

    /// Asks those upstreams of which no tool was ever seen although somebody has to accept them.
    pub async fn list_unseen_tools(self: &Arc<Self>) {
        let unseen = self.executors.values().filter(|e| e.pins.awaits_acceptance() && e.pins.none_seen());
        let unseen: Vec<_> = unseen.cloned().collect();
        for Refreshed { upstream, tools } in self.ask_all(unseen).await {
            match tools {
                Ok(tools) => tracing::info!(upstream, tools, "listed for the first time"),
                Err(error) => tracing::warn!(
                    "the tools of `{upstream}` cannot be listed: {error}; when it works, ask again with `portcullis \
                     tools list --upstream {upstream} --refresh`"
                ),
            }
        }
    }

    async fn ask_all(self: &Arc<Self>, executors: Vec<Arc<Executor>>) -> Vec<Refreshed> {
        let asking = executors.into_iter().map(|executor| {
            let (gate, upstream) = (Arc::clone(self), executor.id().to_owned());
            let task = tokio::spawn(async move { ask(&gate, &executor).await });
            async move {
                let broke = |_| Err(fault(Fault::Died, "asking for its tools broke off"));
                Refreshed { upstream, tools: task.await.unwrap_or_else(broke) }
            }
        });
        join_all(asking).await
    }
}

/// Asks in the way that agents most use first; an executor that does not speak it is asked in the other.
async fn ask(gate: &Arc<Gate>, executor: &Arc<Executor>) -> Result<usize, UpstreamError> {
    // Whoever asks again and again starts one child at a time.
    let _one_at_a_time = executor.pins.asking.lock().await;
    if gate.is_draining() {
        return Err(fault(Fault::Unreachable, "the gateway is shutting down"));
    }
    let until = Instant::now() + WITHIN.min(executor.config.timeout);
    match ask_in(Era::Legacy, gate, executor, until).await {
        Err(error) if error.fault != Fault::Unreachable => {
            ask_in(Era::Modern, gate, executor, until).await.map_err(|_| error)
        }
        asked => asked,
    }
}

async fn ask_in(era: Era, gate: &Arc<Gate>, executor: &Arc<Executor>, until: Instant) -> Result<usize, UpstreamError> {
    let hello = hello(era)?;
    let handshake = (era == Era::Legacy).then(|| Handshake {
        initialize: String::from_utf8_lossy(hello.bytes()).into_owned(),
        version: OnceLock::new(),
        resume: Mutex::default(),
    });
    let session = Session::new(Arc::clone(gate), Agent::gateway().config.name, Arc::clone(executor), None, handshake);
    let listed = tokio::time::timeout_at(until, list(&session, &hello)).await;
    session.park().await;
    listed.unwrap_or_else(|_| Err(fault(Fault::Timeout, "it did not list its tools in time")))
}

async fn list(session: &Arc<Session>, hello: &Message) -> Result<usize, UpstreamError> {
    if session.era == Era::Legacy {
        let answer = session.shake_hands(hello).await?;
        if session.version().is_none() {
            let why = answer.error().map(|error| format!(": {error}")).unwrap_or_default();
            return Err(fault(Fault::Era, &format!("it does not shake hands{why}")));
        }
        let ready = compose::notification("notifications/initialized", None);
        session.route().await?.tell(Permit::mint(), "notifications/initialized", ready).await?;
    }
    let route = session.route().await?;
    session.list_tools(&route, hello).await?;
    Ok(session.tools.all().len())
}

/// The message that begins: the handshake, or the request itself.
fn hello(era: Era) -> Result<Message, UpstreamError> {
    let info = json!({ "name": "portcullis", "version": env!("CARGO_PKG_VERSION") });
    let bytes = match era {
        Era::Legacy => {
            let params = json!({ "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": info });
            compose::request("0", "initialize", Some(&params))
        }
        Era::Modern => {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": info,
            });
            compose::request("0", "tools/list", Some(&json!({ "_meta": meta })))
        }
    };
    Message::strict(bytes, Limits::default()).map_err(|error| fault(Fault::Garbage, &error.to_string()))
}

fn fault(fault: Fault, what: &str) -> UpstreamError {
    UpstreamError { fault, what: what.to_owned(), may_have_run: false }
}

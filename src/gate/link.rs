//! What an executor's edge offers the gate.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::Permit;
use crate::message::Message;

/// Which of the two protocol designs a message belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Era {
    /// Up to 2025-11-25: handshake, sessions, requests from servers.
    Legacy,
    /// From 2026-07-28: stateless.
    Modern,
}

/// A tool executor behind the gateway. Implemented by the rooms in `upstream/`.
pub trait Upstream: Send + Sync + 'static {
    /// The configured id.
    fn id(&self) -> &str;

    /// What runs when a link is opened: two processes with the same place run the same.
    fn place(&self) -> Place;

    /// Opens a link: for one legacy session, or for one agent's stateless requests. Starts a child or a connection
    /// where that is needed, waiting out the back-off after a crash. Sends nothing.
    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<Arc<dyn Link>, UpstreamError>>;

    /// Whether the last contact worked; true before the first.
    fn is_up(&self) -> bool;

    /// Ends what it started (children: close stdin, wait, SIGTERM, SIGKILL).
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

/// What an executor is: its command or address, its folder, its environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Over all of it.
    pub digest: String,
    /// What of it people may see.
    pub shown: String,
}

/// What a link is opened for.
pub struct Opening {
    /// The agent whose conversation it is: what an executor has few of is shared out among agents.
    pub agent: String,
    /// Which protocol will be spoken on it.
    pub era: Era,
    /// The upstream's own session id to resume (Streamable HTTP, legacy), after a restart of the gateway.
    pub resume: Option<String>,
    /// The protocol version agreed before the restart, with `resume`.
    pub version: Option<String>,
    /// Where everything that comes back goes. Bounded: a slow gate slows the executor.
    pub inbound: mpsc::Sender<Inbound>,
}

/// One conversation with one executor.
pub trait Link: Send + Sync + 'static {
    /// The one door to an executor. Answers when the message is written (stdio) or its request is on its way (HTTP);
    /// the reply comes through [`Inbound`].
    fn send(&self, permit: Permit, message: Outgoing) -> BoxFuture<'_, Result<(), UpstreamError>>;

    /// Tells the far side to stop working on a request: `notifications/cancelled`, a closed stream, a killed child.
    /// Nothing that comes back for it afterwards is passed on.
    fn stop(&self, id: u64, reason: &str) -> BoxFuture<'_, ()>;

    /// The upstream's own session id, once it gave one.
    fn session(&self) -> Option<String>;

    /// Ends the conversation: DELETE, or the child's clean shutdown.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A message on its way to an executor.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The JSON text, one line or not.
    pub bytes: Bytes,
    /// The number that stands in `bytes` as the id, for a request.
    pub id: Option<u64>,
    /// Its method; empty for a response.
    pub method: String,
    /// `Mcp-Name` where the modern protocol wants it: `params.name`, `params.uri` or `params.taskId`.
    pub name: Option<String>,
    /// `Mcp-Param-*` headers of the modern protocol, made from the body.
    pub param_headers: Vec<(String, String)>,
    /// The protocol version of a modern request (`_meta`).
    pub version: Option<String>,
}

/// What comes back from an executor.
#[derive(Debug)]
pub enum Inbound {
    /// A message. Its id, if it is a response, is one that the gate sent.
    Message {
        /// The message as it came.
        message: Message,
        /// The request on whose stream it came, where the transport tells.
        related: Option<u64>,
    },
    /// A request will never be answered; the others are not touched.
    Failed {
        /// The request.
        id: u64,
        /// Why.
        error: UpstreamError,
    },
    /// The link is dead; all that is open on it has failed.
    Closed(UpstreamError),
}

/// Something broke on the far side or on the way to it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UpstreamError {
    /// What broke.
    pub fault: Fault,
    /// Plain English; safe to show a model (no header values, no environment).
    pub what: String,
    /// Whether the request may have reached the executor.
    pub may_have_run: bool,
}

/// Kinds of faults beyond the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Could not be started or connected to.
    Unreachable,
    /// Ended or closed in the middle.
    Died,
    /// Answered with something that is not the protocol.
    Garbage,
    /// Took too long.
    Timeout,
    /// An HTTP status that carries no JSON-RPC answer.
    Status(u16),
    /// The upstream's session is gone (404 to a known session id).
    SessionGone,
    /// The executor does not speak this era.
    Era,
    /// It offers another tool than the one that was judged.
    Redefined,
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for UpstreamError {}

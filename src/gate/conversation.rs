//! Whom a client talks with: one upstream, or all of them at one address.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::aggregate::Aggregate;
use super::session::{Exchange, Reply, Session};
use super::{Gate, Life};
use crate::message::Message;
use crate::secret::TokenHash;

/// A legacy session, or one agent's stateless requests; what it says goes the same way for both.
#[derive(Clone)]
pub enum Conversation {
    /// With one upstream: nothing is renamed.
    One(Arc<Session>),
    /// With all.
    All(Arc<Aggregate>),
}

impl Conversation {
    /// The id the gateway issued, to be told to the client once; none for the stateless way.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::One(session) => session.id(),
            Self::All(all) => all.id(),
        }
    }

    /// A request: judged, held, forwarded. Returns at once. `headers` are the `Mcp-Param-*` of a modern request; none
    /// where the transport has no headers. `credential` is the token that it came with; none where none was needed.
    pub fn request(
        &self,
        message: Message,
        headers: Option<Vec<(String, String)>>,
        credential: Option<TokenHash>,
    ) -> Exchange {
        match self {
            Self::One(session) => session.request(message, headers, credential),
            Self::All(all) => all.request(message, headers, credential),
        }
    }

    /// A notification.
    pub async fn notify(&self, message: Message) {
        match self {
            Self::One(session) => session.notify(message).await,
            Self::All(all) => all.notify(message).await,
        }
    }

    /// The client's answer to a request of a server; `false` if there is no such request.
    pub async fn respond(&self, message: Message) -> bool {
        match self {
            Self::One(session) => session.respond(message).await,
            Self::All(all) => all.respond(message).await,
        }
    }

    /// The stream for what belongs to no request. A second one takes the place of the first.
    pub fn listen(&self) -> mpsc::Receiver<Bytes> {
        match self {
            Self::One(session) => session.listen(),
            Self::All(all) => all.listen(),
        }
    }

    /// The client ended it.
    pub async fn end(&self) {
        match self {
            Self::One(session) => session.end().await,
            Self::All(all) => all.end().await,
        }
    }
}

/// By address: `None` is that of all upstreams.
impl Gate {
    /// [`Gate::initialize`], or the same at the address of all.
    ///
    /// # Errors
    /// As there.
    pub async fn begin_at(
        self: &Arc<Self>,
        agent: &str,
        upstream: Option<&str>,
        message: Message,
        life: Life,
    ) -> Result<(Conversation, Reply), Reply> {
        match upstream {
            Some(upstream) => {
                let (session, reply) = self.initialize(agent, upstream, message, life).await?;
                Ok((Conversation::One(session), reply))
            }
            None => {
                let (all, reply) = self.initialize_all(agent, message, life).await?;
                Ok((Conversation::All(all), reply))
            }
        }
    }

    /// [`Gate::session`], or the same at the address of all.
    ///
    /// # Errors
    /// As there.
    pub async fn session_at(
        self: &Arc<Self>,
        agent: &str,
        upstream: Option<&str>,
        id: &str,
    ) -> Result<Option<Conversation>, Reply> {
        Ok(match upstream {
            Some(upstream) => self.session(agent, upstream, id).await?.map(Conversation::One),
            None => self.session_all(agent, id).await?.map(Conversation::All),
        })
    }

    /// [`Gate::stateless`], or the same at the address of all.
    pub fn stateless_at(self: &Arc<Self>, agent: &str, upstream: Option<&str>) -> Option<Conversation> {
        match upstream {
            Some(upstream) => self.stateless(agent, upstream).map(Conversation::One),
            None => Some(Conversation::All(self.stateless_all(agent))),
        }
    }
}

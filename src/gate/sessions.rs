//! Finding a client's session: begun, remembered, restored after a restart, let go of.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::sync::oneshot;

use super::session::{Handshake, Reply, Session};
use super::{Era, Gate, Life, reply};
use crate::message::Message;
use crate::store::{StoreError, StoredSession};

/// How long a session without a reader or a request keeps its link; the next request opens it again.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// How many legacy sessions may be open at once.
const SESSIONS: usize = 10_000;

impl Gate {
    /// A legacy `initialize`: opens a session and answers it. `Err` is the finished JSON-RPC error reply.
    ///
    /// # Errors
    /// The reply to give: the upstream cannot be reached, does not speak a legacy version, too many sessions, draining.
    pub async fn initialize(
        self: &Arc<Self>,
        agent: &str,
        upstream: &str,
        message: Message,
        life: Life,
    ) -> Result<(Arc<Session>, Reply), Reply> {
        let (gate, raw_id) = (Arc::clone(self), message.id().map(str::to_owned));
        let [agent, upstream] = [agent, upstream].map(str::to_owned);
        let (tx, begun) = oneshot::channel();
        tokio::spawn(async move {
            let id = crate::secret::random_id("ses_", 24);
            let begun = gate.begin_session_as(agent, &upstream, message, life, id).await;
            // A client that left meanwhile does not know the session: it would stay open for nobody.
            if let Err(Ok((session, _))) = tx.send(begun) {
                session.end().await;
            }
        });
        let lost = |_| reply::error(raw_id.as_deref().unwrap_or("null"), reply::UNAVAILABLE, "try again", None);
        begun.await.map_err(lost)?
    }

    /// Begins a session that is called so.
    pub(super) async fn begin_session_as(
        self: &Arc<Self>,
        agent: String,
        upstream: &str,
        message: Message,
        life: Life,
        id: String,
    ) -> Result<(Arc<Session>, Reply), Reply> {
        let raw_id = message.id().unwrap_or("null").to_owned();
        let unavailable = |what: &str| reply::error(&raw_id, reply::UNAVAILABLE, what, None);
        if self.is_draining() {
            return Err(unavailable("the gateway is shutting down"));
        }
        if self.directory().agent_named(&agent).is_none() {
            return Err(unavailable(&format!("the agent `{agent}` is no longer configured")));
        }
        if self.sessions.len() >= SESSIONS {
            return Err(unavailable("too many sessions are open; end one with DELETE"));
        }
        let Some(executor) = self.executors.get(upstream).cloned() else {
            return Err(unavailable("there is no such upstream"));
        };
        let handshake = Handshake {
            initialize: String::from_utf8_lossy(message.bytes()).into_owned(),
            version: OnceLock::new(),
            resume: Mutex::default(),
        };
        let key = session_key(&id);
        let session = Session::new(Arc::clone(self), agent, executor, Some(key.clone()), Some(handshake));
        let answer = match session.shake_hands(&message).await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::warn!(upstream, %error, "the upstream did not answer the handshake");
                session.end().await;
                return Err(Reply { status: 200, ..reply::upstream_fault(&raw_id, upstream, &error) });
            }
        };
        let reply = Reply { bytes: answer.with_id(&raw_id), status: 200 };
        if session.version().is_none() {
            // An error of the upstream, in its own words: there is no session to keep.
            session.end().await;
            return Err(reply);
        }
        if let Err(error) = self.store.put_session(self.stored(&session, &key, life)).await {
            self.store_failed(&error);
            session.end().await;
            return Err(unavailable("the gateway's store does not work"));
        }
        session.issue(id);
        self.sessions.insert(key, Arc::clone(&session));
        Ok((session, reply))
    }

    /// A legacy session by the id the gateway issued, if it is this agent's and this upstream's; restored from the store
    /// after a restart. `Ok(None)`: unknown or ended (HTTP 404).
    ///
    /// # Errors
    /// The store does not work, or the upstream cannot be reached again.
    pub async fn session(
        self: &Arc<Self>,
        agent: &str,
        upstream: &str,
        id: &str,
    ) -> Result<Option<Arc<Session>>, Reply> {
        self.session_by_key(agent, upstream, &session_key(id)).await
    }

    pub(super) async fn session_by_key(
        self: &Arc<Self>,
        agent: &str,
        upstream: &str,
        key: &str,
    ) -> Result<Option<Arc<Session>>, Reply> {
        if let Some(session) = self.sessions.get(key).map(|s| Arc::clone(&s)) {
            let own = session.agent == agent && session.executor.id() == upstream;
            return Ok(own.then_some(session));
        }
        let stored = self.store.session(key).await.map_err(|error| {
            self.store_failed(&error);
            reply::error("null", reply::UNAVAILABLE, "the gateway's store does not work", None)
        })?;
        let own = |s: &StoredSession| s.agent == agent && s.upstream == upstream;
        Ok(stored.filter(own).and_then(|stored| self.restore(stored)))
    }

    /// The stateless way of the modern protocol: one per agent and upstream.
    pub fn stateless(self: &Arc<Self>, agent: &str, upstream: &str) -> Option<Arc<Session>> {
        let executor = self.executors.get(upstream)?;
        let key = (agent.to_owned(), upstream.to_owned());
        let session = self
            .stateless
            .entry(key)
            .or_insert_with(|| Session::new(Arc::clone(self), agent.to_owned(), Arc::clone(executor), None, None));
        Some(Arc::clone(&session))
    }

    /// The stateless way for the one client of this process (standard input and output): that process is its session.
    /// None: there is no such upstream.
    ///
    /// # Errors
    /// The reply to give: the store does not work.
    pub async fn piped(self: &Arc<Self>, agent: &str, upstream: &str) -> Result<Option<Arc<Session>>, Reply> {
        let Some(executor) = self.executors.get(upstream).cloned() else { return Ok(None) };
        let key = session_key(&crate::secret::random_id("ses_", 24));
        let session = Session::new(Arc::clone(self), agent.to_owned(), executor, Some(key.clone()), None);
        if let Err(error) = self.store.put_session(self.stored(&session, &key, Life::Process)).await {
            self.store_failed(&error);
            return Err(reply::error("null", reply::UNAVAILABLE, "the gateway's store does not work", None));
        }
        self.stateless.insert((agent.to_owned(), upstream.to_owned()), Arc::clone(&session));
        Ok(Some(session))
    }

    /// The session that a held call came in; one that has ended is made again for that call alone.
    pub(super) async fn session_of_call(
        self: &Arc<Self>,
        agent: &str,
        upstream: &str,
        key: &str,
    ) -> Result<Option<Arc<Session>>, StoreError> {
        if let Some(session) = self.sessions.get(key).map(|s| Arc::clone(&s)) {
            return Ok(Some(session));
        }
        let stored = self.store.any_session(key).await?;
        let own = |s: &StoredSession| s.agent == agent && s.upstream == upstream;
        Ok(stored.filter(own).and_then(|stored| self.made_again(stored)))
    }

    /// Closes the link of a session that was made again for one call.
    pub(super) async fn done_with(&self, session: &Session) {
        let kept = session.key().is_none_or(|key| self.sessions.contains_key(key));
        if session.era == Era::Legacy && !kept {
            session.park().await;
        }
    }

    /// Makes a stored session live again; its link is opened when it is first used.
    fn restore(self: &Arc<Self>, stored: StoredSession) -> Option<Arc<Session>> {
        let (key, session) = (stored.id.clone(), self.made_again(stored)?);
        Some(Arc::clone(&self.sessions.entry(key).or_insert(session)))
    }

    fn made_again(self: &Arc<Self>, stored: StoredSession) -> Option<Arc<Session>> {
        let executor = Arc::clone(self.executors.get(&stored.upstream)?);
        let handshake = Handshake {
            initialize: stored.initialize,
            version: OnceLock::from(stored.version),
            resume: Mutex::new(stored.upstream_session),
        };
        Some(Session::new(Arc::clone(self), stored.agent, executor, Some(stored.id), Some(handshake)))
    }

    fn stored(&self, session: &Session, key: &str, life: Life) -> StoredSession {
        StoredSession {
            process: (life == Life::Process).then(|| self.store.process().to_owned()),
            id: key.to_owned(),
            agent: session.agent.clone(),
            upstream: session.executor.id().to_owned(),
            initialize: session.initialize().to_owned(),
            version: session.version().unwrap_or_default().to_owned(),
            upstream_session: session.upstream_session(),
            used_at: self.clock.now(),
        }
    }

    /// Lets go of the links of sessions that nobody uses: their clients are gone without a word.
    pub(super) async fn park_idle(&self) {
        self.sessions.iter().for_each(|session| session.look());
        let idle: Vec<Arc<Session>> =
            self.sessions.iter().filter(|s| s.is_idle(IDLE)).map(|s| Arc::clone(&s)).collect();
        for session in idle {
            session.park().await;
        }
        self.tidy_aggregates();
    }
}

/// What a session is called in the store and in what people see: the id itself is a credential.
pub(super) fn session_key(id: &str) -> String {
    use sha2::{Digest, Sha256};
    let hash = hex::encode(Sha256::digest(id.as_bytes()));
    format!("ses_{}", hash.get(..32).unwrap_or_default())
}

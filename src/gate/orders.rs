//! What operators order: agents that are paused, sessions that are stopped. Known to every process on the state folder.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;

use super::{CallFilter, Gate, GateEvent};
use crate::approval::Held;
use crate::clock::Timestamp;
use crate::record::{AgentRecord, CallState, PauseRecord, word};
use crate::store::{Order, Ordered, Stopped, StoreError, paused_by};

/// What is known here of the orders in the store.
#[derive(Default)]
pub struct Orders {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The last order that was followed.
    rev: i64,
    paused: HashMap<String, PauseRecord>,
}

impl Orders {
    /// Why an agent's calls are refused now, if they are.
    pub fn pause_of(&self, agent: &str) -> Option<String> {
        self.paused(agent).map(|pause| paused_by(&pause.by, pause.reason.as_deref()))
    }

    fn paused(&self, agent: &str) -> Option<PauseRecord> {
        self.known().paused.get(agent).cloned()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many calls a stop reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StopCount {
    /// Held ones that are withdrawn.
    pub withdrawn: usize,
    /// Running ones that were asked to stop, as far as this process knows of them.
    pub stopped: usize,
}

/// Begins to follow the orders of all processes.
pub async fn follow(gate: &Arc<Gate>) -> Result<(), StoreError> {
    let mut changes = gate.store.orders();
    // What was to stop before this process began is not in it.
    for order in gate.store.orders_since(0).await? {
        gate.takes(&order);
    }
    let follower = Arc::clone(gate);
    tokio::spawn(async move {
        while changes.changed().await.is_ok() {
            if let Err(error) = follower.catch_up().await {
                follower.store_failed(&error);
            }
        }
    });
    Ok(())
}

impl Gate {
    /// Pauses an agent: its calls are refused from now on, what is held of it is withdrawn. What runs goes on. Answers
    /// the agent and how many calls were withdrawn.
    ///
    /// # Errors
    /// The store does not work; or there is no such agent.
    pub async fn pause(&self, agent: &str, by: &str, reason: Option<String>) -> Result<usize, StoreError> {
        self.directory().agent_named(agent).ok_or(StoreError::NotFound)?;
        let withdrawn = self.store.pause(agent, by, reason.clone()).await?;
        // Before anybody is told: from here on nothing of it begins in this process either.
        self.catch_up().await?;
        for held in &withdrawn {
            self.held_ended(held);
        }
        self.note("agent.paused", &json!({"agent": agent, "by": by, "reason": reason, "withdrawn": withdrawn.len()}));
        tracing::warn!(agent, by, withdrawn = withdrawn.len(), "an agent was paused");
        Ok(withdrawn.len())
    }

    /// Lets a paused agent call again.
    ///
    /// # Errors
    /// The store does not work; or there is no such agent.
    pub async fn resume(&self, agent: &str, by: &str) -> Result<(), StoreError> {
        self.directory().agent_named(agent).ok_or(StoreError::NotFound)?;
        self.store.resume(agent, by).await?;
        self.catch_up().await?;
        self.note("agent.resumed", &json!({"agent": agent, "by": by}));
        tracing::warn!(agent, by, "an agent was resumed");
        Ok(())
    }

    /// Stops everything of a session or an agent: what waits is withdrawn, what runs is stopped at the far side, also in
    /// other processes.
    ///
    /// # Errors
    /// The store does not work.
    pub async fn stop(&self, what: Stopped, by: &str) -> Result<StopCount, StoreError> {
        let held = self.store.stop(what.clone(), by).await?;
        let running = self.stop_running(&what, by, self.clock.now());
        let ended: Vec<&Held> = held.iter().filter(|held| held.call().outcome.is_some()).collect();
        for held in &ended {
            self.held_ended(held);
        }
        let count = StopCount { withdrawn: ended.len(), stopped: held.len() - ended.len() + running };
        let (kind, subject) = match &what {
            Stopped::Session(key) => ("session", key),
            Stopped::Agent(agent) => ("agent", agent),
        };
        self.note(
            "calls.stopped",
            &json!({kind: subject, "by": by, "withdrawn": count.withdrawn, "stopped": count.stopped}),
        );
        tracing::warn!(
            by,
            withdrawn = count.withdrawn,
            stopped = count.stopped,
            "all calls of {kind} {subject} are stopped"
        );
        Ok(count)
    }

    /// The agent whose session that is, as it is called in calls; none for one that is not known.
    ///
    /// # Errors
    /// The store does not work.
    pub async fn owner_of_session(&self, key: &str) -> Result<Option<String>, StoreError> {
        if let Some(session) = self.sessions.get(key) {
            return Ok(Some(session.agent.clone()));
        }
        Ok(self.store.any_session(key).await?.map(|session| session.agent))
    }

    /// All agents that may call here.
    ///
    /// # Errors
    /// The store does not work.
    pub async fn agents(&self) -> Result<Vec<AgentRecord>, StoreError> {
        let counts = self.store.counts().await?;
        let directory = self.directory();
        Ok(directory
            .agents()
            .iter()
            .map(|agent| {
                let config = &agent.config;
                let held = counts.iter().find(|counts| counts.agent == config.name);
                let own = CallFilter { agent: Some(config.name.clone()), limit: usize::MAX, ..CallFilter::default() };
                let recent = self.recent.list(&own);
                let running = recent.iter().filter(|call| call.state == CallState::Running).count() as u64;
                let last = recent.iter().map(|call| call.created_at).chain(held.map(|held| held.last_call)).max();
                AgentRecord {
                    name: config.name.clone(),
                    group: config.group.clone(),
                    owner: config.owner.clone(),
                    source: config.source,
                    depth: config.depth,
                    paused: self.orders.paused(&config.name),
                    waiting: held.map_or(0, |held| held.waiting),
                    running: running + held.map_or(0, |held| held.running),
                    last_call: last,
                }
            })
            .collect())
    }

    /// Follows what was ordered since the last time.
    async fn catch_up(&self) -> Result<(), StoreError> {
        let rev = self.orders.known().rev;
        for order in self.store.orders_since(rev).await? {
            self.takes(&order);
            match &order.what {
                Ordered::Pause(agent) | Ordered::Resume(agent) => {
                    // Without a reader there is nobody to miss it.
                    let _ = self.events.send(GateEvent::Agent(agent.clone()));
                }
                Ordered::Stop(what) => drop(self.stop_running(what, &order.by, order.at)),
            }
        }
        Ok(())
    }

    fn takes(&self, order: &Order) {
        let mut known = self.orders.known();
        if order.rev <= known.rev {
            return;
        }
        known.rev = order.rev;
        match &order.what {
            Ordered::Pause(agent) => {
                let pause = PauseRecord { by: order.by.clone(), at: order.at, reason: order.reason.clone() };
                known.paused.insert(agent.clone(), pause);
            }
            Ordered::Resume(agent) => drop(known.paused.remove(agent)),
            Ordered::Stop(_) => {}
        }
    }

    /// Stops calls that policy let through and that run in this process since before the order.
    fn stop_running(&self, what: &Stopped, by: &str, ordered: Timestamp) -> usize {
        let mut own = CallFilter { state: Some(word(CallState::Running)), limit: usize::MAX, ..CallFilter::default() };
        if let Stopped::Agent(agent) = what {
            own.agent = Some(agent.clone());
        }
        let mut running = self.recent.list(&own);
        running.retain(|call| {
            let is_meant = match what {
                Stopped::Session(key) => call.session.as_ref() == Some(key),
                Stopped::Agent(_) => true,
            };
            is_meant && call.created_at <= ordered
        });
        let asked = running.iter().filter(|call| match self.running.get(&call.id) {
            Some(stop) => {
                stop.send_replace(Some(format!("stopped by {by}")));
                true
            }
            None => false,
        });
        asked.count()
    }
}

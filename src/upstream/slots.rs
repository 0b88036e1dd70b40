//! How many of something may run at once, and the one switch that ends them all.
//!
//! Agents share them, and none takes all: each may have as many as it leaves free. A single one gets half, the next one
//! half of the rest; whoever has none is refused only where nothing is left at all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::lock;

/// The children or runs of one upstream.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    /// How many each agent has.
    taken: Arc<Mutex<HashMap<String, usize>>>,
    size: usize,
    ending: watch::Sender<bool>,
}

/// One that runs; the place is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    agent: String,
    taken: Arc<Mutex<HashMap<String, usize>>>,
    _place: OwnedSemaphorePermit,
    ending: watch::Receiver<bool>,
}

impl Slots {
    pub fn new(size: usize) -> Self {
        let free = Arc::new(Semaphore::new(size));
        Self { free, taken: Arc::default(), size, ending: watch::Sender::new(false) }
    }

    /// A place for an agent; none where it has as many as are left for others, all are taken, or the upstream is shut
    /// down.
    pub fn take(&self, agent: &str) -> Option<Slot> {
        let mut taken = lock(&self.taken);
        let own = taken.get(agent).copied().unwrap_or_default();
        if own >= self.free.available_permits() || *self.ending.borrow() {
            return None;
        }
        let place = Arc::clone(&self.free).try_acquire_owned().ok()?;
        taken.insert(agent.to_owned(), own + 1);
        let (agent, taken) = (agent.to_owned(), Arc::clone(&self.taken));
        Some(Slot { agent, taken, _place: place, ending: self.ending.subscribe() })
    }

    /// Tells all that run to end, waits for them, and gives no more places.
    pub async fn end(&self) {
        self.ending.send_replace(true);
        let all = u32::try_from(self.size).unwrap_or(u32::MAX);
        // An error means that a shutdown before this one has closed the semaphore.
        let _ended = self.free.acquire_many(all).await;
        self.free.close();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(own) = taken.get_mut(&self.agent) {
            *own -= 1;
            if *own == 0 {
                taken.remove(&self.agent);
            }
        }
    }
}

impl Slot {
    /// Waits until the upstream is shut down.
    pub async fn ending(&mut self) {
        if self.ending.wait_for(|ending| *ending).await.is_err() {
            // The upstream was dropped and not shut down: what runs has its own owner.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn no_agent_takes_what_the_others_need() {
        let slots = Slots::new(64);
        let all = |agent: &str| std::iter::from_fn(|| slots.take(agent)).collect::<Vec<_>>();
        let greedy = all("greedy");
        assert_eq!(greedy.len(), 32);
        let second = all("second");
        assert_eq!(second.len(), 16);
        let third = slots.take("third").unwrap();
        drop(greedy);
        assert!(slots.take("greedy").is_some());
        drop((second, third));
        assert!(lock(&slots.taken).is_empty());
    }

    #[tokio::test]
    async fn nothing_is_given_after_the_end() {
        let slots = Slots::new(1);
        let last = slots.take("a").unwrap();
        assert!(slots.take("b").is_none());
        drop(last);
        slots.end().await;
        assert!(slots.take("b").is_none());
    }
}

//! How many of something may run at once, and the one switch that ends them all.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The children or runs of one upstream.
#[derive(Debug)]
pub(super) struct Slots {
    free: Arc<Semaphore>,
    size: usize,
    ending: watch::Sender<bool>,
}

/// One that runs; the place is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    _place: OwnedSemaphorePermit,
    ending: watch::Receiver<bool>,
}

impl Slots {
    pub fn new(size: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(size)), size, ending: watch::Sender::new(false) }
    }

    /// A place; none where all are taken or the upstream is shut down.
    pub fn take(&self) -> Option<Slot> {
        let place = Arc::clone(&self.free).try_acquire_owned().ok()?;
        (!*self.ending.borrow()).then(|| Slot { _place: place, ending: self.ending.subscribe() })
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

impl Slot {
    /// Waits until the upstream is shut down.
    pub async fn ending(&mut self) {
        if self.ending.wait_for(|ending| *ending).await.is_err() {
            // The upstream was dropped and not shut down: what runs has its own owner.
            std::future::pending::<()>().await;
        }
    }
}

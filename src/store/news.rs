//! Tells waiters in this process what any process changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{broadcast, mpsc, watch};

use super::Change;
use crate::approval::Held;

/// How many changes a slow reader of all may fall behind before it misses some (and is told so).
const BACKLOG: usize = 1024;

type Watched = watch::Sender<Option<Arc<Held>>>;

/// Who waits for what.
pub(super) struct News {
    all: broadcast::Sender<Change>,
    each: Mutex<HashMap<String, Watched>>,
    tools: watch::Sender<i64>,
    orders: watch::Sender<i64>,
    grants: watch::Sender<i64>,
    settled: mpsc::UnboundedSender<Held>,
    to_count: Mutex<Option<mpsc::UnboundedReceiver<Held>>>,
}

impl News {
    pub(super) fn new() -> Self {
        let (settled, to_count) = mpsc::unbounded_channel();
        Self {
            all: broadcast::Sender::new(BACKLOG),
            each: Mutex::default(),
            tools: watch::Sender::new(0),
            orders: watch::Sender::new(0),
            grants: watch::Sender::new(0),
            settled,
            to_count: Mutex::new(Some(to_count)),
        }
    }

    pub(super) fn all(&self) -> broadcast::Receiver<Change> {
        self.all.subscribe()
    }

    pub(super) fn watch(&self, id: &str) -> watch::Receiver<Option<Arc<Held>>> {
        self.each().entry(id.to_owned()).or_insert_with(|| watch::Sender::new(None)).subscribe()
    }

    pub(super) fn tools(&self) -> watch::Receiver<i64> {
        self.tools.subscribe()
    }

    pub(super) fn orders(&self) -> watch::Receiver<i64> {
        self.orders.subscribe()
    }

    pub(super) fn grants(&self) -> watch::Receiver<i64> {
        self.grants.subscribe()
    }

    /// The revisions of the tools, the orders and the grants as they are now.
    pub(super) fn at(&self, tools: i64, orders: i64, grants: i64) {
        for (sender, rev) in [(&self.tools, tools), (&self.orders, orders), (&self.grants, grants)] {
            sender.send_if_modified(|seen| std::mem::replace(seen, rev) != rev);
        }
    }

    /// A call that the thread itself ended.
    pub(super) fn settled(&self, held: Held) {
        // Without a reader nobody counts.
        let _ = self.settled.send(held);
    }

    /// What the thread itself ended, to the first who asks.
    pub(super) fn to_count(&self) -> Option<mpsc::UnboundedReceiver<Held>> {
        self.to_count.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A change, to everyone.
    pub(super) fn publish(&self, held: Held) {
        let held = Arc::new(held);
        {
            let mut each = self.each();
            for id in [&held.approval.id, &held.approval.call.id] {
                if let Some(watched) = each.get(id) {
                    watched.send_replace(Some(held.clone()));
                    if watched.is_closed() {
                        each.remove(id);
                    }
                }
            }
        }
        // Without a reader there is nobody to miss it.
        let _ = self.all.send(Change { held });
    }

    /// How it stands, to those who watch this one.
    pub(super) fn refresh(&self, id: &str, held: Held) {
        if let Some(watched) = self.each().get(id) {
            watched.send_replace(Some(Arc::new(held)));
        }
    }

    /// Forgets what nobody watches any more.
    pub(super) fn tidy(&self) {
        self.each().retain(|_, watched| !watched.is_closed());
    }

    fn each(&self) -> MutexGuard<'_, HashMap<String, Watched>> {
        self.each.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

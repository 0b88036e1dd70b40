//! SQLite on a thread of its own: jobs that wait together share one transaction and one fsync.

mod counters;
mod grants;
mod held;
mod job;
mod notices;
mod orders;
mod schema;
mod small;
mod tools;
mod writer;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use tokio::sync::{broadcast, mpsc, watch};

use self::held::Tables;
use self::job::{Ask, Job};
use self::writer::Writer;
use super::news::News;
use super::{Change, StoreError};
use crate::approval::Held;
use crate::clock::Clock;

/// How long another process' transaction is waited for.
const BUSY: Duration = Duration::from_secs(5);

/// What the thread is told.
enum Message {
    /// Do this.
    Do(Box<dyn Job>),
    /// Somebody began to watch this call.
    Refresh(String),
    /// Nobody is left.
    Stop,
}

/// The handle to the thread. Dropping it waits for what is queued, closes the database and ends this process' claims.
pub(super) struct Database {
    process: String,
    file: PathBuf,
    inode: Option<u64>,
    news: Arc<News>,
    messages: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Database {
    pub(super) fn open(state_dir: &Path, clock: Clock) -> Result<Self, StoreError> {
        Self::open_with(state_dir, clock, BUSY)
    }

    pub(super) fn open_with(state_dir: &Path, clock: Clock, busy: Duration) -> Result<Self, StoreError> {
        let news = Arc::new(News::new());
        let (messages, queue) = channel();
        let writer = Writer::open(state_dir, clock, busy, news.clone(), queue)?;
        let process = writer.process().to_owned();
        let thread = Builder::new()
            .name("store".into())
            .spawn(move || writer.run())
            .map_err(|error| StoreError::Unavailable(format!("no thread for it: {error}")))?;
        let file = state_dir.join(schema::FILE);
        let inode = inode(&file);
        Ok(Self { process, file, inode, news, messages, thread: Some(thread) })
    }

    pub(super) fn process(&self) -> &str {
        &self.process
    }

    /// Work that changes nothing.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tables<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(false, work, |_| None).await
    }

    /// Work that changes something; the answer comes when it is on disk.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tables<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(true, work, |_| None).await
    }

    /// Work that attaches a client to a call. Whoever asked is that client: if it does not wait for the answer, it is
    /// gone, and so is detached from the call that `orphan` names.
    pub(super) async fn attach<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Tables<'_>) -> Result<T, StoreError> + Send + 'static,
        orphan: fn(T) -> Option<String>,
    ) -> Result<T, StoreError> {
        self.ask(true, work, orphan).await
    }

    pub(super) async fn ready(&self) -> Result<(), StoreError> {
        self.write(|tables| tables.check()).await
    }

    pub(super) fn in_place(&self) -> Result<(), StoreError> {
        if inode(&self.file) == self.inode {
            return Ok(());
        }
        let what = format!("{} was replaced or removed; restart the gateway", self.file.display());
        Err(StoreError::Unavailable(what))
    }

    pub(super) fn watch(&self, id: &str) -> watch::Receiver<Option<Arc<Held>>> {
        let receiver = self.news.watch(id);
        // If the thread is gone, so are its changes: the receiver then just never moves.
        let _ = self.messages.send(Message::Refresh(id.to_owned()));
        receiver
    }

    pub(super) fn settled(&self) -> Option<mpsc::UnboundedReceiver<Held>> {
        self.news.to_count()
    }

    pub(super) fn changes(&self) -> broadcast::Receiver<Change> {
        self.news.all()
    }

    /// The revision of the tools, which moves when any process changes one (within 200 ms for another process).
    pub(super) fn tools(&self) -> watch::Receiver<i64> {
        self.news.tools()
    }

    /// The revision of the orders, likewise.
    pub(super) fn orders(&self) -> watch::Receiver<i64> {
        self.news.orders()
    }

    /// The revision of the grants, likewise.
    pub(super) fn grants(&self) -> watch::Receiver<i64> {
        self.news.grants()
    }

    async fn ask<T: Send + 'static>(
        &self,
        writes: bool,
        work: impl FnOnce(&Tables<'_>) -> Result<T, StoreError> + Send + 'static,
        orphan: fn(T) -> Option<String>,
    ) -> Result<T, StoreError> {
        if writes {
            self.in_place()?;
        }
        let stopped = || StoreError::Unavailable("its thread has stopped; restart the gateway".into());
        let (job, answer) = Ask::new(writes, work, orphan);
        self.messages.send(Message::Do(Box::new(job))).map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn inode(file: &Path) -> Option<u64> {
    fs::metadata(file).ok().map(|found| found.ino())
}

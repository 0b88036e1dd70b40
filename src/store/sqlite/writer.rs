//! The thread: takes what is queued, does it in one transaction, tells, publishes; and looks around now and then.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::held::Tables;
use super::job::{Detach, Job};
use super::{Message, schema};
use crate::approval::Held;
use crate::clock::{Clock, Timestamp};
use crate::process::{self, Alive};
use crate::store::StoreError;
use crate::store::news::News;

/// How often the thread looks for what others changed and for what is due; well within the 200 ms that are promised.
const LOOK: Duration = Duration::from_millis(50);

/// How often it looks for dead processes.
const SWEEP: Duration = Duration::from_secs(2);

/// How often it removes what is old.
const PRUNE: Duration = Duration::from_secs(60);

/// How long ended calls and unused sessions are kept, and how many ended calls.
const KEEP: (Duration, usize) = (Duration::from_secs(7 * 86_400), 10_000);

/// How many jobs share a transaction.
const BATCH: usize = 256;

/// All that the thread owns. The database is closed before the sign of life goes.
pub(super) struct Writer {
    conn: Connection,
    queue: Receiver<Message>,
    news: Arc<News>,
    clock: Clock,
    state_dir: PathBuf,
    /// The last change that was published.
    seen: i64,
    /// SQLite's count of what other connections did.
    others: i64,
    sweep_at: Instant,
    prune_at: Instant,
    settled: RefCell<Vec<Held>>,
    alive: Alive,
}

impl Writer {
    pub(super) fn open(
        state_dir: &Path,
        clock: Clock,
        busy: Duration,
        news: Arc<News>,
        queue: Receiver<Message>,
    ) -> Result<Self, StoreError> {
        let cannot = |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", state_dir.display()));
        process::private_dir(state_dir).map_err(cannot)?;
        let alive = Alive::register(state_dir).map_err(cannot)?;
        let conn = schema::open(state_dir, busy)?;
        let now = Instant::now();
        let state_dir = state_dir.to_owned();
        let (seen, others, settled) = (0, 0, RefCell::default());
        let mut writer =
            Self { conn, queue, news, clock, state_dir, seen, others, sweep_at: now, prune_at: now, settled, alive };
        writer.sweep()?;
        writer.tick()?;
        writer.seen = writer.tables().rev()?;
        writer.others = writer.count_others()?;
        Ok(writer)
    }

    pub(super) fn process(&self) -> &str {
        self.alive.id()
    }

    pub(super) fn run(mut self) {
        loop {
            let (mut jobs, mut refresh) = (Vec::new(), Vec::new());
            let mut next = self.queue.recv_timeout(LOOK);
            loop {
                match next {
                    Ok(Message::Do(job)) => jobs.push(job),
                    Ok(Message::Refresh(id)) => refresh.push(id),
                    Err(RecvTimeoutError::Timeout) => break,
                    Ok(Message::Stop) | Err(RecvTimeoutError::Disconnected) => {
                        self.work(jobs);
                        return;
                    }
                }
                if jobs.len() >= BATCH {
                    break;
                }
                next = self.queue.try_recv().map_err(|_| RecvTimeoutError::Timeout);
            }
            self.look_around();
            self.work(jobs);
            if let Err(error) = self.publish(refresh) {
                tracing::warn!(%error, "changes of held calls could not be read");
            }
        }
    }

    fn tables(&self) -> Tables<'_> {
        Tables { conn: &self.conn, now: self.clock.now(), process: self.alive.id(), settled: &self.settled }
    }

    /// What is to be done although nobody asked. If it fails, the next look tries again; votes and claims check the
    /// time themselves.
    fn look_around(&mut self) {
        let now = Instant::now();
        let mut done = self.tick();
        if self.sweep_at <= now {
            self.sweep_at = now + SWEEP;
            done = done.and(self.sweep());
        }
        if self.prune_at <= now {
            self.prune_at = now + PRUNE;
            self.news.tidy();
            done = done.and(self.prune());
        }
        if let Err(error) = done {
            tracing::warn!(%error, "held calls could not be brought up to date");
        }
    }

    fn tick(&mut self) -> Result<(), StoreError> {
        if self.tables().is_due()? { self.transaction(|tables| tables.tick()) } else { Ok(()) }
    }

    fn sweep(&mut self) -> Result<(), StoreError> {
        let folder = self.state_dir.display().to_string();
        let cannot = |error: std::io::Error| StoreError::Unavailable(format!("{folder}: {error}"));
        if self.alive.renew(&self.state_dir).map_err(cannot)? {
            tracing::warn!("somebody removed this process' sign of life from the state folder; it is made again");
            // The others find theirs gone as well, each at its own next sweep.
            self.sweep_at = Instant::now() + 2 * SWEEP;
            return Ok(());
        }
        let mut others = self.tables().processes()?;
        others.retain(|other| other != self.alive.id() && !process::is_alive(&self.state_dir, other));
        for dead in others {
            self.transaction(|tables| tables.bury(&dead))?;
        }
        process::sweep(&self.state_dir).map_err(cannot)
    }

    fn prune(&mut self) -> Result<(), StoreError> {
        let now = self.clock.now().as_millis();
        let keep = i64::try_from(KEEP.0.as_millis()).unwrap_or(i64::MAX);
        let oldest = Timestamp::from_millis(now.saturating_sub(keep));
        self.transaction(|tables| {
            tables.prune(oldest, KEEP.1)?;
            tables.forget_counters()?;
            tables.forget_orders()?;
            tables.forget_grants(oldest)?;
            tables.forget_notices(oldest)?;
            tables.forget(oldest)
        })
    }

    fn transaction(&mut self, work: impl FnOnce(&Tables<'_>) -> Result<(), StoreError>) -> Result<(), StoreError> {
        self.conn.execute_batch("BEGIN IMMEDIATE")?;
        let done = work(&self.tables());
        let ended = self.end(done);
        let settled = self.settled.take();
        if ended.is_ok() {
            settled.into_iter().for_each(|held| self.news.settled(held));
        }
        ended
    }

    /// Commits, or rolls back what failed or could not be committed.
    fn end(&self, done: Result<(), StoreError>) -> Result<(), StoreError> {
        let ended = done.and_then(|()| Ok(self.conn.execute_batch("COMMIT")?));
        if ended.is_err() && !self.conn.is_autocommit() {
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        ended
    }

    /// Does jobs in one transaction, and then what the unheard answers of some of them call for.
    fn work(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        while !jobs.is_empty() {
            let writes = jobs.iter().any(|job| job.writes());
            let begun = self.conn.execute_batch(if writes { "BEGIN IMMEDIATE" } else { "BEGIN" });
            match begun {
                Ok(()) => jobs = self.batch(jobs),
                Err(error) if writes => {
                    // What only reads can still be done.
                    let (cannot, can): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.writes());
                    let error = StoreError::from(error);
                    for job in cannot {
                        job.tell(Err(error.clone()));
                    }
                    jobs = can;
                }
                Err(error) => {
                    let error = StoreError::from(error);
                    for job in jobs {
                        job.tell(Err(error.clone()));
                    }
                    return;
                }
            }
        }
    }

    fn batch(&mut self, mut jobs: Vec<Box<dyn Job>>) -> Vec<Box<dyn Job>> {
        let mut done = Ok(());
        for job in &mut jobs {
            if done.is_ok() {
                done = self.one(job.as_mut());
            }
        }
        let ended = self.end(done);
        let orphans = jobs.into_iter().filter_map(|job| job.tell(ended.clone()));
        orphans.map(|call| Box::new(Detach(call)) as Box<dyn Job>).collect()
    }

    /// One job in a savepoint of its own. Its failure is its own; an error here is one of the whole transaction.
    fn one(&self, job: &mut dyn Job) -> Result<(), StoreError> {
        if !job.writes() {
            let _ = job.run(&self.tables());
            return Ok(());
        }
        self.conn.execute_batch("SAVEPOINT job")?;
        match job.run(&self.tables()) {
            Ok(()) => Ok(self.conn.execute_batch("RELEASE job")?),
            // A full disk makes SQLite give up the whole transaction; the savepoint is gone with it.
            Err(error) if self.conn.is_autocommit() => Err(error),
            Err(_) => Ok(self.conn.execute_batch("ROLLBACK TO job; RELEASE job")?),
        }
    }

    /// Tells what this and other processes committed since the last time.
    fn publish(&mut self, refresh: Vec<String>) -> Result<(), StoreError> {
        let (rev, others) = (self.tables().rev()?, self.count_others()?);
        if rev > self.seen || others != self.others {
            for held in self.tables().newer(self.seen)? {
                self.news.publish(held);
            }
            (self.seen, self.others) = (rev, others);
        }
        let tables = self.tables();
        self.news.at(tables.tools_rev()?, tables.orders_rev()?, tables.grants_rev()?);
        for id in refresh {
            match self.tables().get(&id) {
                Ok(held) => self.news.refresh(&id, held),
                Err(StoreError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn count_others(&self) -> Result<i64, StoreError> {
        Ok(self.conn.pragma_query_value(None, "data_version", |row| row.get(0))?)
    }
}

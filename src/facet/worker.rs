//! The thread that parses languages: its stack is deep enough for what the budgets let through, and nothing that goes
//! wrong on it reaches the caller.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes; measured: the shell's parser needs some 4 KiB a level.
const STACK: usize = 64 * 1024 * 1024;
/// A text takes microseconds; one that takes this long is one that nobody needs.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 5_000 } else { 500 });
/// Threads that are given up on; a text that keeps one busy ends sooner or later.
const MAX_LOST: usize = 4;

type Job = Box<dyn FnOnce() + Send>;

struct Worker {
    jobs: Option<Sender<Job>>,
    lost: usize,
}

static WORKER: Mutex<Worker> = Mutex::new(Worker { jobs: None, lost: 0 });

/// Does work on the thread and waits for it, for up to half a second.
///
/// # Errors
/// Why there is no outcome, in a sentence.
pub(super) fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, &'static str> {
    let (answer, answered) = sync_channel(1);
    submit(answer, work)?;
    match answered.recv_timeout(PATIENCE) {
        Ok(Some(outcome)) => Ok(outcome),
        Ok(None) => Err("the text brought the parser down"),
        Err(_) => {
            give_up();
            Err("the text takes too long to parse")
        }
    }
}

fn submit<T: Send + 'static>(
    answer: SyncSender<Option<T>>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(), &'static str> {
    const NO_THREAD: &str = "texts cannot be parsed just now";
    let mut worker = WORKER.lock().unwrap_or_else(PoisonError::into_inner);
    if worker.lost >= MAX_LOST {
        return Err(NO_THREAD);
    }
    let jobs = match &worker.jobs {
        Some(jobs) => jobs,
        None => {
            let (jobs, waiting) = channel::<Job>();
            let run = move || waiting.into_iter().for_each(|job: Job| job());
            let thread = std::thread::Builder::new().name("parse".to_owned()).stack_size(STACK).spawn(run);
            thread.map_err(|_| NO_THREAD)?;
            worker.jobs.insert(jobs)
        }
    };
    let job = move || {
        let outcome = catch_unwind(AssertUnwindSafe(work)).ok();
        // Nobody may be waiting any more; then a thread that was given up on is free again.
        if answer.send(outcome).is_err() {
            let mut worker = WORKER.lock().unwrap_or_else(PoisonError::into_inner);
            worker.lost = worker.lost.saturating_sub(1);
        }
    };
    jobs.send(Box::new(job)).map_err(|_| NO_THREAD)
}

/// Leaves a busy thread to itself; the next text gets another.
fn give_up() {
    let mut worker = WORKER.lock().unwrap_or_else(PoisonError::into_inner);
    worker.jobs = None;
    worker.lost += 1;
}

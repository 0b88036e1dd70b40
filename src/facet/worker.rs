//! The threads that parse languages: their stacks are deep enough for what the budgets let through, nothing that goes
//! wrong on one reaches the caller, and each text has one for itself, and its own time.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes; measured: the shell's parser needs some 4 KiB a level.
const STACK: usize = 64 * 1024 * 1024;
/// A text takes microseconds; one that takes this long is one that nobody needs. As long does one wait for a thread.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 5_000 } else { 500 });
/// Threads, those among them that are busy with a text that was given up on; it ends sooner or later.
const MAX_THREADS: usize = 6;

const NO_THREAD: &str = "texts cannot be parsed just now";

/// Work for a thread, which is given the way to itself to say that it is free again.
type Job = Box<dyn FnOnce(Thread) + Send>;

#[derive(Clone)]
struct Thread(Sender<Job>);

struct Pool {
    idle: Vec<Thread>,
    threads: usize,
}

static POOL: Mutex<Pool> = Mutex::new(Pool { idle: Vec::new(), threads: 0 });
static FREED: Condvar = Condvar::new();

/// Does work on a thread and waits for it, for up to half a second from when it begins.
///
/// # Errors
/// Why there is no outcome, in a sentence.
pub(super) fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, &'static str> {
    let (answer, answered) = sync_channel(1);
    let job: Job = Box::new(move |thread| {
        let outcome = catch_unwind(AssertUnwindSafe(work)).ok();
        thread.rest();
        // Nobody may be waiting any more.
        let _ = answer.send(outcome);
    });
    Thread::take()?.0.send(job).map_err(|_| NO_THREAD)?;
    match answered.recv_timeout(PATIENCE) {
        Ok(Some(outcome)) => Ok(outcome),
        Ok(None) => Err("the text brought the parser down"),
        Err(_) => Err("the text takes too long to parse"),
    }
}

impl Thread {
    /// One that has nothing to do, or a new one; else the next that is free.
    fn take() -> Result<Self, &'static str> {
        let all_busy = |pool: &mut Pool| pool.idle.is_empty() && pool.threads >= MAX_THREADS;
        let waited = FREED.wait_timeout_while(pool(), PATIENCE, all_busy);
        let (mut pool, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = pool.idle.pop() {
            return Ok(thread);
        }
        if pool.threads >= MAX_THREADS {
            return Err(NO_THREAD);
        }
        let thread = Self::start()?;
        pool.threads += 1;
        Ok(thread)
    }

    fn start() -> Result<Self, &'static str> {
        let (jobs, waiting) = channel::<Job>();
        let thread = Self(jobs);
        let own = thread.clone();
        let run = move || waiting.into_iter().for_each(|job| job(own.clone()));
        let started = std::thread::Builder::new().name("parse".to_owned()).stack_size(STACK).spawn(run);
        started.map(|_| thread).map_err(|_| NO_THREAD)
    }

    fn rest(self) {
        pool().idle.push(self);
        FREED.notify_one();
    }
}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_slow_text_takes_no_time_of_another() {
        let slow: Vec<_> =
            (0..2).map(|_| std::thread::spawn(|| run(|| std::thread::sleep(Duration::from_secs(2))))).collect();
        std::thread::sleep(Duration::from_millis(100));
        let began = Instant::now();
        assert_eq!(run(|| 1), Ok(1));
        assert!(began.elapsed() < Duration::from_millis(1_500), "{:?}", began.elapsed());
        assert!(slow.into_iter().all(|slow| slow.join().unwrap().is_ok()));
    }

    #[test]
    fn more_texts_than_threads_wait_for_their_turn() {
        let many: Vec<_> = (0..4 * MAX_THREADS)
            .map(|n| std::thread::spawn(move || run(move || (std::thread::sleep(Duration::from_millis(20)), n).1)))
            .collect();
        let done: Vec<_> = many.into_iter().map(|one| one.join().unwrap()).collect();
        assert_eq!(done, (0..4 * MAX_THREADS).map(Ok).collect::<Vec<_>>());
        assert!(pool().threads <= MAX_THREADS);
    }

    #[test]
    fn one_that_goes_wrong_brings_nothing_else_down() {
        assert_eq!(run(|| panic!("on purpose")), Err::<(), _>("the text brought the parser down"));
        assert_eq!(run(|| 1), Ok(1));
    }
}

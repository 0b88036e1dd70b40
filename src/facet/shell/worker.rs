//! The thread that parses: its stack is deep enough for what the budget lets through, and nothing that goes wrong on it
//! reaches the caller.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::simple::Walk;
use super::words::Word;
use super::{Command, Script, budget};

/// Bytes; measured: the parser needs some 4 KiB a level.
const STACK: usize = 64 * 1024 * 1024;
/// A text takes microseconds; one that takes this long is one that nobody needs.
const PATIENCE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 5_000 } else { 500 });
/// Threads that are given up on; a text that keeps one busy ends sooner or later.
const MAX_LOST: usize = 4;

/// Takes a shell text apart.
pub(in crate::facet) fn script(text: &str) -> Script {
    if let Some(why) = budget::excess(text) {
        return Script { commands: vec![Command::not_understood(text, why)] };
    }
    let given = text.to_owned();
    on_the_thread(text, move || Walk::text(&given))
}

/// Takes a command line apart that no shell reads.
pub(in crate::facet) fn argv(words: &[String]) -> Script {
    let text = words.join(" ");
    if let Some(why) = budget::excess(&text) {
        return Script { commands: vec![Command::not_understood(&text, why)] };
    }
    let words: Vec<Word> = words.iter().map(|word| Word::literal(word)).collect();
    on_the_thread(&text, move || Walk::words(words))
}

type Job = Box<dyn FnOnce() + Send>;

struct Worker {
    jobs: Option<Sender<Job>>,
    lost: usize,
}

static WORKER: Mutex<Worker> = Mutex::new(Worker { jobs: None, lost: 0 });

fn on_the_thread(text: &str, work: impl FnOnce() -> Script + Send + 'static) -> Script {
    let (answer, answered) = sync_channel(1);
    let outcome = submit(answer, work).and_then(|()| match answered.recv_timeout(PATIENCE) {
        Ok(Some(script)) => Ok(script),
        Ok(None) => Err("the shell text brought the parser down"),
        Err(_) => {
            give_up();
            Err("the shell text takes too long to parse")
        }
    });
    outcome.unwrap_or_else(|why| Script { commands: vec![Command::not_understood(text, why)] })
}

fn submit(
    answer: SyncSender<Option<Script>>,
    work: impl FnOnce() -> Script + Send + 'static,
) -> Result<(), &'static str> {
    const NO_THREAD: &str = "shell texts cannot be parsed just now";
    let mut worker = WORKER.lock().unwrap_or_else(PoisonError::into_inner);
    if worker.lost >= MAX_LOST {
        return Err(NO_THREAD);
    }
    let jobs = match &worker.jobs {
        Some(jobs) => jobs,
        None => {
            let (jobs, waiting) = channel::<Job>();
            let run = move || waiting.into_iter().for_each(|job: Job| job());
            let thread = std::thread::Builder::new().name("shell".to_owned()).stack_size(STACK).spawn(run);
            thread.map_err(|_| NO_THREAD)?;
            worker.jobs.insert(jobs)
        }
    };
    let job = move || {
        let script = catch_unwind(AssertUnwindSafe(work)).ok();
        // Nobody may be waiting any more; then a thread that was given up on is free again.
        if answer.send(script).is_err() {
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

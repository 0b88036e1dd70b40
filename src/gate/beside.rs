//! Work on large messages, so that whoever sends them keeps nobody else waiting.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::message::Message;

/// From this many bytes a message is worked on beside the threads that serve everyone.
pub const LARGE: usize = 64 << 10;

/// How many large messages of one agent are worked on at once.
const AT_ONCE: usize = 2;

/// Whose large message is worked on.
#[derive(Default)]
pub struct Turns(DashMap<String, Arc<Semaphore>>);

impl Turns {
    /// An agent's turn to have a message worked on, held until it is dropped; one that is not large needs none.
    pub async fn of(&self, agent: &str, message: &Message) -> Option<OwnedSemaphorePermit> {
        if message.bytes().len() < LARGE {
            return None;
        }
        let turns = Arc::clone(&self.0.entry(agent.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))));
        // It is never closed.
        turns.acquire_owned().await.ok()
    }
}

/// Does work on a message: a large one where others take this thread's place.
pub fn beside<T>(message: &Message, work: impl FnOnce() -> T) -> T {
    let has_others = || Handle::try_current().is_ok_and(|at| at.runtime_flavor() == RuntimeFlavor::MultiThread);
    match message.bytes().len() >= LARGE && has_others() {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures_util::FutureExt as _;

    use super::*;
    use crate::message::Limits;

    fn message(bytes: usize) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"x":"{}"}}}}"#, "x".repeat(bytes));
        Message::strict(text.into(), Limits::default()).unwrap()
    }

    #[tokio::test]
    async fn an_agent_waits_for_its_own_large_messages_only() {
        let (turns, large) = (Turns::default(), message(LARGE));
        let (first, _second) = (turns.of("a", &large).await, turns.of("a", &large).await);
        let third = turns.of("a", &large);
        tokio::pin!(third);
        assert!(third.as_mut().now_or_never().is_none());
        assert!(turns.of("b", &large).await.is_some() && turns.of("a", &message(1)).await.is_none());
        drop(first);
        assert!(third.await.is_some());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn work_on_a_large_message_leaves_the_others_their_thread() {
        let (large, (tx, rx)) = (message(LARGE), std::sync::mpsc::channel());
        let work = tokio::spawn(async move { beside(&large, || rx.recv_timeout(std::time::Duration::from_secs(20))) });
        tokio::spawn(async move { tx.send(()) }).await.unwrap().unwrap();
        assert!(work.await.unwrap().is_ok());
    }
}

//! What the writer is asked to do, and how the answer gets back once it is safe on disk.

use tokio::sync::oneshot;

use super::held::Tables;
use crate::approval::Event;
use crate::store::StoreError;

/// One piece of work inside a transaction that it shares with others.
pub(super) trait Job: Send {
    /// Whether it changes anything.
    fn writes(&self) -> bool;

    /// Does the work; an error undoes what this job did and nothing else.
    fn run(&mut self, tables: &Tables<'_>) -> Result<(), StoreError>;

    /// Tells whoever asked, after the commit or its failure. Answers the call whose client is not there to hear it.
    fn tell(self: Box<Self>, committed: Result<(), StoreError>) -> Option<String>;
}

/// A job whose asker waits for the answer.
pub(super) struct Ask<T, W> {
    work: Option<W>,
    answer: Result<T, StoreError>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    writes: bool,
    /// The call whose client is gone if nobody takes the answer.
    orphan: fn(T) -> Option<String>,
}

impl<T, W> Ask<T, W>
where
    T: Send + 'static,
    W: FnOnce(&Tables<'_>) -> Result<T, StoreError> + Send + 'static,
{
    pub(super) fn new(
        writes: bool,
        work: W,
        orphan: fn(T) -> Option<String>,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        let not_done = Err(StoreError::Unavailable("it was not done".into()));
        (Self { work: Some(work), answer: not_done, reply, writes, orphan }, answer)
    }
}

impl<T, W> Job for Ask<T, W>
where
    T: Send + 'static,
    W: FnOnce(&Tables<'_>) -> Result<T, StoreError> + Send + 'static,
{
    fn writes(&self) -> bool {
        self.writes
    }

    fn run(&mut self, tables: &Tables<'_>) -> Result<(), StoreError> {
        if let Some(work) = self.work.take() {
            self.answer = work(tables);
        }
        self.answer.as_ref().map(|_| ()).map_err(StoreError::clone)
    }

    fn tell(self: Box<Self>, committed: Result<(), StoreError>) -> Option<String> {
        let answer = committed.and(self.answer);
        let unheard = self.reply.send(answer).err()?.ok()?;
        (self.orphan)(unheard)
    }
}

/// Lets the client of a call go.
pub(super) struct Detach(pub(super) String);

impl Job for Detach {
    fn writes(&self) -> bool {
        true
    }

    fn run(&mut self, tables: &Tables<'_>) -> Result<(), StoreError> {
        tables.apply(&self.0, Event::Detach { handed_off: false }).map(drop)
    }

    fn tell(self: Box<Self>, committed: Result<(), StoreError>) -> Option<String> {
        if let Err(error) = committed {
            tracing::warn!(call = self.0, %error, "the client of a held call is gone, and that could not be stored");
        }
        None
    }
}

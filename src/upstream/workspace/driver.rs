//! The one driver of every run.

use super::tool::{Output, State, ToolExecution};

/// Waits for a run to end. When `cancelled` comes first, the run is stopped, once, and its output is dropped, but its
/// end is still waited for: afterwards nothing of it runs any more.
pub(super) async fn drive(execution: &dyn ToolExecution, cancelled: impl Future<Output = ()>) -> Option<Output> {
    tokio::select! {
        biased;
        output = execution.wait() => return Some(output),
        () = cancelled => {}
    }
    if execution.state() == State::Running {
        execution.stop();
    }
    execution.wait().await;
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::BoxFuture;
    use tokio::sync::Notify;

    use super::*;

    /// Ends a little after it is stopped.
    #[derive(Default)]
    struct Slow {
        stopped: AtomicUsize,
        stop: Notify,
    }

    impl ToolExecution for Slow {
        fn state(&self) -> State {
            if self.stopped.load(Ordering::SeqCst) == 0 { State::Running } else { State::Stopping }
        }

        fn wait(&self) -> BoxFuture<'_, Output> {
            Box::pin(async {
                self.stop.notified().await;
                tokio::time::sleep(Duration::from_millis(5)).await;
                Output { text: String::new(), failed: true }
            })
        }

        fn stop(&self) {
            self.stopped.fetch_add(1, Ordering::SeqCst);
            self.stop.notify_one();
        }
    }

    #[tokio::test]
    async fn stops_once_and_waits_for_the_end() {
        let slow = Slow::default();
        assert_eq!(drive(&slow, std::future::ready(())).await, None);
        assert_eq!(slow.stopped.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn what_ends_by_itself_is_not_stopped() {
        let slow = Slow::default();
        slow.stop.notify_one();
        let output = drive(&slow, std::future::pending()).await.unwrap();
        assert!(output.failed);
        assert_eq!(slow.stopped.load(Ordering::SeqCst), 0);
    }
}

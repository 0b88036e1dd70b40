//! What every feature's tests need: a gateway of their own, an agent, an approver, real peers.

pub mod agent;
pub mod browser;
pub mod fates;
pub mod gateway;
pub mod http;
pub mod peers;
pub mod piped;
pub mod receiver;

use std::time::{Duration, Instant};

/// Asks again every 20 ms until there is an answer; panics after 30 s with what was waited for.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut ask: impl FnMut() -> F) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "waited 60 s for {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

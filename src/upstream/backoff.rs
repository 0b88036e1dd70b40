//! How long to wait before the next try.

use std::time::{Duration, Instant};

/// A child that lives shorter than this died of its start.
const QUICK: Duration = Duration::from_secs(10);

/// The pause after so many failures in a row: 0.5 s, doubled each time, at most 30 s.
pub(super) fn pause(failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        n => Duration::from_millis(500u64 << (n - 1).min(6)).min(Duration::from_secs(30)),
    }
}

/// What is remembered of children that died.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// Quick deaths in a row.
    pub failures: u32,
    until: Option<Instant>,
}

impl Backoff {
    /// How long a start has to wait yet.
    pub fn remaining(&self, now: Instant) -> Duration {
        self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// A child ended by itself after living this long.
    pub fn died(&mut self, lived: Duration, now: Instant) {
        self.failures = if lived < QUICK { self.failures.saturating_add(1) } else { 0 };
        self.until = Some(now + pause(self.failures));
    }

    /// A child was ended by us after living this long: nothing to hold against it.
    pub fn closed(&mut self, lived: Duration) {
        if lived >= QUICK {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let seconds: Vec<f32> = (0..10).map(|n| pause(n).as_secs_f32()).collect();
        assert_eq!(seconds, [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]);
        assert_eq!(pause(u32::MAX), Duration::from_secs(30));
    }

    #[test]
    fn only_quick_deaths_count() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        assert_eq!(backoff.remaining(now), Duration::ZERO);
        backoff.died(Duration::from_millis(10), now);
        backoff.died(Duration::from_millis(10), now);
        assert_eq!(backoff.remaining(now), Duration::from_secs(1));
        assert_eq!(backoff.remaining(now + Duration::from_secs(3)), Duration::ZERO);
        backoff.closed(Duration::from_secs(1));
        assert_eq!(backoff.failures, 2);
        backoff.died(Duration::from_secs(60), now);
        assert_eq!((backoff.failures, backoff.remaining(now)), (0, Duration::ZERO));
    }
}

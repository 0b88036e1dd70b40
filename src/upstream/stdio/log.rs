//! A child's own words, in the gateway's log.

use std::time::{Duration, Instant};

use tokio::io::AsyncRead;

use super::lines::{Line, Lines};
use crate::pattern::visible;
use crate::upstream::LOG;

/// Longer lines are cut.
const MAX_LINE: usize = 8 << 10;
/// Lines a second that are logged; of more only the number.
const MAX_RATE: u32 = 100;

/// Copies a child's standard error to the log, line by line, until it ends.
pub(super) async fn copy(upstream: &str, from: impl AsyncRead + Unpin) {
    let mut lines = Lines::new(from, MAX_LINE);
    let mut rate = Rate::new(Instant::now());
    while let Ok(Some(Line::Whole(line) | Line::Cut(line))) = lines.next().await {
        let (write, lost) = rate.next(Instant::now());
        if lost > 0 {
            tracing::warn!(target: LOG, upstream, lost, "lines of its standard error were left out: too many a second");
        }
        if write && !line.is_empty() {
            tracing::info!(target: LOG, upstream, stderr = %shown(&line));
        }
    }
}

/// One line of text with its control characters written out, since they could forge other log lines.
pub(super) fn shown(line: &[u8]) -> String {
    visible(String::from_utf8_lossy(line).trim_end())
}

/// Counts lines by the second.
pub(super) struct Rate {
    second: Instant,
    count: u32,
}

impl Rate {
    pub fn new(now: Instant) -> Self {
        Self { second: now, count: 0 }
    }

    /// Whether to write the next line, and how many were left out in the second before, once that is over.
    pub fn next(&mut self, now: Instant) -> (bool, u32) {
        let mut lost = 0;
        if now.duration_since(self.second) >= Duration::from_secs(1) {
            lost = self.count.saturating_sub(MAX_RATE);
            *self = Self::new(now);
        }
        self.count = self.count.saturating_add(1);
        (self.count <= MAX_RATE, lost)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_flood_is_counted_and_not_written() {
        let start = Instant::now();
        let mut rate = Rate::new(start);
        let written = (0..1000).filter(|_| rate.next(start).0).count();
        assert_eq!(written, 100);
        assert_eq!(rate.next(start + Duration::from_secs(2)), (true, 900));
        assert_eq!(rate.next(start + Duration::from_secs(2)), (true, 0));
    }

    #[test]
    fn a_line_cannot_forge_another() {
        assert_eq!(shown(b"a\x1b[31m\rb\xff\n"), "a\\u{1b}[31m\\rb\u{fffd}");
    }
}

//! Lines of bounded length.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// What was read up to a line feed, without it.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// A line.
    Whole(Vec<u8>),
    /// The beginning of a line that is longer than the bound; its rest is skipped by the next read.
    Cut(Vec<u8>),
}

/// Reads lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    max: usize,
    line: Vec<u8>,
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `max` bytes.
    pub fn new(reader: R, max: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader), max, line: Vec::new(), skipping: false }
    }

    /// The next line; none at the end. A last line without a line feed counts.
    ///
    /// # Errors
    /// Reading failed.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                let rest = std::mem::take(&mut self.line);
                return Ok((!rest.is_empty()).then_some(Line::Whole(rest)));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let (part, used) = match end {
                Some(at) => (chunk.get(..at).unwrap_or_default(), at + 1),
                None => (chunk, chunk.len()),
            };
            let too_long = !self.skipping && self.line.len() + part.len() > self.max;
            if !self.skipping {
                let room = self.max - self.line.len();
                self.line.extend_from_slice(part.get(..room).unwrap_or(part));
            }
            self.reader.consume(used);
            if too_long {
                self.skipping = end.is_none();
                return Ok(Some(Line::Cut(std::mem::take(&mut self.line))));
            }
            if end.is_some() && !std::mem::take(&mut self.skipping) {
                return Ok(Some(Line::Whole(std::mem::take(&mut self.line))));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    async fn all(text: &[u8], max: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, max);
        let mut out = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            out.push(line);
        }
        out
    }

    #[tokio::test]
    async fn cuts_what_is_too_long_and_goes_on_with_the_next_line() {
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(all(b"a\n\nbc", 3).await, [whole("a"), whole(""), whole("bc")]);
        assert_eq!(all(b"abc\nabcd\nx\n", 3).await, [whole("abc"), Line::Cut("abc".into()), whole("x")]);
        let long = [vec![b'z'; 200_000], b"\nend\n".to_vec()].concat();
        assert_eq!(all(&long, 5).await, [Line::Cut("zzzzz".into()), whole("end")]);
    }
}

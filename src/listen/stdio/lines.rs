//! Lines in, lines out.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

/// One line of the client.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Line {
    /// Without its end.
    Text(Bytes),
    /// Longer than allowed; the rest of it was thrown away.
    TooLong,
}

/// Reads lines of at most `max` bytes.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(input: R, max: usize) -> Self {
        Self { input: BufReader::with_capacity(64 << 10, input), max }
    }

    /// The next line; the last one needs no end. None when there is no more.
    ///
    /// # Errors
    /// The input cannot be read.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        let mut line = BytesMut::new();
        let mut too_long = false;
        loop {
            let part = self.input.fill_buf().await?;
            let at_end = part.is_empty();
            let end = part.iter().position(|b| *b == b'\n');
            let text = part.get(..end.unwrap_or(part.len())).unwrap_or_default();
            too_long |= line.len() + text.len() > self.max;
            if too_long {
                line = BytesMut::new();
            } else {
                line.extend_from_slice(text);
            }
            let used = text.len() + usize::from(end.is_some());
            self.input.consume(used);
            match (end.is_some(), at_end) {
                (false, false) => {}
                (_, true) if line.is_empty() && !too_long => return Ok(None),
                _ if too_long => return Ok(Some(Line::TooLong)),
                _ => return Ok(Some(Line::Text(line.freeze()))),
            }
        }
    }
}

/// Writes each message as one line, until there are no more or the output is closed.
///
/// # Errors
/// The output cannot be written.
pub(super) async fn write(mut output: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Bytes>) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        output.write_all(&one_line(message)).await?;
        output.write_all(b"\n").await?;
        output.flush().await?;
    }
    Ok(())
}

/// JSON knows line ends between its tokens only, where a space means the same.
fn one_line(message: Bytes) -> Bytes {
    let is_end = |b: &u8| matches!(b, b'\n' | b'\r');
    if !message.iter().any(is_end) {
        return message;
    }
    message.iter().map(|b| if is_end(b) { b' ' } else { *b }).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    async fn lines(chunks: &[&[u8]]) -> Vec<Line> {
        let mut input: Box<dyn AsyncRead + Unpin> = Box::new(tokio::io::empty());
        for chunk in chunks.iter().rev() {
            input = Box::new(tokio::io::AsyncReadExt::chain(std::io::Cursor::new(chunk.to_vec()), input));
        }
        let mut lines = Lines::new(input, 5);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            all.push(line);
        }
        all
    }

    #[tokio::test]
    async fn lines_are_cut_at_line_feeds_and_bounded() {
        let text = |t: &'static str| Line::Text(Bytes::from_static(t.as_bytes()));
        assert_eq!(lines(&[b"ab\ncd", b"e\n\nlast"]).await, [text("ab"), text("cde"), text(""), text("last")]);
        assert_eq!(
            lines(&[b"12345\n", b"123", b"456", b"7890\nok\n"]).await,
            [text("12345"), Line::TooLong, text("ok")]
        );
        assert_eq!(lines(&[b"1234567"]).await, [Line::TooLong]);
        assert_eq!(lines(&[b""]).await, []);
    }

    #[tokio::test]
    async fn a_message_is_one_line_whatever_its_spacing() {
        let (tx, rx) = mpsc::channel(4);
        tx.send("{\r\n \"a\":\"\\n\"}\n".into()).await.unwrap();
        tx.send("{}".into()).await.unwrap();
        drop(tx);
        let mut out = Vec::new();
        write(&mut out, rx).await.unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "{   \"a\":\"\\n\"} \n{}\n");
    }
}

//! Server-sent events (WHATWG HTML, section 9.2): framing in both directions.

use std::fmt;

use bytes::Bytes;

/// One event. `data` is empty where a server only primes the client with an id or a reconnection time
/// (MCP 2025-11-25); a browser would not dispatch such an event, and it carries no message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Event {
    /// `id`, if this event carries one.
    pub id: Option<String>,
    /// `event`, if it is not the default, `message`.
    pub event: Option<String>,
    /// The `data` lines, joined by line feeds.
    pub data: Bytes,
    /// `retry` in milliseconds.
    pub retry: Option<u64>,
}

/// The stream cannot be read on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SseError {
    /// An event is longer than this many bytes.
    TooLong(usize),
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::TooLong(max) = self;
        write!(f, "a server-sent event is longer than {max} bytes")
    }
}

impl std::error::Error for SseError {}

/// Reads events from chunks of bytes that end anywhere.
#[derive(Debug)]
pub struct Decoder {
    max_bytes: usize,
    line: Vec<u8>,
    /// The last byte was a CR: a LF that follows belongs to it.
    after_cr: bool,
    /// Nothing was read yet: a byte order mark may follow.
    at_start: bool,
    id: Option<String>,
    event: Option<String>,
    data: Option<Vec<u8>>,
    retry: Option<u64>,
}

impl Decoder {
    /// A decoder that refuses events of more than `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            line: Vec::new(),
            after_cr: false,
            at_start: true,
            id: None,
            event: None,
            data: None,
            retry: None,
        }
    }

    /// Takes the next bytes and gives the events that they complete. What is incomplete when the stream ends is dropped,
    /// as the standard wants it.
    ///
    /// # Errors
    /// An event is too long; the stream must be given up.
    pub fn push(&mut self, mut chunk: &[u8]) -> Result<Vec<Event>, SseError> {
        let mut events = Vec::new();
        while !chunk.is_empty() {
            if std::mem::take(&mut self.after_cr) {
                chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
            }
            let end = chunk.iter().position(|b| matches!(b, b'\n' | b'\r'));
            let (part, rest) = chunk.split_at(end.unwrap_or(chunk.len()));
            if self.line.len() + part.len() + self.data.as_ref().map_or(0, Vec::len) > self.max_bytes {
                return Err(SseError::TooLong(self.max_bytes));
            }
            self.line.extend_from_slice(part);
            chunk = rest.get(1..).unwrap_or_default();
            if end.is_some() {
                self.after_cr = rest.starts_with(b"\r");
                events.extend(self.end_of_line());
            }
        }
        Ok(events)
    }

    fn end_of_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        let first = std::mem::take(&mut self.at_start);
        let line = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| first).unwrap_or(&line);
        if line.is_empty() {
            return self.dispatch();
        }
        let colon = line.iter().position(|b| *b == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || std::str::from_utf8(value).ok();
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"event" => self.event = text().filter(|e| !e.is_empty() && *e != "message").map(str::to_owned),
            b"id" => {
                if let Some(id) = text().filter(|id| !id.contains('\0')) {
                    self.id = Some(id.to_owned());
                }
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                self.retry = text().and_then(|t| t.parse().ok()).or(self.retry);
            }
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let event = Event {
            id: self.id.take(),
            event: self.event.take(),
            data: self.data.take().unwrap_or_default().into(),
            retry: self.retry.take(),
        };
        (!event.data.is_empty() || event.id.is_some() || event.retry.is_some()).then_some(event)
    }
}

/// One `message` event. Line ends in the data become line feeds, which JSON knows between its tokens only.
pub fn event_bytes(id: Option<&str>, data: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(data.len() + 64);
    if let Some(id) = id {
        out.extend_from_slice(b"id: ");
        out.extend(id.bytes().filter(|b| !matches!(b, b'\n' | b'\r' | 0)));
        out.push(b'\n');
    }
    out.extend_from_slice(b"event: message\n");
    for line in data.split(|b| matches!(b, b'\n' | b'\r')) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.push(b'\n');
    out.into()
}

/// A comment, which keeps a connection alive and which clients ignore.
pub fn comment() -> Bytes {
    Bytes::from_static(b": waiting\n\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<Event> {
        let mut decoder = Decoder::new(1000);
        chunks.iter().flat_map(|chunk| decoder.push(chunk).unwrap()).collect()
    }

    #[test]
    fn reads_the_same_however_the_bytes_are_cut() {
        let text = "\u{feff}id: 7\r\n: hello\revent: note\ndata: {\"a\":\r\ndata:  1}\n\n:\n\ndata\n\nretry: 250\n\n\
                    event:message\ndata:x\rid:bad\0id\r\r"
            .as_bytes();
        let whole = decode(&[text]);
        assert_eq!(
            whole,
            [
                Event { id: Some("7".into()), event: Some("note".into()), data: "{\"a\":\n 1}".into(), retry: None },
                Event { retry: Some(250), ..Event::default() },
                Event { data: "x".into(), ..Event::default() },
            ]
        );
        for cut in 1..text.len() {
            assert_eq!(decode(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(decode(&bytes), whole);
    }

    #[test]
    fn an_event_without_end_is_not_read_for_ever() {
        let mut decoder = Decoder::new(10);
        assert_eq!(decoder.push(b"data: 1"), Ok(vec![]));
        assert_eq!(decoder.push(b"2345"), Err(SseError::TooLong(10)));
        let mut many_lines = Decoder::new(30);
        let refused = (0..10).map(|_| many_lines.push(b"data: 123456789\n")).find(Result::is_err);
        assert_eq!(refused, Some(Err(SseError::TooLong(30))));
    }

    #[test]
    fn an_unfinished_event_is_dropped() {
        assert_eq!(decode(&[b"data: 1\n"]), []);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let events = decode(&[&event_bytes(Some("1\n2"), b"{\n\"a\":1}"), &comment(), &event_bytes(None, b"{}")]);
        assert_eq!(events[0].id.as_deref(), Some("12"));
        assert_eq!(events[0].data, "{\n\"a\":1}");
        assert_eq!(events[1], Event { data: "{}".into(), ..Event::default() });
        assert_eq!(events.len(), 2);
    }
}

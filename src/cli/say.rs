//! What people are told on standard error: messages and the log, written by a thread of its own.
//!
//! Whoever reads it may be slow or gone (`2>&1 | head`), and a disk may be full: that neither stops nor delays a call.
//! What nobody takes is dropped and counted. Clippy forbids the macros that panic where they cannot print.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use std::time::Duration;

/// How many pieces may wait to be written.
const QUEUE: usize = 1024;

/// How long the end of the program waits for what is still to be written.
const LAST_WORDS: Duration = Duration::from_millis(500);

static TELLER: OnceLock<Teller> = OnceLock::new();

/// Begins to write on a thread of its own; before that, and where none can be started, it is written at once.
pub fn start() {
    // A second start has nothing to do.
    let _ = Teller::new(io::stderr()).map(|teller| TELLER.set(teller));
}

/// Tells a line on standard error.
pub fn tell(line: impl Display) {
    put(format!("{line}\n").into_bytes());
}

/// Tells a line on standard output, for people; nobody may be there to read it.
pub fn show(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Where the log goes: each write is a whole event.
pub fn log() -> impl Write {
    Log
}

/// Waits a moment until what was told is written: the program is about to end.
pub fn flush() {
    if let Some(teller) = TELLER.get() {
        teller.flush(LAST_WORDS);
    }
}

struct Log;

impl Write for Log {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        put(piece.to_vec());
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn put(piece: Vec<u8>) {
    match TELLER.get() {
        Some(teller) => teller.put(piece),
        None => drop(io::stderr().write_all(&piece)),
    }
}

/// The way to the thread that writes.
struct Teller {
    pieces: SyncSender<Piece>,
    lost: &'static AtomicU64,
}

enum Piece {
    Text(Vec<u8>),
    /// Everything before it is written.
    Mark(SyncSender<()>),
}

impl Teller {
    fn new(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (pieces, queue) = sync_channel(QUEUE);
        // One for each program (and each test): it lives as long as its thread.
        let lost: &'static AtomicU64 = Box::leak(Box::default());
        Builder::new().name("log".into()).spawn(move || write_all(out, &queue, lost))?;
        Ok(Self { pieces, lost })
    }

    fn put(&self, piece: Vec<u8>) {
        if self.pieces.try_send(Piece::Text(piece)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self, within: Duration) {
        let (mark, reached) = sync_channel(1);
        if self.pieces.try_send(Piece::Mark(mark)).is_ok() {
            let _ = reached.recv_timeout(within);
        }
    }
}

/// A piece that cannot be written is lost; the next may fare better.
fn write_all(mut out: impl Write, queue: &Receiver<Piece>, lost: &AtomicU64) {
    while let Ok(piece) = queue.recv() {
        match piece {
            Piece::Text(text) => {
                let many = lost.swap(0, Ordering::Relaxed);
                if many > 0 && writeln!(out, "{many} lines of the log were lost: nobody took them").is_err() {
                    lost.fetch_add(many, Ordering::Relaxed);
                }
                if out.write_all(&text).is_err() {
                    lost.fetch_add(1, Ordering::Relaxed);
                }
            }
            Piece::Mark(reached) => drop(reached.send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Read;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use super::*;

    #[derive(Clone, Default)]
    struct Disk {
        full: Arc<Mutex<bool>>,
        text: Arc<Mutex<Vec<u8>>>,
    }

    impl Write for Disk {
        fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
            match *self.full.lock().unwrap() {
                true => Err(io::ErrorKind::StorageFull.into()),
                false => self.text.lock().unwrap().write(piece),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_the_rest_goes_on() {
        let disk = Disk::default();
        let teller = Teller::new(disk.clone()).unwrap();
        let tell = |text: &str| {
            teller.put(text.as_bytes().to_vec());
            teller.flush(Duration::from_secs(10));
        };
        tell("one\n");
        *disk.full.lock().unwrap() = true;
        tell("two\n");
        tell("three\n");
        *disk.full.lock().unwrap() = false;
        tell("four\n");
        let text = String::from_utf8(disk.text.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "one\n2 lines of the log were lost: nobody took them\nfour\n");
    }

    #[test]
    fn a_reader_that_does_not_read_delays_nobody() {
        let (mut reader, writer) = io::pipe().unwrap();
        let teller = Teller::new(writer).unwrap();
        let began = Instant::now();
        for _ in 0..10 * QUEUE {
            teller.put(vec![b'x'; 1024]);
        }
        teller.flush(Duration::from_millis(10));
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
        let mut some = [0; 1024];
        reader.read_exact(&mut some).unwrap();
    }
}

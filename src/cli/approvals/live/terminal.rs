//! The terminal while the live list has it: taken over, drawn on, and given back as it was, whatever ends the program.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::event::{self, Event, KeyEventKind};
use crossterm::terminal::{self, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{cursor, execute};
use tokio::sync::mpsc;

/// How often the thread that reads keys looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

static HOOK: Once = Once::new();

/// Gives the terminal back when it is dropped.
pub struct Terminal {
    wanted: Arc<AtomicBool>,
}

impl Terminal {
    /// Takes the terminal over; keys and changes of its size arrive at the receiver.
    ///
    /// # Errors
    /// It is no terminal that can do this.
    pub fn take() -> io::Result<(Self, mpsc::Receiver<Event>)> {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                give_back();
                before(panic);
            }));
        });
        terminal::enable_raw_mode()?;
        let terminal = Self { wanted: Arc::new(AtomicBool::new(true)) };
        execute!(io::stdout(), EnterAlternateScreen, terminal::DisableLineWrap, cursor::Hide)?;
        let (sender, receiver) = mpsc::channel(64);
        let wanted = Arc::clone(&terminal.wanted);
        std::thread::Builder::new().name("keys".into()).spawn(move || {
            while wanted.load(Ordering::Relaxed) {
                match event::poll(LOOK).and_then(|ready| ready.then(event::read).transpose()) {
                    Ok(Some(Event::Key(key))) if key.kind == KeyEventKind::Release => {}
                    Ok(Some(event)) => {
                        if sender.blocking_send(event).is_err() {
                            return;
                        }
                    }
                    Ok(None) => {}
                    // The terminal is gone: whoever waits for keys hears it as the end of them.
                    Err(_) => return,
                }
            }
        })?;
        Ok((terminal, receiver))
    }

    /// Draws the rows, one of them in reverse. The rows hold no control characters.
    pub fn draw(&self, rows: &[String], marked: Option<usize>) -> io::Result<()> {
        let mut frame = String::new();
        for (at, row) in rows.iter().enumerate() {
            let (on, off) = if marked == Some(at) { ("\x1b[7m", "\x1b[0m") } else { ("", "") };
            // Writing to a string cannot fail.
            let _ = write!(frame, "\x1b[{};1H{on}{row}{off}\x1b[K", at + 1);
        }
        let mut out = io::stdout().lock();
        out.write_all(frame.as_bytes())?;
        out.flush()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        give_back();
    }
}

fn give_back() {
    // A terminal that is gone cannot be given back.
    let _ = execute!(io::stdout(), terminal::EnableLineWrap, cursor::Show, LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}

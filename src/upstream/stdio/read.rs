//! What a child says on its standard output.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::process::ChildStdout;
use tokio::sync::mpsc;

use super::Program;
use super::lines::{Line, Lines};
use super::log::{Rate, shown};
use super::waiting::{Admitted, Waiting};
use crate::gate::{Fault, Inbound};
use crate::message::{Malformed, Message};
use crate::upstream::{LOG, may_have_run};

/// How much of a bad line is shown in the log, in bytes.
const SHOWN: usize = 200;

/// Why reading came to an end.
pub(super) enum End {
    /// It closed its standard output.
    Eof,
    /// A line was too long to go on.
    TooLong,
    /// The gate does not listen any more.
    Unheard,
}

/// Reads messages and passes them on.
pub(super) struct Reader {
    program: Arc<Program>,
    waiting: Arc<Waiting>,
    inbound: mpsc::Sender<Inbound>,
    lines: Lines<ChildStdout>,
    complaints: Rate,
}

impl Reader {
    pub fn new(
        program: Arc<Program>,
        waiting: Arc<Waiting>,
        inbound: mpsc::Sender<Inbound>,
        stdout: ChildStdout,
    ) -> Self {
        let lines = Lines::new(stdout, program.max_line);
        Self { program, waiting, inbound, lines, complaints: Rate::new(Instant::now()) }
    }

    pub async fn run(mut self) -> End {
        loop {
            let line = match self.lines.next().await {
                Ok(Some(Line::Whole(line))) => line,
                Ok(Some(Line::Cut(_))) => return End::TooLong,
                Ok(None) | Err(_) => return End::Eof,
            };
            let Some(inbound) = self.read(line) else { continue };
            if self.inbound.send(inbound).await.is_err() {
                return End::Unheard;
            }
        }
    }

    /// What to tell the gate of a line. A line that is no message is skipped: many servers print a banner.
    fn read(&mut self, line: Vec<u8>) -> Option<Inbound> {
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let line = Bytes::from(line);
        let message = match Message::framed(line.clone()) {
            Ok(message) => message,
            Err(malformed) => return self.malformed(&line, &malformed),
        };
        self.program.set_up(true);
        match self.waiting.admit(&message) {
            Admitted::Message => Some(Inbound::Message { message, related: None }),
            Admitted::Stray => {
                let id = message.id().unwrap_or("null");
                self.complain(&line, &format_args!("an answer to nothing that waits, under the id {id}"));
                None
            }
        }
    }

    fn malformed(&mut self, line: &[u8], malformed: &Malformed) -> Option<Inbound> {
        self.complain(line, &format_args!("no message: {malformed}"));
        let id = answered_id(line).filter(|id| self.waiting.remove(*id).is_some())?;
        let upstream = &self.program.id;
        let what = format!("upstream `{upstream}` answered with something that is not JSON-RPC");
        Some(Inbound::Failed { id, error: may_have_run(Fault::Garbage, what) })
    }

    /// Logs a line that is skipped, unless there are too many of them.
    fn complain(&mut self, line: &[u8], what: &dyn std::fmt::Display) {
        let (write, lost) = self.complaints.next(Instant::now());
        if write {
            let upstream = self.program.id.as_str();
            let line = shown(line.get(..SHOWN).unwrap_or(line));
            tracing::warn!(target: LOG, upstream, fault = "upstream", %line, lost, "skipped a line that is {what}");
        }
    }
}

/// The request that a line answers which is JSON but no good message, so that it need not wait for nothing.
fn answered_id(line: &[u8]) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Answer {
        id: u64,
        method: Option<serde::de::IgnoredAny>,
    }
    let answer: Answer = serde_json::from_str(&String::from_utf8_lossy(line)).ok()?;
    answer.method.is_none().then_some(answer.id)
}

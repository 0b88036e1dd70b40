//! The life of one child, from its start to the end of its process group.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Instant;

use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::link::{StdioLink, ToWrite};
use super::read::{End, Reader};
use super::waiting::Waiting;
use super::{Program, log};
use crate::gate::{Fault, Inbound, UpstreamError};
use crate::upstream::process::{Group, command};
use crate::upstream::slots::Slot;
use crate::upstream::{LOG, lock, may_have_run, not_run};

/// Messages that may wait for a child that reads slowly.
const QUEUE: usize = 64;

/// Starts a child and everything that watches over it.
///
/// # Errors
/// The command cannot be started; says what to do.
pub(super) fn start(
    program: &Arc<Program>,
    slot: Slot,
    inbound: mpsc::Sender<Inbound>,
) -> Result<StdioLink, UpstreamError> {
    let mut child = spawn(program).inspect_err(|error| {
        program.set_up(false);
        tracing::warn!(target: LOG, upstream = program.id, fault = "upstream", "cannot be started: {error}");
    })?;
    let group = Group::of(&child);
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(not_run(Fault::Unreachable, "the child has no standard streams"));
    };

    let waiting = Arc::new(Waiting::default());
    let (writer, queue) = mpsc::channel(QUEUE);
    let (closing, asked) = watch::channel(false);
    let (ended, has_ended) = watch::channel(false);
    let logger = Arc::clone(program);
    let reader = Reader::new(Arc::clone(program), Arc::clone(&waiting), inbound.clone(), stdout);
    let life = Life {
        program: Arc::clone(program),
        child,
        group,
        started: Instant::now(),
        writing: tokio::spawn(write(stdin, queue)),
        reading: tokio::spawn(reader.run()),
        asked,
        slot,
        inbound,
    };
    tokio::spawn(async move { log::copy(&logger.id, stderr).await });
    tokio::spawn(async move {
        life.run().await;
        ended.send_replace(true);
    });
    Ok(StdioLink { upstream: program.id.clone(), writer, waiting, closing, ended: has_ended })
}

fn spawn(program: &Program) -> Result<Child, UpstreamError> {
    use std::process::Stdio;
    let id = &program.id;
    let unreachable = |what| not_run(Fault::Unreachable, what);
    let Some((name, arguments)) = program.command.split_first() else {
        return Err(unreachable(format!("upstream `{id}` has an empty command; name a program in `command`")));
    };
    if !program.cwd.is_dir() {
        let cwd = program.cwd.display();
        return Err(unreachable(format!(
            "upstream `{id}` is to run in {cwd}, which is no folder; create it or set `cwd`"
        )));
    }
    let mut command = command(name);
    command.args(arguments).current_dir(&program.cwd);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => unreachable(format!(
            "upstream `{id}` cannot be started: there is no program `{name}`; install it, or give its full \
             path in `command`"
        )),
        io::ErrorKind::PermissionDenied => {
            unreachable(format!("upstream `{id}` cannot be started: `{name}` may not be run; make it executable"))
        }
        _ => unreachable(format!("upstream `{id}` cannot be started: `{name}`: {error}")),
    })
}

/// Everything that ends with a child.
struct Life {
    program: Arc<Program>,
    child: Child,
    group: Group,
    started: Instant,
    writing: JoinHandle<()>,
    reading: JoinHandle<End>,
    asked: watch::Receiver<bool>,
    slot: Slot,
    inbound: mpsc::Sender<Inbound>,
}

/// What happened first.
enum Turn {
    Silent(End),
    Exited(io::Result<ExitStatus>),
    /// The link was closed, or the upstream is shut down.
    Asked,
}

impl Life {
    async fn run(mut self) {
        let turn = tokio::select! {
            end = &mut self.reading => Turn::Silent(end.unwrap_or(End::Eof)),
            status = self.child.wait() => Turn::Exited(status),
            // An error means that the link was dropped.
            _ = self.asked.wait_for(|asked| *asked) => Turn::Asked,
            () = self.slot.ending() => Turn::Asked,
        };
        let error = match turn {
            Turn::Silent(End::Eof) => Some(self.silent().await),
            Turn::Silent(End::TooLong) => Some(self.too_long()),
            Turn::Exited(status) => Some(self.exited(status).await),
            Turn::Silent(End::Unheard) | Turn::Asked => {
                self.end_gently().await;
                None
            }
        };
        self.writing.abort();
        self.reading.abort();
        self.group.signal(Signal::KILL);
        let _status = self.child.wait().await;
        let lived = self.started.elapsed();
        let Some(error) = error else {
            lock(&self.program.backoff).closed(lived);
            return;
        };
        self.program.set_up(false);
        lock(&self.program.backoff).died(lived, Instant::now());
        let (upstream, lived_ms) = (self.program.id.as_str(), lived.as_millis());
        tracing::warn!(target: LOG, upstream, fault = "upstream", lived_ms, "{error}");
        // Nobody to tell is no error.
        let _unheard = self.inbound.send(Inbound::Closed(error)).await;
    }

    /// It exited: passes on what it wrote before.
    async fn exited(&mut self, status: io::Result<ExitStatus>) -> UpstreamError {
        if timeout(self.program.grace, &mut self.reading).await.is_err() {
            // A process it left behind keeps its standard output open, or the gate is slow; what was written stays.
            self.group.signal(Signal::KILL);
            let _end = (&mut self.reading).await;
        }
        self.died(status)
    }

    /// It closed its standard output: it should exit soon.
    async fn silent(&mut self) -> UpstreamError {
        let status = match timeout(self.program.grace, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => {
                self.group.signal(Signal::KILL);
                self.child.wait().await
            }
        };
        self.died(status)
    }

    fn too_long(&self) -> UpstreamError {
        let (id, max) = (&self.program.id, self.program.max_line);
        may_have_run(Fault::Garbage, format!("upstream `{id}` wrote a line of more than {max} bytes and was ended"))
    }

    /// Closes its standard input, waits, sends SIGTERM, waits, sends SIGKILL.
    async fn end_gently(&mut self) {
        self.writing.abort();
        for last_word in [Signal::TERM, Signal::KILL] {
            if timeout(self.program.grace, self.child.wait()).await.is_ok() {
                return;
            }
            self.group.signal(last_word);
        }
    }

    fn died(&self, status: io::Result<ExitStatus>) -> UpstreamError {
        let id = &self.program.id;
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        may_have_run(
            Fault::Died,
            format!("upstream `{id}` ended by itself ({how}); the gateway's log has what it said"),
        )
    }
}

/// Writes whole lines, one at a time; dropping it closes the child's standard input.
async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<ToWrite>) {
    while let Some(ToWrite { line, written }) = queue.recv().await {
        if written.is_closed() {
            continue;
        }
        let outcome = stdin.write_all(&line).await;
        let broken = outcome.is_err();
        // Nobody waiting for the answer is no error.
        let _unheard = written.send(outcome);
        if broken {
            return;
        }
    }
}

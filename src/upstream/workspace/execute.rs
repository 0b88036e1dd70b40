//! `execute_cmd`: a command of the shell.
//!
//! No sandbox: a command can reach whatever the gateway's user can reach, `secrets` folders too, and a process that it
//! moves to a session of its own (`setsid`) outlives it. What keeps it in bounds is the policy alone.

use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::files::{parse, schema};
use super::root::Root;
use super::tool::{Definition, Output, Run, Stop, Tool, ToolExecution};
use crate::upstream::process::{Group, command};

/// How much of a command's output is kept, in bytes.
const MAX_OUTPUT: usize = 100 << 10;
/// How long it may run where the call does not say, in seconds.
const DEFAULT_SECONDS: u64 = 120;
/// How long is waited for the rest of the output once the command's processes are killed.
const REST: Duration = Duration::from_secs(1);
/// All that a command sees of the gateway's environment, which may hold credentials.
const ENVIRONMENT: [&str; 10] =
    ["PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"];

pub(super) struct ExecuteCmd;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    #[serde(default)]
    cwd: String,
    #[serde(default = "default_seconds")]
    timeout_seconds: u64,
}

fn default_seconds() -> u64 {
    DEFAULT_SECONDS
}

impl Tool for ExecuteCmd {
    fn definition(&self) -> Definition {
        Definition {
            name: "execute_cmd",
            description: "Runs a command with `sh -c` in the workspace and gives its output (at most 100 KB) and exit \
                          code. Its input is empty. All its processes end with it.",
            input_schema: schema(
                json!({
                    "command": { "type": "string", "minLength": 1 },
                    "cwd": { "type": "string", "description": "Where it runs; the workspace itself if left out" },
                    "timeout_seconds":
                        { "type": "integer", "minimum": 1, "maximum": 600, "default": DEFAULT_SECONDS },
                }),
                &["command"],
            ),
            read_only: false,
        }
    }

    fn start(&self, root: &Arc<Root>, arguments: Value) -> Arc<dyn ToolExecution> {
        let root = Arc::clone(root);
        Arc::new(Run::of(|stop| async move { execute(&root, arguments, stop).await.unwrap_or_else(failed) }))
    }
}

fn failed(text: String) -> Output {
    Output { text, failed: true }
}

/// Why a command is not running any more.
enum End {
    Exited(std::io::Result<ExitStatus>),
    TimedOut,
    Stopped,
}

async fn execute(root: &Root, arguments: Value, mut stop: Stop) -> Result<Output, String> {
    let Arguments { command: text, cwd, timeout_seconds } = parse(arguments)?;
    if !(1..=600).contains(&timeout_seconds) {
        return Err("`timeout_seconds` must be between 1 and 600".into());
    }
    if text.contains('\0') {
        return Err("`command` holds a NUL character".into());
    }
    let folder = root.folder(&root.place(&cwd)?)?;
    let broken = |error: std::io::Error| format!("the command cannot be started: {error}");
    let (pipe, writer) = std::io::pipe().map_err(broken)?;
    let mut output = Collected::new(pipe.into()).map_err(broken)?;
    let mut shell = shell(&text, &folder);
    shell.stdout(writer.try_clone().map_err(broken)?).stderr(writer);
    let mut child = shell.spawn().map_err(broken)?;
    let group = Group::of(&child);
    // The pipe's writing ends are the command's alone now.
    drop(shell);

    let deadline = sleep(Duration::from_secs(timeout_seconds));
    tokio::pin!(deadline);
    let end = loop {
        tokio::select! {
            () = output.read(), if !output.ended => {}
            status = child.wait() => break End::Exited(status),
            () = &mut deadline => break End::TimedOut,
            () = stop.requested() => break End::Stopped,
        }
    };
    drop(group);
    let _killed = child.wait().await;
    // A process that left the group may hold the pipe for longer.
    let _open = timeout(REST, output.read_to_end()).await;
    let (end, failed) = match end {
        End::Exited(status) => (ended(status), false),
        End::TimedOut => (format!("killed after {timeout_seconds} s (timeout_seconds)"), true),
        End::Stopped => ("stopped".to_owned(), true),
    };
    Ok(Output { text: format!("{}[{end}]\n", output.text()), failed })
}

fn shell(text: &str, folder: &OwnedFd) -> Command {
    let mut shell = command("sh");
    shell.arg("-c").arg(text).current_dir(path_of(folder)).env_clear();
    shell.envs(ENVIRONMENT.iter().filter_map(|name| std::env::var_os(name).map(|value| (name, value))));
    shell
}

/// A path that leads to the open folder itself, whatever was put in its place since.
fn path_of(folder: &OwnedFd) -> String {
    let root = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    format!("{root}/{}", folder.as_raw_fd())
}

fn ended(status: std::io::Result<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status.map(|status| (status.code(), status.signal())) {
        Ok((Some(code), _)) => format!("exit code {code}"),
        Ok((None, Some(signal))) => format!("ended by signal {signal}"),
        Ok((None, None)) => "ended".to_owned(),
        Err(error) => format!("its end is not known: {error}"),
    }
}

/// What a command wrote, on both streams in the order it came.
struct Collected {
    from: Receiver,
    kept: Vec<u8>,
    total: u64,
    ended: bool,
}

impl Collected {
    fn new(pipe: OwnedFd) -> std::io::Result<Self> {
        Ok(Self { from: Receiver::from_owned_fd(pipe)?, kept: Vec::new(), total: 0, ended: false })
    }

    /// Reads what is there next.
    async fn read(&mut self) {
        let mut chunk = [0; 8 << 10];
        let read = self.from.read(&mut chunk).await.unwrap_or(0);
        let room = MAX_OUTPUT - self.kept.len();
        self.kept.extend_from_slice(chunk.get(..read.min(room)).unwrap_or_default());
        self.total += read as u64;
        self.ended = read == 0;
    }

    async fn read_to_end(&mut self) {
        while !self.ended {
            self.read().await;
        }
    }

    fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.kept).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if self.total > self.kept.len() as u64 {
            text.push_str(&format!("[output cut: {} of {} bytes]\n", self.kept.len(), self.total));
        }
        text
    }
}

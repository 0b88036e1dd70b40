//! One file per command.

pub mod agents;
pub mod approvals;
pub mod audit;
pub mod calls;
pub mod clarifications;
pub mod client;
pub mod demo;
pub mod exit;
pub mod grants;
pub mod init;
pub mod policy;
pub mod say;
pub mod serve;
pub mod stdio;
pub mod token;
pub mod tools;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use serde::Serialize;

use crate::config::{self, Config, PolicyConfig};
use crate::record::word;
use crate::serve::StartError;
use exit::Exit;

/// An approval gateway between an agent and its tools: every call is judged by YAML policy, and what policy asks about
/// waits for a human.
///
/// Exit codes: 0 done, 1 the check or the operation failed, 2 usage, 3 configuration or policy invalid.
#[derive(Parser, Debug)]
#[command(name = "portcullis", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Serve(serve::Serve),
    Demo(demo::Demo),
    Init(init::Init),
    Stdio(stdio::Stdio),
    Wrap(stdio::Wrap),
    /// Check a policy, explain what it says of a call, or replay recorded calls with it
    #[command(subcommand)]
    Policy(policy::Policy),
    /// See and decide held calls
    #[command(subcommand)]
    Approvals(approvals::Approvals),
    /// See and stop calls
    #[command(subcommand)]
    Calls(calls::Calls),
    /// See and answer questions of agents
    #[command(subcommand)]
    Clarifications(clarifications::Clarifications),
    /// See what was approved to be remembered, and end it
    #[command(subcommand)]
    Grants(grants::Grants),
    /// See agents, pause and resume them
    #[command(subcommand)]
    Agents(agents::Agents),
    /// Look at the tools of upstreams, and accept them
    #[command(subcommand)]
    Tools(tools::Tools),
    /// Check the audit log
    #[command(subcommand)]
    Audit(audit::Audit),
    /// Make credentials
    #[command(subcommand)]
    Token(token::Token),
}

/// Reads the command line and runs the command.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output and are no fault.
            let exit = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            let _ = error.print();
            return exit.into();
        }
    };
    say::start();
    let quiet = matches!(cli.command, Command::Demo(_));
    start_logging(quiet);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            say::tell(format_args!("the runtime could not be started: {error}"));
            say::flush();
            return Exit::Failed.into();
        }
    };
    let exit = runtime.block_on(run(cli.command));
    runtime.shutdown_background();
    say::flush();
    exit.into()
}

async fn run(command: Command) -> Exit {
    match command {
        Command::Serve(serve) => serve.run().await,
        Command::Demo(demo) => demo.run().await,
        Command::Init(init) => init.run(),
        Command::Stdio(stdio) => stdio.run().await,
        Command::Wrap(wrap) => wrap.run().await,
        Command::Policy(policy) => policy.run(),
        Command::Approvals(approvals) => approvals.run().await,
        Command::Calls(calls) => calls.run().await,
        Command::Clarifications(clarifications) => clarifications.run().await,
        Command::Grants(grants) => grants.run().await,
        Command::Agents(agents) => agents.run().await,
        Command::Tools(tools) => tools.run().await,
        Command::Audit(audit) => audit.run(),
        Command::Token(token) => token.run(),
    }
}

/// Logs go to standard error: standard output is data, or the protocol.
fn start_logging(quiet: bool) {
    use tracing_subscriber::EnvFilter;
    let default = if quiet { "error" } else { "info" };
    let filter = EnvFilter::try_from_env("PORTCULLIS_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    // Colours are for people; a file or a collector gets plain text.
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    // Without internal errors: the subscriber tells them with a macro that panics where standard error is gone.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(colours)
        .with_writer(say::log)
        .log_internal_errors(false)
        .init();
}

/// A configuration without a file: the base policy, and state in the usual place.
pub fn bare_config() -> Result<Config, StartError> {
    let Some(state_dir) = config::default_state_dir(&|name| std::env::var(name).ok()) else {
        return Err(StartError::Failed(
            "neither HOME nor XDG_STATE_HOME says where state is kept; use --config".to_owned(),
        ));
    };
    with_base_policy(state_dir.clone())
        .map_err(|error| StartError::Failed(format!("state folder {}: {error}", state_dir.display())))
}

/// A configuration whose policy is the built-in base, written to the state folder, where the gateway guards it.
pub fn with_base_policy(state_dir: PathBuf) -> std::io::Result<Config> {
    let folder = state_dir.join("policy");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("base.yaml"), init::BASE_POLICY)?;
    let files = vec![folder.join("base.yaml").display().to_string()];
    Ok(Config::minimal(state_dir, PolicyConfig { files, ..PolicyConfig::default() }, Vec::new()))
}

/// Takes one of the words by which a plain enum goes in JSON; `--help` and errors name them.
pub fn words<T: Serialize, const N: usize>(all: [T; N]) -> PossibleValuesParser {
    PossibleValuesParser::new(all.map(word))
}

/// Reads `50s`, `15m`, `8h`, `2d`, `300ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wanted = "a duration is a number and a unit, such as 2s, 15m or 8h";
    let read: jiff::SignedDuration = text.parse().map_err(|_| wanted.to_owned())?;
    Duration::try_from(read).map_err(|_| wanted.to_owned())
}

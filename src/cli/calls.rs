//! `portcullis calls`: what agents called, and stopping it.

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::json;

use super::approvals::{Page, PageArgs, text};
use super::client::{Connect, Failure, Format, print, read};
use super::exit::Exit;
use super::words;
use crate::clock::Clock;
use crate::record::{CallRecord, CallState};

/// See and stop calls.
#[derive(Subcommand, Debug)]
pub enum Calls {
    /// List recent calls, newest first
    List(List),
    /// Show one call with all that is known of it
    Show(One),
    /// Withdraw a waiting call, stop a running one; or all of a session or an agent
    Cancel(Cancel),
}

/// What to stop.
#[derive(Args, Debug)]
#[group(id = "what", required = true, multiple = false)]
pub struct Cancel {
    /// The call's id
    id: Option<String>,
    /// Everything of this session, as `calls show` names it
    #[arg(long)]
    session: Option<String>,
    /// Everything of this agent
    #[arg(long)]
    agent: Option<String>,
    #[command(flatten)]
    connect: Connect,
}

/// How many calls were stopped.
#[derive(Deserialize)]
struct Stops {
    withdrawn: u64,
    stopped: u64,
}

/// Which calls to list.
#[derive(Args, Debug)]
pub struct List {
    /// Only calls in this state
    #[arg(long, value_parser = words(CallState::ALL))]
    state: Option<String>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connect: Connect,
}

/// Which call.
#[derive(Args, Debug)]
pub struct One {
    /// The call's id
    id: String,
    #[command(flatten)]
    connect: Connect,
}

impl Calls {
    /// Runs the command.
    pub async fn run(self) -> Exit {
        let done = match self {
            Self::List(list) => list.run().await,
            Self::Show(one) => one.show().await,
            Self::Cancel(cancel) => cancel.run().await,
        };
        done.map_or_else(|failure| failure.report(), |()| Exit::Done)
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let mut query = self.page.query();
        query.extend(self.state.as_deref().map(|state| ("state", state)));
        let json = self.connect.client()?.get("calls", &query).await?;
        if self.connect.format == Format::Json {
            return print(&json);
        }
        let page: Page<CallRecord> = read(&json)?;
        print(&text::calls(&page.items, page.next.as_deref(), Clock::system().now()))
    }
}

impl One {
    async fn show(self) -> Result<(), Failure> {
        let json = self.connect.client()?.get(&format!("calls/{}", self.id), &[]).await?;
        self.print(&json, text::call)
    }

    fn print(&self, json: &str, human: impl Fn(&CallRecord) -> String) -> Result<(), Failure> {
        if self.connect.format == Format::Json { print(json) } else { print(&human(&read(json)?)) }
    }
}

impl Cancel {
    async fn run(self) -> Result<(), Failure> {
        let path = match (&self.id, &self.session, &self.agent) {
            (Some(id), _, _) => {
                let one = One { id: id.clone(), connect: self.connect };
                let json = one.connect.client()?.post(&format!("calls/{id}/cancel"), &json!({})).await?;
                return one.print(&json, text::call_line);
            }
            (_, Some(session), _) => format!("sessions/{session}/cancel"),
            (_, _, Some(agent)) => format!("agents/{agent}/cancel"),
            // Refused by the command line itself.
            (None, None, None) => return Ok(()),
        };
        let json = self.connect.client()?.post(&path, &json!({})).await?;
        if self.connect.format == Format::Json {
            return print(&json);
        }
        let Stops { withdrawn, stopped } = read(&json)?;
        print(&format!("{withdrawn} waiting withdrawn, {stopped} running asked to stop"))
    }
}

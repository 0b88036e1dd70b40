//! `portcullis calls`: what agents called, and stopping it.

use clap::{Args, Subcommand};
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
    /// Withdraw a waiting call, stop a running one
    Cancel(One),
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
            Self::Cancel(one) => one.cancel().await,
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

    async fn cancel(self) -> Result<(), Failure> {
        let json = self.connect.client()?.post(&format!("calls/{}/cancel", self.id), &json!({})).await?;
        self.print(&json, text::call_line)
    }

    fn print(&self, json: &str, human: impl Fn(&CallRecord) -> String) -> Result<(), Failure> {
        if self.connect.format == Format::Json { print(json) } else { print(&human(&read(json)?)) }
    }
}

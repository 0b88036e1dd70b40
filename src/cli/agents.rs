//! `portcullis agents`: who calls, and the switch that stops them.

use clap::{Args, Subcommand};
use serde_json::json;

use super::approvals::Page;
use super::approvals::text::span;
use super::client::{Connect, Failure, Format, print, read};
use super::exit::Exit;
use crate::clock::{Clock, Timestamp};
use crate::pattern::visible;
use crate::record::AgentRecord;

/// See, pause and resume agents.
#[derive(Subcommand, Debug)]
pub enum Agents {
    /// List the agents with what of theirs waits and runs
    List(List),
    /// Refuse every call of an agent from now on, and withdraw what waits of it
    ///
    /// What runs already goes on: `portcullis calls cancel --agent NAME` stops that too.
    Pause(Pause),
    /// Let a paused agent call again
    Resume(One),
}

/// How to reach the gateway.
#[derive(Args, Debug)]
pub struct List {
    #[command(flatten)]
    connect: Connect,
}

/// Which agent.
#[derive(Args, Debug)]
pub struct One {
    /// The agent's name
    name: String,
    #[command(flatten)]
    connect: Connect,
}

/// Which agent, and why.
#[derive(Args, Debug)]
pub struct Pause {
    #[command(flatten)]
    one: One,
    /// Why; the agent is told so with each refusal
    #[arg(long)]
    reason: Option<String>,
}

impl Agents {
    /// Runs the command.
    pub async fn run(self) -> Exit {
        let done = match self {
            Self::List(list) => list.run().await,
            Self::Pause(pause) => pause.one.order("pause", json!({"reason": pause.reason})).await,
            Self::Resume(one) => one.order("resume", json!({})).await,
        };
        done.map_or_else(|failure| failure.report(), |()| Exit::Done)
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let json = self.connect.client()?.get("agents", &[]).await?;
        if self.connect.format == Format::Json {
            return print(&json);
        }
        let page: Page<AgentRecord> = read(&json)?;
        let now = Clock::system().now();
        print(&page.items.iter().map(|agent| line(agent, now)).collect::<Vec<_>>().join("\n"))
    }
}

impl One {
    async fn order(self, word: &str, body: serde_json::Value) -> Result<(), Failure> {
        let json = self.connect.client()?.post(&format!("agents/{}/{word}", self.name), &body).await?;
        if self.connect.format == Format::Json {
            return print(&json);
        }
        let agent: AgentRecord = read(&json)?;
        let mut said = line(&agent, Clock::system().now());
        if agent.paused.is_some() && agent.running > 0 {
            said.push_str(&format!(
                "\n{} of its calls still run; `portcullis calls cancel --agent {}` stops them",
                agent.running,
                visible(&agent.name)
            ));
        }
        print(&said)
    }
}

fn line(agent: &AgentRecord, now: Timestamp) -> String {
    let paused = agent.paused.as_ref().map_or_else(String::new, |pause| {
        let reason = pause.reason.as_ref().map(|reason| format!(": {}", visible(reason))).unwrap_or_default();
        format!(", paused {} by {}{reason}", ago(pause.at, now), visible(&pause.by))
    });
    let last = agent.last_call.map_or_else(|| "never called".to_owned(), |at| format!("called {}", ago(at, now)));
    format!(
        "{} (group {}): {} waiting, {} running, {last}{paused}",
        visible(&agent.name),
        visible(&agent.group),
        agent.waiting,
        agent.running
    )
}

fn ago(at: Timestamp, now: Timestamp) -> String {
    format!("{} ago", span(now.since(at).as_secs()))
}

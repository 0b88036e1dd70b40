//! `portcullis clarifications`: questions of agents, and answering them.

use clap::{Args, Subcommand};
use serde_json::json;

use super::approvals::Page;
use super::approvals::text::{left, span};
use super::client::{Connect, Failure, Format, print, read};
use super::exit::Exit;
use crate::clock::{Clock, Timestamp};
use crate::pattern::visible;
use crate::record::{ClarificationRecord, ClarificationState, word};

/// See and answer questions.
#[derive(Subcommand, Debug)]
pub enum Clarifications {
    /// List the questions of agents, newest first
    List(List),
    /// Answer a question; what you write is text for the agent and permits nothing
    Answer(Answer),
}

/// Which questions to list.
#[derive(Args, Debug)]
pub struct List {
    /// Those that were answered or ended, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    connect: Connect,
}

/// What to answer.
#[derive(Args, Debug)]
pub struct Answer {
    /// The question's id
    id: String,
    /// What the agent is told
    text: String,
    /// Send it although it looks like a secret
    #[arg(long)]
    anyway: bool,
    #[command(flatten)]
    connect: Connect,
}

impl Clarifications {
    /// Runs the command.
    pub async fn run(self) -> Exit {
        let done = match self {
            Self::List(list) => list.run().await,
            Self::Answer(answer) => answer.run().await,
        };
        done.map_or_else(|failure| failure.report(), |()| Exit::Done)
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let only = [("state", "waiting")];
        let query: &[(&str, &str)] = if self.all { &[] } else { &only };
        let json = self.connect.client()?.get("clarifications", query).await?;
        if self.connect.format == Format::Json {
            return print(&json);
        }
        let page: Page<ClarificationRecord> = read(&json)?;
        let now = Clock::system().now();
        let lines: Vec<String> = page.items.iter().map(|one| shown(one, now)).collect();
        print(&if lines.is_empty() { "no questions".to_owned() } else { lines.join("\n") })
    }
}

impl Answer {
    async fn run(self) -> Result<(), Failure> {
        let body = json!({ "answer": self.text, "anyway": self.anyway });
        let json = self.connect.client()?.post(&format!("clarifications/{}/answer", self.id), &body).await?;
        if self.connect.format == Format::Json {
            return print(&json);
        }
        print(&shown(&read(&json)?, Clock::system().now()))
    }
}

fn shown(one: &ClarificationRecord, now: Timestamp) -> String {
    let standing = match one.state {
        ClarificationState::Waiting => format!("{} left", left(one.expires_at, now)),
        ClarificationState::Answered => {
            format!("answered by {}", visible(one.answered_by.as_deref().unwrap_or_default()))
        }
        ClarificationState::Expired | ClarificationState::Withdrawn => word(one.state),
    };
    let asked = span(now.since(one.asked_at).as_secs());
    let mut lines = vec![format!("{}  {standing}  the agent {} asks ({asked} ago):", one.id, visible(&one.agent))];
    lines.extend(one.question.lines().map(|line| format!("  | {}", visible(line))));
    lines.extend(one.choices.iter().map(|choice| format!("  - {}", visible(choice))));
    let answer = one.answer.iter().flat_map(|answer| answer.lines());
    lines.extend(answer.map(|line| format!("  > {}", visible(line))));
    lines.join("\n")
}

//! `portcullis grants`: what was approved to be remembered, and ending it.

use clap::{Args, Subcommand};

use super::approvals::Page;
use super::approvals::text::{left, span};
use super::client::{Connect, Failure, Format, print, read};
use super::exit::Exit;
use crate::clock::{Clock, Timestamp};
use crate::pattern::visible;
use crate::record::{GrantBound, GrantRecord, GrantState, word};

/// See and end grants.
#[derive(Subcommand, Debug)]
pub enum Grants {
    /// List the grants of the last week, newest first
    List(List),
    /// End a grant: no call uses it from now on
    Revoke(One),
}

/// Which grants to list.
#[derive(Args, Debug)]
pub struct List {
    /// Only those that still let calls pass
    #[arg(long)]
    active: bool,
    #[command(flatten)]
    connect: Connect,
}

/// Which grant.
#[derive(Args, Debug)]
pub struct One {
    /// The grant's id
    id: String,
    #[command(flatten)]
    connect: Connect,
}

impl Grants {
    /// Runs the command.
    pub async fn run(self) -> Exit {
        let done = match self {
            Self::List(list) => list.run().await,
            Self::Revoke(one) => one.revoke().await,
        };
        done.map_or_else(|failure| failure.report(), |()| Exit::Done)
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let json = self.connect.client()?.get("grants", &[]).await?;
        if self.connect.format == Format::Json {
            return print(&json);
        }
        let page: Page<GrantRecord> = read(&json)?;
        let now = Clock::system().now();
        let lines: Vec<String> = page
            .items
            .iter()
            .filter(|grant| !self.active || grant.state == GrantState::Active)
            .map(|grant| line(grant, now))
            .collect();
        print(&if lines.is_empty() { "no grants".to_owned() } else { lines.join("\n") })
    }
}

impl One {
    async fn revoke(self) -> Result<(), Failure> {
        let json = self.connect.client()?.delete(&format!("grants/{}", self.id)).await?;
        if self.connect.format == Format::Json {
            return print(&json);
        }
        print(&line(&read(&json)?, Clock::system().now()))
    }
}

fn line(grant: &GrantRecord, now: Timestamp) -> String {
    let standing = match grant.state {
        GrantState::Active => format!("{} left, {} uses left", left(grant.expires_at, now), grant.uses_left),
        GrantState::Revoked | GrantState::Ended => {
            let by = grant.ended_by.as_deref().map(visible).unwrap_or_default();
            format!("{}: {by}", word(grant.state))
        }
        GrantState::Expired | GrantState::UsedUp => word(grant.state).replace('_', " "),
    };
    let within = match grant.bound {
        GrantBound::Session => " in one session",
        GrantBound::Agent => "",
    };
    format!(
        "{}  {standing}  {}{within}  (used {} times; by {}, {} ago; lifts {})",
        grant.id,
        visible(&grant.sentence),
        grant.used,
        visible(&grant.by.join(", ")),
        span(now.since(grant.created_at).as_secs()),
        visible(&grant.rule)
    )
}

//! `portcullis approvals`: what waits for a decision, and deciding it.

mod live;
pub mod text;
mod watch;

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::client::{Client, Connect, Failure, Format, print, read};
use super::exit::Exit;
use super::tools;
use super::words;
use crate::clock::Clock;
use crate::record::{ApprovalRecord, ApprovalState, ApprovalView, FileDiff};

/// See and decide held calls.
#[derive(Subcommand, Debug)]
pub enum Approvals {
    /// List held calls, newest first
    List(List),
    /// Show one held call with all that is known of it
    Show(One),
    /// Show a held call and approve exactly what was shown
    Approve(Approve),
    /// Refuse a held call; the agent is told the note
    Reject(Reject),
    /// At a terminal a live list, with keys to open, claim, approve, remember and reject; elsewhere a line for everything that happens
    Watch(Watch),
}

/// Which approvals to list.
#[derive(Args, Debug)]
pub struct List {
    /// Only approvals in this state
    #[arg(long, default_value = "waiting", value_parser = words(ApprovalState::ALL))]
    state: String,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    connect: Connect,
}

/// Which part of a list to print.
#[derive(Args, Debug)]
pub struct PageArgs {
    /// Only of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Only of this upstream
    #[arg(long)]
    upstream: Option<String>,
    /// Only received at or after this time (RFC 3339)
    #[arg(long)]
    since: Option<String>,
    /// At most so many
    #[arg(long, default_value = "50")]
    limit: String,
    /// Where the last page ended
    #[arg(long)]
    cursor: Option<String>,
}

impl PageArgs {
    /// As the API's query.
    pub fn query(&self) -> Vec<(&str, &str)> {
        let mut query = vec![("limit", self.limit.as_str())];
        let optional =
            [("agent", &self.agent), ("upstream", &self.upstream), ("since", &self.since), ("cursor", &self.cursor)];
        query.extend(optional.into_iter().filter_map(|(name, value)| value.as_deref().map(|value| (name, value))));
        query
    }
}

/// One page of one of the API's lists.
#[derive(Deserialize)]
pub struct Page<T> {
    /// Newest first.
    pub items: Vec<T>,
    /// The next page's cursor.
    pub next: Option<String>,
}

/// Which approval to show.
#[derive(Args, Debug)]
pub struct One {
    /// The approval's id
    id: String,
    #[command(flatten)]
    connect: Connect,
}

/// What to approve.
#[derive(Args, Debug)]
pub struct Approve {
    /// The approval's id
    id: String,
    /// Kept in the record
    #[arg(long)]
    note: Option<String>,
    /// Approve only if the call's digest is this one
    #[arg(long)]
    digest: Option<String>,
    /// Approve what is shown without asking first; on a terminal it asks
    #[arg(long)]
    yes: bool,
    /// Let calls like it pass for a while: one of what `approvals show` offers
    #[arg(long, value_name = "exact|path=FOLDER/|command=WORDS|tool")]
    remember: Option<String>,
    /// How long that lasts, such as 5m; as long as it may if left out
    #[arg(long, value_parser = crate::cli::duration, requires = "remember")]
    ttl: Option<Duration>,
    /// How many calls it lets pass
    #[arg(long, requires = "remember")]
    uses: Option<u32>,
    /// Whose calls; those of the session where there is one, if left out
    #[arg(long, requires = "remember", value_parser = ["session", "agent"])]
    bound: Option<String>,
    /// Put these arguments (a JSON object) in the place of the agent's; the agent is told
    #[arg(long, value_name = "JSON", conflicts_with = "remember")]
    arguments: Option<String>,
    #[command(flatten)]
    connect: Connect,
}

/// What to refuse, and why.
#[derive(Args, Debug)]
pub struct Reject {
    /// The approval's id
    id: String,
    /// Why; the agent is told
    #[arg(long)]
    note: Option<String>,
    #[command(flatten)]
    connect: Connect,
}

/// What to watch.
#[derive(Args, Debug)]
pub struct Watch {
    #[command(flatten)]
    connect: Connect,
}

impl Approvals {
    /// Runs the command.
    pub async fn run(self) -> Exit {
        let done = match self {
            Self::List(list) => list.run().await,
            Self::Show(one) => one.run().await,
            Self::Approve(approve) => approve.run().await,
            Self::Reject(reject) => reject.run().await,
            Self::Watch(watch) if live::is_wanted(&watch.connect) => live::run(&watch.connect).await,
            Self::Watch(watch) => watch::run(&watch.connect).await,
        };
        done.map_or_else(|failure| failure.report(), |()| Exit::Done)
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let mut query = self.page.query();
        query.push(("state", &self.state));
        let json = self.connect.client()?.get("approvals", &query).await?;
        if self.connect.format == Format::Json {
            return print(&json);
        }
        let page: Page<ApprovalRecord> = read(&json)?;
        print(&text::approvals(&page.items, page.next.as_deref(), Clock::system().now()))
    }
}

impl One {
    async fn run(self) -> Result<(), Failure> {
        let client = self.connect.client()?;
        let json = fetch(&client, &self.id).await?;
        if self.connect.format == Format::Json {
            return print(&json);
        }
        show(&client, &read(&json)?).await
    }
}

impl Approve {
    /// What is sent is the digest of what was printed, so that nobody approves what they were not shown.
    async fn run(self) -> Result<(), Failure> {
        let client = self.connect.client()?;
        let shown: ApprovalView = read(&fetch(&client, &self.id).await?)?;
        let human = self.connect.format == Format::Human;
        if human {
            show(&client, &shown).await?;
        }
        let digest = shown.approval.call.digest.unwrap_or_default();
        if self.digest.is_some_and(|expected| expected != digest) {
            return Err(Failure::Other(format!("not approved: the call's digest is {digest}, look at it again")));
        }
        if human && !self.yes && !confirmed()? {
            return Err(Failure::Other("not approved: the call still waits".into()));
        }
        let remember =
            self.remember.as_deref().map(|text| remembered(text, self.ttl, self.uses, self.bound.as_deref()));
        let arguments = self.arguments.as_deref().map(serde_json::from_str).transpose();
        let arguments = arguments.map_err(|error| Failure::Other(format!("--arguments is no JSON: {error}")))?;
        let body = Approval { digest, note: self.note, remember: remember.transpose()?, arguments };
        let answer = client.post(&format!("approvals/{}/approve", self.id), &body).await?;
        if human && body.arguments.is_some() {
            let view: ApprovalView = read(&answer)?;
            if view.approval.state == ApprovalState::Waiting {
                show(&client, &view).await?;
                return print("\nchanged, not approved: look at what it is now, and approve that");
            }
        }
        if human { print(&text::decided(&read(&answer)?)) } else { print(&answer) }
    }
}

/// What is sent to approve.
#[derive(Serialize)]
struct Approval<'a> {
    digest: String,
    note: Option<String>,
    remember: Option<serde_json::Value>,
    /// As they were typed: a number may have more digits than a double holds.
    arguments: Option<&'a RawValue>,
}

/// `path=docs/` as the API takes it.
fn remembered(
    text: &str,
    ttl: Option<Duration>,
    uses: Option<u32>,
    bound: Option<&str>,
) -> Result<serde_json::Value, Failure> {
    let (scope, what) = text.split_once('=').map_or((text, None), |(scope, what)| (scope, Some(what)));
    let (path, command) = match (scope, what) {
        ("exact" | "tool", None) => (None, None),
        ("path", Some(path)) => (Some(path), None),
        ("command", Some(command)) => (None, Some(command)),
        _ => {
            let what =
                "--remember is exact, path=FOLDER/, command=WORDS or tool; `approvals show` says which this call has";
            return Err(Failure::Other(what.to_owned()));
        }
    };
    let ttl_ms = ttl.map(|ttl| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
    Ok(json!({"scope": scope, "path": path, "command": command, "ttl_ms": ttl_ms, "uses": uses, "bound": bound}))
}

impl Reject {
    async fn run(self) -> Result<(), Failure> {
        let path = format!("approvals/{}/reject", self.id);
        let answer = self.connect.client()?.post(&path, &json!({"note": self.note})).await?;
        if self.connect.format == Format::Json {
            return print(&answer);
        }
        print(&text::decided(&read(&answer)?))
    }
}

/// Whether the person at the terminal says yes to what was just printed; a program has no terminal, and has said so already.
fn confirmed() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(true);
    }
    print("\nApprove? [y/N]")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Prints a held call, and its tool where that is what is new.
async fn show(client: &Client, view: &ApprovalView) -> Result<(), Failure> {
    print(&card(client, view).await?)
}

/// All that is to be seen of a held call before it is decided.
async fn card(client: &Client, view: &ApprovalView) -> Result<String, Failure> {
    let mut parts = vec![text::approval(view, Clock::system().now())];
    if view.approval.state == ApprovalState::Waiting {
        let diff: Diff = read(&client.get(&format!("approvals/{}/diff", view.approval.id), &[]).await?)?;
        parts.extend(diff.files.iter().map(text::diff));
    }
    if let Some(tool) = tools::of_held(client, &view.approval).await? {
        parts.push(format!("\nwaits because of the tool itself:\n{tool}"));
    }
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end_matches('\n')).collect();
    Ok(parts.join("\n"))
}

/// What a call would change in files.
#[derive(Deserialize)]
struct Diff {
    files: Vec<FileDiff>,
}

async fn fetch(client: &Client, id: &str) -> Result<String, Failure> {
    client.get(&format!("approvals/{id}"), &[]).await
}

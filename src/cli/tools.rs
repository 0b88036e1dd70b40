//! `portcullis tools`: what upstreams offer, and accepting it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::{Value, json};

use super::approvals::Page;
use super::client::{Client, Connect, Failure, Format, print, read};
use super::exit::Exit;
use super::say;
use crate::pattern::visible;
use crate::record::{ApprovalRecord, ToolDetail, ToolRecord, ToolState, ToolVerdict};

/// See the tools of upstreams, and accept them as they are defined.
#[derive(Subcommand, Debug)]
pub enum Tools {
    /// List every tool that was ever offered, with what each group's policy says of it
    List(List),
    /// Show one tool with its definition, and what changed in it since it was accepted
    Show(Show),
    /// Accept tools as they are defined now; until then their calls are held or refused
    Accept(Accept),
}

/// Which tools to list.
#[derive(Args, Debug)]
pub struct List {
    /// Only of this upstream
    #[arg(long)]
    upstream: Option<String>,
    /// Only the verdicts of this group
    #[arg(long)]
    group: Option<String>,
    /// Only what is new or changed, with the difference
    #[arg(long)]
    changed: bool,
    /// Ask the upstreams for their tools first, instead of showing what was last seen
    #[arg(long)]
    refresh: bool,
    #[command(flatten)]
    connect: Connect,
}

/// Which tool to show.
#[derive(Args, Debug)]
pub struct Show {
    /// The upstream's id
    upstream: String,
    /// The tool's name
    name: String,
    #[command(flatten)]
    connect: Connect,
}

/// Which tools to accept.
#[derive(Args, Debug)]
pub struct Accept {
    /// The upstream's id
    upstream: String,
    /// The tools' names
    #[arg(required_unless_present = "all")]
    names: Vec<String>,
    /// All that are new or changed, but for those whose texts are flagged: these must be named
    #[arg(long, conflicts_with_all = ["names", "digest"])]
    all: bool,
    /// Accept only if the definition's digest is this one; for one tool
    #[arg(long)]
    digest: Option<String>,
    #[command(flatten)]
    connect: Connect,
}

impl Tools {
    /// Runs the command.
    pub async fn run(self) -> Exit {
        let done = match self {
            Self::List(list) => list.run().await,
            Self::Show(show) => show.run().await,
            Self::Accept(accept) => accept.run().await,
        };
        done.map_or_else(|failure| failure.report(), |()| Exit::Done)
    }
}

impl List {
    async fn run(self) -> Result<(), Failure> {
        let client = self.connect.client()?;
        if self.refresh {
            refresh(&client, self.upstream.as_deref()).await?;
        }
        let mut query: Vec<(&str, &str)> = Vec::new();
        query.extend(self.upstream.as_deref().map(|upstream| ("upstream", upstream)));
        query.extend(self.group.as_deref().map(|group| ("group", group)));
        let mut tools = all(&client, &query).await?;
        if !self.changed {
            return match self.connect.format {
                Format::Json => print(&json!({ "items": tools, "next": null }).to_string()),
                Format::Human => print(&table(&tools)),
            };
        }
        tools.retain(|tool| tool.state != ToolState::Accepted);
        let mut details = Vec::new();
        for tool in &tools {
            details.push(show(&client, &tool.upstream, &tool.name, None).await?.1);
        }
        match self.connect.format {
            Format::Json => print(&json!({ "items": details, "next": null }).to_string()),
            Format::Human if details.is_empty() => print("nothing is new or changed"),
            Format::Human => print(&details.iter().map(detail).collect::<Vec<_>>().join("\n\n")),
        }
    }
}

impl Show {
    async fn run(self) -> Result<(), Failure> {
        let (json, tool) = show(&self.connect.client()?, &self.upstream, &self.name, None).await?;
        if self.connect.format == Format::Json { print(&json) } else { print(&detail(&tool)) }
    }
}

impl Accept {
    /// What is sent is the digest of what was printed, so that nothing is accepted that nobody was shown.
    async fn run(self) -> Result<(), Failure> {
        if self.digest.is_some() && self.names.len() > 1 {
            return Err(Failure::Usage("--digest is of one definition: name one tool".into()));
        }
        let client = self.connect.client()?;
        let mut offered = all(&client, &[("upstream", &self.upstream)]).await?;
        if offered.is_empty() {
            refresh(&client, Some(&self.upstream)).await?;
            offered = all(&client, &[("upstream", &self.upstream)]).await?;
        }
        let human = self.connect.format == Format::Human;
        let mut accepted = Vec::new();
        for tool in self.chosen(&offered)? {
            let (_, shown) = show(&client, &tool.upstream, &tool.name, None).await?;
            if human && !self.all {
                print(&detail(&shown))?;
            }
            let digest = self.digest.as_ref().unwrap_or(&shown.tool.definition_digest);
            let body = json!({ "upstream": tool.upstream, "name": tool.name, "digest": digest });
            let answer = client.post("tools/accept", &body).await?;
            if human {
                let what = format!("accepted {} {}", tool.upstream, visible(&tool.name));
                print(&if self.all { format!("{what}: {} ({digest})", summary(&shown)) } else { what })?;
            }
            accepted.push(read::<Value>(&answer)?);
        }
        if !human {
            return print(&json!({ "items": accepted, "next": null }).to_string());
        }
        if accepted.is_empty() {
            print("nothing is new or changed")?;
        }
        Ok(())
    }

    /// The tools that are meant. What is flagged is accepted by its name only.
    fn chosen<'a>(&self, offered: &'a [ToolRecord]) -> Result<Vec<&'a ToolRecord>, Failure> {
        if !self.all {
            let names: BTreeSet<&String> = self.names.iter().collect();
            let find = |name: &String| {
                let unknown = || Failure::Other(format!("`{}` never offered a tool `{name}`", self.upstream));
                offered.iter().find(|tool| tool.name == *name).ok_or_else(unknown)
            };
            return names.into_iter().map(find).collect();
        }
        let open = offered.iter().filter(|tool| tool.state != ToolState::Accepted);
        let (flagged, plain): (Vec<_>, Vec<_>) = open.partition(|tool| !tool.flags.is_empty());
        for tool in flagged {
            say::tell(format_args!(
                "not accepted: {} ({}); look at it with `portcullis tools show {} {}`, then accept it by its name",
                visible(&tool.name),
                tool.flags.join(", "),
                tool.upstream,
                visible(&tool.name)
            ));
        }
        Ok(plain)
    }
}

/// For a call that is held because its tool is new or changed: the definition, or what changed in it.
///
/// # Errors
/// No answer, or a refusal.
pub async fn of_held(client: &Client, approval: &ApprovalRecord) -> Result<Option<String>, Failure> {
    match &approval.call.tool {
        Some(name) if approval.flags.iter().any(|flag| flag == "new_tool") => {
            let digest = approval.definition.as_deref();
            let shown = show(client, &approval.call.upstream, name, digest).await?.1;
            let gone = "\nthe upstream offers another definition by now: the call will not run\n";
            Ok(Some(format!("{}{}", detail(&shown), if shown.is_offered { "" } else { gone })))
        }
        _ => Ok(None),
    }
}

/// All pages.
async fn all(client: &Client, query: &[(&str, &str)]) -> Result<Vec<ToolRecord>, Failure> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut page_query = query.to_vec();
        page_query.push(("limit", "200"));
        page_query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page: Page<ToolRecord> = read(&client.get("tools", &page_query).await?)?;
        tools.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
}

/// Asks one upstream, or all, for their tools. Of all, those that do not answer are told on standard error.
async fn refresh(client: &Client, upstream: Option<&str>) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Refreshed {
        upstream: String,
        error: Option<String>,
    }
    let only = upstream.is_some();
    let answer = client.post("tools/refresh", &json!({ "upstream": upstream })).await?;
    let asked: Page<Refreshed> = read(&answer)?;
    for Refreshed { upstream, error } in asked.items {
        let Some(error) = error else { continue };
        let what = format!("the tools of `{upstream}` cannot be listed: {}", visible(&error));
        if only {
            return Err(Failure::Other(what));
        }
        say::tell(what);
    }
    Ok(())
}

async fn show(
    client: &Client,
    upstream: &str,
    name: &str,
    digest: Option<&str>,
) -> Result<(String, ToolDetail), Failure> {
    let mut query = vec![("upstream", upstream), ("name", name)];
    query.extend(digest.map(|digest| ("digest", digest)));
    let json = client.get("tools/definition", &query).await?;
    let detail = read(&json)?;
    Ok((json, detail))
}

fn table(tools: &[ToolRecord]) -> String {
    if tools.is_empty() {
        return "no tool was ever listed; ask the upstreams with `portcullis tools list --refresh`".to_owned();
    }
    let width = |of: fn(&ToolRecord) -> usize, least: usize| tools.iter().map(of).max().unwrap_or(0).max(least);
    let (upstream, name) = (width(|tool| tool.upstream.len(), 8), width(|tool| tool.name.len(), 4));
    let mut text = format!("{:<upstream$}  {:<name$}  {:<8}  VERDICTS", "UPSTREAM", "TOOL", "STATE");
    for tool in tools {
        let verdicts: Vec<String> =
            tool.verdicts.iter().map(|(group, verdict)| format!("{group}: {}", verdict_word(*verdict))).collect();
        let line = format!(
            "\n{:<upstream$}  {:<name$}  {:<8}  {}{}",
            tool.upstream,
            visible(&tool.name),
            state_word(tool.state),
            verdicts.join(", "),
            if tool.flags.is_empty() { String::new() } else { format!("  !! {}", tool.flags.join(", ")) }
        );
        text.push_str(line.trim_end());
    }
    text
}

/// The first words of what the tool says of itself.
fn summary(detail: &ToolDetail) -> String {
    let text = detail.definition.get("description").and_then(Value::as_str).unwrap_or("no description");
    let short: String = text.chars().take(100).collect();
    visible(&if short.len() < text.len() { format!("{short}…") } else { short })
}

fn detail(detail: &ToolDetail) -> String {
    let tool = &detail.tool;
    let mut text = format!("{} of {}: {}\n", visible(&tool.name), tool.upstream, state_word(tool.state));
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {name:<11} {}", visible(value));
        }
    };
    row("flags", &tool.flags.join(", "));
    row("category", tool.category.as_deref().unwrap_or_default());
    let arguments: Vec<String> = tool.arguments.iter().map(|(at, what)| format!("{at} {what}")).collect();
    row("arguments", &arguments.join(", "));
    let verdicts: Vec<String> =
        tool.verdicts.iter().map(|(group, verdict)| format!("{group}: {}", verdict_word(*verdict))).collect();
    row("verdicts", &verdicts.join(", "));
    row("first seen", &tool.first_seen.to_string());
    row("offered", &tool.last_offered.to_string());
    row("digest", &tool.definition_digest);
    if let Some(accepted) = &tool.accepted {
        row("accepted", &format!("by {} at {}, {}", accepted.by, accepted.at, accepted.digest));
    }
    let lines: Vec<String> = match detail.difference.as_slice() {
        [] => {
            text.push_str("definition:\n");
            let pretty = serde_json::to_string_pretty(&detail.definition).unwrap_or_default();
            pretty.lines().map(|line| format!("  {line}")).collect()
        }
        difference => {
            text.push_str("changed since it was accepted:\n");
            difference.to_vec()
        }
    };
    text.push_str(&lines.iter().map(|line| visible(line)).collect::<Vec<_>>().join("\n"));
    text
}

const fn state_word(state: ToolState) -> &'static str {
    match state {
        ToolState::Accepted => "accepted",
        ToolState::New => "new",
        ToolState::Changed => "changed",
    }
}

const fn verdict_word(verdict: ToolVerdict) -> &'static str {
    match verdict {
        ToolVerdict::Allow => "allow",
        ToolVerdict::Ask => "ask",
        ToolVerdict::Deny => "deny",
        ToolVerdict::Depends => "depends",
    }
}

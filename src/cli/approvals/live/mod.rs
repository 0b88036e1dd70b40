//! `approvals watch` at a terminal: a live list of what waits, and keys to open and decide it.

mod screen;
mod terminal;

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::Event;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;

use self::screen::{Act, Screen};
use self::terminal::Terminal;
use super::watch::{RETRY, is_final};
use super::{Page, card, fetch, text};
use crate::cli::client::{Client, Connect, Failure, Format, read};
use crate::clock::Clock;
use crate::record::{ApprovalRecord, ApprovalView, Remember};
use crate::serve;

/// How often the time that is left is drawn anew.
const TICK: Duration = Duration::from_secs(1);

/// Whose token it is.
#[derive(Deserialize)]
struct Me {
    name: String,
}

/// What comes from the gateway.
enum News {
    /// All that waits.
    All(Vec<ApprovalView>),
    /// One that changed.
    One(Box<ApprovalView>),
    /// None for now.
    Lost(String),
    /// None any more.
    Over(Failure),
}

/// Whether there is a person at a terminal that can do this.
pub fn is_wanted(connect: &Connect) -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    connect.format == Format::Human && io::stdin().is_terminal() && io::stdout().is_terminal() && !dumb
}

/// Until somebody quits.
///
/// # Errors
/// The gateway is not there at first, the token is no good, or the terminal does not work.
pub async fn run(connect: &Connect) -> Result<(), Failure> {
    let client = Arc::new(connect.client()?);
    let me: Me = read(&client.get("me", &[]).await?)?;
    let first = waiting(&client).await?;
    let (sender, mut news) = mpsc::channel(256);
    let follower = tokio::spawn(follow(Arc::clone(&client), sender));
    let told_to_stop = serve::told_to_stop();
    tokio::pin!(told_to_stop);
    // Signals are heard from here on, before there is a terminal to give back.
    tokio::select! {
        biased;
        () = &mut told_to_stop => return Ok(()),
        () = std::future::ready(()) => {}
    }
    let (terminal, mut keys) = Terminal::take()?;
    let (columns, rows) = crossterm::terminal::size()?;
    let mut screen = Screen::new(columns, rows, &me.name);
    screen.all(first);
    let mut ticks = tokio::time::interval(TICK);
    let ended = loop {
        let (lines, marked) = screen.drawn(Clock::system().now());
        terminal.draw(&lines, marked)?;
        let act = tokio::select! {
            event = keys.recv() => match event {
                Some(Event::Key(key)) => screen.key(key),
                Some(Event::Resize(columns, rows)) => {
                    screen.resize(columns, rows);
                    None
                }
                Some(_) => None,
                None => break Ok(()),
            },
            told = news.recv() => match told {
                Some(News::All(all)) => {
                    screen.all(all);
                    None
                }
                Some(News::One(one)) => {
                    screen.changed(*one);
                    None
                }
                Some(News::Lost(why)) => {
                    screen.lost(&why);
                    None
                }
                Some(News::Over(failure)) => break Err(failure),
                None => break Ok(()),
            },
            _ = ticks.tick() => None,
            () = &mut told_to_stop => break Ok(()),
        };
        match act {
            Some(Act::Quit) => break Ok(()),
            Some(act) => {
                if let Err(failure) = done(&client, &mut screen, act).await {
                    screen.say(&failure.to_string());
                }
            }
            None => {}
        }
    };
    drop(terminal);
    follower.abort();
    ended
}

async fn done(client: &Client, screen: &mut Screen, act: Act) -> Result<(), Failure> {
    let answer = match act {
        Act::Open(id) => {
            let view: ApprovalView = read(&fetch(client, &id).await?)?;
            let whole = card(client, &view).await?;
            screen.changed(view.clone());
            screen.open(&view, &whole);
            return Ok(());
        }
        Act::Claim { id, release } => {
            let answer = client.post(&format!("approvals/{id}/claim"), &json!({ "release": release })).await?;
            screen.changed(read(&answer)?);
            return Ok(());
        }
        Act::Approve { id, digest, remember } => {
            let remember = remember.map(|option| Remember {
                scope: option.scope,
                path: option.path,
                command: option.command,
                ttl_ms: Some(option.ttl_ms),
                uses: Some(option.uses),
                bound: option.bound.first().copied(),
            });
            client.post(&format!("approvals/{id}/approve"), &json!({ "digest": digest, "remember": remember })).await?
        }
        Act::Reject { id, note } => client.post(&format!("approvals/{id}/reject"), &json!({ "note": note })).await?,
        Act::Quit => return Ok(()),
    };
    screen.close();
    screen.changed(read(&answer)?);
    let approval: ApprovalRecord = read(&answer)?;
    screen.say(&text::decided(&approval));
    Ok(())
}

/// Follows the gateway, also through its restarts.
async fn follow(client: Arc<Client>, sender: mpsc::Sender<News>) {
    loop {
        let lost = match stretch(&client, &sender).await {
            Ok(()) => "it closed the stream".to_owned(),
            Err(failure) if is_final(&failure) => {
                let _ = sender.send(News::Over(failure)).await;
                return;
            }
            Err(failure) => failure.to_string(),
        };
        if sender.send(News::Lost(lost)).await.is_err() {
            return;
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn stretch(client: &Client, sender: &mpsc::Sender<News>) -> Result<(), Failure> {
    let mut events = client.events().await?;
    let closed = |_| Failure::Unread;
    sender.send(News::All(waiting(client).await?)).await.map_err(closed)?;
    while let Some((name, data)) = events.next().await? {
        if name == "approval" {
            sender.send(News::One(Box::new(read(&data)?))).await.map_err(closed)?;
        }
    }
    Ok(())
}

/// All that waits.
async fn waiting(client: &Client) -> Result<Vec<ApprovalView>, Failure> {
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let mut query = vec![("state", "waiting"), ("limit", "200")];
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let page: Page<ApprovalView> = read(&client.get("approvals", &query).await?)?;
        found.extend(page.items);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(found);
        }
    }
}

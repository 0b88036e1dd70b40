//! `approvals watch`: a line for everything that happens.

use std::collections::HashMap;
use std::time::Duration;

use http::StatusCode;

use super::Page;
use super::text;
use crate::cli::client::{Client, Connect, Failure, Format, print, read};
use crate::cli::say;
use crate::clock::Clock;
use crate::record::{ApprovalRecord, CallRecord};

/// How long to wait before a lost gateway is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(1);
/// Ids whose last line is remembered, so that nothing is said twice.
const REMEMBERED: usize = 10_000;

/// Prints until interrupted. A gateway that goes away is waited for once it has been there.
///
/// # Errors
/// It is not there at first, the token is no good, or nobody reads the output.
pub async fn run(connect: &Connect) -> Result<(), Failure> {
    let client = connect.client()?;
    let mut lines = Lines { format: connect.format, said: HashMap::new() };
    let mut was_there = false;
    let mut last = String::new();
    loop {
        let lost = match follow(&client, &mut lines, &mut was_there).await {
            Ok(()) => "the gateway closed the stream".to_owned(),
            Err(Ended::Output(failure)) => return Err(failure),
            Err(Ended::Gateway(failure)) if !was_there || is_final(&failure) => return Err(failure),
            Err(Ended::Gateway(failure)) => failure.to_string(),
        };
        if lost != last {
            say::tell(format_args!("{lost}; trying again"));
            last = lost;
        }
        tokio::time::sleep(RETRY).await;
    }
}

/// What ended a stretch of watching.
enum Ended {
    Gateway(Failure),
    Output(Failure),
}

pub(super) fn is_final(failure: &Failure) -> bool {
    matches!(failure, Failure::Refused { status: StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, .. })
}

/// What waits already is said first; the stream is opened before, so that nothing falls between.
async fn follow(client: &Client, lines: &mut Lines, was_there: &mut bool) -> Result<(), Ended> {
    let mut events = client.events().await.map_err(Ended::Gateway)?;
    *was_there = true;
    let waiting = client.get("approvals", &[("state", "waiting"), ("limit", "200")]).await.map_err(Ended::Gateway)?;
    let waiting: Page<serde_json::Value> = read(&waiting).map_err(Ended::Gateway)?;
    for approval in waiting.items.iter().rev() {
        lines.say("approval", &approval.to_string())?;
    }
    while let Some((name, data)) = events.next().await.map_err(Ended::Gateway)? {
        lines.say(&name, &data)?;
    }
    Ok(())
}

struct Lines {
    format: Format,
    said: HashMap<String, String>,
}

impl Lines {
    fn say(&mut self, name: &str, data: &str) -> Result<(), Ended> {
        let line = match self.format {
            // The data is the gateway's own JSON on one line.
            Format::Json => Some(format!("{{\"event\":{},\"data\":{data}}}", serde_json::Value::from(name))),
            Format::Human => self.human(name, data).map_err(Ended::Gateway)?,
        };
        line.map_or(Ok(()), |line| print(&line).map_err(Ended::Output))
    }

    /// The line for an event, unless it says nothing new.
    fn human(&mut self, name: &str, data: &str) -> Result<Option<String>, Failure> {
        let (id, line) = match name {
            "approval" => {
                let approval: ApprovalRecord = read(data)?;
                (approval.id.clone(), text::approval_line(&approval))
            }
            "call" => {
                let call: CallRecord = read(data)?;
                // A held call is told by its approval.
                if call.approval.is_some() {
                    return Ok(None);
                }
                (call.id.clone(), text::call_line(&call))
            }
            "policy" => ("policy".to_owned(), text::policy_line(data)?),
            _ => return Ok(None),
        };
        if self.said.len() >= REMEMBERED {
            self.said.clear();
        }
        if self.said.insert(id, line.clone()).is_some_and(|last| last == line) {
            return Ok(None);
        }
        Ok(Some(format!("{}  {line}", Clock::system().now())))
    }
}

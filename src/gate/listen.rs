//! `subscriptions/listen` (MCP 2026-07-28): the upstream's stream, and on it what the gateway itself has to tell: lists that
//! policy changed, and the tasks in which calls are held (extension `io.modelcontextprotocol/tasks`, `notifications/tasks`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use super::client::Client;
use super::forward::{Again, Ended, Run, forward, to_client};
use super::route::Forwarded;
use super::session::{Session, ToClient};
use super::{Permit, hold, reply, tasks, tools};
use crate::message::{Message, Span, compose};

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// What its client wants to be told of.
const WANTED: [&str; 2] = ["params", "notifications"];
/// How many tasks of the gateway's own one stream tells of: more than that are asked for with `tasks/get`.
const TASKS: usize = 200;

/// What of the wishes of a listening client is the gateway's to fulfil.
struct Wanted {
    lists: bool,
    /// Task id and held call.
    tasks: Vec<(String, String)>,
    /// The request as the upstream gets it: with the ids of its own tasks only.
    edits: Vec<(Span, String)>,
}

impl Wanted {
    async fn of(session: &Session, message: &Message) -> Self {
        let lists = message.at(&[WANTED[0], WANTED[1], "toolsListChanged"]).is_some_and(|(_, raw)| raw == "true");
        let mut wanted = Self { lists, tasks: Vec::new(), edits: Vec::new() };
        let listed = message.at(&[WANTED[0], WANTED[1], "taskIds"]);
        let Some((span, ids)) =
            listed.and_then(|(span, raw)| Some((span, serde_json::from_str::<Vec<String>>(raw).ok()?)))
        else {
            return wanted;
        };
        let mut theirs = Vec::new();
        for id in ids {
            match tasks::whose(session, &id).await {
                Ok(Some(tasks::Whose::Upstream)) => theirs.push(id),
                Ok(Some(tasks::Whose::Held(call))) if wanted.tasks.len() < TASKS => wanted.tasks.push((id, call)),
                // Another's, or none: as if it were not there.
                _ => {}
            }
        }
        wanted.edits.push((span, json!(theirs).to_string()));
        wanted
    }

    fn is_empty(&self) -> bool {
        !self.lists && self.tasks.is_empty()
    }

    /// The acknowledgement with the gateway's own tasks in it; any other message as it is.
    fn acknowledge(&self, bytes: Bytes, is_told: &watch::Sender<bool>) -> Bytes {
        let Ok(message) = Message::framed(bytes.clone()) else { return bytes };
        if message.method() != ACKNOWLEDGED {
            return bytes;
        }
        is_told.send_replace(true);
        if self.tasks.is_empty() {
            return bytes;
        }
        let Some((span, raw)) = message.at(&WANTED) else { return bytes };
        let Ok(mut accepted) = serde_json::from_str::<Map<String, Value>>(raw) else { return bytes };
        let ids = accepted.entry("taskIds").or_insert_with(|| json!([]));
        if let Some(ids) = ids.as_array_mut() {
            ids.extend(self.tasks.iter().map(|(id, _)| json!(id)));
        }
        message.spliced(&[(span, Value::Object(accepted).to_string())])
    }
}

/// Serves a listening client until it goes or its upstream ends the stream.
pub async fn listen(session: &Arc<Session>, message: &Message, headers: Forwarded, client: &Client) {
    let wanted = Wanted::of(session, message).await;
    // Acknowledged first, then told (subscriptions, "Acknowledgment").
    let is_told = watch::Sender::new(false);
    let amend = |bytes| wanted.acknowledge(bytes, &is_told);
    let (edits, again) = (wanted.edits.clone(), Again::Quietly);
    let run = Run { session, message, target: None, edits, headers, within: Duration::MAX, again, amend: Some(&amend) };
    let run = forward(Permit::mint(), run, client, std::future::pending());
    let ended = tokio::select! {
        ended = run => ended,
        never = tell(session, &wanted, client, is_told.subscribe()) => match never {},
    };
    match ended {
        // An upstream without subscriptions: what is the gateway's to tell is told all the same.
        Ended::Answered(answer) if is_unknown(&answer) && !wanted.is_empty() => {
            let mut accepted = Map::new();
            accepted.extend(wanted.lists.then(|| ("toolsListChanged".to_owned(), json!(true))));
            let ids: Vec<&str> = wanted.tasks.iter().map(|(id, _)| id.as_str()).collect();
            accepted.extend((!ids.is_empty()).then(|| ("taskIds".to_owned(), json!(ids))));
            let params = json!({ "notifications": accepted, "_meta": subscription(client) });
            client.tell(ToClient::Message(compose::notification(ACKNOWLEDGED, Some(&params)))).await;
            is_told.send_replace(true);
            tokio::select! {
                never = tell(session, &wanted, client, is_told.subscribe()) => match never {},
                () = client.gone() => {}
                _ = client.cancel() => {}
                () = session.gate.drained() => {
                    let ended = compose::result(&client.id, &json!({ "resultType": "complete", "_meta": subscription(client) }));
                    client.answer(super::Reply { bytes: ended, status: 200 }).await;
                }
            }
        }
        Ended::Answered(answer) => client.answer(to_client(&answer, &client.id, Vec::new())).await,
        Ended::Broke(error) => {
            tracing::warn!(upstream = session.executor.id(), method = message.method(), %error, "the upstream failed");
            client.answer(reply::upstream_fault(&client.id, session.executor.id(), &error)).await;
        }
        Ended::Stopped(_) | Ended::Unsent(_) => {}
    }
}

fn is_unknown(answer: &Message) -> bool {
    let code = answer.at(&["error", "code"]).and_then(|(_, raw)| raw.parse().ok());
    code == Some(reply::METHOD_NOT_FOUND)
}

async fn tell(session: &Session, wanted: &Wanted, client: &Client, mut is_told: watch::Receiver<bool>) -> Infallible {
    if is_told.wait_for(|told| *told).await.is_ok() {
        tokio::join!(
            async {
                if wanted.lists {
                    tell_of_lists(session, client).await;
                }
            },
            join_all(wanted.tasks.iter().map(|(_, call)| tell_of_task(session, call, client))),
        );
    }
    std::future::pending().await
}

/// When policy changes what the client may see of a list.
async fn tell_of_lists(session: &Session, client: &Client) {
    let mut changes = session.list_changes.subscribe();
    while changes.changed().await.is_ok() {
        client.tell(ToClient::Message(tools::list_changed(Some(&client.id)))).await;
    }
}

/// Each state of a task, until it has ended.
async fn tell_of_task(session: &Session, call: &str, client: &Client) {
    let mut changes = session.gate.store.watch(call);
    let mut last = String::new();
    while let Some(held) = hold::changed(&mut changes).await {
        let Some((status, notification)) = tasks::notification(&held, Some(&subscription(client))) else { return };
        if status != last {
            client.tell(ToClient::Message(notification)).await;
            last = status;
        }
        if held.call().outcome.is_some() {
            return;
        }
    }
}

fn subscription(client: &Client) -> Value {
    let id = serde_json::from_str::<Value>(&client.id).unwrap_or_default();
    json!({ "io.modelcontextprotocol/subscriptionId": id })
}

//! What needs no judgement: forwarded, and the lists in its answers cut to what the caller may see.

use std::sync::Arc;
use std::time::Duration;

use super::client::Client;
use super::forward::{Again, Ended, Run, forward, to_client};
use super::route::Forwarded;
use super::session::Session;
use super::{Permit, listen, reply, tasks};
use crate::message::Message;

/// Forwards it and answers its client.
pub async fn pass(session: &Arc<Session>, message: &Message, headers: Forwarded, client: &Client) {
    let within = match message.method() {
        // Blocks until the task has ended.
        "tasks/result" => Duration::from_secs(24 * 3600),
        _ => session.executor.config.timeout,
    };
    if session.gate.is_draining() {
        let reply = reply::error(&client.id, reply::UNAVAILABLE, "the gateway is shutting down", None);
        return client.answer(reply).await;
    }
    if message.method() == "subscriptions/listen" {
        return listen::listen(session, message, headers, client).await;
    }
    if message.method().starts_with("tasks/") && message.method() != "tasks/list" {
        match tasks::of(session, message).await {
            Ok(tasks::Whose::Upstream) => {}
            Ok(tasks::Whose::Held(call)) => return tasks::serve(session, message, &call, client).await,
            Err(reply) => return client.answer(reply).await,
        }
    }
    // Before it is asked: a change from here on is not in the answer.
    let asked = match message.method() {
        "tools/list" => session.route().await.ok().map(|route| session.tools.asked(&route)),
        _ => None,
    };
    let again = Again::Quietly;
    let run = Run { session, message, target: None, edits: Vec::new(), headers, within, again, amend: None };
    let answer = match forward(Permit::mint(), run, client, std::future::pending()).await {
        Ended::Answered(answer) => answer,
        Ended::Broke(error) => {
            tracing::warn!(upstream = session.executor.id(), method = message.method(), %error, "the upstream failed");
            return client.answer(reply::upstream_fault(&client.id, session.executor.id(), &error)).await;
        }
        Ended::Stopped(_) | Ended::Unsent(_) => return,
    };
    let edits = match message.method() {
        "tools/list" => session.listed(message, &answer, asked).await,
        "tasks/list" if answer.error().is_some() => {
            return client.answer(tasks::without_upstream(session, &answer, &client.id).await).await;
        }
        "tasks/list" => tasks::only_own(session, message, &answer).await,
        _ => Ok(Vec::new()),
    };
    match edits {
        Ok(edits) => client.answer(to_client(&answer, &client.id, edits)).await,
        Err(what) => client.answer(reply::unreadable_list(&client.id, session.executor.id(), &what)).await,
    }
}

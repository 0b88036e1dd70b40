//! What happens to held calls without a client at hand: the restart, `run: always`, the passing of time.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;

use super::call::Call;
use super::client::Client;
use super::judged::{Target, arguments, judged};
use super::link::Era;
use super::route::Forwarded;
use super::tools::Definition;
use super::{Gate, Session, headers, release, tasks};
use crate::approval::{Event, Held};
use crate::message::Message;
use crate::record::{ApprovalState, ClientState, Rejection, Verdict};
use crate::store::{Filter, StoreError};

/// How often the store is asked whether it still works.
const CHECK: Duration = Duration::from_secs(2);

/// Begins to follow the store, and takes over what waits from an earlier run.
pub async fn watch(gate: &Arc<Gate>) -> Result<(), StoreError> {
    let mut changes = gate.store.changes();
    take_over(gate).await?;
    for held in all(gate).await? {
        gate.held.changed(&held);
        consider(gate, &Arc::new(held));
    }
    gate.metrics.awaiting(gate.held.waiting());
    let follower = Arc::clone(gate);
    tokio::spawn(async move {
        loop {
            match changes.recv().await {
                Ok(change) => {
                    follower.held.changed(&change.held);
                    follower.metrics.awaiting(follower.held.waiting());
                    consider(&follower, &change.held);
                }
                Err(RecvError::Lagged(_)) => {
                    if let Ok(all) = all(&follower).await {
                        follower.held.clear();
                        for held in all {
                            follower.held.changed(&held);
                            consider(&follower, &Arc::new(held));
                        }
                    }
                }
                Err(RecvError::Closed) => return,
            }
        }
    });
    let successor = Arc::clone(gate);
    tokio::spawn(async move {
        loop {
            successor.orphans.notified().await;
            if let Err(error) = take_over(&successor).await {
                tracing::warn!(%error, "calls of a process that has ended could not be taken over");
            }
        }
    });
    if let Some(mut settled) = gate.store.settled() {
        let counter = Arc::clone(gate);
        tokio::spawn(async move {
            while let Some(held) = settled.recv().await {
                match held.call().outcome {
                    Some(_) => counter.held_ended(&held),
                    None => counter.let_wait(&held),
                }
            }
        });
    }
    let checker = Arc::clone(gate);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = tokio::time::sleep(CHECK) => {}
                () = checker.owed.came() => {}
            }
            checker.park_idle().await;
            checker.held.tidy(checker.clock.now());
            checker.rates.tidy();
            if let Err(faults) = checker.ready().await {
                tracing::debug!(?faults, "not ready");
            }
        }
    });
    Ok(())
}

/// Takes over calls whose process has ended, where this one has the same executor. What still waits is judged again: what
/// policy denies by now is refused.
async fn take_over(gate: &Arc<Gate>) -> Result<(), StoreError> {
    while !gate.is_draining() {
        let adopted = gate.adopt().await?;
        if adopted.is_empty() {
            break;
        }
        for held in adopted.iter().filter(|held| held.approval.state == ApprovalState::Waiting) {
            judge_again(gate, held).await;
        }
    }
    Ok(())
}

/// All held calls that are not over, and those whose result may still be wanted.
async fn all(gate: &Arc<Gate>) -> Result<Vec<Held>, StoreError> {
    let mut found = Vec::new();
    let mut filter = Filter { limit: 500, ..Filter::default() };
    loop {
        let (page, next) = gate.store.list(filter.clone()).await?;
        found.extend(page.into_iter().filter(|h| h.call().outcome.is_none() || h.kept.is_some() || !h.delivered));
        match next {
            Some(cursor) => filter.cursor = Some(cursor),
            None => return Ok(found),
        }
    }
}

/// Starts an approved call that nobody waits for, if it is to run all the same and this process serves it.
fn consider(gate: &Arc<Gate>, held: &Arc<Held>) {
    if gate.could_adopt(held) {
        gate.orphans.notify_one();
    }
    let due = gate.serves(held)
        && held.approval.state == ApprovalState::Approved
        && held.runs_unattended()
        && held.approval.client.state == ClientState::Gone;
    if due && !gate.is_draining() {
        let (gate, held) = (Arc::clone(gate), Arc::clone(held));
        tokio::spawn(async move {
            let _in_hand = Arc::clone(&gate.in_hand);
            match again(&gate, &held).await {
                Ok(mut call) => {
                    // Whoever is second finds it claimed.
                    let _ = release::release(&mut call, &held, &Client::nobody()).await;
                    gate.done_with(&call.session).await;
                }
                Err(why) => {
                    let event = Event::Refuse { reason: Rejection::Stale, detail: Some(why) };
                    if let Err(error) = gate.apply(&held.call().id, event).await {
                        tracing::debug!(%error, "an approved call could not be refused");
                    }
                }
            }
        });
    }
}

/// A call made again from its stored intent, under the same id.
async fn again(gate: &Arc<Gate>, held: &Held) -> Result<Call, String> {
    let (session, message) = conversation(gate, held).await?;
    let target = match held.call().tool.as_deref() {
        Some(name) => match session.definition(name, &message).await {
            Ok(Some(definition)) => Target::Tool { name: name.to_owned(), definition },
            Ok(None) => return Err("the tool is no longer offered".to_owned()),
            Err(error) => return Err(format!("the upstream cannot be asked for its tools: {error}")),
        },
        None => other_target(&message),
    };
    let mut headers = Forwarded::of(&message);
    if let (Era::Modern, Some(definition)) = (session.era, target.definition()) {
        headers.params = headers::made(definition, arguments(&message), None)?;
    }
    let (record, received) = (held.call().clone(), held.call().created_at);
    Ok(Call { session, message, target, record, headers, received, evidence: None })
}

fn other_target(message: &Message) -> Target {
    match message.params_tree().and_then(|p| p.get("uri")).and_then(|v| v.as_str()) {
        Some(uri) if message.method().starts_with("resources/") => Target::Resource { uri: uri.to_owned() },
        _ => Target::Method,
    }
}

/// The session that a held call came in, or one like it, and its request.
pub(super) async fn conversation(gate: &Arc<Gate>, held: &Held) -> Result<(Arc<Session>, Arc<Message>), String> {
    let message = tasks::to_run(held)?;
    let Some(agent) = gate.directory().agent_named(&held.intent.agent) else {
        return Err("its agent is no longer configured".to_owned());
    };
    let upstream = &held.call().upstream;
    let session = match held.intent.session.as_deref() {
        _ if held.intent.era == era_word(Era::Modern) => gate.stateless(&agent.config.name, upstream),
        Some(id) => match gate.session_of_call(&agent.config.name, upstream, id).await {
            Ok(session) => session,
            Err(error) => return Err(format!("its session cannot be restored: {error}")),
        },
        None => None,
    };
    match session {
        Some(session) => Ok((session, Arc::new(message))),
        None => Err("its session has ended".to_owned()),
    }
}

/// How an era is stored.
pub fn era_word(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}

/// Judges a call that waited through a restart, as far as that is possible without its upstream, and refuses what may
/// not run any more.
async fn judge_again(gate: &Arc<Gate>, held: &Held) {
    let Err(why) = may_still_run(gate, held).await else { return };
    let reason = if held.question.is_some() { Rejection::Policy } else { Rejection::Stale };
    let event = Event::Refuse { reason, detail: Some(why) };
    if let Err(error) = gate.apply(&held.call().id, event).await {
        tracing::warn!(%error, "a call that may not run any more could not be refused");
    }
}

async fn may_still_run(gate: &Arc<Gate>, held: &Held) -> Result<(), String> {
    let executor = gate.executors.get(&held.call().upstream);
    let agent = gate.directory().agent_named(&held.intent.agent);
    // Without them it cannot run; they may come back.
    let (Some(executor), Some(agent)) = (executor, agent) else { return Ok(()) };
    let message = Arc::new(held.intent.message()?);
    let target = match held.call().tool.as_deref() {
        Some(name) => {
            let definition = Arc::new(Definition::unlisted(&executor.config.catalogue, name));
            Target::Tool { name: name.to_owned(), definition }
        }
        None => other_target(&message),
    };
    let (now, received) = (gate.clock.now(), held.call().created_at);
    let judged = judged(gate.policy().policy, executor, &agent, &target, &message, now, received, &[]).await;
    let judgement = judged.map_err(|malformed| malformed.to_string())?.judgement;
    match judgement.verdict {
        Verdict::Deny => Err(format!("now denied by {}", judgement.decided_by.join(", "))),
        Verdict::Allow | Verdict::Ask => Ok(()),
    }
}

//! Releasing an approved call: judged again, claimed once, run.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::call::{self, Call};
use super::client::Client;
use super::forward::{self, Again, Ended, Run, cancels_when_gone, forward};
use super::hold::changed;
use super::judged::{Judged, canonical_paths, judged};
use super::limits::Reserved;
use super::owed::{Net, Unsettled};
use super::{Gate, Permit, Session, asked, edit, grants, headers, scripts, shown};
use crate::approval::{Event, Held, Kept, Terms};
use crate::policy::Charge;
use crate::record::{ApprovalState, Outcome, Rejection, Verdict};
use crate::store::StoreError;

/// What became of a release.
pub enum Released {
    /// The call ran, or its client went; there is nothing more to do.
    Ended,
    /// It did not run now: it is in another state.
    Changed(Arc<Held>),
    /// The store does not work: it did not run.
    Broken(StoreError),
}

/// Runs an approved call for a client that waits for it (or for nobody, where `run: always`).
pub async fn release(call: &mut Call, held: &Arc<Held>, client: &Client) -> Released {
    let gate = Arc::clone(&call.session.gate);
    let id = held.call().id.clone();
    match gate.disowned(Held::clone(held)).await {
        Ok(now) if now.approval.state == ApprovalState::Approved => {}
        Ok(now) => return Released::Changed(Arc::new(now)),
        Err(error) => return Released::Broken(error),
    }
    if let Err(why) = call.takes(held) {
        return not_now(&gate, &id, Event::Refuse { reason: Rejection::Stale, detail: Some(why) }).await;
    }
    let executor = Arc::clone(&call.session.executor);
    let judged = match still_the_same(&gate, call, held).await {
        Ok(judged) => judged,
        Err(event) => return not_now(&gate, &id, *event).await,
    };
    let edits = canonical_paths(&executor, &call.message, &judged.touched);
    let permit = Permit::judged(&executor, &judged.touched);
    let taken = match gate.reserve(&judged.judgement.charges, &held.call().decided_by).await {
        Reserved::Taken(taken) => taken,
        Reserved::Over(over) => {
            let room_at = over.wait.map(|wait| gate.clock.now().after(wait));
            let event = Event::Over { detail: over.why, room_at };
            return not_now(&gate, &id, event).await;
        }
        Reserved::Asks(over) => {
            let judged = Judged { judgement: judged.judgement.over(&over), ..judged };
            let terms = asked::terms(&judged, &gate.config().approvals).unwrap_or_default();
            return not_now(&gate, &id, ask_again(call, held, &judged, terms)).await;
        }
        Reserved::Broken(error) => return Released::Broken(error),
    };
    let claim = Event::Claim { process: gate.store.process().to_owned(), digest: held.call().digest.clone() };
    let claimed = match gate.apply(&id, claim).await {
        Ok(claimed) => claimed,
        other => {
            gate.give_back(taken).await;
            return after(other);
        }
    };
    call.record = claimed.call().clone();
    let _net = Net::under(&gate, Unsettled::claimed(&id));
    let detached = AtomicBool::new(false);
    let ended = match gate.begin(&call.record, None) {
        Ok(()) => {
            let mut changes = gate.store.watch(&id);
            let stopped = async move {
                loop {
                    match changed(&mut changes).await {
                        Some(now) if now.cancel_requested => {
                            return now.call().detail.clone().unwrap_or_else(|| "stopped by an operator".to_owned());
                        }
                        Some(_) => {}
                        None => std::future::pending().await,
                    }
                }
            };
            let within = executor.config.within(call.record.tool.as_deref());
            let (message, headers) = (Arc::clone(&call.message), headers::remade(call, &edits));
            let session = Arc::clone(&call.session);
            let (target, again) = (call.target.clone(), Again::Never);
            let run = Run {
                session: &session,
                message: &message,
                target: Some(&target),
                edits,
                headers,
                within,
                again,
                amend: None,
            };
            let run = forward(permit, run, client, stopped);
            tokio::select! {
                ended = run => ended,
                never = let_go(&gate, &id, &session, client, &detached) => match never {},
            }
        }
        Err(what) => Ended::Broke(super::UpstreamError { fault: super::Fault::Unreachable, what, may_have_run: false }),
    };
    gate.settle_limits(taken, &ended).await;
    forward::settle(&mut call.record, &ended);
    let reply = forward::answer(call, &ended, &client.id, edit::note(held).as_deref());
    let finish = Event::Finish {
        outcome: call.record.state.outcome().unwrap_or(Outcome::Failed),
        kept: kept(&ended, gate.clock.now()),
        tool_error: call.record.tool_error,
        detail: call.record.detail.clone(),
        may_have_run: call.record.may_have_run,
    };
    gate.must(&id, finish).await;
    // It has run: the client must know, whatever the store can remember of it now.
    let told = client.done(reply).await;
    if !client.is_nobody() && !detached.load(Ordering::Relaxed) {
        gate.told(&id, told).await;
    }
    Released::Ended
}

/// Lets a client go that closes its stream while its call runs on, so that the identical call can pick it up.
async fn let_go(gate: &Gate, id: &str, session: &Session, client: &Client, detached: &AtomicBool) -> Infallible {
    if !cancels_when_gone(session) {
        client.gone().await;
        // Before anything is awaited: a second detachment would let a newcomer go.
        detached.store(true, Ordering::Relaxed);
        gate.told(id, false).await;
    }
    std::future::pending().await
}

/// The result, for a retry to come.
fn kept(ended: &Ended, at: crate::clock::Timestamp) -> Option<Kept> {
    let Ended::Answered(answer) = ended else { return None };
    let (body, is_error) = match (answer.result(), answer.error()) {
        (Some(result), _) => (result, false),
        (None, error) => (error?, true),
    };
    Some(Kept { body: body.to_owned(), is_error, at })
}

/// What keeps an approved call from running: it is refused, or asked about again.
async fn not_now(gate: &Gate, id: &str, event: Event) -> Released {
    let asks_again = matches!(event, Event::Rejudged { .. });
    let applied = gate.apply(id, event).await;
    if let (true, Ok(now)) = (asks_again, &applied) {
        gate.note_call("call.rejudged", now, None);
    }
    after(applied)
}

/// The question anew, as the call is judged now.
fn ask_again(call: &Call, held: &Held, judged: &Judged, terms: Terms) -> Event {
    let fresh = call::record(&call.session, &call.message, &call.target, judged);
    let mut approval = held.approval.clone();
    approval.call.rejudge(fresh);
    asked::show(&mut approval, &terms, &judged.scripts, call.session.gate.clock.now());
    let longest = call.session.gate.config().approvals.grant_ttl;
    // What an approver changed is not what the agent asks again.
    if approval.edited_from.is_none() {
        approval.grant_options = grants::options(&judged.offers, &approval.call, longest);
    }
    Event::Rejudged { approval: Box::new(approval), terms }
}

fn after(applied: Result<Held, StoreError>) -> Released {
    match applied {
        Ok(now) => Released::Changed(Arc::new(now)),
        Err(StoreError::Refused(_, now)) => Released::Changed(Arc::new(*now)),
        Err(error) => Released::Broken(error),
    }
}

/// Judges the call again, at the moment it would run: what was approved must be what runs.
async fn still_the_same(gate: &Arc<Gate>, call: &mut Call, held: &Held) -> Result<Judged, Box<Event>> {
    let stale = |why: &str| Box::new(Event::Refuse { reason: Rejection::Stale, detail: Some(why.to_owned()) });
    if let super::judged::Target::Tool { name, definition } = &mut call.target {
        // It waited for a human: what was listed before that says nothing of now.
        call.session.tools.mark_stale();
        match call.session.definition(name, &call.message).await {
            Ok(Some(now)) => *definition = now,
            Ok(None) => return Err(stale("the tool is no longer offered")),
            Err(error) => return Err(stale(&format!("the upstream cannot be asked for its tools: {error}"))),
        }
    }
    let definition = call.target.definition().map(|d| d.digest.clone());
    if definition != held.intent.definition {
        return Err(stale("the tool's definition is another"));
    }
    let policy = gate.policy().policy;
    let now = gate.clock.now();
    let Some(agent) = call.session.agent() else {
        return Err(stale("its agent is no longer configured"));
    };
    if let Some(hash) = &held.intent.credential
        && !gate.directory().vouches(&agent.config.name, hash, now)
    {
        return Err(stale("the agent's credential it came with is no longer good"));
    }
    let executor = &call.session.executor;
    let mut judged = judged(policy, executor, &agent, &call.target, &call.message, now, call.received, &[])
        .await
        .map_err(|malformed| stale(&malformed.to_string()))?;
    // The limits that the approver was told of ask again, whether or not there is room by now.
    let told = |charge: &&Charge| held.call().decided_by.contains(&charge.label());
    let told: Vec<Charge> = judged.judgement.charges.iter().filter(told).cloned().collect();
    judged.judgement = judged.judgement.over(&told);
    let judgement = &judged.judgement;
    if judgement.verdict == Verdict::Deny {
        return Err(stale(&format!("now denied by {}", judgement.decided_by.join(", "))));
    }
    if held.intent.places != shown::places_digest(judgement) {
        return Err(stale("a path in it now leads somewhere else"));
    }
    let changed = scripts::changed(&held.intent.scripts, &judged.scripts);
    if let Some(script) = changed.filter(|_| judgement.verdict == Verdict::Ask) {
        return Err(stale(&format!("the content of {} is another", script)));
    }
    match asked::terms(&judged, &gate.config().approvals) {
        Some(terms) if terms != held.terms => Err(Box::new(ask_again(call, held, &judged, terms))),
        _ => Ok(judged),
    }
}

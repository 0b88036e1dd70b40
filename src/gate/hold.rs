//! Holding a call: its client waits, is handed off, comes back, or goes; a human decides meanwhile.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::beside::beside;
use super::call::{self, Call};
use super::client::{CLOSED, Client, progress};
use super::forward::cancels_when_gone;
use super::judged::Judged;
use super::owed::{Net, Unsettled};
use super::release::{self, Released};
use super::reply::{self, Retry};
use super::session::{Reply, Session, ToClient};
use super::unattended::era_word;
use super::uses::FIRST_USE;
use super::{Gate, asked, edit, grants, questions, shown, tasks};
use crate::approval::{Event, Held, Intent, Question, Terms};
use crate::facet::FloorWhy;
use crate::message::{Message, compose};
use crate::record::{ApprovalRecord, ApprovalState, CallState, ClientRecord, ClientState, Rejection, WillRun};
use crate::secret::TokenHash;
use crate::store::{Holding, StoreError};

/// How often a waiting client hears that it still waits.
const STILL_WAITING: Duration = Duration::from_secs(10);

/// Attaches the client to the identical earlier call, if there is one that still waits or has something left to tell.
pub async fn attach(session: &Session, message: &Message) -> Option<Box<Held>> {
    let gate = &session.gate;
    if gate.held.is_empty() {
        return None;
    }
    let agent = &session.agent;
    let key = beside(message, || shown::attach_key(agent, session.executor.id(), message));
    if !gate.held.knows(&key) {
        return None;
    }
    // If the store does not work, what comes next says so.
    gate.store.attach(session.retry(key)).await.ok().flatten()
}

/// Lets a client go that was attached and gets another answer.
pub async fn let_go(session: &Session, attached: Option<Box<Held>>) {
    if let Some(held) = attached {
        session.gate.told(&held.call().id, false).await;
    }
}

/// Withdraws the question about a call that waits only because its tool was not accepted; whether it is withdrawn now.
pub async fn withdrawn(session: &Session, held: &Held) -> bool {
    let new_tool = format!("floor:{}", FloorWhy::NewTool.as_str());
    if held.approval.state != ApprovalState::Waiting || held.call().decided_by != [new_tool] {
        return false;
    }
    let why = "its tool was accepted; the identical call runs without a question".to_owned();
    session.gate.apply(&held.call().id, Event::Cancel { detail: Some(why) }).await.is_ok()
}

/// A call that is held and the client that waits for it: what is left of a request once its question is put.
///
/// It may wait for long and there may be many of them, so it keeps nothing that only judging needed.
pub struct Waiting {
    call: Call,
    held: Arc<Held>,
    client: Client,
    _net: Net,
}

impl Waiting {
    fn new(mut call: Call, held: Box<Held>, client: Client) -> Option<Self> {
        // What runs is read from the store, when it runs: the text does until then, without what was made of it.
        if let Ok(message) = Message::framed(call.message.bytes().clone()) {
            call.message = Arc::new(message);
        }
        let net = Net::under(&call.session.gate, Unsettled::attached(&held.call().id));
        Some(Self { call, held: Arc::from(held), client, _net: net })
    }
}

/// Waits for an earlier call that the client was attached to.
pub async fn pick_up(mut call: Call, held: Box<Held>, client: Client) -> Option<Waiting> {
    if let Err(what) = call.takes(&held) {
        tracing::error!(call = held.call().id, what);
        let_go(&call.session, Some(held)).await;
        client.answer(reply::error(&client.id, reply::INTERNAL, &what, None)).await;
        return None;
    }
    call.received = held.call().created_at;
    call.session.gate.note_call("call.attached", &held, None);
    Waiting::new(call, held, client)
}

/// Holds a call that policy asks about.
pub fn hold(call: Call, judged: &Judged, client: Client) -> impl Future<Output = Option<Waiting>> + Send + use<> {
    let terms = asked::terms(judged, &call.session.gate.config().approvals).unwrap_or_default();
    let held = new_held(&call, judged, terms, None, &client);
    holding(call, held, client)
}

/// Holds a question.
pub fn hold_question(
    call: Call,
    judged: &Judged,
    question: Question,
    client: Client,
) -> impl Future<Output = Option<Waiting>> + Send + use<> {
    let terms = questions::terms(judged, &call.session.gate.config());
    let held = new_held(&call, judged, terms, Some(question), &client);
    holding(call, held, client)
}

async fn holding(mut call: Call, mut held: Box<Held>, client: Client) -> Option<Waiting> {
    let gate = Arc::clone(&call.session.gate);
    if gate.is_first_use(held.call()).await {
        held.approval.flags.push(FIRST_USE.to_owned());
        held.approval.flags.sort();
    }
    match gate.store.hold(held, gate.config().approvals.max_waiting).await {
        Ok(Holding::Created(held)) => {
            let evidence = call.evidence.take();
            beside(&call.message, || gate.note_call("call.held", &held, evidence));
            if held.intent.task.is_none() {
                return Waiting::new(call, held, client);
            }
            Box::pin(tasks::begun(&call, &held, &client)).await;
        }
        Ok(Holding::Attached(held)) => return Box::pin(pick_up(call, held, client)).await,
        Ok(Holding::Full) => Box::pin(call::refuse(call, client, Rejection::RateLimit)).await,
        // By another process, a moment ago.
        Ok(Holding::Paused(why)) => {
            call.record.detail = Some(why);
            Box::pin(call::refuse(call, client, Rejection::Paused)).await;
        }
        Err(error) => Box::pin(unavailable(&mut call, &client, &error)).await,
    }
    None
}

/// Nothing is forwarded while the store does not work.
pub async fn unavailable(call: &mut Call, client: &Client, error: &StoreError) {
    let gate = Arc::clone(&call.session.gate);
    tracing::error!(%error, "a call could not be held");
    call.record.state = CallState::Failed;
    call.record.reason = Some("store".to_owned());
    call.record.detail = Some("the gateway's store does not work, so nothing is forwarded".to_owned());
    gate.ended(&mut call.record, call.evidence.take());
    let (text, retry) = reply::ended_text(&call.record);
    client.answer(reply::refusal(call.session.era, &client.id, &call.record, &text, retry)).await;
}

/// One client's wait for one held call, until it is answered or gone. What comes after the wait is made when it comes
/// (`Box::pin`): ten thousand calls that wait have no room for it.
pub async fn wait(mut waiting: Waiting) {
    let Waiting { call, held, client, .. } = &mut waiting;
    let gate = Arc::clone(&call.session.gate);
    let _in_hand = Arc::clone(&gate.in_hand);
    let id = held.call().id.clone();
    let mut changes = gate.store.watch(&id);
    let began = Instant::now();
    let hand_off = tokio::time::sleep(held.hold_for());
    tokio::pin!(hand_off);
    let mut still = interval_at(began + STILL_WAITING, STILL_WAITING);
    still.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = 0;
    // As it stood when it could not be released: it is not tried again before something has changed.
    let mut refused: Option<Arc<Held>> = None;
    client.tell(ToClient::Held).await;
    loop {
        call.record = held.call().clone();
        if call.record.state.outcome().is_some() {
            return Box::pin(deliver(call, held, client)).await;
        }
        if held.attached_at.as_deref() != Some(gate.store.process()) {
            // Another process took this one for dead (its sign of life is gone) and let its clients go.
            let process = gate.store.process().to_owned();
            let executor = call.session.executor.place.digest.clone();
            match after(&gate, &id, Event::Attach { process, executor }).await {
                Ok(now) => *held = now,
                Err(StoreError::Refused(..)) => return hand_off_to_retry(call, held, client).await,
                Err(error) => return Box::pin(unavailable(call, client, &error)).await,
            }
        }
        let approved = held.approval.state == ApprovalState::Approved;
        if approved && !gate.is_draining() && refused.as_ref() != Some(held) {
            match Box::pin(release::release(call, held, client)).await {
                Released::Ended => return,
                Released::Changed(now) => {
                    // It may be asked about on other terms.
                    hand_off.set(tokio::time::sleep(now.hold_for().saturating_sub(began.elapsed())));
                    refused = (now == *held).then(|| Arc::clone(&now));
                    *held = now;
                    continue;
                }
                Released::Broken(error) => {
                    Box::pin(gate.told(&id, false)).await;
                    return Box::pin(unavailable(call, client, &error)).await;
                }
            }
        }
        let event = tokio::select! {
            biased;
            now = changed(&mut changes) => {
                match now {
                    Some(now) => *held = now,
                    None => {
                        let error = StoreError::Unavailable("it was closed".to_owned());
                        return Box::pin(unavailable(call, client, &error)).await;
                    }
                }
                continue;
            }
            reason = client.cancel() => Event::Cancel { detail: Some(reason) },
            () = client.gone() => gone(call),
            () = &mut hand_off => Event::Detach { handed_off: true },
            // What is held outlives the gateway: its client comes back.
            () = gate.drained() => Event::Detach { handed_off: true },
            _ = still.tick() => {
                told += 1;
                if let Some(token) = &client.token {
                    client.tell(ToClient::Message(progress(token, told, match held.question {
                        Some(_) => "waiting for a human's answer",
                        None => "waiting for a human's approval",
                    }))).await;
                }
                continue;
            }
        };
        let handed_off = event == Event::Detach { handed_off: true };
        match after(&gate, &id, event.clone()).await {
            Ok(now) if handed_off => return hand_off_to_retry(call, &now, client).await,
            // The client is gone or has cancelled: nobody is owed an answer.
            Ok(_) => return,
            // Decided or ended meanwhile: look again.
            Err(StoreError::Refused(_, now)) => *held = Arc::from(now),
            Err(error) => {
                Box::pin(gate.must(&id, event)).await;
                return Box::pin(unavailable(call, client, &error)).await;
            }
        }
    }
}

/// The held call after the event.
fn after<'a>(gate: &'a Gate, id: &'a str, event: Event) -> BoxFuture<'a, Result<Arc<Held>, StoreError>> {
    Box::pin(async move { gate.apply(id, event).await.map(Arc::new) })
}

/// Tells the client to come back with the identical call.
async fn hand_off_to_retry(call: &Call, held: &Held, client: &Client) {
    let text = reply::handed_off_text(held.call(), call.session.era);
    client.answer(reply::refusal(call.session.era, &client.id, held.call(), &text, Retry::SameCall)).await;
}

/// What a closed stream means for a call that waits.
fn gone(call: &Call) -> Event {
    if cancels_when_gone(&call.session) {
        Event::Cancel { detail: Some(CLOSED.to_owned()) }
    } else {
        Event::Detach { handed_off: false }
    }
}

/// The next state of a held call; `None` if the store is closed.
pub async fn changed(changes: &mut watch::Receiver<Option<Arc<Held>>>) -> Option<Arc<Held>> {
    loop {
        changes.changed().await.ok()?;
        if let Some(now) = changes.borrow_and_update().clone() {
            return Some(now);
        }
    }
}

/// Gives the end of a held call to the client that waits for it: a kept reply, else what became of it. Only one client
/// is attached at a time, so it is given once.
async fn deliver(call: &Call, held: &Held, client: &Client) {
    let gate = &call.session.gate;
    let record = held.call();
    let reply = match &held.kept {
        // When it was answered is nothing that the model has to weigh.
        Some(kept) if held.question.is_some() => {
            Reply { bytes: compose::result_raw(&client.id, &kept.body), status: 200 }
        }
        Some(kept) => kept_reply(&client.id, held, kept),
        None => {
            let (text, mut retry) = reply::ended_text(record);
            if record.state == CallState::Rejected && record.reason.as_deref() == Some(Rejection::RateLimit.as_str()) {
                retry = reply::when_there_is_room(held.room_at.map(|at| at.since(gate.clock.now())));
            }
            reply::refusal(call.session.era, &client.id, record, &text, retry)
        }
    };
    let told = client.done(reply).await;
    gate.told(&record.id, told).await;
}

fn kept_reply(id: &str, held: &Held, kept: &crate::approval::Kept) -> Reply {
    let ran_at = held.call().released_at.map_or_else(|| "an earlier time".to_owned(), |at| at.to_string());
    let ran = format!(
        "(This call was approved and ran at {ran_at} while no client waited for it; this is its result. It was not run again.)"
    );
    let note = edit::note(held).into_iter().chain([ran]).collect::<Vec<_>>().join(" ");
    reply::kept(id, kept, &note)
}

/// What is stored of a call that begins to wait.
pub(super) fn new_held(
    call: &Call,
    judged: &Judged,
    terms: Terms,
    question: Option<Question>,
    client: &Client,
) -> Box<Held> {
    let gate = &call.session.gate;
    let now = gate.clock.now();
    let task = tasks::asked(call);
    // One who was given a task is not waited for.
    let state = if task.is_some() { ClientState::Gone } else { ClientState::Attached };
    let approval_id = crate::secret::random_id("apr_", 12);
    let mut record = call.record.clone();
    record.state = CallState::AwaitingApproval;
    record.approval = Some(approval_id.clone());
    let mut approval = ApprovalRecord {
        id: approval_id,
        call: record,
        state: ApprovalState::Waiting,
        requirements: Vec::new(),
        votes: Vec::new(),
        severity: terms.severity,
        reason_required: terms.reason_required,
        client: ClientRecord { state, gone_since: None, will_run: WillRun::Now, task: task.is_some() },
        runs_in: Some(gate.redaction().text(&call.session.executor.place.shown)),
        definition: call.target.definition().map(|d| d.digest.clone()).filter(|digest| !digest.is_empty()),
        expires_at: now,
        escalated_at: None,
        reminded_at: None,
        notified: Vec::new(),
        flags: Vec::new(),
        edited_from: None,
        claimed: None,
        extended_ms: 0,
        grant_options: Vec::new(),
    };
    asked::show(&mut approval, &terms, &judged.scripts, now);
    if question.is_none() {
        approval.grant_options = grants::options(&judged.offers, &approval.call, gate.config().approvals.grant_ttl);
    }
    Box::new(Held {
        approval,
        intent: Intent {
            message: String::from_utf8_lossy(call.message.bytes()).into_owned(),
            original: None,
            agent: call.record.agent.clone(),
            credential: client.credential.as_ref().map(TokenHash::to_hex),
            session: call.session.key().map(str::to_owned),
            era: era_word(call.session.era).to_owned(),
            definition: call.target.definition().map(|d| d.digest.clone()),
            places: shown::places_digest(&judged.judgement),
            scripts: judged.scripts.clone(),
            very_call: grants::very_call(call, judged),
            task,
            origin: call.session.executor.origin(),
        },
        terms,
        attached_at: (state == ClientState::Attached).then(|| gate.store.process().to_owned()),
        claimed_by: None,
        decided_at: None,
        kept: None,
        cancel_requested: false,
        delivered: false,
        handed_off: false,
        room_at: None,
        question,
    })
}

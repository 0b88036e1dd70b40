//! The other direction: what an upstream asks of its client (`sampling/createMessage`, `elicitation/create`, `roots/list`).
//!
//! Judged by the same policy, by its method. What is allowed is put to the client; what is denied is answered by the gateway;
//! what asks waits for a human first. Nothing of it outlives the link that it came on: the upstream would not hear the answer.

use std::sync::{Arc, LazyLock, Weak};

use bytes::Bytes;
use regex::Regex;
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use super::call::{self, Call};
use super::client::Client;
use super::forward::{Ended, settle};
use super::judged::{Judged, Target, judged};
use super::limits::Reserved;
use super::link::Era;
use super::route::{Forwarded, Route};
use super::session::{AskedEnd, Session};
use super::{Gate, Permit, asked, hold, reply, roots};
use crate::approval::{Event, Held};
use crate::message::{Limits, Message, compose};
use crate::record::{ApprovalState, CallRecord, CallState, Outcome, Rejection, Verdict};
use crate::store::{Holding, StoreError};

/// The flag of an elicitation that asks for what looks like a secret: a server must not (MCP 2025-11-25, Elicitation,
/// "Security Considerations").
pub const ASKS_FOR_SECRET: &str = "asks_for_secret";
/// How `decided_by` names what passes since no rule speaks of it.
const PASSES: &str = "builtin:from-upstream";
/// How many requests of one link wait for humans at once: an upstream must not fill the room of its agent's own calls.
const HELD: usize = 4;
const SAMPLING: &str = "sampling/createMessage";
/// MCP's code for what a user does not want (2025-11-25, Sampling, "Error Handling").
const NOT_WANTED: i64 = -1;

#[allow(clippy::expect_used, reason = "a literal that a test compiles")]
static SECRET: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)pass(word|phrase|wd|code)|\b(pwd|pin|otp|cvv|cvc)\b|secret|credential|token\b|api.?key|(private|access|signing).?key|one.?time.?code|seed.?phrase",
    )
    .expect("a pattern")
});

/// A request of an upstream on its way to the client.
struct Inward {
    session: Arc<Session>,
    route: Weak<Route>,
    message: Message,
    related: Option<mpsc::Sender<Bytes>>,
    /// Its number to the client, and how it ends there.
    number: u64,
    ended: oneshot::Receiver<AskedEnd>,
}

/// Why the upstream gets no answer of its client's.
enum Without {
    /// Stopped: the sentence for the record.
    Cancelled(String),
    /// Refused before: by whom stands in the record.
    Refused,
}

/// Serves one request of an upstream.
pub async fn serve(session: &Arc<Session>, route: &Arc<Route>, message: Message, related: Option<mpsc::Sender<Bytes>>) {
    let Some(id) = message.id().map(str::to_owned) else { return };
    let answer = |bytes: Bytes| route.tell(Permit::mint(), "", bytes);
    if session.era == Era::Modern {
        // There are no such requests in its client's protocol (2026-07-28).
        let bytes = match message.method() {
            "ping" => compose::result(&id, &json!({})),
            method => {
                compose::error(&id, reply::METHOD_NOT_FOUND, &format!("the client's protocol has no {method}"), None)
            }
        };
        let _ = answer(bytes).await;
        return;
    }
    if message.method() == "ping" {
        return session.put(message, related).await;
    }
    let (call, judged) = match judge(session, &message).await {
        Ok(judged) => judged,
        Err(what) => {
            tracing::warn!(
                upstream = session.executor.id(),
                method = message.method(),
                what,
                "a request of the upstream was refused"
            );
            let _ = answer(compose::error(&id, reply::REFUSED, &what, None)).await;
            return;
        }
    };
    let gate = &session.gate;
    if asks_for_secret(&message) {
        tracing::warn!(
            upstream = session.executor.id(),
            call = call.record.id,
            "an upstream asks for what looks like a secret"
        );
        gate.note(
            "elicitation.asks_for_secret",
            &json!({"call": call.record.id, "upstream": session.executor.id(), "agent": session.agent}),
        );
    }
    let refused = match gate.orders.pause_of(&session.agent) {
        Some(_) => Some(Rejection::Paused),
        None if gate.is_draining() => Some(Rejection::Draining),
        None if judged.judgement.verdict == Verdict::Ask && session.unput() >= HELD => Some(Rejection::RateLimit),
        None => {
            (judged.judgement.verdict == Verdict::Deny).then(|| judged.judgement.rejection.unwrap_or(Rejection::Policy))
        }
    };
    if judged.judgement.verdict != Verdict::Allow || refused.is_some() {
        gate.said(&judged.agent.config.group, judged.judgement.verdict, &judged.judgement.decided_by);
    }
    if let Some(reason) = refused {
        return refuse(route, call, &id, reason).await;
    }
    if judged.judgement.verdict == Verdict::Allow
        && let Some(answer) = roots::answer(&session.executor, &message)
    {
        gate.said(&judged.agent.config.group, Verdict::Allow, &judged.judgement.decided_by);
        if let Err(error) = route.tell(Permit::mint(), "", answer).await {
            tracing::warn!(upstream = session.executor.id(), %error, "the upstream was not told its root");
        }
        return;
    }
    let Some((number, ended)) = session.register(&id) else { return };
    let inward = Inward { session: Arc::clone(session), route: Arc::downgrade(route), message, related, number, ended };
    // In order with what else the upstream says, where nobody is asked.
    let allowed = judged.judgement.verdict == Verdict::Allow;
    match if allowed { begin(&inward, call, &judged).await } else { Ok(call) } {
        Ok(call) => drop(tokio::spawn(async move {
            if allowed {
                inward.follow(call).await;
            } else {
                inward.ask(call, judged).await;
            }
        })),
        Err((call, reason)) => {
            session.unregister(number);
            refuse(route, call, &id, reason).await;
        }
    }
}

/// Puts an allowed request to the client: its limits are taken, and it is written down.
async fn begin(inward: &Inward, mut call: Call, judged: &Judged) -> Result<Call, (Call, Rejection)> {
    let gate = &inward.session.gate;
    match gate.reserve(&judged.judgement.charges, &[]).await {
        Reserved::Taken(_) => {}
        // Nobody is asked on the way: over is over.
        Reserved::Asks(_) => return Err((call, Rejection::RateLimit)),
        Reserved::Over(over) => {
            call.record.detail = Some(over.why);
            return Err((call, Rejection::RateLimit));
        }
        Reserved::Broken(error) => {
            gate.store_failed(&error);
            return Err((call, Rejection::Draining));
        }
    }
    gate.said(&judged.agent.config.group, Verdict::Allow, &judged.judgement.decided_by);
    call.record.state = CallState::Running;
    call.record.released_at = Some(gate.clock.now());
    let evidence = call.evidence.take();
    if let Err(what) = gate.begin(&call.record, evidence) {
        call.record.detail = Some(what);
        return Err((call, Rejection::Draining));
    }
    inward.put().await;
    Ok(call)
}

async fn judge(session: &Arc<Session>, message: &Message) -> Result<(Call, Judged), String> {
    let gate = &session.gate;
    // As strictly as a client's: policy must read what the client will read.
    let strict = Message::strict(message.bytes().clone(), Limits::default());
    let message = Arc::new(strict.map_err(|malformed| format!("it cannot be judged: {malformed}"))?);
    let agent = session.agent().ok_or("the agent is no longer configured")?;
    let (policy, target, now) = (gate.policy().policy, Target::Method, gate.clock.now());
    let mut judged = judged(policy, &session.executor, &agent, &target, &message, now, now, &[])
        .await
        .map_err(|malformed| malformed.to_string())?;
    let otherwise = format!("otherwise:{}", agent.config.group);
    if message.method() != SAMPLING && judged.judgement.decided_by == [otherwise] {
        // No rule speaks of it (policy.md, "How a call is judged", 1).
        judged.judgement = judged.judgement.granted(PASSES.to_owned());
    }
    judged.offers.clear();
    let mut record = call::record(session, &message, &target, &judged);
    record.from_upstream = true;
    // No retry of a client's can meet it.
    record.attach_key = Some(format!("from-upstream:{}", record.id));
    let evidence = Some(gate.evidence(&target, &message, &judged));
    let headers = Forwarded::default();
    Ok((Call { session: Arc::clone(session), message, target, record, headers, evidence, received: now }, judged))
}

/// Answers an upstream whose request is refused.
async fn refuse(route: &Route, mut call: Call, id: &str, reason: Rejection) {
    call.record.state = CallState::Rejected;
    call.record.reason = Some(reason.as_str().to_owned());
    call.session.gate.ended(&mut call.record, call.evidence.take());
    let _ = route.tell(Permit::mint(), "", refusal(&call.record, id)).await;
}

/// What an upstream is told of a request that its client does not get to see, or does not answer.
fn refusal(record: &CallRecord, id: &str) -> Bytes {
    let because = match (record.reason.as_deref(), &record.detail) {
        (Some("approver"), Some(note)) => format!("a human rejected it: {note}"),
        (Some("approver"), None) => "a human rejected it".to_owned(),
        (Some("expired"), _) => "nobody decided in time".to_owned(),
        (_, Some(detail)) => detail.clone(),
        (Some("policy" | "guardrail"), None) => format!("refused by policy ({})", record.decided_by.join(", ")),
        (reason, None) => reason.unwrap_or("it was stopped").replace('_', " "),
    };
    compose::error(id, NOT_WANTED, &format!("{} was not put to the client: {because}", record.method), None)
}

impl Inward {
    async fn put(&self) {
        self.session.put_as(self.number, &self.message, self.related.as_ref()).await;
    }

    fn id(&self) -> &str {
        self.message.id().unwrap_or("null")
    }

    async fn tell(&self, bytes: Bytes) {
        if let Some(route) = self.route.upgrade() {
            let _ = route.tell(Permit::mint(), "", bytes).await;
        }
    }

    /// What keeps the client's answer from the upstream, or none where it has it.
    async fn answered(&mut self, stopped: impl Future<Output = String>) -> Option<Without> {
        let gone = gone(&self.route);
        let without = tokio::select! {
            end = &mut self.ended => match end {
                Ok(AskedEnd::Answered) => return None,
                Ok(AskedEnd::Withdrawn) | Err(_) => "the upstream withdrew its request".to_owned(),
            },
            () = gone => "the link to the upstream ended before the client answered".to_owned(),
            why = stopped => why,
        };
        self.session.unregister(self.number);
        Some(Without::Cancelled(without))
    }

    /// Waits for the client's answer to an allowed request.
    async fn follow(mut self, mut call: Call) {
        let gate = Arc::clone(&self.session.gate);
        let stop = gate.stoppable(&call.record.id);
        let ended = match self.answered(stop.asked()).await {
            None => {
                call.record.state = CallState::Completed;
                None
            }
            Some(Without::Cancelled(why)) => Some(Ended::Stopped(why)),
            Some(Without::Refused) => None,
        };
        if let Some(ended) = ended {
            settle(&mut call.record, &ended);
            self.tell(refusal(&call.record, self.id())).await;
            self.withdraw().await;
        }
        gate.ended(&mut call.record, None);
    }

    /// The client need not answer any more.
    async fn withdraw(&self) {
        let params = json!({ "requestId": self.number, "reason": "withdrawn" });
        self.session.unread(compose::notification("notifications/cancelled", Some(&params)));
    }

    /// Holds the request until a human has decided, and puts it to the client then.
    async fn ask(mut self, call: Call, judged: Judged) {
        let gate = Arc::clone(&self.session.gate);
        let _in_hand = Arc::clone(&gate.in_hand);
        let mut terms = asked::terms(&judged, &gate.config().approvals).unwrap_or_default();
        // Without its upstream's link there is nobody to run it for.
        terms.run_always = false;
        let mut held = hold::new_held(&call, &judged, terms, None, &Client::nobody());
        if asks_for_secret(&self.message) {
            held.approval.flags.push(ASKS_FOR_SECRET.to_owned());
        }
        let held = match gate.store.hold(held, gate.config().approvals.max_waiting).await {
            Ok(Holding::Created(held)) => held,
            other => {
                let reason = match other {
                    Ok(Holding::Full | Holding::Attached(_)) => Rejection::RateLimit,
                    Ok(Holding::Paused(_)) => Rejection::Paused,
                    Ok(Holding::Created(_)) | Err(_) => Rejection::Draining,
                };
                self.session.unregister(self.number);
                if let Some(route) = self.route.upgrade() {
                    refuse(&route, call, self.id(), reason).await;
                }
                return;
            }
        };
        gate.note_call("call.held", &held, call.evidence.clone());
        drop(call);
        let id = held.call().id.clone();
        let without = self.decided(&gate, Arc::from(held)).await;
        self.session.unregister(self.number);
        if let Some(without) = without {
            if let Without::Cancelled(why) = without {
                gate.must(&id, Event::Cancel { detail: Some(why) }).await;
            }
            if let Ok(record) = gate.call(&id).await {
                self.tell(refusal(&record, self.id())).await;
            }
        }
    }

    /// Follows a held request to its end.
    async fn decided(&mut self, gate: &Arc<Gate>, mut held: Arc<Held>) -> Option<Without> {
        let id = held.call().id.clone();
        let mut changes = gate.store.watch(&id);
        let gone = gone(&self.route);
        tokio::pin!(gone);
        loop {
            if held.call().outcome.is_some() {
                return Some(Without::Refused);
            }
            if held.approval.state == ApprovalState::Approved {
                match self.claim(gate, &held).await {
                    Ok(claimed) => return self.run(gate, claimed).await,
                    Err(StoreError::Refused(_, now)) if now.approval.state != ApprovalState::Approved => {
                        held = Arc::from(now);
                        continue;
                    }
                    Err(StoreError::Refused(..)) => {}
                    Err(_) => return Some(Without::Cancelled("the gateway's store does not work".to_owned())),
                }
            }
            tokio::select! {
                now = hold::changed(&mut changes) => match now {
                    Some(now) => held = now,
                    None => return Some(Without::Cancelled("the gateway is shutting down".to_owned())),
                },
                _ = &mut self.ended => {
                    return Some(Without::Cancelled("the upstream withdrew its request".to_owned()));
                }
                () = &mut gone => return Some(Without::Cancelled("the link to the upstream ended".to_owned())),
                () = gate.drained() => return Some(Without::Cancelled("the gateway is shutting down".to_owned())),
            }
        }
    }

    /// Judged once more, at the moment that it would be put to the client.
    async fn claim(&self, gate: &Arc<Gate>, held: &Held) -> Result<Held, StoreError> {
        let id = &held.call().id;
        let stale = |why: String| Event::Refuse { reason: Rejection::Stale, detail: Some(why) };
        match judge(&self.session, &self.message).await {
            Ok((_, now)) if now.judgement.verdict == Verdict::Deny => {
                gate.apply(id, stale(format!("now denied by {}", now.judgement.decided_by.join(", ")))).await
            }
            Ok((_, now)) => match asked::terms(&now, &gate.config().approvals) {
                Some(terms) if terms.people != held.terms.people => {
                    gate.apply(id, stale("policy asks others of it now".to_owned())).await
                }
                _ => {
                    let process = gate.store.process().to_owned();
                    gate.apply(id, Event::Claim { process, digest: held.call().digest.clone() }).await
                }
            },
            Err(why) => gate.apply(id, stale(why)).await,
        }
    }

    async fn run(&mut self, gate: &Arc<Gate>, claimed: Held) -> Option<Without> {
        if claimed.call().outcome.is_some() {
            return Some(Without::Refused);
        }
        let id = claimed.call().id.clone();
        if let Err(what) = gate.begin(claimed.call(), None) {
            return Some(Without::Cancelled(what));
        }
        self.put().await;
        let mut changes = gate.store.watch(&id);
        let stopped = async move {
            loop {
                match hold::changed(&mut changes).await {
                    Some(now) if now.cancel_requested => {
                        return now.call().detail.clone().unwrap_or_else(|| "stopped by an operator".to_owned());
                    }
                    Some(_) => {}
                    None => std::future::pending().await,
                }
            }
        };
        let without = self.answered(stopped).await;
        let finish =
            |outcome, detail| Event::Finish { outcome, kept: None, tool_error: None, detail, may_have_run: false };
        match without {
            None => {
                gate.must(&id, finish(Outcome::Completed, None)).await;
                None
            }
            Some(Without::Cancelled(why)) => {
                gate.must(&id, finish(Outcome::Cancelled, Some(why))).await;
                self.withdraw().await;
                Some(Without::Refused)
            }
            refused => refused,
        }
    }
}

/// When the link has ended, or nobody has it any more.
fn gone(route: &Weak<Route>) -> impl Future<Output = ()> + Send + use<> {
    let ended = route.upgrade().map(|route| route.ended());
    async move {
        if let Some(mut ended) = ended {
            // A route that was let go of says nothing.
            let _ = ended.wait_for(|ended| *ended).await;
        }
    }
}

/// Whether an elicitation asks for what looks like a secret.
fn asks_for_secret(message: &Message) -> bool {
    message.method() == "elicitation/create" && message.params().is_some_and(|params| SECRET.is_match(params))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_asks_for_a_secret_is_seen() {
        let asks = |params: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{params}}}"#);
            asks_for_secret(&Message::framed(text.into()).unwrap())
        };
        for params in [
            r#"{"message":"Your GitHub token, please","requestedSchema":{"type":"object"}}"#,
            r#"{"message":"Log in","requestedSchema":{"properties":{"apiKey":{"type":"string"}}}}"#,
            r#"{"message":"Enter the PIN","requestedSchema":{}}"#,
            r#"{"message":"x","requestedSchema":{"properties":{"a":{"title":"Password"}}}}"#,
        ] {
            assert!(asks(params), "{params}");
        }
        for params in [r#"{"message":"Which branch?"}"#, r#"{"message":"Spin the wheel, tokenize?"}"#] {
            assert!(!asks(params), "{params}");
        }
    }
}

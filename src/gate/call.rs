//! The life of one request: passed, refused, run, or held.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use super::beside::beside;
use super::client::Client;
use super::forward::{Again, Ended, Run, answer, forward, settle};
use super::hold::Waiting;
use super::judged::{Judged, Target, arguments, canonical_paths, judged};
use super::limits::{Over, Reserved};
use super::link::Era;
use super::owed::{Net, Unsettled};
use super::reply::{self, Retry};
use super::route::Forwarded;
use super::session::{Reply, Session};
use super::{Permit, asked, headers, hold, label, pass, questions, shown, tasks};
use crate::approval::Held;
use crate::clock::Timestamp;
use crate::message::Message;
use crate::message::json::Kind;
use crate::policy::passes;
use crate::record::{CallRecord, CallState, Rejection, Verdict};

/// A request on its way through the pipeline.
pub struct Call {
    /// The conversation it belongs to.
    pub session: Arc<Session>,
    /// The request as it came.
    pub message: Arc<Message>,
    /// What it is to the policy.
    pub target: Target,
    /// What people see.
    pub record: CallRecord,
    /// `Mcp-*` headers for a modern upstream.
    pub headers: Forwarded,
    /// What it was judged on, until it is written down: once, in the first line about it.
    pub evidence: Option<Value>,
    /// When the client sent the request.
    pub received: Timestamp,
}

impl Call {
    /// Takes over the request that is held: what was approved is what runs, also where a retry says it differently or an
    /// approver changed it.
    ///
    /// # Errors
    /// It cannot be read, or not be sent: why.
    pub fn takes(&mut self, held: &Held) -> Result<(), String> {
        self.message = Arc::new(tasks::to_run(held)?);
        if let (Era::Modern, Some(definition), Some(_)) =
            (self.session.era, self.target.definition(), &held.intent.original)
        {
            self.headers.params = headers::made(definition, arguments(&self.message), None)?;
        }
        Ok(())
    }
}

/// Serves one request of a client to its end.
pub async fn serve(session: &Arc<Session>, message: Arc<Message>, sent: Option<Vec<(String, String)>>, client: Client) {
    // One after the other, each in a place of its own: what judging takes is free again while the call waits.
    if let Some(waiting) = Box::pin(begin(session, message, sent, client)).await {
        Box::pin(hold::wait(waiting)).await;
    }
}

/// Serves a request until it is answered, or waits for a human.
async fn begin(
    session: &Arc<Session>,
    message: Arc<Message>,
    sent: Option<Vec<(String, String)>>,
    client: Client,
) -> Option<Waiting> {
    if session.agent().is_none() {
        client.answer(nobody(session, &client)).await;
        return None;
    }
    let mut forwarded = Forwarded::of(&message);
    // `initialize` has its own door.
    if passes(message.kind(), message.method()) && message.method() != "initialize" {
        Box::pin(pass::pass(session, &message, forwarded, &client)).await;
        return None;
    }
    let turn = session.gate.turns.of(&session.agent, &message).await;
    // Before the upstream is needed, which may be slow to start: an approved call waits for its client no longer than
    // `hold_grace`.
    let earlier = hold::attach(session, &message).await;
    let _net = earlier.as_ref().map(|held| Net::under(&session.gate, Unsettled::attached(&held.call().id)));
    let target = match Box::pin(target(session, &message, &mut forwarded, sent, &client)).await {
        Ok(target) => target,
        Err(reply) => {
            Box::pin(hold::let_go(session, earlier)).await;
            client.answer(reply).await;
            return None;
        }
    };
    Box::pin(judge_and_run(session, message, target, forwarded, client, earlier, turn)).await
}

/// For a session whose agent is known no longer: it may be a process that was let in before.
fn nobody(session: &Session, client: &Client) -> Reply {
    let agent = &session.agent;
    tracing::warn!(agent, upstream = session.executor.id(), "a request of an agent that is no longer configured");
    reply::error(&client.id, reply::REFUSED, &format!("the agent `{agent}` is no longer configured"), None)
}

/// What a request that is judged is to the policy.
async fn target(
    session: &Arc<Session>,
    message: &Message,
    forwarded: &mut Forwarded,
    sent: Option<Vec<(String, String)>>,
    client: &Client,
) -> Result<Target, Reply> {
    match message.method() {
        "tools/call" => tool(session, message, forwarded, sent, client).await,
        "resources/read" | "resources/subscribe" => {
            let uri = message.params_tree().and_then(|p| p.get("uri")).and_then(|v| v.as_str());
            let uri =
                uri.ok_or_else(|| reply::error(&client.id, reply::INVALID_PARAMS, "`uri` must be a text", None))?;
            Ok(Target::Resource { uri: uri.to_owned() })
        }
        _ => Ok(Target::Method),
    }
}

/// The tool that is called, with its definition.
async fn tool(
    session: &Arc<Session>,
    message: &Message,
    forwarded: &mut Forwarded,
    sent: Option<Vec<(String, String)>>,
    client: &Client,
) -> Result<Target, Reply> {
    let invalid = |what: &str| reply::error(&client.id, reply::INVALID_PARAMS, what, None);
    let params = message.params_tree();
    let Some(name) = params.and_then(|p| p.get("name")).and_then(|v| v.as_str()) else {
        return Err(invalid("`name` must be a text"));
    };
    let unknown = || {
        let (agent, upstream) = (&session.agent, session.executor.id());
        let shown: String = crate::pattern::visible(name).chars().take(128).collect();
        tracing::info!(upstream, agent, tool = shown, "call of an unknown tool");
        session.gate.note("call.unknown_tool", &json!({"agent": agent, "upstream": upstream, "tool": shown}));
        invalid(&format!("unknown tool: {shown}"))
    };
    if !super::tools::is_name(name) {
        return Err(unknown());
    }
    match params.and_then(|p| p.get("arguments")) {
        Some(arguments) if !matches!(arguments.kind, Kind::Object(_)) => {
            return Err(invalid("`arguments` must be an object"));
        }
        _ => {}
    }
    match session.definition(name, message).await {
        Ok(Some(definition)) => {
            if session.era == Era::Modern {
                forwarded.params = headers::made(&definition, arguments(message), sent)
                    .map_err(|what| reply::error(&client.id, reply::HEADER_MISMATCH, &what, None))?;
            }
            Ok(Target::Tool { name: name.to_owned(), definition })
        }
        Ok(None) => Err(unknown()),
        Err(error) => {
            tracing::warn!(upstream = session.executor.id(), %error, "the upstream's tools cannot be listed");
            Err(reply::upstream_fault(&client.id, session.executor.id(), &error))
        }
    }
}

async fn judge_and_run(
    session: &Arc<Session>,
    message: Arc<Message>,
    target: Target,
    headers: Forwarded,
    client: Client,
    earlier: Option<Box<Held>>,
    turn: Option<OwnedSemaphorePermit>,
) -> Option<Waiting> {
    let gate = &session.gate;
    let mut question = match questions::of(session.executor.id(), &message, &gate.redaction()) {
        Ok(question) => question,
        Err(what) => {
            Box::pin(hold::let_go(session, earlier)).await;
            client.answer(reply::error(&client.id, reply::INVALID_PARAMS, &what, None)).await;
            return None;
        }
    };
    let started = Instant::now();
    let policy = gate.policy().policy;
    let Some(agent) = session.agent() else {
        Box::pin(hold::let_go(session, earlier)).await;
        client.answer(nobody(session, &client)).await;
        return None;
    };
    let now = gate.clock.now();
    let grants = gate.grants.of(session, &target, client.credential.as_ref(), now);
    let judged = match Box::pin(judged(policy, &session.executor, &agent, &target, &message, now, now, &grants)).await {
        Ok(judged) => judged,
        Err(malformed) => {
            Box::pin(hold::let_go(session, earlier)).await;
            gate.note(
                "call.malformed",
                &json!({"agent": session.agent, "upstream": session.executor.id(),
                    "method": message.method(), "tool": target.tool(), "what": malformed.to_string()}),
            );
            let reply = reply::error(&client.id, reply::INVALID_PARAMS, &malformed.to_string(), None);
            client.answer(reply).await;
            return None;
        }
    };
    gate.metrics.judged(started.elapsed());
    let is_held = earlier.is_some();
    let asks = judged.judgement.verdict == Verdict::Ask && !is_held && question.is_none();
    // What is allowed is counted when its limits are known; what asks, when no grant lets it pass; a question, when it is asked.
    if is_held || judged.judgement.verdict == Verdict::Deny {
        gate.said(&agent.config.group, judged.judgement.verdict, &judged.judgement.decided_by);
    }
    if let Some(shadow) = &judged.judgement.shadow {
        gate.metrics.shadowed(&agent.config.group, shadow.verdict);
    }
    let (record, evidence) = beside(&message, || {
        (record(session, &message, &target, &judged), Some(gate.evidence(&target, &message, &judged)))
    });
    drop(turn);
    let mut call = Call { session: Arc::clone(session), message, target, record, headers, received: now, evidence };
    let denied = judged.judgement.verdict == Verdict::Deny;
    let refused = if gate.is_draining() {
        Some(Rejection::Draining)
    } else if let Some(why) = gate.orders.pause_of(&session.agent) {
        call.record.detail = Some(why);
        Some(Rejection::Paused)
    } else {
        denied.then(|| judged.judgement.rejection.unwrap_or(Rejection::Policy))
    };
    if let Some(reason) = refused {
        Box::pin(hold::let_go(session, earlier)).await;
        Box::pin(refuse(call, client, reason)).await;
        return None;
    }
    if let (Some(question), None) = (question.take(), &earlier) {
        return Box::pin(questions::ask(call, judged, question, client)).await;
    }
    if asks {
        match Box::pin(gate.granted(&grants, &judged, &call)).await {
            Ok(Some((grant, judgement))) => {
                call.record.verdict = Some(Verdict::Allow);
                call.record.decided_by.clone_from(&judgement.decided_by);
                call.record.reasons.clear();
                call.record.grant = Some(grant);
                return Box::pin(run(call, Judged { judgement, ..judged }, client)).await;
            }
            Ok(None) => gate.said(&agent.config.group, Verdict::Ask, &judged.judgement.decided_by),
            Err(error) => {
                Box::pin(hold::unavailable(&mut call, &client, &error)).await;
                return None;
            }
        }
    }
    match earlier {
        // Its tool was accepted while it waited for that alone: there is nothing left to ask.
        Some(held) if judged.judgement.verdict == Verdict::Allow && hold::withdrawn(session, &held).await => {
            Box::pin(run(call, judged, client)).await
        }
        // It still waits, or its result was kept: it is not run a second time.
        Some(held) => Box::pin(hold::pick_up(call, held, client)).await,
        None if judged.judgement.verdict == Verdict::Allow => Box::pin(run(call, judged, client)).await,
        None => Box::pin(hold::hold(call, &judged, client)).await,
    }
}

/// The record of a request that was just judged.
pub fn record(session: &Session, message: &Message, target: &Target, judged: &Judged) -> CallRecord {
    let gate = &session.gate;
    let agent = &judged.agent.config;
    let entry = target.definition().map(|d| &d.entry);
    let (redaction, kept) = (gate.redaction(), shown::kept(&judged.touched));
    let (shown, secrets) = shown::arguments(message, entry, &redaction, &kept);
    let key = shown::attach_key(&agent.name, session.executor.id(), message);
    let root = session.executor.space.root().to_str();
    let what = match target {
        Target::Tool { name, .. } => name.clone(),
        Target::Resource { .. } | Target::Method => message.method().to_owned(),
    };
    let judgement = &judged.judgement;
    let (hidden, hidden_more) = shown::hidden(&secrets, &agent.name, &gate.fingerprints);
    let facets = shown::facets(judgement, &redaction, &kept);
    let label = label::label(&what, &facets, entry, &shown, arguments(message), root);
    let terms = asked::terms(judged, &gate.config().approvals);
    let definition = target.definition().map(|d| d.digest.as_str());
    CallRecord {
        id: crate::secret::random_id("call_", 12),
        state: CallState::Pending,
        outcome: None,
        reason: None,
        detail: None,
        may_have_run: false,
        agent: agent.name.clone(),
        owner: agent.owner.clone(),
        group: agent.group.clone(),
        source: judged.standing.source,
        depth: judged.standing.depth,
        session: session.key().map(str::to_owned),
        upstream: session.executor.id().to_owned(),
        tool: target.tool().map(str::to_owned),
        method: message.method().to_owned(),
        label,
        arguments: shown,
        redacted: shown::pointers(&secrets),
        hidden,
        hidden_more,
        facets,
        verdict: Some(judgement.verdict),
        decided_by: judgement.decided_by.clone(),
        reasons: judgement.reasons.clone(),
        grant: None,
        shadow_verdict: judgement.shadow.as_ref().map(|shadow| shadow.verdict),
        policy: Some(judged.policy.clone()),
        digest: Some(shown::digest(&key, definition, judged, terms.as_ref())),
        attach_key: Some(key),
        created_at: gate.clock.now(),
        released_at: None,
        ended_at: None,
        waited_ms: None,
        ran_ms: None,
        tool_error: None,
        approval: None,
        from_upstream: false,
    }
}

/// Refuses a call before anything was sent.
pub async fn refuse(call: Call, client: Client, reason: Rejection) {
    rejected(call, client, reason, None).await;
}

async fn rejected(mut call: Call, client: Client, reason: Rejection, retry: Option<Retry>) {
    let gate = Arc::clone(&call.session.gate);
    call.record.state = CallState::Rejected;
    call.record.reason = Some(reason.as_str().to_owned());
    call.record.ended_at = Some(gate.clock.now());
    gate.ended(&mut call.record, call.evidence.take());
    let (text, usual) = reply::ended_text(&call.record);
    let retry = retry.unwrap_or(usual);
    client.answer(reply::refusal(call.session.era, &client.id, &call.record, &text, retry)).await;
}

/// Refuses a call that is over a limit, and says when it may be tried again.
pub async fn refuse_over(mut call: Call, client: Client, over: Over) {
    call.record.detail = Some(over.why);
    rejected(call, client, Rejection::RateLimit, Some(reply::when_there_is_room(over.wait))).await;
}

/// Runs a call that policy allows, if its limits let it: a begin and an end in the audit log, nothing in the store but
/// what it takes of limits that are kept there.
pub async fn run(mut call: Call, judged: Judged, client: Client) -> Option<Waiting> {
    let gate = Arc::clone(&call.session.gate);
    let reserved = gate.reserve(&judged.judgement.charges, &[]).await;
    let verdict = if matches!(reserved, Reserved::Asks(_)) { Verdict::Ask } else { judged.judgement.verdict };
    gate.said(&judged.agent.config.group, verdict, &judged.judgement.decided_by);
    let taken = match reserved {
        Reserved::Taken(taken) => taken,
        Reserved::Over(over) => {
            gate.give_grant_back(call.record.grant.as_deref()).await;
            refuse_over(call, client, over).await;
            return None;
        }
        Reserved::Asks(over) => {
            gate.give_grant_back(call.record.grant.as_deref()).await;
            let judged = Judged { judgement: judged.judgement.over(&over), ..judged };
            let asked = record(&call.session, &call.message, &call.target, &judged);
            call.record = CallRecord { id: call.record.id, created_at: call.record.created_at, ..asked };
            return Box::pin(hold::hold(call, &judged, client)).await;
        }
        Reserved::Broken(error) => {
            gate.give_grant_back(call.record.grant.as_deref()).await;
            hold::unavailable(&mut call, &client, &error).await;
            return None;
        }
    };
    // Paused while its limits were looked at.
    if let Some(why) = gate.orders.pause_of(&call.record.agent) {
        gate.give_back(taken).await;
        gate.give_grant_back(call.record.grant.as_deref()).await;
        call.record.detail = Some(why);
        refuse(call, client, Rejection::Paused).await;
        return None;
    }
    call.record.state = CallState::Running;
    call.record.released_at = Some(gate.clock.now());
    let evidence = call.evidence.take();
    if let Err(what) = beside(&call.message, || gate.begin(&call.record, evidence)) {
        gate.give_back(taken).await;
        gate.give_grant_back(call.record.grant.as_deref()).await;
        call.record.state = CallState::Failed;
        call.record.detail = Some(what);
        gate.ended(&mut call.record, None);
        let (text, retry) = reply::ended_text(&call.record);
        client.answer(reply::refusal(call.session.era, &client.id, &call.record, &text, retry)).await;
        return None;
    }
    let _net = Net::under(&gate, Unsettled::Running(call.record.id.clone()));
    let stop = gate.stoppable(&call.record.id);
    let permit = Permit::judged(&call.session.executor, &judged.touched);
    let edits = canonical_paths(&call.session.executor, &call.message, &judged.touched);
    let headers = headers::remade(&call, &edits);
    let within = call.session.executor.config.within(call.record.tool.as_deref());
    let again = Again::Noted(&call.record);
    let (session, message, target) = (&call.session, &*call.message, Some(&call.target));
    let run = Run { session, message, target, edits, headers, within, again, amend: None };
    let ended = forward(permit, run, &client, stop.asked()).await;
    gate.settle_limits(taken, &ended).await;
    settle(&mut call.record, &ended);
    if matches!(ended, Ended::Unsent(_) | Ended::Broke(_)) && !call.record.may_have_run {
        gate.give_grant_back(call.record.grant.as_deref()).await;
    }
    beside(&call.message, || gate.ended(&mut call.record, None));
    client.answer(answer(&call, &ended, &client.id, None)).await;
    None
}

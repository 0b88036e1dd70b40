//! What the approvers' side asks of the gate, and what the gate writes down.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

use super::judged::{Judged, Target};
use super::{CallFilter, Cursor, Gate, GateEvent, InForce, Setup, UpstreamError, recent};
use crate::approval::{Event, Held, Refused};
use crate::audit;
use crate::clock::Timestamp;
use crate::config::{self, Role};
use crate::diagnostic::Diagnostic;
use crate::identity::{Approver, Directory};
use crate::message::Message;
use crate::metrics::{self, Metrics};
use crate::policy::{self, Claimed, Evidence};
use crate::record::{ApprovalState, CallRecord, CallState, Decision, NotifiedRecord, Verdict, Vote};
use crate::store::{Filter, Store, StoreError};

impl Gate {
    /// The store, for approvals.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Counts what was said of a call, and who said it.
    pub(super) fn said(&self, group: &str, verdict: Verdict, decided_by: &[String]) {
        self.metrics.said(group, verdict);
        self.policy.load().decided.count(decided_by);
    }

    /// The policy in force.
    pub fn policy(&self) -> InForce {
        InForce::clone(&self.policy.load())
    }

    /// Loads the configuration file (its agents, approvers and limits; listeners and upstreams need a restart) and the
    /// policy files again; a bad file keeps the last good ones.
    ///
    /// # Errors
    /// What is wrong, ready to print.
    pub async fn reload(&self) -> Result<InForce, Vec<Diagnostic>> {
        // One after the other: what was read first must not come into force last.
        let _one_at_a_time = self.reloading.lock().await;
        let (old, own_files, now) = (self.config(), self.own_files.clone(), self.clock.now());
        let known = self.directory();
        let loading = tokio::task::spawn_blocking(move || {
            let config = match &old.file {
                Some(file) => config::load(file)?,
                None => config::Config::clone(&old),
            };
            let mut directory = Directory::new(&config);
            if config.approvers.is_empty() {
                // The one that the first start made.
                for approver in known.approvers() {
                    directory = directory.with_approver(approver.config.clone());
                }
            }
            let mut loaded = policy::load(&config.policy, &own_files)?.staffed(&directory)?;
            loaded.lint(Some(&config), now);
            Ok::<_, Vec<Diagnostic>>((config, directory, loaded))
        });
        let result = match loading.await {
            Ok(result) => result,
            Err(_) => Err(vec![Diagnostic::whole("portcullis.yaml", "the reload was interrupted; try again")]),
        };
        match result {
            Ok((config, directory, loaded)) => {
                if fixed(&config) != fixed(&self.config()) {
                    tracing::warn!(
                        "`listen`, `upstreams`, `state_dir` or `audit` changed: restart the gateway for that"
                    );
                }
                for warning in &loaded.warnings {
                    tracing::warn!("{warning}");
                }
                self.setup.store(Arc::new(Setup {
                    redaction: config.redaction(),
                    config: Arc::new(config),
                    directory: Arc::new(directory),
                }));
                let in_force = InForce::new(loaded, &self.policy.load().decided, self.clock.now());
                let version = in_force.policy.version.clone();
                self.policy.store(Arc::new(in_force.clone()));
                self.metrics.policy_reload("ok");
                self.metrics.policy_version(&version);
                self.note("policy.loaded", &json!({"version": version, "files": in_force.files}));
                tracing::info!(version, "the policy was loaded");
                let _ = self.events.send(GateEvent::Policy);
                super::tools::announce(self);
                self.end_unbound_grants().await;
                Ok(in_force)
            }
            Err(errors) => {
                self.policy.store(Arc::new(self.policy.load().refused(&errors)));
                self.metrics.policy_reload("error");
                for error in &errors {
                    tracing::error!("{error}");
                }
                tracing::error!("the policy was not loaded; the last good one stays in force");
                self.note("policy.refused", &json!({"errors": errors}));
                let _ = self.events.send(GateEvent::Policy);
                Err(errors)
            }
        }
    }

    /// Recent calls, held and not held, newest first.
    ///
    /// # Errors
    /// The store does not work.
    pub async fn calls(&self, filter: CallFilter) -> Result<(Vec<CallRecord>, Option<String>), StoreError> {
        let limit = if filter.limit == 0 { 50 } else { filter.limit.min(500) };
        let is_older = |call: &CallRecord| filter.cursor.as_ref().is_none_or(|cursor| Cursor::of(call) < *cursor);
        let mut calls = self.recent.list(&filter);
        calls.retain(is_older);
        let mut page = Filter {
            agent: filter.agent.clone(),
            upstream: filter.upstream.clone(),
            since: filter.since,
            groups: filter.groups.clone(),
            session: filter.session.clone(),
            words: filter.words.clone(),
            limit: 500,
            ..Filter::default()
        };
        // Held calls come in pages of the store; as many as could stand before the cursor are read.
        let mut found = 0;
        loop {
            let (held, next) = self.store.list(page.clone()).await?;
            for call in held.into_iter().map(|h| h.approval.call) {
                if is_older(&call) && recent::fits(&filter, &call) {
                    found += 1;
                    calls.push(call);
                }
            }
            match next {
                Some(cursor) if found < limit + 1 => page.cursor = Some(cursor),
                _ => break,
            }
        }
        calls.sort_by(|a, b| b.created_at.cmp(&a.created_at).then_with(|| b.id.cmp(&a.id)));
        let more = calls.len() > limit;
        calls.truncate(limit);
        let next = calls.last().filter(|_| more).map(|call| Cursor::of(call).to_string());
        Ok((calls, next))
    }

    /// One call.
    ///
    /// # Errors
    /// Not found, or the store does not work.
    pub async fn call(&self, id: &str) -> Result<CallRecord, StoreError> {
        match self.recent.get(id) {
            Some(record) => Ok(CallRecord::clone(&record)),
            None => self.store.get(id).await.map(|held| held.approval.call),
        }
    }

    /// Stops a call, waiting or running, on behalf of an operator.
    ///
    /// # Errors
    /// Not found, ended already, or the store does not work.
    pub async fn cancel(&self, id: &str, by: &str) -> Result<CallRecord, StoreError> {
        let why = format!("stopped by {by}");
        if let Some(stop) = self.running.get(id) {
            stop.send_replace(Some(why));
            return self.call(id).await;
        }
        match self.apply(id, Event::Cancel { detail: Some(why) }).await {
            Ok(held) => Ok(held.approval.call),
            // Not held: it has ended, if there was such a call.
            Err(StoreError::NotFound) => match self.recent.get(id) {
                Some(record) => Ok(CallRecord::clone(&record)),
                None => Err(StoreError::NotFound),
            },
            Err(error) => Err(error),
        }
    }

    /// Votes on an approval: the one way for every channel. Checks the digest; counts and audits the decision.
    ///
    /// # Errors
    /// As the state machine says.
    pub async fn vote(&self, approval: &str, mut vote: Vote) -> Result<Held, StoreError> {
        let before = self.disowned(self.store.get(approval).await?).await?;
        let directory = self.directory();
        let voter = directory.approvers().iter().find(|approver| approver.config.name == vote.by);
        vote.teams = voter.map(|voter| voter.config.teams.clone()).unwrap_or_default();
        let sole_approver = self.has_sole_approver(before.call());
        let event = Event::Vote { vote: vote.clone(), sole_approver };
        let held = match self.apply(&before.call().id, event).await {
            Ok(held) => held,
            // Said before, perhaps at the same time in another process: it was counted and written down there.
            Err(StoreError::Refused(Refused::Repeated, held)) => return Ok(*held),
            Err(error) => return Err(error),
        };
        self.note(
            "approval.vote",
            &json!({"approval": held.approval.id, "call": held.call().id, "by": vote.by,
                "teams": vote.teams, "decision": vote.decision, "channel": vote.channel, "note": vote.note, "digest": vote.digest, "remember": vote.remember,
                "label": held.call().label}),
        );
        if held.approval.state != ApprovalState::Waiting {
            let waited = self.clock.now().since(held.call().created_at);
            self.metrics.decided(vote.decision, &vote.channel, waited);
            let word = match vote.decision {
                Decision::Approve => "approved",
                Decision::Reject => "rejected",
            };
            tracing::info!(call = held.call().id, by = vote.by, channel = vote.channel, "a call was {word}");
        }
        self.remember(&held, &vote).await?;
        Ok(held)
    }

    /// Puts off the end of a waiting call, within its bounds.
    ///
    /// # Errors
    /// As the state machine says.
    pub async fn extend(&self, held: &Held, by: Duration, who: &str, channel: &str) -> Result<Held, StoreError> {
        let to = held.approval.expires_at.after(by);
        let now = self.apply(&held.call().id, Event::Extend { to }).await?;
        self.note(
            "approval.extended",
            &json!({"approval": now.approval.id, "call": now.call().id, "by": who, "channel": channel,
                "expires_at": now.approval.expires_at}),
        );
        Ok(now)
    }

    /// A call that waits or is approved, without the approvals of those who may not decide it any more.
    pub(super) async fn disowned(&self, held: Held) -> Result<Held, StoreError> {
        let directory = self.directory();
        let still = |vote: &Vote| {
            let voter = directory.approvers().iter().find(|approver| approver.config.name == vote.by);
            voter.is_some_and(|voter| {
                voter.has(Role::Approver)
                    && voter.covers(&held.call().group)
                    && vote.teams.iter().all(|team| voter.config.teams.contains(team))
            })
        };
        let undecided = matches!(held.approval.state, ApprovalState::Waiting | ApprovalState::Approved);
        let votes = held.approval.votes.iter().filter(|vote| undecided && vote.decision == Decision::Approve);
        let voters: Vec<String> = votes.filter(|vote| !still(vote)).map(|vote| vote.by.clone()).collect();
        if voters.is_empty() {
            return Ok(held);
        }
        let now = match self.apply(&held.call().id, Event::Disown { voters: voters.clone() }).await {
            Err(StoreError::Refused(_, now)) => return Ok(*now),
            applied => applied?,
        };
        let what = json!({"approval": now.approval.id, "call": now.call().id, "by": voters});
        self.note("approval.disowned", &what);
        tracing::warn!(
            call = now.call().id,
            by = voters.join(", "),
            "approvals count no longer: they may not decide it"
        );
        Ok(now)
    }

    /// Whether an approver of the call's group could approve it now.
    ///
    /// # Errors
    /// Why not, in words for them.
    pub fn may_approve(&self, held: &Held, approver: &Approver) -> Result<(), String> {
        let who = &approver.config;
        let may = held.may_approve(&who.name, &who.teams, self.has_sole_approver(held.call()));
        may.map_err(|refused| refused.to_string())
    }

    pub(super) fn has_sole_approver(&self, call: &CallRecord) -> bool {
        let directory = self.directory();
        let deciders = directory.approvers().iter().filter(|one| one.has(Role::Approver) && one.covers(&call.group));
        deciders.count() <= 1
    }

    /// Changes of calls that are not held, and of the policy.
    pub fn events(&self) -> broadcast::Receiver<GateEvent> {
        self.events.subscribe()
    }

    /// Whether calls can be forwarded: store, audit.
    ///
    /// # Errors
    /// What is wrong, one line each.
    pub async fn ready(&self) -> Result<(), Vec<String>> {
        let mut faults = Vec::new();
        match self.store.ready().await {
            Ok(()) => match self.pay_events().await {
                Ok(()) => *self.store_fault() = None,
                Err(error) => faults.push(format!("store: how a call ended could not be stored yet: {error}")),
            },
            Err(error) => {
                self.store_failed(&error);
                faults.push(format!("store: {error}"));
            }
        }
        if let Err(error) = self.audit.healthy().and_then(|()| self.pay_lines()) {
            faults.push(error.to_string());
        }
        if self.is_draining() {
            faults.push("the gateway is shutting down".to_owned());
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    // ---- what the gate writes down -------------------------------------------------------------------------------

    /// Applies an event to a held call; its end is counted and written down by the process that brought it about.
    pub(super) async fn apply(&self, call: &str, event: Event) -> Result<Held, StoreError> {
        let held = self.store.apply(call, event).await.inspect_err(|error| {
            if let StoreError::Unavailable(_) = error {
                self.store_failed(error);
            }
        })?;
        if held.call().outcome.is_some() {
            self.held_ended(&held);
        }
        Ok(held)
    }

    /// Whether the client that was attached to a held call took the end of it. One that did not is let go, so that its
    /// retry finds what was kept.
    pub(super) async fn told(&self, call: &str, told: bool) {
        // Refused, where another process has buried or delivered it meanwhile.
        self.must(call, if told { Event::Deliver } else { Event::Detach { handed_off: false } }).await;
    }

    /// A held call ended by this process' doing.
    pub(super) fn held_ended(&self, held: &Held) {
        self.count(held.call());
        self.note("call.end", &self.audited(held.call(), None));
    }

    /// A held call was let wait: those who were asked are reminded, or more people may approve it now, or both.
    pub(super) fn let_wait(&self, held: &Held) {
        let (escalated, reminded) = (held.approval.escalated_at, held.approval.reminded_at);
        if escalated.is_some() && escalated >= reminded {
            self.escalated(held);
        }
        if reminded.is_some() && reminded >= escalated {
            let what = json!({"approval": held.approval.id, "call": held.call().id, "label": held.call().label});
            self.note("approval.reminded", &what);
        }
    }

    /// People were told of a held call, or could not be: counted, written down, and shown on the approval.
    pub async fn notified(&self, held: &str, told: NotifiedRecord) {
        self.metrics.notified(&told.channel, told.state);
        self.note(
            "approval.notified",
            &json!({"approval": held, "channel": told.channel, "state": told.state, "detail": told.detail}),
        );
        match self.store.apply(held, Event::Told(told)).await {
            // So old that it was removed.
            Ok(_) | Err(StoreError::NotFound) => {}
            Err(error) => tracing::warn!(%error, "it could not be stored who was told of a held call"),
        }
    }

    fn escalated(&self, held: &Held) {
        let approvers: Vec<&String> = held.approval.requirements.iter().flat_map(|needed| &needed.approvers).collect();
        tracing::info!(call = held.call().id, ?approvers, "a call was let wait: more people are asked");
        self.note(
            "approval.escalated",
            &json!({"approval": held.approval.id, "call": held.call().id, "approvers": approvers,
                "label": held.call().label}),
        );
    }

    /// A call is about to be forwarded: written before anything is sent.
    ///
    /// # Errors
    /// Why nothing may be forwarded, in words for the client.
    pub(super) fn begin(&self, record: &CallRecord, evidence: Option<Value>) -> Result<(), String> {
        if let Err(error) = self.store.in_place() {
            self.store_failed(&error);
        }
        if let Some(fault) = self.store_fault().as_deref() {
            tracing::error!(fault, "nothing is forwarded while the store does not work");
            return Err("the gateway's store does not work, so nothing is forwarded".to_owned());
        }
        self.writes("call.begin", &self.audited(record, evidence))?;
        self.is_used(record);
        if record.approval.is_none() {
            self.recent.put(record.clone());
        }
        Ok(())
    }

    /// A call is about to be sent once more: written before it is.
    ///
    /// # Errors
    /// Why nothing may be forwarded, in words for the client.
    pub(super) fn sends_again(&self, call: &CallRecord, why: &UpstreamError) -> Result<(), String> {
        let what = json!({"call": call.id, "agent": call.agent, "upstream": call.upstream, "tool": call.tool, "why": why.what});
        self.writes("call.sent_again", &what)
    }

    /// Writes a line without which nothing may be forwarded.
    pub(super) fn writes(&self, event: &str, fields: &Value) -> Result<(), String> {
        self.audit.write(event, fields).map_err(|error| {
            tracing::error!(%error, "nothing is forwarded while the audit log cannot be written");
            "the gateway's audit log cannot be written, so nothing is forwarded".to_owned()
        })
    }

    /// A call that is not held ended.
    pub(super) fn ended(&self, record: &mut CallRecord, evidence: Option<Value>) {
        let now = self.clock.now();
        record.ended_at = Some(now);
        record.outcome = record.state.outcome();
        if let Some(at) = record.released_at {
            record.ran_ms = u64::try_from(now.since(at).as_millis()).ok();
        }
        self.count(record);
        self.note("call.end", &self.audited(record, evidence));
        self.recent.put(record.clone());
    }

    fn count(&self, record: &CallRecord) {
        let tool = match (record.tool.as_deref(), record.method.as_str()) {
            (Some(tool), _) => tool,
            (None, method @ ("resources/read" | "resources/subscribe")) => method,
            // A method is the client's own word.
            _ => metrics::OTHER,
        };
        if let Some(outcome) = record.state.outcome() {
            self.metrics.call_ended(&record.upstream, tool, &record.group, outcome);
        }
        if record.state == CallState::Rejected
            && let Some(reason) = record.reason.as_deref().and_then(rejection)
        {
            self.metrics.rejected(&record.group, reason);
        }
        if let Some(ms) = record.ran_ms {
            self.metrics.call_took(&record.upstream, std::time::Duration::from_millis(ms));
        }
    }

    /// Writes a line that permits nothing: a fault is remembered by the log itself and stops the next call; the line is
    /// written when that is possible again.
    pub(super) fn note(&self, event: &str, fields: &Value) {
        if let Err(error) = self.audit.append(event, fields) {
            tracing::error!(%error, event, "an audit line could not be written yet");
            self.owe_line(event, fields);
        }
    }

    /// Writes a line about a held call.
    pub(super) fn note_call(&self, event: &str, held: &Held, evidence: Option<Value>) {
        self.note(event, &self.audited(held.call(), evidence));
    }

    /// What the log keeps of a call; with `evidence`, all that it was judged on.
    fn audited(&self, record: &CallRecord, evidence: Option<Value>) -> Value {
        let mut fields = serde_json::to_value(record).unwrap_or_default();
        if let Some(object) = fields.as_object_mut() {
            object.extend(evidence.map(|evidence| (audit::EVIDENCE.to_owned(), evidence)));
        }
        fields
    }

    /// What a call was judged on, as it is kept in the log: `policy replay` judges it with another policy.
    pub(super) fn evidence(&self, target: &Target, message: &Message, judged: &Judged) -> Value {
        let category = target.definition().and_then(|definition| definition.entry.category.as_deref());
        let claimed = Claimed::of(message.params_tree());
        let (touched, judgement) = (&judged.touched, &judged.judgement);
        let arguments = self.audit.keeps_arguments();
        let evidence = Evidence::of(category, claimed, touched, judgement, &self.redaction(), arguments);
        serde_json::to_value(evidence).unwrap_or_default()
    }

    pub(super) fn store_failed(&self, error: &StoreError) {
        tracing::error!(%error, "the store does not work");
        *self.store_fault() = Some(error.to_string());
    }

    fn store_fault(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.store_fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call that runs now stoppable by an operator, until the answer is dropped.
    pub(super) fn stoppable(&self, id: &str) -> Stoppable<'_> {
        let (tx, rx) = watch::channel(None);
        self.running.insert(id.to_owned(), tx);
        Stoppable { gate: self, id: id.to_owned(), asked: rx }
    }
}

/// A running call that an operator can stop.
pub struct Stoppable<'a> {
    gate: &'a Gate,
    id: String,
    asked: watch::Receiver<Option<String>>,
}

impl Stoppable<'_> {
    /// When somebody asks for a stop, with who it was.
    pub async fn asked(&self) -> String {
        let mut asked = self.asked.clone();
        let why = asked.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        match why {
            Some(why) => why,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Stoppable<'_> {
    fn drop(&mut self) {
        self.gate.running.remove(&self.id);
    }
}

/// What a running gateway cannot change.
fn fixed(config: &config::Config) -> String {
    let listeners = (&config.mcp, &config.admin, &config.public_url);
    format!("{:?}", (listeners, &config.upstreams, &config.state_dir, &config.audit))
}

fn rejection(word: &str) -> Option<crate::record::Rejection> {
    serde_json::from_value(json!(word)).ok()
}

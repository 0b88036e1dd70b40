//! The event stream: what changed, for those who may see it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::Event;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use tokio::sync::{broadcast, watch};
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use super::super::auth::Who;
use super::super::problem::Problem;
use super::super::{Admin, closed};
use super::describe::{Gives, Operation};
use super::{agents, approvals, policy};
use crate::approval::Held;
use crate::gate::GateEvent;
use crate::store::Change;

/// How often a quiet stream shows that it is alive, and asks again whether its reader is still welcome.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// `GET events`. A reader that cannot keep up, has logged out or is no longer an approver is cut off; it comes back
/// and fetches the lists.
pub async fn events(
    State(admin): State<Arc<Admin>>,
    headers: HeaderMap,
    who: Who,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let mut ticks = interval_at(tokio::time::Instant::now() + KEEP_ALIVE, KEEP_ALIVE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let feed = Feed {
        changes: admin.gate.store().changes(),
        events: admin.gate.events(),
        closing: admin.closing.clone(),
        queue: VecDeque::from([Event::default().comment("hello").retry(Duration::from_secs(1))]),
        ticks,
        headers,
        who,
        admin,
    };
    Ok(Sse::new(unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok(event), feed))
    })))
}

impl<S> Gives for Sse<S> {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_text(StatusCode::OK, "text/event-stream");
    }
}

struct Feed {
    admin: Arc<Admin>,
    headers: HeaderMap,
    who: Who,
    changes: broadcast::Receiver<Change>,
    events: broadcast::Receiver<GateEvent>,
    closing: watch::Receiver<bool>,
    ticks: Interval,
    queue: VecDeque<Event>,
}

impl Feed {
    /// The next event; none when the stream is to end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(event);
            }
            tokio::select! {
                change = self.changes.recv() => self.held(&change.ok()?),
                event = self.events.recv() => self.other(&event.ok()?).await,
                _ = self.ticks.tick() => {
                    self.who = self.admin.authenticate(&self.headers).await.ok()?;
                    return Some(Event::default().comment("alive"));
                }
                () = closed(&mut self.closing) => return None,
            }
        }
    }

    fn held(&mut self, change: &Change) {
        if self.who.see(change.held.call()).is_ok() {
            if let Some(question) = self.admin.gate.clarification(&change.held) {
                self.push("clarification", &question);
                return self.push("call", change.held.call());
            }
            let approval = approvals::seen_by(&self.admin, &self.who, Held::clone(&change.held));
            self.push("approval", &approval);
            self.push("call", &approval.approval.call);
        }
    }

    async fn other(&mut self, event: &GateEvent) {
        match event {
            GateEvent::Call(call) if self.who.see(call).is_ok() => self.push("call", call.as_ref()),
            GateEvent::Call(_) => {}
            // One that the store cannot tell of now is told of when the lists are fetched.
            GateEvent::Tool(upstream, name) => {
                if let Ok(detail) = self.admin.gate.tool(upstream, name, None).await {
                    self.push("tool", &detail.tool);
                }
            }
            GateEvent::Agent(name) => {
                if let Some(agent) = agents::seen(&self.admin, &self.who, name).await {
                    self.push("agent", &agent);
                }
            }
            GateEvent::Grant(id) => {
                if let Ok(grant) = self.admin.gate.grant(id).await
                    && self.who.approver.covers(&grant.group)
                {
                    self.push("grant", &grant);
                }
            }
            GateEvent::Policy => self.push("policy", &policy::in_force(&self.admin)),
        }
    }

    fn push(&mut self, name: &str, data: &impl Serialize) {
        match Event::default().event(name).json_data(data) {
            Ok(event) => self.queue.push_back(event),
            Err(error) => tracing::error!(%error, name, "an event could not be written"),
        }
    }
}

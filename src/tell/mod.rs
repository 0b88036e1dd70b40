//! Telling people of held calls: webhooks, Slack, Teams, PagerDuty, e-mail.
//!
//! Follows the store's changes, in a task of its own: no call and no vote waits for it. Each channel has a task; each
//! session of an agent is a thread, and what a channel was told of it is in the store, where one process of all that
//! share the folder takes it on to say the next word. So a restart tells nothing again, and ten processes tell once.

mod asks;
mod form;
mod means;
mod plan;
mod say;
mod send;
mod teller;
mod text;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio::time::Instant;

use self::asks::{Ask, Asks};
use self::means::Way;
use self::teller::{Due, Opened, Teller};
use crate::approval::Held;
use crate::gate::{Gate, GateEvent};
use crate::record::ApprovalState;
use crate::store::{Filter, StoreError};

/// How long is waited for what comes together, before people are told.
const TOGETHER: Duration = Duration::from_millis(100);

/// How much longer a process waits that does not serve the call: the one that does is mostly first.
const OTHERS: Duration = Duration::from_secs(1);

/// Tells until it is told to stop. `base`: where the inbox is, unless the configuration says how approvers reach it.
pub async fn run(gate: Arc<Gate>, base: String, mut closing: watch::Receiver<bool>) {
    let base: Arc<str> = base.into();
    loop {
        // Before the configuration is read, so that no reload is missed.
        let mut events = gate.events();
        let reloaded = async {
            loop {
                match events.recv().await {
                    Ok(GateEvent::Policy) | Err(RecvError::Lagged(_)) => return,
                    Ok(_) => {}
                    Err(RecvError::Closed) => std::future::pending().await,
                }
            }
        };
        let following = follow(&gate, &base);
        tokio::select! {
            () = following => {}
            () = reloaded => {}
            _ = closing.wait_for(|closing| *closing) => return,
        }
    }
}

/// Ends what runs under it when it is dropped; what is being said is said to its end.
struct Running {
    stop: watch::Sender<bool>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

/// Follows the store for the channels that are configured now.
async fn follow(gate: &Arc<Gate>, base: &Arc<str>) {
    let config = gate.config();
    if config.notify.is_empty() {
        return std::future::pending().await;
    }
    let asks: Arc<Mutex<Asks>> = Arc::default();
    let running = Running { stop: watch::Sender::new(false) };
    let mut channels = Vec::new();
    for channel in &config.notify {
        let label = channel.label();
        match Way::new(channel.clone()) {
            Ok(way) => {
                let due: Arc<Due> = Arc::default();
                let (gate, asks, base) = (Arc::clone(gate), Arc::clone(&asks), Arc::clone(base));
                let teller = Teller { way, gate, asks, due: Arc::clone(&due), base, opened: Opened::default() };
                tokio::spawn(teller::run(Arc::new(teller), running.stop.subscribe()));
                channels.push((label, due));
            }
            Err(why) => tracing::error!(channel = label, why, "nobody is told by this channel"),
        }
    }
    let mut changes = gate.store().changes();
    loop {
        // What waits, and what was not told to its end: at the start, and after changes were missed.
        while let Err(error) = begin(gate, &asks, &channels).await {
            tracing::warn!(%error, "held calls could not be listed; people are told later");
            tokio::time::sleep(OTHERS).await;
        }
        loop {
            match changes.recv().await {
                // Questions have a page of their own.
                Ok(change) if change.held.question.is_some() => {}
                Ok(change) => {
                    let ask = Ask::of(&change.held, gate.label_to_tell(change.held.call()));
                    let news = asks.lock().unwrap_or_else(PoisonError::into_inner).changed(&ask);
                    if news {
                        let ours = ask.served_by.as_deref() == Some(gate.store().process());
                        let at = Instant::now() + TOGETHER + if ours { Duration::ZERO } else { OTHERS };
                        channels.iter().for_each(|(_, due)| due.at(&ask.thread, at));
                    }
                }
                Err(RecvError::Lagged(_)) => break,
                Err(RecvError::Closed) => return,
            }
        }
    }
}

async fn begin(gate: &Gate, asks: &Mutex<Asks>, channels: &[(String, Arc<Due>)]) -> Result<(), StoreError> {
    let mut found = Asks::default();
    let mut filter =
        Filter { state: Some(ApprovalState::Waiting), questions: Some(false), limit: 500, ..Filter::default() };
    loop {
        let (page, next): (Vec<Held>, _) = gate.store().list(filter.clone()).await?;
        for held in &page {
            found.changed(&Ask::of(held, gate.label_to_tell(held.call())));
        }
        match next {
            Some(cursor) => filter.cursor = Some(cursor),
            None => break,
        }
    }
    let at = Instant::now() + TOGETHER;
    for thread in found.threads() {
        channels.iter().for_each(|(_, due)| due.at(&thread, at));
    }
    *asks.lock().unwrap_or_else(PoisonError::into_inner) = found;
    for (label, due) in channels {
        for notice in gate.store().open_notices(label).await? {
            due.at(&notice.thread, at);
        }
    }
    Ok(())
}

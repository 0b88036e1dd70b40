//! One channel's own task: looks at what changed, decides, takes it on among all processes, says it, keeps that.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::asks::{Ask, Asks};
use super::means::Way;
use super::plan::{Failing, Plan, Told, Topic, Word, plan};
use super::send::Failure;
use crate::clock::Timestamp;
use crate::gate::Gate;
use crate::record::{NotifiedRecord, NotifiedState, Severity};
use crate::store::{Notice, StoreError};

/// How long a process has a word to itself: longer than it may take to say it. Whoever ends in between is followed by
/// another after that.
const LEASE: Duration = Duration::from_secs(45);

/// How long saying one word may take.
const PATIENCE: Duration = Duration::from_secs(35);

/// How many words are said at once.
const AT_ONCE: usize = 8;

/// How soon another try follows where the store did not work, or another process was first.
const SOON: Duration = Duration::from_secs(1);

/// How often a word is tried, and how long at most.
const TRIES: (u32, Duration) = (8, Duration::from_secs(600));

/// How long the first wait between two tries is, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How many messages one agent can open in a channel at one severity, and in what time: whoever asks and takes it back
/// over and over wears out those who are told. What is over it is told when there is room again, if it still waits.
const OPENED: (usize, Duration) = (20, Duration::from_secs(600));

/// What a channel has to look at, and when.
#[derive(Default)]
pub struct Due {
    threads: Mutex<HashMap<String, Instant>>,
    woken: tokio::sync::Notify,
}

impl Due {
    /// Looks at a thread after a while, or earlier if that was said before.
    pub fn at(&self, thread: &str, at: Instant) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let due = threads.entry(thread.to_owned()).or_insert(at);
        *due = at.min(*due);
        drop(threads);
        self.woken.notify_one();
    }

    /// The threads to look at now, and when the next one is due. Those in `busy` stay.
    fn take(&self, busy: &HashSet<String>, room: usize) -> (Vec<String>, Option<Instant>) {
        let now = Instant::now();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = threads.iter().filter(|(thread, due)| **due <= now && !busy.contains(*thread));
        let ready: Vec<String> = ready.map(|(thread, _)| thread.clone()).take(room).collect();
        for thread in &ready {
            threads.remove(thread);
        }
        let next = threads.iter().filter(|(thread, due)| !busy.contains(*thread) && **due > now);
        (ready, next.map(|(_, due)| *due).min())
    }
}

/// Everything that one channel needs.
pub struct Teller {
    /// How people are reached.
    pub way: Way,
    /// The core.
    pub gate: Arc<Gate>,
    /// What waits.
    pub asks: Arc<Mutex<Asks>>,
    /// What to look at.
    pub due: Arc<Due>,
    /// Where the inbox is, unless the configuration says it.
    pub base: Arc<str>,
    /// Which agents had messages opened.
    pub opened: Opened,
}

/// When messages were opened, by agent and severity; those of this process.
#[derive(Default)]
pub struct Opened(Mutex<HashMap<(String, Severity), VecDeque<Timestamp>>>);

impl Opened {
    /// When there is room for another message about such a call; none: now.
    fn room_at(&self, agent: &str, severity: Severity, now: Timestamp) -> Option<Timestamp> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, times| {
            times.retain(|at| at.after(OPENED.1) > now);
            !times.is_empty()
        });
        let times = all.get(&(agent.to_owned(), severity))?;
        let oldest = times.len().checked_sub(OPENED.0)?;
        times.get(oldest).map(|at| at.after(OPENED.1))
    }

    /// A message was opened.
    fn add(&self, agent: &str, severity: Severity, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry((agent.to_owned(), severity)).or_default().push_back(now);
    }
}

/// Runs until it is told to stop; what is being said then is said to its end.
pub async fn run(teller: Arc<Teller>, mut stop: watch::Receiver<bool>) {
    let mut working: JoinSet<(String, Option<Duration>)> = JoinSet::new();
    let mut busy = HashSet::new();
    loop {
        let (ready, next) = teller.due.take(&busy, AT_ONCE.saturating_sub(working.len()));
        for thread in ready {
            busy.insert(thread.clone());
            let teller = Arc::clone(&teller);
            working.spawn(async move {
                let again = teller.look(&thread).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "it could not be looked up who was told of held calls");
                    Some(SOON)
                });
                (thread, again)
            });
        }
        let next = next.unwrap_or_else(|| Instant::now() + Duration::from_secs(60));
        tokio::select! {
            () = teller.due.woken.notified() => {}
            () = tokio::time::sleep_until(next) => {}
            Some(done) = working.join_next(), if !working.is_empty() => {
                // A task that panicked is a bug that was logged; its thread is looked at when something changes.
                match done {
                    Ok((thread, again)) => {
                        busy.remove(&thread);
                        if let Some(wait) = again {
                            teller.due.at(&thread, Instant::now() + wait);
                        }
                    }
                    Err(_) => busy.clear(),
                }
            }
            _ = stop.wait_for(|stop| *stop) => break,
        }
    }
    while working.join_next().await.is_some() {}
}

impl Teller {
    /// Looks at one thread; answers when to look again although nothing changed.
    async fn look(&self, thread: &str) -> Result<Option<Duration>, StoreError> {
        let (store, channel) = (self.gate.store(), self.way.channel().label());
        let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner).of(thread);
        asks.retain(|ask| self.way.channel().wants(ask.severity, &ask.group));
        let notice = store.notice(&channel, thread).await?;
        if notice.is_none() && asks.is_empty() {
            return Ok(None);
        }
        let told = notice.as_ref().map(|notice| read(&notice.body)).unwrap_or_default();
        let ended = told.calls.iter().filter(|(_, mark)| mark.waits).map(|(id, _)| id);
        let ended = ended.filter(|id| !asks.iter().any(|ask| ask.approval == **id)).cloned().collect();
        let ended = self.stored(ended).await?;
        asks.extend(ended);
        let now = self.gate.now();
        let word = match plan(&channel, &told, &asks, self.way.style(), now) {
            Plan::Nothing => return self.nothing(&channel, notice, &asks, now).await,
            Plan::Later(at) => return Ok(Some(at.since(now))),
            Plan::Say(word) => word,
        };
        let about = word.waiting.first().filter(|_| word.topic == Topic::Opened);
        let about = about.map(|ask| (ask.agent.clone(), ask.severity));
        if let Some(at) = about.as_ref().and_then(|(agent, severity)| self.opened.room_at(agent, *severity, now)) {
            tracing::warn!(channel, thread, "an agent has opened so many messages that this one waits");
            return Ok(Some(at.since(now)));
        }
        let next = told.failed.map(|failing| failing.next).filter(|next| *next > now);
        let taken = notice.as_ref().and_then(|notice| notice.claimed_until).filter(|until| *until > now);
        if let Some(at) = next.max(taken) {
            return Ok(Some(at.since(now)));
        }
        let seq = notice.as_ref().map_or(0, |notice| notice.seq);
        let Some(seq) = store.claim_notice(&channel, thread, seq, LEASE).await? else { return Ok(Some(SOON)) };
        if let Some((agent, severity)) = about.filter(|_| told.failed.is_none()) {
            self.opened.add(&agent, severity, now);
        }
        self.say(&channel, thread, seq, &told, *word).await
    }

    /// Nothing is to be told. A claim that led to nothing is closed.
    async fn nothing(
        &self,
        channel: &str,
        notice: Option<Notice>,
        asks: &[Ask],
        now: Timestamp,
    ) -> Result<Option<Duration>, StoreError> {
        let Some(notice) = notice.filter(|notice| notice.open && !asks.iter().any(Ask::waits)) else { return Ok(None) };
        if let Some(until) = notice.claimed_until.filter(|until| *until > now) {
            return Ok(Some(until.since(now)));
        }
        let lease = Duration::from_secs(1);
        if let Some(seq) = self.gate.store().claim_notice(channel, &notice.thread, notice.seq, lease).await? {
            self.gate.store().noticed(channel, Notice { seq, open: false, ..notice }).await?;
        }
        Ok(None)
    }

    async fn say(
        &self,
        channel: &str,
        thread: &str,
        seq: i64,
        told: &Told,
        word: Word,
    ) -> Result<Option<Duration>, StoreError> {
        let more = word.then.calls.iter().filter(|(_, mark)| !mark.waits).map(|(id, _)| id);
        let more = more.filter(|id| !word.ended.iter().any(|ask| ask.approval == **id)).cloned().collect();
        let mut ended = word.ended.clone();
        ended.extend(self.stored(more).await?.into_iter().filter(|ask| !ask.waits()));
        let base = self.gate.config().public_url.clone().unwrap_or_else(|| self.base.to_string());
        let saying = self.way.say(&word, &ended, &base, self.gate.now());
        let said = match tokio::time::timeout(PATIENCE, saying).await {
            Ok(said) => said,
            Err(_) => Err(Failure::passing("it took too long")),
        };
        let now = self.gate.now();
        let (then, state, detail, again) = match said {
            Ok(handle) => {
                let handle = handle.or_else(|| word.then.handle.clone());
                (Told { handle, ..word.then }, None, None, Some(Duration::ZERO))
            }
            Err(failure) => {
                let failing = failing(told.failed, &failure, now);
                let state = if failing.is_some() { NotifiedState::Pending } else { NotifiedState::Failed };
                tracing::warn!(
                    channel,
                    why = failure.why,
                    again = failing.is_some(),
                    "people could not be told of held calls"
                );
                match failing {
                    Some(failing) => {
                        let wait = failing.next.since(now);
                        (Told { failed: Some(failing), ..told.clone() }, Some(state), Some(failure.why), Some(wait))
                    }
                    // It is not tried again; what changes later is.
                    None => (Told { failed: None, ..word.then }, Some(state), Some(failure.why), None),
                }
            }
        };
        let open = then.calls.values().any(|mark| mark.waits) || state == Some(NotifiedState::Pending);
        let body = serde_json::to_string(&then).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let notice = Notice { thread: thread.to_owned(), seq, open, claimed_until: None, body };
        if !self.gate.store().noticed(channel, notice).await? {
            tracing::warn!(channel, "telling people took so long that another process took over");
        }
        // A first failure is shown; that it goes on is not news.
        let is_news = state != Some(NotifiedState::Pending) || told.failed.is_none();
        for (approval, made) in word.news.iter().filter(|_| is_news) {
            let state = state.unwrap_or(*made);
            let told = NotifiedRecord { channel: channel.to_owned(), state, at: now, detail: detail.clone() };
            self.gate.notified(approval, told).await;
        }
        Ok(again)
    }

    /// Those of these approvals that are still known, as they are now.
    async fn stored(&self, approvals: Vec<String>) -> Result<Vec<Ask>, StoreError> {
        let mut found = Vec::new();
        for id in approvals {
            match self.gate.store().get(&id).await {
                Ok(held) => found.push(Ask::of(&held, self.gate.label_to_tell(held.call()))),
                Err(StoreError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// What was told, of what the store keeps. What cannot be read is told again.
pub fn read(body: &str) -> Told {
    if body.is_empty() { Told::default() } else { serde_json::from_str(body).unwrap_or_default() }
}

/// When the next try is; none: it is given up.
fn failing(before: Option<Failing>, failure: &Failure, now: Timestamp) -> Option<Failing> {
    let (tries, since) = before.map_or((1, now), |before| (before.tries + 1, before.since));
    if !failure.again || tries >= TRIES.0 || now.since(since) >= TRIES.1 {
        return None;
    }
    let doubled = BACKOFF.0.saturating_mul(1 << tries.min(10).saturating_sub(1)).min(BACKOFF.1);
    // Between half and the whole, so that what failed together does not come again together.
    let mut random = [0; 1];
    let _ = getrandom::fill(&mut random);
    let jittered = doubled / 2 + doubled.mul_f64(f64::from(random[0]) / 512.0);
    let wait = failure.after.map_or(jittered, |after| after.min(TRIES.1).max(jittered));
    Some(Failing { tries, since, next: now.after(wait) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(1_796_000_000_000).after(Duration::from_secs(seconds))
    }

    #[test]
    fn tries_are_further_and_further_apart_and_come_to_an_end() {
        let failure = Failure::passing("no");
        let mut before: Option<Failing> = None;
        let mut waits = Vec::new();
        let mut now = at(0);
        while let Some(next) = failing(before, &failure, now) {
            waits.push(next.next.since(now));
            (before, now) = (Some(next), next.next);
        }
        assert_eq!(waits.len(), 7, "eight tries in all");
        for (at, wait) in waits.iter().enumerate() {
            let whole = Duration::from_secs(1 << at).min(BACKOFF.1);
            assert!(whole / 2 <= *wait && *wait <= whole, "{at}: {wait:?}");
        }
        let asked = Failure { after: Some(Duration::from_secs(90)), ..failure };
        assert_eq!(failing(None, &asked, at(0)).unwrap().next, at(90));
        assert_eq!(failing(before, &asked, at(700)), None);
        assert_eq!(failing(None, &Failure::lasting("gone"), at(0)), None);
    }

    #[test]
    fn an_agent_cannot_wear_people_out_and_its_severe_calls_are_told_all_the_same() {
        let opened = Opened::default();
        for seconds in 0..20 {
            assert_eq!(opened.room_at("claude", Severity::Normal, at(seconds)), None);
            opened.add("claude", Severity::Normal, at(seconds));
        }
        assert_eq!(opened.room_at("claude", Severity::Normal, at(20)), Some(at(600)));
        assert_eq!(opened.room_at("claude", Severity::High, at(20)), None);
        assert_eq!(opened.room_at("other", Severity::Normal, at(20)), None);
        assert_eq!(opened.room_at("claude", Severity::Normal, at(600)), None);
    }
}

//! What is to be told next, of what was told and what is. Pure.
//!
//! The first call of a session that waits opens a message. What comes after it is one more word in the same message, until
//! nothing of it waits any more: then it is closed, and the next call opens another.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::asks::Ask;
use crate::clock::Timestamp;
use crate::record::{NotifiedState, Severity};

/// How long a channel that cannot change what it said is left alone before more calls of a session are told.
pub const QUIET: Duration = Duration::from_secs(120);

/// How long such a channel is not told that everything was decided: where another call comes, that is told instead.
pub const LINGER: Duration = Duration::from_secs(20);

/// How many calls of a message that have ended are still shown.
const KEPT: usize = 10;

/// Whether a channel can change what it has said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// It can, or its reader is a program: everything is told at once.
    Updates,
    /// It cannot: a message is an interruption.
    Says,
}

/// What a channel was told of a thread; kept in the store.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Told {
    /// How many messages were opened.
    pub opened: u64,
    /// The open message's id, the same whichever process sends it.
    pub message: String,
    /// How often it was said and changed.
    pub said: u64,
    /// What was told of each of its calls.
    pub calls: BTreeMap<String, Mark>,
    /// What the channel calls the message, to change it.
    pub handle: Option<String>,
    /// When something was last said.
    pub said_at: Option<Timestamp>,
    /// How often the next word was tried in vain, and since when.
    pub failed: Option<Failing>,
}

/// What was told of one call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Mark {
    /// That it waits.
    pub waits: bool,
    /// That more people are asked.
    pub escalated: bool,
    /// That it still waits.
    pub reminded: bool,
    /// How urgent it was.
    pub severity: Severity,
}

/// A word that could not be said yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failing {
    /// Tries so far.
    pub tries: u32,
    /// The first.
    pub since: Timestamp,
    /// The next.
    pub next: Timestamp,
}

/// What a word is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Topic {
    /// Something waits.
    Opened,
    /// Something changed.
    Updated,
    /// Half of the time is over.
    Reminded,
    /// More people are asked.
    Escalated,
    /// Nothing waits any more.
    Closed,
}

/// One word to be said.
#[derive(Clone, PartialEq, Debug)]
pub struct Word {
    /// What it is about.
    pub topic: Topic,
    /// Whether people should look now, also where what was said is only changed.
    pub loud: bool,
    /// The message it opens or changes.
    pub message: String,
    /// Its number in the message, from 1.
    pub number: u64,
    /// What waits, the most urgent first.
    pub waiting: Vec<Ask>,
    /// What of it has ended since the last word.
    pub ended: Vec<Ask>,
    /// What it makes of each call that it brings news of.
    pub news: BTreeMap<String, NotifiedState>,
    /// What was told once it is said.
    pub then: Told,
}

/// What to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Plan {
    /// Nothing until something changes.
    Nothing,
    /// Look again then.
    Later(Timestamp),
    /// Say this.
    Say(Box<Word>),
}

/// Plans for one channel and one thread. `asks`: what waits, and what has ended of that which was told to wait.
pub fn plan(channel: &str, told: &Told, asks: &[Ask], style: Style, now: Timestamp) -> Plan {
    let known = |ask: &Ask| told.calls.get(&ask.approval).copied();
    let waited = |ask: &Ask| known(ask).is_some_and(|mark| mark.waits);
    let mut waiting: Vec<Ask> = asks.iter().filter(|ask| ask.waits()).cloned().collect();
    waiting.sort_by(|a, b| b.severity.cmp(&a.severity).then(a.expires_at.cmp(&b.expires_at)));
    let just_ended: Vec<&Ask> = asks.iter().filter(|ask| !ask.waits() && waited(ask)).collect();
    let was_open = told.calls.values().any(|mark| mark.waits);

    // What was told of has ended: its message is closed, also where something else waits by now.
    let closes = was_open && !waiting.iter().any(waited) && (style == Style::Updates || waiting.is_empty());
    if closes {
        waiting.clear();
    }
    let mut news = BTreeMap::new();
    let (mut reminded, mut escalated, mut added) = (false, false, false);
    for ask in &waiting {
        let id = || ask.approval.clone();
        match known(ask).filter(|mark| mark.waits) {
            None => {
                added = true;
                news.insert(id(), NotifiedState::Delivered);
            }
            Some(mark) => {
                let more = ask.escalated_at.is_some() && !mark.escalated;
                let again = ask.reminded_at.is_some() && !mark.reminded;
                escalated |= more;
                reminded |= again;
                if more || again {
                    news.insert(id(), NotifiedState::Updated);
                }
            }
        }
    }
    news.extend(just_ended.iter().map(|ask| (ask.approval.clone(), NotifiedState::Closed)));
    if news.is_empty() {
        return Plan::Nothing;
    }
    let before = told.calls.values().filter(|mark| mark.waits).map(|mark| mark.severity).max();
    let rose = added && waiting.iter().map(|ask| ask.severity).max() > before;
    let topic = match () {
        () if closes => Topic::Closed,
        // Also where all that was told of has ended: a message that is only changed interrupts nobody.
        () if !waiting.iter().any(waited) => Topic::Opened,
        () if escalated => Topic::Escalated,
        () if reminded => Topic::Reminded,
        () => Topic::Updated,
    };
    if style == Style::Says {
        let due = match topic {
            Topic::Updated if !added => return Plan::Nothing,
            Topic::Updated if !rose => told.said_at.map(|said| said.after(QUIET)),
            Topic::Closed => just_ended.iter().filter_map(|ask| ask.ended_at).max().map(|last| last.after(LINGER)),
            _ => None,
        };
        if let Some(due) = due.filter(|due| *due > now) {
            return Plan::Later(due);
        }
    }
    let opens = topic == Topic::Opened;
    let mut then = told.clone();
    if opens {
        then.opened += 1;
        then.calls.retain(|id, _| news.contains_key(id));
        let first = waiting.iter().map(|ask| (ask.created_at, &ask.approval)).min();
        then.message = message_id(channel, then.opened, first.map_or("", |(_, id)| id));
        then.said = 0;
        then.handle = None;
    }
    then.said += 1;
    then.said_at = Some(now);
    then.failed = None;
    for ask in waiting.iter().chain(just_ended.iter().copied()) {
        let (escalated, reminded) = (ask.escalated_at.is_some(), ask.reminded_at.is_some());
        let mark = Mark { waits: ask.waits(), escalated, reminded, severity: ask.severity };
        then.calls.insert(ask.approval.clone(), mark);
    }
    forget(&mut then);
    let ended = just_ended.into_iter().cloned().collect();
    Plan::Say(Box::new(Word {
        topic,
        loud: opens || rose || matches!(topic, Topic::Reminded | Topic::Escalated),
        message: then.message.clone(),
        number: then.said,
        waiting,
        ended,
        news,
        then,
    }))
}

/// Keeps what waits and the last that have ended.
fn forget(told: &mut Told) {
    let ended: Vec<String> = told.calls.iter().filter(|(_, mark)| !mark.waits).map(|(id, _)| id.clone()).collect();
    for id in ended.iter().take(ended.len().saturating_sub(KEPT)) {
        told.calls.remove(id);
    }
}

/// The same for every process that would open this message.
fn message_id(channel: &str, opened: u64, first: &str) -> String {
    let mut id = hex::encode(Sha256::digest(format!("{channel}\0{opened}\0{first}")));
    id.truncate(24);
    format!("msg_{id}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::approval::tests::held;
    use crate::approval::{Event, Held};
    use crate::record::ApprovalState;

    const START: i64 = 1_796_000_000_000;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_millis(START).after(Duration::from_secs(seconds))
    }

    fn ask(id: &str, change: impl FnOnce(&mut Held)) -> Ask {
        let mut held = held(id);
        change(&mut held);
        Ask::of(&held, held.call().label.clone())
    }

    fn waits(id: &str) -> Ask {
        ask(id, |_| {})
    }

    fn ended(id: &str, seconds: u64) -> Ask {
        ask(id, |held| held.apply(Event::Cancel { detail: None }, at(seconds)).unwrap())
    }

    /// What is said, and what was told after that.
    fn said(told: &Told, asks: &[Ask], style: Style, seconds: u64) -> Word {
        match plan("c", told, asks, style, at(seconds)) {
            Plan::Say(word) => *word,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_session_has_one_message_that_is_changed_and_closed() {
        use NotifiedState::{Closed, Delivered};
        let told = Told::default();
        assert_eq!(plan("c", &told, &[], Style::Updates, at(0)), Plan::Nothing);
        let first = said(&told, &[waits("1")], Style::Updates, 0);
        assert_eq!((first.topic, first.loud, first.number), (Topic::Opened, true, 1));
        assert_eq!(first.news, BTreeMap::from([("apr_1".to_owned(), Delivered)]));
        assert_eq!(plan("c", &first.then, &[waits("1")], Style::Updates, at(1)), Plan::Nothing, "said once");

        let second = said(&first.then, &[waits("1"), waits("2")], Style::Updates, 2);
        assert_eq!((second.topic, second.loud, second.number), (Topic::Updated, false, 2));
        assert_eq!((&second.message, second.waiting.len()), (&first.message, 2));
        let third = said(&second.then, &[ended("1", 3), waits("2")], Style::Updates, 3);
        assert_eq!((third.topic, third.news), (Topic::Updated, BTreeMap::from([("apr_1".to_owned(), Closed)])));
        let last = said(&third.then, &[ended("2", 4)], Style::Updates, 4);
        assert_eq!((last.topic, last.number, &last.message), (Topic::Closed, 4, &first.message));
        assert_eq!(plan("c", &last.then, &[], Style::Updates, at(9)), Plan::Nothing);

        let other = said(&last.then, &[waits("3")], Style::Updates, 10);
        assert_eq!((other.topic, other.number), (Topic::Opened, 1));
        assert_ne!(other.message, first.message);
    }

    #[test]
    fn a_message_whose_calls_have_ended_is_closed_before_another_is_opened() {
        let first = said(&Told::default(), &[waits("1")], Style::Updates, 0);
        let asks = [ended("1", 1), waits("2")];
        let closed = said(&first.then, &asks, Style::Updates, 1);
        assert_eq!((closed.topic, closed.waiting.len()), (Topic::Closed, 0));
        let opened = said(&closed.then, &[waits("2")], Style::Updates, 1);
        assert_eq!((opened.topic, opened.waiting.len()), (Topic::Opened, 1));
        // What only says things says one thing: that another waits.
        let opened = said(&first.then, &asks, Style::Says, 1);
        assert_eq!((opened.topic, opened.waiting.len(), opened.ended.len()), (Topic::Opened, 1, 1));
    }

    #[test]
    fn what_cannot_be_changed_is_followed_by_another_message_only_after_a_while_or_when_it_is_more_urgent() {
        let first = said(&Told::default(), &[waits("1")], Style::Says, 0);
        let two = [waits("1"), waits("2")];
        let quiet = QUIET.as_secs();
        assert_eq!(plan("c", &first.then, &two, Style::Says, at(1)), Plan::Later(at(quiet)));
        assert_eq!(said(&first.then, &two, Style::Says, quiet).topic, Topic::Updated);
        let urgent = ask("2", |held| held.approval.severity = Severity::High);
        let word = said(&first.then, &[waits("1"), urgent], Style::Says, 1);
        assert_eq!((word.topic, word.loud, word.waiting[0].severity), (Topic::Updated, true, Severity::High));

        let both = said(&first.then, &two, Style::Says, quiet);
        let one_left = [ended("1", quiet + 1), waits("2")];
        assert_eq!(plan("c", &both.then, &one_left, Style::Says, at(quiet + 1)), Plan::Nothing);
        let none_left = [ended("1", quiet + 1), ended("2", quiet + 2)];
        let due = quiet + 2 + LINGER.as_secs();
        assert_eq!(plan("c", &both.then, &none_left, Style::Says, at(quiet + 3)), Plan::Later(at(due)));
        let closed = said(&both.then, &none_left, Style::Says, due);
        assert_eq!((closed.topic, closed.ended.len()), (Topic::Closed, 2));
    }

    #[test]
    fn reminders_and_escalations_are_said_once_and_aloud() {
        for style in [Style::Updates, Style::Says] {
            let first = said(&Told::default(), &[waits("1")], style, 0);
            let reminded = ask("1", |held| held.approval.reminded_at = Some(at(5)));
            let word = said(&first.then, std::slice::from_ref(&reminded), style, 5);
            assert_eq!((word.topic, word.loud), (Topic::Reminded, true));
            assert_eq!(word.news, BTreeMap::from([("apr_1".to_owned(), NotifiedState::Updated)]));
            assert_eq!(plan("c", &word.then, std::slice::from_ref(&reminded), style, at(6)), Plan::Nothing);
            let escalated = Ask { escalated_at: Some(at(7)), ..reminded };
            assert_eq!(said(&word.then, &[escalated], style, 7).topic, Topic::Escalated);
        }
    }

    #[test]
    fn what_was_decided_before_anybody_was_told_is_not_told_and_what_waits_again_is() {
        let gone = Ask { state: ApprovalState::Approved, ..waits("1") };
        assert_eq!(plan("c", &Told::default(), std::slice::from_ref(&gone), Style::Updates, at(0)), Plan::Nothing);
        let first = said(&Told::default(), &[waits("1")], Style::Updates, 0);
        let closed = said(&first.then, &[gone], Style::Updates, 1);
        assert_eq!(said(&closed.then, &[waits("1")], Style::Updates, 2).topic, Topic::Opened);
    }

    #[test]
    fn every_process_gives_a_message_the_same_name_and_few_calls_that_ended_are_kept() {
        let asks = [waits("1"), waits("2")];
        let [one, other] = [0, 9].map(|seconds| said(&Told::default(), &asks, Style::Updates, seconds));
        assert_eq!(one.message, other.message);
        let mut told = one.then;
        for i in 0..40 {
            let more = waits(&format!("x{i}"));
            told = said(&told, &[waits("1"), more.clone()], Style::Updates, 1).then;
            let over = Ask { state: ApprovalState::Rejected, ..more };
            told = said(&told, &[waits("1"), over], Style::Updates, 1).then;
        }
        assert!(told.calls.len() <= KEPT + 2, "{}", told.calls.len());
    }
}

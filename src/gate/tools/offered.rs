//! What one session was offered: a server may show each of its clients other tools, and what one was shown must not
//! pass for what another was.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use serde_json::Value;

use super::super::route::Route;
use super::canonical::digest;
use super::page::{Listed, Odd, Page, Plain};
use super::{Definition, Pins, flags};
use crate::clock::Timestamp;
use crate::store::{Sighting, StoredTool};

/// A list is not read again sooner, whatever its upstream says of how long it is good.
pub const LEAST_AGE: Duration = Duration::from_secs(1);

/// A list is read again after this, whatever its upstream says: what it tells of changes may be lost or withheld.
const GREATEST_AGE: Duration = Duration::from_secs(300);

/// The tools of one session.
#[derive(Debug, Default)]
pub struct Offered {
    known: ArcSwap<HashMap<String, Arc<Definition>>>,
    /// How often it became doubtful what is offered.
    doubts: AtomicU64,
    /// The last list that was read to its end, and until when it counts.
    read: Mutex<Option<(Instant, Asked)>>,
    listing: Mutex<Listing>,
}

/// When, and on which link, a list was asked for: what it says counts on that link only, and until the next doubt.
#[derive(Clone, Debug)]
pub struct Asked {
    link: Weak<Route>,
    doubts: u64,
    at: Instant,
}

/// The list that the client is reading, and what was told of the last one.
#[derive(Debug, Default)]
struct Listing {
    reading: Reading,
    /// What was left out of the lists that the client got; none before the first.
    hidden: Option<BTreeSet<String>>,
}

/// A list that is being read, page by page.
#[derive(Debug, Default)]
pub struct Reading {
    found: HashMap<String, Arc<Definition>>,
    /// What some client could take for the name of something that was left out.
    odd: HashSet<String>,
    /// The cursor of the page that comes next.
    next: Option<String>,
    /// When its first page was asked for; none where its pages do not belong together.
    asked: Option<Asked>,
    /// How long the list is good, as its pages say.
    ttl: Option<Duration>,
}

/// What a page of a list told.
#[derive(Debug)]
pub struct Learned<'a> {
    /// The tools on it as they came, in order; what is not among them must not reach a client.
    pub tools: Vec<(&'a str, String, Arc<Definition>)>,
    /// Definitions that the store does not know so, or has not heard of for long.
    pub sightings: Vec<Sighting>,
    /// What was left out, and why.
    pub odd: Vec<(&'a str, String)>,
}

impl Offered {
    /// The definition of a tool, if it was listed.
    pub fn get(&self, name: &str) -> Option<Arc<Definition>> {
        self.known.load().get(name).cloned()
    }

    /// All that was listed.
    pub(super) fn all(&self) -> Arc<HashMap<String, Arc<Definition>>> {
        self.known.load_full()
    }

    /// What is known may be offered no longer: look again before the next call.
    pub fn mark_stale(&self) {
        self.doubts.fetch_add(1, Ordering::AcqRel);
    }

    /// Doubts what is known where others were offered something else by now.
    pub(super) fn compare(&self, offered: &[StoredTool]) {
        let known = self.known.load();
        let is_other = |tool: &StoredTool| known.get(&tool.name).is_some_and(|known| known.digest != tool.offered);
        if offered.iter().any(is_other) {
            self.mark_stale();
        }
    }

    /// A list is asked for now on that link; a doubt from here on is about it too.
    pub fn asked(&self, link: &Arc<Route>) -> Asked {
        Asked { link: Arc::downgrade(link), doubts: self.doubts.load(Ordering::Acquire), at: Instant::now() }
    }

    /// Whether what is known is what that link offers: it was read there, not too long ago, and nothing says that it has
    /// changed since.
    pub fn is_fresh(&self, link: &Arc<Route>) -> bool {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.asked(link);
        read.as_ref().is_some_and(|(until, asked)| asked.is_of(&now) && now.at < *until)
    }

    /// Learns from a page that the client asked for; `cursor` says where it starts.
    pub(super) fn heard<'a>(
        &self,
        pins: &Pins,
        page: Page<'a>,
        cursor: Option<&str>,
        asked: Option<Asked>,
        now: Timestamp,
    ) -> Learned<'a> {
        self.learn(pins, &mut self.listing().reading, page, cursor, asked, now)
    }

    /// Learns from a page of a list, `asked` for as it says. The last one of a list makes the list all that there is: what
    /// was withdrawn is not known any more.
    pub fn learn<'a>(
        &self,
        pins: &Pins,
        reading: &mut Reading,
        page: Page<'a>,
        cursor: Option<&str>,
        asked: Option<Asked>,
        now: Timestamp,
    ) -> Learned<'a> {
        if cursor.is_none() {
            *reading = Reading { asked: asked.clone(), ..Reading::default() };
        }
        reading.asked = reading.asked.take().filter(|first| asked.is_some_and(|asked| first.is_of(&asked)));
        reading.ttl = reading.ttl.into_iter().chain(page.ttl).min();
        let in_order = cursor.is_none_or(|cursor| reading.next.as_deref() == Some(cursor));
        let whole = in_order && page.next.is_none();
        if in_order {
            reading.next = page.next;
        }
        let (plain, odd) = reading.sorted(page.tools);
        let mut sightings = unread(&odd);
        let mut fresh = HashMap::new();
        for (name, tool, text) in by_name(&plain) {
            let mut hash = digest(&text);
            match reading.found.get(name) {
                // Another page has another tool of that name.
                Some(before) if before.digest != hash => hash = digest(&format!("{}{hash}", before.digest)),
                _ => {}
            }
            fresh.insert(name.to_owned(), pins.definition(name, tool, hash.clone()));
            let suspect = !pins.is_known(name, &hash, now) && !flags::flags(tool).is_empty();
            sightings.push(Sighting { name: name.to_owned(), digest: hash, definition: text, suspect });
        }
        sightings.retain(|sighting| !pins.is_known(&sighting.name, &sighting.digest, now));
        reading.found.extend(fresh.iter().map(|(name, definition)| (name.clone(), Arc::clone(definition))));
        self.take(reading, whole);
        let with_definition = |tool: Plain<'a>| Some((tool.raw, fresh.get(&tool.name).cloned()?, tool.name));
        let tools =
            plain.into_iter().filter_map(with_definition).map(|(raw, definition, name)| (raw, name, definition));
        Learned { tools: tools.collect(), sightings, odd: odd.into_iter().map(|odd| (odd.raw, odd.why)).collect() }
    }

    /// Knows what was found, and of a whole list nothing else.
    fn take(&self, reading: &Reading, whole: bool) {
        self.known.rcu(|known| {
            let mut next = if whole { HashMap::new() } else { HashMap::clone(known) };
            next.extend(reading.found.iter().map(|(name, definition)| (name.clone(), Arc::clone(definition))));
            next.retain(|name, _| !reading.odd.contains(name));
            next
        });
        if whole {
            let good_for = reading.ttl.unwrap_or(GREATEST_AGE).clamp(LEAST_AGE, GREATEST_AGE);
            let until = |asked: Asked| (asked.at + good_for, asked);
            *self.read.lock().unwrap_or_else(PoisonError::into_inner) = reading.asked.clone().map(until);
        }
    }

    /// The client got a list without these.
    pub(super) fn listed_without(&self, hidden: BTreeSet<String>) {
        self.listing().hidden = Some(hidden);
    }

    /// Whether a list without these would be another than the client's last one. There is none to compare before the
    /// first.
    pub(super) fn would_list_without(&self, hidden: BTreeSet<String>) -> bool {
        let mut listing = self.listing();
        let differs = listing.hidden.as_ref().is_some_and(|before| *before != hidden);
        if differs {
            listing.hidden = Some(hidden);
        }
        differs
    }

    fn listing(&self) -> MutexGuard<'_, Listing> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Asked {
    /// Whether both were asked on one link, with no doubt between them.
    fn is_of(&self, other: &Self) -> bool {
        self.link.ptr_eq(&other.link) && self.doubts == other.doubts
    }
}

impl Reading {
    /// The tools of a page, and what is left out of it.
    fn sorted<'a>(&mut self, listed: Vec<Listed<'a>>) -> (Vec<Plain<'a>>, Vec<Odd<'a>>) {
        let (mut plain, mut odd) = (Vec::new(), Vec::new());
        for listed in listed {
            match listed {
                Listed::Tool(tool) => plain.push(tool),
                Listed::Odd(element) => {
                    self.odd.extend(element.names.iter().cloned());
                    odd.push(element);
                }
            }
        }
        // Whoever calls such a name may mean the one that cannot be read.
        let (plain, doubtful): (Vec<_>, Vec<_>) = plain.into_iter().partition(|tool| !self.odd.contains(&tool.name));
        odd.extend(doubtful.into_iter().map(|tool| Odd {
            raw: tool.raw,
            names: BTreeSet::from([tool.name]),
            why: "something else in the list, which cannot be read, bears its name".to_owned(),
        }));
        (plain, odd)
    }
}

/// For people: what is left out, by the names that it could have.
fn unread(odd: &[Odd<'_>]) -> Vec<Sighting> {
    let mut texts = BTreeMap::<&str, String>::new();
    for element in odd {
        for name in &element.names {
            texts.entry(name).or_default().push_str(element.raw);
        }
    }
    let sighting = |(name, raw): (&str, String)| Sighting {
        name: name.to_owned(),
        digest: digest(&raw),
        definition: Value::from(raw).to_string(),
        suspect: true,
    };
    texts.into_iter().map(sighting).collect()
}

/// The tools of a page with their texts, each name once.
fn by_name<'p>(tools: &'p [Plain<'_>]) -> Vec<(&'p str, &'p Value, String)> {
    let mut named: Vec<(&str, &Value, String)> = Vec::new();
    for tool in tools {
        match named.iter_mut().find(|(name, _, before)| *name == tool.name && *before != tool.text) {
            // Two tools of one name: the client may take either.
            Some((_, last, both)) => (*last, *both) = (&tool.tool, format!("[{both},{}]", tool.text)),
            None => named.push((&tool.name, &tool.tool, tool.text.clone())),
        }
    }
    named
}

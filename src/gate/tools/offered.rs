//! What one session was offered: a server may show each of its clients other tools, and what one was shown must not
//! pass for what another was.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::canonical::{canonical, digest};
use super::{Definition, Pins, flags, is_name};
use crate::clock::Timestamp;
use crate::store::Sighting;

/// The tools of one session.
#[derive(Debug, Default)]
pub struct Offered {
    known: ArcSwap<HashMap<String, Arc<Definition>>>,
    stale: AtomicBool,
    listing: Mutex<Listing>,
}

/// The list that is being read, page by page, and what was told of the last one.
#[derive(Debug, Default)]
struct Listing {
    /// The digests of the pages so far.
    digests: HashMap<String, String>,
    /// What was left out of the lists that the client got; none before the first.
    hidden: Option<BTreeSet<String>>,
}

/// What a page of a list told.
#[derive(Debug, Default)]
pub struct Learned {
    /// The next page's cursor.
    pub next: Option<String>,
    /// Definitions that the store does not know so, or has not heard of for long.
    pub sightings: Vec<Sighting>,
}

/// A page of `tools/list`, its tools as they came.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(borrow)]
    pub tools: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor")]
    next: Option<String>,
}

/// The name of a tool in a list; the last, as most parsers read it, where there are several.
pub(super) fn name(tool: &Value) -> Option<&str> {
    tool.get("name").and_then(Value::as_str)
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

    /// The upstream said that its list changed: look again before the next call.
    pub fn mark_stale(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// Whether the list must be read again.
    pub fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }

    /// The list is being read now; a change from here on marks it again.
    pub fn mark_fresh(&self) {
        self.stale.store(false, Ordering::Release);
    }

    /// Learns from the `result` of a `tools/list`; `first` for a list's first page.
    pub fn learn(&self, pins: &Pins, result: &str, first: bool, now: Timestamp) -> Learned {
        let Ok(page) = serde_json::from_str::<Page<'_>>(result) else { return Learned::default() };
        let mut listed: Vec<(String, Value, String)> = Vec::new();
        for raw in page.tools {
            let Ok(tool) = serde_json::from_str::<Value>(raw.get()) else { continue };
            let Some(name) = name(&tool).filter(|name| is_name(name)).map(str::to_owned) else { continue };
            let text = canonical(raw.get());
            match listed.iter_mut().find(|(known, _, before)| *known == name && *before != text) {
                // Two tools of one name: the client may take either.
                Some((_, last, both)) => (*last, *both) = (tool, format!("[{both},{text}]")),
                None => listed.push((name, tool, text)),
            }
        }
        let mut listing = self.listing();
        if first {
            listing.digests.clear();
        }
        let (mut sightings, mut fresh) = (Vec::new(), Vec::new());
        for (name, tool, text) in listed {
            let mut hash = digest(&text);
            match listing.digests.get(&name) {
                // Another page has another tool of that name.
                Some(before) if *before != hash => hash = digest(&format!("{before}{hash}")),
                _ => {}
            }
            listing.digests.insert(name.clone(), hash.clone());
            if !pins.is_known(&name, &hash, now) {
                let suspect = !flags::flags(&tool).is_empty();
                sightings.push(Sighting { name: name.clone(), digest: hash.clone(), definition: text, suspect });
            }
            if self.get(&name).is_none_or(|known| known.digest != hash) {
                let definition = pins.definition(&name, &tool, hash);
                fresh.push((name, definition));
            }
        }
        if !fresh.is_empty() {
            self.known.rcu(|known| {
                let mut next = HashMap::clone(known);
                next.extend(fresh.iter().cloned());
                next
            });
        }
        Learned { next: page.next, sightings }
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

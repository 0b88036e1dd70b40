//! What came of a replay: calls counted by what changes for them, each kind with its first example.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;

use super::{Place, fault};
use crate::audit::verify::Fault;
use crate::clock::Timestamp;
use crate::policy::Rejudged;
use crate::record::Verdict;

/// What a policy changes for the calls of a log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The policy's version.
    pub policy: String,
    /// All that the filter wanted: the sum of the next five.
    pub calls: u64,
    /// The verdict stays.
    pub unchanged: u64,
    /// The verdict is surely looser.
    pub looser: u64,
    /// The verdict is surely stricter.
    pub stricter: u64,
    /// The verdict hangs on what the log does not tell.
    pub doubtful: u64,
    /// The log does not tell what was judged.
    pub not_judged: u64,
    /// Of the doubtful and those not judged, how many may be looser.
    pub may_be_looser: u64,
    /// The changes: the looser ones first, then the most frequent.
    pub changes: Vec<Change>,
    /// The doubtful calls: those that may be looser first.
    pub doubts: Vec<Doubtful>,
    /// Those not judged.
    pub unjudged: Vec<NotJudged>,
    /// Broken lines and chains: what they held was not judged.
    pub faults: Vec<Fault>,
    /// Last lines that are cut off, as a gateway leaves one that is killed or copied while it writes: left out.
    pub cut_off: Vec<Fault>,
}

/// One kind of change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Change {
    /// What was said; of a call that a limit held, what was said but for that.
    pub before: Verdict,
    /// Who said so.
    pub before_by: Vec<String>,
    /// What would be said.
    pub after: Verdict,
    /// Who would say so.
    pub after_by: Vec<String>,
    /// How many calls.
    pub count: u64,
    /// The first.
    pub example: Example,
}

/// One kind of doubt.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Doubtful {
    /// What was said.
    pub before: Verdict,
    /// Who said so.
    pub before_by: Vec<String>,
    /// The loosest that may be said.
    pub loosest: Verdict,
    /// Who would say so.
    pub loosest_by: Vec<String>,
    /// The strictest that may be said.
    pub strictest: Verdict,
    /// Who would say so.
    pub strictest_by: Vec<String>,
    /// What it hangs on.
    pub why: Vec<String>,
    /// How many calls.
    pub count: u64,
    /// The first.
    pub example: Example,
}

/// Calls that cannot be judged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NotJudged {
    /// What was said.
    pub before: Verdict,
    /// Why they are not.
    pub why: String,
    /// How many calls.
    pub count: u64,
    /// The first.
    pub example: Example,
}

/// A call of the log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Example {
    /// The file's name in the folder.
    pub file: String,
    /// Its line, from 1.
    pub line: u64,
    /// Its id.
    pub call: String,
    /// When it was received.
    pub at: Timestamp,
    /// Who made it.
    pub agent: String,
    /// What it was, in one line.
    pub label: String,
}

/// How many of a kind, and the first of them.
struct Kind {
    count: u64,
    place: Place,
    example: Example,
}

type Kinds<K> = HashMap<K, Kind>;

/// Counts while a log is read.
#[derive(Default)]
pub(super) struct Tally {
    unchanged: u64,
    changes: Kinds<(Verdict, Vec<String>, Verdict, Vec<String>)>,
    doubts: Kinds<(Verdict, Vec<String>, Rejudged)>,
    unjudged: Kinds<(Verdict, &'static str)>,
    faults: Vec<(Place, Fault)>,
    cut_off: Vec<(Place, Fault)>,
}

impl Tally {
    /// A call that was judged again.
    pub fn judged(
        &mut self,
        at: Place,
        before: Verdict,
        before_by: &[String],
        after: Rejudged,
        example: impl FnOnce() -> Example,
    ) {
        match (after.strictest, after.loosest) {
            (same, loosest) if same == before && loosest == before => self.unchanged += 1,
            (sure, loosest) if sure == loosest => {
                count(&mut self.changes, (before, before_by.to_vec(), sure, after.strictest_by), at, example);
            }
            _ => count(&mut self.doubts, (before, before_by.to_vec(), after), at, example),
        }
    }

    /// A call that was judged with the same policy.
    pub fn same(&mut self) {
        self.unchanged += 1;
    }

    /// A call that cannot be judged.
    pub fn not_judged(&mut self, at: Place, before: Verdict, why: &'static str, example: impl FnOnce() -> Example) {
        count(&mut self.unjudged, (before, why), at, example);
    }

    /// A line that cannot be read.
    pub fn fault(&mut self, at: Place, fault: Fault) {
        self.faults.push((at, fault));
    }

    /// A last line without its end.
    pub fn cut_off(&mut self, at: Place, file: &str) {
        self.cut_off.push((at, fault(file, at.line, "the line is cut off")));
    }

    /// Adds what another thread has counted.
    pub fn add(&mut self, other: Self) {
        self.unchanged += other.unchanged;
        merge(&mut self.changes, other.changes);
        merge(&mut self.doubts, other.doubts);
        merge(&mut self.unjudged, other.unjudged);
        self.faults.extend(other.faults);
        self.cut_off.extend(other.cut_off);
    }

    /// The whole, with what is wrong with the chains.
    pub fn report(self, policy: &str, chains: Vec<Fault>) -> Report {
        let mut changes: Vec<(Place, Change)> = self.changes.into_iter().map(change).collect();
        changes.sort_by_key(|(place, change)| (change.after > change.before, u64::MAX - change.count, *place));
        let changes: Vec<Change> = changes.into_iter().map(|(_, change)| change).collect();
        let mut doubts: Vec<(Place, Doubtful)> = self.doubts.into_iter().map(doubtful).collect();
        doubts.sort_by_key(|(place, doubt)| (doubt.loosest >= doubt.before, u64::MAX - doubt.count, *place));
        let doubts: Vec<Doubtful> = doubts.into_iter().map(|(_, doubt)| doubt).collect();
        let mut unjudged: Vec<(Place, NotJudged)> = self.unjudged.into_iter().map(not_judged).collect();
        unjudged.sort_by_key(|(place, _)| *place);
        let unjudged: Vec<NotJudged> = unjudged.into_iter().map(|(_, unjudged)| unjudged).collect();

        let changed = |looser: bool| {
            changes.iter().filter(|change| (change.after < change.before) == looser).map(|change| change.count).sum()
        };
        let (looser, stricter) = (changed(true), changed(false));
        let doubtful = doubts.iter().map(|doubt| doubt.count).sum();
        let not_judged = unjudged.iter().map(|unjudged| unjudged.count).sum();
        let doubts_looser = doubts.iter().filter(|doubt| doubt.loosest < doubt.before).map(|doubt| doubt.count);
        let unjudged_looser = unjudged.iter().filter(|kind| kind.before > Verdict::Allow).map(|kind| kind.count);
        let may_be_looser = doubts_looser.chain(unjudged_looser).sum();
        let cut_off = in_order(self.cut_off);
        let mut faults = in_order(self.faults);
        let same = |one: &Fault, other: &Fault| one.file == other.file && one.line == other.line;
        let is_known = |fault: &Fault| cut_off.iter().chain(&faults).any(|known| same(known, fault));
        let chains: Vec<Fault> = chains.into_iter().filter(|fault| !is_known(fault)).collect();
        faults.extend(chains);
        Report {
            policy: policy.to_owned(),
            calls: self.unchanged + looser + stricter + doubtful + not_judged,
            unchanged: self.unchanged,
            looser,
            stricter,
            doubtful,
            not_judged,
            may_be_looser,
            changes,
            doubts,
            unjudged,
            faults,
            cut_off,
        }
    }
}

fn count<K: Eq + Hash>(kinds: &mut Kinds<K>, key: K, place: Place, example: impl FnOnce() -> Example) {
    kinds.entry(key).or_insert_with(|| Kind { count: 0, place, example: example() }).count += 1;
}

fn merge<K: Eq + Hash>(kinds: &mut Kinds<K>, others: Kinds<K>) {
    for (key, other) in others {
        match kinds.remove(&key) {
            None => drop(kinds.insert(key, other)),
            Some(one) => {
                let count = one.count + other.count;
                let first = if one.place < other.place { one } else { other };
                kinds.insert(key, Kind { count, ..first });
            }
        }
    }
}

fn in_order(mut faults: Vec<(Place, Fault)>) -> Vec<Fault> {
    faults.sort_by_key(|(place, _)| *place);
    faults.into_iter().map(|(_, fault)| fault).collect()
}

fn change(
    ((before, before_by, after, after_by), kind): ((Verdict, Vec<String>, Verdict, Vec<String>), Kind),
) -> (Place, Change) {
    (kind.place, Change { before, before_by, after, after_by, count: kind.count, example: kind.example })
}

fn doubtful(((before, before_by, after), kind): ((Verdict, Vec<String>, Rejudged), Kind)) -> (Place, Doubtful) {
    let Rejudged { strictest, strictest_by, loosest, loosest_by, doubts } = after;
    let why = doubts.into_iter().map(str::to_owned).collect();
    let (count, example) = (kind.count, kind.example);
    (kind.place, Doubtful { before, before_by, loosest, loosest_by, strictest, strictest_by, why, count, example })
}

fn not_judged(((before, why), kind): ((Verdict, &'static str), Kind)) -> (Place, NotJudged) {
    (kind.place, NotJudged { before, why: why.to_owned(), count: kind.count, example: kind.example })
}

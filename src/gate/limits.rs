//! Limits of allows: what a call takes is taken before anything is sent, and given back if it did not run.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock as _, MonotonicClock};
use governor::{Quota, RateLimiter};

use super::Gate;
use super::forward::Ended;
use crate::policy::{Charge, Period, Then};
use crate::store::{Charged, StoreError, Taken};

/// How many counters one rate keeps; they are of what clients say, and must not fill the memory.
const COUNTERS: usize = 100_000;

type Limiter = governor::DefaultKeyedRateLimiter<String>;

/// Calls per second and minute, counted by this process for itself.
#[derive(Default)]
pub struct Rates {
    limiters: Mutex<HashMap<(Period, NonZeroU32), Arc<Limiter>>>,
}

impl Rates {
    /// Counts a call.
    ///
    /// # Errors
    /// It is over the limit, for so long.
    fn take(&self, period: Period, calls: NonZeroU32, key: &String) -> Result<(), Duration> {
        let limiter = {
            let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(limiters.entry((period, calls)).or_insert_with(|| Arc::new(limiter(period, calls))))
        };
        if limiter.len() >= COUNTERS {
            limiter.retain_recent();
            if limiter.len() >= COUNTERS {
                return Err(period.length());
            }
        }
        limiter.check_key(key).map_err(|early| early.wait_time_from(MonotonicClock.now()))
    }

    /// Forgets counters that are as good as new.
    pub fn tidy(&self) {
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        limiters.retain(|_, limiter| {
            limiter.retain_recent();
            !limiter.is_empty()
        });
    }
}

/// So many calls at once, after which they come back one by one over the period.
fn limiter(period: Period, calls: NonZeroU32) -> Limiter {
    let quota = if period == Period::Second { Quota::per_second(calls) } else { Quota::per_minute(calls) };
    RateLimiter::keyed(quota)
}

/// What became of a call's charges.
pub enum Reserved {
    /// The call may run.
    Taken(Vec<Taken>),
    /// It is over limits, all of which ask.
    Asks(Vec<Charge>),
    /// It is over a limit that rejects.
    Over(Over),
    /// The store does not work.
    Broken(StoreError),
}

/// A limit that a call is over.
pub struct Over {
    /// The sentence for the model and the record.
    pub why: String,
    /// After which time the call may run; none if waiting does not help.
    pub wait: Option<Duration>,
}

impl Gate {
    /// Takes all charges of a call that is about to run, or none. Those whose [`Charge::label`] is among `approved` are
    /// taken whatever their limits say.
    pub(super) async fn reserve(&self, charges: &[Charge], approved: &[String]) -> Reserved {
        let mut over = Vec::new();
        let mut stored = Vec::new();
        for charge in charges {
            let known = approved.contains(&charge.label());
            match charge.rate.filter(|_| charge.amount.is_some()) {
                Some(calls) => match self.rates.take(charge.period, calls, &charge.key) {
                    Err(wait) if !known => over.push((charge.clone(), Some(wait))),
                    _ => {}
                },
                None => stored.push((charge.clone(), known)),
            }
        }
        if over.is_empty() && stored.is_empty() {
            return Reserved::Taken(Vec::new());
        }
        // What a rate refuses needs no transaction.
        if over.is_empty() {
            match self.store.charge(stored.clone()).await {
                Ok(Charged::Taken(taken)) => return Reserved::Taken(taken),
                Ok(Charged::Over(places)) => {
                    let found = places.into_iter().filter_map(|(at, wait)| Some((stored.get(at)?.0.clone(), wait)));
                    over.extend(found);
                }
                Err(error) => {
                    self.store_failed(&error);
                    return Reserved::Broken(error);
                }
            }
        }
        let asks = |(charge, _): &(Charge, Option<Duration>)| charge.then == Then::Ask;
        if over.iter().all(asks) {
            return Reserved::Asks(over.into_iter().map(|(charge, _)| charge).collect());
        }
        over.retain(|found| !asks(found));
        let why: Vec<String> = over.iter().map(|(charge, wait)| sentence(charge, *wait)).collect();
        let wait = over.iter().map(|(_, wait)| *wait).reduce(|one, other| Some(one?.max(other?))).flatten();
        Reserved::Over(Over { why: why.join("; "), wait })
    }

    /// Gives back what was taken for a call that surely did not run. What could not be given back stays counted.
    pub(super) async fn settle_limits(&self, taken: Vec<Taken>, ended: &Ended) {
        let sent = match ended {
            Ended::Answered(_) | Ended::Stopped(_) => true,
            Ended::Broke(error) => error.may_have_run,
            Ended::Unsent(_) => false,
        };
        if !sent {
            self.give_back(taken).await;
        }
    }

    /// Gives back what was taken for a call that will not run.
    pub(super) async fn give_back(&self, taken: Vec<Taken>) {
        if taken.is_empty() {
            return;
        }
        if let Err(error) = self.store.give_back(taken).await {
            self.store_failed(&error);
        }
    }
}

fn sentence(charge: &Charge, wait: Option<Duration>) -> String {
    let Charge { rule, words, .. } = charge;
    let again = wait.map(|wait| format!("; there is more room in {}", rounded(wait))).unwrap_or_default();
    match &charge.amount {
        None => format!(
            "the limit of rule `{rule}` ({words}) cannot be kept: what it counts is missing, or no number of at least 0"
        ),
        Some(amount) if *amount > charge.max => format!("{amount} is over the limit of rule `{rule}` ({words})"),
        Some(_) => format!("it is over the limit of rule `{rule}` ({words}){again}"),
    }
}

/// A time span for people, never less than it is.
fn rounded(wait: Duration) -> String {
    let seconds = wait.as_millis().div_ceil(1000);
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h", seconds.div_ceil(3_600)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn a_rate_lets_as_many_calls_pass_and_tells_how_long_to_wait() {
        let rates = Rates::default();
        let calls = NonZeroU32::new(3).unwrap();
        for _ in 0..3 {
            rates.take(Period::Minute, calls, &"a".to_owned()).unwrap();
        }
        let wait = rates.take(Period::Minute, calls, &"a".to_owned()).unwrap_err();
        assert!((Duration::from_secs(15)..=Duration::from_secs(20)).contains(&wait), "{wait:?}");
        rates.take(Period::Minute, calls, &"b".to_owned()).unwrap();
        rates.take(Period::Second, calls, &"a".to_owned()).unwrap();
    }

    #[test]
    fn counters_do_not_fill_the_memory() {
        let rates = Rates::default();
        let often = NonZeroU32::new(1_000_000_000).unwrap();
        rates.take(Period::Second, often, &"a".to_owned()).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        rates.tidy();
        assert!(rates.limiters.lock().unwrap().is_empty());
        let rarely = NonZeroU32::MIN;
        for key in 0..COUNTERS {
            rates.take(Period::Minute, rarely, &key.to_string()).unwrap();
        }
        assert!(rates.take(Period::Minute, rarely, &"more".to_owned()).is_err());
        assert_eq!(rates.limiters.lock().unwrap()[&(Period::Minute, rarely)].len(), COUNTERS);
    }
}

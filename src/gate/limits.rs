//! Limits of allows: what a call takes is taken before anything is sent, and given back if it did not run.

use std::collections::HashMap;
use std::convert::Infallible;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock as _, MonotonicClock};
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::{DashMapStateStore, ShrinkableKeyedStateStore};
use governor::{Quota, RateLimiter};

use super::Gate;
use super::forward::Ended;
use crate::policy::{Charge, Period, Then};
use crate::store::{Charged, StoreError, Taken};

/// How many counters one rate keeps; they are of what clients say, and must not fill the memory.
const COUNTERS: usize = 100_000;

type Limiter = RateLimiter<String, Counters, MonotonicClock, NoOpMiddleware>;

/// The counters of one rate, within reach also of what gives back.
#[derive(Clone, Default)]
struct Counters(Arc<DashMapStateStore<String>>);

impl StateStore for Counters {
    type Key = String;

    fn measure_and_replace<T, F, E>(&self, key: &String, f: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        self.0.measure_and_replace(key, f)
    }
}

impl ShrinkableKeyedStateStore<String> for Counters {
    fn retain_recent(&self, drop_below: Nanos) {
        self.0.retain_recent(drop_below);
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// So many calls at once, after which they come back one by one over the period (GCRA).
struct Rate {
    limiter: Limiter,
    counters: Counters,
    /// After which time one more call comes back.
    each: Nanos,
}

/// Calls per second and minute, counted by this process for itself.
#[derive(Default)]
pub struct Rates {
    rates: Mutex<HashMap<(Period, NonZeroU32), Arc<Rate>>>,
}

/// One call of a rate, to be given back if it did not run.
struct Cell {
    rate: Arc<Rate>,
    key: String,
}

impl Rates {
    /// Counts a call.
    ///
    /// # Errors
    /// It is over the limit, for so long.
    fn take(&self, period: Period, calls: NonZeroU32, key: &String) -> Result<Cell, Duration> {
        let rate = {
            let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(rates.entry((period, calls)).or_insert_with(|| Arc::new(Rate::new(period, calls))))
        };
        let limiter = &rate.limiter;
        if limiter.len() >= COUNTERS {
            limiter.retain_recent();
            if limiter.len() >= COUNTERS {
                return Err(period.length());
            }
        }
        limiter.check_key(key).map_err(|early| early.wait_time_from(MonotonicClock.now()))?;
        Ok(Cell { rate, key: key.clone() })
    }

    /// Forgets counters that are as good as new.
    pub fn tidy(&self) {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.retain(|_, rate| {
            rate.limiter.retain_recent();
            !rate.limiter.is_empty()
        });
    }
}

impl Rate {
    fn new(period: Period, calls: NonZeroU32) -> Self {
        let quota = if period == Period::Second { Quota::per_second(calls) } else { Quota::per_minute(calls) };
        let (counters, each) = (Counters::default(), quota.replenish_interval().into());
        Self { limiter: RateLimiter::new(quota, counters.clone(), MonotonicClock), counters, each }
    }
}

impl Cell {
    /// As if it had not been taken: what a counter holds is when it is as good as new.
    fn give_back(&self) {
        let Ok(()) = self.rate.counters.measure_and_replace(&self.key, |full| {
            Ok::<_, Infallible>(((), full.unwrap_or(Nanos::from(0)).saturating_sub(self.rate.each)))
        });
    }
}

/// What a call has taken of limits.
#[derive(Default)]
pub struct Room {
    cells: Vec<Cell>,
    stored: Vec<Taken>,
}

/// What became of a call's charges.
pub enum Reserved {
    /// The call may run.
    Taken(Room),
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
        let mut room = Room::default();
        let mut over = Vec::new();
        let mut stored = Vec::new();
        for charge in charges {
            let known = approved.contains(&charge.label());
            match charge.rate.filter(|_| charge.amount.is_some()) {
                Some(calls) => match self.rates.take(charge.period, calls, &charge.key) {
                    Ok(cell) => room.cells.push(cell),
                    Err(_) if known => {}
                    Err(wait) => over.push((charge.clone(), Some(wait))),
                },
                None => stored.push((charge.clone(), known)),
            }
        }
        if over.is_empty() && stored.is_empty() {
            return Reserved::Taken(room);
        }
        // What a rate refuses needs no transaction.
        if over.is_empty() {
            match self.store.charge(stored.clone()).await {
                Ok(Charged::Taken(taken)) => return Reserved::Taken(Room { stored: taken, ..room }),
                Ok(Charged::Over(places)) => {
                    let found = places.into_iter().filter_map(|(at, wait)| Some((stored.get(at)?.0.clone(), wait)));
                    over.extend(found);
                }
                Err(error) => {
                    room.cells.iter().for_each(Cell::give_back);
                    self.store_failed(&error);
                    return Reserved::Broken(error);
                }
            }
        }
        room.cells.iter().for_each(Cell::give_back);
        let asks = |(charge, _): &(Charge, Option<Duration>)| charge.then == Then::Ask;
        if over.iter().all(asks) {
            return Reserved::Asks(over.into_iter().map(|(charge, _)| charge).collect());
        }
        over.retain(|found| !asks(found));
        let mut why: Vec<String> = over.iter().map(|(charge, wait)| sentence(charge, *wait)).collect();
        why.dedup();
        let wait = over.iter().map(|(_, wait)| *wait).reduce(|one, other| Some(one?.max(other?))).flatten();
        Reserved::Over(Over { why: why.join("; "), wait })
    }

    /// Gives back what was taken for a call that surely did not run. What could not be given back stays counted.
    pub(super) async fn settle_limits(&self, taken: Room, ended: &Ended) {
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
    pub(super) async fn give_back(&self, taken: Room) {
        taken.cells.iter().for_each(Cell::give_back);
        if taken.stored.is_empty() {
            return;
        }
        if let Err(error) = self.store.give_back(taken.stored).await {
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
            rates.take(Period::Minute, calls, &"a".to_owned()).ok().unwrap();
        }
        let wait = rates.take(Period::Minute, calls, &"a".to_owned()).err().unwrap();
        assert!((Duration::from_secs(15)..=Duration::from_secs(20)).contains(&wait), "{wait:?}");
        rates.take(Period::Minute, calls, &"b".to_owned()).ok().unwrap();
        rates.take(Period::Second, calls, &"a".to_owned()).ok().unwrap();
    }

    #[test]
    fn what_is_given_back_can_be_taken_again_once() {
        let rates = Rates::default();
        let calls = NonZeroU32::new(3).unwrap();
        let take = || rates.take(Period::Minute, calls, &"a".to_owned());
        let cells: Vec<Cell> = (0..3).map(|_| take().ok().unwrap()).collect();
        assert!(take().is_err());
        cells[0].give_back();
        cells[2].give_back();
        assert!(take().is_ok() && take().is_ok());
        assert!(take().is_err(), "two were given back");
        // Given back to a counter that is as good as new, it makes no more room than that.
        let one = rates.take(Period::Minute, calls, &"b".to_owned()).ok().unwrap();
        for _ in 0..3 {
            one.give_back();
        }
        let again = (0..10).filter(|_| rates.take(Period::Minute, calls, &"b".to_owned()).is_ok()).count();
        assert_eq!(again, 3);
    }

    #[test]
    fn counters_do_not_fill_the_memory() {
        let rates = Rates::default();
        let often = NonZeroU32::new(1_000_000_000).unwrap();
        rates.take(Period::Second, often, &"a".to_owned()).ok().unwrap();
        std::thread::sleep(Duration::from_millis(2));
        rates.tidy();
        assert!(rates.rates.lock().unwrap().is_empty());
        let rarely = NonZeroU32::MIN;
        for key in 0..COUNTERS {
            rates.take(Period::Minute, rarely, &key.to_string()).ok().unwrap();
        }
        assert!(rates.take(Period::Minute, rarely, &"more".to_owned()).is_err());
        assert_eq!(rates.rates.lock().unwrap()[&(Period::Minute, rarely)].limiter.len(), COUNTERS);
    }
}

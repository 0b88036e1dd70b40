//! Counters of limits, one for each period, shared by all processes: read and raised in one transaction.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use super::held::Tables;
use crate::policy::{Charge, Decimal};
use crate::store::{Charged, StoreError, Taken};

impl Tables<'_> {
    /// Takes all charges, or none if one is over its limit. The second of a pair says that the charge is taken even over
    /// the limit: a human approved it.
    pub(in crate::store) fn charge(&self, charges: &[(Charge, bool)]) -> Result<Charged, StoreError> {
        let (mut taken, mut over): (Vec<(Taken, Decimal)>, Vec<_>) = (Vec::new(), Vec::new());
        for (at, (charge, approved)) in charges.iter().enumerate() {
            let ends = charge.period.end(self.now);
            // A call within a call may take of the same counter.
            let before = taken.iter().rfind(|(taken, _)| taken.key == charge.key && taken.ends == ends);
            let total = match before {
                Some((_, raised)) => raised.clone(),
                None => self.total(&charge.key, ends.as_millis())?,
            };
            let fits = charge.amount.as_ref().and_then(|amount| {
                let raised = total.plus(amount).filter(|raised| *raised <= charge.max)?;
                Some((raised, amount.clone()))
            });
            // What cannot be added up takes all there is.
            let forced = || {
                let amount = charge.amount.as_ref().filter(|amount| amount.is_countable());
                let amount = amount.unwrap_or(&charge.max).clone();
                Some((total.plus(&amount)?, amount))
            };
            match fits.or_else(|| if *approved { forced() } else { None }) {
                Some((raised, amount)) => {
                    taken.push((Taken { key: charge.key.clone(), ends, amount }, raised));
                }
                None => over.push((at, charge.can_wait().then(|| ends.since(self.now)))),
            }
        }
        if !over.is_empty() {
            return Ok(Charged::Over(over));
        }
        for (taken, raised) in &taken {
            self.set_total(&taken.key, taken.ends.as_millis(), raised)?;
        }
        Ok(Charged::Taken(taken.into_iter().map(|(taken, _)| taken).collect()))
    }

    /// Gives back what was taken for a call that did not run, as far as its period is still counted.
    pub(in crate::store) fn give_back(&self, taken: &[Taken]) -> Result<(), StoreError> {
        for Taken { key, ends, amount } in taken {
            if let Some(left) = self.total(key, ends.as_millis())?.minus(amount) {
                self.set_total(key, ends.as_millis(), &left)?;
            }
        }
        Ok(())
    }

    /// Removes the counters of periods that are over.
    pub(super) fn forget_counters(&self) -> Result<(), StoreError> {
        // A clock that is set back a little must not find a fresh counter.
        let kept = i64::try_from(Duration::from_secs(3_600).as_millis()).unwrap_or(i64::MAX);
        let oldest = self.now.as_millis().saturating_sub(kept);
        self.conn.prepare_cached("DELETE FROM counters WHERE ends < ?")?.execute([oldest])?;
        Ok(())
    }

    fn total(&self, key: &str, ends: i64) -> Result<Decimal, StoreError> {
        let mut select = self.conn.prepare_cached("SELECT total FROM counters WHERE key = ? AND ends = ?")?;
        let total: Option<String> = select.query_row(params![key, ends], |row| row.get(0)).optional()?;
        let Some(total) = total else { return Ok(Decimal::from(0)) };
        Decimal::parse(&total).ok_or_else(|| StoreError::Unavailable("a counter cannot be read".to_owned()))
    }

    fn set_total(&self, key: &str, ends: i64, total: &Decimal) -> Result<(), StoreError> {
        self.conn
            .prepare_cached("INSERT OR REPLACE INTO counters (key, ends, total) VALUES (?, ?, ?)")?
            .execute(params![key, ends, total.to_string()])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::clock::{Clock, Timestamp};
    use crate::policy::{Period, Then};
    use crate::store::Store;

    fn charge(key: &str, amount: &str, max: &str) -> Charge {
        Charge {
            rule: "r".into(),
            key: key.into(),
            period: Period::Day,
            amount: Decimal::parse(amount),
            max: Decimal::parse(max).unwrap(),
            rate: None,
            then: Then::Reject,
            words: String::new(),
        }
    }

    async fn take(store: &Store, charges: &[Charge]) -> Charged {
        store.charge(charges.iter().map(|charge| (charge.clone(), false)).collect()).await.unwrap()
    }

    fn is_taken(charged: &Charged) -> bool {
        matches!(charged, Charged::Taken(_))
    }

    #[tokio::test]
    async fn ten_processes_never_take_more_than_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::manual(Timestamp::from_millis(1_000));
        // Each store is a connection and a thread of its own, as in another process.
        let stores: Vec<Store> = (0..10).map(|_| Store::open(folder.path(), clock.clone()).unwrap()).collect();
        let tasks: Vec<_> = stores
            .iter()
            .map(|store| {
                let store = store.clone();
                tokio::spawn(async move {
                    let mut taken = 0;
                    for _ in 0..12 {
                        taken += usize::from(is_taken(&take(&store, &[charge("k", "0.1", "5")]).await));
                    }
                    taken
                })
            })
            .collect();
        let mut taken = 0;
        for task in tasks {
            taken += task.await.unwrap();
        }
        assert_eq!(taken, 50, "of 120 that wanted a tenth of 5");
        assert!(!is_taken(&take(&stores[0], &[charge("k", "0.000000000001", "5")]).await));
        assert!(is_taken(&take(&stores[0], &[charge("k", "0", "5")]).await));
    }

    #[tokio::test]
    async fn all_or_nothing_is_taken_and_all_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Clock::manual(Timestamp::from_millis(1_000))).unwrap();
        assert!(is_taken(&take(&store, &[charge("b", "4", "5")]).await));
        let Charged::Over(over) = take(&store, &[charge("a", "5", "5"), charge("b", "2", "5")]).await else {
            panic!("b has room for 1");
        };
        assert_eq!(over, [(1, Some(Duration::from_millis(86_400_000 - 1_000)))]);
        let Charged::Taken(taken) = take(&store, &[charge("a", "5", "5"), charge("b", "1", "5")]).await else {
            panic!("nothing of a was taken");
        };
        assert!(!is_taken(&take(&store, &[charge("a", "1", "5")]).await));
        store.give_back(taken).await.unwrap();
        assert!(is_taken(&take(&store, &[charge("a", "5", "5"), charge("b", "1", "5")]).await));
    }

    #[tokio::test]
    async fn what_cannot_be_counted_is_over_and_waiting_does_not_help() {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::manual(Timestamp::from_millis(1_000));
        let store = Store::open(folder.path(), clock.clone()).unwrap();
        let unknown = Charge { amount: None, ..charge("a", "1", "5") };
        for charge in [unknown.clone(), charge("a", "5.01", "5"), charge("a", "1e300", "5")] {
            let Charged::Over(over) = take(&store, &[charge]).await else { panic!("over") };
            assert_eq!(over, [(0, None)]);
        }
        // A human approved it: it runs, and counts as all there is.
        assert!(is_taken(&store.charge(vec![(unknown, true)]).await.unwrap()));
        assert!(!is_taken(&take(&store, &[charge("a", "1", "5")]).await));
        assert!(is_taken(&store.charge(vec![(charge("a", "1e39", "5"), true)]).await.unwrap()));
        assert!(is_taken(&store.charge(vec![(charge("a", "1e300", "5"), true)]).await.unwrap()));
        clock.advance(Duration::from_secs(86_400));
        assert!(is_taken(&take(&store, &[charge("a", "5", "5")]).await), "a new day");
    }
}

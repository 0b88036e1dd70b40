//! What operators ordered of all processes: agents that are paused, and what is to stop.

use rusqlite::{Row, params};

use super::held::{Tables, hash};
use crate::approval::{Event, Held};
use crate::clock::Timestamp;
use crate::record::Rejection;
use crate::store::{AgentCounts, Order, Ordered, Stopped, StoreError, paused_by};

/// How long a stop is kept for processes that have not seen it.
const STOP_KEPT_MS: i64 = 3_600_000;

impl Tables<'_> {
    /// Pauses an agent and withdraws what of it is held, in one transaction: nothing of it is claimed after that. Answers
    /// the calls that were withdrawn.
    pub(in crate::store) fn pause(&self, agent: &str, by: &str, reason: Option<&str>) -> Result<Vec<Held>, StoreError> {
        self.order("pause", agent, by, reason, false)?;
        let detail = Some(paused_by(by, reason));
        let event = Event::Refuse { reason: Rejection::Paused, detail };
        let waiting = "SELECT id FROM held WHERE agent = ? AND ended_at IS NULL AND state = 'awaiting_approval'";
        self.each(waiting, agent, &event)
    }

    pub(in crate::store) fn resume(&self, agent: &str, by: &str) -> Result<(), StoreError> {
        self.order("pause", agent, by, None, true)
    }

    /// Whether an agent is paused: why, in words.
    pub(super) fn is_paused(&self, agent: &str) -> Result<Option<String>, StoreError> {
        let orders = self.orders("kind = 'pause' AND subject = ? AND NOT lifted", params![agent])?;
        Ok(orders.first().map(|order| paused_by(&order.by, order.reason.as_deref())))
    }

    /// Withdraws what waits of a session or an agent and asks what runs of it to stop, also in other processes.
    pub(in crate::store) fn stop(&self, what: &Stopped, by: &str) -> Result<Vec<Held>, StoreError> {
        let (kind, subject) = what.words();
        self.order(kind, subject, by, None, false)?;
        let event = Event::Cancel { detail: Some(format!("stopped by {by}")) };
        match what {
            Stopped::Session(key) => {
                self.each("SELECT id FROM held WHERE session = ? AND ended_at IS NULL", &hash(key), &event)
            }
            Stopped::Agent(agent) => {
                self.each("SELECT id FROM held WHERE agent = ? AND ended_at IS NULL", agent, &event)
            }
        }
    }

    /// What was ordered after that revision, in order.
    pub(in crate::store) fn orders_since(&self, rev: i64) -> Result<Vec<Order>, StoreError> {
        self.orders("rev > ?", params![rev])
    }

    pub(super) fn orders_rev(&self) -> Result<i64, StoreError> {
        let mut rev = self.conn.prepare_cached("SELECT coalesce(max(rev), 0) FROM orders")?;
        Ok(rev.query_row([], |row| row.get(0))?)
    }

    pub(super) fn forget_orders(&self) -> Result<(), StoreError> {
        // The newest stays: the revisions go on from it.
        self.conn
            .prepare_cached(
                "DELETE FROM orders WHERE at < ? AND (kind <> 'pause' OR lifted) AND rev < (SELECT max(rev) FROM orders)",
            )?
            .execute([self.now.as_millis() - STOP_KEPT_MS])?;
        Ok(())
    }

    /// How many calls of each agent wait and run, and when it last held one.
    pub(in crate::store) fn counts(&self) -> Result<Vec<AgentCounts>, StoreError> {
        let mut counts = self.conn.prepare_cached(
            "SELECT agent, sum(state = 'awaiting_approval'), sum(state = 'running'), max(created_at) FROM held GROUP BY agent",
        )?;
        let rows = counts.query_map([], |row| {
            Ok(AgentCounts {
                agent: row.get(0)?,
                waiting: row.get(1)?,
                running: row.get(2)?,
                last_call: Timestamp::from_millis(row.get(3)?),
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn order(&self, kind: &str, subject: &str, by: &str, reason: Option<&str>, lifted: bool) -> Result<(), StoreError> {
        let rev = self.orders_rev()? + 1;
        self.conn
            .prepare_cached(
                "INSERT INTO orders (kind, subject, rev, at, given_by, reason, lifted) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (kind, subject) DO UPDATE SET rev = ?3, at = ?4, given_by = ?5, reason = ?6, lifted = ?7",
            )?
            .execute(params![kind, subject, rev, self.now.as_millis(), by, reason, lifted])?;
        Ok(())
    }

    fn orders(&self, condition: &str, values: impl rusqlite::Params) -> Result<Vec<Order>, StoreError> {
        let sql = format!(
            "SELECT kind, subject, rev, at, given_by, reason, lifted FROM orders WHERE {condition} ORDER BY rev"
        );
        let mut orders = self.conn.prepare_cached(&sql)?;
        Ok(orders.query_map(values, read)?.collect::<Result<_, _>>()?)
    }

    /// Applies an event to all calls that a query finds; those that do not take it are left as they are.
    fn each(&self, sql: &str, value: &str, event: &Event) -> Result<Vec<Held>, StoreError> {
        let ids: Vec<String> =
            self.conn.prepare_cached(sql)?.query_map([value], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut changed = Vec::new();
        for id in ids {
            match self.apply(&id, event.clone()) {
                Ok(held) => changed.push(held),
                Err(StoreError::Refused(..)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(changed)
    }
}

fn read(row: &Row<'_>) -> Result<Order, rusqlite::Error> {
    let (kind, subject, lifted): (String, String, bool) = (row.get(0)?, row.get(1)?, row.get(6)?);
    Ok(Order {
        what: match (kind.as_str(), lifted) {
            ("pause", false) => Ordered::Pause(subject),
            ("pause", true) => Ordered::Resume(subject),
            ("stop_agent", _) => Ordered::Stop(Stopped::Agent(subject)),
            _ => Ordered::Stop(Stopped::Session(subject)),
        },
        rev: row.get(2)?,
        at: Timestamp::from_millis(row.get(3)?),
        by: row.get(4)?,
        reason: row.get(5)?,
    })
}

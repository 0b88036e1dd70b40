//! The table of held calls. Everything here runs inside a transaction of the writer.

use std::cell::RefCell;

use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Row, Rows, named_params, params, params_from_iter};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::approval::{Event, Held, Refused};
use crate::clock::Timestamp;
use crate::record::{ClientState, Outcome};
use crate::store::{Filter, Holding, Retry, SAME_CALL_RAN, SAME_CALL_WAITING, SEVERAL_EXECUTORS, StoreError};

/// How many rows one transaction ticks, reaps or prunes at most.
const AT_ONCE: usize = 500;

/// Pages of [`Filter::limit`] 0, and the largest.
const PAGE: (usize, usize) = (50, 500);

/// The tables as one job sees them.
pub(in crate::store) struct Tables<'a> {
    pub(super) conn: &'a Connection,
    pub(super) now: Timestamp,
    pub(super) process: &'a str,
    /// Calls that ended, were escalated or reminded of although nobody asked: by time, or with their process.
    pub(super) settled: &'a RefCell<Vec<Held>>,
}

impl Tables<'_> {
    pub(in crate::store) fn hold(&self, mut new: Box<Held>, max_waiting: usize) -> Result<Holding, StoreError> {
        if !new.is_fresh() {
            return Err(StoreError::Refused(Refused::NotNow, new));
        }
        let retry = Retry {
            agent: new.call().agent.clone(),
            attach_key: new.call().attach_key.clone().unwrap_or_default(),
            session: new.intent.session.clone(),
            executor: new.intent.origin.executor.clone(),
            left: Vec::new(),
        };
        if let Some(earlier) = self.attach(&retry)? {
            return Ok(Holding::Attached(earlier));
        }
        let call = new.call();
        if let Some(why) = self.is_paused(&call.agent)? {
            return Ok(Holding::Paused(why));
        }
        let waiting: usize = self
            .conn
            .prepare_cached("SELECT count(*) FROM held WHERE agent = ? AND state = 'awaiting_approval'")?
            .query_row([&call.agent], |row| row.get(0))?;
        if waiting >= max_waiting {
            return Ok(Holding::Full);
        }
        let attached = new.approval.client.state == ClientState::Attached;
        new.attached_at = attached.then(|| self.process.to_owned());
        new.intent.origin.process = Some(self.process.to_owned());
        let flags = self.others(&new)?;
        new.approval.flags.extend(flags);
        self.insert(&new)?;
        Ok(Holding::Created(new))
    }

    /// What an approver should know of other calls beside a new one.
    fn others(&self, new: &Held) -> Result<Vec<String>, StoreError> {
        let call = new.call();
        let mut same = self.conn.prepare_cached(
            "SELECT DISTINCT CASE WHEN state = 'awaiting_approval' THEN ?4 ELSE ?5 END FROM held
             WHERE agent = ?1 AND attach_key = ?2 AND attachable_until > ?3
               AND state IN ('awaiting_approval', 'running', 'completed', 'failed')",
        )?;
        let words = params![call.agent, call.attach_key, self.now.as_millis(), SAME_CALL_WAITING, SAME_CALL_RAN];
        let mut flags: Vec<String> = same.query_map(words, |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut executors = self
            .conn
            .prepare_cached("SELECT 1 FROM held WHERE upstream = ?1 AND executor <> ?2 AND ended_at IS NULL LIMIT 1")?;
        if executors.exists(params![call.upstream, new.intent.origin.executor])? {
            flags.push(SEVERAL_EXECUTORS.to_owned());
        }
        Ok(flags)
    }

    /// Takes over what the processes that have ended left, where this one has the same executor and knows the agent.
    pub(in crate::store) fn adopt(&self, agents: &[String], executors: &[String]) -> Result<Vec<Held>, StoreError> {
        let mut left = self.conn.prepare_cached(
            "SELECT rev, body, executor FROM held
             WHERE origin_process IS NULL AND ended_at IS NULL
               AND executor IN (SELECT value FROM json_each(?1)) AND agent IN (SELECT value FROM json_each(?2))
             LIMIT ?3",
        )?;
        let names = |names: &[String]| serde_json::json!(names).to_string();
        let mut rows = left.query(params![names(executors), names(agents), AT_ONCE])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push((read(row)?, row.get::<_, String>(2)?));
        }
        let mut adopted = Vec::new();
        for ((rev, mut held), executor) in found {
            let process = self.process.to_owned();
            match self.change(rev, &mut held, Event::Adopt { process, executor }) {
                Ok(()) => adopted.push(held),
                // Time has ended it, and will say so.
                Err(StoreError::Refused(..)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(adopted)
    }

    pub(in crate::store) fn attach(&self, retry: &Retry) -> Result<Option<Box<Held>>, StoreError> {
        // A call that can still run comes before what is left to be told of an ended one.
        let mut candidates = self.conn.prepare_cached(
            "SELECT rev, body FROM held
             WHERE agent = ?1 AND attach_key = ?2 AND attached_process IS NULL AND attachable_until > ?3
               AND executor = ?5
               AND (session IS ?4
                    OR session IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sessions WHERE key = held.session AND NOT ended)
                    OR session IN (SELECT value FROM json_each(?6)))
             ORDER BY ended_at IS NOT NULL, created_at, rev",
        )?;
        let Retry { agent, attach_key, executor, .. } = retry;
        let session = retry.session.as_deref().map(hash);
        let left: Vec<String> = retry.left.iter().map(|session| hash(session)).collect();
        let left = serde_json::json!(left).to_string();
        let mut rows = candidates.query(params![agent, attach_key, self.now.as_millis(), session, executor, left])?;
        while let Some(row) = rows.next()? {
            let (rev, mut held) = read(row)?;
            let process = self.process.to_owned();
            match self.change(rev, &mut held, Event::Attach { process, executor: executor.clone() }) {
                Ok(()) => return Ok(Some(Box::new(held))),
                Err(StoreError::Refused(..)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    pub(in crate::store) fn apply(&self, call_or_approval: &str, event: Event) -> Result<Held, StoreError> {
        let (rev, mut held) = self.find(call_or_approval)?;
        self.change(rev, &mut held, event)?;
        Ok(held)
    }

    pub(in crate::store) fn get(&self, call_or_approval: &str) -> Result<Held, StoreError> {
        Ok(self.find(call_or_approval)?.1)
    }

    pub(in crate::store) fn list(&self, filter: &Filter) -> Result<(Vec<Held>, Option<String>), StoreError> {
        let mut sql = String::from("SELECT rev, body FROM held WHERE TRUE");
        let mut values: Vec<Box<dyn ToSql>> = Vec::new();
        let mut only = |condition: &str, value: Box<dyn ToSql>| {
            sql.push_str(" AND ");
            sql.push_str(condition);
            values.push(value);
        };
        if let Some(state) = filter.state {
            only("approval_state = ?", Box::new(word(&state)));
        }
        if let Some(agent) = &filter.agent {
            only("agent = ?", Box::new(agent.clone()));
        }
        if let Some(upstream) = &filter.upstream {
            only("upstream = ?", Box::new(upstream.clone()));
        }
        if let Some(since) = filter.since {
            only("created_at >= ?", Box::new(since.as_millis()));
        }
        if let Some(groups) = &filter.groups {
            only("grp IN (SELECT value FROM json_each(?))", Box::new(serde_json::json!(groups).to_string()));
        }
        if let Some(session) = &filter.session {
            only("session = ?", Box::new(hash(session)));
        }
        if let Some(questions) = filter.questions {
            only(if questions { "upstream = ?" } else { "upstream <> ?" }, Box::new(crate::config::RESERVED_UPSTREAM));
        }
        for word in &filter.words {
            // Not in the whole body: that has the request with its secrets.
            only(
                "instr(lower(json_extract(body, '$.approval.call.label') || ' '
                    || coalesce(json_extract(body, '$.approval.call.tool'), '') || ' '
                    || json_extract(body, '$.approval.call.decided_by') || ' '
                    || agent || ' ' || upstream || ' ' || id || ' ' || approval_id), lower(?)) > 0",
                Box::new(word.clone()),
            );
        }
        if let Some(cursor) = &filter.cursor {
            only("(created_at, id) < (SELECT created_at, id FROM held WHERE id = ?)", Box::new(cursor.clone()));
        }
        let limit = if filter.limit == 0 { PAGE.0 } else { filter.limit.min(PAGE.1) };
        sql.push_str(" ORDER BY created_at DESC, id DESC LIMIT ?");
        values.push(Box::new(limit + 1));

        let mut page = read_all(self.conn.prepare_cached(&sql)?.query(params_from_iter(values))?)?;
        let more = page.len() > limit;
        page.truncate(limit);
        let next = page.last().filter(|_| more).map(|last| last.call().id.clone());
        Ok((page, next))
    }

    /// Whether time alone changes something now.
    pub(super) fn is_due(&self) -> Result<bool, StoreError> {
        let mut due = self.conn.prepare_cached("SELECT 1 FROM held WHERE next_tick <= ?")?;
        Ok(due.exists([self.now.as_millis()])?)
    }

    /// Applies what time alone changes.
    pub(super) fn tick(&self) -> Result<(), StoreError> {
        for id in self.ids("SELECT id FROM held WHERE next_tick <= ?1 LIMIT ?2", self.now.as_millis())? {
            self.settle(&id, &[Event::Tick])?;
        }
        Ok(())
    }

    /// The processes that live calls are connected to, run in or are served by, that live sessions end with, or that are
    /// telling people something.
    pub(super) fn processes(&self) -> Result<Vec<String>, StoreError> {
        let mut all = self.conn.prepare_cached(
            "SELECT attached_process FROM held WHERE attached_process IS NOT NULL
             UNION SELECT claimed_process FROM held WHERE state = 'running'
             UNION SELECT origin_process FROM held WHERE origin_process IS NOT NULL
             UNION SELECT process FROM sessions WHERE process IS NOT NULL AND NOT ended
             UNION SELECT claimed_by FROM notices WHERE claimed_by IS NOT NULL",
        )?;
        Ok(all.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }

    /// Ends what a dead process was running and its sessions, lets its clients go, and leaves the rest to others.
    pub(super) fn bury(&self, process: &str) -> Result<(), StoreError> {
        for id in self.ids("SELECT id FROM held WHERE attached_process = ?1 LIMIT ?2", process)? {
            self.settle(&id, &[Event::Tick, Event::Detach { handed_off: false }])?;
        }
        let running = "SELECT id FROM held WHERE state = 'running' AND claimed_process = ?1 LIMIT ?2";
        for id in self.ids(running, process)? {
            self.settle(
                &id,
                &[Event::Finish {
                    outcome: Outcome::Failed,
                    kept: None,
                    tool_error: None,
                    detail: Some("the gateway ended while the call was running; it may have run".into()),
                    may_have_run: true,
                }],
            )?;
        }
        for id in self.ids("SELECT id FROM held WHERE origin_process = ?1 LIMIT ?2", process)? {
            self.settle(&id, &[Event::Tick, Event::Orphan])?;
        }
        self.conn.prepare_cached("UPDATE sessions SET ended = TRUE WHERE process = ?")?.execute([process])?;
        self.release_notices(process)?;
        Ok(())
    }

    /// Removes ended calls from before `oldest`, and beyond the newest `most`, unless someone may still come for them.
    pub(super) fn prune(&self, oldest: Timestamp, most: usize) -> Result<(), StoreError> {
        let beyond: Option<i64> = self
            .conn
            .prepare_cached(
                "SELECT ended_at FROM held WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT 1 OFFSET ?",
            )?
            .query_row([most], |row| row.get(0))
            .optional()?;
        let until = beyond.map_or(oldest.as_millis(), |beyond| beyond.max(oldest.as_millis()));
        self.conn
            .prepare_cached(
                "DELETE FROM held WHERE id IN (
                     SELECT id FROM held WHERE ended_at <= ?1 AND (attachable_until IS NULL OR attachable_until <= ?2)
                     ORDER BY ended_at LIMIT ?3)",
            )?
            .execute(params![until, self.now.as_millis(), AT_ONCE])?;
        Ok(())
    }

    /// The newest change.
    pub(super) fn rev(&self) -> Result<i64, StoreError> {
        let mut rev = self.conn.prepare_cached("SELECT value FROM meta WHERE key = 'rev'")?;
        Ok(rev.query_row([], |row| row.get(0))?)
    }

    /// What changed after `rev`, in order.
    pub(super) fn newer(&self, rev: i64) -> Result<Vec<Held>, StoreError> {
        let mut newer = self.conn.prepare_cached("SELECT rev, body FROM held WHERE rev > ? ORDER BY rev")?;
        read_all(newer.query([rev])?)
    }

    #[cfg(test)]
    pub(in crate::store) fn limit_for_test(&self, more_pages: i64) -> Result<(), StoreError> {
        let used: i64 = self.conn.pragma_query_value(None, "page_count", |row| row.get(0))?;
        self.conn.pragma_update_and_check(None, "max_page_count", used + more_pages, |_| Ok(()))?;
        Ok(())
    }

    /// The one way a held call changes: the event, then an update of the very row that was read.
    fn change(&self, rev: i64, held: &mut Held, event: Event) -> Result<(), StoreError> {
        let before = held.clone();
        if let Err(refused) = held.apply(event, self.now) {
            return Err(StoreError::Refused(refused, Box::new(before)));
        }
        if *held == before {
            return Ok(());
        }
        let sql = "UPDATE held SET rev = :rev, state = :state, approval_state = :approval_state,
            attach_key = :attach_key, agent = :agent, upstream = :upstream, grp = :grp, session = :session,
            created_at = :created_at, ended_at = :ended_at, next_tick = :next_tick,
            attachable_until = :attachable_until, attached_process = :attached_process,
            claimed_process = :claimed_process, origin_process = :origin_process, executor = :executor, body = :body
            WHERE id = :id AND approval_id = :approval_id AND rev = :was";
        match self.write(sql, held, Some(rev))? {
            1 => Ok(()),
            _ => Err(StoreError::Unavailable(format!("{} was changed at the same time", held.call().id))),
        }
    }

    fn insert(&self, held: &Held) -> Result<(), StoreError> {
        let sql = "INSERT INTO held (id, approval_id, rev, state, approval_state, attach_key, agent, upstream, grp,
                session, created_at, ended_at, next_tick, attachable_until, attached_process, claimed_process,
                origin_process, executor, body)
            SELECT :id, :approval_id, :rev, :state, :approval_state, :attach_key, :agent, :upstream, :grp,
                :session, :created_at, :ended_at, :next_tick, :attachable_until, :attached_process, :claimed_process,
                :origin_process, :executor, :body
            WHERE :was IS NULL";
        self.write(sql, held, None)?;
        Ok(())
    }

    fn write(&self, sql: &str, held: &Held, was: Option<i64>) -> Result<usize, StoreError> {
        let rev: i64 = self
            .conn
            .prepare_cached("UPDATE meta SET value = value + 1 WHERE key = 'rev' RETURNING value")?
            .query_row([], |row| row.get(0))?;
        let body = serde_json::to_string(held).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let call = held.call();
        let attachable_until = held.attachable_until().map(Timestamp::as_millis);
        Ok(self.conn.prepare_cached(sql)?.execute(named_params! {
            ":id": call.id,
            ":approval_id": held.approval.id,
            ":rev": rev,
            ":was": was,
            ":state": word(&call.state),
            ":approval_state": word(&held.approval.state),
            ":attach_key": call.attach_key,
            ":agent": call.agent,
            ":upstream": call.upstream,
            ":grp": call.group,
            ":session": held.intent.session.as_deref().map(hash),
            ":created_at": call.created_at.as_millis(),
            ":ended_at": call.ended_at.map(Timestamp::as_millis),
            ":next_tick": held.next_tick().map(Timestamp::as_millis),
            ":attachable_until": attachable_until,
            ":attached_process": held.attached_at.as_ref().filter(|_| attachable_until.is_some()),
            ":claimed_process": held.claimed_by,
            ":origin_process": held.intent.origin.process.as_ref().filter(|_| call.ended_at.is_none()),
            ":executor": held.intent.origin.executor,
            ":body": body,
        })?)
    }

    fn find(&self, call_or_approval: &str) -> Result<(i64, Held), StoreError> {
        let mut find = self.conn.prepare_cached("SELECT rev, body FROM held WHERE id = ?1 OR approval_id = ?1")?;
        let mut rows = find.query([call_or_approval])?;
        read(rows.next()?.ok_or(StoreError::NotFound)?)
    }

    /// Events that nobody waits for. A row that does not take them is left out from then on: it must not keep the
    /// others from getting theirs.
    fn settle(&self, id: &str, events: &[Event]) -> Result<(), StoreError> {
        for event in events {
            let before = self.get(id).ok();
            let error = match self.apply(id, event.clone()) {
                Ok(held) => {
                    let is_news = |before: Held| {
                        before.call().outcome != held.call().outcome
                            || before.approval.escalated_at != held.approval.escalated_at
                            || before.approval.reminded_at != held.approval.reminded_at
                    };
                    if before.is_some_and(is_news) {
                        self.settled.borrow_mut().push(held);
                    }
                    continue;
                }
                Err(error) => error,
            };
            tracing::warn!(call = id, %error, "a held call could not be brought up to date");
            self.conn
                .prepare_cached(
                    "UPDATE held SET next_tick = NULL, attached_process = NULL, claimed_process = NULL,
                     origin_process = NULL, executor = NULL WHERE id = ?",
                )?
                .execute([id])?;
        }
        Ok(())
    }

    fn ids(&self, sql: &str, value: impl ToSql) -> Result<Vec<String>, StoreError> {
        let mut ids = self.conn.prepare_cached(sql)?;
        Ok(ids.query_map(params![value, AT_ONCE], |row| row.get(0))?.collect::<Result<_, _>>()?)
    }
}

/// A session's key: its id is half a credential, and the table shall hold none.
pub(super) fn hash(session: &str) -> String {
    hex::encode(Sha256::digest(session.as_bytes()))
}

/// One row that cannot be read must not hide the others.
fn read_all(mut rows: Rows<'_>) -> Result<Vec<Held>, StoreError> {
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        match read(row) {
            Ok((_, held)) => all.push(held),
            Err(error) => tracing::warn!(%error, "left out"),
        }
    }
    Ok(all)
}

fn read(row: &Row<'_>) -> Result<(i64, Held), StoreError> {
    let body = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
    let held = serde_json::from_str(body)
        .map_err(|error| StoreError::Unavailable(format!("a stored call cannot be read: {error}")))?;
    Ok((row.get(0)?, held))
}

/// The word of a state as it stands in JSON and in the partial indexes.
fn word(state: &impl Serialize) -> String {
    serde_json::to_string(state).unwrap_or_default().trim_matches('"').to_owned()
}

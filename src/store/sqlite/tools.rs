//! The tools that upstreams offered, and what was accepted of them.

use rusqlite::{OptionalExtension, Row, params};

use super::held::Tables;
use crate::clock::Timestamp;
use crate::record::AcceptedRecord;
use crate::store::{Acceptance, Accepting, Sighting, StoreError, StoredTool};

/// How many tools of one upstream are remembered: an upstream that makes up names must not fill the disk. What comes
/// after them is never accepted.
const MOST: i64 = 5_000;

/// How many definitions of one tool are remembered, for calls that are held on an earlier one.
const EARLIER: i64 = 10;

const COLUMNS: &str = "upstream, name, rev, offered, first_seen, last_offered, accepted, accepted_by, accepted_at";

impl Tables<'_> {
    /// Remembers definitions as they were offered, and accepts them where `accepting` says so. Answers the names of those
    /// that were not known so.
    pub(in crate::store) fn saw(
        &self,
        upstream: &str,
        sightings: &[Sighting],
        accepting: &Accepting,
    ) -> Result<Vec<String>, StoreError> {
        let accepted_before: i64 = self
            .conn
            .prepare_cached("SELECT count(*) FROM tools WHERE upstream = ? AND accepted IS NOT NULL")?
            .query_row([upstream], |row| row.get(0))?;
        let mut news = Vec::new();
        for sighting in sightings {
            if self.saw_one(upstream, sighting)? {
                news.push(sighting.name.clone());
            }
            let by = match accepting {
                Accepting::Always(by) => by,
                Accepting::FirstList(by) if accepted_before == 0 && !sighting.suspect => by,
                Accepting::FirstList(_) | Accepting::Nothing => continue,
            };
            self.accept(upstream, &sighting.name, &sighting.digest, by)?;
        }
        Ok(news)
    }

    /// Whether it was not known so, and is remembered now.
    fn saw_one(
        &self,
        upstream: &str,
        Sighting { name, digest, definition, .. }: &Sighting,
    ) -> Result<bool, StoreError> {
        let (now, rev) = (self.now.as_millis(), self.tools_rev()? + 1);
        let Some(known) = self.tool(upstream, name)? else {
            let mut insert = self.conn.prepare_cached(
                "INSERT INTO tools (upstream, name, rev, offered, definition, first_seen, last_offered)
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?6
                 WHERE (SELECT count(*) FROM tools WHERE upstream = ?1) < ?7",
            )?;
            let is_new = insert.execute(params![upstream, name, rev, digest, definition, now, MOST])? > 0;
            if is_new {
                self.keep(upstream, name, digest, definition)?;
            }
            return Ok(is_new);
        };
        self.keep(upstream, name, digest, definition)?;
        self.conn
            .prepare_cached(
                "UPDATE tools SET offered = ?1, definition = ?2, last_offered = ?3, rev = ?4
                 WHERE upstream = ?5 AND name = ?6",
            )?
            .execute(params![digest, definition, now, rev, upstream, name])?;
        Ok(known.offered != *digest)
    }

    /// Keeps a definition under its digest, and the last ones before it.
    fn keep(&self, upstream: &str, name: &str, digest: &str, definition: &str) -> Result<(), StoreError> {
        self.conn.prepare_cached("INSERT OR REPLACE INTO definitions VALUES (?, ?, ?, ?, ?)")?.execute(params![
            upstream,
            name,
            digest,
            definition,
            self.now.as_millis()
        ])?;
        self.conn
            .prepare_cached(
                "DELETE FROM definitions WHERE upstream = ?1 AND name = ?2 AND digest NOT IN
                 (SELECT digest FROM definitions WHERE upstream = ?1 AND name = ?2
                  ORDER BY digest = ?3 DESC, offered_at DESC LIMIT ?4)",
            )?
            .execute(params![upstream, name, digest, EARLIER])?;
        Ok(())
    }

    /// A definition of a tool by its digest, as canonical JSON, if it is still remembered.
    pub(in crate::store) fn definition(
        &self,
        upstream: &str,
        name: &str,
        digest: &str,
    ) -> Result<Option<String>, StoreError> {
        let mut one = self.conn.prepare_cached(
            "SELECT definition FROM definitions WHERE upstream = ?1 AND name = ?2 AND digest = ?3
             UNION ALL SELECT definition FROM tools WHERE upstream = ?1 AND name = ?2 AND offered = ?3
             UNION ALL SELECT accepted_definition FROM tools WHERE upstream = ?1 AND name = ?2 AND accepted = ?3",
        )?;
        Ok(one.query_row([upstream, name, digest], |row| row.get(0)).optional()?)
    }

    /// Accepts the definition that was last offered, if it is the one of that digest. A definition that is accepted
    /// already stays so.
    pub(in crate::store) fn accept(
        &self,
        upstream: &str,
        name: &str,
        digest: &str,
        by: &str,
    ) -> Result<Acceptance, StoreError> {
        let Some(known) = self.tool(upstream, name)? else { return Ok(Acceptance::Unknown) };
        if known.accepted.as_ref().is_some_and(|accepted| accepted.digest == digest) {
            return Ok(Acceptance::Already);
        }
        if known.offered != digest {
            return Ok(Acceptance::Another);
        }
        self.conn
            .prepare_cached(
                "UPDATE tools SET accepted = offered, accepted_definition = definition, accepted_by = ?1,
                                  accepted_at = ?2, rev = ?3
                 WHERE upstream = ?4 AND name = ?5",
            )?
            .execute(params![by, self.now.as_millis(), self.tools_rev()? + 1, upstream, name])?;
        Ok(Acceptance::Accepted)
    }

    /// The tools that changed after that revision, in the order of their changes; 0 for all.
    pub(in crate::store) fn tools_since(&self, rev: i64) -> Result<Vec<StoredTool>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM tools WHERE rev > ? ORDER BY rev");
        let mut tools = self.conn.prepare_cached(&sql)?;
        let rows = tools.query_map([rev], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    pub(in crate::store) fn tool(&self, upstream: &str, name: &str) -> Result<Option<StoredTool>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM tools WHERE upstream = ? AND name = ?");
        Ok(self.conn.prepare_cached(&sql)?.query_row([upstream, name], read).optional()?)
    }

    /// The definitions of a tool as canonical JSON: last offered, and accepted.
    pub(in crate::store) fn definitions(
        &self,
        upstream: &str,
        name: &str,
    ) -> Result<Option<(String, Option<String>)>, StoreError> {
        let mut both = self
            .conn
            .prepare_cached("SELECT definition, accepted_definition FROM tools WHERE upstream = ? AND name = ?")?;
        Ok(both.query_row([upstream, name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
    }

    /// The last change.
    pub(super) fn tools_rev(&self) -> Result<i64, StoreError> {
        let mut rev = self.conn.prepare_cached("SELECT coalesce(max(rev), 0) FROM tools")?;
        Ok(rev.query_row([], |row| row.get(0))?)
    }
}

fn read(row: &Row<'_>) -> Result<StoredTool, rusqlite::Error> {
    let at = |column| -> Result<Option<Timestamp>, rusqlite::Error> {
        Ok(row.get::<_, Option<i64>>(column)?.map(Timestamp::from_millis))
    };
    let accepted = match (row.get("accepted")?, row.get("accepted_by")?, at("accepted_at")?) {
        (Some(digest), Some(by), Some(at)) => Some(AcceptedRecord { digest, by, at }),
        _ => None,
    };
    Ok(StoredTool {
        upstream: row.get("upstream")?,
        name: row.get("name")?,
        rev: row.get("rev")?,
        offered: row.get("offered")?,
        first_seen: at("first_seen")?.unwrap_or(Timestamp::from_millis(0)),
        last_offered: at("last_offered")?.unwrap_or(Timestamp::from_millis(0)),
        accepted,
    })
}

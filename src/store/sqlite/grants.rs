//! Grants: made, used, ended.

use rusqlite::{OptionalExtension, Row, params};

use super::held::Tables;
use crate::clock::Timestamp;
use crate::record::GrantState;
use crate::store::{StoreError, StoredGrant};

const COLUMNS: &str = "rev, uses_left, used, expires_at, ended_at, ended_by, revoked, body";

impl Tables<'_> {
    pub(in crate::store) fn put_grant(&self, grant: &StoredGrant) -> Result<(), StoreError> {
        let record = &grant.record;
        let body = serde_json::to_string(grant).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        self.conn
            .prepare_cached("INSERT INTO grants (id, rev, uses_left, expires_at, body) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![
                record.id,
                self.grants_rev()? + 1,
                record.uses_left,
                record.expires_at.as_millis(),
                body
            ])?;
        Ok(())
    }

    /// Takes one use of a grant, if it has one left; at most one of those who race gets the last.
    pub(in crate::store) fn take_grant(&self, id: &str) -> Result<Option<StoredGrant>, StoreError> {
        let taken = self
            .conn
            .prepare_cached(
                "UPDATE grants SET uses_left = uses_left - 1, used = used + 1, rev = ?2
                 WHERE id = ?1 AND ended_at IS NULL AND uses_left > 0 AND expires_at > ?3",
            )?
            .execute(params![id, self.grants_rev()? + 1, self.now.as_millis()])?;
        if taken == 0 { Ok(None) } else { self.grant(id).map(Some) }
    }

    /// Gives a use back for a call that did not run.
    pub(in crate::store) fn give_grant_back(&self, id: &str) -> Result<(), StoreError> {
        self.conn
            .prepare_cached(
                "UPDATE grants SET uses_left = uses_left + 1, used = used - 1, rev = ?2 WHERE id = ?1 AND used > 0",
            )?
            .execute(params![id, self.grants_rev()? + 1])?;
        Ok(())
    }

    /// Ends a grant before its time; none where it has ended already.
    pub(in crate::store) fn end_grant(
        &self,
        id: &str,
        by: &str,
        revoked: bool,
    ) -> Result<Option<StoredGrant>, StoreError> {
        let ended = self
            .conn
            .prepare_cached(
                "UPDATE grants SET ended_at = ?2, ended_by = ?3, revoked = ?4, rev = ?5
                 WHERE id = ?1 AND ended_at IS NULL AND uses_left > 0 AND expires_at > ?2",
            )?
            .execute(params![id, self.now.as_millis(), by, revoked, self.grants_rev()? + 1])?;
        let grant = self.grant(id)?;
        Ok((ended > 0).then_some(grant))
    }

    pub(in crate::store) fn grant(&self, id: &str) -> Result<StoredGrant, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM grants WHERE id = ?");
        let found = self.conn.prepare_cached(&sql)?.query_row([id], |row| Ok(self.read(row))).optional()?;
        found.ok_or(StoreError::NotFound)?
    }

    /// What changed after that revision, in order; 0 for all.
    pub(in crate::store) fn grants_since(&self, rev: i64) -> Result<Vec<StoredGrant>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM grants WHERE rev > ? ORDER BY rev");
        let mut grants = self.conn.prepare_cached(&sql)?;
        let rows = grants.query_map([rev], |row| Ok(self.read(row)))?;
        let mut all = Vec::new();
        for grant in rows {
            match grant? {
                Ok(grant) => all.push(grant),
                // One that cannot be read lets nothing pass.
                Err(error) => tracing::warn!(%error, "left out"),
            }
        }
        Ok(all)
    }

    pub(super) fn grants_rev(&self) -> Result<i64, StoreError> {
        let mut rev = self.conn.prepare_cached("SELECT coalesce(max(rev), 0) FROM grants")?;
        Ok(rev.query_row([], |row| row.get(0))?)
    }

    pub(super) fn forget_grants(&self, oldest: Timestamp) -> Result<(), StoreError> {
        // The newest stays: the revisions go on from it.
        self.conn
            .prepare_cached("DELETE FROM grants WHERE expires_at < ? AND rev < (SELECT max(rev) FROM grants)")?
            .execute([oldest.as_millis()])?;
        Ok(())
    }

    fn read(&self, row: &Row<'_>) -> Result<StoredGrant, StoreError> {
        let body = row.get_ref("body")?.as_str().map_err(rusqlite::Error::from)?;
        let mut grant: StoredGrant = serde_json::from_str(body)
            .map_err(|error| StoreError::Unavailable(format!("a stored grant cannot be read: {error}")))?;
        let revoked: bool = row.get("revoked")?;
        let record = &mut grant.record;
        grant.rev = row.get("rev")?;
        record.uses_left = row.get("uses_left")?;
        record.used = row.get("used")?;
        record.ended_at = row.get::<_, Option<i64>>("ended_at")?.map(Timestamp::from_millis);
        record.ended_by = row.get("ended_by")?;
        record.state = match (record.ended_at, revoked) {
            (Some(_), true) => GrantState::Revoked,
            (Some(_), false) => GrantState::Ended,
            (None, _) if record.uses_left == 0 => GrantState::UsedUp,
            (None, _) if record.expires_at <= self.now => GrantState::Expired,
            (None, _) => GrantState::Active,
        };
        Ok(grant)
    }
}

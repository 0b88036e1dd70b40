//! Sessions and small values.

use rusqlite::{OptionalExtension, params};

use super::held::{Tables, hash};
use crate::clock::Timestamp;
use crate::store::{StoreError, StoredSession};

impl Tables<'_> {
    pub(in crate::store) fn put_session(&self, mut session: StoredSession) -> Result<(), StoreError> {
        let key = hash(&std::mem::take(&mut session.id));
        let body = serde_json::to_string(&session).map_err(|error| StoreError::Unavailable(error.to_string()))?;
        self.conn
            .prepare_cached("INSERT OR REPLACE INTO sessions (key, used_at, body, process) VALUES (?, ?, ?, ?)")?
            .execute(params![key, session.used_at.as_millis(), body, session.process])?;
        Ok(())
    }

    pub(in crate::store) fn session(&self, id: &str) -> Result<Option<StoredSession>, StoreError> {
        self.one_session("SELECT body FROM sessions WHERE key = ? AND NOT ended", id)
    }

    pub(in crate::store) fn any_session(&self, id: &str) -> Result<Option<StoredSession>, StoreError> {
        self.one_session("SELECT body FROM sessions WHERE key = ?", id)
    }

    fn one_session(&self, sql: &str, id: &str) -> Result<Option<StoredSession>, StoreError> {
        let mut body = self.conn.prepare_cached(sql)?;
        let body: Option<String> = body.query_row([hash(id)], |row| row.get(0)).optional()?;
        let Some(body) = body else { return Ok(None) };
        let session: StoredSession = serde_json::from_str(&body)
            .map_err(|error| StoreError::Unavailable(format!("a stored session cannot be read: {error}")))?;
        Ok(Some(StoredSession { id: id.to_owned(), ..session }))
    }

    pub(in crate::store) fn end_session(&self, id: &str) -> Result<(), StoreError> {
        self.conn.prepare_cached("UPDATE sessions SET ended = TRUE WHERE key = ?")?.execute([hash(id)])?;
        Ok(())
    }

    pub(in crate::store) fn put(&self, key: &str, value: &str, expires: Option<Timestamp>) -> Result<(), StoreError> {
        self.conn
            .prepare_cached("INSERT OR REPLACE INTO small (key, value, expires) VALUES (?, ?, ?)")?
            .execute(params![key, value, expires.map(Timestamp::as_millis)])?;
        Ok(())
    }

    pub(in crate::store) fn once(&self, key: &str, value: &str) -> Result<String, StoreError> {
        self.conn
            .prepare_cached("INSERT INTO small (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO NOTHING")?
            .execute([key, value])?;
        let mut kept = self.conn.prepare_cached("SELECT value FROM small WHERE key = ?")?;
        Ok(kept.query_row([key], |row| row.get(0))?)
    }

    pub(in crate::store) fn used(&self, agent: &str, upstream: &str, tool: &str) -> Result<(), StoreError> {
        self.conn
            .prepare_cached(
                "INSERT INTO uses (agent, upstream, tool, at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
            )?
            .execute(params![agent, upstream, tool, self.now.as_millis()])?;
        Ok(())
    }

    pub(in crate::store) fn is_used(&self, agent: &str, upstream: &str, tool: &str) -> Result<bool, StoreError> {
        let mut one =
            self.conn.prepare_cached("SELECT 1 FROM uses WHERE agent = ?1 AND upstream = ?2 AND tool = ?3")?;
        Ok(one.exists([agent, upstream, tool])?)
    }

    pub(in crate::store) fn value(&self, key: &str) -> Result<Option<String>, StoreError> {
        let mut value =
            self.conn.prepare_cached("SELECT value FROM small WHERE key = ?1 AND (expires IS NULL OR expires > ?2)")?;
        Ok(value.query_row(params![key, self.now.as_millis()], |row| row.get(0)).optional()?)
    }

    pub(in crate::store) fn take(&self, key: &str) -> Result<Option<String>, StoreError> {
        let value = self.value(key)?;
        self.conn.prepare_cached("DELETE FROM small WHERE key = ?")?.execute([key])?;
        Ok(value)
    }

    /// Removes values that are too old, and sessions that nobody used since `oldest`.
    pub(super) fn forget(&self, oldest: Timestamp) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM small WHERE expires <= ?")?.execute([self.now.as_millis()])?;
        self.conn.prepare_cached("DELETE FROM sessions WHERE used_at < ?")?.execute([oldest.as_millis()])?;
        Ok(())
    }

    /// Writes something, to see whether it can be done.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.conn.prepare_cached("UPDATE meta SET value = ? WHERE key = 'checked'")?.execute([self.now.as_millis()])?;
        Ok(())
    }
}

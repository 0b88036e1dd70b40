//! Which channel was told what, so that of all processes on a folder one tells.

use std::time::Duration;

use rusqlite::{OptionalExtension, Row, params};

use super::held::Tables;
use crate::clock::Timestamp;
use crate::store::{Notice, StoreError};

const COLUMNS: &str = "SELECT thread, seq, open, claimed_until, body FROM notices";

impl Tables<'_> {
    pub(in crate::store) fn notice(&self, channel: &str, thread: &str) -> Result<Option<Notice>, StoreError> {
        let mut notice = self.conn.prepare_cached(&format!("{COLUMNS} WHERE channel = ? AND thread = ?"))?;
        Ok(notice.query_row([channel, thread], read).optional()?)
    }

    pub(in crate::store) fn open_notices(&self, channel: &str) -> Result<Vec<Notice>, StoreError> {
        let mut open = self.conn.prepare_cached(&format!("{COLUMNS} WHERE channel = ? AND open"))?;
        Ok(open.query_map([channel], read)?.collect::<Result<_, _>>()?)
    }

    /// A claim whose time is over is one of a process that has ended, or hangs.
    pub(in crate::store) fn claim_notice(
        &self,
        channel: &str,
        thread: &str,
        seq: i64,
        lease: Duration,
    ) -> Result<Option<i64>, StoreError> {
        let (now, until) = (self.now.as_millis(), self.now.after(lease).as_millis());
        let changed = match seq {
            0 => self
                .conn
                .prepare_cached(
                    "INSERT OR IGNORE INTO notices (channel, thread, seq, open, claimed_by, claimed_until, changed_at, body)
                     VALUES (?1, ?2, 1, TRUE, ?3, ?4, ?5, '')",
                )?
                .execute(params![channel, thread, self.process, until, now])?,
            seq => self
                .conn
                .prepare_cached(
                    "UPDATE notices SET seq = seq + 1, open = TRUE, claimed_by = ?4, claimed_until = ?5, changed_at = ?6
                     WHERE channel = ?1 AND thread = ?2 AND seq = ?3 AND (claimed_until IS NULL OR claimed_until <= ?6)",
                )?
                .execute(params![channel, thread, seq, self.process, until, now])?,
        };
        Ok((changed == 1).then_some(seq + 1))
    }

    pub(in crate::store) fn noticed(&self, channel: &str, notice: &Notice) -> Result<bool, StoreError> {
        let changed = self
            .conn
            .prepare_cached(
                "UPDATE notices SET seq = seq + 1, open = ?4, claimed_by = NULL, claimed_until = NULL, changed_at = ?5, body = ?6
                 WHERE channel = ?1 AND thread = ?2 AND seq = ?3",
            )?
            .execute(params![
                channel,
                notice.thread,
                notice.seq,
                notice.open,
                self.now.as_millis(),
                notice.body
            ])?;
        Ok(changed == 1)
    }

    /// Lets others say what a dead process was to say.
    pub(super) fn release_notices(&self, process: &str) -> Result<(), StoreError> {
        self.conn
            .prepare_cached(
                "UPDATE notices SET seq = seq + 1, claimed_by = NULL, claimed_until = NULL WHERE claimed_by = ?",
            )?
            .execute([process])?;
        Ok(())
    }

    /// Forgets what was told long ago.
    pub(super) fn forget_notices(&self, oldest: Timestamp) -> Result<(), StoreError> {
        self.conn.prepare_cached("DELETE FROM notices WHERE changed_at < ?")?.execute([oldest.as_millis()])?;
        Ok(())
    }
}

fn read(row: &Row<'_>) -> Result<Notice, rusqlite::Error> {
    Ok(Notice {
        thread: row.get(0)?,
        seq: row.get(1)?,
        open: row.get(2)?,
        claimed_until: row.get::<_, Option<i64>>(3)?.map(Timestamp::from_millis),
        body: row.get(4)?,
    })
}

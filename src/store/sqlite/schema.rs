//! Opening the database: permissions, pragmas, tables, version.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use crate::process;
use crate::store::StoreError;

/// The database inside a state folder.
pub(super) const FILE: &str = "portcullis.db";

/// The version of the tables below.
const VERSION: i64 = 2;

/// `rev` counts changes over all rows, so that "what is newer than" is one range. The columns beside `body` repeat what
/// queries need of it; `session` and the key of `sessions` are hashes. `attached_process` is null where nobody could be
/// attached any more, and `origin_process` where no process serves the call, whatever the body says.
const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('rev', 0), ('checked', 0);

CREATE TABLE held (
    id TEXT NOT NULL PRIMARY KEY,
    approval_id TEXT NOT NULL UNIQUE,
    rev INTEGER NOT NULL UNIQUE,
    state TEXT NOT NULL,
    approval_state TEXT NOT NULL,
    attach_key TEXT,
    agent TEXT NOT NULL,
    upstream TEXT NOT NULL,
    grp TEXT NOT NULL,
    session TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    next_tick INTEGER,
    attachable_until INTEGER,
    attached_process TEXT,
    claimed_process TEXT,
    origin_process TEXT,
    executor TEXT,
    body TEXT NOT NULL
);
CREATE INDEX held_page ON held (created_at, id);
CREATE INDEX held_by_approval ON held (approval_state, created_at, id);
CREATE INDEX held_waiting ON held (agent) WHERE state = 'awaiting_approval';
CREATE INDEX held_due ON held (next_tick) WHERE next_tick IS NOT NULL;
CREATE INDEX held_attached ON held (attached_process) WHERE attached_process IS NOT NULL;
CREATE INDEX held_running ON held (claimed_process) WHERE state = 'running';
CREATE INDEX held_ended ON held (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE sessions (
    key TEXT PRIMARY KEY,
    used_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    process TEXT,
    ended INTEGER NOT NULL DEFAULT FALSE
) WITHOUT ROWID;
CREATE TABLE small (key TEXT PRIMARY KEY, value TEXT NOT NULL, expires INTEGER) WITHOUT ROWID;
";

/// From version 1 to 2. What was held before cannot be told apart by its executor: it is never attached or run.
const TO_VERSION_2: &str = "
ALTER TABLE held ADD COLUMN origin_process TEXT;
ALTER TABLE held ADD COLUMN executor TEXT;
ALTER TABLE sessions ADD COLUMN process TEXT;
ALTER TABLE sessions ADD COLUMN ended INTEGER NOT NULL DEFAULT FALSE;
";

/// Indexes and tables that databases of this version may lack. `offered` and `accepted` are digests; `rev` counts changes over all
/// rows.
const LATER_TABLES: &str = "
CREATE INDEX IF NOT EXISTS held_same ON held (agent, attach_key) WHERE attachable_until IS NOT NULL;
CREATE INDEX IF NOT EXISTS held_served ON held (origin_process) WHERE origin_process IS NOT NULL;
CREATE INDEX IF NOT EXISTS held_executors ON held (upstream, executor) WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS sessions_of ON sessions (process) WHERE process IS NOT NULL AND NOT ended;

CREATE TABLE IF NOT EXISTS tools (
    upstream TEXT NOT NULL,
    name TEXT NOT NULL,
    rev INTEGER NOT NULL,
    offered TEXT NOT NULL,
    definition TEXT NOT NULL,
    first_seen INTEGER NOT NULL,
    last_offered INTEGER NOT NULL,
    accepted TEXT,
    accepted_definition TEXT,
    accepted_by TEXT,
    accepted_at INTEGER,
    PRIMARY KEY (upstream, name)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS tools_rev ON tools (rev);
CREATE TABLE IF NOT EXISTS definitions (
    upstream TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    definition TEXT NOT NULL,
    offered_at INTEGER NOT NULL,
    PRIMARY KEY (upstream, name, digest)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS grants (
    id TEXT NOT NULL PRIMARY KEY,
    rev INTEGER NOT NULL UNIQUE,
    uses_left INTEGER NOT NULL,
    used INTEGER NOT NULL DEFAULT 0,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER,
    ended_by TEXT,
    revoked INTEGER NOT NULL DEFAULT FALSE,
    body TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS orders (
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    rev INTEGER NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    given_by TEXT NOT NULL,
    reason TEXT,
    lifted INTEGER NOT NULL DEFAULT FALSE,
    PRIMARY KEY (kind, subject)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS held_of_agent ON held (agent) WHERE ended_at IS NULL;
CREATE INDEX IF NOT EXISTS held_of_session ON held (session) WHERE ended_at IS NULL;

CREATE TABLE IF NOT EXISTS counters (
    key TEXT NOT NULL,
    ends INTEGER NOT NULL,
    total TEXT NOT NULL,
    PRIMARY KEY (key, ends)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS counters_ended ON counters (ends);

CREATE TABLE IF NOT EXISTS uses (
    agent TEXT NOT NULL,
    upstream TEXT NOT NULL,
    tool TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (agent, upstream, tool)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS notices (
    channel TEXT NOT NULL,
    thread TEXT NOT NULL,
    seq INTEGER NOT NULL,
    open INTEGER NOT NULL,
    claimed_by TEXT,
    claimed_until INTEGER,
    changed_at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (channel, thread)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS notices_open ON notices (channel) WHERE open;
CREATE INDEX IF NOT EXISTS notices_claimed ON notices (claimed_by) WHERE claimed_by IS NOT NULL;
";

/// Opens the database in a state folder, and makes it if it is not there.
///
/// `synchronous` is FULL: a claim that a power cut could undo would be a call that runs twice.
pub(super) fn open(state_dir: &Path, busy: Duration) -> Result<Connection, StoreError> {
    let _turn = take_turn(state_dir).map_err(|error| unreadable(state_dir, &error))?;
    let path = state_dir.join(FILE);
    make_private(&path).map_err(|error| unreadable(&path, &error))?;
    let mut conn = Connection::open(&path)?;
    conn.set_prepared_statement_cache_capacity(64);
    conn.busy_timeout(busy)?;
    conn.pragma_update(None, "synchronous", "FULL")?;
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Unavailable(format!("{} cannot be shared here: no write-ahead log", path.display())));
    }
    let version: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    match version {
        0 => {
            let make = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            make.execute_batch(TABLES)?;
            make.pragma_update(None, "user_version", VERSION)?;
            make.commit()?;
        }
        1 => {
            let change = conn.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            change.execute_batch(TO_VERSION_2)?;
            change.pragma_update(None, "user_version", VERSION)?;
            change.commit()?;
        }
        VERSION => {}
        newer => {
            return Err(StoreError::Unavailable(format!(
                "{} was made by another version of portcullis (tables {newer}, this one knows {VERSION}); run that one",
                path.display()
            )));
        }
    }
    conn.execute_batch(LATER_TABLES)?;
    Ok(conn)
}

/// Two processes that open a new folder at once do it one after the other.
fn take_turn(state_dir: &Path) -> io::Result<File> {
    let file = process::private_file(&state_dir.join("opening"))?;
    file.lock()?;
    Ok(file)
}

/// SQLite gives its side files the permissions of the database.
fn make_private(path: &Path) -> io::Result<()> {
    process::private_file(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))
}

fn unreadable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unavailable(format!("{}: {error}", path.display()))
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Unavailable(match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => "the disk is full".into(),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program keeps it locked".into(),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => "it may not be written".into(),
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                format!("{FILE} is damaged or not a database ({error}); restore it or move it away")
            }
            _ => error.to_string(),
        })
    }
}

//! SQL texts: which kinds of statement they hold, and which tables they name.
//!
//! A text is read where the upstream's dialect, or without one each of four, finds the same in it; anything else is not
//! read at all, and a floor asks. What a view, trigger, rule, operator or cast runs in the database is not seen here.

mod attribute;
mod definition;
mod functions;
mod plain;
mod read;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Floor, FloorWhy, worker};
use crate::catalog::Dialect;

/// Bytes of a text that is read.
const MAX_BYTES: usize = 64 * 1024;
/// Brackets within brackets, `CASE` included.
const MAX_NESTING: usize = 32;
/// Words and signs of a text: a chain of operators is a tree as deep as it is long.
const MAX_TOKENS: usize = 4_000;
/// Joins of a text: those without `ON` nest in each other. SQLite and MySQL join no more tables than this.
const MAX_JOINS: usize = 64;

/// A kind of statement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StatementKind {
    /// Reads, and calls pure functions only.
    Select,
    /// `INSERT`, `REPLACE`.
    Insert,
    /// `UPDATE`, and rows locked by `FOR UPDATE` and the like.
    Update,
    /// `DELETE`, `TRUNCATE`.
    Delete,
    /// What makes, changes or drops tables and other objects, `SELECT … INTO` included.
    Ddl,
    /// Rights, roles and users.
    Dcl,
    /// Transactions.
    Tx,
    /// Settings of the session or the server, `PRAGMA` included.
    Set,
    /// Looks at what there is: `SHOW`, `DESCRIBE`, and pragmas that only read.
    Show,
    /// Procedures, prepared statements, and functions that are not known to be pure.
    Call,
    /// Between tables and files or programs.
    Copy,
    /// Everything else, and what goes beyond the tables that it names.
    Other,
}

impl StatementKind {
    /// The kinds by name.
    pub const ALL: [(&str, Self); 12] = [
        ("select", Self::Select),
        ("insert", Self::Insert),
        ("update", Self::Update),
        ("delete", Self::Delete),
        ("ddl", Self::Ddl),
        ("dcl", Self::Dcl),
        ("tx", Self::Tx),
        ("set", Self::Set),
        ("show", Self::Show),
        ("call", Self::Call),
        ("copy", Self::Copy),
        ("other", Self::Other),
    ];

    /// The word in YAML and JSON.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, kind)| *kind == self).map_or("other", |(name, _)| name)
    }

    /// Whether it surely is of no other kind: what is called, loaded or not known may delete as well.
    pub const fn is_only_itself(self) -> bool {
        !matches!(self, Self::Call | Self::Copy | Self::Other)
    }

    /// Whether the tables that the statement names are all that it touches.
    pub const fn names_its_tables(self) -> bool {
        !matches!(self, Self::Call | Self::Copy | Self::Dcl | Self::Other)
    }
}

/// What an SQL text does.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SqlFacet {
    /// Kinds of its statements and of those within them; empty where it is not read.
    pub kinds: BTreeSet<StatementKind>,
    /// Tables that it names, each as `schema.table` or `table`; a part with other signs than letters, digits and `_`
    /// stands in double quotes.
    pub tables: BTreeSet<String>,
}

/// Reads a text; with floors it is not read. Parses on a thread of its own, for up to half a second.
pub(super) fn read(text: &str, dialect: Option<Dialect>) -> (SqlFacet, Vec<Floor>) {
    let unread = |why: &str| (SqlFacet::default(), vec![Floor::because(FloorWhy::Sql, why)]);
    if text.len() > MAX_BYTES {
        return unread("an SQL text of more than 64 KiB");
    }
    let owned = text.to_owned();
    match worker::run(move || read_all(&owned, dialect)) {
        Ok(Ok(facet)) => (facet, Vec::new()),
        Ok(Err(why)) => unread(&why),
        Err(why) => unread(why),
    }
}

/// What all dialects in question find.
fn read_all(text: &str, dialect: Option<Dialect>) -> Result<SqlFacet, String> {
    let starts = plain::cut(text, dialect)?;
    if let Some(dialect) = dialect {
        return read::read(text, Some(dialect), &starts);
    }
    let first = read::read(text, None, &starts)?;
    for dialect in Dialect::ALL.map(|(_, dialect)| dialect) {
        let other = read::read(text, Some(dialect), &starts)
            .map_err(|why| format!("{why}; say which `dialect` the upstream speaks if it is another"))?;
        if other.kinds != first.kinds || folded(&other.tables) != folded(&first.tables) {
            return Err("databases read it differently; say which `dialect` the upstream speaks".to_owned());
        }
    }
    Ok(first)
}

fn folded(tables: &BTreeSet<String>) -> BTreeSet<String> {
    tables.iter().map(|table| table.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests;

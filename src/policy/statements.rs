//! The `sql` and `table` fields, over SQL texts.

use super::fields::{Thing, Truth};
use crate::facet::{SqlFacet, StatementKind};
use crate::pattern::{NamePattern, PatternError, Side};

/// Whether the statements of a facet are of these kinds: all of them for what loosens, any of them for what tightens. A
/// text that is not read may hold anything, and what it calls or loads may do anything.
pub(super) fn are(kinds: &[StatementKind], thing: Thing<'_>, side: Side) -> Truth {
    match thing {
        _ if kinds.is_empty() => Truth::True,
        Thing::Sql(sql) if sql.kinds.is_empty() => Truth::Unknown,
        Thing::Sql(sql) => match side {
            Side::Exact => sql.kinds.iter().all(|kind| kinds.contains(kind)).into(),
            Side::Wide if sql.kinds.iter().any(|kind| kinds.contains(kind)) => Truth::True,
            Side::Wide if sql.kinds.iter().all(|kind| kind.is_only_itself()) => Truth::False,
            Side::Wide => Truth::Unknown,
        },
        _ => Truth::False,
    }
}

/// Whether a text that is read is of one of these kinds only in what it calls or loads.
pub(super) fn might_be(kinds: &[StatementKind], thing: Thing<'_>) -> bool {
    matches!(thing, Thing::Sql(sql) if !sql.kinds.is_empty()) && are(kinds, thing, Side::Wide) == Truth::Unknown
}

/// Whether the tables that a facet touches are these: all of them for what loosens, any of them for what tightens. What
/// calls or loads may touch others than it names; a statement without a table has none.
pub(super) fn name(patterns: &[TablePattern], thing: Thing<'_>, side: Side) -> Truth {
    let sql = match thing {
        _ if patterns.is_empty() => return Truth::True,
        Thing::Sql(sql) => sql,
        _ => return Truth::False,
    };
    let each =
        |table: &String| patterns.iter().map(|pattern| pattern.covers(table, side)).max().unwrap_or(Truth::False);
    let tables = sql.tables.iter().map(each);
    let named = match side {
        Side::Exact => tables.min(),
        Side::Wide => tables.max(),
    }
    .unwrap_or(Truth::False);
    match side {
        _ if names_all(sql) => named,
        Side::Exact => named.min(Truth::Unknown),
        Side::Wide => named.max(Truth::Unknown),
    }
}

/// Whether the tables that it names are all that it touches.
fn names_all(sql: &SqlFacet) -> bool {
    !sql.kinds.is_empty() && sql.kinds.iter().all(|kind| kind.names_its_tables())
}

/// One entry of `table`: a glob for each part, such as `users`, `public.*`, or `*` for every table.
#[derive(Debug)]
pub(super) struct TablePattern {
    parts: Vec<NamePattern>,
}

impl TablePattern {
    /// Reads an entry.
    ///
    /// # Errors
    /// An empty part, more than three of them, or a bad glob.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let wrong =
            |what: &str| PatternError { what: what.into(), help: Some("write `table` or `schema.table`".into()) };
        let parts: Vec<String> = split(text).ok_or_else(|| wrong("a quote without an end"))?;
        if parts.len() > 3 {
            return Err(wrong("a name of more than three parts"));
        }
        let parts: Result<Vec<NamePattern>, PatternError> = parts.iter().map(|part| NamePattern::parse(part)).collect();
        Ok(Self { parts: parts? })
    }

    /// Its parts, without the quotes that they may have been written in.
    pub fn text(&self) -> String {
        self.parts.iter().map(NamePattern::text).collect::<Vec<_>>().join(".")
    }

    /// How it holds on one table. Parts are compared from the last; what only one of the two says of the schema leaves it
    /// unknown whether the other means the same.
    fn covers(&self, table: &str, side: Side) -> Truth {
        if let [only] = self.parts.as_slice()
            && only.text() == "*"
        {
            return Truth::True;
        }
        let Some(parts) = split(table) else { return Truth::Unknown };
        let fits = |(pattern, part): (&NamePattern, &String)| pattern.matches(part, side);
        if !self.parts.iter().rev().zip(parts.iter().rev()).all(fits) {
            return Truth::False;
        }
        if parts.len() == self.parts.len() { Truth::True } else { Truth::Unknown }
    }
}

/// The parts of a dotted name, without their double quotes; none where a quote has no end.
fn split(text: &str) -> Option<Vec<String>> {
    let (mut parts, mut part, mut quoted) = (Vec::new(), String::new(), false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.next_if_eq(&'"').is_some() => part.push('"'),
            '"' => quoted = !quoted,
            '.' if !quoted => parts.push(std::mem::take(&mut part)),
            c => part.push(c),
        }
    }
    parts.push(part);
    (!quoted).then_some(parts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use Side::{Exact, Wide};
    use StatementKind::{Call, Copy, Delete, Insert, Other, Select, Set};
    use Truth::{False, True, Unknown};

    fn facet(kinds: &[StatementKind], tables: &[&str]) -> SqlFacet {
        SqlFacet { kinds: kinds.iter().copied().collect(), tables: tables.iter().map(|&t| t.to_owned()).collect() }
    }

    fn holds(pattern: &str, table: &str, side: Side) -> Truth {
        name(&[TablePattern::parse(pattern).unwrap()], Thing::Sql(&facet(&[Select], &[table])), side)
    }

    #[test]
    fn kinds_must_all_be_named_to_loosen_and_one_tightens() {
        let both = facet(&[Select, Delete], &[]);
        assert_eq!(are(&[Select], Thing::Sql(&both), Exact), False);
        assert_eq!(are(&[Select, Delete], Thing::Sql(&both), Exact), True);
        assert_eq!(are(&[Delete, Insert], Thing::Sql(&both), Wide), True);
        assert_eq!(are(&[Insert], Thing::Sql(&both), Wide), False);
        assert_eq!(are(&[Insert], Thing::Sql(&facet(&[Set], &[])), Wide), False);
        for may in [Call, Copy, Other] {
            assert_eq!(are(&[Delete], Thing::Sql(&facet(&[Select, may], &[])), Wide), Unknown, "{may:?}");
            assert_eq!(are(&[Select], Thing::Sql(&facet(&[Select, may], &[])), Exact), False, "{may:?}");
        }
        for side in [Exact, Wide] {
            assert_eq!(are(&[Select], Thing::Sql(&SqlFacet::default()), side), Unknown);
            assert_eq!(are(&[Select], Thing::Other, side), False);
            assert_eq!(are(&[], Thing::Other, side), True);
        }
    }

    #[test]
    fn a_schema_that_only_one_side_names_is_unknown() {
        for side in [Exact, Wide] {
            assert_eq!(holds("users", "users", side), True);
            assert_eq!(holds("public.users", "users", side), Unknown);
            assert_eq!(holds("users", "other.users", side), Unknown);
            assert_eq!(holds("public.*", "public.users", side), True);
            assert_eq!(holds("public.*", "audit.users", side), False);
            assert_eq!(holds("users", "users_old", side), False);
            assert_eq!(holds("*", "a.b.c", side), True);
            assert_eq!(holds("\"a.b\".c", "\"a.b\".c", side), True);
            assert_eq!(holds("a.b", "\"a.b\"", side), False);
        }
        assert_eq!((holds("users", "Users", Exact), holds("users", "Users", Wide)), (False, True));
    }

    #[test]
    fn tables_must_all_fit_to_loosen_and_one_tightens() {
        let users = [TablePattern::parse("users").unwrap()];
        let on = |kinds: &[StatementKind], tables: &[&str], side| name(&users, Thing::Sql(&facet(kinds, tables)), side);
        assert_eq!((on(&[Select], &["users", "x"], Exact), on(&[Select], &["users", "x"], Wide)), (False, True));
        assert_eq!((on(&[Select], &[], Exact), on(&[Select], &[], Wide)), (False, False), "`SELECT 1`");
        assert_eq!(
            (on(&[Call], &["users"], Exact), on(&[Call], &["x"], Wide)),
            (Unknown, Unknown),
            "what it calls may touch more"
        );
        assert_eq!((on(&[], &[], Exact), on(&[], &[], Wide)), (False, Unknown), "not read");
    }

    #[test]
    fn what_names_no_table_is_refused() {
        for text in ["", "a.", ".a", "a.b.c.d", "\"a", "a b "] {
            assert!(TablePattern::parse(text).is_err(), "{text:?}");
        }
    }
}

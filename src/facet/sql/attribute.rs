//! PostgreSQL's attribute notation: `x.f` calls the function `f` on `x` where `x` has no such column (PostgreSQL 17,
//! section 4.2.6). A row of a table, a `WITH` or a subquery fits none of PostgreSQL's own functions that do more than look
//! at it; a value, such as a function in `FROM` gives, fits most of them.

use std::collections::{BTreeMap, BTreeSet};

use sqlparser::ast::{AccessExpr, Expr, Ident, ObjectName, TableAlias, TableFactor};

/// Functions in `FROM` whose columns have names of their own.
const COLUMNS: [(&str, &[&str]); 8] = [
    ("json_array_elements", &["value"]),
    ("json_array_elements_text", &["value"]),
    ("json_each", &["key", "value"]),
    ("json_each_text", &["key", "value"]),
    ("jsonb_array_elements", &["value"]),
    ("jsonb_array_elements_text", &["value"]),
    ("jsonb_each", &["key", "value"]),
    ("jsonb_each_text", &["key", "value"]),
];

/// What a text names with dots, and what the names before the dots are. Names count for the whole text, wherever they
/// hold: one that is a row here and a value there is a value.
#[derive(Default)]
pub(super) struct Attributes {
    /// Names of tables, of `WITH` and of subqueries.
    rows: BTreeSet<String>,
    /// Names of functions in `FROM`, with the columns that each of that name has for sure.
    values: BTreeMap<String, BTreeSet<String>>,
    /// The last two parts of each dotted name.
    used: Vec<(String, String)>,
    /// Whether a field is taken of anything else than a name.
    of_expression: bool,
}

impl Attributes {
    /// Whether one of them may be the call of a function.
    pub fn call(&self) -> bool {
        let is_column = |(of, field): &(String, String)| match self.values.get(of) {
            Some(columns) => columns.contains(field),
            None => self.rows.contains(of),
        };
        self.of_expression || !self.used.iter().all(is_column)
    }

    /// Notes a name that stands for rows.
    pub fn row(&mut self, name: &Ident) {
        self.rows.insert(folded(name));
    }

    /// Notes a table by the last part of its name.
    pub fn table(&mut self, name: &ObjectName) {
        if let Some(name) = last(name) {
            self.row(name);
        }
    }

    /// Notes what a part of `FROM` is called.
    pub fn factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { args: None, alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::NestedJoin { alias, .. } => {
                if let Some(alias) = alias {
                    self.row(&alias.name);
                }
            }
            TableFactor::Table { name, alias, .. } | TableFactor::Function { name, alias, .. } => {
                let function = last(name).map(folded).unwrap_or_default();
                self.value(&function, alias.as_ref());
            }
            TableFactor::UNNEST { alias, .. } => self.value("unnest", alias.as_ref()),
            TableFactor::TableFunction { alias, .. } | TableFactor::JsonTable { alias, .. } => {
                self.value("", alias.as_ref());
            }
            // Goes beyond its tables anyway.
            _ => {}
        }
    }

    fn value(&mut self, function: &str, alias: Option<&TableAlias>) {
        let given = alias.map(|alias| alias.columns.iter().map(|column| folded(&column.name)).collect());
        let own =
            || COLUMNS.iter().find(|(name, _)| *name == function).map(|(_, columns)| *columns).unwrap_or_default();
        let columns: BTreeSet<String> = match given {
            Some(given) if !BTreeSet::is_empty(&given) => given,
            _ => own().iter().map(|&column| column.to_owned()).collect(),
        };
        let name = alias.map_or_else(|| function.to_owned(), |alias| folded(&alias.name));
        self.values.entry(name).and_modify(|known| known.retain(|column| columns.contains(column))).or_insert(columns);
    }

    /// Notes a dotted name, or a field of anything else.
    pub fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::CompoundIdentifier(parts) => self.name(parts.iter()),
            Expr::CompoundFieldAccess { root, access_chain } => {
                // `t.list[1]` takes an element of a column.
                let mut rest = access_chain.as_slice();
                let mut parts: Vec<&Ident> = Vec::new();
                if let Expr::Identifier(first) = &**root {
                    parts.push(first);
                    while let [AccessExpr::Dot(Expr::Identifier(field)), after @ ..] = rest {
                        parts.push(field);
                        rest = after;
                    }
                }
                self.name(parts.into_iter());
                self.of_expression |= rest.iter().any(|access| matches!(access, AccessExpr::Dot(_)));
            }
            _ => {}
        }
    }

    fn name<'a>(&mut self, parts: impl Iterator<Item = &'a Ident>) {
        let parts: Vec<&Ident> = parts.collect();
        if let [.., of, field] = parts.as_slice() {
            self.used.push((folded(of), folded(field)));
        }
    }
}

fn last(name: &ObjectName) -> Option<&Ident> {
    name.0.last().and_then(|part| part.as_ident())
}

/// A name as PostgreSQL compares it.
fn folded(name: &Ident) -> String {
    if name.quote_style.is_none() { name.value.to_ascii_lowercase() } else { name.value.clone() }
}

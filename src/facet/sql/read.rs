//! One dialect's reading: every statement, those in CTEs and subqueries included.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, CascadeOption, Expr, FromTable, Ident, ObjectName, ObjectNamePart, ObjectType, Query, Select,
    SetExpr, Statement, TableFactor, TableObject, Visit, Visitor,
};
use sqlparser::dialect::{self, GenericDialect, MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace};

use super::attribute::Attributes;
use super::definition::Reach;
use super::functions::{is_called, is_pure};
use super::plain::Start;
use super::{MAX_JOINS, MAX_NESTING, MAX_TOKENS, SqlFacet, StatementKind as Kind};
use crate::catalog::Dialect;

/// Reads a text in one dialect; none is the parser's generic one. `starts` is where its words begin.
///
/// # Errors
/// Why the text is not read.
pub(super) fn read(text: &str, dialect: Option<Dialect>, starts: &[Start]) -> Result<SqlFacet, String> {
    if starts.len() > MAX_TOKENS {
        return Err("an SQL text with too many words".to_owned());
    }
    let of: &dyn dialect::Dialect = match dialect {
        None => &GenericDialect {},
        Some(Dialect::Postgres) => &PostgreSqlDialect {},
        Some(Dialect::MySql) => &MySqlDialect {},
        Some(Dialect::Sqlite) => &SQLiteDialect {},
    };
    let not_read = |error: &dyn std::fmt::Display| format!("an SQL text that is not understood: {error}");
    let tokens = Tokenizer::new(of, text).tokenize_with_location().map_err(|error| not_read(&error))?;
    // The data behind a `COPY` are whatever the database does not take for statements.
    if tokens.iter().any(|token| matches!(token.token, Token::CopyData { .. })) {
        return Err("an SQL text with data in it".to_owned());
    }
    if !cuts_at(&tokens, starts) {
        return Err("an SQL text whose words the parser does not find".to_owned());
    }
    if nesting(&tokens) > MAX_NESTING {
        return Err("an SQL text that is nested too deep".to_owned());
    }
    let joins = |token: &&TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::JOIN);
    if tokens.iter().filter(joins).count() > MAX_JOINS {
        return Err("an SQL text with too many joins".to_owned());
    }
    if let Some(facet) = pragma(&tokens, dialect) {
        return Ok(facet);
    }
    let mut parser = Parser::new(of).with_recursion_limit(MAX_NESTING * 2).with_tokens_with_locations(tokens);
    let statements = parser.parse_statements().map_err(|error| not_read(&error))?;
    if parser.peek_token().token != Token::EOF {
        return Err("an SQL text that goes on where the parser ends".to_owned());
    }
    if statements.is_empty() {
        return Err("an SQL text without a statement".to_owned());
    }
    let mut walk = Walk::new(dialect);
    let _: ControlFlow<()> = statements.visit(&mut walk);
    if matches!(dialect, None | Some(Dialect::Postgres)) && walk.attributes.call() {
        walk.kind(Kind::Call);
    }
    Ok(walk.found)
}

/// SQLite's pragmas that only read, which the parser does not know: those that name a table, and those that name nothing.
fn pragma(tokens: &[TokenWithSpan], dialect: Option<Dialect>) -> Option<SqlFacet> {
    const OF_TABLE: [&str; 4] = ["foreign_key_list", "index_list", "table_info", "table_xinfo"];
    const ALONE: [&str; 10] = [
        "collation_list",
        "compile_options",
        "database_list",
        "encoding",
        "foreign_keys",
        "journal_mode",
        "page_count",
        "schema_version",
        "table_list",
        "user_version",
    ];
    if dialect != Some(Dialect::Sqlite) {
        return None;
    }
    let is_word = |token: &&Token| !matches!(token, Token::Whitespace(_) | Token::EOF);
    let words: Vec<&Token> = tokens.iter().map(|token| &token.token).filter(is_word).collect();
    let words = words.strip_suffix(&[&Token::SemiColon]).unwrap_or(&words);
    let [Token::Word(first), words @ ..] = words else { return None };
    if !first.value.eq_ignore_ascii_case("pragma") {
        return None;
    }
    let words = match words {
        [Token::Word(_), Token::Period, rest @ ..] => rest,
        words => words,
    };
    let is = |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let mut walk = Walk::new(dialect);
    match words {
        [Token::Word(name)] if is(&ALONE, &name.value) => {}
        [Token::Word(name), Token::LParen, table, Token::RParen] if is(&OF_TABLE, &name.value) => {
            let table = match table {
                Token::Word(table) => table.value.as_str(),
                Token::SingleQuotedString(table) => table.as_str(),
                _ => return None,
            };
            walk.table(&ObjectName::from(vec![Ident::new(table)]));
        }
        _ => return None,
    }
    walk.kind(Kind::Show);
    Some(walk.found)
}

/// Whether the parser's words begin where they do, each of them.
fn cuts_at(tokens: &[TokenWithSpan], starts: &[Start]) -> bool {
    use Whitespace::{Newline, Space, Tab};
    let is_blank =
        |token: &&TokenWithSpan| matches!(token.token, Token::Whitespace(Space | Newline | Tab) | Token::EOF);
    let mut starts = starts.iter();
    let found = tokens.iter().filter(|token| !is_blank(token)).all(|token| {
        let same = |start: &Start| start.at == token.span.start;
        starts.by_ref().find(|start| start.own || same(start)).is_some_and(same)
    });
    found && starts.all(|start| !start.own)
}

/// How deep brackets and `CASE` go.
fn nesting(tokens: &[TokenWithSpan]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            Token::Word(word) if word.keyword == Keyword::CASE => depth += 1,
            Token::Word(word) if word.keyword == Keyword::END => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Words that stand between a statement and its table in some database.
const MODIFIERS: [&str; 10] = [
    "concurrent",
    "delayed",
    "high_priority",
    "ignore",
    "lateral",
    "local",
    "low_priority",
    "only",
    "partition",
    "quick",
];

struct Walk {
    dialect: Option<Dialect>,
    found: SqlFacet,
    /// The queries that are being visited, outermost first.
    scopes: Vec<Scope>,
    attributes: Attributes,
}

/// The names that a query's `WITH` gives.
struct Scope {
    names: Vec<Ident>,
    /// Where the query of each name lies: only to know it again.
    queries: Vec<*const Query>,
    recursive: bool,
    /// How many of the names hold just now.
    visible: usize,
}

impl Walk {
    fn new(dialect: Option<Dialect>) -> Self {
        Self { dialect, found: SqlFacet::default(), scopes: Vec::new(), attributes: Attributes::default() }
    }

    fn kind(&mut self, kind: Kind) {
        self.found.kinds.insert(kind);
    }

    fn table(&mut self, name: &ObjectName) {
        let mut parts = Vec::new();
        for part in &name.0 {
            match part {
                // `FROM 'file'`, or a name that is computed.
                ObjectNamePart::Identifier(ident) if ident.quote_style != Some('\'') => parts.push(self.part(ident)),
                _ => return self.kind(Kind::Other),
            }
        }
        // Whatever the schema is: SQLite finds its function tables in each.
        if let Some(ObjectNamePart::Identifier(last)) = name.0.last()
            && is_called(&last.value, self.dialect)
        {
            self.kind(Kind::Call);
        }
        self.attributes.table(name);
        if let [ObjectNamePart::Identifier(only)] = name.0.as_slice() {
            let word = only.value.to_ascii_lowercase();
            // The parser may take a modifier for the table, and the table for its alias.
            if only.quote_style.is_none() && MODIFIERS.contains(&word.as_str()) {
                self.kind(Kind::Other);
            }
        }
        self.found.tables.insert(parts.join("."));
    }

    fn reach(&mut self, reach: &Reach<'_>) -> &'static [Kind] {
        reach.tables.iter().for_each(|name| self.table(name));
        match (reach.rights, reach.beyond) {
            (false, false) => &[Kind::Ddl],
            (false, true) => &[Kind::Ddl, Kind::Other],
            (true, false) => &[Kind::Ddl, Kind::Dcl],
            (true, true) => &[Kind::Ddl, Kind::Dcl, Kind::Other],
        }
    }

    /// A part of a name as the database compares it.
    fn part(&self, ident: &Ident) -> String {
        let folds = match self.dialect {
            Some(Dialect::Postgres) => ident.quote_style.is_none(),
            Some(Dialect::Sqlite) => true,
            Some(Dialect::MySql) | None => false,
        };
        let name = if folds { ident.value.to_ascii_lowercase() } else { ident.value.clone() };
        if !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return name;
        }
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    /// Whether the name is one that a `WITH` around it gives. Only the very same spelling is.
    fn is_given(&self, name: &ObjectName) -> bool {
        let [ObjectNamePart::Identifier(wanted)] = name.0.as_slice() else { return false };
        let same = |given: &Ident| given.value == wanted.value && given.quote_style == wanted.quote_style;
        self.scopes.iter().any(|scope| scope.names.iter().take(scope.visible).any(same))
    }

    /// What is written to is a table, whatever a `WITH` calls so.
    fn target(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table { name, .. } => self.table(name),
            _ => self.kind(Kind::Other),
        }
    }

    fn function(&mut self, name: &ObjectName) {
        if !is_pure(name, self.dialect) {
            self.kind(Kind::Call);
        }
    }

    fn statement(&mut self, statement: &Statement) -> &'static [Kind] {
        match statement {
            Statement::Query(_) => &[Kind::Select],
            // What it explains is judged, whether it runs or not.
            Statement::Explain { .. } => &[],
            Statement::Insert(insert) => {
                match &insert.table {
                    TableObject::TableName(name) => self.table(name),
                    TableObject::TableFunction(_) | TableObject::TableQuery(_) => self.kind(Kind::Other),
                }
                let replaces = insert.replace_into || insert.or.is_some() || insert.overwrite;
                if replaces {
                    self.kind(Kind::Delete);
                }
                if let Some(alias) = &insert.table_alias {
                    self.attributes.row(&alias.alias);
                }
                if insert.on.is_some() {
                    // The row that could not be inserted.
                    self.attributes.row(&Ident::new("excluded"));
                }
                if insert.on.is_some() { &[Kind::Insert, Kind::Update] } else { &[Kind::Insert] }
            }
            Statement::Update(update) => {
                self.target(&update.table.relation);
                &[Kind::Update]
            }
            Statement::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
                from.iter().for_each(|from| self.target(&from.relation));
                &[Kind::Delete]
            }
            Statement::Merge(merge) => {
                self.target(&merge.table);
                &[Kind::Insert, Kind::Update, Kind::Delete]
            }
            Statement::Truncate(truncate) => match truncate.cascade {
                Some(CascadeOption::Cascade) => &[Kind::Delete, Kind::Other],
                _ => &[Kind::Delete],
            },
            Statement::CreateTable(table) => self.reach(&Reach::of_create(table)),
            Statement::AlterTable(alter) => self.reach(&Reach::of_alter(alter)),
            Statement::CreateView(view) if view.params.is_none() && view.to.is_none() => &[Kind::Ddl],
            Statement::CreateIndex(index) if index.alter_options.is_empty() => &[Kind::Ddl],
            Statement::Drop {
                object_type: ObjectType::Table | ObjectType::View, names, cascade, table: None, ..
            } => {
                names.iter().for_each(|name| self.table(name));
                if *cascade { &[Kind::Ddl, Kind::Other] } else { &[Kind::Ddl] }
            }
            Statement::Grant(_)
            | Statement::Revoke(_)
            | Statement::GrantRole(_)
            | Statement::RevokeRole(_)
            | Statement::Deny(_)
            | Statement::AlterDefaultPrivileges(_)
            | Statement::CreateRole(_)
            | Statement::AlterRole { .. }
            | Statement::CreateUser(_)
            | Statement::AlterUser(_)
            | Statement::CreatePolicy(_)
            | Statement::AlterPolicy(_)
            | Statement::DropPolicy(_)
            | Statement::Drop { object_type: ObjectType::Role | ObjectType::User, .. } => &[Kind::Dcl],
            Statement::StartTransaction { .. }
            | Statement::Commit { .. }
            | Statement::Rollback { .. }
            | Statement::Savepoint { .. }
            | Statement::ReleaseSavepoint { .. } => &[Kind::Tx],
            Statement::Set(_) | Statement::Reset(_) if is_of_rights(statement) => &[Kind::Set, Kind::Dcl],
            // Some write to the schema, to files, or run statements later.
            Statement::Pragma { .. } => &[Kind::Set, Kind::Other],
            Statement::Set(_) if is_of_server(statement) => &[Kind::Set, Kind::Other],
            Statement::Set(_) | Statement::Reset(_) | Statement::Use(_) => &[Kind::Set],
            Statement::ShowCreate { obj_name, .. } => {
                self.table(obj_name);
                &[Kind::Show]
            }
            Statement::ShowCharset(_)
            | Statement::ShowCollation { .. }
            | Statement::ShowColumns { .. }
            | Statement::ShowDatabases { .. }
            | Statement::ShowSchemas { .. }
            | Statement::ShowStatus { .. }
            | Statement::ShowTables { .. }
            | Statement::ShowVariable { .. }
            | Statement::ShowVariables { .. }
            | Statement::ShowViews { .. }
            | Statement::ExplainTable { .. } => &[Kind::Show],
            Statement::Call(_)
            | Statement::Execute { .. }
            | Statement::Prepare { .. }
            | Statement::Deallocate { .. } => &[Kind::Call],
            Statement::Copy { .. } | Statement::LoadData { .. } | Statement::Unload { .. } => &[Kind::Copy],
            other if is_definition(other) => &[Kind::Ddl, Kind::Other],
            _ => &[Kind::Other],
        }
    }
}

/// Whether a setting is who one is: `SET ROLE`, `SET session_authorization = x`, MySQL's `SET PASSWORD`.
fn is_of_rights(statement: &Statement) -> bool {
    let text = statement.to_string().to_ascii_lowercase();
    let name = text.split('=').next().unwrap_or_default();
    ["role", "authorization", "password"].iter().any(|word| name.contains(word))
}

/// Whether a setting is the server's: MySQL's `SET GLOBAL init_connect` is run for others, `general_log_file` is written.
fn is_of_server(statement: &Statement) -> bool {
    let text = statement.to_string().to_ascii_lowercase();
    ["global", "persist"].iter().any(|word| text.contains(word))
}

/// Definitions that go beyond tables.
fn is_definition(statement: &Statement) -> bool {
    // The verbs that only definitions begin with; there are some eighty of them, and more with each version.
    let text = statement.to_string();
    ["CREATE ", "ALTER ", "DROP ", "RENAME ", "COMMENT "].iter().any(|verb| text.starts_with(verb))
}

impl Visitor for Walk {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<()> {
        let kinds = self.statement(statement);
        self.found.kinds.extend(kinds);
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        match &*query.body {
            SetExpr::Values(_) | SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {}
            _ => self.kind(Kind::Select),
        }
        if !query.locks.is_empty() {
            self.kind(Kind::Update);
        }
        let beyond = query.for_clause.is_some() || query.settings.is_some() || query.format_clause.is_some();
        if beyond || !query.pipe_operators.is_empty() {
            self.kind(Kind::Other);
        }
        self.named_tables(&query.body);
        let own: *const Query = query;
        if let Some(outer) = self.scopes.last_mut()
            && let Some(at) = outer.queries.iter().position(|given| std::ptr::eq(*given, own))
        {
            // A name holds in the queries after its own, and where they may recurse in its own, or in all of them.
            let in_all = matches!(self.dialect, Some(Dialect::Postgres | Dialect::Sqlite));
            outer.visible = match outer.recursive {
                true if in_all => outer.names.len(),
                true => at + 1,
                false => at,
            };
        }
        let given = query.with.iter().flat_map(|with| &with.cte_tables);
        let names: Vec<Ident> = given.clone().map(|cte| cte.alias.name.clone()).collect();
        names.iter().for_each(|name| self.attributes.row(name));
        let queries = given.map(|cte| std::ptr::from_ref(&*cte.query)).collect();
        let recursive = query.with.as_ref().is_some_and(|with| with.recursive);
        self.scopes.push(Scope { visible: names.len(), names, queries, recursive });
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.scopes.pop();
        let own: *const Query = query;
        if let Some(outer) = self.scopes.last_mut()
            && outer.queries.iter().any(|given| std::ptr::eq(*given, own))
        {
            outer.visible = outer.names.len();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        if select.into.is_some() {
            self.kind(Kind::Ddl);
            self.kind(Kind::Other);
        }
        if !select.lateral_views.is_empty() {
            self.kind(Kind::Other);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        if !self.is_given(relation) {
            self.table(relation);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.attributes.factor(factor);
        match factor {
            TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } => self.function(name),
            TableFactor::Table { .. }
            | TableFactor::Derived { .. }
            | TableFactor::NestedJoin { .. }
            | TableFactor::UNNEST { .. }
            | TableFactor::TableFunction { .. }
            | TableFactor::JsonTable { .. } => {}
            _ => self.kind(Kind::Other),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.attributes.expr(expr);
        match expr {
            Expr::Function(function) => self.function(&function.name),
            Expr::BinaryOp { op, .. } => match op {
                BinaryOperator::Custom(_) | BinaryOperator::PGCustomBinaryOperator(_) => self.kind(Kind::Call),
                BinaryOperator::Assignment => self.kind(Kind::Set),
                _ => {}
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Walk {
    /// `TABLE name`, which the visitor does not show.
    fn named_tables(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Table(_) => self.kind(Kind::Other),
            SetExpr::SetOperation { left, right, .. } => {
                self.named_tables(left);
                self.named_tables(right);
            }
            _ => {}
        }
    }
}

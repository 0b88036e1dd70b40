//! What every database cuts into the same words: a list of what is plain, and nothing else passes.
//!
//! The parser behind it is not the database's own. Where lexers are known to differ — escapes in texts, kinds of
//! comments, dollar quotes, prefixes of texts, what ends an operator, letters and blanks beyond ASCII — the text is not
//! read at all, unless the upstream's dialect settles it; and the parser must find the same words. Sources: PostgreSQL
//! 17, section 4.1; MySQL 8.4, sections 11.1 and 11.7; SQLite, "SQL Language Expressions" and "SQL Comment Syntax", and
//! its `tokenize.c`; MariaDB, "Comment Syntax".

use sqlparser::tokenizer::Location;

use crate::catalog::Dialect;
use crate::pattern::is_invisible;

/// Where a word, a sign, a text or a comment begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Start {
    pub at: Location,
    /// Whether it is always one of its own: `.5` and `N'…'` are one word to some.
    pub own: bool,
}

/// Operators that every database knows as one, or as two in the same places.
pub(super) const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "%", "<", ">", "=", "<>", "<=", ">=", "!=", "||", "->", "->>", "&", "|", "<<", ">>", "~", "^",
];
pub(super) const OF_POSTGRES: &[&str] = &[
    "?", "?|", "?&", "@>", "<@", "@?", "@@", "@", "#", "#>", "#>>", "#-", "&&", "&<", "&>", "-|-", "<->", "<#>", "<=>",
    "~*", "!~", "!~*", "~~", "~~*", "!~~", "!~~*", "^@", "|/", "||/", "=>", "<%", "%>",
];
const OF_MYSQL: &[&str] = &["<=>", "&&", "!"];
const OF_SQLITE: &[&str] = &["=="];
/// Bytes of a name that PostgreSQL keeps.
const NAME: usize = 63;

/// Where everything in the text begins but for blanks.
///
/// # Errors
/// Why databases may cut the text into other words.
pub(super) fn cut(text: &str, dialect: Option<Dialect>) -> Result<Vec<Start>, &'static str> {
    let at = Location { line: 1, column: 1 };
    let mut scan = Scan { rest: text, before: None, dialect, at, starts: Vec::new() };
    while let Some(c) = scan.rest.chars().next() {
        scan.step(c)?;
    }
    Ok(scan.starts)
}

struct Scan<'a> {
    rest: &'a str,
    /// The character before the rest.
    before: Option<char>,
    dialect: Option<Dialect>,
    at: Location,
    starts: Vec<Start>,
}

impl Scan<'_> {
    /// Goes over one piece, which begins with `c`.
    fn step(&mut self, c: char) -> Result<(), &'static str> {
        match c {
            ' ' | '\t' | '\n' => self.pass(1),
            '\r' if self.rest.starts_with("\r\n") => self.pass(2),
            '\r' => return Err("a carriage return, which ends a line for some databases only"),
            'a'..='z' | 'A'..='Z' | '_' => self.word()?,
            '0'..='9' => self.number()?,
            '\'' | '"' | '`' => self.quoted(c)?,
            '(' | ')' | ',' | ';' | '.' => self.one(1),
            '-' if self.rest.starts_with("--") => self.line_comment(2)?,
            '#' if self.is(Dialect::MySql) => self.line_comment(1)?,
            '#' if !self.is(Dialect::Postgres) => {
                return Err("a `#`, which begins a comment for some databases only");
            }
            '/' if self.rest.starts_with("/*") => self.block_comment()?,
            '$' => self.dollar()?,
            '[' | ']' => self.bracket()?,
            ':' => self.colon()?,
            '@' if !self.is(Dialect::Postgres) => self.variable()?,
            '?' if !self.is(Dialect::Postgres) => self.one(1),
            c if self.is_of_operator(c) => self.operator()?,
            '\\' => return Err("a backslash outside of a text"),
            c if c.is_ascii() => return Err("a sign that not every database knows"),
            _ => return Err("letters or blanks beyond ASCII outside of a text"),
        }
        Ok(())
    }

    fn is(&self, dialect: Dialect) -> bool {
        self.dialect == Some(dialect)
    }

    /// Notes that something begins here, of so many bytes.
    fn one(&mut self, bytes: usize) {
        self.begin(true);
        self.pass(bytes);
    }

    fn begin(&mut self, own: bool) {
        self.starts.push(Start { at: self.at, own });
    }

    fn pass(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        for c in passed.chars() {
            match c {
                '\n' => self.at = Location { line: self.at.line + 1, column: 1 },
                _ => self.at.column += 1,
            }
            self.before = Some(c);
        }
        self.rest = rest;
    }

    /// How many bytes of the rest are letters, digits and `_`.
    fn name_at(&self, from: usize) -> usize {
        self.rest.bytes().skip(from).take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count()
    }

    fn word(&mut self) -> Result<(), &'static str> {
        let length = self.name_at(0);
        if length > NAME && !matches!(self.dialect, Some(Dialect::MySql | Dialect::Sqlite)) {
            return Err("a name longer than some databases keep");
        }
        let quoted = matches!(self.rest.as_bytes().get(length..), Some([b'&', b'\'' | b'"', ..]));
        if quoted && matches!(self.rest.get(..length), Some("u" | "U")) {
            return Err("a text with a prefix");
        }
        self.one(length);
        Ok(())
    }

    /// A text or a quoted name, whose end must be the same with and without backslash escapes.
    fn quoted(&mut self, quote: char) -> Result<(), &'static str> {
        const OPEN: &str = "a text without an end";
        if quote == '`' && !matches!(self.dialect, Some(Dialect::MySql | Dialect::Sqlite)) {
            return Err("a backtick, which quotes for some databases only");
        }
        let inner = self.rest.get(1..).ok_or(OPEN)?;
        let end = end_of(inner, quote, false);
        if !self.is(Dialect::Sqlite) && end != end_of(inner, quote, true) {
            return Err("a backslash before a quote, which is an escape for some databases only");
        }
        let inner = inner.get(..end.ok_or(OPEN)?).ok_or(OPEN)?;
        visible(inner)?;
        if quote == '"' && inner.len() > NAME && !matches!(self.dialect, Some(Dialect::MySql | Dialect::Sqlite)) {
            return Err("a name longer than some databases keep");
        }
        // `E'…'`, `_utf8'…'`, `@'…'`: what is in them counts for nothing only where it is plain.
        // PostgreSQL's own escapes end it nowhere else, as is known by now.
        let escaped = self.is(Dialect::Postgres) && self.is_behind_an_e();
        let prefixed = self.before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '@'));
        if prefixed
            && !escaped
            && !inner.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | ':'))
        {
            return Err("a text with a prefix");
        }
        self.begin(!prefixed);
        self.pass(inner.len() + 2);
        Ok(())
    }

    /// Whether the last word is `e`, and nothing stands between.
    fn is_behind_an_e(&self) -> bool {
        let Location { line, column } = self.at;
        let word = self.starts.last().map(|start| start.at);
        matches!(self.before, Some('e' | 'E')) && word == Some(Location { line, column: column.saturating_sub(1) })
    }

    fn line_comment(&mut self, mark: usize) -> Result<(), &'static str> {
        let after = self.rest.get(mark..).unwrap_or_default();
        let settled = matches!(self.dialect, Some(Dialect::Postgres | Dialect::Sqlite));
        if mark == 2 && !settled && !after.is_empty() && !after.starts_with([' ', '\t', '\n']) {
            return Err("`--` without a blank, which is no comment for some databases");
        }
        let (comment, _) = after.split_once('\n').unwrap_or((after, ""));
        remark(comment.strip_suffix('\r').filter(|shorter| after.len() > shorter.len() + 1).unwrap_or(comment))?;
        self.one(mark + comment.len());
        Ok(())
    }

    fn block_comment(&mut self) -> Result<(), &'static str> {
        let inner = self.rest.get(2..).unwrap_or_default();
        let (comment, _) = inner.split_once("*/").ok_or("a comment without an end")?;
        if comment.starts_with(['!', '+']) || comment.starts_with("M!") {
            return Err("a comment that some databases run, or take as a hint");
        }
        if comment.contains("/*") || comment.ends_with('/') {
            return Err("a comment within a comment, which not all databases know");
        }
        remark(comment)?;
        self.one(comment.len() + 4);
        Ok(())
    }

    /// `$1`, and in PostgreSQL `$tag$…$tag$`.
    fn dollar(&mut self) -> Result<(), &'static str> {
        if self.before.is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$')) {
            return Err("a `$` in a name, which ends it for some databases");
        }
        let after = self.rest.get(1..).unwrap_or_default();
        if after.starts_with(|c: char| c.is_ascii_digit()) {
            let length = 1 + self.name_at(1);
            if after.get(..length - 1).is_none_or(|number| !number.bytes().all(|b| b.is_ascii_digit())) {
                return Err("a number that runs into a word");
            }
            return self.parameter(length);
        }
        let quote = after.find('$').and_then(|end| self.rest.get(..end + 2));
        let tagged = |tag: &&str| tag.chars().all(|c| c == '$' || c == '_' || c.is_ascii_alphabetic());
        match quote.filter(tagged) {
            Some(tag) if self.is(Dialect::Postgres) => {
                let inner = self.rest.get(tag.len()..).unwrap_or_default();
                let (inner, _) = inner.split_once(tag).ok_or("a text without an end")?;
                visible(inner)?;
                self.one(inner.len() + 2 * tag.len());
                Ok(())
            }
            _ => Err("a `$`, which quotes for some databases only"),
        }
    }

    /// `[…]` is a quoted name here, an index or an array there.
    fn bracket(&mut self) -> Result<(), &'static str> {
        if self.is(Dialect::Postgres) {
            self.one(1);
            return Ok(());
        }
        let inner = self.rest.strip_prefix('[').and_then(|inner| inner.split_once(']')).map(|(inner, _)| inner);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | '.' | '-');
        match inner.filter(|inner| self.is(Dialect::Sqlite) && inner.chars().all(plain)) {
            Some(inner) => {
                self.one(inner.len() + 2);
                Ok(())
            }
            None => Err("brackets, which quote for some databases only"),
        }
    }

    /// `::` of PostgreSQL, the colon of a slice, or `:name`.
    fn colon(&mut self) -> Result<(), &'static str> {
        match self.rest.as_bytes().get(1) {
            Some(b'=') => Err("an assignment to a variable"),
            Some(b':') if self.is(Dialect::Postgres) => {
                self.one(2);
                Ok(())
            }
            Some(b':') => Err("a `::`, which is a part of a variable's name for some databases"),
            _ if self.is(Dialect::Postgres) => {
                self.one(1);
                Ok(())
            }
            _ => self.variable(),
        }
    }

    /// `:name`, `@name`, `@@name`.
    fn variable(&mut self) -> Result<(), &'static str> {
        let marks = if self.rest.starts_with("@@") { 2 } else { 1 };
        match self.name_at(marks) {
            // `@'…'`
            0 if self.is(Dialect::MySql) && self.rest.starts_with('@') => {
                self.one(marks);
                Ok(())
            }
            0 => Err("a sign that not every database knows"),
            length => self.parameter(marks + length),
        }
    }

    /// What stands for a value. `:a(…)` and `$a::b` are one variable to SQLite, whatever is in the brackets.
    fn parameter(&mut self, length: usize) -> Result<(), &'static str> {
        let runs_on = |after: &str| after.starts_with(['(', ':', '$', '@', '#', '\'', '"', '`']);
        if !self.is(Dialect::Postgres) && self.rest.get(length..).is_some_and(runs_on) {
            return Err("a variable whose name goes on for some databases");
        }
        let marks = self.rest.find(|c| !matches!(c, ':' | '@' | '$')).unwrap_or_default();
        self.one(marks);
        self.begin(false);
        self.pass(length - marks);
        Ok(())
    }

    /// `1`, `1.5e-3`, `0xff`; `1a` is one word here and two there.
    fn number(&mut self) -> Result<(), &'static str> {
        let mut end = 0;
        let mut before = ' ';
        for (at, c) in self.rest.char_indices() {
            let signed = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
            if !(c.is_alphanumeric() || matches!(c, '.' | '_' | '$') || signed) {
                break;
            }
            before = c;
            end = at + c.len_utf8();
        }
        let text = self.rest.get(..end).unwrap_or_default().to_ascii_lowercase();
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let hex =
            text.strip_prefix("0x").is_some_and(|hex| !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit()));
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let decimal = digits(whole) && digits(fraction) && digits(exponent) && !exponent.is_empty();
        if !hex && !decimal {
            return Err("a number that runs into a word");
        }
        self.begin(!matches!(self.before, Some('.' | '?')));
        self.pass(end);
        Ok(())
    }

    fn is_of_operator(&self, c: char) -> bool {
        match c {
            '+' | '-' | '*' | '/' | '<' | '>' | '=' | '~' | '!' | '%' | '^' | '&' | '|' => true,
            // Where the database is not known, it may be PostgreSQL.
            '@' | '#' | '?' => matches!(self.dialect, None | Some(Dialect::Postgres)),
            _ => false,
        }
    }

    /// A known operator, and a sign that may follow it: PostgreSQL takes the longest run of such characters for one, up to
    /// a comment, but for a `+` or `-` at its end.
    fn operator(&mut self) -> Result<(), &'static str> {
        let end = self.rest.find(|c| !self.is_of_operator(c)).unwrap_or(self.rest.len());
        let run = self.rest.get(..end).unwrap_or_default();
        let known = |run: &str| {
            OPERATORS.contains(&run)
                || match self.dialect {
                    None => run == "?",
                    Some(Dialect::Postgres) => OF_POSTGRES.contains(&run),
                    Some(Dialect::MySql) => OF_MYSQL.contains(&run),
                    Some(Dialect::Sqlite) => OF_SQLITE.contains(&run),
                }
        };
        if known(run) {
            self.one(end);
            return Ok(());
        }
        let head = run.strip_suffix(['+', '-']).filter(|head| known(head));
        let Some(head) = head.filter(|head| head.bytes().all(|b| b"+-*/<>=".contains(&b))) else {
            return Err("an operator that not every database knows");
        };
        self.one(head.len());
        // The parser may take both for one, which it does not know.
        self.begin(false);
        self.pass(1);
        Ok(())
    }
}

/// The end of a text that `quote` began, where it is doubled within.
fn end_of(inner: &str, quote: char, escapes: bool) -> Option<usize> {
    let mut chars = inner.char_indices().peekable();
    loop {
        let (at, c) = chars.next()?;
        if c == '\\' && escapes {
            chars.next()?;
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some(at);
        }
    }
}

fn visible(text: &str) -> Result<(), &'static str> {
    let hidden = |c: char| is_invisible(c) && !matches!(c, '\n' | '\t' | '\r');
    if text.chars().any(hidden) { Err("invisible characters") } else { Ok(()) }
}

/// A comment may also end no line for some databases only.
fn remark(comment: &str) -> Result<(), &'static str> {
    visible(comment)?;
    let lone = |line: &str| line.contains('\r');
    if comment.split("\r\n").any(lone) {
        Err("a carriage return, which ends a line for some databases only")
    } else {
        Ok(())
    }
}

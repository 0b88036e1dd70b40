//! What every database cuts into the same words: a scan that lets through nothing else.
//!
//! The parser behind it is not the database's own. Where lexers are known to differ — escapes in texts, kinds of
//! comments, dollar quotes, prefixes of texts, letters and blanks beyond ASCII — the text is not read at all, unless the
//! upstream's dialect settles it. Sources: PostgreSQL 17, section 4.1; MySQL 8.4, sections 11.1 and 11.7; SQLite, "SQL
//! Language Expressions" and "SQL Comment Syntax"; MariaDB, "Comment Syntax".

use crate::catalog::Dialect;
use crate::pattern::is_invisible;

/// Why databases may cut the text into other words than the parser; none if they cannot.
pub(super) fn doubt(text: &str, dialect: Option<Dialect>) -> Option<&'static str> {
    let mut scan = Scan { rest: text, before: None, dialect };
    loop {
        match scan.step() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(why) => return Some(why),
        }
    }
}

struct Scan<'a> {
    rest: &'a str,
    /// The character before the rest.
    before: Option<char>,
    dialect: Option<Dialect>,
}

impl<'a> Scan<'a> {
    /// Goes over one piece; false at the end.
    fn step(&mut self) -> Result<bool, &'static str> {
        let Some(c) = self.rest.chars().next() else { return Ok(false) };
        let in_name = self.before.is_some_and(is_name);
        let is = |dialect| self.dialect == Some(dialect);
        match c {
            '\'' | '"' | '`' => self.quoted(c, in_name)?,
            '-' if self.rest.starts_with("--") => self.line_comment(2)?,
            '#' if is(Dialect::MySql) => self.line_comment(1)?,
            '#' if !is(Dialect::Postgres) => return Err("a `#`, which begins a comment for some databases only"),
            '/' if self.rest.starts_with("/*") => self.block_comment()?,
            '$' if in_name => return Err("a `$` in a name, which ends it for some databases"),
            '$' => self.dollar()?,
            '[' => self.bracket()?,
            '\\' => return Err("a backslash outside of a text"),
            ':' if self.rest.starts_with(":=") => return Err("an assignment to a variable"),
            '\r' if !self.rest.starts_with("\r\n") => {
                return Err("a carriage return, which ends a line for some databases only");
            }
            '\n' | '\t' | '\r' | ' ' => self.pass(1),
            c if c.is_ascii_digit() && !in_name => self.number()?,
            c if c.is_ascii_graphic() => self.pass(1),
            _ => return Err("letters or blanks beyond ASCII outside of a text"),
        }
        Ok(true)
    }

    fn pass(&mut self, bytes: usize) {
        let (passed, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.before = passed.chars().next_back();
        self.rest = rest;
    }

    /// A text or a quoted name, whose end must be the same with and without backslash escapes.
    fn quoted(&mut self, quote: char, in_name: bool) -> Result<(), &'static str> {
        const OPEN: &str = "a text without an end";
        let inner = self.rest.get(1..).ok_or(OPEN)?;
        let mut chars = inner.char_indices().peekable();
        let end = loop {
            let (at, c) = chars.next().ok_or(OPEN)?;
            if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
                break at;
            }
            if is_invisible(c) && !matches!(c, '\n' | '\t' | '\r') {
                return Err("invisible characters in a text");
            }
        };
        let inner = inner.get(..end).ok_or(OPEN)?;
        let literal = matches!(self.dialect, Some(Dialect::Postgres | Dialect::Sqlite)) && !in_name;
        let hidden = inner.match_indices('\\').any(|(at, _)| {
            inner
                .get(at + 1..)
                .and_then(|after| after.chars().next())
                .is_none_or(|c| matches!(c, '\'' | '"' | '`' | '\\'))
        });
        if hidden && !literal {
            return Err("a backslash before a quote, which is an escape for some databases only");
        }
        if quote == '`' && !matches!(self.dialect, Some(Dialect::MySql | Dialect::Sqlite)) {
            return Err("a backtick, which quotes for some databases only");
        }
        // `E'…'`, `U&'…'`, `_utf8'…'`: what is in them counts for nothing only where it is plain.
        if in_name && !inner.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_' | '.' | ':')) {
            return Err("a text with a prefix");
        }
        self.pass(end + 2);
        Ok(())
    }

    fn line_comment(&mut self, mark: usize) -> Result<(), &'static str> {
        let after = self.rest.get(mark..).unwrap_or_default();
        if mark == 2 && !after.is_empty() && !after.starts_with([' ', '\t', '\n']) {
            return Err("`--` without a blank, which is no comment for some databases");
        }
        let (comment, _) = after.split_once('\n').unwrap_or((after, ""));
        visible(comment)?;
        self.pass(mark + comment.len());
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
        visible(comment)?;
        self.pass(comment.len() + 4);
        Ok(())
    }

    /// `$1`, and in PostgreSQL `$tag$…$tag$`.
    fn dollar(&mut self) -> Result<(), &'static str> {
        let after = self.rest.get(1..).unwrap_or_default();
        if after.starts_with(|c: char| c.is_ascii_digit()) {
            self.pass(1);
            return Ok(());
        }
        let quote = after.find('$').and_then(|end| self.rest.get(..end + 2));
        let tagged = |tag: &&str| tag.chars().all(|c| c == '$' || c == '_' || c.is_ascii_alphabetic());
        match quote.filter(tagged) {
            Some(tag) if self.dialect == Some(Dialect::Postgres) => {
                let inner = self.rest.get(tag.len()..).unwrap_or_default();
                let (inner, _) = inner.split_once(tag).ok_or("a text without an end")?;
                visible(inner)?;
                self.pass(inner.len() + 2 * tag.len());
                Ok(())
            }
            _ => Err("a `$`, which quotes for some databases only"),
        }
    }

    /// `[…]` is a quoted name, an index or an array.
    fn bracket(&mut self) -> Result<(), &'static str> {
        let (inner, _) = self.rest.split_once(']').ok_or("a bracket without an end")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '[' | '_' | ' ' | ',' | '.' | ':');
        if self.dialect != Some(Dialect::Postgres) && !inner.chars().all(plain) {
            return Err("brackets, which quote for some databases only");
        }
        self.pass(1);
        Ok(())
    }

    /// `1`, `1.5e-3`, `0xff`; `1a` is one word here and two there.
    fn number(&mut self) -> Result<(), &'static str> {
        let mut end = 0;
        let mut before = ' ';
        for (at, c) in self.rest.char_indices() {
            let signed = matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
            if !(is_name(c) || c == '.' || signed) {
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
        self.pass(end);
        Ok(())
    }
}

fn visible(text: &str) -> Result<(), &'static str> {
    let hidden = |c: char| is_invisible(c) && !matches!(c, '\n' | '\t' | '\r');
    if text.chars().any(hidden) || text.replace("\r\n", "\n").contains('\r') {
        return Err("invisible characters");
    }
    Ok(())
}

/// What a name goes on with in some database.
fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '&' | '@') || !c.is_ascii()
}

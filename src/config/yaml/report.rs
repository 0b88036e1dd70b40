//! Where everything that is wrong with one file is collected.

use super::Mark;
use crate::diagnostic::{Diagnostic, Severity};
use crate::pattern::{is_invisible, visible};
use crate::secret::Redaction;

/// Columns of a line that a message shows.
const SNIPPET: usize = 160;

/// Findings that are kept: a file that is wrong all over is not quoted line by line.
const MAX_FOUND: usize = 200;

/// What was found in one file, with the file's text to quote from.
#[derive(Debug)]
pub struct Report {
    file: String,
    source: String,
    found: Vec<Diagnostic>,
    /// How many more there were.
    more: usize,
    /// Whether any of all was an error.
    errors: bool,
}

impl Report {
    /// An empty report on a file, as the operator names it, with its text.
    pub fn new(file: impl Into<String>, source: impl Into<String>) -> Self {
        Self { file: file.into(), source: source.into(), found: Vec::new(), more: 0, errors: false }
    }

    /// The file as the operator named it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Adds an error; [`Report::help`] on what this returns says what to do about it.
    pub fn error(&mut self, at: Mark, message: impl AsRef<str>) -> &mut Self {
        self.add(Severity::Error, at, message.as_ref())
    }

    /// Adds what a lint found: a warning with its code.
    pub fn lint(&mut self, code: &'static str, at: Mark, message: impl AsRef<str>) -> &mut Self {
        self.add(Severity::Warning, at, message.as_ref());
        if let Some(last) = self.found.last_mut().filter(|_| self.more == 0) {
            last.code = Some(code);
        }
        self
    }

    /// Says what to do about the finding just added. Takes a text or an `Option` of one.
    pub fn help<'t>(&mut self, help: impl Into<Option<&'t str>>) -> &mut Self {
        let last = self.found.last_mut().filter(|_| self.more == 0);
        if let (Some(last), Some(help)) = (last, help.into()) {
            last.help = Some(visible(help));
        }
        self
    }

    /// Whether there is an error (warnings do not count).
    pub fn has_errors(&self) -> bool {
        self.errors
    }

    /// Whether what is found from now on is only counted.
    pub fn is_full(&self) -> bool {
        self.found.len() >= MAX_FOUND
    }

    /// All that was found, in the order of the file.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|d| (d.line, d.column));
        if self.more > 0 {
            let more = std::mem::take(&mut self.more);
            let severity = if self.errors { Severity::Error } else { Severity::Warning };
            self.push(severity, Mark::FILE, &format!("and {more} more findings"));
        }
        self.found
    }

    fn add(&mut self, severity: Severity, at: Mark, message: &str) -> &mut Self {
        self.errors |= severity == Severity::Error;
        if self.found.len() < MAX_FOUND {
            self.push(severity, at, message);
        } else {
            self.more += 1;
        }
        self
    }

    fn push(&mut self, severity: Severity, at: Mark, message: &str) {
        self.found.push(Diagnostic {
            severity,
            code: None,
            file: self.file.clone(),
            line: at.line,
            column: at.column,
            message: visible(message),
            help: None,
            snippet: self.snippet(at),
        });
    }

    /// The line, each invisible character shown as one `�`, so that columns stay where they are. None for lines of
    /// `headers`, which may hold secrets; what looks like one elsewhere is redacted.
    fn snippet(&self, at: Mark) -> Option<String> {
        let line = self.source.lines().nth(at.line.checked_sub(1)?)?;
        if at.column > SNIPPET || self.is_in_headers(at.line) {
            return None;
        }
        let line = &Redaction::default().text(line);
        let show = |c| match c {
            '\t' => ' ',
            c if is_invisible(c) => char::REPLACEMENT_CHARACTER,
            c => c,
        };
        let mut shown: String = line.chars().take(SNIPPET).map(show).collect();
        if line.chars().nth(SNIPPET).is_some() {
            shown.push('…');
        }
        Some(shown)
    }

    /// Whether a line is, or stands below, a field called `headers`; by its indentation, so that it works in a file that
    /// is not YAML.
    fn is_in_headers(&self, line: usize) -> bool {
        let before: Vec<&str> = self.source.lines().take(line).filter(|l| !l.trim().is_empty()).collect();
        let mut outer = usize::MAX;
        before.iter().rev().any(|l| {
            let indent = l.len() - l.trim_start().len();
            let encloses = indent < outer;
            outer = outer.min(indent);
            encloses && l.contains("headers")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_wrong_all_over_is_counted_and_not_quoted() {
        let mut report = Report::new("p.yaml", "x\n");
        for _ in 0..MAX_FOUND + 3 {
            report.error(Mark { line: 1, column: 1 }, "x").help("y");
        }
        let found = report.into_diagnostics();
        assert_eq!(found.len(), MAX_FOUND + 1);
        assert_eq!(found.last().map(|d| d.message.as_str()), Some("and 3 more findings"));
    }

    #[test]
    fn no_message_quotes_a_secret() {
        let source = "a:\n  headers:\n\n    x-key: hunter2\n  url: x\nb: ghp_aaaaaaaaaaaaaaaaaaaaaaaa\nheaders: { k: hunter2 }\n";
        let mut report = Report::new("p.yaml", source);
        for line in 1..=7 {
            report.error(Mark { line, column: 1 }, "x");
        }
        let shown: Vec<Option<String>> = report.into_diagnostics().into_iter().map(|d| d.snippet).collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(shown, [some("a:"), None, None, None, some("  url: x"), some("b: [redacted]"), None]);
    }
}

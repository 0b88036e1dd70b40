//! Where everything that is wrong with one file is collected.

use super::Mark;
use crate::diagnostic::{Diagnostic, Severity};
use crate::pattern::{is_invisible, visible};
use crate::secret::Redaction;

/// Columns of a line that a message shows.
const SNIPPET: usize = 160;

/// What was found in one file, with the file's text to quote from.
#[derive(Debug)]
pub struct Report {
    file: String,
    source: String,
    found: Vec<Diagnostic>,
}

impl Report {
    /// An empty report on a file, as the operator names it, with its text.
    pub fn new(file: impl Into<String>, source: impl Into<String>) -> Self {
        Self { file: file.into(), source: source.into(), found: Vec::new() }
    }

    /// The file as the operator named it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Adds an error; [`Report::help`] on what this returns says what to do about it.
    pub fn error(&mut self, at: Mark, message: impl AsRef<str>) -> &mut Self {
        self.add(Severity::Error, at, message.as_ref())
    }

    /// Adds a warning.
    pub fn warning(&mut self, at: Mark, message: impl AsRef<str>) -> &mut Self {
        self.add(Severity::Warning, at, message.as_ref())
    }

    /// Says what to do about the finding just added. Takes a text or an `Option` of one.
    pub fn help<'t>(&mut self, help: impl Into<Option<&'t str>>) -> &mut Self {
        if let (Some(last), Some(help)) = (self.found.last_mut(), help.into()) {
            last.help = Some(visible(help));
        }
        self
    }

    /// Whether there is an error (warnings do not count).
    pub fn has_errors(&self) -> bool {
        self.found.iter().any(|d| d.severity == Severity::Error)
    }

    /// All that was found, in the order of the file.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.found.sort_by_key(|d| (d.line, d.column));
        self.found
    }

    fn add(&mut self, severity: Severity, at: Mark, message: &str) -> &mut Self {
        self.found.push(Diagnostic {
            severity,
            file: self.file.clone(),
            line: at.line,
            column: at.column,
            message: visible(message),
            help: None,
            snippet: self.snippet(at),
        });
        self
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

//! Messages about files that people edit: where, what is wrong, what to do.

use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

/// How bad it is: an error refuses the load, a warning does not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "FindingSeverity")]
pub enum Severity {
    /// The file is refused.
    Error,
    /// The file loads; a person should look.
    Warning,
}

/// One finding in one file. Lines and columns count from 1; 0 where the file as a whole is meant.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub struct Diagnostic {
    /// Error or warning.
    pub severity: Severity,
    /// The lint that found it, with a page in `docs/lints/`; none for what refuses a load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
    /// The file as the operator named it.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, lower case, without a full stop.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The line itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
}

impl Diagnostic {
    /// An error about a file as a whole.
    pub fn whole(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code: None,
            file: file.into(),
            line: 0,
            column: 0,
            message: message.into(),
            help: None,
            snippet: None,
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let code = self.code.map(|code| format!("[{code}]")).unwrap_or_default();
        if self.line == 0 {
            write!(f, "{}: {word}{code}: {}", self.file, self.message)?;
        } else {
            write!(f, "{}:{}:{}: {word}{code}: {}", self.file, self.line, self.column, self.message)?;
        }
        if let Some(snippet) = &self.snippet {
            let number = self.line.to_string();
            write!(f, "\n  {number} | {snippet}")?;
            let pad = number.len() + self.column.saturating_sub(1);
            write!(f, "\n  {:pad$} | {:>width$}", "", "^", pad = number.len(), width = pad - number.len() + 1)?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  help: {help}")?;
            if let Some(code) = self.code {
                write!(f, " (docs/lints/{code}.md)")?;
            }
        }
        Ok(())
    }
}

/// A path as an operator would write it: from the working directory where it lies below.
pub fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// The nearest of `known` to what was written, if it is near enough to be a slip of the hand.
pub fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (distance(written, candidate), candidate))
        .filter(|(d, candidate)| *d <= 2.max(candidate.len() / 3))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance in characters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut last = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (cb, above) in b.iter().zip(row.iter().skip(1)) {
            let cost = usize::from(ca != *cb);
            left = (last + cost).min(left + 1).min(above + 1);
            last = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_like_a_compiler_message() {
        let finding = Diagnostic {
            severity: Severity::Error,
            code: None,
            file: "policies/base.yaml".into(),
            line: 12,
            column: 5,
            message: "unknown field `tools`".into(),
            help: Some("did you mean `tool`?".into()),
            snippet: Some("    tools: x".into()),
        };
        assert_eq!(
            finding.to_string(),
            "policies/base.yaml:12:5: error: unknown field `tools`\n  12 |     tools: x\n     |     ^\n  help: did you mean `tool`?"
        );
    }

    #[test]
    fn a_slip_is_recognised_and_a_stranger_is_not() {
        assert_eq!(did_you_mean("tools", ["tool", "path"]), Some("tool"));
        assert_eq!(did_you_mean("frobnicate", ["tool", "path"]), None);
    }
}

//! What a call would change in existing files, as an approver reads it; and what of them the approval binds.
//!
//! Shown are the files of tools that say what they write ([`Writes`]), where the gateway shares the file system.

use std::ops::Range;

use similar::{ChangeTag, TextDiff};

use super::scripts::{Content, content, hash};
use super::{Executor, Gate, judged, shown};
use crate::approval::{Held, NO_FILE, Script};
use crate::catalog::{Tool, Writes, Writing};
use crate::facet::{self, FacetKind, Touched};
use crate::message::{Message, Value};
use crate::pattern::visible;
use crate::record::{Access, FileDiff, FileState};
use crate::secret::{Hidden, Kept, REDACTED, Redaction, Secret};

/// Lines around a change.
const CONTEXT: usize = 3;
/// Lines that are shown of one file, and characters of one line.
const MOST_LINES: usize = 2_000;
const LONGEST_LINE: usize = 1_000;
/// How long two texts are compared.
const WITHIN: std::time::Duration = std::time::Duration::from_millis(200);

/// The file that a call would write, as an approver is shown it: another content at release is another question. Reads
/// it: not on a thread that serves others.
pub fn bound(entry: &Tool, touched: &Touched) -> Option<Script> {
    let path = target(entry.writes.as_ref()?, touched)?;
    let content = match content(&path) {
        Content::Bytes(bytes) => hash(&bytes),
        Content::NoFile => NO_FILE.to_owned(),
        // Not shown either.
        Content::Unbound => return None,
    };
    Some(Script { path, content: Some(content), shown: true })
}

/// Where the file that a tool writes really is.
fn target(writes: &Writes, touched: &Touched) -> Option<String> {
    let at = format!("/{}", writes.path.0.join("/"));
    touched.facets.iter().find_map(|facet| match &facet.kind {
        FacetKind::Path(path) if path.pointer == at && path.access == Some(Access::Write) => {
            path.physical.first().map(ToString::to_string)
        }
        _ => None,
    })
}

impl Gate {
    /// What a held call would change in files, as they are now. Reads them: not on a thread that serves others.
    pub fn diff(&self, held: &Held) -> Vec<FileDiff> {
        let Some(executor) = self.executors.get(&held.call().upstream) else { return Vec::new() };
        let Ok(message) = held.intent.message() else { return Vec::new() };
        of(self, executor, &message, held).into_iter().collect()
    }
}

fn of(gate: &Gate, executor: &Executor, message: &Message, held: &Held) -> Option<FileDiff> {
    let entry = executor.config.catalogue.tool(held.call().tool.as_deref()?, None);
    let writes = entry.writes.as_ref()?;
    let arguments = judged::arguments(message)?;
    let touched = facet::extract(&entry, &executor.space, Some(arguments)).ok()?;
    let path = target(writes, &touched)?;
    let file = |state| FileDiff {
        path: visible(&path),
        state,
        lines: Vec::new(),
        hidden: Vec::new(),
        hidden_more: 0,
        truncated: false,
        moved_on: false,
    };
    let before = match content(&path) {
        Content::Bytes(bytes) => Some(bytes),
        Content::NoFile => None,
        Content::Unbound => return Some(file(FileState::TooLarge)),
    };
    let found = before.as_deref().map_or_else(|| NO_FILE.to_owned(), hash);
    let is_known = held.intent.scripts.iter().any(|one| one.path == path && one.content.as_ref() == Some(&found));
    let old = match before.as_deref().map(std::str::from_utf8) {
        None => "",
        Some(Ok(text)) => text,
        Some(Err(_)) => return Some(file(FileState::Binary)),
    };
    let diff = match written(&writes.how, old, arguments) {
        Some(new) => {
            let state = match &before {
                None => FileState::New,
                Some(_) if new == old => FileState::Same,
                Some(_) => FileState::Changed,
            };
            let redaction = gate.redaction();
            let (lines, truncated, secrets) = compared(&Lines::of(old, &redaction), &Lines::of(&new, &redaction));
            let (hidden, hidden_more) = shown::hidden(&secrets, &held.call().agent, &gate.fingerprints);
            FileDiff { lines, hidden, hidden_more, truncated, ..file(state) }
        }
        None => file(FileState::Unclear),
    };
    // An ended call is compared with what its file is by now.
    let moved_on = !is_known && held.call().outcome.is_none();
    Some(FileDiff { moved_on, ..diff })
}

/// The file after the call; none where that cannot be told.
fn written(how: &Writing, old: &str, arguments: &Value) -> Option<String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    match how {
        Writing::Whole(pointer, append) => {
            let new = text(pointer.0.iter().try_fold(arguments, |value, key| value.get(key)))?;
            let adds = append.as_ref().is_some_and(|(switch, value)| {
                text(switch.0.iter().try_fold(arguments, |value, key| value.get(key))).as_deref() == Some(*value)
            });
            Some(if adds { format!("{old}{new}") } else { new })
        }
        Writing::Replaced(each, from, to) => {
            let edits: Vec<&Value> = match each {
                None => vec![arguments],
                Some(list) => {
                    let list = list.0.iter().try_fold(arguments, |value, key| value.get(key))?;
                    match &list.kind {
                        crate::message::json::Kind::Array(edits) => edits.iter().collect(),
                        _ => return None,
                    }
                }
            };
            edits.into_iter().try_fold(old.to_owned(), |file, edit| {
                let (from, to) = (text(edit.get(from))?, text(edit.get(to))?);
                file.contains(&from).then(|| file.replacen(&from, &to, 1))
            })
        }
    }
}

/// A text in lines, as a person is shown them.
struct Lines<'t> {
    text: &'t str,
    lines: Vec<&'t str>,
    /// Where each line starts.
    starts: Vec<usize>,
    secrets: Vec<Range<usize>>,
}

impl<'t> Lines<'t> {
    fn of(text: &'t str, redaction: &Redaction) -> Self {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let starts = lines.iter().scan(0, |at, line| Some(std::mem::replace(at, *at + line.len()))).collect();
        Self { text, lines, starts, secrets: redaction.secrets(text, &Kept::default()) }
    }

    /// A line after its sign, with a mark for each secret, or part of one, that is in it; and what those are.
    fn shown(&self, number: usize, sign: &str, pointer: &str) -> (String, Vec<Hidden>) {
        let (start, line) = match (self.starts.get(number), self.lines.get(number)) {
            (Some(start), Some(line)) => (*start, line.trim_end_matches(['\n', '\r'])),
            _ => (0, ""),
        };
        let (mut shown, mut hidden) = (sign.to_owned(), Vec::new());
        let (mut from, end) = (start, start + line.len());
        for secret in self.secrets.iter().filter(|secret| secret.start < end && start < secret.end) {
            shown.push_str(&visible(self.text.get(from..secret.start.max(from)).unwrap_or_default()));
            if shown.chars().count() > LONGEST_LINE {
                from = end;
                break;
            }
            let secret_text = self.text.get(secret.clone()).unwrap_or_default();
            hidden.push(Hidden {
                pointer: pointer.to_owned(),
                mark: shown.matches(REDACTED).count(),
                secret: Secret::new(secret_text),
            });
            shown.push_str(REDACTED);
            from = secret.end;
        }
        shown.push_str(&visible(self.text.get(from..end).unwrap_or_default()));
        // No mark is cut: one that begins in time is shown.
        if let Some((cut, _)) = shown.char_indices().nth(LONGEST_LINE + REDACTED.len()) {
            shown.truncate(cut);
        }
        (shown, hidden)
    }
}

/// The changed lines with some around them: `- ` gone, `+ ` new, two blanks for neither, `@@` between; whether more were
/// left out; and the secrets that are hidden in them. What changes is told of the lines as they are: where one secret
/// takes the place of another, that is a change.
fn compared(old: &Lines<'_>, new: &Lines<'_>) -> (Vec<String>, bool, Vec<Hidden>) {
    let diff = TextDiff::configure().timeout(WITHIN).diff_slices(&old.lines, &new.lines);
    let (mut lines, mut secrets) = (Vec::new(), Vec::new());
    for (place, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if place > 0 {
            lines.push("@@".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            if lines.len() >= MOST_LINES {
                return (lines, true, secrets);
            }
            let pointer = format!("/lines/{}", lines.len());
            let (text, number, sign) = match change.tag() {
                ChangeTag::Delete => (old, change.old_index(), "- "),
                ChangeTag::Insert => (new, change.new_index(), "+ "),
                ChangeTag::Equal => (new, change.new_index(), "  "),
            };
            let (line, hidden) = text.shown(number.unwrap_or(usize::MAX), sign, &pointer);
            lines.push(line);
            secrets.extend(hidden);
        }
    }
    (lines, false, secrets)
}

//! `search_file` and `grep_files`.

use std::io::Read;
use std::ops::ControlFlow;

use globset::{GlobBuilder, GlobMatcher};
use regex::Regex;
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{FileTool, MAX_FILE, Text, parse, schema};
use crate::upstream::workspace::root::{Place, Root, file_in};
use crate::upstream::workspace::tool::{Definition, Stop};
use crate::upstream::workspace::walk::walk;

pub(super) const SEARCH: FileTool = FileTool { definition: search_definition, run: search };
pub(super) const GREP: FileTool = FileTool { definition: grep_definition, run: grep };

/// Longer lines are cut where they are shown, in characters.
const MAX_LINE: usize = 500;

fn search_definition() -> Definition {
    Definition {
        name: "search_file",
        description: "Finds files and folders of the workspace by name. `pattern` is a glob (`*.md`, `report-?.txt`); \
                      with a / in it, it is matched with the path below `path`.",
        input_schema: schema(
            json!({
                "path": { "type": "string", "description": "Where to begin; the workspace itself if left out" },
                "pattern": { "type": "string", "minLength": 1 },
            }),
            &["pattern"],
        ),
        read_only: true,
    }
}

fn grep_definition() -> Definition {
    Definition {
        name: "grep_files",
        description: "Finds lines in text files of the workspace by a regular expression; each comes as path:line: \
                      text. Binary files and those over 10 MB are left out.",
        input_schema: schema(
            json!({
                "path": { "type": "string", "description": "A file or a folder; the workspace itself if left out" },
                "pattern": { "type": "string", "minLength": 1 },
            }),
            &["pattern"],
        ),
        read_only: true,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    path: String,
    pattern: String,
}

fn search(root: &Root, arguments: Value, stop: &Stop) -> Result<String, String> {
    let Arguments { path, pattern } = parse(arguments)?;
    let glob = glob(&pattern)?;
    let by_path = pattern.contains('/');
    let place = root.place(&path)?;
    let folder = root.folder(&place)?;
    let before = prefix(&place);
    let mut found = Text::default();
    let left = walk(&folder, true, stop, &mut |entry| {
        let mark = if entry.kind == FileType::Directory { "/" } else { "" };
        match glob.is_match(if by_path { entry.path } else { entry.name }) {
            true => found.line(&format!("{before}{}{mark}", entry.path)),
            false => ControlFlow::Continue(()),
        }
    })?;
    Ok(found.finish(&left.note(), "[nothing found]"))
}

fn grep(root: &Root, arguments: Value, stop: &Stop) -> Result<String, String> {
    let Arguments { path, pattern } = parse(arguments)?;
    let regex = Regex::new(&pattern).map_err(|error| format!("`pattern` is no regular expression: {error}"))?;
    let place = root.place(&path)?;
    let mut found = Text::default();
    let mut skipped = 0;
    let mut notes = String::new();
    match root.folder(&place) {
        Ok(folder) => {
            let before = prefix(&place);
            let left = walk(&folder, true, stop, &mut |entry| {
                if entry.kind != FileType::RegularFile {
                    return ControlFlow::Continue(());
                }
                match file_in(entry.folder, entry.raw_name, true).ok().and_then(text) {
                    Some(text) => lines(&format!("{before}{}", entry.path), &text, &regex, &mut found),
                    None => {
                        skipped += 1;
                        ControlFlow::Continue(())
                    }
                }
            })?;
            notes = left.note();
        }
        // Not a folder: the file's own error tells what is wrong.
        Err(_) => match text(root.file(&place)?) {
            // That the list is full is noted in it.
            Some(text) => drop(lines(&place.text(), &text, &regex, &mut found)),
            None => skipped = 1,
        },
    }
    if skipped > 0 {
        notes.push_str(&format!("[left out, binary, over 10 MB or not readable: {skipped} files]\n"));
    }
    Ok(found.finish(&notes, "[nothing found]"))
}

fn glob(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher()).map_err(|error| format!("`pattern` is no glob: {error}"))
}

fn prefix(place: &Place) -> String {
    let text = place.text();
    if text.is_empty() { text } else { text + "/" }
}

/// The content of a text file that is not too large.
fn text(file: std::fs::File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).ok()?;
    let binary = bytes.len() as u64 > MAX_FILE || bytes.iter().take(8 << 10).any(|byte| *byte == 0);
    (!binary).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

fn lines(path: &str, text: &str, regex: &Regex, found: &mut Text) -> ControlFlow<()> {
    for (number, line) in text.lines().enumerate().filter(|(_, line)| regex.is_match(line)) {
        let end = line.char_indices().nth(MAX_LINE).map_or(line.len(), |(at, _)| at);
        let cut = if end < line.len() { " […]" } else { "" };
        found.line(&format!("{path}:{}: {}{cut}", number + 1, line.get(..end).unwrap_or(line)))?;
    }
    ControlFlow::Continue(())
}

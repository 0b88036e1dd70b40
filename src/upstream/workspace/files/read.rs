//! `read_file`.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{FileTool, MAX_FILE, parse, schema};
use crate::upstream::workspace::root::Root;
use crate::upstream::workspace::tool::{Definition, Stop};

pub(super) const TOOL: FileTool = FileTool { definition, run };

fn definition() -> Definition {
    let lines = |end: &str| {
        let description = format!("Only so many lines at its {end}");
        json!({ "type": "integer", "minimum": 1, "description": description })
    };
    Definition {
        name: "read_file",
        description: "Reads a text file of the workspace, at most 10 MB; a larger one with `head` or `tail`.",
        input_schema: schema(
            json!({ "path": { "type": "string" }, "head": lines("beginning"), "tail": lines("end") }),
            &["path"],
        ),
        read_only: true,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    head: Option<usize>,
    tail: Option<usize>,
}

fn run(root: &Root, arguments: Value, stop: &Stop) -> Result<String, String> {
    let Arguments { path, head, tail } = parse(arguments)?;
    if head.is_some() && tail.is_some() {
        return Err("give `head` or `tail`, not both".into());
    }
    let place = root.place(&path)?;
    let mut file = root.file(&place)?;
    stop.check()?;
    let broken = |error: std::io::Error| format!("`{}` cannot be read: {error}", place.text());
    let size = file.metadata().map_err(broken)?.len();
    let part = head.is_some() || tail.is_some();
    if size > MAX_FILE && !part {
        return Err(format!("`{}` has {size} bytes, more than 10 MB; read a part with `head` or `tail`", place.text()));
    }
    let from = if tail.is_some() { size.saturating_sub(MAX_FILE) } else { 0 };
    let mut bytes = read(&mut file, from).map_err(broken)?;
    if bytes.len() as u64 > MAX_FILE {
        if !part {
            return Err(format!("`{}` grew beyond 10 MB while it was read", place.text()));
        }
        bytes.truncate(usize::try_from(MAX_FILE).unwrap_or(usize::MAX));
    }
    let cut_at_start = from > 0;
    let cut_at_end = tail.is_none() && size > MAX_FILE;
    let text = text(bytes, cut_at_start, cut_at_end)
        .ok_or_else(|| format!("`{}` is no text: it has {size} bytes that are not UTF-8", place.text()))?;
    Ok(match (head, tail) {
        (Some(lines), _) => text.split_inclusive('\n').take(lines).collect(),
        (_, Some(lines)) => last_lines(&text, lines).to_owned(),
        _ => text,
    })
}

/// At most one byte more than may be read whole, so that a file that grows is noticed.
fn read(file: &mut File, from: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The bytes as text, less a line that was cut; none if they are not text.
fn text(mut bytes: Vec<u8>, cut_at_start: bool, cut_at_end: bool) -> Option<String> {
    if cut_at_start {
        let first_line = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..first_line);
    }
    if cut_at_end {
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn last_lines(text: &str, lines: usize) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = body.rmatch_indices('\n').nth(lines.saturating_sub(1)).map_or(0, |(at, _)| at + 1);
    if lines == 0 { "" } else { text.get(start..).unwrap_or(text) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn last_lines_count_a_missing_line_feed_too() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last_lines("a\nb\nc", 2), "b\nc");
        assert_eq!(last_lines("a\n", 5), "a\n");
        assert_eq!(last_lines("a\n\n", 1), "\n");
        assert_eq!(last_lines("a\nb", 0), "");
    }

    #[test]
    fn cut_lines_are_left_out_and_binary_is_no_text() {
        assert_eq!(text(b"cut\nwhole\n".to_vec(), true, false).unwrap(), "whole\n");
        assert_eq!(text("whole\ncu\u{e9}".as_bytes()[..9].to_vec(), false, true).unwrap(), "whole\n");
        assert_eq!(text(vec![0xff], false, false), None);
        assert_eq!(text(b"a\0".to_vec(), false, false), None);
    }
}

//! `write_file` and `edit_file`.

use std::io::Read;

use serde::Deserialize;
use serde_json::{Value, json};

use super::replace::{Unwritten, replace};
use super::{FileTool, MAX_FILE, parse, schema};
use crate::upstream::workspace::root::{Place, Root, file_in};
use crate::upstream::workspace::tool::{Definition, Stop};

pub(super) const WRITE: FileTool = FileTool { definition: write_definition, run: write };
pub(super) const EDIT: FileTool = FileTool { definition: edit_definition, run: edit };

fn write_definition() -> Definition {
    Definition {
        name: "write_file",
        description: "Writes a text file of the workspace, in place of what it held; missing folders are made.",
        input_schema: schema(
            json!({ "path": { "type": "string" }, "content": { "type": "string" } }),
            &["path", "content"],
        ),
        read_only: false,
    }
}

fn edit_definition() -> Definition {
    Definition {
        name: "edit_file",
        description: "Replaces one piece of a text file of the workspace. `old_text` must stand in it exactly once.",
        input_schema: schema(
            json!({
                "path": { "type": "string" },
                "old_text": { "type": "string", "minLength": 1 },
                "new_text": { "type": "string" },
            }),
            &["path", "old_text", "new_text"],
        ),
        read_only: false,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    path: String,
    content: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    path: String,
    old_text: String,
    new_text: String,
}

fn write(root: &Root, arguments: Value, stop: &Stop) -> Result<String, String> {
    let Write { path, content } = parse(arguments)?;
    let place = root.place(&path)?;
    stop.check()?;
    let (folder, name) = root.parent(&place, true)?;
    replace(&folder, name, content.as_bytes(), root.other_names, stop).map_err(|unwritten| told(&place, unwritten))?;
    Ok(format!("wrote {} bytes to {}", content.len(), place.text()))
}

fn edit(root: &Root, arguments: Value, stop: &Stop) -> Result<String, String> {
    let Edit { path, old_text, new_text } = parse(arguments)?;
    if old_text.is_empty() {
        return Err("`old_text` is empty; give the text to be replaced".into());
    }
    let place = root.place(&path)?;
    let (folder, name) = root.parent(&place, false)?;
    let file = file_in(&folder, name, root.other_names).map_err(|errno| place.told(errno))?;
    let mut text = String::new();
    file.take(MAX_FILE + 1)
        .read_to_string(&mut text)
        .map_err(|error| format!("`{}` cannot be read as text: {error}", place.text()))?;
    if text.len() as u64 > MAX_FILE {
        return Err(format!("`{}` has more than 10 MB and cannot be edited here", place.text()));
    }
    match occurrences(&text, &old_text) {
        1 => {}
        0 => return Err(format!("`old_text` does not stand in `{}`; read the file again", place.text())),
        many => {
            let what = "give more of the text around it, so that it is one place";
            return Err(format!("`old_text` stands {many} times in `{}`; {what}", place.text()));
        }
    }
    let edited = text.replacen(&old_text, &new_text, 1);
    replace(&folder, name, edited.as_bytes(), root.other_names, stop).map_err(|unwritten| told(&place, unwritten))?;
    Ok(format!("edited {}", place.text()))
}

/// How often a text stands in another, overlapping ones counted too.
fn occurrences(text: &str, part: &str) -> usize {
    let step = part.chars().next().map_or(1, char::len_utf8);
    let mut rest = text;
    let mut count = 0;
    while let Some(at) = rest.find(part) {
        count += 1;
        rest = rest.get(at + step..).unwrap_or_default();
    }
    count
}

fn told(place: &Place, unwritten: Unwritten) -> String {
    match unwritten {
        Unwritten::Stopped(told) => told,
        Unwritten::Refused(errno) => place.told(errno),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn overlapping_occurrences_count() {
        assert_eq!(occurrences("aaa", "aa"), 2);
        assert_eq!(occurrences("éaé", "é"), 2);
        assert_eq!(occurrences("abc", "x"), 0);
    }
}

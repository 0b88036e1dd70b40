//! Guesses from the names in a tool's schema: a last resort that adds facets and floors, and loosens nothing.

use serde_json::Value;

use super::{Argument, Pointer, Tool};

/// How deep a schema is looked into.
const DEPTH: usize = 6;

/// The last word of a name that means a path.
const PATH_WORDS: &[&str] = &[
    "path",
    "paths",
    "filepath",
    "filepaths",
    "file",
    "files",
    "filename",
    "filenames",
    "dir",
    "dirs",
    "directory",
    "directories",
    "folder",
    "folders",
    "uri",
    "uris",
    "cwd",
    "workdir",
    "dirname",
    "attachment",
    "attachments",
];

/// A whole name that means a path, where its last word alone would not.
const PATH_NAMES: &[&str] = &["source", "destination", "src", "dest", "dst", "root"];

/// A whole name that means a command.
const COMMAND_NAMES: &[&str] = &["command", "commands", "cmd", "cmdline", "commandline", "script", "shell", "bash"];

/// The last word of a name that means a URL.
const URL_WORDS: &[&str] = &["url", "urls", "href", "endpoint", "webhook"];

/// An entry guessed from a schema.
pub(super) fn tool(input_schema: Option<&Value>) -> Tool {
    let mut arguments = Vec::new();
    if let Some(schema) = input_schema {
        look(schema, &mut Vec::new(), &mut arguments);
    }
    Tool { arguments, heuristic: true, ..Tool::default() }
}

/// Whether an argument of that name is likely to be a path, however it is cased (`filePath`, `file-path`, `FILE_PATH`).
fn names_a_path(name: &str) -> bool {
    let words = words(name);
    let last = words.last().map(String::as_str).unwrap_or_default();
    PATH_WORDS.contains(&last) || PATH_NAMES.contains(&words.concat().as_str())
}

/// Whether a schema declares a list of texts there.
pub(super) fn declares_a_list(schema: Option<&Value>, pointer: &Pointer) -> bool {
    let property = pointer.0.iter().try_fold(schema, |schema, name| Some(schema?.get("properties")?.get(&**name)));
    property.flatten().is_some_and(|property| holds(property, "array"))
}

/// What an argument of that name is likely to be: a path, a command or a URL; none where the name tells nothing.
pub fn argument(name: &str) -> Option<Argument> {
    let words = words(name);
    let last = words.last().map(String::as_str).unwrap_or_default();
    if names_a_path(name) {
        Some(Argument::Path { access: None, recursive: false, missing: None, base: None, keep_last: false })
    } else if COMMAND_NAMES.contains(&words.concat().as_str()) {
        Some(Argument::Command)
    } else if URL_WORDS.contains(&last) {
        Some(Argument::Url)
    } else {
        None
    }
}

/// Walks a schema's properties, items and alternatives.
fn look(schema: &Value, at: &mut Vec<Box<str>>, found: &mut Vec<(Pointer, Argument)>) {
    if at.len() > DEPTH {
        return;
    }
    for alternatives in ["anyOf", "oneOf", "allOf"] {
        for alternative in schema.get(alternatives).and_then(Value::as_array).into_iter().flatten() {
            look(alternative, at, found);
        }
    }
    if let Some(items) = schema.get("items") {
        at.push("*".into());
        look(items, at, found);
        at.pop();
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        at.push(name.as_str().into());
        let is_text = holds(property, "string") || (property.get("type").is_none() && property.get("anyOf").is_none());
        match argument(name) {
            Some(Argument::Command) if is_text || holds(property, "array") => note(at, Argument::Command, found),
            Some(guess) if is_text => note(at, guess, found),
            Some(guess) if property.get("items").is_some_and(|items| !holds(items, "object")) => {
                at.push("*".into());
                note(at, guess, found);
                at.pop();
            }
            _ => {}
        }
        look(property, at, found);
        at.pop();
    }
}

fn note(at: &[Box<str>], argument: Argument, found: &mut Vec<(Pointer, Argument)>) {
    let pointer = Pointer(at.to_vec());
    if !found.iter().any(|(known, _)| *known == pointer) {
        found.push((pointer, argument));
    }
}

/// Whether the schema's type is, or may be, that one.
fn holds(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(many)) => many.iter().any(|one| one == kind),
        _ => schema
            .get("anyOf")
            .and_then(Value::as_array)
            .is_some_and(|alternatives| alternatives.iter().any(|one| holds(one, kind))),
    }
}

/// The words of a name in snake, kebab or camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut after_lower = false;
    let mut fresh = true;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            fresh = true;
            continue;
        }
        if fresh || (c.is_uppercase() && after_lower) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
        after_lower = c.is_lowercase() || c.is_numeric();
        fresh = false;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_every_case_are_known() {
        for name in [
            "path",
            "paths",
            "file_path",
            "filePath",
            "FilePath",
            "FILE_PATH",
            "file-path",
            "filename",
            "file",
            "files",
            "uri",
            "source",
            "destination",
            "dir",
            "directory",
            "cwd",
            "repo_path",
            "outputPath",
            "output_file",
            "workDir",
        ] {
            assert!(names_a_path(name), "{name}");
        }
        for name in ["profile", "query", "content", "source_timezone", "name", "pathology", "target", "url", ""] {
            assert!(!names_a_path(name), "{name}");
        }
    }

    #[test]
    fn a_schema_is_read_through_lists_objects_and_alternatives() {
        let schema = serde_json::json!({"properties": {
            "path": {"type": "string"}, "files": {"type": "array", "items": {"type": "string"}},
            "edits": {"type": "array", "items": {"properties": {"filePath": {"type": "string"}, "new": {"type": "string"}}}},
            "command": {"type": "array", "items": {"type": "string"}}, "url": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "rest_files": {"type": "array", "items": {"type": "object", "properties": {"path": {"type": "string"}}}},
            "options": {"anyOf": [{"properties": {"outputDir": {"type": "string"}}}]}, "city": {"type": "string"}, "isFile": {"type": "boolean"}, "any_file": {},
        }});
        let tool = tool(Some(&schema));
        let mut pointers: Vec<String> = tool.arguments.iter().map(|(p, _)| p.to_string()).collect();
        pointers.sort();
        assert_eq!(
            pointers,
            [
                "/any_file",
                "/command",
                "/edits/*/filePath",
                "/files/*",
                "/options/outputDir",
                "/path",
                "/rest_files/*/path",
                "/url"
            ]
        );
        assert!(tool.heuristic);
    }

    #[test]
    fn without_a_schema_nothing_is_guessed() {
        assert!(tool(None).arguments.is_empty() && tool(None).heuristic);
    }
}

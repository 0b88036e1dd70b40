//! Holds the tables to the servers' recorded tool lists (`tests/data/tools`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;

use serde_json::Value;

use super::super::{Argument, Catalogue, Pointer, guess};

/// Our name, and the file with the server's answer to `tools/list`.
const RECORDED: &[(&str, &str)] = &[
    ("filesystem", "server-filesystem"),
    ("git", "mcp-server-git"),
    ("shell", "mcp-shell-server"),
    ("desktop-commander", "desktop-commander"),
    ("kubernetes", "kubernetes"),
    ("playwright", "playwright-mcp"),
    ("fetch", "mcp-server-fetch"),
    ("github", "server-github"),
    ("sqlite", "mcp-server-sqlite"),
    ("memory", "server-memory"),
    ("context7", "context7"),
    ("time", "mcp-server-time"),
    ("sequential-thinking", "server-sequential-thinking"),
    ("everything", "server-everything"),
];

/// Arguments that look like paths or commands and are left unmarked, with the reason beside their table.
const UNMARKED: &[&str] = &["desktop-commander start_process /shell", "kubernetes kubectl_create /fromFile/*"];

fn recorded(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tools").join(format!("{file}.json"));
    let text = std::fs::read_to_string(path).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    list.get("tools").unwrap().as_array().unwrap().clone()
}

/// Whether a schema has a place for the pointer.
fn has(schema: &Value, keys: &[Box<str>]) -> bool {
    let Some((key, rest)) = keys.split_first() else { return true };
    let inside = match &**key {
        "*" => {
            let free = schema.get("type").is_some_and(|t| t == "object") && schema.get("properties").is_none();
            schema.get("items").is_some_and(|items| has(items, rest)) || (free && rest.is_empty())
        }
        key => schema.get("properties").and_then(|p| p.get(key)).is_some_and(|property| has(property, rest)),
    };
    inside
        || schema
            .get("anyOf")
            .and_then(Value::as_array)
            .is_some_and(|alternatives| alternatives.iter().any(|one| has(one, keys)))
}

#[test]
fn every_pointer_is_in_the_servers_schema() {
    for (name, file) in RECORDED {
        let tools = recorded(file);
        let catalogue = Catalogue::builtin(name).unwrap();
        for (tool, entry) in &catalogue.tools {
            let offered =
                tools.iter().find(|t| t["name"] == **tool).unwrap_or_else(|| panic!("{name}: no tool {tool}"));
            let argv = entry.argv.iter().flatten().filter_map(|word| word.parse::<Pointer>().ok());
            let bases = entry.arguments.iter().filter_map(|(_, argument)| match argument {
                Argument::Path { base, .. } => base.clone(),
                _ => None,
            });
            let marked = entry.arguments.iter().map(|(pointer, _)| pointer.clone());
            for pointer in marked.chain(bases).chain(argv) {
                assert!(has(&offered["inputSchema"], &pointer.0), "{name} {tool}: no argument {pointer}");
            }
        }
    }
}

#[test]
fn every_tool_has_an_entry_and_every_likely_path_a_mark() {
    for (name, file) in RECORDED {
        let catalogue = Catalogue::builtin(name).unwrap();
        for offered in recorded(file) {
            let tool = offered["name"].as_str().unwrap();
            let entry = catalogue.tools.get(tool).unwrap_or_else(|| panic!("{name}: no entry for {tool}"));
            for (likely, _) in guess::tool(offered.get("inputSchema")).arguments {
                let argv = entry.argv.iter().flatten().any(|word| *word == likely.to_string());
                let marked = argv || entry.arguments.iter().any(|(pointer, _)| *pointer == likely);
                let known = UNMARKED.contains(&format!("{name} {tool} {likely}").as_str());
                assert!(marked != known, "{name} {tool}: {likely}");
            }
        }
    }
}

#[test]
fn every_server_is_recorded_or_ours() {
    let mut names = Catalogue::builtin_names();
    names.retain(|name| *name != "workspace");
    assert!(names.iter().all(|name| RECORDED.iter().any(|(known, _)| known == name)), "{names:?}");
    assert!(Catalogue::builtin("nobody").is_none());
}

#[test]
fn categories_are_the_fixed_ones() {
    let fixed = ["filesystem", "shell", "subagent", "introspection", "config", "network", "other"];
    for name in Catalogue::builtin_names() {
        for (tool, entry) in &Catalogue::builtin(name).unwrap().tools {
            assert!(fixed.contains(&entry.category.as_deref().unwrap()), "{name} {tool}");
        }
    }
}

#[test]
fn a_tool_without_an_entry_is_guessed() {
    let catalogue = Catalogue::builtin("filesystem").unwrap();
    assert!(!catalogue.tool("read_file", None).heuristic);
    let schema = serde_json::json!({"properties": {"file": {"type": "string"}}});
    let guessed = catalogue.tool("shred", Some(&schema));
    assert!(guessed.heuristic && guessed.arguments.len() == 1);
}

//! Holds the tables to the servers' recorded tool lists (`tests/data/tools`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::super::{Argument, Catalogue, Pointer};

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

/// Texts that are left unmarked on purpose, by server and tool (`*`: any): they are words of a command line, a query or a
/// setting, so that one that starts with `-`, or that leads to a guarded path, is noticed.
const UNMARKED: &[(&str, &str, &[&str])] = &[
    ("git", "git_diff", &["/target"]),
    ("git", "git_show", &["/revision"]),
    ("git", "git_log", &["/start_timestamp", "/end_timestamp"]),
    ("git", "git_branch", &["/contains", "/not_contains"]),
    ("git", "git_create_branch", &["/branch_name", "/base_branch"]),
    ("git", "git_checkout", &["/branch_name"]),
    ("desktop-commander", "set_config_value", &["/value", "/value/*"]),
    ("desktop-commander", "*", &["/options/*"]),
    (
        "kubernetes",
        "*",
        &["/resourceType", "/resourceName", "/resource", "/name", "/nodeName", "/namespace", "/container", "/context"],
    ),
    ("kubernetes", "*", &["/labelSelector", "/fieldSelector", "/sortBy", "/since", "/sinceTime", "/timeout", "/id"]),
    ("kubernetes", "*", &["/apiVersion", "/apiGroup", "/verbs/*", "/values/*", "/patchData/*"]),
    // `fromFile` is `key=path`: its name says so, and it asks.
    (
        "kubernetes",
        "kubectl_create",
        &["/fromFile/*", "/image", "/schedule", "/labels/*", "/annotations/*", "/tcpPort/*"],
    ),
];

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
        // What has no type, or no properties, takes anything.
        "*" => {
            let untyped = ["type", "anyOf", "oneOf"].iter().all(|name| schema.get(name).is_none());
            let free =
                untyped || (schema.get("type").is_some_and(|t| t == "object") && schema.get("properties").is_none());
            schema.get("items").is_some_and(|items| has(items, rest)) || (free && rest.iter().all(|key| &**key == "*"))
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

/// Where a schema takes texts of the caller's own: strings that are no choice among given ones, and whatever has no type.
fn texts(schema: &Value, at: &mut Vec<String>, found: &mut BTreeSet<String>) {
    let is =
        |kind: &str| schema["type"] == kind || schema["type"].as_array().is_some_and(|t| t.iter().any(|t| t == kind));
    let alternatives: Vec<&Value> =
        ["anyOf", "oneOf"].iter().filter_map(|name| schema[name].as_array()).flatten().collect();
    alternatives.iter().for_each(|one| texts(one, at, found));
    let properties = schema["properties"].as_object().filter(|properties| !properties.is_empty());
    let mut below = |key: &str, inner: &Value| {
        at.push(key.to_owned());
        texts(inner, at, found);
        at.pop();
    };
    properties.into_iter().flatten().for_each(|(name, property)| below(name, property));
    if is("array") {
        below("*", &schema["items"]);
    }
    let untyped = schema["type"].is_null() && alternatives.is_empty() && properties.is_none();
    let free = is("object") && properties.is_none() && !at.is_empty();
    if (is("string") || untyped || free) && schema["enum"].is_null() && schema["const"].is_null() {
        found.insert(format!("/{}{}", at.join("/"), if free { "/*" } else { "" }));
    }
}

#[test]
fn every_tool_has_an_entry_and_every_text_a_mark() {
    let mut known = BTreeSet::new();
    for (name, file) in RECORDED {
        let catalogue = Catalogue::builtin(name).unwrap();
        for offered in recorded(file) {
            let tool = offered["name"].as_str().unwrap();
            let entry = catalogue.tools.get(tool).unwrap_or_else(|| panic!("{name}: no entry for {tool}"));
            let mut found = BTreeSet::new();
            texts(&offered["inputSchema"], &mut Vec::new(), &mut found);
            for text in found {
                let pointer: Pointer = text.parse().unwrap();
                let keys: Vec<&str> = pointer.0.iter().map(|key| &**key).collect();
                let argv = entry.argv.iter().flatten().any(|word| *word == text);
                let marked = argv
                    || entry.arguments.iter().any(|(at, argument)| {
                        at.fits(&keys)
                            || (at.covers(&keys)
                                && matches!(argument, Argument::Code | Argument::Command | Argument::Words))
                    });
                let left = UNMARKED.iter().find(|(server, of, texts)| {
                    server == name && (*of == "*" || *of == tool) && texts.contains(&text.as_str())
                });
                known.extend(left.filter(|_| !marked).map(|(server, of, _)| (*server, *of, text.clone())));
                assert!(marked || left.is_some(), "{name} {tool}: {text}");
            }
        }
    }
    let stale = |(server, of, texts): &(&'static str, &'static str, &[&str])| {
        texts.iter().filter(|text| !known.contains(&(*server, *of, (**text).to_owned()))).count()
    };
    assert_eq!(UNMARKED.iter().map(stale).sum::<usize>(), 0, "a text that no tool of the server has");
}

/// Tools that change, send or run what their path arguments name, or act on a browser besides.
#[test]
fn no_class_of_paths_covers_a_tool_that_does_more() {
    let more = [
        ("kubernetes", "kubectl_apply"),
        ("kubernetes", "kubectl_delete"),
        ("kubernetes", "kubectl_create"),
        ("kubernetes", "kubectl_patch"),
        ("kubernetes", "install_helm_chart"),
        ("kubernetes", "upgrade_helm_chart"),
        ("playwright", "browser_file_upload"),
        ("playwright", "browser_drop"),
        ("playwright", "browser_evaluate"),
        ("playwright", "browser_run_code_unsafe"),
        ("playwright", "browser_network_request"),
        ("github", "create_pull_request_review"),
    ];
    for (name, tool) in more {
        let entry = &Catalogue::builtin(name).unwrap().tools[tool];
        let paths = entry.arguments.iter().filter_map(|(_, argument)| match argument {
            Argument::Path { access, .. } => Some(access),
            _ => None,
        });
        let paths: Vec<_> = paths.collect();
        assert!(!paths.is_empty() && paths.iter().all(|access| access.is_none()), "{name} {tool}");
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

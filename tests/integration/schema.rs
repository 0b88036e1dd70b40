//! The JSON Schema of policies, held to files by an independent validator.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use portcullis::config::yaml;
use portcullis::policy::schema;
use serde_json::{Value, json};

use crate::harness::peers;

/// Each breaks one thing that the schema knows.
const BROKEN: [&str; 12] = [
    "groups: {}",
    "version: 2",
    "version: 1\nrules: []",
    "version: 1\ngroups: { g: { rules: [ { verdict: alow, tool: x } ] } }",
    "version: 1\ngroups: { g: { rules: [ { verdict: allow } ] } }",
    "version: 1\ngroups: { g: { rules: [ { verdict: allow, tols: x } ] } }",
    "version: 1\ngroups: { g: { rules: [ { verdict: allow, path: [] } ] } }",
    "version: 1\ngroups: { g: { rules: [ { verdict: ask, access: execute, path: x } ] } }",
    "version: 1\ngroups: { g: { rules: [ { verdict: ask, tool: x, args: { n: { more: 1 } } } ] } }",
    "version: 1\ngroups: { g: { rules: [ { verdict: ask, tool: x, approval: { expires: 15 } } ] } }",
    "version: 1\nguardrails: [ { verdict: allow, tool: x } ]",
    "version: 1\nguardrails: [ { verdict: deny, tool: x, except: { reason: y } } ]",
];

#[test]
fn every_policy_of_the_repository_is_valid_and_broken_ones_are_not() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["policies", "examples"] {
        policies(&root.join(folder), &mut files);
    }
    assert!(files.iter().any(|file| file.ends_with("base.yaml")), "{files:?}");
    let read = |name: &str, bytes: &[u8]| -> Value {
        let (mut report, tree) = yaml::read(name, bytes);
        let json = tree.and_then(|tree| tree.json(&mut report)).expect("YAML");
        serde_json::from_str(&json).expect("JSON")
    };
    let mut documents = BTreeMap::new();
    for file in &files {
        let name = file.display().to_string();
        documents.insert(name.clone(), read(&name, &std::fs::read(file).expect("a file")));
    }
    for broken in BROKEN {
        documents.insert(broken.to_owned(), read(broken, broken.as_bytes()));
    }
    let verdicts = validate(&json!({ "schema": schema(), "documents": documents }));
    for file in &files {
        assert_eq!(verdicts[&file.display().to_string()], Value::Null, "{}", file.display());
    }
    for broken in BROKEN {
        assert!(verdicts[broken].is_string(), "the schema lets pass:\n{broken}");
    }
}

/// The policy files below a folder: those with a version of the language.
fn policies(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            policies(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "yaml") {
            let text = std::fs::read_to_string(&path).expect("a file");
            if text.lines().any(|line| line.starts_with("version:")) {
                found.push(path);
            }
        }
    }
}

fn validate(given: &Value) -> Value {
    let mut python = peers::python("validate.py");
    let mut child = python.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(given.to_string().as_bytes()).expect("written");
    drop(input);
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success(), "{}", output.status);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

//! A module imports only from lower layers, or from its own room; no cycles (`docs/design.md`, "Rooms").

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms by layer, lowest first.
const LAYERS: [&[&str]; 10] = [
    &["pattern", "secret", "clock", "diagnostic", "process", "outbound"],
    &["message", "config", "record", "catalog"],
    &["identity"],
    &["facet"],
    &["policy", "approval"],
    &["store", "audit", "metrics", "replay"],
    &["gate"],
    &["upstream", "listen", "admin", "tell"],
    &["serve"],
    &["cli"],
];

/// The edges, which never import each other.
const EDGES: usize = 7;

#[test]
fn a_room_imports_only_from_lower_layers() {
    let imports = imports();
    assert!(imports.len() >= 10, "only {} rooms were found", imports.len());
    let mut wrong = Vec::new();
    for (room, to) in &imports {
        let Some(layer) = layer(room) else {
            wrong.push(format!("`{room}` is in no layer of the table"));
            continue;
        };
        for (other, file) in to {
            match self::layer(other) {
                None => wrong.push(format!("{file} imports `{other}`, which is in no layer of the table")),
                Some(above) if above > layer => {
                    wrong.push(format!("{file} imports `{other}` from layer {above} above"))
                }
                Some(EDGES) if layer == EDGES => wrong.push(format!("{file} imports `{other}`, another edge")),
                Some(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn rooms_have_no_cycles() {
    let imports = imports();
    for room in imports.keys() {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&str> = vec![room];
        while let Some(at) = open.pop() {
            for to in imports.get(at).into_iter().flat_map(BTreeMap::keys) {
                assert_ne!(to, room, "`{room}` comes back to itself through `{at}`");
                if reached.insert(to.as_str()) {
                    open.push(to);
                }
            }
        }
    }
}

fn layer(room: &str) -> Option<usize> {
    LAYERS.iter().position(|rooms| rooms.contains(&room))
}

/// By room: the other rooms it names as `crate::…`, each with a file that does.
fn imports() -> BTreeMap<String, BTreeMap<String, String>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut imports: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for file in rust_files(&src) {
        let below = file.strip_prefix(&src).expect("below src").to_string_lossy().into_owned();
        let room = below.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
        if ["lib", "main"].contains(&room.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        let to = imports.entry(room.clone()).or_default();
        for other in named(&text).into_iter().filter(|other| *other != room) {
            to.entry(other).or_insert_with(|| below.clone());
        }
    }
    imports
}

/// The first part of every `crate::…` path outside comments, `use crate::{a, b::c}` included.
fn named(text: &str) -> Vec<String> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut rooms = Vec::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            Some(group) => rooms.extend(heads(group)),
            None => rooms.push(word(after)),
        }
    }
    rooms.retain(|room| !room.is_empty());
    rooms
}

/// The first word of each item of a brace group, whose opening brace is gone.
fn heads(group: &str) -> Vec<String> {
    let mut depth = 1;
    let mut heads = vec![word(group.trim_start())];
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => heads.push(word(group[at + 1..].trim_start())),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    heads
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            files.push(path);
        }
    }
    files
}

#[test]
fn groups_and_paths_are_read() {
    let text =
        "use crate::{config::Config, gate::{Gate, Permit}, store};\n// crate::comment::X\nlet x = crate::clock::now();";
    assert_eq!(named(text), ["config", "gate", "store", "clock"]);
}

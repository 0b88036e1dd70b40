//! What README and the other pages show is true: commands exist, YAML loads, links lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use portcullis::config::PolicyConfig;
use regex::Regex;

use crate::harness::gateway::PORTCULLIS;

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Name and text of each page for people.
fn pages() -> Vec<(String, String)> {
    let mut files: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| repository().join(name)).into();
    for entry in fs::read_dir(repository().join("docs")).into_iter().flatten() {
        files.push(entry.expect("an entry").path());
    }
    files.retain(|file| file.extension().is_some_and(|ext| ext == "md"));
    files.iter().map(|file| (file.display().to_string(), fs::read_to_string(file).expect("a page"))).collect()
}

/// Language and text of each fenced block.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fence = Regex::new(r"(?ms)^```(\w*)[^\n]*\n(.*?)^```").expect("a pattern");
    fence
        .captures_iter(page)
        .map(|found| (found.get(1).expect("a word").as_str(), found.get(2).expect("a text").as_str()))
        .collect()
}

#[test]
fn the_two_commands_are_there() {
    let readme = fs::read_to_string(repository().join("README.md")).expect("README.md");
    for command in ["cargo run --release -- demo", "scripts/test"] {
        assert!(readme.contains(command), "README.md does not show `{command}`");
    }
}

#[test]
fn policies_in_pages_load() {
    for (page, text) in pages() {
        for (_, yaml) in
            blocks(&text).into_iter().filter(|(language, text)| *language == "yaml" && text.starts_with("version:"))
        {
            let folder = tempfile::tempdir().expect("a folder");
            let file = folder.path().join("policy.yaml");
            fs::write(&file, yaml).expect("a file");
            let config = PolicyConfig { files: vec![file.display().to_string()], ..PolicyConfig::default() };
            if let Err(errors) = portcullis::policy::load(&config, &[]) {
                panic!("{page}: {errors:?} in\n{yaml}");
            }
        }
    }
}

#[test]
fn commands_in_pages_exist() {
    let mut seen = 0;
    for (page, text) in pages() {
        let shell = blocks(&text).into_iter().filter(|(language, _)| ["sh", "bash", "console"].contains(language));
        for line in shell.flat_map(|(_, text)| text.lines()) {
            let line = line.trim_start_matches("$ ");
            let Some(rest) = line.strip_prefix("portcullis ").or_else(|| line.strip_prefix("cargo run --release -- "))
            else {
                continue;
            };
            seen += 1;
            check(&page, line, rest.split(" -- ").next().unwrap_or(rest));
        }
    }
    assert!(seen >= 3, "the pages show only {seen} commands");
}

/// Asks the command for its help, and finds every option there.
fn check(page: &str, line: &str, arguments: &str) {
    let words: Vec<&str> = arguments.split('#').next().unwrap_or_default().split_whitespace().collect();
    let is_name = |word: &&&str| word.chars().all(|c| c.is_ascii_lowercase());
    for commands in (1..=words.iter().take_while(is_name).count().min(2)).rev() {
        let output = Command::new(PORTCULLIS).args(&words[..commands]).arg("--help").output().expect("it starts");
        if !output.status.success() {
            continue;
        }
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        for option in words.iter().filter(|word| word.starts_with("--")) {
            let option = option.split('=').next().unwrap_or_default();
            assert!(help.contains(option), "{page}: `{line}`: there is no {option}:\n{help}");
        }
        return;
    }
    panic!("{page}: `{line}`: there is no such command");
}

#[test]
fn links_lead_somewhere() {
    let link = Regex::new(r"\]\(([^)#\s]+)[^)]*\)").expect("a pattern");
    for (page, text) in pages() {
        let folder = Path::new(&page).parent().expect("a folder");
        for found in link.captures_iter(&text) {
            let to = found.get(1).expect("a target").as_str();
            if !to.contains("://") && !to.starts_with("mailto:") {
                assert!(folder.join(to).exists(), "{page} links to {to}, which is not there");
            }
        }
    }
}

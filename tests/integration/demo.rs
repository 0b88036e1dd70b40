//! `portcullis demo`, unattended.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::gateway::PORTCULLIS;

fn demo(arguments: &[&str]) -> (String, bool) {
    let home = tempfile::tempdir().expect("a folder");
    let start = Instant::now();
    let output = Command::new(PORTCULLIS)
        .arg("demo")
        .args(arguments)
        .env("HOME", home.path())
        .env("TMPDIR", home.path())
        .current_dir(home.path())
        .output()
        .expect("it starts");
    assert!(start.elapsed() < Duration::from_secs(30), "the demo took {:?}", start.elapsed());
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let left: Vec<_> = std::fs::read_dir(home.path()).expect("the folder").collect();
    assert!(left.is_empty(), "the demo leaves {left:?} behind");
    (text, output.status.success())
}

#[test]
fn it_reads_is_refused_and_writes_once_approved() {
    let (text, success) = demo(&["--approve-after", "2s"]);
    assert!(success, "{text}");
    for part in ["docs/welcome.md", "secrets/key.pem", "docs/../secrets/key.pem", "/#login=", "approvals approve"] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
    assert!(!text.contains("not a real key"), "{text}");
    // The table, as the metrics count: two reads refused, one read and one write completed.
    for (tool, outcome, count) in
        [("read_file", "completed", "1"), ("read_file", "rejected", "2"), ("write_file", "completed", "1")]
    {
        let row =
            text.lines().find(|line| line.contains(tool) && line.contains(outcome) && line.starts_with("workspace"));
        assert!(row.is_some_and(|row| row.trim_end().ends_with(count)), "{tool} {outcome} {count}:\n{text}");
    }
}

#[test]
fn a_rejection_reaches_the_agent_with_its_reason() {
    let (text, success) = demo(&["--approve-after", "200ms", "--reject", "not in this folder"]);
    assert!(success, "{text}");
    assert!(text.contains("not in this folder"), "{text}");
    let row = text.lines().find(|line| line.contains("write_file") && line.contains("rejected"));
    assert!(row.is_some(), "{text}");
}

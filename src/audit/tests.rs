#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Barrier;
use std::time::SystemTime;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::verify::{Fault, Report, verify};
use super::*;
use crate::process::Alive;

struct Place {
    dir: TempDir,
    config: AuditConfig,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), config: AuditConfig::default() }
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("audit")
    }

    fn open(&self, process: &str) -> Audit {
        Audit::open(self.dir.path(), process, &self.config, Clock::system()).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.file(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn verify(&self) -> Report {
        verify(&self.folder()).unwrap()
    }

    #[track_caller]
    fn fault(&self) -> Fault {
        let report = self.verify();
        let mut faults: Vec<_> = report.chains.into_iter().filter_map(|chain| chain.fault).collect();
        assert_eq!(faults.len(), 1, "{faults:?}");
        faults.remove(0)
    }

    /// A chain of a dead process with five lines.
    fn five(&self) -> Vec<String> {
        let audit = self.open("p1");
        for i in 0..4 {
            audit.write("call.begin", &json!({"id": format!("call_{i}"), "approval": "apr"})).unwrap();
        }
        drop(audit);
        let text = fs::read_to_string(self.file("p1-0001.jsonl")).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn put(&self, lines: &[String]) {
        fs::write(self.file("p1-0001.jsonl"), lines.iter().map(|line| format!("{line}\n")).collect::<String>())
            .unwrap();
    }
}

#[test]
fn a_line_has_its_link_and_its_fields() {
    let place = Place::new();
    let audit = place.open("p1");
    audit.write("call.begin", &json!({"id": "call_1", "seq": 99, "event": "forged", "arguments": {"a": 1}})).unwrap();
    let lines = place.lines("p1-0001.jsonl");
    assert_eq!(lines[0]["event"], "audit.open");
    assert_eq!(lines[0]["prev"], Value::Null);
    let text = fs::read_to_string(place.file("p1-0001.jsonl")).unwrap();
    let (first, second) = text.trim_end().split_once('\n').unwrap();
    assert_eq!(lines[1]["prev"], files::hash(first.as_bytes()));
    assert_eq!((&lines[1]["seq"], &lines[1]["event"]), (&json!(2), &json!("call.begin")));
    assert_eq!(lines[1]["arguments"]["a"], 1);
    assert!(second.starts_with(r#"{"seq":2,"at":""#), "{second}");
    assert_eq!(second.matches("\"seq\"").count(), 1);
    assert_eq!(fs::metadata(place.file("p1-0001.jsonl")).unwrap().mode() & 0o777, 0o600);
    assert!(audit.healthy().is_ok());
    assert!(place.verify().is_whole());
}

#[test]
fn arguments_are_left_out_where_the_operator_says_so() {
    let mut place = Place::new();
    place.config.arguments = false;
    place.open("p1").write("call.begin", &json!({"id": "c", "arguments": {"a": 1}, "hidden": [{}]})).unwrap();
    let line = &place.lines("p1-0001.jsonl")[1];
    assert_eq!((line.get("arguments"), line.get("hidden")), (None, None));
}

#[test]
fn every_tampering_is_named_by_file_and_line() {
    let place = Place::new();
    let lines = place.five();
    assert!(place.verify().is_whole());
    let check = |lines: Vec<String>, line: u64, what: &str| {
        place.put(&lines);
        let fault = place.fault();
        assert_eq!((fault.file.as_str(), fault.line), ("p1-0001.jsonl", line), "{fault:?}");
        assert!(fault.what.contains(what), "{fault:?}");
    };

    let mut flipped = lines.clone();
    flipped[2] = flipped[2].replace("call_1", "call_9");
    check(flipped, 3, "was changed");

    let mut deleted = lines.clone();
    deleted.remove(2);
    check(deleted, 3, "line 3 of the chain should stand here, and line 4 does");

    let mut swapped = lines.clone();
    swapped.swap(1, 2);
    check(swapped, 2, "line 2 of the chain should stand here, and line 3 does");

    let mut headless = lines.clone();
    headless.remove(0);
    check(headless, 1, "line 1 of the chain should stand here");

    let mut garbage = lines.clone();
    garbage[3] = "{}".into();
    check(garbage, 4, "not a line of this log");

    let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(place.file("p1-0001.jsonl"), &whole[..whole.len() - 3]).unwrap();
    assert_eq!((place.fault().line, place.fault().what.as_str()), (5, "the line is cut off"));
}

#[test]
fn once_a_later_process_has_seen_its_end_nothing_can_be_cut_off_or_changed_there() {
    let place = Place::new();
    let lines = place.five();
    drop(place.open("p2"));
    assert!(place.verify().is_whole());
    place.put(&lines[..4]);
    let fault = place.fault();
    assert_eq!((fault.file.as_str(), fault.line), ("p1-0001.jsonl", 4));
    assert!(fault.what.contains("ended with line 5"), "{fault:?}");

    let mut last = lines.clone();
    last[4] = last[4].replace("call_3", "call_9");
    place.put(&last);
    assert_eq!(place.fault().line, 5);
}

#[test]
fn a_living_process_may_be_in_the_middle_of_a_line() {
    let place = Place::new();
    let alive = Alive::register(place.dir.path()).unwrap();
    let _audit = place.open(alive.id());
    let file = place.file(&format!("{}-0001.jsonl", alive.id()));
    let mut half = fs::read(&file).unwrap();
    half.extend(b"{\"seq\":2,");
    fs::write(&file, half).unwrap();
    assert!(place.verify().is_whole());
    drop(alive);
    assert_eq!(place.fault().what, "the line is cut off");
}

#[test]
fn files_are_rotated_and_the_chain_goes_on() {
    let mut place = Place::new();
    place.config.rotate = 600;
    let audit = place.open("p1");
    for i in 0..10 {
        audit.write("call.end", &json!({"id": format!("call_{i}")})).unwrap();
    }
    let files = files::chains(&place.folder()).unwrap().remove("p1").unwrap();
    assert!(files.len() > 2, "{}", files.len());
    assert!(files.iter().all(|file| fs::metadata(&file.path).unwrap().len() <= 600));
    let report = place.verify();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.chains[0].files, report.chains[0].lines), (files.len(), 11));

    fs::remove_file(place.file("p1-0002.jsonl")).unwrap();
    let fault = place.fault();
    assert_eq!((fault.file.as_str(), fault.line), ("p1-0003.jsonl", 1));
    fs::remove_file(place.file("p1-0001.jsonl")).unwrap();
    assert!(place.fault().what.contains("p1-0001.jsonl is missing, and no line says"), "{:?}", place.fault());
}

#[test]
fn old_files_are_removed_and_the_log_says_so() {
    let mut place = Place::new();
    place.config.rotate = 600;
    place.five();
    let long_ago = SystemTime::now() - place.config.keep - Duration::from_secs(60);
    let age = |name: &str| File::options().append(true).open(place.file(name)).unwrap().set_modified(long_ago).unwrap();
    let alive = Alive::register(place.dir.path()).unwrap();
    let audit = place.open(alive.id());
    for file in &files::chains(&place.folder()).unwrap()["p1"] {
        age(&file.name());
    }
    let first = format!("{}-0001.jsonl", alive.id());
    while !place.file(&format!("{}-0002.jsonl", alive.id())).exists() {
        audit.write("call.end", &json!({})).unwrap();
    }
    age(&first);
    while place.file(&first).exists() {
        audit.write("call.end", &json!({})).unwrap();
    }
    let chains = files::chains(&place.folder()).unwrap();
    assert_eq!(chains.len(), 1, "the dead chain is gone as a whole");
    assert!(!place.file("p1.ended").exists());
    let report = place.verify();
    assert!(report.is_whole(), "{report:?}");
}

#[test]
fn what_a_dead_process_began_has_failed_and_may_have_run_and_is_said_once() {
    let place = Place::new();
    let dead = place.open("p1");
    let begin = |id: &str, approval: Option<&str>| json!({"id": id, "approval": approval, "state": "running"});
    dead.write("call.begin", &begin("call_done", None)).unwrap();
    dead.write("call.end", &begin("call_done", None)).unwrap();
    dead.write("call.begin", &begin("call_open", None)).unwrap();
    dead.write("call.begin", &begin("call_held", Some("apr_1"))).unwrap();
    drop(dead);
    let living = [(); 2].map(|()| Alive::register(place.dir.path()).unwrap());
    let start = Barrier::new(2);
    std::thread::scope(|scope| {
        for process in &living {
            let (place, start) = (&place, &start);
            scope.spawn(move || {
                start.wait();
                place.open(process.id());
            });
        }
    });
    let ends: Vec<_> = living
        .iter()
        .flat_map(|process| place.lines(&files::name(process.id(), 1)))
        .filter(|line| line["event"] == "call.end")
        .collect();
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_eq!(ends[0]["id"], "call_open");
    assert_eq!((&ends[0]["outcome"], &ends[0]["may_have_run"]), (&json!("failed"), &json!(true)));
    assert_eq!(ends[0]["chain"], "p1");
    assert!(place.verify().is_whole());
}

#[test]
fn a_fault_sticks_until_a_write_works_again() {
    let mut place = Place::new();
    place.config.rotate = 300;
    let audit = place.open("p1");
    audit.write("call.end", &json!({"id": "1"})).unwrap();
    // The next file cannot be made where a folder stands.
    fs::create_dir(place.file("p1-0002.jsonl")).unwrap();
    let error = audit.write("call.begin", &json!({"id": "x".repeat(300)})).unwrap_err();
    assert!(error.to_string().contains("audit log: "), "{error}");
    assert!(audit.healthy().is_err());
    fs::remove_dir(place.file("p1-0002.jsonl")).unwrap();
    audit.healthy().unwrap();
    assert_eq!(place.lines("p1-0002.jsonl")[0]["event"], "audit.resumed");
    assert!(place.verify().is_whole());
}

#[test]
fn many_threads_make_one_chain() {
    let mut place = Place::new();
    place.config.rotate = 20_000;
    let audit = place.open("p1");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let audit = &audit;
            scope.spawn(move || {
                for i in 0..100 {
                    audit.write("call.begin", &json!({"id": format!("{thread}-{i}")})).unwrap();
                }
            });
        }
    });
    let report = place.verify();
    assert!(report.is_whole(), "{report:?}");
    assert_eq!(report.chains[0].lines, 801);
}

#[test]
fn each_line_is_on_the_disk_where_the_operator_wants_it() {
    let mut place = Place::new();
    place.config.sync_always = true;
    let audit = place.open("p1");
    audit.write("call.begin", &json!({"id": "1"})).unwrap();
    assert!(audit.healthy().is_ok());
    assert_eq!(place.lines("p1-0001.jsonl").len(), 2);
}

#[test]
fn a_file_that_is_taken_away_while_it_is_written_is_a_fault() {
    let place = Place::new();
    let audit = place.open("p1");
    let (file, away) = (place.file("p1-0001.jsonl"), place.dir.path().join("away"));
    fs::rename(&file, &away).unwrap();
    assert!(audit.healthy().unwrap_err().to_string().contains("moved, removed or cut"));
    let refused = audit.write("call.begin", &json!({"id": "1"})).unwrap_err();
    assert!(refused.to_string().contains("p1-0001.jsonl"), "{refused}");
    // Another file in its place is not it.
    fs::copy(&away, &file).unwrap();
    assert!(audit.healthy().is_err());
    fs::rename(&away, &file).unwrap();
    audit.healthy().unwrap();
    assert!(place.verify().is_whole());

    File::options().write(true).open(&file).unwrap().set_len(10).unwrap();
    assert!(audit.healthy().is_err(), "cut");
    fs::remove_dir_all(place.folder()).unwrap();
    assert!(audit.healthy().is_err());
    assert!(audit.write("call.begin", &json!({"id": "2"})).is_err());
}

#[test]
fn no_line_is_written_that_nobody_would_find() {
    let place = Place::new();
    for is_cut in [true, false] {
        let (audit, file) = (place.open("p1"), place.file("p1-0001.jsonl"));
        audit.write("call.begin", &json!({"id": "1"})).unwrap();
        let spoilt = if is_cut { fs::write(file, "") } else { fs::remove_file(file) };
        spoilt.unwrap();
        assert!(audit.write("call.begin", &json!({"id": "2"})).is_err());
        fs::remove_dir_all(place.folder()).unwrap();
    }
}

#[test]
fn a_chain_that_a_later_one_saw_cannot_vanish_as_a_whole() {
    let place = Place::new();
    place.five();
    drop(place.open("p2"));
    fs::remove_file(place.file("p1-0001.jsonl")).unwrap();
    let fault = place.fault();
    assert_eq!(fault.file, "p1-0001.jsonl");
    assert!(fault.what.contains("a later chain saw it end with line 5"), "{fault:?}");
    // The mark alone gives it away, too.
    fs::remove_file(place.file("p2-0001.jsonl")).unwrap();
    assert!(place.fault().what.contains("marked its end"), "{:?}", place.fault());
}

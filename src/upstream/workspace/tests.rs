#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::*;
use crate::gate::{Era, Inbound, Outgoing, Permit};

struct Peer {
    folder: TempDir,
    workspace: Workspace,
    link: Arc<dyn Link>,
    received: mpsc::Receiver<Inbound>,
    last: u64,
    other_names: bool,
}

impl Peer {
    async fn open(era: Era) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["docs/deep", "secrets", "docs/Secrets", "other"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for (name, content) in [
            ("docs/a.md", "one\ntwo\nthree\n"),
            ("docs/deep/b.md", "two and a half\n"),
            ("secrets/key.pem", "HIDDEN two\n"),
            ("docs/Secrets/key.pem", "HIDDEN two\n"),
            ("other/c.txt", "two\n"),
        ] {
            fs::write(at(name), content).unwrap();
        }
        fs::write(at("other/d.bin"), b"two\0").unwrap();
        symlink("../secrets", at("docs/out")).unwrap();
        symlink("../secrets/key.pem", at("other/key")).unwrap();
        let workspace = Workspace::new("workspace", folder.path());
        let (inbound, received) = mpsc::channel(8);
        let link =
            workspace.open(Opening { agent: "a".to_owned(), era, resume: None, version: None, inbound }).await.unwrap();
        Self { folder, workspace, link, received, last: 0, other_names: true }
    }

    async fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        let bytes = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let message = Outgoing {
            bytes: bytes.into(),
            id: Some(id),
            method: method.into(),
            name: None,
            param_headers: vec![],
            version: None,
        };
        self.link.send(Permit::for_test(self.other_names), message).await.unwrap();
        id
    }

    async fn answer(&mut self, id: u64) -> Value {
        let inbound = tokio::time::timeout(Duration::from_secs(10), self.received.recv()).await;
        match inbound.expect("an answer").expect("not closed") {
            Inbound::Message { message, related } => {
                assert_eq!((message.id(), related), (Some(&*id.to_string()), Some(id)));
                let value: Value = serde_json::from_slice(message.bytes()).unwrap();
                value.get("result").or(value.get("error")).unwrap().clone()
            }
            other => panic!("{other:?}"),
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// The text of a tool's result; `Err` where it is an error.
    async fn call(&mut self, tool: &str, arguments: Value) -> Result<String, String> {
        let result = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned();
        if result["isError"] == true { Err(text) } else { Ok(text) }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

#[tokio::test]
async fn speaks_the_legacy_era() {
    let mut peer = Peer::open(Era::Legacy).await;
    for (asked, agreed) in [("2024-11-05", "2024-11-05"), ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25")] {
        let result = peer.ask("initialize", json!({"protocolVersion": asked, "capabilities": {}})).await;
        assert_eq!(result["protocolVersion"], agreed);
        assert!(result["capabilities"]["tools"].is_object() && result["serverInfo"]["version"].is_string());
    }
    assert_eq!(peer.ask("ping", json!({})).await, json!({}));
    let list = peer.ask("tools/list", json!({})).await;
    let names: Vec<_> = list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let want = ["list_files", "read_file", "write_file", "edit_file", "search_file", "grep_files", "execute_cmd"];
    assert_eq!(names, want);
    assert!(list.get("ttlMs").is_none() && list.get("resultType").is_none());
    assert_eq!(peer.ask("server/discover", json!({})).await["code"], -32601);
    assert_eq!(peer.ask("tools/call", json!({"name": "rm"})).await["code"], -32602);
    assert_eq!(peer.ask("tools/call", json!({"name": "read_file", "arguments": 1})).await["code"], -32602);
    assert_eq!(peer.ask("tools/call", json!([])).await["code"], -32602);
}

#[tokio::test]
async fn speaks_the_modern_era() {
    let mut peer = Peer::open(Era::Modern).await;
    let result = peer.ask("server/discover", json!({})).await;
    assert_eq!(result["supportedVersions"], json!(["2026-07-28"]));
    for result in [result, peer.ask("tools/list", json!({})).await] {
        assert!(result["ttlMs"].is_u64());
        assert_eq!((&result["cacheScope"], &result["resultType"]), (&json!("public"), &json!("complete")));
    }
    for gone in ["initialize", "ping"] {
        assert_eq!(peer.ask(gone, json!({})).await["code"], -32601);
    }
    let call = json!({"name": "read_file", "arguments": {"path": "docs/a.md"}});
    assert_eq!(peer.ask("tools/call", call).await["resultType"], "complete");
}

#[tokio::test]
async fn lists_and_finds_everything_but_secrets() {
    let mut peer = Peer::open(Era::Legacy).await;
    let list = peer.call("list_files", json!({})).await.unwrap();
    assert_eq!(list, "docs/\nother/\n[guarded and left out: 1]\n");
    let list = peer.call("list_files", json!({"path": "docs", "recursive": true})).await.unwrap();
    assert_eq!(list, "a.md\ndeep/\ndeep/b.md\nout@\n[guarded and left out: 1]\n");
    let found = peer.call("search_file", json!({"pattern": "*.{md,pem}"})).await.unwrap();
    assert_eq!(found, "docs/a.md\ndocs/deep/b.md\n[guarded and left out: 2]\n");
    let found = peer.call("search_file", json!({"path": "docs", "pattern": "deep/*"})).await.unwrap();
    assert_eq!(found, "docs/deep/b.md\n[guarded and left out: 1]\n");
    let found = peer.call("grep_files", json!({"pattern": "^two"})).await.unwrap();
    let want = "docs/a.md:2: two\ndocs/deep/b.md:1: two and a half\nother/c.txt:1: two\n[guarded and left out: 2]\n\
                [left out, binary, over 10 MB or not readable: 1 files]\n";
    assert_eq!(found, want);
    assert_eq!(
        peer.call("grep_files", json!({"path": "other/c.txt", "pattern": "w"})).await.unwrap(),
        "other/c.txt:1: two\n"
    );
    assert_eq!(
        peer.call("grep_files", json!({"path": "other/c.txt", "pattern": "x"})).await.unwrap(),
        "[nothing found]\n"
    );
    assert!(peer.call("grep_files", json!({"pattern": "("})).await.unwrap_err().contains("no regular expression"));
    assert!(peer.call("search_file", json!({"pattern": "["})).await.unwrap_err().contains("no glob"));
}

#[tokio::test]
async fn reads_whole_files_and_parts() {
    let mut peer = Peer::open(Era::Legacy).await;
    let absolute = peer.folder.path().canonicalize().unwrap().join("docs/a.md");
    assert_eq!(peer.call("read_file", json!({"path": absolute})).await.unwrap(), "one\ntwo\nthree\n");
    assert_eq!(peer.call("read_file", json!({"path": "docs/a.md", "head": 1})).await.unwrap(), "one\n");
    assert_eq!(peer.call("read_file", json!({"path": "docs/a.md", "tail": 2})).await.unwrap(), "two\nthree\n");
    let large: String = (0..1_600_000).map(|n| format!("{n:07}\n")).collect();
    fs::write(peer.folder.path().join("large"), large).unwrap();
    for (arguments, want) in [
        (json!({"path": "other/d.bin"}), "is no text"),
        (json!({"path": "large"}), "more than 10 MB"),
        (json!({"path": "docs"}), "is a folder"),
        (json!({"path": "docs/none"}), "there is no `docs/none`"),
        (json!({"path": "docs/a.md/x"}), "a part of it is a file"),
        (json!({"path": "docs/a.md", "head": 1, "tail": 1}), "not both"),
        (json!({"path": "docs/a.md", "lines": 1}), "unknown field"),
        (json!({}), "missing field `path`"),
        (json!({"path": "../x"}), "without it"),
        (json!({"path": "/etc/passwd"}), "outside the workspace"),
        (json!({"path": "secrets/key.pem"}), "refused"),
        (json!({"path": "docs/out/key.pem"}), "symbolic link"),
        (json!({"path": "other/key"}), "symbolic link"),
    ] {
        let told = peer.call("read_file", arguments).await.unwrap_err();
        assert!(told.contains(want) && !told.contains("HIDDEN"), "{told}");
    }
    assert_eq!(peer.call("read_file", json!({"path": "large", "head": 1})).await.unwrap(), "0000000\n");
    assert_eq!(peer.call("read_file", json!({"path": "large", "tail": 1})).await.unwrap(), "1599999\n");
}

#[tokio::test]
async fn writes_and_edits_without_following_links() {
    use std::os::unix::fs::PermissionsExt;
    let mut peer = Peer::open(Era::Legacy).await;
    peer.call("write_file", json!({"path": "new/er/file", "content": "text"})).await.unwrap();
    assert_eq!(peer.read("new/er/file"), "text");
    let script = peer.folder.path().join("other/c.txt");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(&script, peer.folder.path().join("second")).unwrap();
    peer.call("write_file", json!({"path": "other/c.txt", "content": "changed"})).await.unwrap();
    assert_eq!(peer.read("other/c.txt"), "changed");
    assert_eq!(fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(peer.read("second"), "two\n", "another name of the old file keeps its content");

    peer.call("edit_file", json!({"path": "docs/a.md", "old_text": "two", "new_text": "2"})).await.unwrap();
    assert_eq!(peer.read("docs/a.md"), "one\n2\nthree\n");
    for (tool, arguments, want) in [
        ("edit_file", json!({"path": "docs/a.md", "old_text": "e", "new_text": ""}), "stands 3 times"),
        ("edit_file", json!({"path": "docs/a.md", "old_text": "x", "new_text": ""}), "does not stand"),
        ("edit_file", json!({"path": "docs/a.md", "old_text": "", "new_text": ""}), "is empty"),
        ("edit_file", json!({"path": "other/key", "old_text": "HIDDEN", "new_text": ""}), "symbolic link"),
        ("edit_file", json!({"path": "other/d.bin", "old_text": "x", "new_text": ""}), "does not stand"),
        ("write_file", json!({"path": "other/key", "content": ""}), "symbolic link"),
        ("write_file", json!({"path": "docs/out/key.pem", "content": ""}), "or a link"),
        ("write_file", json!({"path": "docs/out/new/x", "content": ""}), "symbolic link"),
        ("write_file", json!({"path": "docs", "content": ""}), "is a folder"),
        ("write_file", json!({"path": "", "content": ""}), "own folder"),
        ("write_file", json!({"path": "x/secrets/y", "content": ""}), "refused"),
    ] {
        let told = peer.call(tool, arguments).await.unwrap_err();
        assert!(told.contains(want), "{told}");
    }
    assert_eq!(peer.read("secrets/key.pem"), "HIDDEN two\n");
    assert_eq!(fs::read_dir(peer.folder.path().join("secrets")).unwrap().count(), 1);
    assert!(fs::read_dir(peer.folder.path().join("docs")).unwrap().all(|e| !is_draft(&e.unwrap())));
}

/// What was judged had one name; what is there now is the file behind another.
#[tokio::test]
async fn a_hard_link_that_was_put_there_since_is_not_opened() {
    let mut peer = Peer::open(Era::Legacy).await;
    let at = |name: &str| peer.folder.path().join(name);
    fs::remove_file(at("docs/a.md")).unwrap();
    fs::hard_link(at("secrets/key.pem"), at("docs/a.md")).unwrap();
    peer.other_names = false;
    for (tool, arguments) in [
        ("read_file", json!({"path": "docs/a.md"})),
        ("grep_files", json!({"path": "docs/a.md", "pattern": "two"})),
        ("edit_file", json!({"path": "docs/a.md", "old_text": "HIDDEN", "new_text": "x"})),
        ("write_file", json!({"path": "docs/a.md", "content": "x"})),
    ] {
        let told = peer.call(tool, arguments).await.unwrap_err();
        assert!(told.contains("hard links"), "{tool}: {told}");
    }
    assert_eq!(peer.read("secrets/key.pem"), "HIDDEN two\n");
    peer.call("read_file", json!({"path": "other/c.txt"})).await.unwrap();
    peer.other_names = true;
    assert!(peer.call("read_file", json!({"path": "docs/a.md"})).await.unwrap().contains("two"));
}

fn is_draft(entry: &fs::DirEntry) -> bool {
    entry.file_name().to_string_lossy().contains("draft")
}

/// Between the verdict and the opening, someone swaps a folder for a link to the secrets, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_swapped_parent_never_leads_to_secrets() {
    let mut peer = Peer::open(Era::Legacy).await;
    let root = peer.folder.path().to_owned();
    fs::create_dir(root.join("swap")).unwrap();
    fs::write(root.join("swap/key.pem"), "open\n").unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (root, done) = (root.clone(), Arc::clone(&done));
        move || {
            symlink("secrets", root.join("link")).unwrap();
            while !done.load(Ordering::Relaxed) {
                fs::rename(root.join("swap"), root.join("aside")).unwrap();
                fs::rename(root.join("link"), root.join("swap")).unwrap();
                fs::rename(root.join("swap"), root.join("link")).unwrap();
                fs::rename(root.join("aside"), root.join("swap")).unwrap();
            }
        }
    });
    let (mut opened, mut refused) = (0, 0);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(1) || opened == 0 || refused == 0 {
        for (tool, arguments) in [
            ("read_file", json!({"path": "swap/key.pem"})),
            ("grep_files", json!({"path": "swap", "pattern": "."})),
            ("edit_file", json!({"path": "swap/key.pem", "old_text": "open", "new_text": "open"})),
            ("edit_file", json!({"path": "swap/key.pem", "old_text": "HIDDEN", "new_text": "lost"})),
        ] {
            match peer.call(tool, arguments).await {
                Ok(text) => {
                    assert!(!text.contains("HIDDEN"), "{text}");
                    opened += 1;
                }
                Err(_) => refused += 1,
            }
        }
        assert!(started.elapsed() < Duration::from_secs(20), "{opened} opened, {refused} refused");
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    assert_eq!(peer.read("secrets/key.pem"), "HIDDEN two\n");
}

#[tokio::test]
async fn commands_tell_output_and_exit_code() {
    let mut peer = Peer::open(Era::Legacy).await;
    let told =
        peer.call("execute_cmd", json!({"command": "echo out; echo err >&2; printf end; exit 3"})).await.unwrap();
    assert_eq!(told, "out\nerr\nend\n[exit code 3]\n");
    let told = peer.call("execute_cmd", json!({"command": "cat a.md; pwd", "cwd": "docs"})).await.unwrap();
    let docs = peer.folder.path().canonicalize().unwrap().join("docs");
    assert_eq!(told, format!("one\ntwo\nthree\n{}\n[exit code 0]\n", docs.display()));
    assert_eq!(peer.call("execute_cmd", json!({"command": "kill -9 $$"})).await.unwrap(), "[ended by signal 9]\n");
    let told = peer.call("execute_cmd", json!({"command": "head -c 300000 /dev/zero | tr '\\0' x"})).await.unwrap();
    assert!(told.ends_with("x\n[output cut: 102400 of 300000 bytes]\n[exit code 0]\n") && told.len() < 103_000);
    let names = peer.call("execute_cmd", json!({"command": "env | cut -d= -f1"})).await.unwrap();
    assert!(names.contains("PATH") && !names.contains("CARGO"), "{names}");
    for (arguments, want) in [
        (json!({"command": "true", "timeout_seconds": 0}), "between 1 and 600"),
        (json!({"command": "true", "timeout_seconds": 601}), "between 1 and 600"),
        (json!({"command": "a\u{0}b"}), "NUL"),
        (json!({"command": "true", "cwd": "secrets"}), "refused"),
        (json!({"command": "true", "cwd": "docs/out"}), "link"),
    ] {
        let told = peer.call("execute_cmd", arguments).await.unwrap_err();
        assert!(told.contains(want), "{told}");
    }
}

#[tokio::test]
async fn a_command_ends_with_its_processes() {
    let mut peer = Peer::open(Era::Legacy).await;
    let started = Instant::now();
    let told = peer.call("execute_cmd", json!({"command": "sleep 1000 & echo $!"})).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(5));
    gone(told.lines().next().unwrap()).await;
    let told =
        peer.call("execute_cmd", json!({"command": "echo $$; sleep 1000", "timeout_seconds": 1})).await.unwrap_err();
    assert!(told.ends_with("[killed after 1 s (timeout_seconds)]\n"));
    gone(told.lines().next().unwrap()).await;
}

#[tokio::test]
async fn what_is_stopped_is_killed_and_not_answered() {
    let mut peer = Peer::open(Era::Legacy).await;
    let command = "echo $$ > pid; mv pid started; sleep 1000";
    let call = json!({"name": "execute_cmd", "arguments": {"command": command}});
    for way in ["stop", "close", "shutdown"] {
        let id = peer.send("tools/call", call.clone()).await;
        let started = peer.folder.path().join("started");
        while !started.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        match way {
            "stop" => peer.link.stop(id, "not needed").await,
            "close" => peer.link.close().await,
            _ => peer.workspace.shutdown().await,
        }
        gone(peer.read("started").trim()).await;
        fs::remove_file(started).unwrap();
        if way != "shutdown" {
            assert_eq!(peer.ask("ping", json!({})).await, json!({}), "nothing came of what was stopped");
        }
    }
}

async fn gone(pid: &str) {
    let gone = async {
        let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        while stat().rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z')) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("it is killed");
}

#[tokio::test]
async fn a_missing_folder_is_told() {
    let workspace = Workspace::new("workspace", Path::new("/no/such/folder"));
    let (inbound, _received) = mpsc::channel(1);
    let opening = Opening { agent: "a".to_owned(), era: Era::Legacy, resume: None, version: None, inbound };
    let error = workspace.open(opening).await.err().unwrap();
    assert!(error.what.contains("create it or set `root`") && !workspace.is_up());
}

//! A folder in which a shell text may do what it likes, and what it did.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Programs that are what they are.
const REAL: &str = "ls cat head tail wc sort uniq cut tr grep sed find echo printf date basename dirname tar diff env xargs nice \
    timeout nohup setsid stdbuf bash dash test [ true false pwd";
/// Programs that only tell that they ran.
const STUBS: &str = "rm curl sudo git python3 perl awk make cp mv tee touch mkdir ssh evil kill f x watch time which";
/// Stands wherever nothing may be read.
const CANARY: &str = "CANARY";
/// An unprivileged user: what the text does must not touch this machine.
const NOBODY: u32 = 65_534;

pub struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sandbox = Self { folder };
        fs::set_permissions(sandbox.at(""), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(sandbox.at("bin")).unwrap();
        for name in REAL.split_whitespace() {
            let real = ["/usr/bin", "/bin"].map(|at| Path::new(at).join(name)).into_iter().find(|real| real.exists());
            symlink(real.unwrap_or_else(|| panic!("no {name}")), sandbox.at("bin").join(name)).unwrap();
        }
        symlink("/bin/dash", sandbox.at("bin/sh")).unwrap();
        let log = sandbox.at("log");
        for name in STUBS.split_whitespace() {
            let script = format!(
                "#!/bin/dash\n{{ printf '%s' {name}; printf ' <%s>' \"$@\"; printf '\\n'; }} >> '{}'\n",
                log.display()
            );
            let stub = sandbox.at("bin").join(name);
            fs::write(&stub, script).unwrap();
            fs::set_permissions(&stub, fs::Permissions::from_mode(0o755)).unwrap();
        }
        sandbox.lay();
        sandbox
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Where texts run.
    pub fn root(&self) -> &Path {
        // Some folders below the top, for texts that climb.
        Box::leak(self.at("tree/a/b/c/work").into_boxed_path())
    }

    /// Makes the tree anew.
    fn lay(&self) {
        let tree = self.at("tree");
        let _ = fs::remove_dir_all(&tree);
        let root = self.root();
        for folder in ["docs/sub", "src", "secrets", "../out", "../home", "../tmp"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for (file, text) in [
            ("docs/a.md", "alpha\nbeta\n"),
            ("docs/b c.md", "gamma\n"),
            ("docs/sub/x", "1\n"),
            ("src/main.rs", "fn main() {}\n"),
            ("x", "x\n"),
            ("list", "docs/a.md\n"),
            ("script.sh", "rm script\n"),
            ("secrets/key.pem", "CANARY key\n"),
            ("secrets/CANARY", ""),
            ("../out/file", "CANARY out\n"),
            ("../out/CANARY", ""),
            ("../CANARY", ""),
            ("../home/CANARY", ""),
            ("../home/.bashrc", "rm bashrc\n"),
            ("../home/.profile", "rm profile\n"),
        ] {
            fs::write(root.join(file), text).unwrap();
        }
        symlink("../../out", root.join("docs/link")).unwrap();
        symlink("a.md", root.join("docs/near")).unwrap();
        fs::write(self.at("log"), "").unwrap();
        fs::set_permissions(self.at("log"), fs::Permissions::from_mode(0o666)).unwrap();
        if is_root() {
            for (path, _) in everything(&tree) {
                if !path.is_symlink() {
                    chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
                }
            }
        }
    }

    /// What a text does that it must not, in either shell.
    pub fn wrong(&self, text: &str) -> Vec<String> {
        ["bash", "dash"].into_iter().filter_map(|shell| self.wrong_in(shell, text)).collect()
    }

    fn wrong_in(&self, shell: &str, text: &str) -> Option<String> {
        if text.contains('\0') {
            return None;
        }
        let before = everything(&self.at("tree"));
        let said = self.run(shell, text);
        let log = fs::read_to_string(self.at("log")).unwrap();
        let after = everything(&self.at("tree"));
        let mut found: Vec<String> =
            log.lines().filter(|line| !is_allowed(line)).map(|line| format!("ran {line}")).collect();
        found.extend(
            after
                .iter()
                .filter(|(path, is)| before.get(*path) != Some(is))
                .map(|(path, _)| format!("wrote {}", path.display())),
        );
        found.extend(
            before.keys().filter(|path| !after.contains_key(*path)).map(|path| format!("removed {}", path.display())),
        );
        if said.contains(CANARY) {
            found.push(format!("read {}", said.lines().find(|line| line.contains(CANARY)).unwrap_or_default()));
        }
        if before != after || !log.is_empty() {
            self.lay();
        }
        (!found.is_empty()).then(|| format!("{shell}: {text:?}: {}", found.join("; ")))
    }

    /// What the text prints. It is ended after a while.
    fn run(&self, shell: &str, text: &str) -> String {
        let root = self.root();
        let mut command = Command::new("/bin/dash");
        command
            .args(["-c", "ulimit -t 2; ulimit -f 256; exec \"$0\" \"$@\"", &format!("/bin/{shell}"), "-c", text])
            .current_dir(root)
            .env_clear()
            .env("PATH", self.at("bin"))
            .env("HOME", root.join("../home"))
            .env("TMPDIR", root.join("../tmp"))
            .env("FUNCNEST", "8")
            .env("E", "rm from-environment")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        let mut child = command.spawn().unwrap();
        let out = child.stdout.take().unwrap();
        let err = child.stderr.take().unwrap();
        let out = std::thread::spawn(move || all_of(out));
        let err = std::thread::spawn(move || all_of(err));
        end(&mut child);
        format!("{}\n{}", out.join().unwrap(), err.join().unwrap())
    }
}

fn all_of(mut from: impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = from.by_ref().take(1 << 20).read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for two seconds, then ends all that the text has started.
fn end(child: &mut Child) {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() && started.elapsed() < Duration::from_secs(2) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let group = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    let _ = child.wait();
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Every path of the tree, with what it holds.
fn everything(tree: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![tree.to_owned()];
    while let Some(path) = open.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let holds = if meta.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            "folder".to_owned()
        } else if meta.is_file() {
            format!("{:?} {:?}", fs::read(&path).unwrap(), meta.modified().unwrap())
        } else {
            format!("{:?}", fs::read_link(&path).ok())
        };
        found.insert(path, holds);
    }
    found
}

/// Whether the policy of the test allows what a stub tells.
fn is_allowed(line: &str) -> bool {
    let mut words = line.split(" <").map(|word| word.trim_end_matches('>'));
    let program = words.next().unwrap_or_default();
    if program == "watch" || program == "time" || program == "f" || program == "x" || program == "which" {
        // What `time` and `watch` would run must be allowed; the others only tell that they ran.
        return words.next().is_none_or(|first| !STUBS.split_whitespace().any(|stub| stub == first));
    }
    let words: Vec<&str> = words.collect();
    let outside = |word: &&str| {
        word.contains("out")
            || word.contains("secrets")
            || word.contains("CANARY")
            || [
                "-c",
                "--output",
                "--ext-diff",
                "--config",
                "-O",
                "--exec",
                "--textconv",
                "--git-dir",
                "--work-tree",
                "-p",
                "--paginate",
            ]
            .iter()
            .any(|power| *word == *power || word.starts_with(&format!("{power}=")))
    };
    let mut command = None;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--no-pager" | "-P" | "--no-optional-locks" => {}
            "-C" if rest.next().is_some_and(|folder| is_inside(folder)) => {}
            other => {
                command = Some(other);
                break;
            }
        }
    }
    program == "git"
        && matches!(command, Some("status" | "log" | "diff"))
        && !words.iter().any(|word| outside(word) && !(command == Some("log") && *word == "-p"))
}

/// Whether a folder lies in the root, as far as its text tells.
fn is_inside(folder: &str) -> bool {
    let mut depth = 0_i32;
    let mut stays = !folder.starts_with('/');
    for part in folder.split('/') {
        match part {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        stays &= depth >= 0;
    }
    stays
}

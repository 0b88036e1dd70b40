//! The small tree that a case is played on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// A fresh folder with what the case's `setup` made; gone when dropped, mounts first.
pub struct Tree {
    temp: TempDir,
    root: PathBuf,
    mounts: Vec<PathBuf>,
}

/// Why a case cannot be played on this machine.
pub struct CannotMount(pub String);

impl Tree {
    /// Runs the setup lines in bash, `ROOT` an empty folder. A line that only comments on a mount is carried out where
    /// this process may mount.
    pub fn new(setup: &[String]) -> Result<Result<Self, CannotMount>, String> {
        let temp = tempfile::Builder::new().prefix("case-").tempdir().map_err(|e| e.to_string())?;
        let base = fs::canonicalize(temp.path()).map_err(|e| e.to_string())?;
        let root = base.join("root");
        fs::create_dir(&root).map_err(|e| e.to_string())?;
        let mut tree = Self { temp, root, mounts: Vec::new() };
        tree.bash(setup)?;
        for line in setup {
            if let Some(mount) = commented_mount(line)
                && let Err(why) = tree.mount(mount)
            {
                return Ok(Err(CannotMount(why)));
            }
        }
        Ok(Ok(tree))
    }

    /// The case's `ROOT`.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A folder of its own beside `ROOT`, for files that are the gateway's.
    pub fn aside(&self) -> Result<PathBuf, String> {
        let aside = self.temp.path().join("gateway");
        fs::create_dir_all(&aside).map_err(|e| e.to_string())?;
        fs::canonicalize(aside).map_err(|e| e.to_string())
    }

    /// Runs lines in bash with `ROOT` set.
    pub fn bash(&self, lines: &[String]) -> Result<(), String> {
        let output = Command::new("bash")
            .args(["-eu", "-c", &lines.join("\n")])
            .env("ROOT", &self.root)
            .current_dir(&self.root)
            .output()
            .map_err(|e| format!("bash does not start: {e}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("setup failed: {}", said.trim())) }
    }

    /// `$ROOT` and `${ROOT##*/}` replaced, and nothing else.
    pub fn expand(&self, text: &str) -> String {
        let root = self.root.to_string_lossy();
        let name = root.rsplit('/').next().unwrap_or_default().to_owned();
        text.replace("${ROOT##*/}", &name).replace("${ROOT}", &root).replace("$ROOT", &root)
    }

    /// The same in every string and key of a JSON value.
    pub fn expand_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.expand(text)),
            Value::Array(items) => items.iter().map(|item| self.expand_all(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(key, item)| (self.expand(key), self.expand_all(item))).collect()
            }
            other => other.clone(),
        }
    }

    fn mount(&mut self, words: &str) -> Result<(), String> {
        let expanded = self.expand(words);
        let words: Vec<&str> = expanded.split_whitespace().collect();
        let at = words.last().map(PathBuf::from).ok_or("a mount without a place")?;
        let output = Command::new("mount").args(&words).output().map_err(|e| format!("mount does not start: {e}"))?;
        if !output.status.success() {
            return Err(format!("this process may not mount: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        self.mounts.push(at);
        Ok(())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for mount in self.mounts.iter().rev() {
            let _ = Command::new("umount").arg("-l").arg(mount).status();
        }
    }
}

/// The words after `mount` in a line such as `mkdir -p A # mount --bind S A (needs root)`.
fn commented_mount(line: &str) -> Option<&str> {
    let (_, comment) = line.split_once("# mount ")?;
    Some(comment.split(" (").next().unwrap_or(comment).trim())
}

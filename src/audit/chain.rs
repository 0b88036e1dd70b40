//! The chain that this process writes: one `write(2)` a line, rotation, and what is done when the disk does not obey.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::AuditError;
use super::files::{self, ChainFile, FOLDER};
use crate::clock::{Clock, Timestamp};
use crate::config::AuditConfig;
use crate::process;

/// The fields that are the log's own.
const OWN: [&str; 4] = ["seq", "at", "prev", "event"];

/// The fields of a call that its arguments are read from.
const OF_ARGUMENTS: [&str; 2] = ["arguments", "hidden"];

pub(super) struct Chain {
    pub(super) folder: PathBuf,
    pub(super) process: String,
    state_dir: PathBuf,
    config: AuditConfig,
    clock: Clock,
    head: Mutex<Head>,
}

/// Where the next line goes.
struct Head {
    file: Arc<File>,
    number: u32,
    /// Bytes of whole lines in the file.
    len: u64,
    seq: u64,
    last: Option<String>,
    /// Part of a line may stand behind `len`.
    torn: bool,
    /// Files that lines were written to since they were last brought to the disk.
    unsynced: Vec<Arc<File>>,
    write_fault: Option<String>,
    sync_fault: Option<String>,
}

impl Chain {
    pub(super) fn open(
        state_dir: &Path,
        process: &str,
        config: &AuditConfig,
        clock: Clock,
    ) -> Result<Self, AuditError> {
        let folder = state_dir.join(FOLDER);
        let cannot = |error: io::Error| AuditError(format!("{}: {error}", folder.display()));
        process::private_dir(&folder).map_err(cannot)?;
        let file = create(&folder, process, 1).map_err(cannot)?;
        let head = Head {
            file,
            number: 1,
            len: 0,
            seq: 0,
            last: None,
            torn: false,
            unsynced: Vec::new(),
            write_fault: None,
            sync_fault: None,
        };
        let chain = Self {
            folder,
            process: process.to_owned(),
            state_dir: state_dir.to_owned(),
            config: config.clone(),
            clock,
            head: Mutex::new(head),
        };
        chain.write("audit.open", &json!({ "process": process, "version": env!("CARGO_PKG_VERSION") }))?;
        chain.remove_old(&mut chain.head())?;
        Ok(chain)
    }

    pub(super) fn write(&self, event: &str, fields: &Value) -> Result<(), AuditError> {
        self.put_down(event, fields)?;
        self.head().sync_fault.clone().map_or(Ok(()), |fault| Err(AuditError(fault)))
    }

    /// Only an error if the line is not in the file.
    pub(super) fn put_down(&self, event: &str, fields: &Value) -> Result<(), AuditError> {
        self.append(&mut self.head(), event, fields)?;
        if self.config.sync_always {
            self.sync();
        }
        Ok(())
    }

    /// Brings written lines to the disk; a fault sticks until it can be done.
    pub(super) fn sync(&self) {
        let files = std::mem::take(&mut self.head().unsynced);
        let failed = files.iter().find_map(|file| file.sync_data().err());
        let mut head = self.head();
        if let Some(error) = failed {
            tracing::error!(%error, "the audit log could not be brought to the disk");
            head.sync_fault = Some(format!("{}: could not be brought to the disk: {error}", self.folder.display()));
            head.unsynced.extend(files);
        } else {
            head.sync_fault = None;
        }
    }

    /// Whether lines keep the arguments of calls.
    pub(super) fn keeps_arguments(&self) -> bool {
        self.config.arguments
    }

    pub(super) fn fault(&self) -> Option<String> {
        let mut head = self.head();
        if let Err(error) = self.look(&head) {
            head.write_fault = Some(error.0);
        }
        head.write_fault.clone().or_else(|| head.sync_fault.clone())
    }

    fn head(&self) -> MutexGuard<'_, Head> {
        self.head.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, head: &mut Head, event: &str, fields: &Value) -> Result<(), AuditError> {
        let done = self.try_append(head, event, fields);
        head.write_fault = done.as_ref().err().map(|error| error.0.clone());
        done
    }

    fn try_append(&self, head: &mut Head, event: &str, fields: &Value) -> Result<(), AuditError> {
        self.look(head)?;
        let file = files::name(&self.process, head.number);
        let cannot = |error: io::Error| AuditError(format!("{}: {error}", self.folder.join(&file).display()));
        let mut line = self.line(head, event, fields);
        if head.len > 0 && head.len + line.len() as u64 + 1 > self.config.rotate {
            head.file = create(&self.folder, &self.process, head.number + 1).map_err(cannot)?;
            head.number += 1;
            head.len = 0;
            head.torn = false;
            self.remove_old(head)?;
            line = self.line(head, event, fields);
        }
        let last = files::hash(&line);
        line.push(b'\n');
        head.put(&line).map_err(cannot)?;
        head.seq += 1;
        head.last = Some(last);
        if self.config.stdout {
            // Whoever closed it does not want it; the file has it.
            let _ = io::stdout().write_all(&line);
        }
        Ok(())
    }

    /// A file that was moved away, removed or cut would take lines that nobody finds again: looked at before each line,
    /// which costs two look-ups.
    fn look(&self, head: &Head) -> Result<(), AuditError> {
        let path = self.folder.join(files::name(&self.process, head.number));
        let same = fs::metadata(&path).and_then(|there| {
            let ours = head.file.metadata()?;
            Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino()) && there.len() >= head.len)
        });
        match same {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(AuditError(format!(
                "{} was moved, removed or cut while it was written; put it back, or restart the gateway",
                path.display()
            ))),
        }
    }

    fn line(&self, head: &Head, event: &str, fields: &Value) -> Vec<u8> {
        let own = [
            ("seq", json!(head.seq + 1)),
            ("at", json!(self.clock.now())),
            ("prev", json!(head.last)),
            ("event", json!(event)),
        ];
        let theirs = fields.as_object().into_iter().flatten();
        let theirs = theirs.filter(|(key, _)| !OWN.contains(&key.as_str()));
        let theirs = theirs.filter(|(key, _)| self.config.arguments || !OF_ARGUMENTS.contains(&key.as_str()));
        let mut line = String::with_capacity(1024);
        for (key, value) in own.iter().map(|(key, value)| (*key, value)).chain(theirs.map(|(k, v)| (k.as_str(), v))) {
            line.push(if line.is_empty() { '{' } else { ',' });
            line.push_str(&json!(key).to_string());
            line.push(':');
            line.push_str(&value.to_string());
        }
        line.push('}');
        line.into_bytes()
    }

    /// Removes what is older than the operator wants it: of this chain, files before the current one; of a dead process'
    /// chain all or nothing, so that what is there can always be verified from its first line.
    fn remove_old(&self, head: &mut Head) -> Result<(), AuditError> {
        let cannot = |error: io::Error| AuditError(format!("{}: {error}", self.folder.display()));
        for (chain, mut files) in files::chains(&self.folder).map_err(cannot)? {
            if chain == self.process {
                files.retain(|file| file.number < head.number && self.is_old(file));
            } else if files.last().is_none_or(|newest| !self.is_old(newest))
                || process::is_alive(&self.state_dir, &chain)
            {
                continue;
            }
            for file in files {
                fs::remove_file(&file.path).or_else(unless_gone).map_err(cannot)?;
                self.append(head, "audit.removed", &json!({ "file": file.name() }))?;
            }
            if chain != self.process {
                fs::remove_file(self.ended_mark(&chain)).or_else(unless_gone).map_err(cannot)?;
            }
        }
        Ok(())
    }

    /// The empty file that says that a dead process' calls were ended.
    pub(super) fn ended_mark(&self, chain: &str) -> PathBuf {
        self.folder.join(format!("{chain}.ended"))
    }

    fn is_old(&self, file: &ChainFile) -> bool {
        let changed = fs::metadata(&file.path).and_then(|found| found.modified());
        let changed = changed.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        changed.is_some_and(|since: Duration| {
            self.clock.now().since(Timestamp::from_millis(0).after(since)) > self.config.keep
        })
    }
}

impl Head {
    /// One `write(2)`. What it leaves of a line that did not fit is cut off, now or before the next one.
    fn put(&mut self, line: &[u8]) -> io::Result<()> {
        if self.torn {
            self.file.set_len(self.len)?;
            self.torn = false;
        }
        let written = loop {
            match (&*self.file).write(line) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        if written < line.len() {
            self.torn = true;
            if self.file.set_len(self.len).is_ok() {
                self.torn = false;
            }
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.len += line.len() as u64;
        if !self.unsynced.iter().any(|file| Arc::ptr_eq(file, &self.file)) {
            self.unsynced.push(self.file.clone());
        }
        Ok(())
    }
}

fn create(folder: &Path, chain: &str, number: u32) -> io::Result<Arc<File>> {
    let path = folder.join(files::name(chain, number));
    Ok(Arc::new(OpenOptions::new().append(true).create_new(true).mode(0o600).open(path)?))
}

fn unless_gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

//! Ends, in this process' chain, what dead processes began and did not end.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use serde_json::{Value, json};

use super::AuditError;
use super::chain::Chain;
use super::files::{self, ChainFile};
use crate::process;
use crate::record::{CallState, Outcome};

/// Goes through the chains of dead processes that nobody went through yet. The note about each fixes where it ended, so
/// that nothing can be cut off it afterwards.
pub(super) fn recover(chain: &Chain, state_dir: &Path) -> Result<(), AuditError> {
    let cannot = |error: io::Error| AuditError(format!("{}: {error}", chain.folder.display()));
    // Of two processes that start at once, the second finds the first's marks.
    let turn = process::private_file(&chain.folder.join("recovering")).map_err(cannot)?;
    turn.lock().map_err(cannot)?;
    for (dead, files) in files::chains(&chain.folder).map_err(cannot)? {
        let mark = chain.ended_mark(&dead);
        if dead == chain.process || mark.exists() || process::is_alive(state_dir, &dead) {
            continue;
        }
        let left = read(&files).map_err(cannot)?;
        for call in left.begun.into_values() {
            chain.write("call.end", &ended(call, &dead))?;
        }
        chain.write("audit.recovered", &json!({ "chain": dead, "last_seq": left.seq, "last": left.last }))?;
        chain.sync();
        process::private_file(&mark).map_err(cannot)?;
    }
    Ok(())
}

/// What a dead chain left.
#[derive(Default)]
struct Left {
    /// Begun and not ended, by call.
    begun: BTreeMap<String, Value>,
    seq: u64,
    last: Option<String>,
}

fn read(files: &[ChainFile]) -> io::Result<Left> {
    let mut left = Left::default();
    for file in files {
        let _ = files::each_line(&file.path, |_, bytes, whole| {
            // What is torn or forged is for `verify` to say; nothing is concluded from it here.
            let Ok(line) = serde_json::from_slice::<Value>(bytes) else { return ControlFlow::Continue(()) };
            if !whole {
                return ControlFlow::Continue(());
            }
            left.seq = line.get("seq").and_then(Value::as_u64).unwrap_or_default();
            left.last = Some(files::hash(bytes));
            let is = |event: &str| line.get("event").and_then(Value::as_str) == Some(event);
            let Some(call) = line.get("id").and_then(Value::as_str).map(str::to_owned) else {
                return ControlFlow::Continue(());
            };
            if is("call.begin") && line.get("approval").is_none_or(Value::is_null) {
                left.begun.insert(call, line);
            } else if is("call.end") {
                left.begun.remove(&call);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(left)
}

fn ended(mut call: Value, dead: &str) -> Value {
    if let Some(fields) = call.as_object_mut() {
        // It stands where the call began.
        fields.remove(super::EVIDENCE);
        fields.insert("state".into(), json!(CallState::Failed));
        fields.insert("outcome".into(), json!(Outcome::Failed));
        fields.insert("may_have_run".into(), json!(true));
        fields.insert("detail".into(), json!("the gateway ended while the call was running; it may have run"));
        fields.insert("chain".into(), json!(dead));
    }
    call
}

//! One redacted value of a held call, for an approver who needs to see it: an act of its own, written down first.

use serde_json::{Value, json};

use super::{Gate, shown};
use crate::approval::Held;

/// Why a value is not shown.
#[derive(Debug)]
pub enum NotRevealed {
    /// Nothing was redacted there.
    Nothing,
    /// What is stored cannot be read, or the audit log cannot be written.
    Unavailable(String),
}

impl Gate {
    /// The value at a JSON pointer into the shown arguments, one of the call's `redacted`.
    ///
    /// # Errors
    /// Why not; nothing is shown that was not written down before.
    pub fn reveal(&self, held: &Held, pointer: &str, by: &str, channel: &str) -> Result<Value, NotRevealed> {
        if !held.call().redacted.iter().any(|redacted| redacted == pointer) {
            return Err(NotRevealed::Nothing);
        }
        let message = held.intent.message().map_err(NotRevealed::Unavailable)?;
        let value = shown::unredacted(&message).pointer_mut(pointer).map(Value::take).ok_or(NotRevealed::Nothing)?;
        let what = json!({"approval": held.approval.id, "call": held.call().id, "by": by, "channel": channel, "pointer": pointer});
        self.writes("approval.revealed", &what).map_err(NotRevealed::Unavailable)?;
        Ok(value)
    }
}

//! The tools that work on files, each on a thread where it may block.

mod edit;
mod find;
mod list;
mod read;
mod replace;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::root::Root;
use super::tool::{Definition, Output, Run, Stop, Tool, ToolExecution};

/// The largest file that is read whole, in bytes.
const MAX_FILE: u64 = 10 << 20;
/// The longest list that is given, in bytes.
const MAX_TEXT: usize = 100 << 10;

/// A tool that works on files.
pub(super) struct FileTool {
    definition: fn() -> Definition,
    run: fn(&Root, Value, &Stop) -> Result<String, String>,
}

/// All of them.
pub(super) const TOOLS: [FileTool; 6] = [list::TOOL, read::TOOL, edit::WRITE, edit::EDIT, find::SEARCH, find::GREP];

impl Tool for FileTool {
    fn definition(&self) -> Definition {
        (self.definition)()
    }

    fn start(&self, root: &Arc<Root>, arguments: Value) -> Arc<dyn ToolExecution> {
        let (root, run) = (Arc::clone(root), self.run);
        Arc::new(Run::blocking(move |stop| Output::from(run(&root, arguments, stop))))
    }
}

/// The arguments of a tool.
///
/// # Errors
/// What does not fit; for the model.
pub(super) fn parse<A: DeserializeOwned>(arguments: Value) -> Result<A, String> {
    serde_json::from_value(arguments).map_err(|error| format!("the arguments do not fit the tool's schema: {error}"))
}

/// A schema of an object with these properties and no others.
pub(super) fn schema(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// A list that is cut when it gets too long.
#[derive(Default)]
struct Text {
    text: String,
    cut: bool,
}

impl Text {
    /// Adds a line; breaks when there is no room for it.
    fn line(&mut self, line: &str) -> std::ops::ControlFlow<()> {
        if self.text.len() + line.len() >= MAX_TEXT {
            self.cut = true;
            return std::ops::ControlFlow::Break(());
        }
        self.text.push_str(line);
        self.text.push('\n');
        std::ops::ControlFlow::Continue(())
    }

    /// The list, what was left out, or `empty`.
    fn finish(self, notes: &str, empty: &str) -> String {
        let mut text = if self.text.is_empty() && !self.cut { format!("{empty}\n") } else { self.text };
        if self.cut {
            text.push_str(&format!("[cut at {} KB; ask for less]\n", MAX_TEXT >> 10));
        }
        text + notes
    }
}

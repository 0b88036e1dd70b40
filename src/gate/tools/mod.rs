//! The tools that upstreams define: what each session was offered, and what an operator has accepted of it.

mod canonical;
mod difference;
mod flags;
mod listed;
mod offered;
mod page;
mod pins;
mod records;
mod refresh;

use serde_json::Value;

pub use listed::{announce, compare, list_changed};
pub use offered::{Asked, LEAST_AGE, Offered, Reading};
pub use page::Page;
pub use pins::{Pins, follow};
pub use records::{NotAccepted, ToolFilter};
pub use refresh::Refreshed;

use crate::catalog::{Catalogue, Tool};

/// One tool as its upstream defines it, read through the catalogue.
#[derive(Clone, Debug)]
pub struct Definition {
    /// `sha256:…` over the whole definition; empty where no list was seen.
    pub digest: String,
    /// What its arguments are.
    pub entry: Tool,
    /// Whether its schema names an argument that could hold a text.
    pub takes_text: bool,
    /// Arguments that travel as `Mcp-Param-*` headers too (`x-mcp-header`), by name and header.
    pub headers: Vec<(String, String)>,
    /// Whether it is called as a task only (`execution.taskSupport`, MCP 2025-11-25).
    pub only_as_task: bool,
}

impl Definition {
    /// Reads a definition of `tools/list`.
    pub fn read(catalogue: &Catalogue, name: &str, tool: &Value, digest: String) -> Self {
        let schema = tool.get("inputSchema");
        let headers = schema
            .and_then(|s| s.get("properties"))
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(argument, property)| {
                Some((argument.clone(), property.get("x-mcp-header")?.as_str()?.to_owned()))
            })
            .collect();
        let support = tool.get("execution").and_then(|execution| execution.get("taskSupport"));
        let only_as_task = support.and_then(Value::as_str) == Some("required");
        Self { digest, entry: catalogue.tool(name, schema), takes_text: takes_text(schema), headers, only_as_task }
    }

    /// A tool as far as it is known without its upstream's list: by the catalogue alone.
    pub fn unlisted(catalogue: &Catalogue, name: &str) -> Self {
        Self {
            digest: String::new(),
            entry: catalogue.tool(name, None),
            takes_text: true,
            headers: Vec::new(),
            only_as_task: false,
        }
    }
}

/// Whether any argument that the schema declares could be, or hold, a text: all but those that are plainly numbers or
/// truth values.
fn takes_text(schema: Option<&Value>) -> bool {
    let Some(Value::Object(schema)) = schema else { return true };
    let plain = |property: &Value| {
        property
            .get("type")
            .and_then(Value::as_str)
            .is_some_and(|kind| ["number", "integer", "boolean"].contains(&kind))
    };
    let known = ["type", "properties", "required", "additionalProperties", "$schema", "title", "description"];
    let properties = schema.get("properties").and_then(Value::as_object);
    !schema.keys().all(|key| known.contains(&key.as_str()))
        || schema.get("additionalProperties").is_some_and(Value::is_object)
        || properties.is_some_and(|properties| !properties.values().all(plain))
}

/// Whether a text can be a tool's name (MCP 2025-11-25, tool names).
pub fn is_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

//! The tool definitions that an upstream offers, as last seen.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::catalog::{Catalogue, Tool};

/// One tool as its upstream defines it, read through the catalogue.
#[derive(Clone, Debug)]
pub struct Definition {
    /// `sha256:…` over the whole definition.
    pub digest: String,
    /// What its arguments are.
    pub entry: Tool,
    /// Arguments that travel as `Mcp-Param-*` headers too (`x-mcp-header`), by name and header.
    pub headers: Vec<(String, String)>,
}

/// What an upstream offers. Shared by all sessions: the union of what each was shown.
#[derive(Debug, Default)]
pub struct Definitions {
    known: ArcSwap<HashMap<String, Arc<Definition>>>,
    stale: AtomicBool,
}

impl Definitions {
    /// The definition of a tool, if it was listed.
    pub fn get(&self, name: &str) -> Option<Arc<Definition>> {
        self.known.load().get(name).cloned()
    }

    /// The upstream said that its list changed: look again before the next call.
    pub fn mark_stale(&self) {
        self.stale.store(true, Ordering::Release);
    }

    /// Whether the list must be read again.
    pub fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Acquire)
    }

    /// The list is being read now; a change from here on marks it again.
    pub fn mark_fresh(&self) {
        self.stale.store(false, Ordering::Release);
    }

    /// Learns from the `result` of a `tools/list`; answers the next cursor, if there is one.
    pub fn learn(&self, catalogue: &Catalogue, result: &str) -> Option<String> {
        let page: Value = serde_json::from_str(result).ok()?;
        let tools = page.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let fresh: Vec<(String, Arc<Definition>)> = tools
            .iter()
            .filter_map(|tool| {
                let name = tool.get("name")?.as_str()?.to_owned();
                let known = self.get(&name);
                let digest = digest(tool);
                match known {
                    Some(same) if same.digest == digest => None,
                    _ => Some((name.clone(), Arc::new(define(catalogue, &name, tool, digest)))),
                }
            })
            .collect();
        if !fresh.is_empty() {
            self.known.rcu(|known| {
                let mut next = HashMap::clone(known);
                next.extend(fresh.iter().cloned());
                next
            });
        }
        page.get("nextCursor").and_then(Value::as_str).map(str::to_owned)
    }
}

fn define(catalogue: &Catalogue, name: &str, tool: &Value, digest: String) -> Definition {
    let schema = tool.get("inputSchema");
    let headers = schema
        .and_then(|s| s.get("properties"))
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(argument, property)| Some((argument.clone(), property.get("x-mcp-header")?.as_str()?.to_owned())))
        .collect();
    Definition { digest, entry: catalogue.tool(name, schema), headers }
}

/// Over the definition with its keys sorted, so that key order changes nothing.
fn digest(tool: &Value) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(sorted(tool).as_bytes())))
}

fn sorted(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members: Vec<String> =
                members.into_iter().map(|(key, value)| format!("{}:{}", json!(key), sorted(value))).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(elements) => format!("[{}]", elements.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_definition_is_another_when_anything_but_its_key_order_changes() {
        let definitions = Definitions::default();
        let list = |tool: &str| format!(r#"{{"tools":[{tool}],"nextCursor":"n"}}"#);
        let learn = |tool: &str| {
            assert_eq!(definitions.learn(&Catalogue::default(), &list(tool)).as_deref(), Some("n"));
            definitions.get("t").unwrap().digest.clone()
        };
        let first = learn(r#"{"name":"t","inputSchema":{"type":"object","properties":{"a":{},"b":{}}}}"#);
        assert_eq!(first, learn(r#"{"inputSchema":{"properties":{"b":{},"a":{}},"type":"object"},"name":"t"}"#));
        assert_ne!(first, learn(r#"{"name":"t","description":"now with mail","inputSchema":{"type":"object"}}"#));
    }
}

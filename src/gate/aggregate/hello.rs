//! The handshakes of all upstreams as one.

use serde_json::{Map, Value, json};

/// What two upstreams can do, together: what one of them can, all can.
fn merge(into: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        match (into.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(more)) => merge(known, more),
            (Some(known @ Value::Bool(false)), Value::Bool(true)) => *known = Value::Bool(true),
            (Some(_), _) => {}
            (None, value) => drop(into.insert(key.clone(), value.clone())),
        }
    }
}

fn capabilities<'a>(hellos: impl Iterator<Item = &'a Value>) -> Map<String, Value> {
    let mut all = Map::from_iter([("tools".to_owned(), json!({ "listChanged": true }))]);
    for own in hellos.filter_map(|hello| hello.get("capabilities")?.as_object()) {
        merge(&mut all, own);
    }
    all
}

/// What each says that a model should know, under its name.
fn instructions(hellos: &[(String, Value)]) -> Option<String> {
    let told = hellos.iter().filter_map(|(upstream, hello)| {
        let text = hello.get("instructions")?.as_str().filter(|text| !text.trim().is_empty())?;
        Some(format!("# {upstream} (tools named {upstream}__…)\n\n{text}"))
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| told.join("\n\n"))
}

fn server_info() -> Value {
    json!({ "name": "portcullis", "version": env!("CARGO_PKG_VERSION") })
}

/// The answer to `initialize` (2025-11-25 and before).
pub fn initialized(version: &str, hellos: &[(String, Value)]) -> Value {
    let capabilities = capabilities(hellos.iter().map(|(_, hello)| hello));
    let mut result = json!({ "protocolVersion": version, "capabilities": capabilities, "serverInfo": server_info() });
    if let (Some(text), Some(members)) = (instructions(hellos), result.as_object_mut()) {
        members.insert("instructions".to_owned(), Value::from(text));
    }
    result
}

/// The answer to `server/discover` (2026-07-28). Which upstreams are up may change: it is nothing to be kept.
pub fn discovered(version: &str, hellos: &[(String, Value)]) -> Value {
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [version],
        "capabilities": capabilities(hellos.iter().map(|(_, hello)| hello)),
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
    });
    if let (Some(text), Some(members)) = (instructions(hellos), result.as_object_mut()) {
        members.insert("instructions".to_owned(), Value::from(text));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_can_all_can() {
        let hellos = [
            ("a".to_owned(), json!({ "capabilities": { "tools": {}, "resources": { "subscribe": false } } })),
            (
                "b".to_owned(),
                json!({ "capabilities": { "logging": {}, "resources": { "subscribe": true } }, "instructions": "Be kind." }),
            ),
        ];
        let result = initialized("2025-11-25", &hellos);
        assert_eq!(
            result.get("capabilities"),
            Some(&json!({ "tools": { "listChanged": true }, "logging": {}, "resources": { "subscribe": true } }))
        );
        assert_eq!(result.get("instructions"), Some(&json!("# b (tools named b__…)\n\nBe kind.")));
    }
}

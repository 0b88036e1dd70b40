//! What the workspace says in both eras of the protocol.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::execute::ExecuteCmd;
use super::files;
use super::tool::{Definition, Output, Tool};
use crate::gate::{Era, Outgoing};
use crate::message::compose;

/// Legacy versions, oldest first; the last is offered to a client that asks for another.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";
/// How long a list may be kept, in milliseconds: the tools change only with the program.
const TTL_MS: u64 = 3_600_000;

/// The answer to a request, or the run that will give it.
pub(super) enum Answer {
    /// Told at once.
    Now(Bytes),
    /// A tool is to run with these arguments.
    Run(&'static dyn Tool, Value),
}

/// Reads a request.
pub(super) fn answer(era: Era, id: u64, message: &Outgoing) -> Answer {
    let id = id.to_string();
    let refuse = |code, what: &str| Answer::Now(compose::error(&id, code, what, None));
    let Ok(Request { params }) = serde_json::from_slice(&message.bytes) else {
        return refuse(-32602, "the params are not an object");
    };
    if era == Era::Modern
        && let Some(version) = message.version.as_deref().filter(|version| *version != MODERN)
    {
        let data = json!({ "supported": [MODERN], "requested": version });
        return Answer::Now(compose::error(&id, -32022, "this protocol version is not supported", Some(&data)));
    }
    let result = match (era, message.method.as_str()) {
        (Era::Legacy, "initialize") => initialize(&params),
        (Era::Legacy, "ping") => json!({}),
        (Era::Modern, "server/discover") => complete(discover()),
        (Era::Legacy, "tools/list") => tools_list(),
        (Era::Modern, "tools/list") => complete(cached(tools_list())),
        (_, "tools/call") => return call(params).unwrap_or_else(|what| refuse(-32602, &what)),
        _ => return refuse(-32601, "the workspace does not offer this method"),
    };
    Answer::Now(compose::result(&id, &result))
}

/// The result of a run.
pub(super) fn result(era: Era, id: u64, output: &Output) -> Bytes {
    let result = json!({ "content": [{ "type": "text", "text": output.text }], "isError": output.failed });
    compose::result(&id.to_string(), &if era == Era::Modern { complete(result) } else { result })
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    params: Map<String, Value>,
}

fn tool(name: &str) -> Option<&'static dyn Tool> {
    tools().find(|tool| tool.definition().name == name)
}

fn tools() -> impl Iterator<Item = &'static dyn Tool> {
    files::TOOLS.iter().map(|tool| tool as &dyn Tool).chain([&ExecuteCmd as &dyn Tool])
}

/// # Errors
/// The params are not those of a call, or there is no such tool.
fn call(mut params: Map<String, Value>) -> Result<Answer, String> {
    let Some(Value::String(name)) = params.get("name") else {
        return Err("`params.name` must name a tool".into());
    };
    let tool = tool(name).ok_or_else(|| format!("there is no tool `{name}`"))?;
    match params.remove("arguments").unwrap_or_else(|| json!({})) {
        arguments @ Value::Object(_) => Ok(Answer::Run(tool, arguments)),
        _ => Err("`params.arguments` must be an object".into()),
    }
}

fn initialize(params: &Map<String, Value>) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let version = LEGACY.iter().find(|version| Some(**version) == asked).or(LEGACY.last());
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })
}

fn discover() -> Value {
    cached(json!({
        "supportedVersions": [MODERN],
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
    }))
}

const INSTRUCTIONS: &str = "Paths are relative to the workspace's folder, or absolute and below it.";

fn server_info() -> Value {
    json!({ "name": "portcullis-workspace", "version": env!("CARGO_PKG_VERSION") })
}

fn tools_list() -> Value {
    let shown = |Definition { name, description, input_schema, read_only }| {
        json!({
            "name": name,
            "description": description,
            "inputSchema": input_schema,
            "annotations": { "readOnlyHint": read_only, "openWorldHint": name == "execute_cmd" },
        })
    };
    json!({ "tools": tools().map(|tool| shown(tool.definition())).collect::<Vec<_>>() })
}

fn cached(result: Value) -> Value {
    with(with(result, "ttlMs", TTL_MS.into()), "cacheScope", "public".into())
}

fn complete(result: Value) -> Value {
    with(result, "resultType", "complete".into())
}

fn with(mut result: Value, key: &str, value: Value) -> Value {
    if let Value::Object(members) = &mut result {
        members.insert(key.to_owned(), value);
    }
    result
}

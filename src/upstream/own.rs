//! The gateway's own tools: one, by which an agent asks its people a question.
//!
//! It only says what there is. A question is held by the gate and answered by a person; nothing is ever run here.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::place::place;
use super::{LOG, may_have_run};
use crate::config::RESERVED_UPSTREAM;
use crate::gate::{
    ASK_USER, Era, Fault, Inbound, Link, MAX_CHOICE, MAX_CHOICES, MAX_QUESTION, Opening, Outgoing, Permit, Place,
    Upstream, UpstreamError,
};
use crate::message::{Message, compose};

/// Legacy versions, oldest first; the last is offered to a client that asks for another.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";
/// How long the list may be kept, ms: the tools change only with the program.
const TTL_MS: u64 = 3_600_000;
const INSTRUCTIONS: &str =
    "Ask people only what you cannot find out yourself. An answer is information, never a permission.";

/// The gateway itself.
#[derive(Debug)]
pub struct Own;

struct OwnLink {
    era: Era,
    inbound: mpsc::Sender<Inbound>,
}

impl Upstream for Own {
    fn id(&self) -> &str {
        RESERVED_UPSTREAM
    }

    fn place(&self) -> Place {
        place("own", [], "the gateway itself", false)
    }

    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<Arc<dyn Link>, UpstreamError>> {
        let link = OwnLink { era: opening.era, inbound: opening.inbound };
        Box::pin(std::future::ready(Ok(Arc::new(link) as Arc<dyn Link>)))
    }

    fn is_up(&self) -> bool {
        true
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Link for OwnLink {
    fn send(&self, _permit: Permit, message: Outgoing) -> BoxFuture<'_, Result<(), UpstreamError>> {
        Box::pin(async move {
            let Some(id) = message.id else { return Ok(()) };
            let inbound = match Message::framed(answer(self.era, id, &message)) {
                Ok(message) => Inbound::Message { message, related: Some(id) },
                Err(error) => {
                    tracing::error!(target: LOG, fault = "gateway", "the gateway's own tools made a bad answer: {error}");
                    Inbound::Failed { id, error: may_have_run(Fault::Garbage, "the gateway made a bad answer") }
                }
            };
            // Nobody to tell is no error.
            let _unheard = self.inbound.send(inbound).await;
            Ok(())
        })
    }

    fn stop(&self, _id: u64, _reason: &str) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn session(&self) -> Option<String> {
        None
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn answer(era: Era, id: u64, message: &Outgoing) -> Bytes {
    let id = id.to_string();
    if era == Era::Modern
        && let Some(version) = message.version.as_deref().filter(|version| *version != MODERN)
    {
        let data = json!({ "supported": [MODERN], "requested": version });
        return compose::error(&id, -32022, "this protocol version is not supported", Some(&data));
    }
    let result = match (era, message.method.as_str()) {
        (Era::Legacy, "initialize") => initialize(message),
        (Era::Legacy, "ping") => json!({}),
        (Era::Modern, "server/discover") => cached(discover()),
        (Era::Legacy, "tools/list") => tools(),
        (Era::Modern, "tools/list") => cached(tools()),
        _ => return compose::error(&id, -32601, "the gateway does not offer this method", None),
    };
    compose::result(&id, &result)
}

fn initialize(message: &Outgoing) -> Value {
    let request: Value = serde_json::from_slice(&message.bytes).unwrap_or_default();
    let asked = request.pointer("/params/protocolVersion").and_then(Value::as_str);
    let version = LEGACY.iter().find(|version| Some(**version) == asked).or(LEGACY.last());
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })
}

fn discover() -> Value {
    json!({
        "supportedVersions": [MODERN],
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
        "_meta": { "io.modelcontextprotocol/serverInfo": server_info() },
    })
}

fn server_info() -> Value {
    json!({ "name": "portcullis", "version": env!("CARGO_PKG_VERSION") })
}

fn tools() -> Value {
    json!({ "tools": [{
        "name": ASK_USER,
        "description": "Asks the people who look after you a question and waits for the answer. Use it only for what you \
            cannot find out yourself. An answer is information: it permits no tool call. Never ask for passwords, \
            tokens or other secrets.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "question": {
                    "type": "string", "minLength": 1, "maxLength": MAX_QUESTION,
                    "description": "One question, with what is needed to answer it",
                },
                "choices": {
                    "type": "array", "maxItems": MAX_CHOICES,
                    "items": { "type": "string", "minLength": 1, "maxLength": MAX_CHOICE },
                    "description": "Answers to choose from; another one can be given all the same",
                },
            },
            "required": ["question"],
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    }] })
}

fn cached(result: Value) -> Value {
    let mut members = match result {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    members.insert("ttlMs".to_owned(), TTL_MS.into());
    members.insert("cacheScope".to_owned(), "public".into());
    members.insert("resultType".to_owned(), "complete".into());
    Value::Object(members)
}

//! Which design of the protocol a message belongs to, and what it must carry for that (MCP 2026-07-28, "Versioning").

use serde_json::{Value, json};

use crate::gate::Reply;
use crate::message::{Kind, Message, compose};

/// The stateless version.
pub(super) const MODERN: &str = "2026-07-28";

/// The versions with a handshake.
pub(super) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

const VERSION: [&str; 3] = ["params", "_meta", "io.modelcontextprotocol/protocolVersion"];
const CAPABILITIES: [&str; 3] = ["params", "_meta", "io.modelcontextprotocol/clientCapabilities"];

const INVALID_REQUEST: i64 = -32600;
const INVALID_PARAMS: i64 = -32602;
const HEADER_MISMATCH: i64 = -32020;
const UNSUPPORTED_VERSION: i64 = -32022;

/// Whether the message opens the stateless path: its `_meta` names a protocol version.
pub(super) fn is_modern(message: &Message) -> bool {
    message.at(&VERSION).is_some()
}

/// Whether a modern message is of a version that the gateway speaks.
///
/// # Errors
/// The reply.
pub(super) fn supported(message: &Message) -> Result<(), Reply> {
    let Some(version) = message.meta_version() else {
        return Err(refuse(message, INVALID_PARAMS, "`_meta` must name the protocol version as a string"));
    };
    if version == MODERN {
        return Ok(());
    }
    let data = json!({ "supported": [MODERN], "requested": version });
    Err(reply(id_of(message), UNSUPPORTED_VERSION, "this protocol version is not supported", Some(&data)))
}

/// Whether a modern request carries what the client can do.
///
/// # Errors
/// The reply.
pub(super) fn capable(message: &Message) -> Result<(), Reply> {
    match message.at(&CAPABILITIES) {
        Some((_, raw)) if raw.starts_with('{') => Ok(()),
        None if message.kind() != Kind::Request => Ok(()),
        _ => Err(refuse(
            message,
            INVALID_PARAMS,
            "`params._meta` must carry `io.modelcontextprotocol/clientCapabilities`, an object",
        )),
    }
}

/// A modern request whose `_meta` is not there.
pub(super) fn missing_meta(message: &Message) -> Reply {
    refuse(message, INVALID_PARAMS, "`params._meta` must carry `io.modelcontextprotocol/protocolVersion`")
}

/// A header that is missing, cannot be read, or says something else than the body.
pub(super) fn header_mismatch(message: &Message, what: &str) -> Reply {
    refuse(message, HEADER_MISMATCH, what)
}

/// A message that comes at the wrong time.
pub(super) fn misplaced(message: &Message, what: &str) -> Reply {
    refuse(message, INVALID_REQUEST, what)
}

fn refuse(message: &Message, code: i64, what: &str) -> Reply {
    reply(id_of(message), code, what, None)
}

fn reply(id: &str, code: i64, what: &str, data: Option<&Value>) -> Reply {
    Reply { bytes: compose::error(id, code, what, data), status: 400 }
}

/// A notification and a response are refused without an id of their own.
fn id_of(message: &Message) -> &str {
    message.id().filter(|_| message.kind() == Kind::Request).unwrap_or("null")
}

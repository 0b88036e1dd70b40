//! JSON-RPC as a gateway in the middle must read it: strict towards clients, lossless towards both.
//!
//! A client's message is parsed once into a tree with byte spans ([`Json`]); an executor's message is only framed. Both
//! become a [`Message`], whose bytes are forwarded as they came, with the few spliced parts that must change.

pub mod json;
pub mod sse;

mod envelope;
mod parse;

pub use envelope::{Kind, Malformed, Message};
pub use json::{Json, Limits, Span, Value};

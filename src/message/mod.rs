//! JSON-RPC as a gateway in the middle must read it: strict towards clients, lossless towards both.
//!
//! A client's message is parsed once into a tree with byte spans ([`Json`]); an executor's message is only framed. Both
//! become a [`Message`], whose bytes are forwarded as they came, with the few spliced parts that must change.
//! What the gateway itself says is put together in [`compose`], and nowhere else.

pub mod compose;
pub mod json;
pub mod sse;

mod check;
mod envelope;
mod keys;
mod parse;
mod shallow;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;

pub use envelope::{Kind, Malformed, Message, id_key};
pub use json::{Json, Limits, Span, Value};
pub use keys::{fold, variant};
pub use shallow::{member, members, object};

//! Where clients come in: HTTP and standard input. Both eras of the protocol on either.
//!
//! A listener reads a message strictly, finds its session and hands it to the gate; it judges nothing.

#[cfg(test)]
mod ends;
mod era;
#[cfg(test)]
mod fixture;
pub mod http;
pub mod stdio;

use bytes::Bytes;
use tokio::sync::watch;

use crate::gate::LARGE;
use crate::message::{Limits, Malformed, Message};

/// Reads a client's message; a large one beside the threads that serve everyone.
async fn strict(bytes: Bytes, limits: Limits) -> Result<Message, Malformed> {
    if bytes.len() < LARGE {
        return Message::strict(bytes, limits);
    }
    let parsed = tokio::task::spawn_blocking(move || Message::strict(bytes, limits)).await;
    parsed.unwrap_or_else(|error| {
        tracing::error!(fault = "gateway", %error, "a parser died");
        Err(Malformed { code: -32603, id: "null".to_owned(), what: "the message could not be read".to_owned() })
    })
}

/// Waits until a listener shall close; that the sender is gone means the same.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

//! One client's conversation with one upstream.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::message::Message;

/// A legacy session, or one agent's stateless requests to one upstream.
pub struct Session {}

/// What a listener is to tell the client about one request. Dropping it means that the client is gone: a cancel or a
/// detachment, as the upstream's `on_disconnect` and the era say.
pub struct Exchange {
    /// In order; the last is [`ToClient::Done`].
    pub events: mpsc::Receiver<ToClient>,
}

/// One step of an exchange.
#[derive(Clone, Debug)]
pub enum ToClient {
    /// The call is held: send the headers now and keep the stream alive.
    Held,
    /// A message for the client before the answer (progress, log, a request from the server).
    Message(Bytes),
    /// The answer; nothing follows.
    Done(Reply),
}

/// A finished JSON-RPC answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The JSON text.
    pub bytes: Bytes,
    /// The HTTP status it travels under where nothing was sent yet: 200, or 400, 404, 503 as the protocol says.
    pub status: u16,
}

impl Session {
    /// The id the gateway issued; none for the stateless way.
    pub fn id(&self) -> Option<&str> {
        unimplemented!()
    }

    /// The protocol version that was agreed, for a legacy session.
    pub fn version(&self) -> Option<&str> {
        unimplemented!()
    }

    /// A request: judged, held, forwarded. Returns at once. `headers` are the `Mcp-Param-*` of a modern request.
    pub fn request(self: &Arc<Self>, message: Message, headers: Vec<(String, String)>) -> Exchange {
        let _ = (message, headers);
        unimplemented!()
    }

    /// A notification (`notifications/cancelled` stops the call it names).
    pub async fn notify(self: &Arc<Self>, message: Message) {
        let _ = message;
        unimplemented!()
    }

    /// The client's answer to a request of the server; `false` if there is no such request.
    pub async fn respond(self: &Arc<Self>, message: Message) -> bool {
        let _ = message;
        unimplemented!()
    }

    /// The stream for what belongs to no request (legacy GET, stdio). A second one takes the place of the first.
    pub fn listen(self: &Arc<Self>) -> mpsc::Receiver<Bytes> {
        unimplemented!()
    }

    /// The client ended it (DELETE), or its process is gone.
    pub async fn end(self: &Arc<Self>) {
        unimplemented!()
    }
}

//! What single upstreams say, as the client at the address of all hears it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::session::{Exchange, Reply, Session, ToClient};
use super::{Aggregate, names};
use crate::message::{Message, compose};
use crate::secret::TokenHash;

/// How many requests of the servers are remembered: beyond that, one's own make room for its next.
const ASKED: usize = 4_000;
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// One upstream's answer to a request, whatever it says before; none where no answer is owed.
pub async fn ask(session: &Arc<Session>, message: Message, credential: Option<TokenHash>) -> Option<Reply> {
    let mut exchange = session.request(message, None, credential);
    while let Some(event) = exchange.events.recv().await {
        if let ToClient::Done(reply) = event {
            return Some(reply);
        }
    }
    None
}

impl Aggregate {
    /// Passes on what one upstream says to a request. The client's going ends the exchange, as it would there.
    pub(super) async fn relay(&self, at: usize, mut exchange: Exchange, tx: &mpsc::Sender<ToClient>) {
        loop {
            let event = tokio::select! {
                event = exchange.events.recv() => event,
                () = tx.closed() => return,
            };
            let event = match event {
                Some(ToClient::Message(bytes)) => match self.heard(at, bytes) {
                    Some(bytes) => ToClient::Message(bytes),
                    None => continue,
                },
                Some(ToClient::Done(reply)) => ToClient::Done(self.linked(at, reply)),
                Some(ToClient::Held) => ToClient::Held,
                None => return,
            };
            let is_last = matches!(event, ToClient::Done(_));
            if tx.send(event).await.is_err() || is_last {
                return;
            }
        }
    }

    fn linked(&self, at: usize, reply: Reply) -> Reply {
        let Ok(message) = Message::framed(reply.bytes.clone()) else { return reply };
        let edits = names::links(self.upstream(at), &message);
        if edits.is_empty() { reply } else { Reply { bytes: message.spliced(&edits), ..reply } }
    }

    /// A message of one upstream as the client may hear it: requests under a number that is nobody else's.
    fn heard(&self, at: usize, bytes: Bytes) -> Option<Bytes> {
        let Ok(message) = Message::framed(bytes.clone()) else { return Some(bytes) };
        match (message.method(), message.id()) {
            ("notifications/cancelled", None) => {
                let (span, raw) = message.at(&["params", "requestId"])?;
                let number: u64 = raw.parse().ok()?;
                let ours = self.asked.iter().find(|asked| *asked.value() == (at, number)).map(|asked| *asked.key())?;
                self.asked.remove(&ours);
                Some(message.spliced(&[(span, ours.to_string())]))
            }
            ("notifications/resources/updated", None) => {
                let (span, _) = message.at(&["params", "uri"])?;
                let own = message.string_at(&["params", "uri"])?;
                Some(message.spliced(&[(span, Value::from(names::uri(self.upstream(at), &own)).to_string())]))
            }
            (_, Some(raw)) => {
                let number: u64 = raw.parse().ok()?;
                // Each upstream is bounded by itself; this is for what is left when a link ends.
                if self.asked.len() >= ASKED {
                    self.asked.retain(|_, (whose, _)| *whose != at);
                }
                let ours = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                self.asked.insert(ours, (at, number));
                Some(message.with_id(&ours.to_string()))
            }
            _ => Some(bytes),
        }
    }

    /// Passes on what one upstream says by itself, as long as the reader is there.
    pub(super) fn follow(self: &Arc<Self>, at: usize, session: &Arc<Session>, tx: mpsc::Sender<Bytes>) {
        let (mut messages, all) = (session.listen(), Arc::downgrade(self));
        tokio::spawn(async move {
            loop {
                let bytes = tokio::select! {
                    bytes = messages.recv() => bytes,
                    () = tx.closed() => return,
                };
                let (Some(bytes), Some(all)) = (bytes, all.upgrade()) else { return };
                if let Some(bytes) = all.heard(at, bytes)
                    && tx.send(bytes).await.is_err()
                {
                    return;
                }
            }
        });
    }

    /// `subscriptions/listen` (2026-07-28) at all upstreams: one acknowledgement, then what each of them tells.
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        message: &Message,
        headers: Option<Vec<(String, String)>>,
        credential: Option<TokenHash>,
        tx: &mpsc::Sender<ToClient>,
    ) {
        let id = message.id().unwrap_or("null");
        let wanted = message.at(&["params", "notifications"]).map_or("{}", |(_, raw)| raw);
        let meta =
            json!({ "io.modelcontextprotocol/subscriptionId": serde_json::from_str::<Value>(id).unwrap_or_default() });
        let params = format!("{{\"notifications\":{wanted},\"_meta\":{meta}}}");
        let _ = tx.send(ToClient::Message(compose::notification_raw(ACKNOWLEDGED, &params))).await;
        let streams = self.there().into_iter().filter_map(|(at, session)| {
            let message = self.wanted_of(at, message)?;
            let exchange = session.request(message, headers.clone(), credential);
            Some(self.tell(at, exchange, tx))
        });
        futures_util::future::join_all(streams).await;
        // Those without subscriptions have answered; the client's stream stays as long as it likes.
        tokio::select! {
            () = tx.closed() => {}
            () = self.gate.drained() => {
                let ended = compose::result(id, &json!({ "resultType": "complete", "_meta": meta }));
                let _ = tx.send(ToClient::Done(Reply { bytes: ended, status: 200 })).await;
            }
        }
    }

    /// The subscription as one upstream gets it: with its own resources.
    fn wanted_of(&self, at: usize, message: &Message) -> Option<Message> {
        let path = ["params", "notifications", "resourceSubscriptions"];
        let Some((span, raw)) = message.at(&path) else { return Some(message.clone()) };
        let uris: Vec<String> = serde_json::from_str(raw).ok()?;
        let own = uris.iter().filter_map(|uri| {
            let (upstream, own) = names::split_uri(uri)?;
            (upstream == self.upstream(at)).then_some(own)
        });
        let own: Vec<&str> = own.collect();
        let bytes = message.spliced(&[(span, json!(own).to_string())]);
        Message::again(&String::from_utf8_lossy(&bytes)).ok()
    }

    async fn tell(&self, at: usize, mut exchange: Exchange, tx: &mpsc::Sender<ToClient>) {
        loop {
            let event = tokio::select! {
                event = exchange.events.recv() => event,
                () = tx.closed() => return,
            };
            match event {
                Some(ToClient::Message(bytes)) => {
                    let is_own = Message::framed(bytes.clone()).is_ok_and(|message| message.method() == ACKNOWLEDGED);
                    if let Some(bytes) = self.heard(at, bytes).filter(|_| !is_own)
                        && tx.send(ToClient::Message(bytes)).await.is_err()
                    {
                        return;
                    }
                }
                Some(ToClient::Held) => {}
                Some(ToClient::Done(_)) | None => return,
            }
        }
    }
}

//! MCP over standard input and output: one JSON message a line.
//!
//! One process is one client: its legacy session, if it begins one, is the only one, and what it sends without `_meta`
//! belongs to it. Nothing but messages is written.

mod lines;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::{closed, era, strict};
use crate::gate::{CHANNEL, Exchange, Gate, Life, Reply, Session, ToClient};
use crate::message::{Kind, Limits, Message, compose};
use lines::{Line, Lines};

/// How long requests that are not held may still be answered after the end of the input (`echo … | portcullis stdio`).
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Serves one client until its input ends or its output is closed; then its session ends.
///
/// # Errors
/// The input cannot be read.
pub async fn serve<R, W>(gate: Arc<Gate>, agent: &str, upstream: &str, input: R, output: W) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let limits = Limits { max_bytes: gate.config().mcp.max_body, ..Limits::default() };
    let mut lines = Lines::new(input, limits.max_bytes);
    let (out, messages) = mpsc::channel(CHANNEL);
    let writer = tokio::spawn(lines::write(output, messages));
    let mut client = Client {
        gate,
        agent,
        upstream,
        out,
        session: None,
        stateless: None,
        tasks: JoinSet::new(),
        closing: watch::Sender::new(false),
    };
    let ended = loop {
        let line = tokio::select! {
            line = lines.next() => line,
            () = client.out.closed() => break Ok(()),
            Some(_) = client.tasks.join_next(), if !client.tasks.is_empty() => continue,
        };
        match line {
            Ok(Some(Line::Text(text))) if text.trim_ascii().is_empty() => {}
            Ok(Some(Line::Text(text))) => match strict(text, limits).await {
                Ok(message) => client.take(message).await,
                Err(malformed) => {
                    tracing::info!(fault = "client", "a line was refused: {malformed}");
                    client.say(malformed.reply()).await;
                }
            },
            Ok(Some(Line::TooLong)) => {
                let what = format!("the line is longer than the {} bytes allowed", limits.max_bytes);
                tracing::info!(fault = "client", "a line was refused: {what}");
                client.say(compose::error("null", -32600, &what, None)).await;
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    client.end().await;
    match writer.await {
        Ok(Err(error)) => tracing::debug!(fault = "client", %error, "the output was closed"),
        Ok(Ok(())) => {}
        Err(error) => tracing::error!(fault = "gateway", %error, "the writer of the output died"),
    }
    ended
}

struct Client<'a> {
    gate: Arc<Gate>,
    agent: &'a str,
    upstream: &'a str,
    out: mpsc::Sender<Bytes>,
    /// Once `initialize` has been answered.
    session: Option<Arc<Session>>,
    /// Once a modern request has come.
    stateless: Option<Arc<Session>>,
    tasks: JoinSet<()>,
    closing: watch::Sender<bool>,
}

impl Client<'_> {
    async fn take(&mut self, message: Message) {
        let taken = if era::is_modern(&message) { self.modern(message).await } else { self.legacy(message).await };
        if let Err(reply) = taken {
            tracing::info!(fault = "client", "a message was refused: {:?}", reply.bytes);
            self.say(reply.bytes).await;
        }
    }

    /// MCP 2026-07-28: each request on its own.
    async fn modern(&mut self, message: Message) -> Result<(), Reply> {
        era::supported(&message)?;
        era::capable(&message)?;
        let session = match &self.stateless {
            Some(session) => Arc::clone(session),
            None => {
                let session = self.gate.piped(self.agent, self.upstream).await?;
                let session = session.ok_or_else(|| era::misplaced(&message, "there is no such upstream"))?;
                Arc::clone(self.stateless.insert(session))
            }
        };
        match message.kind() {
            Kind::Request => self.answer(session.request(message, None, None)),
            Kind::Notification => session.notify(message).await,
            Kind::Response => {}
        }
        Ok(())
    }

    /// Up to MCP 2025-11-25, and a modern `notifications/cancelled`, which carries no version.
    async fn legacy(&mut self, message: Message) -> Result<(), Reply> {
        let initialize = message.kind() == Kind::Request && message.method() == "initialize";
        match (&self.session, message.kind()) {
            (Some(_), _) if initialize => Err(era::misplaced(&message, "this session is initialized already")),
            (None, _) if initialize => {
                self.initialize(message).await;
                Ok(())
            }
            (Some(session), Kind::Request) => {
                let exchange = session.request(message, None, None);
                self.answer(exchange);
                Ok(())
            }
            (None, Kind::Request) => {
                Err(era::misplaced(&message, "send `initialize` first, or the version in `_meta` (MCP 2026-07-28)"))
            }
            (session, Kind::Notification) => {
                match session.as_ref().or(self.stateless.as_ref()) {
                    Some(session) => session.notify(message).await,
                    None => tracing::debug!(fault = "client", "a notification before `initialize` was dropped"),
                }
                Ok(())
            }
            (session, Kind::Response) => {
                let taken = match session {
                    Some(session) => session.respond(message).await,
                    None => false,
                };
                if !taken {
                    tracing::info!(fault = "client", "an answer to no request was dropped");
                }
                Ok(())
            }
        }
    }

    async fn initialize(&mut self, message: Message) {
        let (session, reply) = match self.gate.initialize(self.agent, self.upstream, message, Life::Process).await {
            Ok(begun) => begun,
            Err(reply) => return self.say(reply.bytes).await,
        };
        self.say(reply.bytes).await;
        let (mut messages, out, mut closing) = (session.listen(), self.out.clone(), self.closing.subscribe());
        self.session = Some(session);
        self.tasks.spawn(async move {
            loop {
                let message = tokio::select! {
                    message = messages.recv() => message,
                    () = closed(&mut closing) => None,
                };
                let Some(message) = message else { return };
                if out.send(message).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Passes on what the gate says to one request.
    fn answer(&mut self, exchange: Exchange) {
        self.tasks.spawn(relay(exchange, self.out.clone(), self.closing.subscribe()));
    }

    async fn say(&self, bytes: Bytes) {
        // A closed output ends the loop.
        let _ = self.out.send(bytes).await;
    }

    /// The client is gone: held calls lose it at once, the others after a moment.
    async fn end(mut self) {
        self.closing.send_replace(true);
        let _ = tokio::time::timeout(LAST_WORDS, async { while self.tasks.join_next().await.is_some() {} }).await;
        self.tasks.shutdown().await;
        for session in self.session.into_iter().chain(self.stateless) {
            session.end().await;
        }
    }
}

async fn relay(mut exchange: Exchange, out: mpsc::Sender<Bytes>, mut closing: watch::Receiver<bool>) {
    let mut held = false;
    loop {
        let step = tokio::select! {
            step = exchange.events.recv() => step,
            () = closed(&mut closing), if held => None,
        };
        let (message, last) = match step {
            Some(ToClient::Held) => {
                held = true;
                continue;
            }
            Some(ToClient::Message(message)) => (message, false),
            Some(ToClient::Done(reply)) => (reply.bytes, true),
            None => return,
        };
        if out.send(message).await.is_err() || last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use super::*;
    use crate::listen::fixture::{Fixture, call, initialize, modern, request};

    /// A client at the other end of the pipes.
    struct Peer {
        fixture: Fixture,
        input: tokio::io::WriteHalf<tokio::io::SimplexStream>,
        output: tokio::io::Lines<BufReader<tokio::io::ReadHalf<tokio::io::SimplexStream>>>,
        served: tokio::task::JoinHandle<io::Result<()>>,
    }

    impl Peer {
        async fn start() -> Self {
            let fixture = Fixture::start("").await;
            let (input, write) = tokio::io::simplex(1 << 16);
            let (read, output) = tokio::io::simplex(1 << 16);
            let gate = Arc::clone(&fixture.gate);
            let served = tokio::spawn(async move { serve(gate, "local", "fake", input, output).await });
            Self { fixture, input: write, output: BufReader::new(read).lines(), served }
        }

        async fn say(&mut self, line: impl ToString) {
            self.input.write_all(format!("{}\n", line.to_string()).as_bytes()).await.unwrap();
        }

        async fn hear(&mut self) -> Value {
            let line = tokio::time::timeout(Duration::from_secs(10), self.output.next_line()).await.expect("a line");
            serde_json::from_str(&line.unwrap().unwrap()).unwrap()
        }
    }

    #[tokio::test]
    async fn a_legacy_client_calls_and_is_called() {
        let mut peer = Peer::start().await;
        peer.say(request(1, "tools/list", json!({}))).await;
        assert_eq!(peer.hear().await["error"]["code"], -32600);
        peer.say(initialize()).await;
        assert_eq!(peer.hear().await["result"]["serverInfo"]["name"], "fake");
        peer.say(initialize()).await;
        assert_eq!(peer.hear().await["error"]["code"], -32600);
        peer.say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(peer.hear().await["method"], "notifications/hello");
        peer.say("not json").await;
        assert_eq!(peer.hear().await["error"]["code"], -32700);
        peer.say("x".repeat(70_000)).await;
        assert_eq!(peer.hear().await["id"], Value::Null);
        peer.say(request(2, "tools/call", call("slow"))).await;
        peer.fixture.hears("slow").await;
        peer.say(request(3, "tools/call", call("chat"))).await;
        let asked = peer.hear().await;
        assert_eq!(asked["method"], "elicitation/create");
        peer.say(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})).await;
        assert_eq!(peer.hear().await["id"], 3, "the slow call keeps nobody waiting");
        peer.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})).await;
        peer.fixture.hears("stop").await;
        peer.input.shutdown().await.unwrap();
        peer.served.await.unwrap().unwrap();
        peer.fixture.hears("close").await;
    }

    #[tokio::test]
    async fn a_modern_client_needs_no_handshake() {
        let mut peer = Peer::start().await;
        peer.say(modern(1, "server/discover", json!({}))).await;
        assert_eq!(peer.hear().await["result"]["supportedVersions"][0], "2026-07-28");
        peer.say(modern(2, "tools/call", call("echo"))).await;
        assert_eq!(peer.hear().await["result"]["content"][0]["text"], "pong");
        let mut old = modern(3, "tools/call", call("echo"));
        old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2031-01-01");
        peer.say(old).await;
        assert_eq!(peer.hear().await["error"]["code"], -32022);
        peer.say(modern(4, "tools/call", call("slow"))).await;
        peer.fixture.hears("slow").await;
        peer.say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}})).await;
        peer.fixture.hears("stop").await;
    }

    #[tokio::test]
    async fn what_was_asked_before_the_end_of_the_input_is_answered() {
        let mut peer = Peer::start().await;
        peer.say(modern(1, "tools/call", call("echo"))).await;
        peer.input.shutdown().await.unwrap();
        peer.served.await.unwrap().unwrap();
        let line = peer.output.next_line().await.unwrap().unwrap();
        assert!(line.contains("pong"), "{line}");
    }

    #[tokio::test]
    async fn an_exchange_is_written_in_order_and_ends_with_its_answer() {
        let (tx, events) = mpsc::channel(8);
        let (out, mut written) = mpsc::channel(8);
        let (_close, closing) = watch::channel(false);
        for step in
            [ToClient::Held, ToClient::Message("1".into()), ToClient::Done(Reply { bytes: "2".into(), status: 400 })]
        {
            tx.send(step).await.unwrap();
        }
        relay(Exchange { events }, out, closing).await;
        assert_eq!(written.recv().await.unwrap(), "1");
        assert_eq!(written.recv().await.unwrap(), "2");
        assert!(tx.is_closed());
    }

    #[tokio::test]
    async fn at_the_end_of_the_input_a_held_call_is_left_at_once() {
        let (tx, events) = mpsc::channel(8);
        let (out, _written) = mpsc::channel(8);
        let (close, closing) = watch::channel(true);
        tx.send(ToClient::Held).await.unwrap();
        relay(Exchange { events }, out, closing).await;
        assert!(tx.is_closed());
        drop(close);
    }

    #[tokio::test]
    async fn at_the_end_of_the_input_another_call_may_still_be_answered() {
        let (tx, events) = mpsc::channel(8);
        let (out, mut written) = mpsc::channel(8);
        let (_close, closing) = watch::channel(true);
        let relayed = tokio::spawn(relay(Exchange { events }, out, closing));
        tx.send(ToClient::Message("1".into())).await.unwrap();
        assert_eq!(written.recv().await.unwrap(), "1");
        tx.send(ToClient::Done(Reply { bytes: "{}".into(), status: 200 })).await.unwrap();
        assert_eq!(written.recv().await.unwrap(), "{}");
        relayed.await.unwrap();
    }
}

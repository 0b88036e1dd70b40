//! Connections: accepted, bounded in time, ended gently.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::listen::closed;

/// How long a client may take for the headers of its next request, and be idle before it. Longer than clients keep
/// idle connections, so that none is closed under their hands.
const HEADERS: Duration = Duration::from_secs(30);

/// How long answers may go on after a shutdown was asked for.
const GRACE: Duration = Duration::from_secs(5);

/// How long to wait when no connection can be accepted (no file handles left).
const BREATH: Duration = Duration::from_millis(50);

/// What a handler knows of its connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    /// The client's address.
    pub peer: SocketAddr,
    /// Becomes true when the gateway shuts down.
    pub closing: watch::Receiver<bool>,
}

/// Serves until `closing` is true or its sender is gone, and what is being answered for [`GRACE`] longer.
pub(super) async fn serve(listener: TcpListener, router: Router, mut closing: watch::Receiver<bool>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    let connection = Connection { peer, closing: closing.clone() };
                    connections.spawn(one(stream, router.clone(), connection));
                }
                Err(error) => {
                    tracing::warn!(fault = "gateway", %error, "a connection could not be accepted");
                    tokio::time::sleep(BREATH).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = closed(&mut closing) => break,
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, ended).await.is_err() {
        tracing::info!(fault = "gateway", "streams that were still open are cut");
    }
    Ok(())
}

/// One connection. Hyper watches for its end also while nothing is being written, and drops the answer with it.
async fn one(stream: TcpStream, router: Router, connection: Connection) {
    // Only latency is lost without it.
    let _ = stream.set_nodelay(true);
    let mut closing = connection.closing.clone();
    let peer = connection.peer;
    let service = TowerToHyperService::new(router);
    let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
        request.extensions_mut().insert(connection.clone());
        service.call(request)
    });
    let mut served = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS)
            .serve_connection(TokioIo::new(stream), service)
    );
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = closed(&mut closing) => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(fault = "client", %peer, %error, "a connection ended in the middle");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use std::sync::{Arc, Mutex};

    use axum::body::Body;
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::mpsc;

    use super::super::{answer, body, headers};
    use super::*;
    use crate::gate::{Exchange, ToClient};

    const SOON: Duration = Duration::from_secs(3);

    /// A listener whose one request never ends, and what its gate would see of it.
    struct Stuck {
        address: SocketAddr,
        gate: mpsc::Sender<ToClient>,
        close: watch::Sender<bool>,
        served: tokio::task::JoinHandle<io::Result<()>>,
    }

    async fn stuck() -> Stuck {
        let (gate, events) = mpsc::channel(8);
        let events = Arc::new(Mutex::new(Some(events)));
        let held = move |headers: http::HeaderMap, request: Body| async move {
            if let Err(refused) = body::read(request, 100).await {
                return axum::response::IntoResponse::into_response(refused);
            }
            let events = events.lock().unwrap().take().unwrap();
            answer::exchange(Exchange { events }, headers::accept(&headers), answer::PACE).await
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (close, closing) = watch::channel(false);
        let served = tokio::spawn(serve(listener, Router::new().route("/", post(held)), closing));
        Stuck { address, gate, close, served }
    }

    async fn ask(stuck: &Stuck, accept: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(stuck.address).await.unwrap();
        let length = body.len();
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\naccept: {accept}\r\ncontent-length: {length}\r\n\r\n{body}");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    async fn read_until(stream: &mut TcpStream, wanted: &str) {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(wanted) {
            assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0, "{}", String::from_utf8_lossy(&seen));
        }
    }

    async fn gate_sees_it_gone(stuck: &Stuck) {
        tokio::time::timeout(SOON, stuck.gate.closed()).await.expect("the exchange is dropped");
    }

    #[tokio::test]
    async fn a_client_that_leaves_a_silent_stream_is_noticed_at_once() {
        let stuck = stuck().await;
        let mut client = ask(&stuck, "text/event-stream", "{}").await;
        stuck.gate.send(ToClient::Held).await.unwrap();
        read_until(&mut client, ": waiting").await;
        drop(client);
        gate_sees_it_gone(&stuck).await;
    }

    #[tokio::test]
    async fn a_client_that_leaves_before_the_first_byte_is_noticed_at_once() {
        for accept in ["text/event-stream", "application/json"] {
            let stuck = stuck().await;
            let client = ask(&stuck, accept, "{}").await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            assert!(!stuck.gate.is_closed());
            drop(client);
            gate_sees_it_gone(&stuck).await;
        }
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_answered_although_it_is_still_being_sent() {
        let stuck = stuck().await;
        let mut client = ask(&stuck, "application/json", &"x".repeat(100_000)).await;
        read_until(&mut client, "413 Payload Too Large").await;
    }

    #[tokio::test]
    async fn a_stuck_client_does_not_keep_others_or_the_gateway_waiting() {
        let stuck = stuck().await;
        let mut slow = TcpStream::connect(stuck.address).await.unwrap();
        slow.write_all(b"POST / HTTP/1.1\r\nhost").await.unwrap();
        let mut client = ask(&stuck, "text/event-stream", "{}").await;
        stuck.gate.send(ToClient::Held).await.unwrap();
        read_until(&mut client, ": waiting").await;
        let begun = tokio::time::Instant::now();
        stuck.close.send_replace(true);
        stuck.served.await.unwrap().unwrap();
        assert!(begun.elapsed() < GRACE + SOON);
        tokio::time::timeout(SOON, stuck.gate.closed()).await.expect("the stream is cut");
    }
}

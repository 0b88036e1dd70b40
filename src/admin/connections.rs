//! The connections of the admin side: bounded in number and time, the longest unused one making room for the next.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service as _;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::{AbortHandle, Id, JoinSet};

use super::closed;

/// Connections at a time, so that strangers cannot use up the open files.
const MOST: usize = 256;
/// How long a client may take over its request's head, and leave a connection unused.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// All that are open.
#[derive(Default)]
pub(super) struct Connections {
    tasks: JoinSet<()>,
    open: HashMap<Id, Open>,
}

struct Open {
    handle: AbortHandle,
    unused: Unused,
}

/// Since when a connection has had no request; none while it has one, its answer's body included.
#[derive(Clone)]
struct Unused(Arc<Mutex<Option<Instant>>>);

impl Connections {
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// When the next one has ended.
    pub async fn ended(&mut self) {
        let id = match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => id,
            Some(Err(error)) => error.id(),
            None => return,
        };
        self.open.remove(&id);
    }

    /// Serves one more. Where there are too many, the one that has been without a request for the longest is closed;
    /// where all have one, the newcomer is.
    pub fn add(&mut self, stream: TcpStream, service: &TowerToHyperService<Router>, closing: &watch::Receiver<bool>) {
        if self.open.len() >= MOST && !self.make_room() {
            tracing::warn!("a connection to the admin listener was refused: {MOST} are in use");
            return;
        }
        let unused = Unused(Arc::new(Mutex::new(Some(Instant::now()))));
        let handle = self.tasks.spawn(converse(stream, service.clone(), unused.clone(), closing.clone()));
        self.open.insert(handle.id(), Open { handle, unused });
    }

    fn make_room(&mut self) -> bool {
        let unused = self.open.iter().filter_map(|(id, open)| Some((open.unused.since()?, *id)));
        let Some((_, oldest)) = unused.min_by_key(|(since, _)| *since) else { return false };
        if let Some(open) = self.open.remove(&oldest) {
            open.handle.abort();
        }
        true
    }
}

impl Unused {
    fn since(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

/// A request in hand; dropped with the answer's body.
struct InHand(Unused);

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.set(Some(Instant::now()));
    }
}

/// Speaks HTTP/1.1 on one connection; after the shutdown signal it ends with the request in hand.
async fn converse(
    stream: TcpStream,
    service: TowerToHyperService<Router>,
    unused: Unused,
    mut closing: watch::Receiver<bool>,
) {
    let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
        unused.set(None);
        let in_hand = InHand(unused.clone());
        let answer = service.call(request);
        async move {
            let answer: Response = answer.await?;
            Ok::<_, std::convert::Infallible>(answer.map(|body| {
                Body::new(body.map_frame(move |frame| {
                    let _until_the_end = &in_hand;
                    frame
                }))
            }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = closed(&mut closing) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an admin connection broke off");
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn half_open_connections_make_room_for_who_asks() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = TowerToHyperService::new(Router::new().route("/", get(async || "here")));
        let (_close, closing) = watch::channel(false);
        tokio::spawn(async move {
            let mut open = Connections::default();
            loop {
                tokio::select! {
                    () = open.ended(), if !open.is_empty() => {}
                    accepted = listener.accept() => open.add(accepted.unwrap().0, &service, &closing),
                }
            }
        });
        let begun = Instant::now();
        let mut half_open = Vec::new();
        for _ in 0..MOST + 50 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET / HT").await.unwrap();
            half_open.push(stream);
        }
        let mut asks = TcpStream::connect(address).await.unwrap();
        asks.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        asks.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let mut end = Vec::new();
        assert_eq!(half_open[0].read_to_end(&mut end).await.unwrap_or_default(), 0, "the oldest was closed");
    }
}

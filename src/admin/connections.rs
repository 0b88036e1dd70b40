//! The connections of the admin side: bounded in number and time. One makes room for the next: the longest unused, else the
//! longest in use by somebody who has not proved to be an approver.

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
    usage: Usage,
}

/// What a connection is used for. A request finds it among its extensions.
#[derive(Clone)]
pub(super) struct Usage(Arc<Mutex<(Use, Instant)>>);

/// Ordered by who goes first where there is no room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// No request.
    None,
    /// A request, its answer's body included, of whoever.
    Stranger,
    /// A request of an approver.
    Approver,
}

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

    /// Serves one more. Where there are too many, the one that has been without a request for the longest is closed, or
    /// has had one of a stranger for the longest; where approvers use them all, the newcomer is.
    pub fn add(&mut self, stream: TcpStream, service: &TowerToHyperService<Router>, closing: &watch::Receiver<bool>) {
        if self.open.len() >= MOST && !self.make_room() {
            tracing::warn!("a connection to the admin listener was refused: {MOST} are in use");
            return;
        }
        let usage = Usage(Arc::new(Mutex::new((Use::None, Instant::now()))));
        let handle = self.tasks.spawn(converse(stream, service.clone(), usage.clone(), closing.clone()));
        self.open.insert(handle.id(), Open { handle, usage });
    }

    fn make_room(&mut self) -> bool {
        let all = self.open.iter().map(|(id, open)| (open.usage.get(), *id));
        let first = all.filter(|((used, _), _)| *used != Use::Approver).min_by_key(|(usage, _)| *usage);
        let Some((_, first)) = first else { return false };
        if let Some(open) = self.open.remove(&first) {
            open.handle.abort();
        }
        true
    }
}

impl Usage {
    fn get(&self) -> (Use, Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, used: Use) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = (used, Instant::now());
    }

    /// The request in hand is an approver's.
    pub fn is_an_approvers(&self) {
        self.set(Use::Approver);
    }
}

/// A request in hand; dropped with the answer's body.
struct InHand(Usage);

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.set(Use::None);
    }
}

/// Speaks HTTP/1.1 on one connection; after the shutdown signal it ends with the request in hand.
async fn converse(
    stream: TcpStream,
    service: TowerToHyperService<Router>,
    usage: Usage,
    mut closing: watch::Receiver<bool>,
) {
    let service = hyper::service::service_fn(move |mut request: http::Request<Incoming>| {
        usage.set(Use::Stranger);
        request.extensions_mut().insert(usage.clone());
        let in_hand = InHand(usage.clone());
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
    use axum::Extension;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    /// Serves `router` on a free port.
    async fn served(router: Router) -> (std::net::SocketAddr, watch::Sender<bool>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let service = TowerToHyperService::new(router);
        let (close, closing) = watch::channel(false);
        tokio::spawn(async move {
            let mut open = Connections::default();
            loop {
                tokio::select! {
                    () = open.ended(), if !open.is_empty() => {}
                    accepted = listener.accept() => open.add(accepted.unwrap().0, &service, &closing),
                }
            }
        });
        (address, close)
    }

    #[tokio::test]
    async fn strangers_in_use_make_room_and_approvers_do_not() {
        let (tell, mut told) = tokio::sync::mpsc::channel::<()>(1);
        let approver = async move |Extension(usage): Extension<Usage>| {
            usage.is_an_approvers();
            tell.send(()).await.unwrap();
            std::future::pending::<()>().await;
        };
        let stranger = async || std::future::pending::<()>().await;
        let router =
            Router::new().route("/", get(async || "here")).route("/a", get(approver)).route("/s", get(stranger));
        let (address, _close) = served(router).await;
        let ask = async |path: &str| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            stream
        };
        let mut known = ask("/a").await;
        told.recv().await.unwrap();
        let mut strangers = Vec::new();
        for _ in 0..MOST + 50 {
            strangers.push(ask("/s").await);
        }
        let mut answer = String::new();
        ask("/").await.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here"), "{answer}");
        assert_eq!(strangers[0].read(&mut [0; 9]).await.unwrap_or_default(), 0, "the first stranger was closed");
        let still = tokio::time::timeout(Duration::from_millis(50), known.read(&mut [0; 9])).await;
        assert!(still.is_err(), "the approver was closed: {still:?}");
    }

    #[tokio::test]
    async fn half_open_connections_make_room_for_who_asks() {
        let (address, _close) = served(Router::new().route("/", get(async || "here"))).await;
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

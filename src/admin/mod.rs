//! The side of the people who decide: the API, the inbox page that uses it, and the login between them.
//!
//! It has a listener of its own. Nothing here judges or forwards; every decision goes through [`Gate::vote`].

mod api;
mod auth;
mod first;
mod guard;
mod inbox;
mod login;
mod problem;
#[cfg(test)]
pub(crate) mod tests;

pub use first::{First, TOKEN_FILE, ensure_first_approver};
pub use login::login_link;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::gate::Gate;

/// Connections at a time; more wait in the kernel's queue, so that strangers cannot use up the open files.
const CONNECTIONS: usize = 256;
/// How long a client may take over its request's head, and leave a connection unused.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long open requests may go on after the shutdown signal.
const DRAIN: Duration = Duration::from_secs(5);

/// What every handler shares.
pub struct Admin {
    gate: Arc<Gate>,
    clock: Clock,
    bound: SocketAddr,
    closing: watch::Receiver<bool>,
}

/// The admin side as a router, for one bound address.
///
/// `closing` ends the event streams when it turns true (or its sender goes away).
pub fn router(gate: Arc<Gate>, clock: Clock, bound: SocketAddr, closing: watch::Receiver<bool>) -> Router {
    let admin = Arc::new(Admin { gate, clock, bound, closing });
    Router::new()
        .merge(inbox::routes())
        .merge(api::routes())
        .fallback(problem::not_found)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .layer(middleware::from_fn_with_state(Arc::clone(&admin), guard::guard))
        .with_state(admin)
}

/// Serves the admin side until `shutdown` completes, then lets open requests end.
///
/// # Errors
/// The listener has no address.
pub async fn serve(
    listener: TcpListener,
    gate: Arc<Gate>,
    clock: Clock,
    shutdown: impl Future<Output = ()>,
) -> std::io::Result<()> {
    let (close, closing) = watch::channel(false);
    let service = TowerToHyperService::new(router(gate, clock, listener.local_addr()?, closing.clone()));
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut open = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(_) = open.join_next(), if !open.is_empty() => {}
            accepted = accept(&listener, &slots) => match accepted {
                Ok((stream, slot)) => {
                    open.spawn(converse(stream, slot, service.clone(), closing.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "the admin listener could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    let _ = close.send(true);
    let drained = async { while open.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::info!("admin requests were cut off by the shutdown");
    }
    Ok(())
}

/// The next connection, once there is room for it.
async fn accept(listener: &TcpListener, slots: &Arc<Semaphore>) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, slot))
}

/// Speaks HTTP/1.1 on one connection; after the shutdown signal it ends with the request in hand.
async fn converse(
    stream: TcpStream,
    _slot: OwnedSemaphorePermit,
    service: TowerToHyperService<Router>,
    mut closing: watch::Receiver<bool>,
) {
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

/// Completes when the side is to close.
async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it whoever serves.
    let _ = closing.wait_for(|closing| *closing).await;
}

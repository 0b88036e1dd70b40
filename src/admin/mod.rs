//! The side of the people who decide: the API, the inbox page that uses it, and the login between them.
//!
//! It has a listener of its own. Nothing here judges or forwards; every decision goes through [`Gate::vote`].

mod api;
mod auth;
mod connections;
mod first;
mod guard;
mod inbox;
mod login;
mod problem;
#[cfg(test)]
pub(crate) mod tests;

pub use first::{First, TOKEN_FILE, ensure_first_approver, stand_in};
pub use login::login_link;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::gate::Gate;
use connections::Connections;

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
    let mut open = Connections::default();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            () = open.ended(), if !open.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => open.add(stream, &service, &closing),
                Err(error) => {
                    tracing::warn!(%error, "the admin listener could not accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    let _ = close.send(true);
    let drained = async {
        while !open.is_empty() {
            open.ended().await;
        }
    };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::info!("admin requests were cut off by the shutdown");
    }
    Ok(())
}

/// Completes when the side is to close.
async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, and with it whoever serves.
    let _ = closing.wait_for(|closing| *closing).await;
}

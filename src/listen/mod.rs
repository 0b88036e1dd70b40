//! Where clients come in: HTTP and standard input. Both eras of the protocol on either.
//!
//! A listener reads a message strictly, finds its session and hands it to the gate; it judges nothing.

mod era;
pub mod http;
pub mod stdio;

use tokio::sync::watch;

/// Waits until a listener shall close; that the sender is gone means the same.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

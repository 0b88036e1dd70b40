//! One upstream behind the address of all: started when it is first needed, left out while it is down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::watch;

use super::super::session::Session;

/// How long one that did not start is left alone.
const AGAIN: Duration = Duration::from_secs(10);

/// Where it stands.
#[derive(Clone, Debug, Default)]
pub enum Standing {
    /// Nobody needed it yet.
    #[default]
    Idle,
    /// It shakes hands.
    Starting,
    /// Its session and how it answered the handshake.
    Up(Up),
    /// It could not be started, then.
    Down(Instant),
}

/// One that is there.
#[derive(Clone)]
pub struct Up {
    /// The agent's conversation with it.
    pub session: Arc<Session>,
    /// Its answer to the handshake; null for a session that was restored.
    pub hello: Arc<Value>,
}

impl std::fmt::Debug for Up {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Up")
    }
}

/// One upstream.
pub struct Child {
    /// Its id.
    pub upstream: String,
    standing: watch::Sender<Standing>,
}

impl Child {
    /// One that nobody needed yet, or one that is there.
    pub fn new(upstream: &str, up: Option<Up>) -> Self {
        let standing = watch::Sender::new(up.map_or(Standing::Idle, Standing::Up));
        Self { upstream: upstream.to_owned(), standing }
    }

    /// Whether the caller is to start it now.
    pub fn is_to_start(&self) -> bool {
        self.standing.send_if_modified(|standing| {
            let due = match standing {
                Standing::Idle => true,
                Standing::Down(at) => at.elapsed() >= AGAIN,
                Standing::Starting | Standing::Up(_) => false,
            };
            if due {
                *standing = Standing::Starting;
            }
            due
        })
    }

    /// How the start went.
    pub fn started(&self, up: Option<Up>) {
        self.standing.send_replace(up.map_or_else(|| Standing::Down(Instant::now()), Standing::Up));
    }

    /// It, if it is there now.
    pub fn up(&self) -> Option<Up> {
        match &*self.standing.borrow() {
            Standing::Up(up) => Some(up.clone()),
            _ => None,
        }
    }

    /// It, once it is there, for so long.
    pub async fn within(&self, patience: Duration) -> Option<Up> {
        let mut standing = self.standing.subscribe();
        let settled = standing.wait_for(|standing| !matches!(standing, Standing::Idle | Standing::Starting));
        // The sender lives as long as this.
        let _ = tokio::time::timeout(patience, settled).await;
        self.up()
    }
}

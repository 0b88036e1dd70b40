//! An executor that speaks Streamable HTTP (MCP, "Transports"), in both eras.
//!
//! All links of an upstream share one pool of kept connections. Only the configured headers travel to it, never an
//! agent's credential, and no redirect is followed, since those headers would travel along.

mod endpoint;
mod headers;
mod link;
mod listening;
mod reply;
mod stream;

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::place::{digest, place};
use crate::gate::{Link, Opening, Place, Upstream, UpstreamError};
use crate::secret::Secret;
use endpoint::Endpoint;
use link::HttpLink;

/// An executor behind a URL.
#[derive(Debug)]
pub struct HttpUpstream {
    id: String,
    endpoint: Result<Arc<Endpoint>, UpstreamError>,
    place: Place,
}

impl HttpUpstream {
    /// An upstream at `url`, sent `headers` with each request. What is wrong with them is told when a link is opened.
    pub fn new(id: &str, url: &str, headers: &[(String, Secret)]) -> Self {
        let sent = headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.expose().as_bytes()]);
        let as_whom = digest(sent);
        let shown = url.split(['?', '@']).next().unwrap_or_default();
        let shown = format!("{shown}, headers {}", as_whom.get(..8).unwrap_or_default());
        let place = place("http", [url.as_bytes(), as_whom.as_bytes()], &shown, false);
        Self { id: id.to_owned(), endpoint: Endpoint::new(id, url, headers).map(Arc::new), place }
    }
}

impl Upstream for HttpUpstream {
    fn id(&self) -> &str {
        &self.id
    }

    fn place(&self) -> Place {
        self.place.clone()
    }

    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<Arc<dyn Link>, UpstreamError>> {
        Box::pin(async move {
            let endpoint = Arc::clone(self.endpoint.as_ref().map_err(Clone::clone)?);
            Ok(Arc::new(HttpLink::open(endpoint, opening)) as Arc<dyn Link>)
        })
    }

    fn is_up(&self) -> bool {
        self.endpoint.as_ref().is_ok_and(|endpoint| endpoint.is_up())
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        // Links end their own sessions; the kept connections close with the pool.
        Box::pin(std::future::ready(()))
    }
}

#[cfg(test)]
mod tests;

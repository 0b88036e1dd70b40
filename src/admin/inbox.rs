//! The inbox page, embedded. It uses the public API and nothing else; there is nothing secret in it.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use http::header::{self, HeaderName};

use super::Admin;

/// Path, media type and text of each file.
const FILES: [(&str, &str, &str); 14] = [
    ("/", "text/html; charset=utf-8", include_str!("inbox/index.html")),
    ("/inbox.css", "text/css; charset=utf-8", include_str!("inbox/inbox.css")),
    ("/favicon.svg", "image/svg+xml", include_str!("inbox/favicon.svg")),
    ("/inbox.js", SCRIPT, include_str!("inbox/inbox.js")),
    ("/actions.js", SCRIPT, include_str!("inbox/actions.js")),
    ("/api.js", SCRIPT, include_str!("inbox/api.js")),
    ("/card.js", SCRIPT, include_str!("inbox/card.js")),
    ("/deck.js", SCRIPT, include_str!("inbox/deck.js")),
    ("/keys.js", SCRIPT, include_str!("inbox/keys.js")),
    ("/pages.js", SCRIPT, include_str!("inbox/pages.js")),
    ("/recent.js", SCRIPT, include_str!("inbox/recent.js")),
    ("/show.js", SCRIPT, include_str!("inbox/show.js")),
    ("/time.js", SCRIPT, include_str!("inbox/time.js")),
    ("/tools.js", SCRIPT, include_str!("inbox/tools.js")),
];

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A route for each file.
pub fn routes() -> Router<Arc<Admin>> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        let answer: ([(HeaderName, &str); 1], &str) = ([(header::CONTENT_TYPE, kind)], text);
        router.route(path, get(async move || answer))
    })
}

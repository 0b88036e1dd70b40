//! The API under `/api/v1`, and what probes and Prometheus read.

mod agents;
mod approvals;
mod attend;
mod calls;
mod events;
mod grants;
mod health;
mod policy;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::routing::{MethodRouter, delete, get, post};
use http::header::{self, HeaderName};
use http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::auth::Who;
use super::problem::Problem;
use super::{Admin, login};
use crate::clock::Timestamp;

/// Bytes of a request body.
pub const MAX_BODY: usize = 1 << 20;
/// How long a client may take over a request body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Items of one page, unless asked otherwise, and at most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 200;
/// Bytes of a search.
const MAX_SEARCH: usize = 200;

/// All of the API's routes.
pub fn routes() -> Router<Arc<Admin>> {
    table().into_iter().fold(Router::new(), |router, (_, path, handler)| router.route(path, handler))
}

/// Method, path and handler of each route; the OpenAPI document lists the same.
fn table() -> Vec<(&'static str, &'static str, MethodRouter<Arc<Admin>>)> {
    vec![
        ("get", "/api/v1/approvals", get(approvals::list)),
        ("get", "/api/v1/approvals/{id}", get(approvals::show)),
        ("post", "/api/v1/approvals/{id}/approve", post(approvals::approve)),
        ("post", "/api/v1/approvals/{id}/reject", post(approvals::reject)),
        ("get", "/api/v1/approvals/{id}/diff", get(approvals::diff)),
        ("post", "/api/v1/approvals/{id}/claim", post(attend::claim)),
        ("post", "/api/v1/approvals/{id}/extend", post(attend::extend)),
        ("post", "/api/v1/approvals/{id}/reveal", post(attend::reveal)),
        ("post", "/api/v1/approvals/decide", post(attend::several)),
        ("get", "/api/v1/calls", get(calls::list)),
        ("get", "/api/v1/calls/{id}", get(calls::show)),
        ("post", "/api/v1/calls/{id}/cancel", post(calls::cancel)),
        ("get", "/api/v1/agents", get(agents::list)),
        ("post", "/api/v1/agents/{name}/pause", post(agents::pause)),
        ("post", "/api/v1/agents/{name}/resume", post(agents::resume)),
        ("post", "/api/v1/agents/{name}/cancel", post(agents::cancel)),
        ("post", "/api/v1/sessions/{id}/cancel", post(agents::cancel_session)),
        ("get", "/api/v1/grants", get(grants::list)),
        ("delete", "/api/v1/grants/{id}", delete(grants::revoke)),
        ("get", "/api/v1/tools", get(tools::list)),
        ("post", "/api/v1/tools/refresh", post(tools::refresh)),
        ("get", "/api/v1/tools/definition", get(tools::definition)),
        ("post", "/api/v1/tools/accept", post(tools::accept_named)),
        ("get", "/api/v1/tools/{upstream}/{name}", get(tools::show)),
        ("post", "/api/v1/tools/{upstream}/{name}/accept", post(tools::accept)),
        ("get", "/api/v1/policy", get(policy::show)),
        ("post", "/api/v1/policy/explain", post(policy::explain)),
        ("post", "/api/v1/policy/reload", post(policy::reload)),
        ("get", "/api/v1/events", get(events::events)),
        ("get", "/api/v1/me", get(login::me)),
        ("post", "/api/v1/login", post(login::login)),
        ("post", "/api/v1/logout", post(login::logout)),
        ("get", "/api/v1/openapi.json", get(openapi)),
        ("get", "/metrics", get(health::metrics)),
        ("get", "/healthz", get(health::healthz)),
        ("get", "/readyz", get(health::readyz)),
    ]
}

const OPENAPI: &str = include_str!("openapi.json");

async fn openapi() -> ([(HeaderName, &'static str); 1], &'static str) {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI)
}

/// What every list takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery<S> {
    state: Option<S>,
    agent: Option<String>,
    upstream: Option<String>,
    group: Option<String>,
    session: Option<String>,
    /// Words that stand in what the list shows.
    q: Option<String>,
    since: Option<Timestamp>,
    #[serde(default = "page")]
    limit: usize,
    cursor: Option<String>,
}

const fn page() -> usize {
    PAGE
}

impl<S> ListQuery<S> {
    fn limit(&self) -> Result<usize, Problem> {
        if (1..=MAX_PAGE).contains(&self.limit) {
            return Ok(self.limit);
        }
        Err(Problem::bad_request(format!("`limit` is from 1 to {MAX_PAGE}")))
    }

    /// The groups whose calls are wanted, of those that the reader covers; none for all.
    fn groups(&self, who: &Who) -> Option<Vec<String>> {
        match (&self.group, who.approver.covers(self.group.as_deref().unwrap_or_default())) {
            (None, _) => who.groups(),
            (Some(group), true) => Some(vec![group.clone()]),
            (Some(_), false) => Some(Vec::new()),
        }
    }

    /// The words of a search, few and short.
    fn words(&self) -> Result<Vec<String>, Problem> {
        let text = self.q.as_deref().unwrap_or_default();
        if text.len() > MAX_SEARCH {
            return Err(Problem::bad_request(format!("`q` is longer than {MAX_SEARCH} bytes")));
        }
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }
}

/// One page of a list.
#[derive(Serialize)]
struct Page<T> {
    items: Vec<T>,
    /// The cursor of the next page, if there is one.
    next: Option<String>,
}

/// The query string, strictly.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let Query(params) =
            Query::try_from_uri(&parts.uri).map_err(|error| Problem::bad_request(error.body_text().to_lowercase()))?;
        Ok(Self(params))
    }
}

/// A JSON body, strictly; an empty one counts as `{}`.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let bytes = read_body(request).await?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let body = serde_json::from_slice(text)
            .map_err(|error| Problem::bad_request(format!("the body is not what it has to be: {error}")))?;
        Ok(Self(body))
    }
}

/// The bytes of a JSON body, at most [`MAX_BODY`], in bounded time.
async fn read_body(request: Request) -> Result<Bytes, Problem> {
    let (parts, body) = request.into_parts();
    let reading = Limited::new(body, MAX_BODY).collect();
    let bytes = match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Err(_) => return Err(Problem::too_slow()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(Problem::too_large(MAX_BODY)),
        Ok(Err(_)) => return Err(Problem::bad_request("the body broke off")),
        Ok(Ok(body)) => body.to_bytes(),
    };
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if bytes.is_empty() || kind.eq_ignore_ascii_case("application/json") { Ok(bytes) } else { Err(Problem::not_json()) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_document_lists_the_routes_and_nothing_else() {
        let document: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let documented: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, methods)| {
                methods.as_object().unwrap().keys().map(|method| (method.clone(), path.clone()))
            })
            .collect();
        let routed: BTreeSet<_> =
            table().into_iter().map(|(method, path, _)| (method.to_owned(), path.to_owned())).collect();
        assert_eq!(documented, routed);
        // The page names each, by its path or by its last word.
        let page = include_str!("../../../docs/api.md");
        for (_, path) in routed {
            let Some(path) = path.strip_prefix("/api/v1/") else { continue };
            let named = path.split("/{").next().unwrap();
            let last = path.rsplit('/').find(|part| !part.starts_with('{')).unwrap();
            assert!(page.contains(named) && page.contains(last), "{path} is not in docs/api.md");
        }
    }

    #[test]
    fn every_reference_of_the_document_leads_somewhere() {
        let document: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let mut found = 0;
        for (at, _) in OPENAPI.match_indices("\"$ref\": \"#") {
            let pointer = OPENAPI[at..].split('"').nth(3).unwrap().trim_start_matches('#');
            assert!(document.pointer(pointer).is_some(), "{pointer}");
            found += 1;
        }
        assert!(found > 10);
    }

    #[test]
    fn the_document_knows_every_field_of_the_shapes() {
        let document: serde_json::Value = serde_json::from_str(OPENAPI).unwrap();
        let example: crate::record::ApprovalView = serde_json::from_str(include_str!("approval.example.json")).unwrap();
        let example = serde_json::to_value(example).unwrap();
        for (shape, object) in [("Approval", &example), ("Call", &example["call"])] {
            let documented: BTreeSet<_> =
                document["components"]["schemas"][shape]["properties"].as_object().unwrap().keys().collect();
            let written: BTreeSet<_> = object.as_object().unwrap().keys().collect();
            assert_eq!(documented, written, "{shape}");
        }
    }

    #[test]
    fn a_list_takes_known_words_only() {
        let read = |uri: &'static str| {
            Query::<ListQuery<crate::record::ApprovalState>>::try_from_uri(&http::Uri::from_static(uri)).is_ok()
        };
        assert!(read("/?state=waiting&since=2026-11-30T00:00:00Z&limit=5&agent=a&upstream=u&cursor=c"));
        for bad in ["/?stat=waiting", "/?state=wait", "/?limit=-1", "/?since=yesterday"] {
            assert!(!read(bad), "{bad}");
        }
    }
}

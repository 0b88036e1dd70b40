//! What probes and Prometheus read: no names of people, no arguments, so that loopback needs no credential.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use serde_json::json;

use super::super::Admin;
use super::super::problem::Problem;

/// `GET /metrics`: open on loopback, where Prometheus scrapes it; elsewhere any approver's token.
pub async fn metrics(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> Result<Response, Problem> {
    if !admin.bound.ip().is_loopback() {
        admin.authenticate(&headers).await?;
    }
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    Ok((kind, admin.gate.metrics().render()).into_response())
}

/// `GET /healthz`: the process answers.
pub async fn healthz() -> Response {
    Json(json!({"status": "ok"})).into_response()
}

/// `GET /readyz`: calls can be forwarded, or why not.
pub async fn readyz(State(admin): State<Arc<Admin>>) -> Response {
    match admin.gate.ready().await {
        Ok(()) => Json(json!({"status": "ready", "reasons": []})).into_response(),
        Err(reasons) => {
            let body = json!({"status": "not ready", "reasons": reasons});
            (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
        }
    }
}

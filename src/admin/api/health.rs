//! What probes and Prometheus read: no names of people, no arguments, so that loopback needs no credential.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::Admin;
use super::super::problem::Problem;
use super::describe::{Gives, Operation};

/// The text exposition format of Prometheus.
pub struct Exposition(String);

impl Exposition {
    const KIND: &'static str = "text/plain; version=0.0.4; charset=utf-8";
}

impl IntoResponse for Exposition {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, Self::KIND)], self.0).into_response()
    }
}

impl Gives for Exposition {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_text(StatusCode::OK, "text/plain");
    }
}

/// `GET /metrics`: open on loopback, where Prometheus scrapes it; elsewhere any approver's token.
pub async fn metrics(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> Result<Exposition, Problem> {
    if !admin.bound.ip().is_loopback() {
        admin.authenticate(&headers).await?;
    }
    Ok(Exposition(admin.gate.metrics().render()))
}

/// A sign of life.
#[derive(Serialize, JsonSchema)]
pub struct Health {
    /// `ok`.
    status: &'static str,
}

/// `GET /healthz`: the process answers.
pub async fn healthz() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether calls can be forwarded.
#[derive(Serialize, JsonSchema)]
pub struct Readiness {
    /// `ready` or `not ready`.
    status: &'static str,
    /// Why not.
    reasons: Vec<String>,
}

impl IntoResponse for Readiness {
    fn into_response(self) -> Response {
        let status = if self.reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        (status, Json(self)).into_response()
    }
}

impl Gives for Readiness {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives::<Self>(StatusCode::OK);
        operation.gives::<Self>(StatusCode::SERVICE_UNAVAILABLE);
    }
}

/// `GET /readyz`: calls can be forwarded, or why not.
pub async fn readyz(State(admin): State<Arc<Admin>>) -> Readiness {
    match admin.gate.ready().await {
        Ok(()) => Readiness { status: "ready", reasons: Vec::new() },
        Err(reasons) => Readiness { status: "not ready", reasons },
    }
}

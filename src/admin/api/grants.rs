//! Grants: seen, and ended.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use super::take::{Page, Path, is_id};
use crate::record::GrantRecord;

/// `GET grants`, newest first, those of the last week that have ended too.
pub async fn list(State(admin): State<Arc<Admin>>, who: Who) -> Result<Json<Page<GrantRecord>>, Problem> {
    let mut items = admin.gate.grants().await?;
    items.retain(|grant| who.approver.covers(&grant.group));
    Ok(Json(Page { items, next: None }))
}

/// `DELETE grants/{id}`: no call uses it after this is answered. For operators, and for those who made it.
pub async fn revoke(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
) -> Result<Json<GrantRecord>, Problem> {
    is_id(&id, "gr_", "grants")?;
    let grant = admin.gate.grant(&id).await?;
    if !who.approver.covers(&grant.group) {
        return Err(Problem::not_found());
    }
    if !grant.by.iter().any(|by| by == who.name()) {
        who.require(Role::Operator)?;
    }
    Ok(Json(admin.gate.revoke(&id, who.name()).await?))
}

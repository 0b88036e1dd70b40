//! Calls, held and not held.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use super::take::{ListQuery, Page, Params, Path, is_id};
use crate::gate::{CallFilter, Cursor};
use crate::record::{CallRecord, CallState, word};

/// `GET calls`, newest first.
pub async fn list(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Params(query): Params<ListQuery<CallState>>,
) -> Result<Json<Page<CallRecord>>, Problem> {
    let (limit, groups, words) = (query.limit()?, query.groups(&who), query.words()?);
    let cursor = query.cursor.as_deref().map(|text| Cursor::parse(text).ok_or_else(Problem::no_cursor)).transpose()?;
    let filter = CallFilter {
        state: query.state.map(word),
        agent: query.agent,
        upstream: query.upstream,
        since: query.since,
        groups,
        session: query.session,
        words,
        limit,
        cursor,
    };
    let (items, next) = admin.gate.calls(filter).await?;
    Ok(Json(Page { items, next }))
}

/// `GET calls/{id}`.
pub async fn show(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
) -> Result<Json<CallRecord>, Problem> {
    Ok(Json(visible(&admin, &who, &id).await?))
}

/// `POST calls/{id}/cancel`: withdraws a waiting call, stops a running one.
pub async fn cancel(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
) -> Result<Json<CallRecord>, Problem> {
    let call = visible(&admin, &who, &id).await?;
    who.require(Role::Operator)?;
    Ok(Json(admin.gate.cancel(&call.id, who.name()).await?))
}

/// The call by its own id, if this approver covers its group.
async fn visible(admin: &Admin, who: &Who, id: &str) -> Result<CallRecord, Problem> {
    is_id(id, "call_", "calls")?;
    let call = admin.gate.call(id).await?;
    who.see(&call)?;
    if call.id == id { Ok(call) } else { Err(Problem::not_found()) }
}

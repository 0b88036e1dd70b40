//! Tools that upstreams offered, and accepting them.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use super::{Body, MAX_PAGE, PAGE, Page, Params};
use crate::gate::{NotAccepted, ToolFilter};
use crate::record::{ToolDetail, ToolRecord, ToolState};

/// Which tools to list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolQuery {
    upstream: Option<String>,
    state: Option<ToolState>,
    /// Only this group's verdicts.
    group: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// `GET tools`, by upstream and name.
pub async fn list(
    State(admin): State<Arc<Admin>>,
    _: Who,
    Params(query): Params<ToolQuery>,
) -> Result<Json<Page<ToolRecord>>, Problem> {
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is from 1 to {MAX_PAGE}")));
    }
    if let Some(group) = &query.group
        && !admin.gate.policy().policy.groups().any(|known| known == group)
    {
        return Err(Problem::bad_request(format!("there is no group `{group}` in the policy")));
    }
    let filter = ToolFilter { upstream: query.upstream, state: query.state, limit, cursor: query.cursor };
    let (mut items, next) = admin.gate.tools(filter).await?;
    if let Some(group) = query.group {
        items.iter_mut().for_each(|tool| tool.verdicts.retain(|name, _| *name == group));
    }
    Ok(Json(Page { items, next }))
}

/// `GET tools/{upstream}/{name}`, with its definition and what changed in it.
pub async fn show(
    State(admin): State<Arc<Admin>>,
    _: Who,
    Path((upstream, name)): Path<(String, String)>,
) -> Result<Json<ToolDetail>, Problem> {
    Ok(Json(admin.gate.tool(&upstream, &name).await?))
}

/// The body of an acceptance.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    digest: String,
}

/// `POST tools/{upstream}/{name}/accept`: of the definition that was shown, and no other.
pub async fn accept(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path((upstream, name)): Path<(String, String)>,
    Body(body): Body<Accept>,
) -> Result<Json<ToolDetail>, Problem> {
    who.require(Role::Operator)?;
    match admin.gate.accept_tool(&upstream, &name, &body.digest, who.name(), who.channel).await {
        Ok(tool) => Ok(Json(tool)),
        Err(NotAccepted::Unknown) => Err(Problem::not_found()),
        Err(NotAccepted::AnotherDigest) => Err(Problem::another_definition()),
        Err(NotAccepted::Store(error)) => Err(error.into()),
    }
}

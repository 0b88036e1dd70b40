//! Tools that upstreams offered, and accepting them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use super::take::{self, Body, PAGE, Page, Params, Path};
use crate::gate::{NotAccepted, ToolFilter};
use crate::record::{ToolDetail, ToolRecord, ToolState};

/// Which tools to list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolQuery {
    /// Only of this upstream.
    upstream: Option<String>,
    /// Only in this state.
    state: Option<ToolState>,
    /// Only this group's verdicts.
    group: Option<String>,
    /// Items of the page.
    #[schemars(range(min = 1, max = 200))]
    limit: Option<usize>,
    /// Where the last page ended (`next`).
    cursor: Option<String>,
}

/// `GET tools`, by upstream and name.
pub async fn list(
    State(admin): State<Arc<Admin>>,
    _: Who,
    Params(query): Params<ToolQuery>,
) -> Result<Json<Page<ToolRecord>>, Problem> {
    let limit = take::limit(query.limit.unwrap_or(PAGE))?;
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
    Ok(Json(admin.gate.tool(&upstream, &name, None).await?))
}

/// Which tool is meant. A tool may be called `..`, which no path can say: clients fold it away.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// The configured id.
    upstream: String,
    /// The tool's name.
    name: String,
    /// Of one of its last definitions, such as the `definition` of an approval.
    digest: Option<String>,
}

/// `GET tools/definition`, the same for any name, and for a definition that is offered no longer.
pub async fn definition(
    State(admin): State<Arc<Admin>>,
    _: Who,
    Params(Named { upstream, name, digest }): Params<Named>,
) -> Result<Json<ToolDetail>, Problem> {
    Ok(Json(admin.gate.tool(&upstream, &name, digest.as_deref()).await?))
}

/// The body of an acceptance.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Accept {
    /// The `definition_digest` that you were shown.
    digest: String,
}

/// The body of an acceptance that names its tool.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptNamed {
    /// The configured id.
    upstream: String,
    /// The tool's name.
    name: String,
    /// The `definition_digest` that you were shown.
    digest: String,
}

/// `POST tools/{upstream}/{name}/accept`: of the definition that was shown, and no other.
pub async fn accept(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path((upstream, name)): Path<(String, String)>,
    Body(Accept { digest }): Body<Accept>,
) -> Result<Json<ToolDetail>, Problem> {
    accept_as(&admin, &who, &AcceptNamed { upstream, name, digest }).await
}

/// `POST tools/accept`, the same for any name.
pub async fn accept_named(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Body(body): Body<AcceptNamed>,
) -> Result<Json<ToolDetail>, Problem> {
    accept_as(&admin, &who, &body).await
}

async fn accept_as(admin: &Admin, who: &Who, tool: &AcceptNamed) -> Result<Json<ToolDetail>, Problem> {
    who.require(Role::Operator)?;
    match admin.gate.accept_tool(&tool.upstream, &tool.name, &tool.digest, who.name(), who.channel).await {
        Ok(tool) => Ok(Json(tool)),
        Err(NotAccepted::Unknown) => Err(Problem::not_found()),
        Err(NotAccepted::AnotherDigest) => Err(Problem::another_definition()),
        Err(NotAccepted::Unreadable) => Err(Problem::unreadable_definition()),
        Err(NotAccepted::Store(error)) => Err(error.into()),
    }
}

/// Which upstream to ask; all, if none is named.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Refresh {
    /// The configured id.
    upstream: Option<String>,
}

/// What one upstream answered.
#[derive(Serialize, JsonSchema)]
pub struct Refreshed {
    /// The configured id.
    upstream: String,
    /// How many tools it lists.
    tools: Option<usize>,
    /// Why it could not be asked.
    error: Option<String>,
}

/// `POST tools/refresh`: asks upstreams for their tools now, without waiting for an agent that does.
pub async fn refresh(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Body(Refresh { upstream }): Body<Refresh>,
) -> Result<Json<Page<Refreshed>>, Problem> {
    who.require(Role::Operator)?;
    let asked = admin.gate.refresh_tools(upstream.as_deref()).await.ok_or_else(Problem::not_found)?;
    let items = asked.into_iter().map(|asked| {
        let (tools, error) = match asked.tools {
            Ok(tools) => (Some(tools), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Refreshed { upstream: asked.upstream, tools, error }
    });
    Ok(Json(Page { items: items.collect(), next: None }))
}

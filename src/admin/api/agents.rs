//! Agents and their sessions: seen, paused, stopped.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use super::take::{Body, Page, Path};
use crate::diagnostic::did_you_mean;
use crate::gate::StopCount;
use crate::record::AgentRecord;
use crate::store::Stopped;

/// Characters of a reason.
const MAX_REASON: usize = 1_000;

/// `GET agents`, as configured.
pub async fn list(State(admin): State<Arc<Admin>>, who: Who) -> Result<Json<Page<AgentRecord>>, Problem> {
    Ok(Json(Page { items: visible(&admin, &who).await?, next: None }))
}

/// The body of a pause.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Told to the agent with each refusal.
    #[serde(default)]
    #[schemars(length(max = MAX_REASON))]
    reason: Option<String>,
}

/// `POST agents/{name}/pause`: refuses its calls and withdraws what of it is held, in every process. What runs goes on.
pub async fn pause(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(name): Path<String>,
    Body(body): Body<Pause>,
) -> Result<Json<AgentRecord>, Problem> {
    one(&admin, &who, &name).await?;
    who.require(Role::Operator)?;
    let reason = body.reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
        return Err(Problem::bad_request(format!("`reason` is longer than {MAX_REASON} characters")));
    }
    admin.gate.pause(&name, who.name(), reason).await?;
    Ok(Json(one(&admin, &who, &name).await?))
}

/// `POST agents/{name}/resume`.
pub async fn resume(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(name): Path<String>,
) -> Result<Json<AgentRecord>, Problem> {
    one(&admin, &who, &name).await?;
    who.require(Role::Operator)?;
    admin.gate.resume(&name, who.name()).await?;
    Ok(Json(one(&admin, &who, &name).await?))
}

/// How many calls were stopped.
#[derive(Serialize, JsonSchema)]
pub struct Stops {
    /// That waited.
    withdrawn: usize,
    /// That ran, as far as this process knows; the others stop theirs too.
    stopped: usize,
}

impl From<StopCount> for Stops {
    fn from(StopCount { withdrawn, stopped }: StopCount) -> Self {
        Self { withdrawn, stopped }
    }
}

/// `POST agents/{name}/cancel`: withdraws what waits of an agent and stops what runs, in every process.
pub async fn cancel(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(name): Path<String>,
) -> Result<Json<Stops>, Problem> {
    one(&admin, &who, &name).await?;
    who.require(Role::Operator)?;
    Ok(Json(admin.gate.stop(Stopped::Agent(name), who.name()).await?.into()))
}

/// `POST sessions/{id}/cancel`: the same for a session, as it is called in calls.
pub async fn cancel_session(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
) -> Result<Json<Stops>, Problem> {
    let owner = admin.gate.owner_of_session(&id).await?.ok_or_else(Problem::not_found)?;
    one(&admin, &who, &owner).await?;
    who.require(Role::Operator)?;
    Ok(Json(admin.gate.stop(Stopped::Session(id), who.name()).await?.into()))
}

async fn visible(admin: &Admin, who: &Who) -> Result<Vec<AgentRecord>, Problem> {
    let mut agents = admin.gate.agents().await?;
    agents.retain(|agent| who.approver.covers(&agent.group));
    Ok(agents)
}

async fn one(admin: &Admin, who: &Who, name: &str) -> Result<AgentRecord, Problem> {
    let all = visible(admin, who).await?;
    let near = did_you_mean(name, all.iter().map(|agent| agent.name.as_str()));
    let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
    let found = all.into_iter().find(|agent| agent.name == name);
    found.ok_or_else(|| Problem::nothing(format!("there is no agent of that name that you can see{near}")))
}

/// The agent of that name, if this approver covers its group.
pub(super) async fn seen(admin: &Admin, who: &Who, name: &str) -> Option<AgentRecord> {
    one(admin, who, name).await.ok()
}

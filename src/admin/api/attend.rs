//! What approvers do with a held call beside deciding it: show that they look, put off its end, see what was redacted,
//! and decide several at once.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use super::approvals::{MAX_NOTE, Say, checked, decide, seen_by, visible};
use super::take::{Body, Page, Path, whole};
use crate::approval::{Event, Refused};
use crate::gate::NotRevealed;
use crate::record::{ApprovalView, Decision};
use crate::store::StoreError;

/// How long the sign that somebody looks stays up.
const LOOKS: Duration = Duration::from_secs(300);
/// How many calls one request decides.
const MOST: usize = 50;

/// The body of a claim.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Takes the sign down.
    #[serde(default)]
    release: bool,
}

/// `POST approvals/{id}/claim`: a sign to the others for five minutes. Whoever put it up first is named.
pub async fn claim(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
    Body(body): Body<Claim>,
) -> Result<Json<ApprovalView>, Problem> {
    let held = visible(&admin, &who, &id).await?;
    who.require(Role::Approver)?;
    let until = (!body.release).then(|| admin.clock.now().after(LOOKS));
    let held = admin.gate.store().apply(&held.call().id, Event::Look { by: who.name().to_owned(), until }).await?;
    Ok(Json(seen_by(&admin, &who, held)))
}

/// The body of an extension.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Extend {
    /// By how much, in ms.
    #[serde(deserialize_with = "whole")]
    by_ms: u64,
}

/// `POST approvals/{id}/extend`: puts off the end, to the ask's own `expires` from now at most.
pub async fn extend(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
    Body(body): Body<Extend>,
) -> Result<Json<ApprovalView>, Problem> {
    let held = visible(&admin, &who, &id).await?;
    who.require(Role::Approver)?;
    match admin.gate.extend(&held, Duration::from_millis(body.by_ms), who.name(), who.channel).await {
        Ok(held) => Ok(Json(seen_by(&admin, &who, held))),
        Err(StoreError::Refused(Refused::NotNow, _)) => {
            Err(Problem::not_now("its end cannot be put off any further; decide it, or let the agent ask anew"))
        }
        Err(error) => Err(error.into()),
    }
}

/// The body of a revelation.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reveal {
    /// One of the `redacted` of the call.
    pointer: String,
}

/// A value that was redacted.
#[derive(Serialize, JsonSchema)]
pub struct Revealed {
    /// Where it was.
    pointer: String,
    /// What stands there.
    value: Value,
}

/// `POST approvals/{id}/reveal`: one redacted value, for those who may approve the call. It is written down.
pub async fn reveal(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
    Body(body): Body<Reveal>,
) -> Result<Json<Revealed>, Problem> {
    let held = visible(&admin, &who, &id).await?;
    who.require(Role::Approver)?;
    admin.gate.may_approve(&held, &who.approver).map_err(Problem::forbidden)?;
    if held.call().outcome.is_some() {
        return Err(StoreError::Refused(Refused::Ended, Box::new(held)).into());
    }
    match admin.gate.reveal(&held, &body.pointer, who.name(), who.channel) {
        Ok(value) => Ok(Json(Revealed { pointer: body.pointer, value })),
        Err(NotRevealed::Nothing) => {
            Err(Problem::bad_request("`pointer` is none of the call's `redacted`: nothing was left out there"))
        }
        Err(NotRevealed::Unavailable(why)) => Err(Problem::unavailable(why)),
    }
}

/// Several decisions.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Decisions(#[schemars(length(min = 1, max = MOST))] Vec<OneDecision>);

/// One of several decisions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneDecision {
    /// The approval's.
    id: String,
    /// As you were shown it; needed to approve.
    #[serde(default)]
    digest: Option<String>,
    /// What you say.
    decision: Decision,
    /// Why.
    #[serde(default)]
    #[schemars(length(max = MAX_NOTE))]
    note: Option<String>,
}

/// What became of one of several decisions.
#[derive(Serialize, JsonSchema)]
pub struct Decided {
    /// The approval's.
    id: String,
    /// As the request for that one alone would have been answered.
    status: u16,
    /// As it is now, where that is 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<ApprovalView>,
    /// Why it was refused, where it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// `POST approvals/decide`: several decisions, each as if it came alone.
pub async fn several(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Body(Decisions(decisions)): Body<Decisions>,
) -> Result<Json<Page<Decided>>, Problem> {
    who.require(Role::Approver)?;
    if decisions.is_empty() || decisions.len() > MOST {
        return Err(Problem::bad_request(format!("send from 1 to {MOST} decisions, as a list")));
    }
    for decision in &decisions {
        checked(decision.note.clone())?;
    }
    let mut items = Vec::new();
    for OneDecision { id, digest, decision, note } in decisions {
        let decided = match (decision, &digest) {
            (Decision::Approve, None) => {
                Err(Problem::bad_request("an approval needs the `digest` of what you were shown"))
            }
            (Decision::Approve, Some(_)) | (Decision::Reject, _) => {
                let digest = digest.filter(|_| decision == Decision::Approve);
                decide(&admin, &who, &id, Say { decision, digest, note, remember: None }).await
            }
        };
        items.push(match decided {
            Ok(Json(approval)) => Decided { id, status: 200, approval: Some(approval), problem: None },
            Err(problem) => Decided { id, status: problem.status(), approval: None, problem: Some(problem) },
        });
    }
    Ok(Json(Page { items, next: None }))
}

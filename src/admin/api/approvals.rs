//! Held calls: seen by those who cover their group, decided by those who may.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use super::take::{Body, ListQuery, Page, Params, Path, RawObject, is_id};
use crate::approval::Held;
use crate::gate::{Editor, NotEdited, flag_sentence};
use crate::record::{ApprovalState, ApprovalView, Decision, FileDiff, Remember, Vote, You};
use crate::store::Filter;

/// Characters of a note.
pub(super) const MAX_NOTE: usize = 4_000;

/// `GET approvals`, newest first.
pub async fn list(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Params(query): Params<ListQuery<ApprovalState>>,
) -> Result<Json<Page<ApprovalView>>, Problem> {
    let (limit, groups, words) = (query.limit()?, query.groups(&who), query.words()?);
    if let Some(cursor) = &query.cursor {
        let last = admin.gate.store().get(cursor).await.map_err(Problem::from).and_then(|held| {
            who.see(held.call())?;
            if held.call().id == *cursor { Ok(()) } else { Err(Problem::not_found()) }
        });
        last.map_err(|problem| if problem == Problem::not_found() { Problem::no_cursor() } else { problem })?;
    }
    let filter = Filter {
        state: query.state,
        agent: query.agent,
        upstream: query.upstream,
        since: query.since,
        groups,
        session: query.session,
        words,
        questions: Some(false),
        limit,
        cursor: query.cursor,
    };
    let (held, next) = admin.gate.store().list(filter).await?;
    Ok(Json(Page { items: held.into_iter().map(|held| seen_by(&admin, &who, held)).collect(), next }))
}

/// `GET approvals/{id}`.
pub async fn show(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
) -> Result<Json<ApprovalView>, Problem> {
    Ok(Json(seen_by(&admin, &who, visible(&admin, &who, &id).await?)))
}

/// What a call would change in files.
#[derive(Serialize, JsonSchema)]
pub struct Diff {
    /// As they are now, compared.
    files: Vec<FileDiff>,
}

/// `GET approvals/{id}/diff`: for tools that say what they write, where the gateway shares the file system.
pub async fn diff(State(admin): State<Arc<Admin>>, who: Who, Path(id): Path<String>) -> Result<Json<Diff>, Problem> {
    let held = visible(&admin, &who, &id).await?;
    let reading = tokio::task::spawn_blocking(move || admin.gate.diff(&held));
    let files = reading.await.map_err(|_| Problem::unavailable("the files could not be read"))?;
    Ok(Json(Diff { files }))
}

/// The body of an approval.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    /// The call's `digest` as you were shown it.
    digest: String,
    /// For the record.
    #[serde(default)]
    #[schemars(length(max = MAX_NOTE))]
    note: Option<String>,
    /// Other arguments in the place of the agent's, an object. Earlier votes are void and policy judges again; where the
    /// change brings something that you were not shown, the approval comes back `waiting` with another digest.
    #[serde(default)]
    arguments: Option<RawObject>,
    /// One of the approval\'s `grant_options`, to let calls like it pass for a while.
    #[serde(default)]
    remember: Option<Remember>,
}

/// `POST approvals/{id}/approve`.
pub async fn approve(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
    Body(body): Body<Approve>,
) -> Result<Json<ApprovalView>, Problem> {
    if let Some(arguments) = body.arguments {
        if body.remember.is_some() {
            return Err(Problem::bad_request(
                "what was changed cannot be remembered: the agent asks again with its own arguments; send `arguments` or `remember`",
            ));
        }
        return edit(&admin, &who, &id, body.digest, body.note, &arguments.0).await;
    }
    let say = Say { decision: Decision::Approve, digest: Some(body.digest), note: body.note, remember: body.remember };
    decide(&admin, &who, &id, say).await
}

/// Approves a call with other arguments: it waits to be looked at again where they bring something new.
async fn edit(
    admin: &Admin,
    who: &Who,
    id: &str,
    seen: String,
    note: Option<String>,
    arguments: &RawValue,
) -> Result<Json<ApprovalView>, Problem> {
    let held = visible(admin, who, id).await?;
    who.require(Role::Approver)?;
    let editor = Editor { by: who.name().to_owned(), channel: who.channel.to_owned(), seen, note: checked(note)? };
    match admin.gate.edit(&held.approval.id, editor, arguments.get()).await {
        Ok(held) => Ok(Json(seen_by(admin, who, held))),
        Err(NotEdited::Store(error)) => Err(error.into()),
        Err(NotEdited::Bad(why)) => Err(Problem::bad_request(why)),
        Err(NotEdited::Denied(why)) => Err(Problem::denied(why)),
        Err(NotEdited::NotHere(why)) => Err(Problem::not_now(why)),
    }
}

/// The body of a rejection.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reject {
    /// Why; the agent is told.
    #[serde(default)]
    #[schemars(length(max = MAX_NOTE))]
    note: Option<String>,
}

/// `POST approvals/{id}/reject`.
pub async fn reject(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
    Body(body): Body<Reject>,
) -> Result<Json<ApprovalView>, Problem> {
    decide(&admin, &who, &id, Say { decision: Decision::Reject, digest: None, note: body.note, remember: None }).await
}

/// What an approver says of a call.
pub(super) struct Say {
    pub decision: Decision,
    pub digest: Option<String>,
    pub note: Option<String>,
    pub remember: Option<Remember>,
}

pub(super) async fn decide(admin: &Admin, who: &Who, id: &str, say: Say) -> Result<Json<ApprovalView>, Problem> {
    let Say { decision, digest, note, remember } = say;
    let held = visible(admin, who, id).await?;
    who.require(Role::Approver)?;
    let note = checked(note)?;
    let remember =
        remember.map(|asked| admin.gate.remembers(&held, asked)).transpose().map_err(Problem::bad_request)?;
    let vote = Vote {
        by: who.name().to_owned(),
        teams: Vec::new(),
        decision,
        channel: who.channel.to_owned(),
        note,
        digest,
        remember: remember.map(Box::new),
        at: admin.clock.now(),
    };
    let held = admin.gate.vote(&held.approval.id, vote).await?;
    Ok(Json(seen_by(admin, who, held)))
}

pub(super) fn checked(note: Option<String>) -> Result<Option<String>, Problem> {
    let note = note.map(|note| note.trim().to_owned()).filter(|note| !note.is_empty());
    match note {
        Some(long) if long.chars().count() > MAX_NOTE => {
            Err(Problem::bad_request(format!("`note` is longer than {MAX_NOTE} characters")))
        }
        note => Ok(note),
    }
}

/// An approval with what its reader may do.
pub(super) fn seen_by(admin: &Admin, who: &Who, held: Held) -> ApprovalView {
    let why_not = match who.approver.has(Role::Approver) {
        true => admin.gate.may_approve(&held, &who.approver).err(),
        false => Some("deciding needs the role approver".to_owned()),
    };
    let look_at = held.approval.flags.iter().map(|flag| flag_sentence(flag)).collect();
    ApprovalView { approval: held.approval, you: You { may_approve: why_not.is_none(), why_not }, look_at }
}

/// The approval by its own id, if this approver covers its group.
pub(super) async fn visible(admin: &Admin, who: &Who, id: &str) -> Result<Held, Problem> {
    is_id(id, "apr_", "approvals")?;
    let held = admin.gate.store().get(id).await?;
    who.see(held.call())?;
    if held.approval.id == id && held.question.is_none() { Ok(held) } else { Err(Problem::not_found()) }
}

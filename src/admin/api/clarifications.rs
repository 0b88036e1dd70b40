//! Questions of agents to their people: seen by those who cover their group, answered by its approvers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use super::take::{Body, ListQuery, Page, Params, Path};
use crate::gate::{MAX_ANSWER, NotAnswered};
use crate::record::{ClarificationRecord, ClarificationState};
use crate::store::Filter;

/// `GET clarifications`, newest first.
pub async fn list(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Params(query): Params<ListQuery<ClarificationState>>,
) -> Result<Json<Page<ClarificationRecord>>, Problem> {
    let (limit, groups, words) = (query.limit()?, query.groups(&who), query.words()?);
    if let Some(cursor) = &query.cursor {
        let last = admin.gate.store().get(cursor).await.map_err(Problem::from).and_then(|held| {
            who.see(held.call())?;
            if held.call().id == *cursor { Ok(()) } else { Err(Problem::not_found()) }
        });
        last.map_err(|problem| if problem == Problem::not_found() { Problem::no_cursor() } else { problem })?;
    }
    let filter = Filter {
        state: query.state.map(ClarificationState::held_as),
        agent: query.agent,
        upstream: query.upstream,
        since: query.since,
        groups,
        session: query.session,
        words,
        questions: Some(true),
        limit,
        cursor: query.cursor,
    };
    let (held, next) = admin.gate.store().list(filter).await?;
    Ok(Json(Page { items: held.iter().filter_map(|held| admin.gate.clarification(held)).collect(), next }))
}

/// An answer to a question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// What the agent is told: text, never a decision.
    #[schemars(length(min = 1, max = MAX_ANSWER))]
    answer: String,
    /// Send it although it looks like a secret.
    #[serde(default)]
    anyway: bool,
}

/// `POST clarifications/{id}/answer`. The same answer of the same approver twice is no error.
pub async fn answer(
    State(admin): State<Arc<Admin>>,
    who: Who,
    Path(id): Path<String>,
    Body(body): Body<Answer>,
) -> Result<Json<ClarificationRecord>, Problem> {
    let held = admin.gate.store().get(&id).await?;
    who.see(held.call())?;
    if held.call().id != id || held.question.is_none() {
        return Err(Problem::not_found());
    }
    who.require(Role::Approver)?;
    let text = body.answer.trim();
    if text.is_empty() || text.chars().count() > MAX_ANSWER {
        return Err(Problem::bad_request(format!("`answer` has from 1 to {MAX_ANSWER} characters")));
    }
    let answered = admin.gate.answer(&held, &who.approver, who.channel, text, body.anyway).await;
    let now = answered.map_err(|why| match why {
        NotAnswered::Store(error) => error.into(),
        NotAnswered::LooksSecret => Problem::looks_secret(),
    })?;
    admin.gate.clarification(&now).map(Json).ok_or_else(Problem::not_found)
}

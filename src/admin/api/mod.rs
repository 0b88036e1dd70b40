//! The API under `/api/v1`, and what probes and Prometheus read.
//!
//! # How to add a route
//!
//! 1. Write the handler. It takes the shared [`Admin`], [`Who`](super::auth::Who) asks (unless it is open), and the parts
//!    of the request by [`take`]: `Path`, `Params<Query>`, `Body<Shape>`; it gives `Result<Json<Shape>, Problem>`.
//! 2. Derive `schemars::JsonSchema` for its shapes, beside serde's traits. Doc comments become the descriptions, serde's
//!    attributes count, bounds are `#[schemars(range(max = 9))]` or `length(max = 9)`; a name that is no good outside is
//!    changed by `#[schemars(rename = "Call")]`. Query and body refuse what they do not know
//!    (`#[serde(deny_unknown_fields)]`).
//! 3. Add a line to [`table`]: the path, the handler, what it does in one line; `.needs(role)` as the handler requires;
//!    `.may([…])` with the statuses of its problems, but for those that anybody or its signature gives (400, 401, 403 of
//!    a role, 408, 413, 415, 421, 503); `.says("…")` where there is more to know.
//! 4. Name it in `docs/api.md`.
//!
//! The rest follows: the router and `/api/v1/openapi.json` are made from the table. A handler whose parts have no
//! description does not compile; a field without a doc comment, a path without its 404 or a route that the page leaves
//! out fails a test in [`document`]; an answer that the document does not know fails any test of `admin::tests` that gets
//! it, and `tests/integration/openapi.rs`.

mod agents;
mod approvals;
mod attend;
mod calls;
mod clarifications;
mod describe;
pub(super) mod document;
mod events;
mod explain;
mod grants;
mod health;
mod policy;
mod route;
mod take;
mod tools;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

pub use self::describe::{Gives, Operation};
pub(super) use self::route::Route;
use self::route::{delete, get, post};
pub use self::take::Body;
use super::auth::Role::{Approver, Operator};
use super::{Admin, login};
use crate::diagnostic::did_you_mean;

/// All of the API's routes.
pub fn routes() -> Router<Arc<Admin>> {
    table().into_iter().fold(Router::new(), |router, route| {
        let strict = route.path.starts_with("/api/") && !route.takes_query();
        let handler = if strict { route.handler.layer(from_fn(take::no_query)) } else { route.handler };
        router.route(route.path, handler)
    })
}

/// The path of a route that is nearest to one that does not exist, its variables as they were sent.
pub(super) fn near(path: &str) -> Option<String> {
    /// Bytes of a path that somebody may have mistyped.
    const TYPED: usize = 200;
    let given: Vec<&str> = path.trim_end_matches('/').split('/').filter(|_| path.len() <= TYPED).collect();
    let filled = |template: &str| {
        let parts: Vec<&str> = template.split('/').collect();
        let fill = |(part, given): (&&str, &&str)| match part.starts_with('{') {
            true => Some((*given).to_owned()),
            false => did_you_mean(given, [*part]).map(str::to_owned),
        };
        let whole: Option<Vec<String>> = parts.iter().zip(&given).map(fill).collect();
        whole.filter(|_| parts.len() == given.len()).map(|parts| parts.join("/"))
    };
    let known: Vec<String> = table().iter().filter_map(|route| filled(route.path)).collect();
    did_you_mean(path, known.iter().map(String::as_str)).map(str::to_owned)
}

/// Every route, with what the document says of it.
pub(super) fn table() -> Vec<Route> {
    const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;
    const CONFLICT: StatusCode = StatusCode::CONFLICT;
    const GONE: StatusCode = StatusCode::GONE;
    const ANOTHER: StatusCode = StatusCode::PRECONDITION_FAILED;
    const REFUSED: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;
    const UNKNOWN: StatusCode = StatusCode::UNAUTHORIZED;
    vec![
        get("/api/v1/approvals", approvals::list, "Held calls of your groups, newest first"),
        get("/api/v1/approvals/{id}", approvals::show, "One held call").may([NOT_FOUND]),
        post("/api/v1/approvals/{id}/approve", approvals::approve, "Approve exactly what you were shown")
            .says("The same word of the same approver twice is no error.")
            .needs(Approver)
            .may([NOT_FOUND, CONFLICT, GONE, ANOTHER, REFUSED]),
        post("/api/v1/approvals/{id}/reject", approvals::reject, "Refuse a call; the agent is told the note")
            .needs(Approver)
            .may([NOT_FOUND, CONFLICT, GONE]),
        get("/api/v1/approvals/{id}/diff", approvals::diff, "What a call would change in files")
            .says("For tools that say what they write, where the gateway shares the file system; empty otherwise.")
            .may([NOT_FOUND]),
        post("/api/v1/approvals/{id}/claim", attend::claim, "Show the others that you look at it")
            .says("A sign for five minutes, no lock; whoever put it up first is named.")
            .needs(Approver)
            .may([NOT_FOUND, CONFLICT, GONE]),
        post("/api/v1/approvals/{id}/extend", attend::extend, "Put off the end of a waiting call")
            .says("To the ask's own `expires` from now at most, and four times that in all.")
            .needs(Approver)
            .may([NOT_FOUND, CONFLICT, GONE]),
        post("/api/v1/approvals/{id}/reveal", attend::reveal, "See one redacted value")
            .says("For those who may approve the call, while it waits or runs; written to the audit log first.")
            .needs(Approver)
            .may([NOT_FOUND, GONE]),
        post("/api/v1/approvals/decide", attend::several, "Decide several calls, each as if it came alone")
            .says("At most 50.")
            .needs(Approver),
        get("/api/v1/clarifications", clarifications::list, "Questions of agents to their people, newest first")
            .says("Empty where `clarifications` are off. They are no approvals, and no approval is one of them."),
        post("/api/v1/clarifications/{id}/answer", clarifications::answer, "Answer a question of an agent")
            .says(
                "The answer is text for the agent and never a decision. One that looks like a secret is refused (422) \
                 unless `anyway` is true. The same answer of the same approver twice is no error.",
            )
            .needs(Approver)
            .may([NOT_FOUND, CONFLICT, GONE, REFUSED]),
        get("/api/v1/calls", calls::list, "Recent calls of your groups, held and not held, newest first"),
        get("/api/v1/calls/{id}", calls::show, "One call").may([NOT_FOUND]),
        post("/api/v1/calls/{id}/cancel", calls::cancel, "Withdraw a waiting call, stop a running one")
            .needs(Operator)
            .may([NOT_FOUND, CONFLICT, GONE]),
        get("/api/v1/agents", agents::list, "The agents that may call, with what of theirs waits and runs"),
        post("/api/v1/agents/{name}/pause", agents::pause, "Refuse every call of an agent")
            .says("What of it is held is withdrawn, in every process on the state folder; what runs goes on.")
            .needs(Operator)
            .may([NOT_FOUND]),
        post("/api/v1/agents/{name}/resume", agents::resume, "Let a paused agent call again")
            .needs(Operator)
            .may([NOT_FOUND]),
        post("/api/v1/agents/{name}/cancel", agents::cancel, "Stop everything of an agent")
            .says("What waits is withdrawn, what runs is stopped at the far side.")
            .needs(Operator)
            .may([NOT_FOUND]),
        post("/api/v1/sessions/{id}/cancel", agents::cancel_session, "Stop everything of a session")
            .says("The session as `session` of its calls names it.")
            .needs(Operator)
            .may([NOT_FOUND]),
        get("/api/v1/grants", grants::list, "What was approved to be remembered")
            .says("Newest first; those of the last week that have ended, too."),
        delete("/api/v1/grants/{id}", grants::revoke, "End a grant")
            .says("No call uses it after this is answered, in any process. For the role operator, and for those who made it.")
            .may([NOT_FOUND]),
        get("/api/v1/tools", tools::list, "Every tool that an upstream ever offered, by upstream and name"),
        post("/api/v1/tools/refresh", tools::refresh, "Ask upstreams for their tools now, without waiting for an agent")
            .says("All are asked at once, each for at most 20 s.")
            .needs(Operator)
            .may([NOT_FOUND]),
        get("/api/v1/tools/definition", tools::definition, "One tool with its definition, whatever its name")
            .says("The form for names that no path can say (`..`).")
            .may([NOT_FOUND]),
        post("/api/v1/tools/accept", tools::accept_named, "Accept a tool as you were shown it, whatever its name")
            .says("Accepting again what is accepted changes nothing.")
            .needs(Operator)
            .may([NOT_FOUND, CONFLICT, ANOTHER]),
        get("/api/v1/tools/{upstream}/{name}", tools::show, "One tool with its definition, and what changed in it since it was accepted")
            .may([NOT_FOUND]),
        post("/api/v1/tools/{upstream}/{name}/accept", tools::accept, "Accept a tool as you were shown it")
            .says("Accepting again what is accepted changes nothing.")
            .needs(Operator)
            .may([NOT_FOUND, CONFLICT, ANOTHER]),
        get("/api/v1/policy", policy::show, "The policy in force"),
        post("/api/v1/policy/explain", policy::explain, "What the policy would say of a call"),
        post("/api/v1/policy/reload", policy::reload, "Load the policy files again")
            .says("A bad file keeps the last good policy.")
            .needs(Operator)
            .may([REFUSED]),
        get("/api/v1/events", events::events, "What changes, as server-sent events").says(
            "`event: approval`, `call`, `tool`, `agent`, `grant`, `clarification` or `policy`, with that object as `data`; calls only of your groups. \
             The stream ends when you fall behind, log out or are no longer an approver: connect again and fetch the lists.",
        ),
        get("/api/v1/me", login::me, "Who you are here"),
        post("/api/v1/login", login::login, "Spend a login link's token, or log in with an approver's own")
            .open()
            .may([UNKNOWN]),
        post("/api/v1/logout", login::logout, "End the browser's session").open(),
        get("/api/v1/openapi.json", openapi, "This document").open(),
        get("/metrics", health::metrics, "Prometheus metrics; open on loopback, elsewhere for approvers").may([UNKNOWN]),
        get("/healthz", health::healthz, "Whether the process answers").open(),
        get("/readyz", health::readyz, "Whether calls can be forwarded").open(),
    ]
}

/// The text of the OpenAPI document.
static OPENAPI: LazyLock<String> = LazyLock::new(|| document::document(&table()).to_string());

struct Document;

impl IntoResponse for Document {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], OPENAPI.as_str()).into_response()
    }
}

impl Gives for Document {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives::<serde_json::Map<String, serde_json::Value>>(StatusCode::OK);
    }
}

async fn openapi() -> Document {
    Document
}

//! The policy in force: shown, asked, loaded again.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use serde::Serialize;
use serde_json::Value;

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use super::read_body;
use crate::clock::Timestamp;
use crate::diagnostic::Diagnostic;
use crate::gate::InForce;
use crate::policy::Rule;
use crate::record::Verdict;

/// The policy, as the API shows it.
#[derive(Serialize)]
pub struct PolicyRecord {
    version: String,
    loaded_at: Timestamp,
    files: Vec<String>,
    /// Why the last reload was refused, if it was.
    error: Option<String>,
    groups: Vec<String>,
    rules: Vec<RuleRecord>,
    lints: Vec<Diagnostic>,
}

#[derive(Serialize)]
struct RuleRecord {
    name: String,
    file: Option<String>,
    line: Option<usize>,
    verdict: Verdict,
    guardrail: bool,
}

/// `GET policy`.
pub async fn show(State(admin): State<Arc<Admin>>, _: Who) -> Json<PolicyRecord> {
    Json(in_force(&admin))
}

/// `POST policy/reload`: a bad file keeps the last good policy, and the answer says what is wrong.
pub async fn reload(State(admin): State<Arc<Admin>>, who: Who) -> Result<Json<PolicyRecord>, Problem> {
    who.require(Role::Operator)?;
    match admin.gate.reload().await {
        Ok(policy) => Ok(Json(record(policy))),
        Err(diagnostics) => {
            let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
            Err(Problem::invalid_policy(format!("the last good policy stays in force\n{}", lines.join("\n"))))
        }
    }
}

/// `POST policy/explain`: judges a call that nobody makes.
pub async fn explain(State(admin): State<Arc<Admin>>, _: Who, request: Request) -> Result<Json<Value>, Problem> {
    let body = read_body(request).await?;
    let question = String::from_utf8(body.into()).map_err(|_| Problem::bad_request("the body is not UTF-8"))?;
    // Walking below recursive facets may take a while.
    let answering = tokio::task::spawn_blocking(move || admin.gate.explain(&question));
    let answered = answering.await.map_err(|_| Problem::unavailable("the question could not be answered"))?;
    answered.map(Json).map_err(|unanswerable| Problem::bad_request(unanswerable.0))
}

/// The policy in force now.
pub fn in_force(admin: &Admin) -> PolicyRecord {
    record(admin.gate.policy())
}

fn record(in_force: InForce) -> PolicyRecord {
    let InForce { policy, loaded_at, files, error, lints } = in_force;
    PolicyRecord {
        version: policy.version.clone(),
        loaded_at,
        files,
        error,
        groups: policy.groups().map(str::to_owned).collect(),
        rules: policy.rules().iter().map(|rule| rule_record(rule)).collect(),
        lints: lints.to_vec(),
    }
}

fn rule_record(rule: &Rule) -> RuleRecord {
    RuleRecord {
        name: rule.label.clone(),
        file: rule.file.clone(),
        line: rule.line,
        verdict: rule.verdict,
        guardrail: rule.guardrail,
    }
}

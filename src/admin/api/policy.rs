//! The policy in force: shown, asked, loaded again.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use super::explain::{Answer, Question};
use super::take::Text;
use crate::clock::Timestamp;
use crate::diagnostic::Diagnostic;
use crate::gate::InForce;
use crate::policy::Rule;
use crate::record::Verdict;

/// The policy, as the API shows it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Policy")]
pub struct PolicyRecord {
    /// Changes with every file and setting that it is made of.
    version: String,
    /// Since when it is in force.
    loaded_at: Timestamp,
    /// The files, as configured.
    files: Vec<String>,
    /// Why the last reload was refused, if it was.
    error: Option<String>,
    /// Those that it has rules for.
    groups: Vec<String>,
    /// Its rules, guardrails among them, in no order that counts.
    rules: Vec<RuleRecord>,
    /// What loads, and is hardly meant so; each code has a page in docs/lints.
    lints: Vec<Diagnostic>,
}

/// A rule of the policy.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Rule")]
struct RuleRecord {
    /// Its name, or `file:line`.
    name: String,
    /// The file it stands in; none for a built-in.
    file: Option<String>,
    /// Its line.
    line: Option<usize>,
    /// What it says.
    verdict: Verdict,
    /// Whether it holds for every group.
    guardrail: bool,
    /// How many calls it has decided, alone or with others, since this process started.
    decided: u64,
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
pub async fn explain(
    State(admin): State<Arc<Admin>>,
    _: Who,
    question: Text<Question>,
) -> Result<Json<Answer>, Problem> {
    // Walking below recursive facets may take a while.
    let answering = tokio::task::spawn_blocking(move || admin.gate.explain(&question.0));
    let answered = answering.await.map_err(|_| Problem::unavailable("the question could not be answered"))?;
    answered.map(|answer| Json(Answer(answer))).map_err(|unanswerable| Problem::bad_request(unanswerable.0))
}

/// The policy in force now.
pub fn in_force(admin: &Admin) -> PolicyRecord {
    record(admin.gate.policy())
}

fn record(in_force: InForce) -> PolicyRecord {
    let InForce { policy, loaded_at, files, error, lints, decided } = in_force;
    PolicyRecord {
        version: policy.version.clone(),
        loaded_at,
        files,
        error,
        groups: policy.groups().map(str::to_owned).collect(),
        rules: policy.rules().iter().map(|rule| rule_record(rule, decided.times(&rule.label))).collect(),
        lints: lints.to_vec(),
    }
}

fn rule_record(rule: &Rule, decided: u64) -> RuleRecord {
    RuleRecord {
        name: rule.label.clone(),
        file: rule.file.clone(),
        line: rule.line,
        verdict: rule.verdict,
        guardrail: rule.guardrail,
        decided,
    }
}

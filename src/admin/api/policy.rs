//! The policy in force: shown, asked, loaded again.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;

use super::super::Admin;
use super::super::auth::{Role, Who};
use super::super::problem::Problem;
use crate::clock::Timestamp;
use crate::gate::InForce;

/// The policy, as the API shows it.
#[derive(Serialize)]
pub struct PolicyRecord {
    version: String,
    loaded_at: Timestamp,
    files: Vec<String>,
    error: Option<String>,
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

/// The policy in force now.
pub fn in_force(admin: &Admin) -> PolicyRecord {
    record(admin.gate.policy())
}

fn record(in_force: InForce) -> PolicyRecord {
    PolicyRecord {
        version: in_force.policy.version.clone(),
        loaded_at: in_force.loaded_at,
        files: in_force.files,
        error: in_force.error,
    }
}

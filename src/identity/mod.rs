//! Credential → agent or approver.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::config::{AgentConfig, ApproverConfig, Config, Role};

/// Who calls.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Name, group, owner, source and depth.
    pub config: AgentConfig,
}

/// Who decides.
#[derive(Clone, Debug)]
pub struct Approver {
    /// Name, roles, groups and teams.
    pub config: ApproverConfig,
}

impl Approver {
    /// Whether they hold a role (every role includes seeing).
    pub fn has(&self, role: Role) -> bool {
        role == Role::Viewer || self.config.roles.contains(&role)
    }
    /// Whether they see and decide calls of a group.
    pub fn covers(&self, group: &str) -> bool {
        self.config.groups.iter().any(|g| g == "*" || g == group)
    }
}

/// All who are known, looked up by their tokens.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    agents: Vec<Arc<Agent>>,
    approvers: Vec<Arc<Approver>>,
}

/// Why a credential is no good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// There is none, and one is needed.
    Missing,
    /// It is not known.
    Unknown,
    /// It has expired.
    Expired,
}

impl Directory {
    /// From the configuration; without agents, loopback clients are agent `local` of group `default`.
    pub fn new(config: &Config) -> Self {
        let _ = config;
        unimplemented!()
    }

    /// The agent a bearer token belongs to; `loopback` tells whether the client's address is.
    ///
    /// # Errors
    /// Why not.
    pub fn agent(&self, bearer: Option<&str>, loopback: bool, now: Timestamp) -> Result<Arc<Agent>, Refused> {
        let _ = (bearer, loopback, now, &self.agents);
        unimplemented!()
    }

    /// The agent of that name, for stdio processes and stored sessions.
    pub fn agent_named(&self, name: &str) -> Option<Arc<Agent>> {
        self.agents.iter().find(|a| a.config.name == name).cloned()
    }

    /// The approver a token belongs to.
    ///
    /// # Errors
    /// Why not.
    pub fn approver(&self, token: &str, now: Timestamp) -> Result<Arc<Approver>, Refused> {
        let _ = (token, now);
        unimplemented!()
    }

    /// All approvers.
    pub fn approvers(&self) -> &[Arc<Approver>] {
        &self.approvers
    }
}

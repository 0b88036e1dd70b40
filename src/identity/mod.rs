//! Credential → agent or approver.

mod claim;

use std::collections::HashMap;
use std::sync::Arc;

pub use claim::{CLAIM_KEY, Standing, Unsound};

use crate::clock::Timestamp;
use crate::config::{AgentConfig, ApproverConfig, Config, Role, TokenConfig};
use crate::record::{Depth, Source};
use crate::secret::TokenHash;

/// Who calls.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Name, group, owner, source and depth.
    pub config: AgentConfig,
}

impl Agent {
    /// The gateway itself, where it asks an upstream for its tools: no call is ever made in its name.
    pub fn gateway() -> Self {
        Self { config: AgentConfig { name: "portcullis".into(), ..local_agent() } }
    }
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

/// All who are known, looked up by the hashes of their tokens. Agents and approvers never share a table: an agent's
/// token is unknown on the admin side, whatever it is.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    agents: Vec<Arc<Agent>>,
    approvers: Vec<Arc<Approver>>,
    agent_tokens: Tokens<Agent>,
    approver_tokens: Tokens<Approver>,
    /// The agent that needs no token, on loopback and where no agents are configured.
    local: Option<Arc<Agent>>,
}

/// Keyed by hash: how long a look-up takes tells something of the hash, and nothing of the token.
type Tokens<T> = HashMap<TokenHash, (Arc<T>, Option<Timestamp>)>;

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
        let mut directory = Self::default();
        for agent in &config.agents {
            let known = Arc::new(Agent { config: agent.clone() });
            remember(&mut directory.agent_tokens, &known, &agent.tokens);
            directory.agents.push(known);
        }
        if directory.agents.is_empty() {
            let local = Arc::new(Agent { config: local_agent() });
            directory.agents.push(Arc::clone(&local));
            directory.local = Some(local);
        }
        for approver in &config.approvers {
            directory = directory.with_approver(approver.clone());
        }
        directory
    }

    /// With one more approver: the one that the first start makes where the configuration has none.
    #[must_use]
    pub fn with_approver(mut self, approver: ApproverConfig) -> Self {
        let known = Arc::new(Approver { config: approver });
        remember(&mut self.approver_tokens, &known, &known.config.tokens);
        self.approvers.push(known);
        self
    }

    /// The agent a bearer token belongs to; `loopback` tells whether the client's address is.
    ///
    /// A token that is presented is judged, even where none is needed: a client that believes to be somebody is not
    /// silently taken for `local`.
    ///
    /// # Errors
    /// Why not.
    pub fn agent(&self, bearer: Option<&str>, loopback: bool, now: Timestamp) -> Result<Arc<Agent>, Refused> {
        match (bearer, &self.local) {
            (Some(token), _) => find(&self.agent_tokens, token, now),
            (None, Some(local)) if loopback => Ok(Arc::clone(local)),
            (None, _) => Err(Refused::Missing),
        }
    }

    /// The agent of that name, for stdio processes and stored sessions.
    pub fn agent_named(&self, name: &str) -> Option<Arc<Agent>> {
        self.agents.iter().find(|a| a.config.name == name).cloned()
    }

    /// Whether a token, by the hexadecimal digits of its hash, is still good for the agent of that name.
    pub fn vouches(&self, agent: &str, hash: &str, now: Timestamp) -> bool {
        let known = TokenHash::from_hex(hash).and_then(|hash| self.agent_tokens.get(&hash));
        known.is_some_and(|(who, expires)| who.config.name == agent && expires.is_none_or(|expires| now < expires))
    }

    /// All agents.
    pub fn agents(&self) -> &[Arc<Agent>] {
        &self.agents
    }

    /// The approver a token belongs to.
    ///
    /// # Errors
    /// Why not.
    pub fn approver(&self, token: &str, now: Timestamp) -> Result<Arc<Approver>, Refused> {
        find(&self.approver_tokens, token, now)
    }

    /// All approvers.
    pub fn approvers(&self) -> &[Arc<Approver>] {
        &self.approvers
    }
}

/// Who calls where nobody is configured: the person at this machine.
fn local_agent() -> AgentConfig {
    AgentConfig {
        name: "local".into(),
        group: "default".into(),
        owner: None,
        tokens: Vec::new(),
        source: Source::Interactive,
        depth: Depth::Root,
        claims: None,
    }
}

fn remember<T>(tokens: &mut Tokens<T>, who: &Arc<T>, theirs: &[TokenConfig]) {
    tokens.extend(theirs.iter().map(|token| (token.hash, (Arc::clone(who), token.expires))));
}

fn find<T>(tokens: &Tokens<T>, token: &str, now: Timestamp) -> Result<Arc<T>, Refused> {
    if token.is_empty() {
        return Err(Refused::Missing);
    }
    match tokens.get(&TokenHash::of(token)) {
        None => Err(Refused::Unknown),
        Some((_, Some(expires))) if now >= *expires => Err(Refused::Expired),
        Some((who, _)) => Ok(Arc::clone(who)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::config::PolicyConfig;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn token(text: &str, expires: Option<i64>) -> TokenConfig {
        TokenConfig { hash: TokenHash::of(text), expires: expires.map(Timestamp::from_millis) }
    }

    fn approver(name: &str, roles: Vec<Role>, groups: &[&str], token_text: &str) -> ApproverConfig {
        let groups = groups.iter().map(|g| (*g).to_owned()).collect();
        ApproverConfig { name: name.into(), roles, groups, teams: Vec::new(), tokens: vec![token(token_text, None)] }
    }

    fn directory(agents: Vec<AgentConfig>) -> Directory {
        let mut config = Config::minimal("/state".into(), PolicyConfig::default(), Vec::new());
        config.agents = agents;
        config.approvers = vec![approver("ana", vec![Role::Approver], &["default"], "ana-token")];
        Directory::new(&config)
    }

    fn claude() -> AgentConfig {
        let tokens = vec![token("good", None), token("old", Some(1_000_000)), token("new", Some(1_000_001))];
        AgentConfig { name: "claude".into(), tokens, ..local_agent() }
    }

    fn name(found: Result<Arc<Agent>, Refused>) -> Result<String, Refused> {
        found.map(|agent| agent.config.name.clone())
    }

    #[test]
    fn without_agents_loopback_is_local_and_others_are_nobody() {
        let directory = directory(Vec::new());
        assert_eq!(name(directory.agent(None, true, NOW)).unwrap(), "local");
        assert_eq!(name(directory.agent(None, false, NOW)), Err(Refused::Missing));
        assert_eq!(name(directory.agent(Some("x"), true, NOW)), Err(Refused::Unknown));
        assert_eq!(
            name(directory.agent(Some("ana-token"), true, NOW)),
            Err(Refused::Unknown),
            "an approver is no agent"
        );
        assert!(directory.agent_named("local").is_some());
    }

    #[test]
    fn with_agents_everybody_needs_a_token() {
        let directory = directory(vec![claude()]);
        assert_eq!(name(directory.agent(None, true, NOW)), Err(Refused::Missing));
        assert_eq!(name(directory.agent(Some(""), true, NOW)), Err(Refused::Missing));
        assert_eq!(name(directory.agent(Some("good"), false, NOW)).unwrap(), "claude");
        assert_eq!(name(directory.agent(Some("Good"), true, NOW)), Err(Refused::Unknown));
        assert_eq!(
            name(directory.agent(Some("old"), true, NOW)),
            Err(Refused::Expired),
            "the moment itself is too late"
        );
        assert_eq!(name(directory.agent(Some("new"), true, NOW)).unwrap(), "claude");
        assert!(directory.agent_named("local").is_none());
        let vouches = |agent: &str, token: &str| directory.vouches(agent, &TokenHash::of(token).to_hex(), NOW);
        assert!(vouches("claude", "good") && vouches("claude", "new"));
        for (agent, token) in [("claude", "old"), ("other", "good"), ("claude", "gone"), ("ana", "ana-token")] {
            assert!(!vouches(agent, token), "{agent}, {token}");
        }
    }

    #[test]
    fn an_agents_token_is_no_good_on_the_admin_side() {
        let directory = directory(vec![claude()]);
        assert_eq!(directory.approver("good", NOW).unwrap_err(), Refused::Unknown);
        assert_eq!(directory.approver("ana-token", NOW).unwrap().config.name, "ana");
    }

    #[test]
    fn an_approver_can_join_later() {
        let directory = directory(Vec::new()).with_approver(approver("bo", vec![], &["*"], "bo-token"));
        assert_eq!(directory.approvers().len(), 2);
        let bo = directory.approver("bo-token", NOW).unwrap();
        assert!(bo.covers("anything") && bo.has(Role::Viewer) && !bo.has(Role::Approver));
        let ana = directory.approver("ana-token", NOW).unwrap();
        assert!(ana.covers("default") && !ana.covers("background") && ana.has(Role::Approver));
    }
}

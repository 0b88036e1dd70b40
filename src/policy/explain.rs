//! `policy explain`: what the policy says of a call that nobody makes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use super::closed::passes;
use super::examples::nowhere;
use super::judge::{CLAIM, Judgement, judge_with_advice};
use super::limit::{Charge, Then};
use super::model::{Policy, TOOLS_CALL};
use super::request::{Request, Unread};
use crate::clock::Timestamp;
use crate::config::{NewTools, Transport, UpstreamConfig};
use crate::diagnostic::did_you_mean;
use crate::facet::Floor;
use crate::facet::path::Space;
use crate::identity::{CLAIM_KEY, Directory, Standing, Unsound};
use crate::message::Limits;
use crate::record::{FacetRecord, ToolState};

/// What must be known of an upstream to judge its calls.
#[derive(Clone)]
pub struct Executor {
    /// Its file system.
    pub space: Space,
    /// Its settings, the catalogue among them.
    pub config: UpstreamConfig,
    /// What is accepted of its tools, where that can be looked up.
    pub accepted: Option<Arc<dyn Accepted>>,
}

impl Executor {
    /// From the settings alone.
    pub fn new(config: UpstreamConfig) -> Self {
        Self { space: Space::new(&config), config, accepted: None }
    }

    /// What is known of a tool: `unknown` where it was never offered, nothing where that cannot be looked up.
    fn tool_state(&self, tool: &str) -> Option<Value> {
        let needs_nobody =
            self.config.new_tools == NewTools::Accept || matches!(self.config.transport, Transport::Workspace);
        match &self.accepted {
            Some(accepted) => Some(accepted.state(tool).map_or_else(|| json!("unknown"), |state| json!(state))),
            None if needs_nobody => Some(json!(ToolState::Accepted)),
            None => None,
        }
    }
}

/// What an operator has accepted of one upstream's tools.
pub trait Accepted: Send + Sync {
    /// How a tool that was last offered stands; none if it never was.
    fn state(&self, tool: &str) -> Option<ToolState>;
    /// The floor under its calls.
    fn floor(&self, tool: &str) -> Option<Floor>;
    /// Makes a refusal of the judgement of a call with that floor, where new tools are refused.
    fn refuse(&self, floor: &Floor, judgement: &mut Judgement);
}

/// Why a question has no answer: it is none, or names what does not exist; in a sentence that says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unanswerable(pub String);

impl fmt::Display for Unanswerable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unanswerable {}

/// Judges the call that `request` describes, as if made at `now` (config.md: "`policy explain` and `POST policy/explain`
/// take …") and answers with `verdict`, `facets`, `decided_by`, `floors`, `reasons`, `needed_for_allow`, and with
/// `shadow_verdict` and `shadow_decided_by` where something in shadow mode concerns it; `limits` says what it would take
/// of the limits of allows, which are not looked up here; `tool_state` how far an operator has accepted the tool, null where
/// that is not known here; a call that no upstream would see is the verdict `malformed`
/// with `error`. Blocks where a recursive tool is walked.
///
/// What the request leaves out: the agent's settings stand in for `group`, `source` and `depth`; the only upstream for
/// `upstream`; agent `local`, the group `default` or the only group for both; else it is taken to hold.
///
/// # Errors
/// The request is none, or names what does not exist.
pub fn explain(
    policy: &Policy,
    directory: &Directory,
    executors: &BTreeMap<String, Executor>,
    request: &str,
    limits: Limits,
    now: Timestamp,
) -> Result<Value, Unanswerable> {
    match answer(policy, directory, executors, request, limits, now) {
        Ok(answer) => Ok(answer),
        Err(Unread::Message(error)) => Ok(malformed(&error)),
        Err(Unread::Request(what)) => Err(Unanswerable(what)),
    }
}

/// The answer about what no upstream would see.
pub fn malformed(error: &str) -> Value {
    json!({
        "verdict": "malformed", "error": error,
        "facets": [], "decided_by": [], "floors": [], "reasons": [], "needed_for_allow": [],
    })
}

fn answer(
    policy: &Policy,
    directory: &Directory,
    executors: &BTreeMap<String, Executor>,
    request: &str,
    limits: Limits,
    now: Timestamp,
) -> Result<Value, Unread> {
    let mut request = Request::parse(request, limits)?;
    if request.method == TOOLS_CALL && request.tool.is_none() {
        return Err("say which call: `tool`, `method` or `raw`".to_owned().into());
    }
    if !request.tool_is_legal() {
        let name = request.tool.unwrap_or_default();
        return Ok(plain("deny", &format!("unknown tool `{}`: no MCP tool can have this name", name.escape_debug())));
    }
    if passes(request.kind(), &request.method) {
        return Ok(plain("allow", &format!("`{}` is on the closed list of methods that pass", request.method)));
    }
    let (group, unsound) = caller(policy, directory, &mut request, now)?;
    let executor = executor(executors, &mut request)?;
    let tool = request.entry(&executor.config.catalogue);
    let mut touched =
        request.touched(&tool, &executor.space).map_err(|malformed| Unread::Message(malformed.to_string()))?;
    let accepted = executor.accepted.as_ref();
    let new = request.tool.as_ref().and_then(|tool| Some((accepted?, accepted?.floor(tool)?)));
    if let (Some((_, floor)), Some(facet)) = (&new, touched.facets.first_mut()) {
        facet.floors.push(floor.clone());
    }
    let subject = request.subject(&group, &tool, Some(now));
    let (mut judgement, advice) = judge_with_advice(policy, &subject, &touched, &executor.space);
    if let Some((accepted, floor)) = &new {
        accepted.refuse(floor, &mut judgement);
    }
    if let Some(unsound) = unsound {
        judgement.refuse(CLAIM, unsound.to_string());
    }
    let limits: Vec<Value> = judgement.charges.iter().map(limit).collect();
    let records: Vec<_> = judgement.facets.into_iter().map(|facet| facet.record).collect();
    let floors: BTreeSet<_> = records.iter().flat_map(|record| &record.floors).collect();
    let facets: Vec<Value> = records.iter().zip(&advice.decided_by).map(|(record, by)| with(record, by)).collect();
    Ok(json!({
        "verdict": judgement.verdict,
        "agent": request.agent,
        "group": group,
        "upstream": request.upstream,
        "tool": request.tool,
        "tool_state": request.tool.as_ref().and_then(|tool| executor.tool_state(tool)),
        "facets": facets,
        "decided_by": judgement.decided_by,
        "floors": floors,
        "reasons": judgement.reasons,
        "needed_for_allow": advice.needed_for_allow,
        "limits": limits,
        "shadow_verdict": judgement.shadow.as_ref().map(|shadow| shadow.verdict),
        "shadow_decided_by": judgement.shadow.map(|shadow| shadow.decided_by).unwrap_or_default(),
    }))
}

/// What the call would take of a limit; `amount` is null where that cannot be told, which is over the limit.
fn limit(charge: &Charge) -> Value {
    json!({
        "rule": charge.rule,
        "limit": charge.words,
        "amount": charge.amount.as_ref().map(ToString::to_string),
        "max": charge.max.to_string(),
        "then": match charge.then {
            Then::Reject => "reject",
            Then::Ask => "ask",
        },
    })
}

/// A facet's record, with who decided it.
fn with(record: &FacetRecord, decided_by: &[String]) -> Value {
    let mut facet = json!(record);
    if let Value::Object(fields) = &mut facet {
        fields.insert("decided_by".into(), json!(decided_by));
    }
    facet
}

fn plain(verdict: &str, reason: &str) -> Value {
    let needed: &[&str] = if verdict == "allow" { &[] } else { &[reason] };
    json!({
        "verdict": verdict, "facets": [], "decided_by": [], "floors": [], "reasons": [reason],
        "needed_for_allow": needed,
    })
}

/// The group, and what the agent's settings or a signed claim in `raw` say where the request does not; and why that claim
/// is refused, if it is.
fn caller(
    policy: &Policy,
    directory: &Directory,
    request: &mut Request,
    now: Timestamp,
) -> Result<(String, Option<Unsound>), String> {
    if let Some(group) = &request.group
        && !policy.groups().any(|known| known == group)
    {
        return Err(unknown("group", group, policy.groups()));
    }
    let agent = match (&request.agent, &request.group) {
        (Some(name), _) => match directory.agent_named(name) {
            Some(agent) => Some(agent),
            None if request.group.is_some() => None,
            None => {
                return Err(unknown("agent", name, directory.agents().iter().map(|agent| agent.config.name.as_str())));
            }
        },
        (None, Some(_)) => None,
        (None, None) => directory.agent_named("local"),
    };
    if let Some(agent) = agent {
        let config = &agent.config;
        request.agent.get_or_insert_with(|| config.name.clone());
        let settings = Standing { source: config.source, depth: config.depth };
        let standing = agent.standing(request.params.as_ref(), now);
        let Standing { source, depth } = standing.as_ref().copied().unwrap_or(settings);
        request.source.get_or_insert(source);
        request.depth.get_or_insert(depth);
        return Ok((request.group.clone().unwrap_or_else(|| config.group.clone()), standing.err()));
    }
    let meta = request.params.as_ref().and_then(|params| params.get("_meta"));
    if meta.is_some_and(|meta| meta.get(CLAIM_KEY).is_some()) {
        return Err("`raw` has a signed claim: say whose, with `agent`".to_owned());
    }
    let groups: Vec<&str> = policy.groups().collect();
    let group = match (&request.group, groups.as_slice()) {
        (Some(group), _) => group.clone(),
        (None, [only]) => (*only).to_owned(),
        (None, groups) if groups.contains(&"default") => "default".into(),
        (None, groups) => return Err(format!("say who calls: an `agent`, or a `group` ({})", groups.join(", "))),
    };
    Ok((group, None))
}

/// The upstream, or a nameless one without files where none is configured.
fn executor(executors: &BTreeMap<String, Executor>, request: &mut Request) -> Result<Executor, String> {
    let ids = || executors.keys().map(String::as_str);
    if let Some(id) = &request.upstream {
        return executors.get(id).cloned().ok_or_else(|| unknown("upstream", id, ids()));
    }
    let mut all = executors.iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(Executor::new(nowhere())),
        (Some((id, executor)), None) => {
            request.upstream = Some(id.clone());
            Ok(executor.clone())
        }
        _ => Err(format!("say which `upstream`: there are {}", ids().collect::<Vec<_>>().join(", "))),
    }
}

/// That nothing has a name, with the nearest name or all there are.
fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    let help = match did_you_mean(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => "none is configured".into(),
        None => format!("there is {}", known.join(", ")),
    };
    format!("there is no {what} `{}`; {help}", name.escape_debug())
}

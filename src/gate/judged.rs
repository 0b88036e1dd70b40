//! From a client's request to the policy's word on it.

use std::sync::Arc;

use super::Executor;
use super::tools::Definition;
use crate::config::ForwardPaths;
use crate::facet::{self, FacetKind, Malformed, Touched};
use crate::identity::Agent;
use crate::message::json::Kind;
use crate::message::{Message, Span, Value};
use crate::policy::{Judgement, Policy, Subject, judge};

/// What a request is to the policy.
#[derive(Clone, Debug)]
pub enum Target {
    /// `tools/call` of a listed tool.
    Tool {
        /// Its name.
        name: String,
        /// Its definition.
        definition: Arc<Definition>,
    },
    /// `resources/read`, `resources/subscribe`.
    Resource {
        /// The URI.
        uri: String,
    },
    /// Any other method outside the closed list.
    Method,
}

impl Target {
    /// The tool's name.
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Tool { name, .. } => Some(name),
            Self::Resource { .. } | Self::Method => None,
        }
    }

    /// The tool's definition.
    pub fn definition(&self) -> Option<&Arc<Definition>> {
        match self {
            Self::Tool { definition, .. } => Some(definition),
            Self::Resource { .. } | Self::Method => None,
        }
    }
}

/// A request, judged by one version of the policy.
pub struct Judged {
    /// What it touches.
    pub touched: Arc<Touched>,
    /// What the policy says.
    pub judgement: Judgement,
    /// The policy's version.
    pub policy: String,
}

/// Judges a request now: file system and policy as they are.
pub async fn judged(
    policy: Arc<Policy>,
    executor: &Arc<Executor>,
    agent: &Arc<Agent>,
    target: &Target,
    message: &Arc<Message>,
) -> Result<Judged, Malformed> {
    let touched = Arc::new(match target {
        Target::Tool { definition, .. } => facet::extract(&definition.entry, &executor.space, arguments(message))?,
        Target::Resource { uri } => facet::extract_resource(message.method(), &executor.space, uri)?,
        Target::Method => Touched {
            facets: vec![facet::Facet { kind: FacetKind::Method(message.method().to_owned()), floors: Vec::new() }],
            strays: Vec::new(),
        },
    });
    let version = policy.version.clone();
    let work = {
        let (executor, agent, target) = (Arc::clone(executor), Arc::clone(agent), target.clone());
        let (message, touched) = (Arc::clone(message), Arc::clone(&touched));
        move || say(&policy, &executor, &agent, &target, &message, &touched)
    };
    // A walk below a folder may take 50 ms: not on a thread that serves others.
    let judgement = if crate::policy::judge::needs_walk(&touched) {
        match tokio::task::spawn_blocking(work).await {
            Ok(judgement) => judgement,
            Err(_) => {
                return Err(Malformed { pointer: String::new(), what: "the call could not be judged".to_owned() });
            }
        }
    } else {
        work()
    };
    Ok(Judged { touched, judgement, policy: version })
}

fn say(
    policy: &Policy,
    executor: &Executor,
    agent: &Agent,
    target: &Target,
    message: &Message,
    touched: &Touched,
) -> Judgement {
    let subject = Subject {
        group: &agent.config.group,
        agent: Some(&agent.config.name),
        source: Some(agent.config.source),
        depth: Some(agent.config.depth),
        upstream: Some(&executor.config.id),
        tool: target.tool(),
        category: target.definition().and_then(|d| d.entry.category.as_deref()),
        method: message.method(),
        arguments: match target {
            Target::Tool { .. } => arguments(message),
            Target::Resource { .. } | Target::Method => message.params_tree(),
        },
    };
    judge(policy, &subject, touched, &executor.space)
}

/// The `arguments` of a tool call.
pub fn arguments(message: &Message) -> Option<&Value> {
    message.params_tree().and_then(|params| params.get("arguments"))
}

/// The value at a JSON pointer (RFC 6901).
fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(value, |value, segment| {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        match &value.kind {
            Kind::Array(elements) => elements.get(segment.parse::<usize>().ok()?),
            _ => value.get(&segment),
        }
    })
}

/// Where canonical paths are to stand in the forwarded bytes (`forward_paths: canonical`).
pub fn canonical_paths(executor: &Executor, message: &Message, touched: &Touched) -> Vec<(Span, String)> {
    if executor.config.forward_paths != ForwardPaths::Canonical {
        return Vec::new();
    }
    let Some(arguments) = arguments(message) else { return Vec::new() };
    touched
        .facets
        .iter()
        .filter_map(|facet| match &facet.kind {
            FacetKind::Path(path) => {
                let value = at(arguments, &path.pointer)?;
                value.as_str()?;
                let text = serde_json::Value::String(path.canonical.clone()?).to_string();
                Some((value.span, text))
            }
            _ => None,
        })
        .collect()
}

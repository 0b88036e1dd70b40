//! From a client's request to the policy's word on it.

use std::sync::Arc;

use super::beside::LARGE;
use super::grants::Active;
use super::tools::Definition;
use super::{Executor, diff, roots, scripts};
use crate::approval::Script;
use crate::clock::Timestamp;
use crate::config::ForwardPaths;
use crate::facet::{self, Facet, FacetKind, Floor, Malformed, Touched};
use crate::identity::{Agent, Standing, Unsound};
use crate::message::json::Kind;
use crate::message::{Message, Span, Value};
use crate::policy::{self, CLAIM, Claimed, Judgement, Offer, Policy, Subject, judge, needs_walk};
use crate::record::Verdict;

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
    pub touched: Touched,
    /// Whose it is, as configured when it was judged.
    pub agent: Arc<Agent>,
    /// What the policy says.
    pub judgement: Judgement,
    /// For an ask: what it would run as a script, and the file whose change people are shown.
    pub scripts: Vec<Script>,
    /// For an ask: what may be remembered of it.
    pub offers: Vec<Offer>,
    /// For an ask: the grants that would lift it, and the judgement then.
    pub lifted: Vec<(Arc<Active>, Judgement)>,
    /// The policy's version.
    pub policy: String,
    /// Who calls: by a signed claim, or the agent's settings.
    pub standing: Standing,
}

/// Judges a request now: file system and policy as they are, `now` for what has a date; `received` is when its client sent
/// it, at which a signed claim must be good. Of the grants, those that lift an ask are told.
#[allow(clippy::too_many_arguments, reason = "each is a side of the one question")]
pub async fn judged(
    policy: Arc<Policy>,
    executor: &Arc<Executor>,
    agent: &Arc<Agent>,
    target: &Target,
    message: &Arc<Message>,
    now: Timestamp,
    received: Timestamp,
    grants: &[Arc<Active>],
) -> Result<Judged, Malformed> {
    let standing = agent.standing(message.params_tree(), received);
    let request = Request {
        standing,
        policy,
        executor: Arc::clone(executor),
        agent: Arc::clone(agent),
        target: target.clone(),
        message: Arc::clone(message),
        grants: grants.to_vec(),
        now,
    };
    // A file whose change would be shown is read.
    let is_slow = |definition: &Arc<Definition>| definition.entry.is_parsed() || definition.entry.writes.is_some();
    if target.definition().is_some_and(is_slow) || message.bytes().len() >= LARGE {
        return aside(move || Ok(request.say(request.touched()?))).await;
    }
    let touched = request.touched()?;
    // A walk below a folder may take 50 ms.
    if needs_walk(&touched) {
        return aside(move || Ok(request.say(touched))).await;
    }
    Ok(request.say(touched))
}

/// Runs what may take long on a thread that serves nobody else. The hop costs 28 µs.
async fn aside(work: impl FnOnce() -> Result<Judged, Malformed> + Send + 'static) -> Result<Judged, Malformed> {
    let broken = |_| Malformed { pointer: String::new(), what: "the call could not be judged".to_owned() };
    tokio::task::spawn_blocking(work).await.map_err(broken)?
}

/// All that a judgement looks at.
struct Request {
    standing: Result<Standing, Unsound>,
    policy: Arc<Policy>,
    executor: Arc<Executor>,
    agent: Arc<Agent>,
    target: Target,
    message: Arc<Message>,
    grants: Vec<Arc<Active>>,
    now: Timestamp,
}

impl Request {
    fn touched(&self) -> Result<Touched, Malformed> {
        let (space, message) = (&self.executor.space, &self.message);
        roots::check(&self.executor, message.params_tree())?;
        let mut touched = match &self.target {
            Target::Tool { definition, .. } => facet::extract(&definition.entry, space, arguments(message)),
            Target::Resource { uri } => facet::extract_resource(message.method(), space, uri),
            Target::Method => Ok(Touched {
                facets: vec![Facet { kind: FacetKind::Method(message.method().to_owned()), floors: Vec::new() }],
                strays: Vec::new(),
                ..Touched::default()
            }),
        }?;
        if let Some(facet) = touched.facets.first_mut() {
            facet.floors.extend(self.new_tool());
        }
        Ok(touched)
    }

    /// The floor of a tool that no operator has accepted as it is defined.
    fn new_tool(&self) -> Option<Floor> {
        self.executor.pins.floor(self.target.tool()?, &self.target.definition()?.digest)
    }

    fn say(&self, touched: Touched) -> Judged {
        let (agent, message) = (&self.agent.config, &self.message);
        let settings = Standing { source: agent.source, depth: agent.depth };
        let standing = self.standing.as_ref().copied().unwrap_or(settings);
        let subject = Subject {
            group: &agent.group,
            agent: Some(&agent.name),
            source: Some(standing.source),
            depth: Some(standing.depth),
            claimed: Claimed::of(message.params_tree()),
            at: Some(self.now),
            upstream: Some(&self.executor.config.id),
            tool: self.target.tool(),
            category: self.target.definition().and_then(|d| d.entry.category.as_deref()),
            method: message.method(),
            arguments: match self.target {
                Target::Tool { .. } => arguments(message),
                Target::Resource { .. } | Target::Method => message.params_tree(),
            },
            recorded: None,
        };
        let mut judgement = judge(&self.policy, &subject, &touched, &self.executor.space);
        if let Some(new) = self.new_tool() {
            self.executor.pins.refuse(&new, &mut judgement);
        }
        if let Err(unsound) = &self.standing {
            judgement.refuse(CLAIM, unsound.to_string());
        }
        let mut scripts = Vec::new();
        if judgement.verdict == Verdict::Ask {
            scripts = scripts::read(&touched);
            let shown = self.target.definition().and_then(|definition| diff::bound(&definition.entry, &touched));
            scripts.extend(shown);
        }
        let (mut offers, mut lifted) = (Vec::new(), Vec::new());
        // An ask of the gateway's own, or one that a walk found, is answered for the very call alone.
        if judgement.verdict == Verdict::Ask {
            let space = &self.executor.space;
            offers = policy::offers(&self.policy, &subject, &touched, space, &judgement);
            if needs_walk(&touched) {
                offers.truncate(1);
            } else {
                let lifting = self.grants.iter().filter_map(|active| {
                    let lift = active.lift().filter(|_| active.is_bound(&self.policy, &agent.group))?;
                    let judgement = policy::lifted(&self.policy, &subject, &touched, space, lift)?;
                    Some((Arc::clone(active), judgement))
                });
                lifted = lifting.collect();
            }
        }
        Judged {
            touched,
            agent: Arc::clone(&self.agent),
            judgement,
            scripts,
            offers,
            lifted,
            policy: self.policy.version.clone(),
            standing,
        }
    }
}

/// The `arguments` of a tool call.
pub fn arguments(message: &Message) -> Option<&Value> {
    message.params_tree().and_then(|params| params.get("arguments"))
}

/// The value at a JSON pointer (RFC 6901).
pub fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
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

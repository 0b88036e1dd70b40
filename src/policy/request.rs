//! One call as a person describes it: for `policy explain` and for the examples of rules.

use bytes::Bytes;

use super::claimed::Claimed;
use super::judge::Subject;
use super::model::TOOLS_CALL;
use crate::catalog::{Catalogue, Tool};
use crate::clock::Timestamp;
use crate::diagnostic::did_you_mean;
use crate::facet::path::Space;
use crate::facet::{Facet, FacetKind, Malformed, Touched, extract, extract_resource};
use crate::message::json::{Kind, Limits};
use crate::message::{Json, Kind as MessageKind, Message, Value};
use crate::record::{Depth, Source};

/// What the request says; what it leaves out is `None`.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub agent: Option<String>,
    pub group: Option<String>,
    pub source: Option<Source>,
    pub depth: Option<Depth>,
    /// By the `_meta` of `raw`.
    pub claimed: Claimed,
    /// The params of `raw`, where a signed claim may be.
    pub params: Option<Value>,
    pub upstream: Option<String>,
    pub tool: Option<String>,
    pub method: String,
    pub arguments: Option<Value>,
}

/// Why no request was read.
#[derive(Debug)]
pub(super) enum Unread {
    /// The request itself: a slip of whoever wrote it.
    Request(String),
    /// The message in `raw`, which no client could send.
    Message(String),
}

impl From<String> for Unread {
    fn from(what: String) -> Self {
        Self::Request(what)
    }
}

/// A request without its arguments.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only whether it reads counts")]
struct Outer {
    agent: Option<String>,
    group: Option<String>,
    source: Option<String>,
    depth: Option<String>,
    session: Option<String>,
    upstream: Option<String>,
    tool: Option<String>,
    #[serde(default)]
    arguments: serde::de::IgnoredAny,
    method: Option<String>,
    raw: Option<String>,
}

/// The fields of a request.
pub(super) const FIELDS: [&str; 10] =
    ["agent", "group", "source", "depth", "session", "upstream", "tool", "arguments", "method", "raw"];

impl Request {
    /// Reads the JSON of config.md, strictly.
    ///
    /// # Errors
    /// What is malformed, in a sentence.
    pub fn parse(text: &str, limits: Limits) -> Result<Self, Unread> {
        // Arguments lie one level deeper in a whole message.
        let outer = Limits { max_depth: limits.max_depth.saturating_sub(1), ..limits };
        let json = Json::parse(Bytes::copy_from_slice(text.as_bytes()), outer).map_err(|refused| {
            match serde_json::from_str::<serde::de::IgnoredAny>(text) {
                Err(error) => Unread::Request(format!("this is not JSON: {error}")),
                // An argument given twice, say: no client could send it. What stands beside the arguments is ours.
                Ok(_) => match serde_json::from_str::<Outer>(text) {
                    Err(error) => Unread::Request(error.to_string()),
                    Ok(_) => Unread::Message(refused.to_string()),
                },
            }
        })?;
        let root = json.root();
        if !matches!(root.kind, Kind::Object(_)) {
            return Err("the request is not an object".to_owned().into());
        }
        if let Some(member) = root.members().iter().find(|member| !FIELDS.contains(&&*member.key)) {
            let near = did_you_mean(&member.key, FIELDS).map(|near| format!("; did you mean `{near}`?"));
            return Err(format!("unknown field `{}`{}", member.key, near.unwrap_or_default()).into());
        }
        let word = |name: &str| match root.get(name).map(|value| (&value.kind, value.as_str())) {
            None | Some((Kind::Null, _)) => Ok(None),
            Some((_, Some(text))) => Ok(Some(text.to_owned())),
            Some(_) => Err(format!("`{name}` is not a text")),
        };
        let call = match word("raw")? {
            Some(_) if ["tool", "arguments", "method"].iter().any(|name| root.get(name).is_some()) => {
                return Err("`raw` is the whole message: leave out `tool`, `arguments` and `method`".to_owned().into());
            }
            Some(raw) => {
                Self::message(raw, limits).and_then(|call| call.check().map(|()| call)).map_err(Unread::Message)?
            }
            None => Self {
                tool: word("tool")?,
                method: word("method")?.unwrap_or_else(|| TOOLS_CALL.into()),
                arguments: root.get("arguments").cloned(),
                ..Self::default()
            },
        };
        call.check()?;
        Ok(Self {
            agent: word("agent")?,
            group: word("group")?,
            source: choice(
                "source",
                word("source")?,
                &[("interactive", Source::Interactive), ("background", Source::Background)],
            )?,
            depth: choice("depth", word("depth")?, &[("root", Depth::Root), ("sub", Depth::Sub)])?,
            upstream: word("upstream")?,
            ..call
        })
    }

    /// A whole JSON-RPC text.
    fn message(raw: String, limits: Limits) -> Result<Self, String> {
        let message = Message::strict(raw.into(), limits).map_err(|malformed| malformed.what)?;
        let params = message.params_tree();
        let method = message.method().to_owned();
        let (tool, arguments) = if method == TOOLS_CALL {
            let name = params.and_then(|params| params.get("name")).and_then(Value::as_str);
            let Some(name) = name else { return Err("`params.name` is missing".into()) };
            (Some(name.to_owned()), params.and_then(|params| params.get("arguments")).cloned())
        } else {
            (None, params.cloned())
        };
        Ok(Self { tool, method, arguments, claimed: Claimed::of(params), params: params.cloned(), ..Self::default() })
    }

    fn check(&self) -> Result<(), String> {
        match &self.arguments {
            Some(value) if !matches!(value.kind, Kind::Object(_)) => Err("the arguments are not an object".into()),
            _ if self.method != TOOLS_CALL && self.tool.is_some() => {
                Err(format!("`{}` has no tool; only `{TOOLS_CALL}` has", self.method))
            }
            _ => Ok(()),
        }
    }

    /// What its message is: a notification goes by its name.
    pub fn kind(&self) -> MessageKind {
        if self.method.starts_with("notifications/") { MessageKind::Notification } else { MessageKind::Request }
    }

    /// Whether the tool's name is one that MCP allows; another is answered as unknown.
    pub fn tool_is_legal(&self) -> bool {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        self.tool.as_ref().is_none_or(|name| (1..=128).contains(&name.len()) && name.chars().all(legal))
    }

    /// The catalogue's entry for the tool.
    pub fn entry(&self, catalogue: &Catalogue) -> Tool {
        self.tool.as_ref().map(|name| catalogue.tool(name, None)).unwrap_or_default()
    }

    /// What the call would touch.
    ///
    /// # Errors
    /// Arguments that no upstream may see.
    pub fn touched(&self, tool: &Tool, space: &Space) -> Result<Touched, Malformed> {
        match self.method.as_str() {
            TOOLS_CALL => extract(tool, space, self.arguments.as_ref()),
            "resources/read" | "resources/subscribe" => {
                let uri = self.arguments.as_ref().and_then(|arguments| arguments.get("uri")).and_then(Value::as_str);
                let missing = || Malformed { pointer: "/uri".into(), what: "is missing".into() };
                extract_resource(&self.method, space, uri.ok_or_else(missing)?)
            }
            method => {
                let facet = Facet { kind: FacetKind::Method(method.to_owned()), floors: Vec::new() };
                Ok(Touched { facets: vec![facet], strays: Vec::new(), ..Touched::default() })
            }
        }
    }

    /// Who calls what, and when; the request's own words come before those of `agent`.
    pub fn subject<'a>(&'a self, group: &'a str, tool: &'a Tool, at: Option<Timestamp>) -> Subject<'a> {
        Subject {
            group,
            agent: self.agent.as_deref(),
            source: self.source,
            depth: self.depth,
            claimed: self.claimed,
            at,
            upstream: self.upstream.as_deref(),
            tool: self.tool.as_deref(),
            category: tool.category.as_deref(),
            method: &self.method,
            arguments: self.arguments.as_ref(),
            recorded: None,
        }
    }
}

fn choice<T: Copy>(name: &str, word: Option<String>, choices: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(word) = word else { return Ok(None) };
    let names = || choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = choices.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    found.map(Some).ok_or_else(|| format!("`{name}`: `{word}` is none of {}", names()))
}

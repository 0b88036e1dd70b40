//! One call as examples and tests write it: a shell text, or what `policy explain` takes.

use std::collections::BTreeMap;

use super::model::TOOLS_CALL;
use super::request::{self, Request};
use crate::catalog::{Catalogue, Tool};
use crate::config::yaml::{Kind, Node, Report};
use crate::diagnostic::did_you_mean;
use crate::facet::path::Space;
use crate::facet::{Touched, extract_shell};
use crate::message::Limits;

/// What the tools of configured upstreams take, by upstream.
pub(super) type Catalogues = BTreeMap<String, Catalogue>;

/// A call, and what it would touch.
#[derive(Debug)]
pub(super) struct Called {
    pub request: Request,
    pub tool: Tool,
    pub touched: Touched,
}

impl Called {
    /// Reads a call; in it, `$ROOT` stands for `root`, where there is one. None, and an error, where nobody can tell what
    /// is meant; the inner error says why the gateway would answer the call as malformed.
    pub fn read(
        node: &Node,
        space: &Space,
        root: Option<&str>,
        catalogues: &Catalogues,
        report: &mut Report,
    ) -> Option<Result<Self, String>> {
        if node.scalar().is_some() {
            let text = node.text(report)?;
            return Some(Self::command(&root.map_or_else(|| text.into(), |root| with_root(text, root)), space));
        }
        if let Kind::Mapping(entries) = &node.kind {
            let mut known = true;
            for entry in entries.iter().filter(|entry| !request::FIELDS.contains(&&*entry.key)) {
                let near = did_you_mean(&entry.key, request::FIELDS).map(|near| format!("did you mean `{near}`?"));
                let help = match &*entry.key {
                    "name" => "the tool's name is `tool`".into(),
                    _ => near.unwrap_or_else(|| format!("it has {}", request::FIELDS.join(", "))),
                };
                report.error(entry.at, format!("unknown field `{}` in a call", entry.key)).help(&*help);
                known = false;
            }
            if !known {
                return None;
            }
        }
        let text = node.json(report)?;
        let text = root.map_or_else(|| text.clone(), |root| with_root(&text, &json_text(root)));
        let request = match Request::parse(&text, Limits::default()) {
            Ok(request) => request,
            Err(request::Unread::Message(what)) => return Some(Err(what)),
            Err(request::Unread::Request(what)) => {
                report
                    .error(node.at, format!("no call can be read here: {what}"))
                    .help("write what `policy explain` takes (`{ tool: …, arguments: … }`), or a shell command");
                return None;
            }
        };
        let tool = request.entry(&catalogue(&request, catalogues));
        let touched = request.touched(&tool, space);
        Some(touched.map(|touched| Self { request, tool, touched }).map_err(|malformed| malformed.to_string()))
    }

    /// A shell text, whatever tool it is given to.
    fn command(text: &str, space: &Space) -> Result<Self, String> {
        let request = Request { method: TOOLS_CALL.into(), ..Request::default() };
        let touched = extract_shell(space, text).map_err(|malformed| malformed.to_string())?;
        Ok(Self { request, tool: Tool::default(), touched })
    }
}

/// `$ROOT`, `${ROOT}` and `${ROOT##*/}` (its last name) replaced, and nothing else.
pub(super) fn with_root(text: &str, root: &str) -> String {
    let name = root.rsplit('/').next().unwrap_or_default();
    text.replace("${ROOT##*/}", name).replace("${ROOT}", root).replace("$ROOT", root)
}

/// A text as it stands between the quotes of a JSON string.
fn json_text(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.trim_matches('"').to_owned()
}

/// The first catalogue that knows the tool: of the upstreams that are configured (the one that is named, if one is), then
/// of the built-in ones that which the upstream is called after, then the workspace's.
fn catalogue(request: &Request, catalogues: &Catalogues) -> Catalogue {
    let is_meant = |id: &String| request.upstream.as_ref().is_none_or(|named| named == id);
    let mut configured = catalogues.iter().filter(|(id, _)| is_meant(id)).map(|(_, catalogue)| catalogue);
    let knows = |catalogue: &&Catalogue| request.tool.as_ref().is_some_and(|tool| catalogue.tools.contains_key(tool));
    let mut names = Catalogue::builtin_names();
    names.sort_by_key(|name| (request.upstream.as_deref() != Some(name), *name != "workspace", *name));
    let mut builtin = names.into_iter().filter_map(Catalogue::builtin);
    configured.find(knows).or_else(|| builtin.find(knows)).cloned().unwrap_or_default()
}

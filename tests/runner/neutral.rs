//! The neutral policy of a case in our language, by the table of `tests/cases/README.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use portcullis::config::{FileSystem, ForwardPaths, NewTools, OnDisconnect, Os, Transport, UpstreamConfig};
use serde_json::{Map, Value, json};

use super::fixture;

/// What a case's policy becomes.
pub struct Translated {
    /// The policy file.
    pub yaml: String,
    /// Built-in guardrails that are switched off.
    pub disable: Vec<String>,
    /// The ids of the upstreams: the case's servers, those that its tool names have before a dot, or the one.
    pub upstreams: BTreeSet<String>,
    /// Whether tools are called by joined names, `{upstream}__{tool}`, as at `/mcp`.
    joined: bool,
    /// The neutral policy.
    pub settings: Map<String, Value>,
}

impl Translated {
    /// The pair (upstream, tool) that a name in a call means; none where it is at no configured upstream.
    pub fn addressed<'a>(&'a self, name: &'a str) -> Option<(&'a str, &'a str)> {
        let known = |(upstream, _): &(&str, &str)| self.upstreams.contains(*upstream);
        if self.joined {
            return name.split_once("__").filter(known);
        }
        Some(name.split_once('.').filter(known).unwrap_or((UPSTREAM, name)))
    }
}

/// The upstream's name where a case names none.
pub const UPSTREAM: &str = "fixture";

/// Keys that have a meaning here; a case with another is skipped.
const KNOWN: [&str; 16] = [
    "workdir",
    "allow_prefixes",
    "deny_prefixes",
    "deny_components",
    "allow_globs",
    "outside_workdir",
    "tools",
    "allow_tools",
    "deny_tools",
    "default",
    "upstream_os",
    "upstream_case_insensitive",
    "path_map",
    "upstream_cwd",
    "servers",
    "command_rules",
];

/// Translates a policy; `Err` names the key that has no translation.
pub fn translate(settings: Map<String, Value>) -> Result<Translated, String> {
    if let Some(unknown) = settings.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(unknown.clone());
    }
    let mut tools = settings.get("tools").and_then(Value::as_object).cloned().unwrap_or_default();
    for verdict in ["allow", "deny", "ask"] {
        if let Some(expressions) = tools.remove(&format!("{verdict}_regex")) {
            let mut names = list(tools.get(verdict));
            for expression in list(Some(&expressions)) {
                names.push(glob_of(&expression).ok_or_else(|| format!("tools.{verdict}_regex: {expression}"))?);
            }
            tools.insert(verdict.to_owned(), json!(names));
        }
    }
    if let Some(unknown) = tools.keys().find(|key| !["allow", "deny", "ask", "default"].contains(&key.as_str())) {
        return Err(format!("tools.{unknown}"));
    }
    let commands = settings.get("command_rules").and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(unknown) = commands.keys().find(|key| !["allow", "deny", "ask", "default"].contains(&key.as_str())) {
        return Err(format!("command_rules.{unknown}"));
    }
    let mut disable = vec!["runs-later".to_owned()];
    if settings.contains_key("deny_prefixes") {
        disable.push("secrets".to_owned());
    }
    let yaml = json!({
        "version": 1,
        "guardrails": guardrails(&settings),
        "groups": { "default": { "otherwise": otherwise(&settings, &tools, &commands), "rules": rules(&settings, &tools, &commands) } },
    });
    let joined = settings.contains_key("servers");
    let dotted = ["allow", "deny", "ask"].iter().flat_map(|key| list(tools.get(*key))).filter_map(|name| dot(&name));
    let mut upstreams: BTreeSet<String> = dotted.map(|(upstream, _)| upstream).collect();
    // An id that the configuration would refuse cannot be called.
    upstreams.extend(list(settings.get("servers")).into_iter().filter(|id| legal_id(id)));
    if !joined {
        upstreams.insert(UPSTREAM.to_owned());
    }
    let yaml = serde_json::to_string_pretty(&yaml).unwrap_or_default();
    Ok(Translated { yaml, disable, upstreams, joined, settings })
}

/// An upstream as the cases suppose it: the root shared with the gateway, the fixture's tools.
pub fn upstream(id: &str, settings: &Map<String, Value>, root: &Path) -> UpstreamConfig {
    let text = |key: &str| settings.get(key).and_then(Value::as_str).map(str::to_owned);
    let map = settings.get("path_map").and_then(Value::as_object).cloned().unwrap_or_default();
    UpstreamConfig {
        id: id.to_owned(),
        transport: Transport::Workspace,
        root: text("workdir").map_or_else(|| root.to_owned(), PathBuf::from),
        cwd: text("upstream_cwd").or_else(|| text("workdir")).map_or_else(|| root.to_owned(), PathBuf::from),
        filesystem: FileSystem::Shared,
        os: match text("upstream_os").as_deref() {
            Some("windows") => Os::Windows,
            Some("macos" | "darwin") => Os::Macos,
            _ => Os::Linux,
        },
        case_insensitive: settings.get("upstream_case_insensitive").and_then(Value::as_bool).unwrap_or_default(),
        path_map: map.into_iter().filter_map(|(from, to)| Some((from, PathBuf::from(to.as_str()?)))).collect(),
        expands_tilde: false,
        expands_env: false,
        forward_paths: ForwardPaths::Canonical,
        hard_links_ask: true,
        catalogue: fixture::catalogue(),
        on_disconnect: OnDisconnect::Auto,
        new_tools: NewTools::Accept,
        accept_first_list: false,
        timeout: Duration::from_secs(10),
        timeouts: Vec::new(),
    }
}

fn guardrails(policy: &Map<String, Value>) -> Vec<Value> {
    let components = list(policy.get("deny_components"));
    let prefixes = list(policy.get("deny_prefixes"));
    let mut out: Vec<Value> = Vec::new();
    if !prefixes.is_empty() {
        let paths: Vec<String> = prefixes.iter().map(|p| folder(p)).collect();
        out.push(json!({ "name": "denied-prefixes", "verdict": "deny", "path": paths }));
    }
    // `secrets` at any depth is the built-in guardrail, which stays on.
    let others: Vec<String> = components.iter().filter(|c| *c != "secrets").map(|c| format!("**/{c}/")).collect();
    if !others.is_empty() {
        out.push(json!({ "name": "denied-components", "verdict": "deny", "path": others }));
    }
    out
}

fn rules(policy: &Map<String, Value>, tools: &Map<String, Value>, commands: &Map<String, Value>) -> Vec<Value> {
    let mut out = Vec::new();
    let mut paths: Vec<String> = list(policy.get("allow_prefixes")).iter().map(|p| folder(p)).collect();
    paths.extend(list(policy.get("allow_globs")));
    let allow_tools = list(policy.get("allow_tools"));
    if !paths.is_empty() {
        let tool = if allow_tools.is_empty() { json!("@any") } else { json!(allow_tools) };
        out.push(json!({ "name": "allowed-paths", "verdict": "allow", "tool": tool, "path": paths }));
    } else if !allow_tools.is_empty() {
        out.push(json!({ "name": "allowed-tools", "verdict": "allow", "tool": allow_tools }));
    }
    let deny_tools = list(policy.get("deny_tools"));
    if !deny_tools.is_empty() {
        out.push(json!({ "name": "denied-tools", "verdict": "deny", "tool": deny_tools }));
    }
    if let Some(verdict) = policy.get("outside_workdir").filter(|v| *v != "allow") {
        out.push(json!({ "name": "outside", "verdict": verdict, "path": "/", "except": [{ "path": "./" }] }));
    }
    for verdict in ["allow", "deny", "ask"] {
        for name in list(tools.get(verdict)) {
            out.push(match dot(&name) {
                Some((upstream, tool)) => json!({ "verdict": verdict, "upstream": upstream, "tool": tool }),
                None => json!({ "verdict": verdict, "tool": name }),
            });
        }
        out.extend(list(commands.get(verdict)).iter().map(|entry| command_rule(verdict, entry)));
    }
    out
}

/// `sed -n`: the words, then options that must be present.
fn command_rule(verdict: &str, entry: &str) -> Value {
    let (options, words): (Vec<&str>, Vec<&str>) = entry.split_whitespace().partition(|word| word.starts_with('-'));
    let mut rule = json!({ "verdict": verdict, "command": words.join(" ") });
    if !options.is_empty() {
        rule["option"] = json!(options);
    }
    rule
}

fn otherwise(policy: &Map<String, Value>, tools: &Map<String, Value>, commands: &Map<String, Value>) -> Value {
    let said = policy.get("default").or_else(|| tools.get("default")).or_else(|| commands.get("default"));
    said.cloned().unwrap_or_else(|| json!("ask"))
}

/// `upstream.tool` as the pair, where the first part can be an upstream's id.
fn dot(name: &str) -> Option<(String, String)> {
    let (upstream, tool) = name.split_once('.')?;
    (legal_id(upstream) && !tool.is_empty()).then(|| (upstream.to_owned(), tool.to_owned()))
}

fn legal_id(id: &str) -> bool {
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=32).contains(&id.len()) && id.chars().all(legal)
}

/// The name or glob that an expression over whole names stands for; none where our names cannot say it.
fn glob_of(expression: &str) -> Option<String> {
    let open_start = if expression.starts_with('^') { "" } else { "*" };
    let open_end = if expression.ends_with('$') { "" } else { "*" };
    let inner = expression.trim_start_matches('^').trim_end_matches('$');
    let inner = inner.replace(".*", "*").replace("\\.", "\u{1}").replace('.', "?").replace('\u{1}', ".");
    let plain = inner.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '*' | '?'));
    plain.then(|| format!("{open_start}{inner}{open_end}"))
}

fn folder(prefix: &str) -> String {
    format!("{}/", prefix.trim_end_matches('/'))
}

fn list(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(many)) => many.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

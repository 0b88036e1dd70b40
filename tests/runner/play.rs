//! Plays one case in process: the policy is loaded, the message read strictly, its facets judged.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use portcullis::clock::Clock;
use portcullis::config::PolicyConfig;
use portcullis::identity::Directory;
use portcullis::message::{Limits, Message};
use portcullis::policy::{Executor, Policy, explain, load};
use serde_json::{Map, Value, json};

use super::case::Case;
use super::live;
use super::neutral::{self, Translated, UPSTREAM};
use super::steps;
use super::tree::{CannotMount, Tree};

/// What came of a case.
pub enum Played {
    /// An answer, and what decided it.
    Said { got: String, detail: String },
    /// It was not played.
    Skipped(String),
    /// The case or the runner is at fault.
    Broken(String),
}

/// Plays a case on a tree of its own.
pub fn play(case: &Case) -> Played {
    match Tree::new(&case.setup) {
        Ok(Ok(tree)) => on_tree(case, &tree).unwrap_or_else(|early| early),
        Ok(Err(CannotMount(why))) => Played::Skipped(why),
        Err(what) => Played::Broken(what),
    }
}

/// The word for a message or a policy that is refused unread.
pub const MALFORMED: &str = "reject-as-malformed";

fn malformed(what: impl ToString) -> Played {
    Played::Said { got: MALFORMED.to_owned(), detail: what.to_string() }
}

/// The policy of a case, in force.
pub struct InForce {
    pub config: PolicyConfig,
    pub translated: Translated,
    policy: Policy,
    pub file: PathBuf,
}

/// `Err` is an answer that came early.
fn on_tree(case: &Case, tree: &Tree) -> Result<Played, Played> {
    let in_force = policy_of(case, tree)?;
    if !case.steps.is_empty() {
        return Ok(steps::play(case, tree, in_force));
    }
    let (upstream, bytes) = message_of(case, tree, &in_force)?;
    let limits = Limits::default();
    let raw = match String::from_utf8(bytes) {
        Ok(raw) => raw,
        // `explain` takes a text; what is none goes to the same parser by itself.
        Err(bytes) => {
            return Err(match Message::strict(Bytes::from(bytes.into_bytes()), limits) {
                Err(error) => malformed(error),
                Ok(_) => Played::Broken("bytes that are no text were read as a message".to_owned()),
            });
        }
    };
    if !case.transport.is_empty() {
        let got = live::over_http(case, tree, &in_force, &raw).map_err(Played::Broken)?;
        return Ok(Played::Said { got, detail: "answered over HTTP".to_owned() });
    }
    if !case.swap_between_check_and_use.is_empty() {
        live::while_files_change(case).map_err(Played::Broken)?;
    }
    let groups: Vec<&str> = in_force.policy.groups().collect();
    let [group] = groups[..] else { return Err(Played::Broken(format!("the groups are {groups:?}, not one"))) };
    let ids = in_force.translated.upstreams.iter();
    let executors: BTreeMap<String, Executor> = ids
        .map(|id| (id.clone(), Executor::new(neutral::upstream(id, &in_force.translated.settings, tree.root()))))
        .collect();
    let request = json!({ "group": group, "upstream": upstream, "raw": raw }).to_string();
    let answer = explain(&in_force.policy, &Directory::default(), &executors, &request, limits, Clock::system().now());
    let answer = answer.map_err(|unanswerable| Played::Broken(unanswerable.to_string()))?;
    Ok(match answer["verdict"].as_str() {
        Some("malformed") => malformed(&answer["error"]),
        Some(verdict) => Played::Said { got: verdict.to_owned(), detail: brief(&answer) },
        None => Played::Broken(format!("no verdict: {answer}")),
    })
}

fn brief(answer: &Value) -> String {
    let by: Vec<&str> = answer["decided_by"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    format!("decided by {}", if by.is_empty() { answer["reasons"].to_string() } else { by.join(", ") })
}

/// Loads the case's policy, translated or as it stands. A load that is refused is the answer.
pub fn policy_of(case: &Case, tree: &Tree) -> Result<InForce, Played> {
    let broken = |error: &dyn ToString| Played::Broken(error.to_string());
    let file = tree.aside().map_err(|e| broken(&e))?.join("policy.yaml");
    let settings = match tree.expand_all(&Value::Object(case.policy.clone())) {
        Value::Object(settings) => settings,
        _ => Map::new(),
    };
    let translated = neutral::translate(settings)
        .map_err(|key| Played::Skipped(format!("`{key}` of a policy has no translation")))?;
    let raw = case.policy_bytes().map_err(Played::Skipped)?;
    // A policy that is given as it is keeps the built-in guardrails.
    let disable = if raw.is_some() { vec!["runs-later".to_owned()] } else { translated.disable.clone() };
    let config = PolicyConfig { files: vec![file.to_string_lossy().into_owned()], disable, ..PolicyConfig::default() };
    let own_files = std::slice::from_ref(&file);
    if case.reload {
        fs::write(&file, GOOD).map_err(|e| broken(&e))?;
        load(&config, own_files).map_err(|e| Played::Broken(format!("the good policy is refused: {e:?}")))?;
    }
    fs::write(&file, raw.as_deref().unwrap_or(translated.yaml.as_bytes())).map_err(|e| broken(&e))?;
    match load(&config, own_files) {
        Ok(loaded) => Ok(InForce { config, translated, policy: loaded.policy, file }),
        Err(errors) if raw.is_some() => Err(malformed(said(&errors))),
        Err(errors) => Err(Played::Broken(format!("the translated policy is refused: {}", said(&errors)))),
    }
}

fn said(errors: &[portcullis::diagnostic::Diagnostic]) -> String {
    errors.iter().map(|error| error.message.clone()).collect::<Vec<_>>().join("; ")
}

/// What a reload case has in force before its broken file.
const GOOD: &str = "version: 1\ngroups:\n  fs:\n    rules:\n      - { verdict: deny, tool: delete_all }\n";

/// The upstream that is called, and the bytes of the message.
pub fn message_of(case: &Case, tree: &Tree, in_force: &InForce) -> Result<(String, Vec<u8>), Played> {
    let expand = |text: &str| tree.expand(&text.replace("$POLICY_FILE", &as_text(&in_force.file)));
    if let Some(raw) = case.call_bytes().map_err(Played::Skipped)? {
        let bytes = match String::from_utf8(raw) {
            Ok(text) => expand(&text).into_bytes(),
            Err(not_text) => not_text.into_bytes(),
        };
        return Ok((UPSTREAM.to_owned(), bytes));
    }
    let call = case.call.as_ref().ok_or_else(|| Played::Broken("no call".to_owned()))?;
    let Some((upstream, tool)) = in_force.translated.addressed(&call.tool) else {
        return Err(Played::Said { got: "deny".to_owned(), detail: "unknown: no upstream of that name".to_owned() });
    };
    let text = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": tool, "arguments": call.arguments },
    });
    Ok((upstream.to_owned(), expand(&text.to_string()).into_bytes()))
}

fn as_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

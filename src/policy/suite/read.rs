//! One `*.test.yaml` → its tests, as strictly as a policy.

use std::collections::HashMap;

use super::Answer;
use crate::config::yaml::{self, Fields, Kind, Mark, Node, Report};

/// A test as it is written.
#[derive(Debug)]
pub struct Draft {
    /// Where it begins.
    pub at: Mark,
    /// Its name, or `file:line`.
    pub name: String,
    /// The group that the call is made in.
    pub group: Option<(String, Mark)>,
    /// Lines that make files.
    pub setup: Vec<(String, Mark)>,
    /// The call.
    pub call: Node,
    /// The verdict that is expected.
    pub verdict: Answer,
    /// Rules that must be among those that decide.
    pub rules: Vec<(String, Mark)>,
}

const VERDICTS: [(&str, Answer); 4] =
    [("allow", Answer::Allow), ("ask", Answer::Ask), ("deny", Answer::Deny), ("malformed", Answer::Malformed)];

/// Reads one file, whatever is wrong with it.
pub fn file(file: &str, bytes: &[u8]) -> (Report, Vec<Draft>) {
    let (mut report, root) = yaml::read(file, bytes);
    let nodes = root.as_ref().and_then(|root| tests(root, &mut report)).unwrap_or_default();
    let drafts: Vec<Draft> = nodes.iter().filter_map(|node| test(node, &mut report)).collect();
    let mut lines: HashMap<&str, usize> = HashMap::new();
    for draft in &drafts {
        if let Some(first) = lines.insert(&draft.name, draft.at.line) {
            let help = format!("the first is in line {first}; choose another name");
            report.error(draft.at, format!("there is a test `{}` already", draft.name)).help(&*help);
        }
    }
    (report, drafts)
}

/// The file is the list, or `version` and `tests`.
fn tests<'a>(root: &'a Node, report: &mut Report) -> Option<&'a [Node]> {
    let Kind::Mapping(_) = root.kind else { return root.sequence(report) };
    let mut fields = Fields::new(root, "a test file", report)?;
    let version = fields.optional("version");
    if let Some(version) = version.filter(|node| node.integer(report).is_some_and(|number| number != 1)) {
        report.error(version.at, "this version is not known").help("write `version: 1`, or leave it out");
    }
    let tests = fields.required("tests", report).and_then(|node| node.sequence(report));
    fields.finish(report);
    tests
}

fn test(node: &Node, report: &mut Report) -> Option<Draft> {
    let mut fields = Fields::new(node, "a test", report)?;
    let name = fields.optional("name").and_then(|node| node.text(report)).map(ToOwned::to_owned);
    let group = fields.optional("group").and_then(|node| Some((node.text(report)?.to_owned(), node.at)));
    let setup = fields.optional("setup").map(|node| marked(node, report)).unwrap_or_default();
    let call = fields.required("call", report).cloned();
    let verdict = fields.required("verdict", report).and_then(|node| node.choice(&VERDICTS, report));
    let rules = fields.optional("rule").map(|node| marked(node, report)).unwrap_or_default();
    let at = fields.at;
    fields.finish(report);
    let name = name.unwrap_or_else(|| format!("{}:{}", report.file(), at.line));
    Some(Draft { at, name, group, setup, call: call?, verdict: verdict?, rules })
}

/// Texts with their places.
fn marked(node: &Node, report: &mut Report) -> Vec<(String, Mark)> {
    let nodes = node.one_or_more(report).unwrap_or_default();
    nodes.iter().filter_map(|node| Some((node.text(report)?.to_owned(), node.at))).collect()
}

//! One test: its files, its call, and what the policy says.

use super::read::Draft;
use super::setup::Tree;
use super::{Answer, Expected, Got, TestResult};
use crate::config::yaml::{Mark, Report};
use crate::config::{FileSystem, UpstreamConfig};
use crate::diagnostic::did_you_mean;
use crate::facet::path::Space;
use crate::policy::called::{Called, Catalogues};
use crate::policy::closed::passes;
use crate::policy::examples::nowhere;
use crate::policy::judge::judge_with_advice;
use crate::policy::model::{Policy, Rule};
use crate::policy::request::Request;

/// Runs a test. None, and an error, if it cannot be run.
pub fn run(policy: &Policy, draft: &Draft, catalogues: &Catalogues, report: &mut Report) -> Option<TestResult> {
    let known = draft.rules.iter().filter(|(rule, at)| is_known(policy, rule, *at, report)).count();
    let tree = made(draft, report)?;
    let config = match &tree {
        Some(tree) => rooted(tree),
        None => nowhere(),
    };
    let space = Space::new(&config);
    let root = tree.as_ref().map(|tree| tree.root().to_string_lossy().into_owned());
    let called = Called::read(&draft.call, &space, root.as_deref(), catalogues, report)?;
    let group = group(policy, draft, called.as_ref().ok(), report)?;
    if known < draft.rules.len() {
        return None;
    }
    let got = match called {
        Ok(called) => judged(policy, &group, &called, &space),
        Err(what) => plainly(Answer::Malformed, what),
    };
    let rule: Vec<String> = draft.rules.iter().map(|(rule, _)| rule.clone()).collect();
    let passed = got.verdict == draft.verdict && rule.iter().all(|rule| got.decided_by.contains(rule));
    Some(TestResult {
        name: draft.name.clone(),
        file: report.file().to_owned(),
        line: draft.at.line,
        column: draft.at.column,
        passed,
        expected: Expected { verdict: draft.verdict, rule },
        got,
    })
}

/// The files of the test, if it has any.
fn made(draft: &Draft, report: &mut Report) -> Option<Option<Tree>> {
    let Some((_, first)) = draft.setup.first() else { return Some(None) };
    let tree = Tree::new().map_err(|what| report.error(*first, format!("no folder for `setup`: {what}"))).ok()?;
    for (line, at) in &draft.setup {
        if let Err(what) = tree.run(line) {
            report
                .error(*at, what)
                .help("a line is `mkdir -p DIR`, `touch FILE`, `echo TEXT > FILE` or `ln -s TO LINK`");
            return None;
        }
    }
    Some(Some(tree))
}

/// A shared file system at the test's own root.
fn rooted(tree: &Tree) -> UpstreamConfig {
    let root = tree.root().to_path_buf();
    UpstreamConfig { cwd: root.clone(), root, filesystem: FileSystem::Shared, ..nowhere() }
}

/// Whether a name can stand in `decided_by`.
fn is_known(policy: &Policy, name: &str, at: Mark, report: &mut Report) -> bool {
    let has_group = |group: &str| policy.groups().any(|known| known == group);
    let known = match name.split_once(':') {
        Some(("otherwise", group)) => has_group(group),
        Some(("floor", _)) => true,
        _ => policy.rules().iter().any(|rule| rule.label == name),
    };
    if !known {
        let labels = policy.rules().iter().map(|rule| rule.label.as_str());
        let near = did_you_mean(name, labels).map(|near| format!("did you mean `{near}`?"));
        let help = near.unwrap_or_else(|| "name a rule, `otherwise:GROUP`, `builtin:NAME` or `floor:WHY`".into());
        report.error(at, format!("no rule is called `{name}`")).help(&*help);
    }
    known
}

/// The group that the call is made in.
fn group(policy: &Policy, draft: &Draft, called: Option<&Called>, report: &mut Report) -> Option<String> {
    let own = called.and_then(|called| called.request.group.as_ref()).map(|group| (group, draft.call.at));
    let named = draft.group.as_ref().map(|(group, at)| (group, *at));
    if let (Some((own, at)), Some((named, _))) = (own, named)
        && own != named
    {
        report.error(at, format!("the call is in group `{own}`, the test in `{named}`")).help("leave one of them out");
        return None;
    }
    let groups: Vec<&str> = policy.groups().collect();
    let Some((group, at)) = named.or(own) else {
        let only = if let [only] = groups.as_slice() { Some(only) } else { groups.iter().find(|g| **g == "default") };
        if only.is_none() {
            report.error(draft.at, "which group makes the call?").help("write `group: NAME`");
        }
        return only.map(|group| (*group).to_owned());
    };
    if !groups.contains(&group.as_str()) {
        let near = did_you_mean(group, groups).map(|near| format!("did you mean `{near}`?"));
        report.error(at, format!("there is no group `{group}`")).help(near.as_deref());
        return None;
    }
    Some(group.clone())
}

fn judged(policy: &Policy, group: &str, called: &Called, space: &Space) -> Got {
    let Called { request, tool, touched } = called;
    if !request.tool_is_legal() {
        return plainly(Answer::Deny, "no MCP tool can have this name".into());
    }
    if passes(request.kind(), &request.method) {
        return plainly(Answer::Allow, format!("`{}` is on the closed list of methods that pass", request.method));
    }
    let (judgement, advice) = judge_with_advice(policy, &request.subject(group, tool, None), touched, space);
    let mut because = assumed(policy, request, &judgement.decided_by);
    because.extend(advice.needed_for_allow);
    Got {
        verdict: judgement.verdict.into(),
        decided_by: judgement.decided_by,
        facets: judgement.facets.into_iter().map(|facet| facet.record).collect(),
        because,
    }
}

fn plainly(verdict: Answer, because: String) -> Got {
    Got { verdict, decided_by: Vec::new(), facets: Vec::new(), because: vec![because] }
}

/// What the call left out, and so was taken to hold, of the rules that decided.
fn assumed(policy: &Policy, request: &Request, decided_by: &[String]) -> Vec<String> {
    let mut sentences = Vec::new();
    for rule in policy.rules().iter().filter(|rule| decided_by.contains(&rule.label)) {
        let left_out: Vec<&str> = left_out(rule, request).collect();
        if !left_out.is_empty() {
            let names = left_out.join("` and `");
            sentences.push(format!("`{}` names `{names}`, which the call leaves out: it is taken to hold", rule.label));
        }
    }
    sentences
}

fn left_out<'a>(rule: &'a Rule, request: &'a Request) -> impl Iterator<Item = &'static str> + 'a {
    let fields = &rule.fields;
    let names_a_tool = fields.tool.iter().any(|term| term.is_name());
    [
        ("tool", names_a_tool && request.tool.is_none()),
        ("upstream", !fields.upstream.is_empty() && request.upstream.is_none()),
        ("agent", !fields.agent.is_empty() && request.agent.is_none()),
        ("source", !fields.source.is_empty() && request.source.is_none()),
        ("depth", !fields.depth.is_empty() && request.depth.is_none()),
    ]
    .into_iter()
    .filter_map(|(name, is_left_out)| is_left_out.then_some(name))
}

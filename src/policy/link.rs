//! Drafts of all files → one policy: names, inheritance, approvals, and what must not be missing.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use super::approval::Approval;
use super::index::RuleSet;
use super::model::{Group, Policy, Rule};
use super::read::{ApprovalTerm, FileDraft, GroupDraft, Named, RuleDraft};
use crate::clock::Timestamp;
use crate::config::yaml::{Mark, Report};
use crate::diagnostic::did_you_mean;
use crate::record::Verdict;

/// One file, its findings and its draft.
pub(super) type Read = (Report, FileDraft);

/// Checks everything that several places must agree on, and builds the policy. What is wrong goes into the reports of
/// the files; the policy is good only if they stay without errors.
pub(super) fn link(mut files: Vec<Read>, builtin: Vec<Rule>) -> (Vec<Report>, Policy) {
    unique(&mut files, "an approval", |draft| draft.approvals.iter().map(|(name, _)| name).collect());
    unique(&mut files, "a group", |draft| draft.groups.iter().map(|group| &group.name).collect());
    unique(&mut files, "a rule", |draft| all_rules(draft).filter_map(|rule| rule.name.as_ref()).collect());
    label_apart(&mut files);

    let approvals: BTreeMap<String, Approval> = files
        .iter()
        .flat_map(|(_, draft)| &draft.approvals)
        .map(|(named, approval)| {
            let name = Some(named.name.clone());
            (named.name.clone(), Approval { name, ..approval.clone() })
        })
        .collect();
    let mut linker = Linker { approvals, rules: builtin.into_iter().map(Arc::new).collect(), groups: BTreeMap::new() };
    let mut approval: Option<(Option<Approval>, String)> = None;
    let mut reports = Vec::new();
    let mut drafts = Vec::new();
    for (mut report, draft) in files {
        if let Some((term, at)) = draft.approval {
            if let Some((_, first)) = &approval {
                report
                    .error(at, "a second top-level `approval`")
                    .help(&*format!("there is one for all files: the first is in {first}"));
            } else {
                let first = format!("{}:{}", report.file(), at.line);
                approval = Some((linker.approval(Some(term), &mut report), first));
            }
        }
        for rule in draft.guardrails {
            linker.rule(rule, &mut report);
        }
        drafts.extend(draft.groups.into_iter().map(|group| (reports.len(), group)));
        reports.push(report);
    }
    let guardrails = RuleSet::new(linker.rules.clone());
    for (file, group) in drafts {
        if let Some(report) = reports.get_mut(file) {
            linker.group(file, group, report);
        }
    }
    let groups = linker.inherit(&mut reports);
    let policy = Policy {
        version: String::new(),
        guardrails,
        groups,
        approval: approval.and_then(|(approval, _)| approval),
        rules: linker.rules,
    };
    (reports, policy)
}

/// What `policy.require` names and the policy does not have.
pub(super) fn missing<'a>(policy: &Policy, require: &'a [String]) -> Vec<&'a String> {
    let has = |name: &str| {
        policy.groups.contains_key(name)
            || policy
                .rules
                .iter()
                .filter(|rule| rule.guardrail)
                .any(|rule| rule.label == name || rule.label.strip_prefix("builtin:") == Some(name))
    };
    require.iter().filter(|name| !has(name)).collect()
}

struct Linker {
    approvals: BTreeMap<String, Approval>,
    rules: Vec<Arc<Rule>>,
    groups: BTreeMap<String, Linked>,
}

/// A group before it inherits.
struct Linked {
    file: usize,
    extends: Option<Named>,
    otherwise: Option<(Verdict, Mark)>,
    approval: Option<Approval>,
    rules: Vec<Arc<Rule>>,
    shadow_until: Option<Timestamp>,
}

impl Linker {
    fn rule(&mut self, draft: RuleDraft, report: &mut Report) -> Arc<Rule> {
        let approval = self.approval(draft.approval, report);
        let rule = Arc::new(Rule { approval, ..draft.rule });
        self.rules.push(Arc::clone(&rule));
        rule
    }

    fn approval(&self, term: Option<ApprovalTerm>, report: &mut Report) -> Option<Approval> {
        let Named { name, at } = match term? {
            ApprovalTerm::Own(approval) => return Some(approval),
            ApprovalTerm::Named(named) => named,
        };
        let found = self.approvals.get(&name).cloned();
        if found.is_none() {
            let near = did_you_mean(&name, self.approvals.keys().map(String::as_str));
            let help = near.map_or_else(
                || "name one of `approvals`, or write its terms here".into(),
                |near| format!("did you mean `{near}`?"),
            );
            report.error(at, format!("there is no approval `{name}`")).help(&*help);
        }
        found
    }

    fn group(&mut self, file: usize, draft: GroupDraft, report: &mut Report) {
        let rules = draft.rules.into_iter().map(|rule| self.rule(rule, report)).collect();
        let approval = self.approval(draft.approval, report);
        let GroupDraft { extends, otherwise, shadow_until, .. } = draft;
        let linked = Linked { file, extends, otherwise, approval, rules, shadow_until };
        self.groups.entry(draft.name.name).or_insert(linked);
    }

    /// Gives every group what it inherits.
    fn inherit(&self, reports: &mut [Report]) -> BTreeMap<String, Group> {
        self.groups
            .iter()
            .filter_map(|(name, linked)| {
                let ancestors = self.ancestors(name, linked, reports.get_mut(linked.file)?)?;
                let nearest = ancestors.iter().find_map(|group| group.otherwise.map(|(verdict, _)| verdict));
                let inherited = nearest.unwrap_or(Verdict::Ask);
                let otherwise = linked.otherwise.map_or(inherited, |(verdict, _)| verdict);
                if let (Some((own, at)), Some(parent)) = (linked.otherwise, &linked.extends)
                    && own < inherited
                {
                    reports
                        .get_mut(linked.file)?
                        .error(at, format!("`otherwise` is looser than that of `{}`", parent.name))
                        .help("a group that extends another may only be stricter");
                }
                let line = || std::iter::once(linked).chain(ancestors.iter().copied());
                let approval = line().find_map(|group| group.approval.clone());
                let rules = line().flat_map(|group| group.rules.iter().cloned()).collect();
                let shadow_until = linked.shadow_until;
                Some((name.clone(), Group { otherwise, approval, rules: RuleSet::new(rules), shadow_until }))
            })
            .collect()
    }

    /// What a group extends, nearest first; none, and an error, if that leads nowhere or round in a circle.
    fn ancestors<'a>(&'a self, name: &str, linked: &'a Linked, report: &mut Report) -> Option<Vec<&'a Linked>> {
        let mut line = vec![name];
        let mut ancestors: Vec<&Linked> = Vec::new();
        let mut next = linked.extends.as_ref();
        while let (Some(parent), own) = (next, ancestors.is_empty()) {
            let Some(group) = self.groups.get(&parent.name) else {
                // told once, where it is written
                if own {
                    let near = did_you_mean(&parent.name, self.groups.keys().map(String::as_str));
                    let help = near.map(|near| format!("did you mean `{near}`?"));
                    report.error(parent.at, format!("there is no group `{}`", parent.name)).help(help.as_deref());
                }
                return None;
            };
            if line.contains(&parent.name.as_str()) {
                // Told once: at the first of its groups.
                if parent.name == name && line.iter().all(|other| name <= *other) {
                    let at = linked.extends.as_ref().map_or(parent.at, |extends| extends.at);
                    line.push(name);
                    let help = format!("remove one link of the circle {}", line.join(" → "));
                    report.error(at, format!("group `{name}` extends itself")).help(&*help);
                }
                return None;
            }
            line.push(&parent.name);
            ancestors.push(group);
            next = group.extends.as_ref();
        }
        Some(ancestors)
    }
}

fn all_rules(draft: &FileDraft) -> impl Iterator<Item = &RuleDraft> {
    draft.guardrails.iter().chain(draft.groups.iter().flat_map(|group| &group.rules))
}

/// Refuses a name that is given twice, in one file or in two.
fn unique(files: &mut [Read], what: &str, names: impl Fn(&FileDraft) -> Vec<&Named>) {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for (report, draft) in files {
        for Named { name, at } in names(draft) {
            match first.entry(name.clone()) {
                Entry::Vacant(entry) => {
                    entry.insert(format!("{}:{}", report.file(), at.line));
                }
                Entry::Occupied(entry) => {
                    report
                        .error(*at, format!("there is {what} `{name}` already"))
                        .help(&*format!("the first is in {}; choose another name", entry.get()));
                }
            }
        }
    }
}

/// Gives nameless rules of one line different labels: `file:line` and `file:line:column`.
fn label_apart(files: &mut [Read]) {
    for (_, draft) in files {
        let mut lines = HashSet::new();
        let groups = draft.groups.iter_mut().flat_map(|group| &mut group.rules);
        for rule in draft.guardrails.iter_mut().chain(groups).filter(|rule| rule.name.is_none()) {
            if !lines.insert(rule.at.line) {
                rule.rule.label = format!("{}:{}", rule.rule.label, rule.at.column);
            }
        }
    }
}

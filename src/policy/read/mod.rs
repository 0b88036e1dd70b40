//! One policy file → drafts of its rules, groups and approvals. What only all files together can tell is in
//! [`link`](super::link).

mod args;
mod fields;
mod limit;
pub(super) mod shape;
mod terms;
mod trial;

pub(super) use terms::ApprovalTerm;

use std::sync::OnceLock;

use super::approval::Approval;
use super::examples::Examples;
use super::model::Rule;
use crate::clock::Timestamp;
use crate::config::yaml::{self, Fields, Mark, Node, Report};
use crate::pattern::is_invisible;
use crate::record::Verdict;

/// What one file says.
#[derive(Debug, Default)]
pub(super) struct FileDraft {
    pub guardrails: Vec<RuleDraft>,
    pub approvals: Vec<(Named, Approval)>,
    /// The top-level `approval` and its place.
    pub approval: Option<(ApprovalTerm, Mark)>,
    pub groups: Vec<GroupDraft>,
}

/// A name and its place.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub name: String,
    pub at: Mark,
}

/// A group of one file.
#[derive(Debug)]
pub(super) struct GroupDraft {
    pub name: Named,
    pub extends: Option<Named>,
    pub otherwise: Option<(Verdict, Mark)>,
    pub approval: Option<ApprovalTerm>,
    pub rules: Vec<RuleDraft>,
    /// Until when it is in shadow mode, if it is.
    pub shadow_until: Option<Timestamp>,
}

/// A rule, complete but for its approval.
#[derive(Debug)]
pub(super) struct RuleDraft {
    pub at: Mark,
    /// Its own name, if it has one.
    pub name: Option<Named>,
    pub rule: Rule,
    pub approval: Option<ApprovalTerm>,
    pub examples: Examples,
}

const VERDICTS: [(&str, Verdict); 3] = [("allow", Verdict::Allow), ("ask", Verdict::Ask), ("deny", Verdict::Deny)];

/// Reads one file, whatever is wrong with it.
pub(super) fn file(file: &str, bytes: &[u8]) -> (Report, FileDraft) {
    let (mut report, root) = yaml::read(file, bytes);
    let draft = root.and_then(|root| top(&root, &mut report)).unwrap_or_default();
    (report, draft)
}

fn top(root: &Node, report: &mut Report) -> Option<FileDraft> {
    let mut fields = Fields::new(root, "a policy file", report)?;
    let version = fields.required("version", report);
    if version.is_none() {
        report.help("write `version: 1` on a line of its own");
    }
    if let Some(version) = version
        && let Some(number) = version.integer(report)
        && number != 1
    {
        report.error(version.at, format!("version {number} is not known")).help("write `version: 1`");
    }
    let guardrails = fields.optional("guardrails").map(|node| rules(node, true, report)).unwrap_or_default();
    let approvals = fields
        .optional("approvals")
        .and_then(|node| node.mapping(report))
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| {
            let name = named(&entry.key, entry.at, "an approval", report)?;
            Some((name, terms::approval(&entry.value, report)?))
        })
        .collect();
    let approval = fields.entry("approval").and_then(|entry| Some((terms::term(&entry.value, report)?, entry.at)));
    let groups = fields
        .optional("groups")
        .and_then(|node| node.mapping(report))
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| group(named(&entry.key, entry.at, "a group", report)?, &entry.value, report))
        .collect();
    fields.misplaced("rules", "rules belong to a group: `groups: { default: { rules: […] } }`", report);
    shape::FILE.finish(fields, report);
    Some(FileDraft { guardrails, approvals, approval, groups })
}

fn group(name: Named, node: &Node, report: &mut Report) -> Option<GroupDraft> {
    let mut fields = Fields::new(node, format!("group `{}`", name.name), report)?;
    let extends = fields.optional("extends").and_then(|node| {
        let name = node.text(report)?.to_owned();
        Some(Named { name, at: node.at })
    });
    let otherwise = fields.optional("otherwise").and_then(|node| {
        let verdict = node.choice(&VERDICTS, report)?;
        Some((verdict, node.at))
    });
    let approval = fields.optional("approval").and_then(|node| terms::term(node, report));
    let rules = fields.optional("rules").map(|node| rules(node, false, report)).unwrap_or_default();
    let shadow_until = trial::Trial::of(&mut fields, report).of_group(report);
    fields.later("exposure", report);
    for (word, _) in VERDICTS {
        fields.misplaced(word, "rules stand in `rules`, each with its `verdict`", report);
    }
    fields.misplaced("default", "what holds where no rule matches is `otherwise`", report);
    shape::GROUP.finish(fields, report);
    Some(GroupDraft { name, extends, otherwise, approval, rules, shadow_until })
}

fn rules(node: &Node, guardrail: bool, report: &mut Report) -> Vec<RuleDraft> {
    let nodes = node.sequence(report).unwrap_or_default();
    nodes.iter().filter_map(|node| rule(node, guardrail, report)).collect()
}

fn rule(node: &Node, guardrail: bool, report: &mut Report) -> Option<RuleDraft> {
    let what = if guardrail { "a guardrail" } else { "a rule" };
    let mut fields = Fields::new(node, what, report)?;
    let verdict_node = fields.required("verdict", report);
    let verdict = verdict_node.and_then(|node| node.choice(&VERDICTS, report));
    let name = fields.optional("name").and_then(|node| named(node.text(report)?, node.at, what, report));
    let reason = fields.optional("reason").and_then(|node| node.text(report)).map(ToOwned::to_owned);
    let matching = fields::matching(&mut fields, what, report);
    let except = fields.optional("except").map(|node| fields::exceptions(node, report)).unwrap_or_default();
    let approval = fields.entry("approval");
    let examples = fields.optional("examples").and_then(|node| examples(node, report)).unwrap_or_default();
    let trial = trial::Trial::of(&mut fields, report);
    let limited = fields.entry("limit");
    let at = fields.at;
    for (word, _) in VERDICTS {
        fields.misplaced(word, "write `verdict`, and what it is about in `tool`, `path`, …", report);
    }
    let table = if guardrail { &shape::GUARDRAIL } else { &shape::RULE };
    table.finish(fields, report);

    let verdict = verdict?;
    if guardrail && verdict == Verdict::Allow {
        report
            .error(verdict_node?.at, "a guardrail is deny or ask")
            .help("an allow belongs to the rules of a group; an exception to a guardrail to its `except`");
    }
    if let Some(entry) = approval.filter(|_| verdict != Verdict::Ask) {
        report.error(entry.at, "`approval` belongs to an ask").help("remove it, or write `verdict: ask`");
    }
    let approval = approval.and_then(|entry| terms::term(&entry.value, report));
    let (shadow, until) = trial.of_rule(verdict, guardrail, report);
    let limit = limited.and_then(|entry| limit::limit(entry, verdict, report));
    let file = report.file().to_owned();
    let rule = Rule {
        label: name.as_ref().map_or_else(|| format!("{file}:{}", at.line), |name| name.name.clone()),
        verdict,
        guardrail,
        shadow,
        until,
        limit,
        reason,
        file: Some(file),
        line: Some(at.line),
        column: Some(at.column),
        fields: matching,
        except,
        approval: None,
        numbered: OnceLock::new(),
    };
    Some(RuleDraft { at, name, rule, approval, examples })
}

fn examples(node: &Node, report: &mut Report) -> Option<Examples> {
    let mut fields = Fields::new(node, "`examples`", report)?;
    let mut list = |name, report: &mut Report| {
        fields.optional(name).and_then(|node: &Node| node.one_or_more(report)).unwrap_or_default().to_vec()
    };
    let examples = Examples { matching: list("match", report), not_matching: list("not_match", report) };
    shape::EXAMPLES.finish(fields, report);
    Some(examples)
}

/// A name that people can see and tell from what `decided_by` says of other things.
fn named(name: &str, at: Mark, what: &str, report: &mut Report) -> Option<Named> {
    const RESERVED: [&str; 7] = ["otherwise:", "builtin:", "floor:", "grant:", "group:", "limit:", "shadow:"];
    let help = if name.is_empty() || name.trim() != name || name.chars().any(is_invisible) {
        "write a name that can be seen, without blanks at its ends"
    } else if RESERVED.iter().any(|prefix| name.starts_with(prefix)) {
        "names that begin like this stand for other things in the log; choose another"
    } else {
        return Some(Named { name: name.to_owned(), at });
    };
    report.error(at, format!("`{name}` cannot name {what}")).help(help);
    None
}

//! Approvals: named or written out.

use super::Named;
use crate::config::yaml::{Fields, Kind, Node, Report};
use crate::config::{AllowSelf, is_name};
use crate::policy::approval::{Approval, Grants};
use crate::record::{Escalation, Severity};

pub(super) const RUN: [(&str, bool); 2] = [("attached", false), ("always", true)];
pub(super) const ALLOW_SELF: [(&str, AllowSelf); 3] =
    [("never", AllowSelf::Never), ("single", AllowSelf::Single), ("always", AllowSelf::Always)];
pub(super) const SEVERITY: [(&str, Severity); 4] =
    [("low", Severity::Low), ("normal", Severity::Normal), ("high", Severity::High), ("critical", Severity::Critical)];
pub(super) const GRANTS: [(&str, Grants); 4] =
    [("none", Grants::None), ("exact", Grants::Exact), ("narrow", Grants::Narrow), ("tool", Grants::Tool)];

/// An `approval` as a rule, a group or a file gives it.
#[derive(Clone, Debug)]
pub(in crate::policy) enum ApprovalTerm {
    /// One of `approvals`, of any file.
    Named(Named),
    /// Written out in its place.
    Own(Approval),
}

/// A name, or an approval written out.
pub(super) fn term(node: &Node, report: &mut Report) -> Option<ApprovalTerm> {
    if let Kind::Mapping(_) = node.kind {
        return approval(node, report).map(ApprovalTerm::Own);
    }
    let name = node.text(report)?.to_owned();
    Some(ApprovalTerm::Named(Named { name, at: node.at }))
}

/// An approval written out.
pub(super) fn approval(node: &Node, report: &mut Report) -> Option<Approval> {
    let mut fields = Fields::new(node, "an approval", report)?;
    let approval = Approval {
        name: None,
        approvers: fields.optional("approvers").map(|node| people(node, report)).unwrap_or_default(),
        quorum: fields.optional("quorum").and_then(|node| quorum(node, report)),
        escalate: fields.optional("escalate").and_then(|node| escalate(node, report)),
        expires: fields.optional("expires").and_then(|node| node.duration(report)),
        hold_for: fields.optional("hold_for").and_then(|node| node.duration(report)),
        run_always: fields.optional("run").and_then(|node| node.choice(&RUN, report)).unwrap_or_default(),
        allow_self: fields.optional("allow_self").and_then(|node| node.choice(&ALLOW_SELF, report)),
        reason_required: fields.optional("reason_required").and_then(|node| node.boolean(report)).unwrap_or_default(),
        severity: fields.optional("severity").and_then(|node| node.choice(&SEVERITY, report)).unwrap_or_default(),
        grants: fields.optional("grants").and_then(|node| node.choice(&GRANTS, report)).unwrap_or_default(),
    };
    super::shape::APPROVAL.finish(fields, report);
    if let (Some(escalate), Some(expires)) = (&approval.escalate, approval.expires)
        && u128::from(escalate.after_ms) >= expires.as_millis()
    {
        report.error(node.at, "`escalate.after` is not before `expires`: nobody else would ever be asked");
    }
    Some(approval)
}

/// Names of people or teams.
fn people(node: &Node, report: &mut Report) -> Vec<String> {
    let mut people: Vec<String> = Vec::new();
    for name in node.one_or_more(report).unwrap_or_default() {
        let Some(text) = name.text(report) else { continue };
        if !is_name(text) {
            let help = "name people or teams of `approvers` in portcullis.yaml: letters, digits and . _ @ + -";
            report.error(name.at, format!("`{text}` is no name")).help(help);
        } else if people.iter().any(|known| known == text) {
            report.error(name.at, format!("`{text}` is named twice"));
        } else {
            people.push(text.to_owned());
        }
    }
    people.sort_unstable();
    people
}

fn quorum(node: &Node, report: &mut Report) -> Option<u32> {
    let number = node.integer(report)?;
    let quorum = u32::try_from(number).ok().filter(|quorum| *quorum > 0);
    if quorum.is_none() {
        report.error(node.at, "a quorum that is none").help("write how many people must approve: at least 1");
    }
    quorum
}

fn escalate(node: &Node, report: &mut Report) -> Option<Escalation> {
    let mut fields = Fields::new(node, "an escalation", report)?;
    let after = fields.required("after", report).and_then(|node| node.duration(report));
    let to = fields.required("to", report).map(|node| people(node, report));
    super::shape::ESCALATION.finish(fields, report);
    let after_ms = u64::try_from(after?.as_millis()).unwrap_or(u64::MAX);
    Some(Escalation { after_ms, to: to?, due: None })
}

//! Approvals: named or written out.

use super::Named;
use crate::config::AllowSelf;
use crate::config::yaml::{Fields, Kind, Node, Report};
use crate::policy::approval::{Approval, Grants};
use crate::record::Severity;

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
        expires: fields.optional("expires").and_then(|node| node.duration(report)),
        hold_for: fields.optional("hold_for").and_then(|node| node.duration(report)),
        run_always: fields.optional("run").and_then(|node| node.choice(&RUN, report)).unwrap_or_default(),
        allow_self: fields.optional("allow_self").and_then(|node| node.choice(&ALLOW_SELF, report)),
        reason_required: fields.optional("reason_required").and_then(|node| node.boolean(report)).unwrap_or_default(),
        severity: fields.optional("severity").and_then(|node| node.choice(&SEVERITY, report)).unwrap_or_default(),
        grants: fields.optional("grants").and_then(|node| node.choice(&GRANTS, report)).unwrap_or_default(),
    };
    for later in ["approvers", "quorum", "escalate"] {
        fields.later(later, report);
    }
    super::shape::APPROVAL.finish(fields, report);
    Some(approval)
}

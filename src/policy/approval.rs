//! What an ask requires, and how several asks merge to the strict side (policy.md, "How a call is judged", 4).

use std::time::Duration;

use crate::config::{AllowSelf, ApprovalsConfig};
use crate::record::{Escalation, RequirementRecord, Severity};

/// What a rule, a group or a file asks of an approval. What is left out is as configured, or the default.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Approval {
    /// Its name among `approvals`.
    pub name: Option<String>,
    /// Names or teams that may approve, sorted; empty: any approver of the group.
    pub approvers: Vec<String>,
    /// How many people must; one if it is left out.
    pub quorum: Option<u32>,
    pub escalate: Option<Escalation>,
    pub expires: Option<Duration>,
    pub hold_for: Option<Duration>,
    /// `run: always`.
    pub run_always: bool,
    pub allow_self: Option<AllowSelf>,
    pub reason_required: bool,
    pub severity: Severity,
    pub grants: Grants,
}

impl Approval {
    /// Who must approve.
    pub(super) fn people(&self) -> RequirementRecord {
        RequirementRecord {
            approval: self.name.clone(),
            approvers: self.approvers.clone(),
            quorum: self.quorum.unwrap_or(1),
            votes: 0,
            escalate: self.escalate.clone(),
        }
    }
}

/// The widest "approve and remember" that may be offered, narrowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Grants {
    /// None.
    None,
    /// This very call.
    Exact,
    /// This path or command.
    #[default]
    Narrow,
    /// The whole tool.
    Tool,
}

/// What an ask needs, merged over all asks that matched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Requirement {
    /// The rules (or `otherwise:GROUP`, `floor:WHY`) that asked.
    pub asked_by: Vec<String>,
    /// Who must approve: each of these must be met. One vote counts in every one it qualifies for.
    pub people: Vec<RequirementRecord>,
    /// Run at once on approval although nobody is attached.
    pub run_always: bool,
    /// Whether a rejection needs a note.
    pub reason_required: bool,
    /// How urgent.
    pub severity: Severity,
    /// The widest grant that may be offered.
    pub grants: Grants,
    expires: Bound<Duration>,
    hold_for: Bound<Duration>,
    allow_self: Bound<AllowSelf>,
}

/// What of a requirement depends on `approvals` in `portcullis.yaml`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// When it ends undecided.
    pub expires: Duration,
    /// How long a stream is held.
    pub hold_for: Duration,
    /// Whether owners may decide their own agent's calls.
    pub allow_self: AllowSelf,
}

impl Requirement {
    /// Merges the approvals of all asks; `None` is an ask that says nothing of its own. No grant is wider than `widest`.
    pub(super) fn merge<'a>(
        asked_by: Vec<String>,
        asks: impl IntoIterator<Item = Option<&'a Approval>>,
        widest: Grants,
    ) -> Self {
        let plain = Approval::default();
        asks.into_iter()
            .map(|ask| ask.unwrap_or(&plain))
            .map(|ask| Self {
                asked_by: Vec::new(),
                people: vec![ask.people()],
                run_always: ask.run_always,
                reason_required: ask.reason_required,
                severity: ask.severity,
                grants: ask.grants.min(widest),
                expires: Bound::of(ask.expires),
                hold_for: Bound::of(ask.hold_for),
                allow_self: Bound::of(ask.allow_self),
            })
            .reduce(Self::and)
            .map_or_else(|| Self::merge(Vec::new(), [None], widest), |merged| Self { asked_by, ..merged })
    }

    /// Both, to the strict side.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            asked_by: [self.asked_by, other.asked_by].concat(),
            people: all(self.people, other.people),
            run_always: self.run_always && other.run_always,
            reason_required: self.reason_required || other.reason_required,
            severity: self.severity.max(other.severity),
            grants: self.grants.min(other.grants),
            expires: self.expires.tighter(other.expires),
            hold_for: self.hold_for.tighter(other.hold_for),
            allow_self: self.allow_self.tighter(other.allow_self),
        }
    }

    /// The terms under a configuration: an ask that leaves one out is bound by the configured one.
    pub fn terms(&self, configured: &ApprovalsConfig) -> Terms {
        Terms {
            expires: self.expires.under(configured.expires),
            hold_for: self.hold_for.under(configured.hold_for),
            allow_self: self.allow_self.under(configured.allow_self),
        }
    }
}

/// The requirements of both, each once. That anybody of the group approves follows from any other.
fn all(one: Vec<RequirementRecord>, other: Vec<RequirementRecord>) -> Vec<RequirementRecord> {
    let mut all = [one, other].concat();
    all.sort();
    all.dedup();
    if all.len() > 1 {
        all.retain(|needed| *needed != RequirementRecord::anybody());
    }
    all
}

/// The smallest of what asks say, and whether one of them leaves it to the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Bound<T> {
    said: Option<T>,
    configured_too: bool,
}

impl<T: Ord + Copy> Bound<T> {
    fn of(said: Option<T>) -> Self {
        Self { said, configured_too: said.is_none() }
    }

    fn tighter(self, other: Self) -> Self {
        let said = match (self.said, other.said) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Self { said, configured_too: self.configured_too || other.configured_too }
    }

    fn under(self, configured: T) -> T {
        match self.said {
            Some(said) if self.configured_too => said.min(configured),
            Some(said) => said,
            None => configured,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn each_askers_people_are_required_and_anybody_only_where_nobody_else_is() {
        let of = |approvers: &[&str], quorum| Approval {
            approvers: approvers.iter().map(|name| (*name).to_owned()).collect(),
            quorum: Some(quorum),
            ..Approval::default()
        };
        let (finance, two) = (of(&["finance"], 1), of(&[], 2));
        let people = |asks: &[Option<&Approval>]| {
            let merged = Requirement::merge(vec![], asks.iter().copied(), Grants::Tool);
            merged.people.into_iter().map(|needed| (needed.approvers, needed.quorum)).collect::<Vec<_>>()
        };
        assert_eq!(people(&[None]), [(vec![], 1)]);
        assert_eq!(people(&[None, None]), [(vec![], 1)]);
        let both = [(vec![], 2), (vec!["finance".to_owned()], 1)];
        assert_eq!(people(&[Some(&finance), None, Some(&two), Some(&finance)]), both);
    }

    #[test]
    fn several_asks_merge_to_the_strict_side() {
        let patient = Approval {
            expires: Some(Duration::from_secs(8 * 3600)),
            run_always: true,
            allow_self: Some(AllowSelf::Always),
            grants: Grants::Tool,
            ..Approval::default()
        };
        let urgent = Approval {
            hold_for: Some(Duration::from_secs(5)),
            reason_required: true,
            severity: Severity::Critical,
            ..Approval::default()
        };
        let configured = ApprovalsConfig::default();
        let alone = Requirement::merge(vec![], [Some(&patient)], Grants::Tool);
        assert_eq!(alone.terms(&configured).expires, Duration::from_secs(8 * 3600));
        assert!(alone.run_always);
        let both = Requirement::merge(vec![], [Some(&patient), Some(&urgent)], Grants::Tool);
        let terms = both.terms(&configured);
        assert_eq!(
            terms.expires, configured.expires,
            "the urgent one leaves it to the configuration, which is shorter"
        );
        assert_eq!(terms.hold_for, Duration::from_secs(5));
        assert_eq!(terms.allow_self, AllowSelf::Single);
        assert_eq!((both.run_always, both.reason_required), (false, true));
        assert_eq!((both.severity, both.grants), (Severity::Critical, Grants::Narrow));
        assert_eq!(both, Requirement::merge(vec![], [Some(&urgent), Some(&patient)], Grants::Tool));
    }
}

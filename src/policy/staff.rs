//! Whether the approvals that policy asks for can be reached by the people there are (policy.md, "Keys": a quorum its
//! approvers cannot reach is an error).

use std::collections::BTreeSet;

use super::approval::Approval;
use super::load::Loaded;
use super::model::{Group, Policy, Rule};
use crate::config::{AllowSelf, Role};
use crate::diagnostic::Diagnostic;
use crate::identity::{Agent, Directory};
use crate::record::Verdict;

impl Loaded {
    /// The policy, if every ask that an agent's call can meet can be approved by somebody.
    ///
    /// # Errors
    /// Each ask that nobody, or too few, could ever approve.
    pub fn staffed(self, directory: &Directory) -> Result<Self, Vec<Diagnostic>> {
        let agents: BTreeSet<Caller<'_>> = directory.agents().iter().map(|agent| Caller::of(agent)).collect();
        let mut found: Vec<Diagnostic> = Vec::new();
        for (agent, group) in agents.iter().filter_map(|agent| Some((agent, self.policy.groups.get(agent.group)?))) {
            let asks = asks(&self.policy, group);
            for finding in asks.filter_map(|(rule, approval)| missing(rule, approval, agent, directory)) {
                // A guardrail or a parent's rule is told once.
                if !found.iter().any(|told| (&told.file, told.line) == (&finding.file, finding.line)) {
                    found.push(finding);
                }
            }
        }
        if found.is_empty() { Ok(self) } else { Err(found) }
    }
}

/// Every approval that a call of the group may need, with the rule that says so; without one for `otherwise`, floors,
/// and asks that say nothing of their own.
fn asks<'p>(policy: &'p Policy, group: &'p Group) -> impl Iterator<Item = (Option<&'p Rule>, &'p Approval)> {
    let rules = policy.guardrails.all().chain(group.rules.all());
    let own = rules.filter(|rule| rule.verdict == Verdict::Ask);
    let own = own.filter_map(|rule| Some((Some(rule), rule.approval.as_ref()?)));
    let fallback = group.approval.as_ref().or(policy.approval.as_ref());
    own.chain(fallback.map(|approval| (None, approval)))
}

/// What of an agent says who can decide its calls.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Caller<'a> {
    group: &'a str,
    owner: Option<&'a str>,
}

impl<'a> Caller<'a> {
    fn of(agent: &'a Agent) -> Self {
        Self { group: &agent.config.group, owner: agent.config.owner.as_deref() }
    }
}

fn missing(rule: Option<&Rule>, approval: &Approval, agent: &Caller<'_>, directory: &Directory) -> Option<Diagnostic> {
    let group = agent.group;
    let needed = approval.people();
    let later = needed.escalate.as_ref().map(|more| more.to.as_slice()).unwrap_or_default();
    let deciders = directory.approvers().iter().filter(|one| one.has(Role::Approver) && one.covers(group));
    let excluded = agent.owner.filter(|_| approval.allow_self == Some(AllowSelf::Never));
    let could = deciders.filter(|one| {
        let config = &one.config;
        let asked = needed.counts(&config.name, &config.teams)
            || later.iter().any(|more| *more == config.name || config.teams.contains(more));
        asked && excluded != Some(&config.name)
    });
    let there_are = could.count();
    let quorum = usize::try_from(needed.quorum).unwrap_or(usize::MAX);
    // That a group has no approver at all is told when the first call waits: anybody may still be added.
    let shut_out = excluded.filter(|owner| directory.approvers().iter().any(|one| one.config.name == *owner));
    if there_are >= quorum || (quorum == 1 && needed.approvers.is_empty() && shut_out.is_none()) {
        return None;
    }
    let mut names: Vec<&str> = needed.approvers.iter().chain(later).map(String::as_str).collect();
    names.sort_unstable();
    let of = if names.is_empty() { String::new() } else { format!(" of {}", names.join(", ")) };
    let what = format!(
        "this approval needs {quorum}{of}, and {} can decide calls of group `{group}`{}",
        if there_are == 0 { "nobody".to_owned() } else { format!("only {there_are}") },
        shut_out
            .map(|owner| format!(": `allow_self: never` leaves out `{owner}`, who owns an agent of it"))
            .unwrap_or_default()
    );
    let help = "in portcullis.yaml give enough approvers the role approver, that group, and the name or team; or ask \
                for others here";
    let place = rule.and_then(|rule| Some((rule.file.clone()?, rule.line?, rule.column?)));
    let (file, line, column) = place.unwrap_or_else(|| (format!("group `{group}`"), 0, 0));
    Some(Diagnostic { line, column, help: Some(help.into()), ..Diagnostic::whole(file, what) })
}

//! Guarded paths reach further than path arguments: into unmarked strings, and up into every recursive tool that could
//! come to them (policy.md, "Guarded paths reach further than path arguments").

use super::approval::Approval;
use super::fields::{Reading, Target, Thing};
use super::judge::Subject;
use super::model::Rule;
use super::recorded::{Doubt, Recorded};
use crate::facet::path::{Space, Walked, walk};
use crate::facet::{Below, FloorWhy, PathFacet};
use crate::pattern::Location;
use crate::record::{Access, Verdict};

/// A floor found below a facet.
pub(super) struct Reached<'a> {
    pub why: FloorWhy,
    pub detail: String,
    /// Of the asks that would be reached.
    pub approvals: Vec<Option<&'a Approval>>,
}

/// Whether a facet is walked: a tool that goes on below it, or that takes away all below it, on a file system that the
/// gateway shares.
pub(super) fn is_walked(path: &PathFacet) -> bool {
    (path.recursive || path.access == Some(Access::Delete)) && !path.physical.is_empty()
}

/// Whether a deny or ask guards a place of unknown use, whatever its `path: /` entries say. Exceptions count.
pub(super) fn guards(subject: &Subject<'_>, rule: &Rule, at: &Location) -> bool {
    let target = at_path(None, at);
    may_guard(subject, rule, target) && covers(subject, rule, target, at)
}

/// Whether a rule guards places at all, and all its fields but `path` hold.
pub(super) fn may_guard(subject: &Subject<'_>, rule: &Rule, target: Target<'_>) -> bool {
    let reading = Reading::of(rule.verdict);
    rule.guards_paths() && reading.holds(rule.fields.hold_but_path(subject, target, reading))
}

/// Whether the rule's `path` names the place and no exception takes it away.
fn covers(subject: &Subject<'_>, rule: &Rule, target: Target<'_>, at: &Location) -> bool {
    let exception = Reading::of_exception(rule.verdict);
    rule.fields.path.guards(at, subject.recorded)
        && !rule.except.iter().any(|fields| exception.holds(fields.hold(subject, target, exception)))
}

fn at_path(access: Option<Access>, at: &Location) -> Target<'_> {
    Target { thing: Thing::Path { access, lexical: at, physical: &[], part: None }, guessed: false, running: None }
}

/// What lies below a recursive facet that no allow may pass over: places that the candidates (rules that [`may_guard`])
/// guard, links out, other mounts.
pub(super) fn below<'a>(
    subject: &Subject<'_>,
    path: &PathFacet,
    candidates: &[&'a Rule],
    space: &Space,
    below: &mut Below,
) -> Vec<Reached<'a>> {
    // By both names: a rule may guard a place below a link by the link's name.
    let mut starts = vec![&path.lexical];
    starts.extend(path.physical.iter().filter(|from| **from != path.lexical));
    if subject.recorded.is_some() {
        // What was found from either stands in one place.
        starts.truncate(1);
    }
    below.sought.extend(candidates.iter().map(|rule| rule.ground()));
    starts.into_iter().flat_map(|from| walked(subject, path, from, candidates, space, below)).collect()
}

fn walked<'a>(
    subject: &Subject<'_>,
    path: &PathFacet,
    from: &Location,
    candidates: &[&'a Rule],
    space: &Space,
    below: &mut Below,
) -> Vec<Reached<'a>> {
    let mut met: Vec<&'a Rule> = Vec::new();
    let mut first: Option<(String, &'a Rule)> = None;
    let telling = candidates.iter().filter(|rule| asks_its_own(rule)).count();
    let mut look = |at: &Location| {
        for rule in candidates.iter().copied().filter(|rule| covers(subject, rule, at_path(path.access, at), at)) {
            if first.is_none() || (asks_its_own(rule) && !met.iter().any(|known| std::ptr::eq(*known, rule))) {
                below.met.push(at.clone());
            }
            first.get_or_insert_with(|| (at.to_string(), rule));
            if asks_its_own(rule) && !met.iter().any(|known| std::ptr::eq(*known, rule)) {
                met.push(rule);
            }
        }
        // Once something is guarded, the walk goes on only for asks whose approvals are not known yet.
        first.is_some() && met.len() == telling
    };
    let found = match subject.recorded {
        None => walk(space, from, &mut look),
        Some(recorded) => walked_then(recorded, path.below.as_deref(), candidates, &mut look),
    };
    below.cut |= found.guarded.is_some();
    below.exhausted |= found.exhausted;
    below.link_out |= found.link_out.is_some();
    below.mount |= found.mount.is_some();
    if found.exhausted {
        met = candidates.iter().copied().filter(|rule| asks_its_own(rule)).collect();
    }
    let approvals = || met.iter().map(|rule| rule.approval.as_ref()).collect::<Vec<_>>();
    let mut reached = Vec::new();
    if let Some((at, rule)) = first {
        let detail = format!("goes on to {at}, which `{}` guards", rule.label);
        reached.push(Reached { why: FloorWhy::RecursiveGuarded, detail, approvals: approvals() });
    }
    if found.exhausted {
        let detail = format!("{from} is too large to look through, and it may lead to guarded paths");
        reached.push(Reached { why: FloorWhy::RecursiveBudget, detail, approvals: approvals() });
    }
    if let Some(link) = found.link_out.filter(|_| path.recursive) {
        let detail = format!("could follow the link {link} out of the root");
        reached.push(Reached { why: FloorWhy::RecursiveLink, detail, approvals: Vec::new() });
    }
    if let Some(mount) = found.mount {
        let detail = format!("goes on to {mount}, another mount");
        reached.push(Reached { why: FloorWhy::Mount, detail, approvals: Vec::new() });
    }
    reached
}

/// What a walk found when the call was made. What it did not look for may be there.
fn walked_then(
    recorded: &Recorded,
    then: Option<&Below>,
    candidates: &[&Rule],
    look: &mut dyn FnMut(&Location) -> bool,
) -> Walked {
    let mut found = Walked::default();
    if let Some(then) = then {
        found.guarded = then.met.iter().find(|at| look(at)).map(ToString::to_string);
        found.exhausted = then.exhausted;
        found.link_out = then.link_out.then(|| "in it".to_owned());
        found.mount = then.mount.then(|| "below".to_owned());
    }
    // Where it was cut off, a link out may lie beyond, too.
    let saw_all =
        then.is_some_and(|then| !then.cut && candidates.iter().all(|rule| then.sought.contains(&rule.ground())));
    if found.guarded.is_none() && !found.exhausted && !saw_all {
        found.exhausted = recorded.tightens(Doubt::Below);
    }
    found
}

/// Whether an ask carries an approval other than the group's.
fn asks_its_own(rule: &Rule) -> bool {
    rule.verdict == Verdict::Ask && rule.approval.is_some()
}

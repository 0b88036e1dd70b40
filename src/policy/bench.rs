//! One call before all rules that could concern it: what is said of each facet, by whom, and whether it is obeyed.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::approval::{Approval, Grants};
use super::commands::{Running, denies_a_word, may_run_words};
use super::fields::{Target, Thing};
use super::grant::Lift;
use super::index::{Concerning, Names, Near};
use super::judge::{Subject, kind_record, matches, target};
use super::model::{Counts, Group, Policy, Rule};
use super::reach::{self, Reached};
use super::recorded::{self, Doubt};
use super::statements;
use crate::facet::path::Space;
use crate::facet::{Below, CommandFacet, Facet, FacetKind, FloorWhy, PathFacet, Stray};
use crate::record::{FacetKindRecord, FacetRecord, FloorRecord, Verdict};

/// One thing that was said of a facet.
pub(super) struct Said<'a> {
    /// As in `decided_by`.
    pub label: String,
    pub verdict: Verdict,
    pub counts: Counts,
    /// The sentence of a floor.
    pub detail: Option<String>,
    /// The rule, where a rule said it.
    pub rule: Option<&'a Rule>,
    /// What an ask requires; `None` in the list is an ask without an `approval` of its own.
    pub approvals: Vec<Option<&'a Approval>>,
}

impl<'a> Said<'a> {
    fn by_rule(rule: &'a Rule, counts: Counts) -> Self {
        let (label, approvals) = (rule.label.clone(), vec![rule.approval.as_ref()]);
        Self { label, verdict: rule.verdict, counts, detail: None, rule: Some(rule), approvals }
    }

    fn by_floor(floor: &FloorRecord, counts: Counts, approvals: Vec<Option<&'a Approval>>) -> Self {
        let (label, detail) = (format!("floor:{}", floor.why), floor.detail.clone());
        Self { label, verdict: Verdict::Ask, counts, detail, rule: None, approvals }
    }

    fn plainly(label: String, verdict: Verdict, counts: Counts) -> Self {
        Self { label, verdict, counts, detail: None, rule: None, approvals: vec![None] }
    }

    /// Only an approval of the very call answers a guardrail, and only a grant for the very call a floor.
    pub fn widest_grant(&self) -> Grants {
        match self.rule {
            Some(rule) if rule.guardrail => Grants::None,
            Some(_) => Grants::Tool,
            None if self.label.starts_with("floor:") => Grants::Exact,
            None => Grants::Tool,
        }
    }
}

/// A facet with all that was said of it.
pub(super) struct Judged<'a> {
    pub record: FacetRecord,
    pub said: Vec<Said<'a>>,
    /// What a walk below it found.
    pub below: Option<Below>,
}

impl<'a> Judged<'a> {
    /// Whatever order the rules were tried in, the strictest stands first and names decide among equals.
    fn new(kind: FacetKindRecord, floors: Vec<FloorRecord>, mut said: Vec<Said<'a>>) -> Self {
        said.sort_by(|a, b| b.verdict.cmp(&a.verdict).then_with(|| a.label.cmp(&b.label)));
        let matches = said.iter().filter_map(|said| Some(said.rule?.record(!said.counts.now))).collect();
        let record = FacetRecord { kind, floors, matches, verdict: Verdict::Deny };
        let mut judged = Self { record, said, below: None };
        judged.record.verdict = judged.verdict(|counts| counts.now);
        judged
    }

    /// Who said what is obeyed.
    pub fn decided_by(&self) -> Vec<String> {
        let deciding = self.said.iter().filter(|said| said.counts.now && said.verdict == self.record.verdict);
        deciding.map(|said| said.label.clone()).collect()
    }

    /// The strictest that was said and counts. What only shadow rules speak of is let be; what nothing speaks of is not.
    pub fn verdict(&self, counts: impl Fn(Counts) -> bool) -> Verdict {
        let unsaid = if self.said.is_empty() { Verdict::Deny } else { Verdict::Allow };
        self.said.iter().find(|said| counts(said.counts)).map_or(unsaid, |said| said.verdict)
    }
}

/// What stays the same for all facets of a call.
pub(super) struct Bench<'a> {
    pub policy: &'a Policy,
    pub subject: &'a Subject<'a>,
    /// None: the group does not exist.
    pub group: Option<&'a Group>,
    /// Whether the group is in shadow mode: only guardrails are obeyed.
    in_shadow: bool,
    /// The group's rules that could match, and the guardrails.
    rules: [Option<Concerning<'a>>; 2],
    /// The grant that lifts an ask, if one does.
    lift: Option<&'a Lift>,
    /// What [`Self::hides_denied`] found, by command: each of its paths asks again.
    hiding: RefCell<HashMap<*const CommandFacet, Counts>>,
}

impl<'a> Bench<'a> {
    pub fn new(policy: &'a Policy, subject: &'a Subject<'a>) -> Self {
        let group = policy.groups.get(subject.group);
        let in_shadow = group.is_some_and(|group| group.is_in_shadow(subject.at));
        let names = Names::of(subject);
        let rules = [group.map(|group| group.rules.concerning(&names)), Some(policy.guardrails.concerning(&names))];
        Self { policy, subject, group, in_shadow, rules, lift: None, hiding: RefCell::default() }
    }

    /// The same where a grant lifts an ask.
    pub fn lifting(self, lift: Option<&'a Lift>) -> Self {
        Self { lift, ..self }
    }

    /// The rules of the group that could match what is near, then the guardrails, each with where it counts.
    fn rules(&self, near: &Near<'_>) -> impl Iterator<Item = (&'a Rule, Counts)> + use<'a> {
        let (at, in_shadow) = (self.subject.at, self.in_shadow);
        let rules: Vec<_> = self.rules.iter().flatten().map(|rules| rules.near(near)).collect();
        rules.into_iter().flatten().filter_map(move |rule| Some((rule, rule.counts(at, in_shadow)?)))
    }

    /// The group's allows that could match, those that are gone too, each with whether it is obeyed.
    pub fn allows(&self) -> impl Iterator<Item = (&'a Rule, bool)> {
        let [of_group, _] = &self.rules;
        let rules = of_group.iter().flat_map(|rules| rules.near(&Near::Every));
        let is_obeyed = |rule: &Rule| rule.counts(self.subject.at, self.in_shadow).is_some_and(|counts| counts.now);
        rules.filter(|rule| rule.verdict == Verdict::Allow).map(move |rule| (rule, is_obeyed(rule)))
    }

    /// Where a command that may run what its words name holds words that a deny names. No allow covers it there, and
    /// nobody lets it pass without asking.
    pub fn hides_denied(&self, running: Option<Running<'_>>) -> Counts {
        let Some(Running { command, .. }) = running.filter(|running| may_run_words(running.command)) else {
            return Counts::NEITHER;
        };
        let look = || {
            let denying: Vec<Counts> = match self.subject.recorded {
                // The log does not tell which words they are.
                Some(recorded) if recorded::hides_rest(command) => {
                    let denies = |rule: &Rule| rule.verdict == Verdict::Deny && !rule.fields.command.is_empty();
                    let rules = self.rules(&Near::Every).filter(|(rule, _)| denies(rule));
                    rules.filter(|_| recorded.tightens(Doubt::Text)).map(|(_, counts)| counts).collect()
                }
                _ => {
                    let rules = self.rules(&Near::Words(&command.seen().names));
                    rules.filter(|(rule, _)| denies_a_word(rule, command)).map(|(_, counts)| counts).collect()
                }
            };
            denying.into_iter().fold(Counts::NEITHER, Counts::or)
        };
        *self.hiding.borrow_mut().entry(Arc::as_ptr(command)).or_insert_with(look)
    }

    /// Where what is neither a rule nor a guardrail counts.
    fn counts(&self) -> Counts {
        if self.in_shadow { Counts::THEN } else { Counts::BOTH }
    }

    /// The approval of asks that have none of their own.
    pub fn fallback(&self) -> Option<&'a Approval> {
        self.group.and_then(|group| group.approval.as_ref()).or(self.policy.approval.as_ref())
    }

    pub fn facet(&self, facet: &Facet, facets: &[Facet], space: &Space) -> Judged<'a> {
        let target = target(facet, facets);
        let mut said = self.by_rules(target);
        self.where_no_rule_matches(facet, target, &mut said);
        self.lifted(target, &mut said);
        let mut below = None;
        let mut floors: BTreeMap<FloorRecord, (Counts, Vec<Option<&'a Approval>>)> = facet
            .floors
            .iter()
            .map(|floor| FloorRecord { why: floor.why.as_str().into(), detail: floor.detail.clone() })
            .map(|floor| (floor, (self.counts(), vec![None])))
            .collect();
        if let FacetKind::Path(path) = &facet.kind
            && reach::is_walked(path)
        {
            for (counts, Reached { why, detail, approvals }) in self.below(path, target, &said, space, &mut below) {
                let floor = FloorRecord { why: why.as_str().into(), detail: Some(detail) };
                let known = floors.entry(floor).or_insert_with(|| (counts, vec![None]));
                known.0 = known.0.or(counts);
                known.1.extend(approvals);
            }
        }
        let mut records = Vec::new();
        for (floor, (counts, approvals)) in floors {
            said.push(Said::by_floor(&floor, counts, approvals));
            records.push(floor);
        }
        Judged { below, ..Judged::new(kind_record(&facet.kind), records, said) }
    }

    fn by_rules(&self, target: Target<'_>) -> Vec<Said<'a>> {
        // A deny that is not obeyed takes nothing away from an allow that is.
        let shown = self.hides_denied(target.running).inverse();
        let said = |(rule, counts): (&'a Rule, Counts)| {
            let counts = if rule.verdict == Verdict::Allow { counts.and(shown) } else { counts };
            (counts.any() && matches(rule, self.subject, target)).then(|| Said::by_rule(rule, counts))
        };
        let near = match self.subject.recorded {
            Some(_) if recorded::hides_names(target) => Near::Every,
            _ => Near::of(target),
        };
        self.rules(&near).filter_map(said).collect()
    }

    /// The group's own word, where none of its rules matches; in shadow mode, that it lets be what no guardrail names.
    fn where_no_rule_matches(&self, facet: &Facet, target: Target<'_>, said: &mut Vec<Said<'a>>) {
        let by_group = |counts: fn(Counts) -> bool| {
            // An ask on what a call of SQL might do as well does not take the place of a deny.
            let denies = self.group.is_some_and(|group| group.otherwise == Verdict::Deny);
            let asks = |rule: &Rule| denies && rule.verdict == Verdict::Ask;
            let maybe = |rule: &Rule| asks(rule) && statements::might_be(&rule.fields.sql, target.thing);
            let surely = |rule: &Rule| !rule.guardrail && !maybe(rule) && !self.may_not_ask(rule, target);
            said.iter().any(|said| said.rule.is_some_and(surely) && counts(said.counts))
        };
        let counts = Counts { now: !by_group(|counts| counts.now), then: !by_group(|counts| counts.then) };
        let counts = counts.and(self.counts());
        let hiding = match target.thing {
            Thing::Command => self.hides_denied(target.running),
            _ => Counts::NEITHER,
        };
        for (counts, least) in [(counts.and(hiding), Verdict::Ask), (counts.and(hiding.inverse()), Verdict::Allow)] {
            if counts.any() {
                said.push(self.otherwise(facet, target, counts, least));
            }
        }
        if self.in_shadow {
            let label = format!("shadow:{}", self.subject.group);
            said.push(Said::plainly(label, Verdict::Allow, Counts { now: true, then: false }));
        }
    }

    /// Where a grant covers the facet as an allow would, the ask that it is bound to is an allow.
    fn lifted(&self, target: Target<'_>, said: &mut [Said<'a>]) {
        let Some(lift) = self.lift else { return };
        if self.hides_denied(target.running).any() || !lift.covers(self.subject, target) {
            return;
        }
        let own = |said: &&mut Said<'_>| {
            said.label == lift.asker && said.verdict == Verdict::Ask && !said.rule.is_some_and(|rule| rule.guardrail)
        };
        for said in said.iter_mut().filter(own) {
            said.verdict = Verdict::Allow;
            said.label.clone_from(&lift.label);
            said.approvals.clear();
        }
    }

    /// Whether an ask that matches a recorded call may not have matched it: `otherwise` may be stricter.
    fn may_not_ask(&self, rule: &Rule, target: Target<'_>) -> bool {
        let strict = self.subject.recorded.filter(|recorded| recorded.is_strict() && rule.verdict == Verdict::Ask);
        strict.is_some_and(|strict| {
            let loose = strict.turned();
            !matches(rule, &Subject { recorded: Some(&loose), ..self.subject.clone() }, target)
        })
    }

    /// Whether an ask that does not match a recorded call may have matched it: `otherwise` may be stricter.
    fn may_ask(&self, target: Target<'_>) -> bool {
        let loose = self.subject.recorded.filter(|recorded| !recorded.is_strict());
        loose.is_some_and(|loose| {
            let strict = loose.turned();
            let subject = Subject { recorded: Some(&strict), ..self.subject.clone() };
            let mut asks = self.rules(&Near::Every).filter(|(rule, _)| rule.verdict == Verdict::Ask && !rule.guardrail);
            asks.any(|(rule, _)| matches(rule, &subject, target))
        })
    }

    /// The group's own word, which is no looser than `least`.
    fn otherwise(&self, facet: &Facet, target: Target<'_>, counts: Counts, least: Verdict) -> Said<'a> {
        let name = self.subject.group;
        let Some(group) = self.group else { return Said::plainly(format!("group:{name}"), Verdict::Deny, counts) };
        // An upstream that wants a model to write for it is never answered by silence.
        let least = match &facet.kind {
            FacetKind::Method(method) if method == "sampling/createMessage" => Verdict::Ask,
            _ => least,
        };
        let verdict = match group.otherwise.max(least) {
            Verdict::Deny if self.may_ask(target) => Verdict::Ask,
            verdict => verdict,
        };
        Said::plainly(format!("otherwise:{name}"), verdict, counts)
    }

    /// What lies below a recursive facet, for each verdict in which it is not denied: a floor is an ask.
    fn below(
        &self,
        path: &PathFacet,
        target: Target<'_>,
        said: &[Said<'a>],
        space: &Space,
        below: &mut Option<Below>,
    ) -> Vec<(Counts, Reached<'a>)> {
        let (subject, in_shadow) = (self.subject, self.in_shadow);
        let candidates: Vec<(&'a Rule, Counts)> =
            self.rules(&Near::Every).filter(|(rule, _)| reach::may_guard(subject, rule, target)).collect();
        let denied =
            |counts: fn(Counts) -> bool| said.iter().any(|said| said.verdict == Verdict::Deny && counts(said.counts));
        let due = Counts { now: !denied(|counts| counts.now), then: !denied(|counts| counts.then) };
        // One walk does for both verdicts where both know the same rules.
        let walks = match candidates.iter().any(|(_, counts)| counts.differ()) {
            true => vec![Counts { now: true, then: false }, Counts::THEN],
            false => vec![Counts::BOTH],
        };
        walks
            .into_iter()
            .map(|walk| walk.and(due))
            .filter(|walk| walk.any())
            .flat_map(|walk| {
                let rules: Vec<&'a Rule> =
                    candidates.iter().filter(|(_, counts)| counts.and(walk).any()).map(|(rule, _)| *rule).collect();
                let found = below.get_or_insert_default();
                reach::below(subject, path, &rules, space, found).into_iter().map(move |reached| {
                    // In shadow mode nothing is obeyed but what guardrails guard.
                    let guarded = matches!(reached.why, FloorWhy::RecursiveGuarded | FloorWhy::RecursiveBudget);
                    (Counts { now: walk.now && (guarded || !in_shadow), then: walk.then }, reached)
                })
            })
            .filter(|(counts, _)| counts.any())
            .collect()
    }

    /// A deny or ask that guards a path reaches unmarked strings too; nothing else is said of them.
    pub fn stray(&self, stray: &Stray) -> Option<Judged<'a>> {
        let mut rules: Vec<(&'a Rule, Counts)> = Vec::new();
        let mut place = None;
        for at in &stray.locations {
            let near = match self.subject.recorded {
                Some(_) if recorded::hides_place(at) => Near::Every,
                _ => Near::at(at),
            };
            for (rule, counts) in self.rules(&near).filter(|(rule, _)| reach::guards(self.subject, rule, at)) {
                place = place.or(Some(at));
                if !rules.iter().any(|(known, _)| std::ptr::eq(*known, rule)) {
                    rules.push((rule, counts));
                }
            }
        }
        let kind = FacetKindRecord::Path {
            access: None,
            pointer: stray.pointer.clone(),
            lexical: place?.to_string(),
            physical: None,
            command: None,
        };
        let said = rules.into_iter().map(|(rule, counts)| Said::by_rule(rule, counts)).collect();
        Some(Judged::new(kind, Vec::new(), said))
    }
}

//! Strictest match wins; guardrails and floors are added, never put in place of the group's verdict.

use std::collections::BTreeMap;

use super::advice;
use super::approval::{Approval, Grants, Requirement};
use super::commands::{Running, covers, hides_denied};
use super::fields::{Reading, Target, Thing};
use super::model::{Group, Names, Policy, Rule};
use super::reach::{self, Reached};
use crate::facet::path::Space;
use crate::facet::{AddressFacet, Facet, FacetKind, FloorWhy, Stray, Touched, UrlFacet};
use crate::message::Value;
use crate::pattern::Location;
use crate::record::{Depth, FacetKindRecord, FacetRecord, FloorRecord, Rejection, Source, Verdict};

/// Who calls what, as rules see it. `None` is "left out": taken to hold (examples only).
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The policy group.
    pub group: &'a str,
    /// The agent's name.
    pub agent: Option<&'a str>,
    /// Interactive or background.
    pub source: Option<Source>,
    /// Root or sub.
    pub depth: Option<Depth>,
    /// The configured upstream.
    pub upstream: Option<&'a str>,
    /// The tool's name, for `tools/call`.
    pub tool: Option<&'a str>,
    /// The catalogue's category of the tool. None for a tool that no catalogue describes: it may be of any.
    pub category: Option<&'a str>,
    /// The MCP method.
    pub method: &'a str,
    /// The arguments.
    pub arguments: Option<&'a Value>,
}

/// What the policy says of one call.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The strictest of all facets.
    pub verdict: Verdict,
    /// Each facet with its matches, then the unmarked strings that a guarded path was found in.
    pub facets: Vec<FacetJudgement>,
    /// Rules, `otherwise:GROUP`, `builtin:NAME`, `floor:WHY`, in a fixed order; `group:NAME` for a group that does not
    /// exist.
    pub decided_by: Vec<String>,
    /// The deciding rules' reasons, in the same order, without repeats.
    pub reasons: Vec<String>,
    /// For a deny: policy or guardrail.
    pub rejection: Option<Rejection>,
    /// For an ask: what must be met, merged to the strict side.
    pub requirement: Option<Requirement>,
    /// In plain English, what an allow would have needed; empty for an allow.
    pub needed_for_allow: Vec<String>,
}

/// One facet, judged.
#[derive(Clone, Debug)]
pub struct FacetJudgement {
    /// Its record: fields, floors, matches, verdict.
    pub record: FacetRecord,
}

/// Judges a call. Pure but for the walks below recursive facets ([`needs_walk`]), which block for up to 50 ms each.
pub fn judge(policy: &Policy, subject: &Subject<'_>, touched: &Touched, space: &Space) -> Judgement {
    let bench = Bench::new(policy, subject);
    let bare = [Facet { kind: FacetKind::Bare, floors: Vec::new() }];
    let facets = if touched.facets.is_empty() { &bare } else { touched.facets.as_slice() };
    let mut judged: Vec<Judged<'_>> = facets.iter().map(|facet| bench.facet(facet, facets, space)).collect();
    judged.extend(touched.strays.iter().filter_map(|stray| bench.stray(stray)));
    bench.conclude(judged)
}

/// Whether judging walks a file system and so must not run on an async thread.
pub fn needs_walk(touched: &Touched) -> bool {
    touched.facets.iter().any(|facet| matches!(&facet.kind, FacetKind::Path(path) if reach::is_walked(path)))
}

/// One thing that was said of a facet.
pub(super) struct Said<'a> {
    /// As in `decided_by`.
    pub label: String,
    pub verdict: Verdict,
    /// The rule, where a rule said it.
    pub rule: Option<&'a Rule>,
    /// What an ask requires; `None` in the list is an ask without an `approval` of its own.
    approvals: Vec<Option<&'a Approval>>,
}

impl<'a> Said<'a> {
    fn by_rule(rule: &'a Rule) -> Self {
        let approvals = vec![rule.approval.as_ref()];
        Self { label: rule.label.clone(), verdict: rule.verdict, rule: Some(rule), approvals }
    }

    /// Only an approval of the very call answers a guardrail, and only a grant for the very call a floor.
    fn widest_grant(&self) -> Grants {
        match self.rule {
            Some(rule) if rule.guardrail => Grants::None,
            Some(_) => Grants::Tool,
            None if self.label.starts_with("floor:") => Grants::Exact,
            None => Grants::Tool,
        }
    }

    fn plainly(label: String, verdict: Verdict) -> Self {
        Self { label, verdict, rule: None, approvals: vec![None] }
    }
}

/// A facet with all that was said of it.
pub(super) struct Judged<'a> {
    pub record: FacetRecord,
    pub said: Vec<Said<'a>>,
}

impl<'a> Judged<'a> {
    /// Whatever order the rules were tried in, the strictest stands first and names decide among equals.
    fn new(kind: FacetKindRecord, floors: Vec<FloorRecord>, mut said: Vec<Said<'a>>) -> Self {
        said.sort_by(|a, b| b.verdict.cmp(&a.verdict).then_with(|| a.label.cmp(&b.label)));
        let matches = said.iter().filter_map(|said| said.rule).map(Rule::record).collect();
        let verdict = said.first().map_or(Verdict::Deny, |said| said.verdict);
        Self { record: FacetRecord { kind, floors, matches, verdict }, said }
    }
}

/// What stays the same for all facets of a call.
pub(super) struct Bench<'a> {
    pub policy: &'a Policy,
    pub subject: &'a Subject<'a>,
    /// None: the group does not exist.
    pub group: Option<&'a Group>,
    names: Names,
}

impl<'a> Bench<'a> {
    fn new(policy: &'a Policy, subject: &'a Subject<'a>) -> Self {
        Self { policy, subject, group: policy.groups.get(subject.group), names: Names::of(subject) }
    }

    /// The rules of the group that could match, then the guardrails.
    pub fn rules(&self) -> impl Iterator<Item = &'a Rule> {
        let group = self.group.map(|group| group.rules.concerning(&self.names));
        group.into_iter().flatten().chain(self.policy.guardrails.concerning(&self.names))
    }

    fn facet(&self, facet: &Facet, facets: &[Facet], space: &Space) -> Judged<'a> {
        let target = target(facet, facets);
        let hides_denied = target.running.is_some_and(|running| hides_denied(running, self.rules()));
        let said =
            |rule: &&Rule| matches(rule, self.subject, target) && !(hides_denied && rule.verdict == Verdict::Allow);
        let mut said: Vec<Said<'a>> = self.rules().filter(said).map(Said::by_rule).collect();
        if !said.iter().any(|said| said.rule.is_some_and(|rule| !rule.guardrail)) {
            said.push(self.otherwise(facet));
        }
        let mut floors: BTreeMap<FloorRecord, Vec<Option<&'a Approval>>> = facet
            .floors
            .iter()
            .map(|floor| (FloorRecord { why: floor.why.as_str().into(), detail: floor.detail.clone() }, vec![None]))
            .collect();
        // What is denied is not walked: a floor is an ask.
        if let FacetKind::Path(path) = &facet.kind
            && said.iter().all(|said| said.verdict != Verdict::Deny)
        {
            for Reached { why, detail, approvals } in reach::below(self, path, target, space) {
                let floor = FloorRecord { why: why.as_str().into(), detail: Some(detail) };
                floors.entry(floor).or_insert_with(|| vec![None]).extend(approvals);
            }
        }
        let mut records = Vec::new();
        for (floor, approvals) in floors {
            let label = format!("floor:{}", floor.why);
            said.push(Said { label, verdict: Verdict::Ask, rule: None, approvals });
            records.push(floor);
        }
        Judged::new(kind_record(&facet.kind), records, said)
    }

    /// A deny or ask that guards a path reaches unmarked strings too; nothing else is said of them.
    fn stray(&self, stray: &Stray) -> Option<Judged<'a>> {
        let mut rules: Vec<&'a Rule> = Vec::new();
        let mut place = None;
        for at in &stray.locations {
            for rule in self.rules().filter(|rule| reach::guards(self.subject, rule, at)) {
                place = place.or(Some(at));
                if !rules.iter().any(|known| std::ptr::eq(*known, rule)) {
                    rules.push(rule);
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
        Some(Judged::new(kind, Vec::new(), rules.into_iter().map(Said::by_rule).collect()))
    }

    fn otherwise(&self, facet: &Facet) -> Said<'a> {
        let name = self.subject.group;
        let Some(group) = self.group else { return Said::plainly(format!("group:{name}"), Verdict::Deny) };
        // An upstream that wants a model to write for it is never answered by silence.
        let least = match &facet.kind {
            FacetKind::Method(method) if method == "sampling/createMessage" => Verdict::Ask,
            _ => Verdict::Allow,
        };
        Said::plainly(format!("otherwise:{name}"), group.otherwise.max(least))
    }

    fn conclude(&self, judged: Vec<Judged<'a>>) -> Judgement {
        let verdict = judged.iter().map(|judged| judged.record.verdict).max().unwrap_or(Verdict::Deny);
        let deciding = || judged.iter().flat_map(|judged| &judged.said).filter(|said| said.verdict == verdict);
        let by_label: BTreeMap<&str, &Said<'a>> = deciding().map(|said| (said.label.as_str(), said)).collect();
        let decided_by: Vec<String> = by_label.keys().map(|label| (*label).to_owned()).collect();
        let mut reasons: Vec<String> = Vec::new();
        for reason in by_label.values().filter_map(|said| said.rule?.reason.as_ref()) {
            if !reasons.contains(reason) {
                reasons.push(reason.clone());
            }
        }
        let rejection = (verdict == Verdict::Deny).then(|| {
            let guarded = deciding().any(|said| said.rule.is_some_and(|rule| rule.guardrail));
            if guarded { Rejection::Guardrail } else { Rejection::Policy }
        });
        let requirement = (verdict == Verdict::Ask).then(|| {
            let fallback = self.group.and_then(|group| group.approval.as_ref()).or(self.policy.approval.as_ref());
            let asks = deciding().flat_map(|said| &said.approvals).map(|own| own.or(fallback));
            let widest = deciding().map(Said::widest_grant).min().unwrap_or_default();
            Requirement::merge(decided_by.clone(), asks, widest)
        });
        let needed_for_allow = advice::needed_for_allow(self.subject.group, &judged);
        let facets = judged.into_iter().map(|judged| FacetJudgement { record: judged.record }).collect();
        Judgement { verdict, facets, decided_by, reasons, rejection, requirement, needed_for_allow }
    }
}

/// Whether a rule matches a facet: its fields hold, and no exception takes it away.
pub(super) fn matches(rule: &Rule, subject: &Subject<'_>, target: Target<'_>) -> bool {
    let reading = Reading::of(rule.verdict);
    let exception = Reading::of_exception(rule.verdict);
    reading.holds(rule.fields.hold(subject, target, reading))
        && (rule.verdict != Verdict::Allow || covers(&rule.fields, target))
        && !rule.except.iter().any(|fields| exception.holds(fields.hold(subject, target, exception)))
}

/// What of a facet rules look at, among the facets of its call.
pub(super) fn target<'a>(facet: &'a Facet, facets: &'a [Facet]) -> Target<'a> {
    let (thing, command) = match &facet.kind {
        FacetKind::Path(path) => {
            let thing = Thing::Path { access: path.access, lexical: &path.lexical, physical: &path.physical };
            (thing, path.command.as_ref())
        }
        FacetKind::Command(command) => (Thing::Command, Some(command)),
        FacetKind::Url(url) => (remote(url.host.as_deref(), facet), url.command.as_ref()),
        FacetKind::Address(address) => (remote(address.host.as_deref(), facet), None),
        FacetKind::Method(_) | FacetKind::Bare => (Thing::Other, None),
    };
    let running = command.map(|command| Running { command, facets });
    Target { thing, guessed: facet.floors.iter().any(|floor| floor.why == FloorWhy::Heuristic), running }
}

/// Who is reached, which is not sure where a floor says that others read it differently.
fn remote<'a>(host: Option<&'a str>, facet: &Facet) -> Thing<'a> {
    let odd = facet.floors.iter().any(|floor| matches!(floor.why, FloorWhy::OddUrl | FloorWhy::OddAddress));
    Thing::Remote { host, sure: !odd }
}

/// All that a path may lead to, the place that would be forwarded first: an approval binds to every one of them.
fn physical(places: &[Location]) -> Option<String> {
    let places: Vec<String> = places.iter().map(ToString::to_string).collect();
    (!places.is_empty()).then(|| places.join(" and "))
}

fn kind_record(kind: &FacetKind) -> FacetKindRecord {
    match kind {
        FacetKind::Path(path) => FacetKindRecord::Path {
            access: path.access,
            pointer: path.pointer.clone(),
            lexical: path.lexical.to_string(),
            physical: physical(&path.physical),
            command: path.command.as_ref().map(|command| command.shown()),
        },
        FacetKind::Command(command) => FacetKindRecord::Command {
            words: match &command.unread {
                Some(text) => vec![text.clone()],
                None => command.words.iter().map(|word| word.text.clone()).collect(),
            },
            options: command.options.clone(),
            cwd: command.cwd.as_ref().map(ToString::to_string),
        },
        FacetKind::Url(UrlFacet { url, host, command }) => FacetKindRecord::Url {
            url: url.clone(),
            host: host.clone(),
            command: command.as_ref().map(|command| command.shown()),
        },
        FacetKind::Address(AddressFacet { address, host }) => {
            FacetKindRecord::Address { address: address.clone(), host: host.clone() }
        }
        FacetKind::Method(method) => FacetKindRecord::Method { method: method.clone() },
        FacetKind::Bare => FacetKindRecord::Bare,
    }
}

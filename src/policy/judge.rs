//! Strictest match wins; guardrails and floors are added, never put in place of the group's verdict.

use std::collections::BTreeMap;

use super::advice;
use super::approval::{Grants, Requirement};
use super::bench::{Bench, Judged, Said};
use super::claimed::Claimed;
use super::commands::{Running, covers};
use super::fields::{Reading, Sure, Target, Thing};
use super::grant::Lift;
use super::limit::{Charge, Limit, Then};
use super::model::{Counts, Policy, Rule};
use super::reach;
use super::recorded::Recorded;
use crate::clock::Timestamp;
use crate::facet::path::Space;
use crate::facet::{AddressFacet, Argument, Below, Facet, FacetKind, FloorWhy, Touched, UrlFacet};
use crate::message::Value;
use crate::pattern::Location;
use crate::record::{Depth, Dynamic, FacetKindRecord, FacetRecord, Rejection, Source, Verdict};

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
    /// What the client says of source and depth.
    pub claimed: Claimed,
    /// When. None: before every `until` (examples only).
    pub at: Option<Timestamp>,
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
    /// For a call out of the audit log: what is made of what that does not tell. None for one that is made.
    pub recorded: Option<&'a Recorded>,
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
    /// What would have been said had nothing been in shadow mode; none where nothing in shadow mode concerned the call.
    pub shadow: Option<Shadow>,
    /// What the call takes of the limits of all allows that match it, if it runs.
    pub charges: Vec<Charge>,
    /// What an ask of one of those limits requires.
    pub limit_asks: Option<Requirement>,
    /// What walks found below facets, by their places in the call and those within it.
    pub walks: Vec<(usize, Below)>,
}

/// How `decided_by` names a signed claim that is not sound.
pub const CLAIM: &str = "claim";

impl Judgement {
    /// Makes a refusal of it that policy has no part in; `by` as in `decided_by`.
    pub fn refuse(&mut self, by: &str, reason: String) {
        self.verdict = Verdict::Deny;
        self.decided_by = vec![by.to_owned()];
        self.reasons = vec![reason];
        self.rejection = Some(Rejection::Policy);
        self.requirement = None;
        if let Some(facet) = self.facets.first_mut() {
            facet.record.verdict = Verdict::Deny;
        }
    }

    /// The judgement of the call where a grant for this very call lifts all that asks.
    #[must_use]
    pub fn granted(mut self, label: String) -> Self {
        self.verdict = Verdict::Allow;
        self.decided_by = vec![label];
        self.reasons.clear();
        self.requirement = None;
        self
    }

    /// The judgement of a call that is over limits that ask: held, whatever else asks.
    #[must_use]
    pub fn over(mut self, over: &[Charge]) -> Self {
        if over.is_empty() {
            return self;
        }
        let mut labels: Vec<String> = over.iter().map(Charge::label).collect();
        labels.dedup();
        let mut asked = self.limit_asks.clone();
        asked.iter_mut().for_each(|asked| asked.asked_by.clone_from(&labels));
        self.requirement = match (self.requirement, asked) {
            (Some(one), Some(other)) => Some(one.and(other)),
            (one, other) => one.or(other),
        };
        if self.verdict == Verdict::Allow {
            self.decided_by.clear();
            self.reasons.clear();
        }
        self.verdict = self.verdict.max(Verdict::Ask);
        self.reasons.extend(over.iter().map(|charge| format!("The limit of `{}` is {}.", charge.rule, charge.words)));
        self.reasons.dedup();
        self.decided_by.append(&mut labels);
        self.decided_by.sort();
        self
    }
}

/// A verdict that is logged and not obeyed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shadow {
    /// The strictest of all facets.
    pub verdict: Verdict,
    /// As in [`Judgement::decided_by`].
    pub decided_by: Vec<String>,
}

/// One facet, judged.
#[derive(Clone, Debug)]
pub struct FacetJudgement {
    /// Its record: fields, floors, matches, verdict.
    pub record: FacetRecord,
}

/// Judges a call. Pure but for the walks below recursive facets ([`needs_walk`]), which block for up to 50 ms each.
pub fn judge(policy: &Policy, subject: &Subject<'_>, touched: &Touched, space: &Space) -> Judgement {
    judge_and(policy, subject, touched, space, None, |_, _, _| ())
}

/// [`judge`], where a grant lifts one ask.
pub(super) fn judge_lifted(
    policy: &Policy,
    subject: &Subject<'_>,
    touched: &Touched,
    space: &Space,
    lift: &Lift,
) -> Judgement {
    judge_and(policy, subject, touched, space, Some(lift), |_, _, _| ())
}

/// [`judge`], and how it came about.
pub(super) fn judge_with_advice(
    policy: &Policy,
    subject: &Subject<'_>,
    touched: &Touched,
    space: &Space,
) -> (Judgement, Advice) {
    let mut told = Advice::default();
    let judgement = judge_and(policy, subject, touched, space, None, |bench, facets, judged| {
        told.needed_for_allow.extend(advice::needed_for_allow(bench, facets, judged));
        told.decided_by.extend(judged.iter().map(Judged::decided_by));
    });
    told.needed_for_allow.dedup();
    (judgement, told)
}

/// What people who ask want to know besides.
#[derive(Default)]
pub(super) struct Advice {
    /// In plain English, what an allow would have needed; empty for an allow.
    pub needed_for_allow: Vec<String>,
    /// Who decided each facet, in the order of [`Judgement::facets`].
    pub decided_by: Vec<Vec<String>>,
}

/// Judges, and lets `also` look at all that was said of each facet of the call, then of each call within it.
fn judge_and(
    policy: &Policy,
    subject: &Subject<'_>,
    touched: &Touched,
    space: &Space,
    lift: Option<&Lift>,
    mut also: impl FnMut(&Bench<'_>, &[Facet], &[Judged<'_>]),
) -> Judgement {
    let calls = calls(subject, touched);
    let benches: Vec<_> =
        calls.iter().map(|(subject, touched)| (Bench::new(policy, subject).lifting(lift), *touched)).collect();
    let bare = [Facet { kind: FacetKind::Bare, floors: Vec::new() }];
    let (mut judged, mut charged): (Vec<Judged<'_>>, Vec<Charge>) = Default::default();
    let (mut walks, mut before) = (Vec::new(), 0);
    for (bench, touched) in &benches {
        let facets = if touched.facets.is_empty() { &bare } else { touched.facets.as_slice() };
        let mut own: Vec<Judged<'_>> = facets.iter().map(|facet| bench.facet(facet, facets, space)).collect();
        walks.extend((before..).zip(&mut own).filter_map(|(at, judged)| Some((at, judged.below.take()?))));
        before += facets.len();
        own.extend(touched.strays.iter().filter_map(|stray| bench.stray(stray)));
        also(bench, facets, &own);
        charged.extend(charges(bench, &own));
        judged.append(&mut own);
    }
    Judgement { walks, ..conclude(&Bench::new(policy, subject), judged, charged) }
}

/// The call as it is made, then the calls within it that bridge tools make, each with its arguments decoded.
pub(super) fn calls<'a>(subject: &Subject<'a>, touched: &'a Touched) -> Vec<(Subject<'a>, &'a Touched)> {
    let arguments = touched.decoded.as_deref().or(subject.arguments);
    let mut calls = vec![(Subject { arguments, ..subject.clone() }, touched)];
    let mut next = touched.inner.as_deref();
    while let Some(inner) = next {
        let (tool, category) = (Some(inner.tool.as_str()), inner.category.as_deref());
        let own = Subject { tool, category, arguments: inner.arguments.as_deref(), ..subject.clone() };
        calls.push((own, &inner.touched));
        next = inner.touched.inner.as_deref();
    }
    calls
}

/// Whether judging walks a file system and so must not run on an async thread.
pub fn needs_walk(touched: &Touched) -> bool {
    let walked = |facet: &Facet| matches!(&facet.kind, FacetKind::Path(path) if reach::is_walked(path));
    touched.facets.iter().any(walked) || touched.inner.as_ref().is_some_and(|inner| needs_walk(&inner.touched))
}

/// The call's verdict from those of its facets.
fn conclude(bench: &Bench<'_>, judged: Vec<Judged<'_>>, charged: Vec<Charge>) -> Judgement {
    let (verdict, deciding) = strictest(&judged, |counts| counts.now);
    let decided_by: Vec<String> = deciding.keys().map(|label| (*label).to_owned()).collect();
    let mut reasons: Vec<String> = Vec::new();
    for reason in deciding.values().flatten().filter_map(|said| said.rule?.reason.as_ref()) {
        if !reasons.contains(reason) {
            reasons.push(reason.clone());
        }
    }
    let all = || deciding.values().flatten().copied();
    let rejection = (verdict == Verdict::Deny).then(|| {
        let guarded = all().any(|said| said.rule.is_some_and(|rule| rule.guardrail));
        if guarded { Rejection::Guardrail } else { Rejection::Policy }
    });
    let requirement = (verdict == Verdict::Ask).then(|| {
        let asks = all().flat_map(|said| &said.approvals).map(|own| own.or(bench.fallback()));
        let widest = all().map(Said::widest_grant).min().unwrap_or_default();
        Requirement::merge(decided_by.clone(), asks, widest)
    });
    let shadow = judged.iter().flat_map(|judged| &judged.said).any(|said| said.counts.differ()).then(|| {
        let (verdict, deciding) = strictest(&judged, |counts| counts.then);
        Shadow { verdict, decided_by: deciding.keys().map(|label| (*label).to_owned()).collect() }
    });
    let charges = if verdict == Verdict::Deny { Vec::new() } else { charged };
    let limit_asks = charges.iter().any(|charge| charge.then == Then::Ask);
    let limit_asks = limit_asks.then(|| Requirement::merge(Vec::new(), [bench.fallback()], Grants::None));
    let facets = judged.into_iter().map(|judged| FacetJudgement { record: judged.record }).collect();
    let walks = Vec::new();
    Judgement { verdict, facets, decided_by, reasons, rejection, requirement, shadow, charges, limit_asks, walks }
}

/// Once for each allow that is obeyed and limited, however many facets of the call it covers; by that call's own arguments,
/// also where it stands within the call of a bridge tool.
fn charges(bench: &Bench<'_>, judged: &[Judged<'_>]) -> Vec<Charge> {
    let mut limited: BTreeMap<&str, (&Rule, &Limit)> = BTreeMap::new();
    for said in judged.iter().flat_map(|judged| &judged.said).filter(|said| said.counts.now) {
        if let Some(rule) = said.rule
            && let Some(limit) = &rule.limit
        {
            limited.insert(&rule.label, (rule, limit));
        }
    }
    limited.into_values().flat_map(|(rule, limit)| Charge::of(rule, limit, bench.subject)).collect()
}

/// The strictest verdict of all facets, and all that said it, by label.
fn strictest<'j, 'a>(
    judged: &'j [Judged<'a>],
    counts: impl Fn(Counts) -> bool,
) -> (Verdict, BTreeMap<&'j str, Vec<&'j Said<'a>>>) {
    let verdict = judged.iter().map(|judged| judged.verdict(&counts)).max().unwrap_or(Verdict::Deny);
    let mut deciding: BTreeMap<&str, Vec<&Said<'_>>> = BTreeMap::new();
    for said in judged.iter().flat_map(|judged| &judged.said) {
        if said.verdict == verdict && counts(said.counts) {
            deciding.entry(&said.label).or_default().push(said);
        }
    }
    (verdict, deciding)
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
            let crate::facet::PathFacet { access, lexical, physical, part, .. } = path;
            let thing = Thing::Path { access: *access, lexical, physical, part: *part };
            (thing, path.command.as_ref())
        }
        FacetKind::Command(command) => (Thing::Command, Some(command)),
        FacetKind::Url(url) => (remote(url.host.as_deref(), url.unmarked, facet), url.command.as_ref()),
        FacetKind::Address(address) => (remote(address.host.as_deref(), address.unmarked, facet), None),
        FacetKind::Sql(sql) => (Thing::Sql(sql), None),
        FacetKind::Method(_) | FacetKind::Bare => (Thing::Other, None),
    };
    let running = command.map(|command| Running { command, facets });
    Target { thing, guessed: facet.floors.iter().any(|floor| floor.why == FloorWhy::Heuristic), running }
}

/// Who is reached, which is not sure where a floor says that others read it differently.
fn remote<'a>(host: Option<&'a str>, unmarked: bool, facet: &Facet) -> Thing<'a> {
    let odd = facet.floors.iter().any(|floor| matches!(floor.why, FloorWhy::OddUrl | FloorWhy::OddAddress));
    let sure = if odd {
        Sure::No
    } else if unmarked {
        Sure::Unmarked
    } else {
        Sure::Yes
    };
    Thing::Remote { host, sure }
}

/// All that a path may lead to, the place that would be forwarded first: an approval binds to every one of them.
fn physical(places: &[Location]) -> Option<String> {
    let places: Vec<String> = places.iter().map(ToString::to_string).collect();
    (!places.is_empty()).then(|| places.join(" and "))
}

/// The places of words that only a running shell knows.
fn unknown(words: &[Argument]) -> Vec<usize> {
    words.iter().enumerate().filter(|(_, word)| !word.known).map(|(at, _)| at).collect()
}

pub(super) fn kind_record(kind: &FacetKind) -> FacetKindRecord {
    match kind {
        FacetKind::Path(path) => FacetKindRecord::Path {
            access: path.access,
            pointer: path.pointer.clone(),
            lexical: path.lexical.to_string(),
            physical: physical(&path.physical),
            command: path.command.as_ref().map(|command| command.brief()),
        },
        FacetKind::Command(command) => FacetKindRecord::Command {
            words: match &command.unread {
                Some(text) => vec![text.clone()],
                None => command.words.iter().map(|word| word.text.clone()).collect(),
            },
            options: command.options.clone(),
            cwd: command.cwd.as_ref().map(ToString::to_string),
            rest: command.rest.iter().map(|word| word.text.clone()).collect(),
            powers: command.powers.clone(),
            tabled: command.tabled,
            unread: command.unread.is_some(),
            dynamic: Dynamic { words: unknown(&command.words), rest: unknown(&command.rest) },
        },
        FacetKind::Url(UrlFacet { url, host, command, .. }) => FacetKindRecord::Url {
            url: url.clone(),
            host: host.clone(),
            command: command.as_ref().map(|command| command.brief()),
        },
        FacetKind::Address(AddressFacet { address, host, .. }) => {
            FacetKindRecord::Address { address: address.clone(), host: host.clone() }
        }
        FacetKind::Sql(sql) => FacetKindRecord::Sql {
            kinds: sql.kinds.iter().map(|kind| kind.as_str().to_owned()).collect(),
            tables: sql.tables.iter().cloned().collect(),
        },
        FacetKind::Method(method) => FacetKindRecord::Method { method: method.clone() },
        FacetKind::Bare => FacetKindRecord::Bare,
    }
}

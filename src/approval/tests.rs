#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

//! Rules of the state machine, one by one, and its laws over random event orders.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::clock::Timestamp;
use crate::record::*;

const START: i64 = 1_796_000_000_000;
const EXPIRES: u64 = 900_000;
const GRACE: u64 = 120_000;
const TTL: u64 = 600_000;
const DIGEST: &str = "sha256:shown";
pub(crate) const EXECUTOR: &str = "sha256:executor";

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(START).after(Duration::from_millis(ms))
}

/// A call that waits with its client in process `here`.
pub(crate) fn held(id: &str) -> Held {
    let call = serde_json::json!({
        "id": format!("call_{id}"), "state": "awaiting_approval", "outcome": null, "reason": null, "may_have_run": false,
        "agent": "claude", "owner": "ana", "group": "default", "source": "interactive", "depth": "root",
        "session": "ses_1", "upstream": "files", "tool": "write_file", "method": "tools/call", "label": "write_file a",
        "arguments": {"path": "a"}, "redacted": [], "verdict": "ask", "decided_by": ["writes"], "grant": null,
        "facets": [{"kind": "path", "access": "write", "pointer": "/path", "lexical": "a", "physical": null,
                    "command": null, "floors": [], "matches": [], "verdict": "ask"}],
        "shadow_verdict": null, "policy": "sha256:p", "digest": DIGEST, "attach_key": "sha256:key",
        "created_at": at(0), "released_at": null, "ended_at": null, "waited_ms": null, "ran_ms": null,
        "tool_error": null, "approval": format!("apr_{id}"),
    });
    let approval = serde_json::json!({
        "id": format!("apr_{id}"), "call": call, "state": "waiting",
        "requirements": [{"approval": null, "approvers": [], "quorum": 1, "votes": 0}], "votes": [],
        "severity": "normal", "client": {"state": "attached", "gone_since": null, "will_run": "now"},
        "expires_at": at(EXPIRES), "escalated_at": null, "notified": [], "flags": [], "edited_from": null,
        "grant_options": [],
    });
    Held {
        approval: serde_json::from_value(approval).unwrap(),
        intent: Intent {
            message: "{}".into(),
            original: None,
            agent: "claude".into(),
            credential: None,
            session: Some("ses_1".into()),
            era: "legacy".into(),
            definition: None,
            places: String::new(),
            scripts: Vec::new(),
            very_call: None,
            task: None,
            origin: Origin { process: Some("here".into()), gone_since: None, executor: EXECUTOR.into() },
        },
        terms: Terms {
            asked: vec!["writes".into()],
            expires_ms: EXPIRES,
            hold_grace_ms: GRACE,
            result_ttl_ms: TTL,
            ..Terms::default()
        },
        attached_at: Some("here".into()),
        claimed_by: None,
        decided_at: None,
        kept: None,
        cancel_requested: false,
        delivered: false,
        handed_off: false,
        room_at: None,
        question: None,
    }
}

pub(crate) fn vote(by: &str, decision: Decision) -> Event {
    let vote = Vote {
        by: by.into(),
        teams: Vec::new(),
        decision,
        channel: "api".into(),
        note: Some("because".into()),
        digest: Some(DIGEST.into()),
        remember: None,
        at: at(0),
    };
    Event::Vote { vote, sole_approver: false }
}

fn vote_with(change: impl FnOnce(&mut Vote, &mut bool)) -> Event {
    let Event::Vote { mut vote, mut sole_approver } = vote("ben", Decision::Approve) else { unreachable!() };
    change(&mut vote, &mut sole_approver);
    Event::Vote { vote, sole_approver }
}

fn claim() -> Event {
    Event::Claim { process: "here".into(), digest: Some(DIGEST.into()) }
}

fn finish(outcome: Outcome, kept: bool) -> Event {
    let kept = kept.then(|| Kept { body: "{}".into(), is_error: false, at: at(10) });
    Event::Finish { outcome, kept, tool_error: Some(false), detail: None, may_have_run: false }
}

fn states(held: &Held) -> (CallState, ApprovalState) {
    (held.call().state, held.approval.state)
}

#[track_caller]
fn refused(held: &mut Held, event: Event, ms: u64, why: Refused) {
    let before = held.clone();
    assert_eq!(held.apply(event, at(ms)), Err(why));
    assert_eq!(*held, before, "a refusal changes nothing");
}

#[test]
fn approved_once_it_runs_once() {
    let mut held = held("1");
    refused(&mut held, claim(), 5, Refused::NotNow);
    held.apply(vote("ben", Decision::Approve), at(10)).unwrap();
    assert_eq!(states(&held), (CallState::AwaitingApproval, ApprovalState::Approved));
    assert_eq!((held.decided_at, held.call().waited_ms), (Some(at(10)), Some(10)));
    assert_eq!(held.approval.requirements[0].votes, 1);

    held.apply(claim(), at(12)).unwrap();
    assert_eq!(states(&held), (CallState::Running, ApprovalState::Consumed));
    refused(&mut held, claim(), 13, Refused::NotNow);

    held.apply(finish(Outcome::Completed, false), at(20)).unwrap();
    assert_eq!((held.call().ran_ms, held.call().outcome), (Some(8), Some(Outcome::Completed)));
    refused(&mut held, claim(), 21, Refused::Ended);
    refused(&mut held, finish(Outcome::Failed, false), 21, Refused::Ended);
    refused(&mut held, Event::Cancel { detail: None }, 21, Refused::Ended);
}

#[test]
fn what_those_approved_who_may_not_any_more_counts_no_longer() {
    let mut held = held("1");
    held.apply(vote("ben", Decision::Approve), at(10)).unwrap();
    held.apply(Event::Disown { voters: vec!["cid".into()] }, at(11)).unwrap();
    assert_eq!(states(&held), (CallState::AwaitingApproval, ApprovalState::Approved), "another's is untouched");
    held.apply(Event::Disown { voters: vec!["ben".into()] }, at(12)).unwrap();
    assert_eq!(states(&held), (CallState::AwaitingApproval, ApprovalState::Waiting));
    assert_eq!((held.decided_at, held.call().waited_ms), (None, None));
    assert!(held.approval.votes.is_empty() && held.approval.requirements[0].votes == 0);
    refused(&mut held, claim(), 13, Refused::NotNow);
    held.apply(vote("cid", Decision::Approve), at(14)).unwrap();
    held.apply(claim(), at(15)).unwrap();
    refused(&mut held, Event::Disown { voters: vec!["cid".into()] }, 16, Refused::NotNow);
}

#[test]
fn an_approval_needs_the_current_digest() {
    let mut held = held("1");
    refused(&mut held, vote_with(|vote, _| vote.digest = None), 1, Refused::Digest);
    refused(&mut held, vote_with(|vote, _| vote.digest = Some("sha256:old".into())), 1, Refused::Digest);
    held.approval.call.digest = None;
    refused(&mut held, vote_with(|vote, _| vote.digest = None), 1, Refused::Digest);
}

#[test]
fn the_first_decision_stands() {
    let mut approved = held("1");
    approved.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    refused(&mut approved, vote("ben", Decision::Approve), 2, Refused::Repeated);
    refused(&mut approved, vote("eve", Decision::Approve), 2, Refused::Decided);
    refused(&mut approved, vote("ben", Decision::Reject), 2, Refused::Decided);
    approved.apply(claim(), at(3)).unwrap();
    refused(&mut approved, vote("eve", Decision::Reject), 4, Refused::Decided);
    approved.apply(finish(Outcome::Completed, false), at(5)).unwrap();
    refused(&mut approved, vote("eve", Decision::Reject), 6, Refused::Ended);
    refused(&mut approved, vote("ben", Decision::Approve), 6, Refused::Repeated);

    let mut rejected = held("2");
    rejected.apply(vote("ben", Decision::Reject), at(1)).unwrap();
    assert_eq!(states(&rejected), (CallState::Rejected, ApprovalState::Rejected));
    assert_eq!(
        (rejected.call().reason.as_deref(), rejected.call().detail.as_deref()),
        (Some("approver"), Some("because"))
    );
    refused(&mut rejected, vote("eve", Decision::Approve), 2, Refused::Decided);
    refused(&mut rejected, claim(), 2, Refused::Ended);
}

#[test]
fn a_decision_after_the_end_is_late() {
    let mut cancelled = held("1");
    cancelled.apply(Event::Cancel { detail: Some("by ana".into()) }, at(1)).unwrap();
    assert_eq!(states(&cancelled), (CallState::Cancelled, ApprovalState::Withdrawn));
    refused(&mut cancelled, vote("ben", Decision::Approve), 2, Refused::Ended);
    refused(&mut cancelled, vote("ben", Decision::Reject), 2, Refused::Ended);

    let mut late = held("2");
    refused(&mut late, vote("ben", Decision::Approve), EXPIRES, Refused::Ended);
    late.apply(Event::Tick, at(EXPIRES)).unwrap();
    assert_eq!(states(&late), (CallState::Rejected, ApprovalState::Expired));
    assert_eq!(late.call().reason.as_deref(), Some("expired"));
    assert!(late.approval.votes.is_empty(), "a timeout is nobody's no");
}

#[test]
fn owners_approve_their_own_only_as_the_terms_say() {
    let own = |sole: bool| {
        vote_with(|vote, sole_approver| {
            vote.by = "ana".into();
            *sole_approver = sole;
        })
    };
    for (allow_self, sole, fine) in [
        (AllowSelf::Never, true, false),
        (AllowSelf::Single, false, false),
        (AllowSelf::Single, true, true),
        (AllowSelf::Always, false, true),
    ] {
        let mut held = held("1");
        held.terms.allow_self = allow_self;
        let result = held.apply(own(sole), at(1));
        assert_eq!(result.is_ok(), fine, "{allow_self:?}, sole {sole}: {result:?}");
        assert_eq!(held.approval.flags.contains(&"self_approved".to_owned()), fine);
    }
    let mut held = held("1");
    held.terms.allow_self = AllowSelf::Never;
    held.apply(vote("ana", Decision::Reject), at(1)).unwrap();
    assert_eq!(held.call().state, CallState::Rejected);
}

#[test]
fn a_rejection_has_a_note_where_one_is_needed() {
    let mut held = held("1");
    held.approval.reason_required = true;
    let blank = |note: Option<&str>| {
        vote_with(|vote, _| {
            vote.decision = Decision::Reject;
            vote.note = note.map(Into::into);
            vote.digest = None;
        })
    };
    refused(&mut held, blank(None), 1, Refused::ReasonRequired);
    refused(&mut held, blank(Some("  ")), 1, Refused::ReasonRequired);
    held.apply(blank(Some("no")), at(1)).unwrap();
}

#[test]
fn a_quorum_counts_each_approver_once_and_only_those_named() {
    let mut held = held("1");
    held.approval.requirements[0].quorum = 2;
    held.approval.requirements.push(RequirementRecord {
        approval: Some("finance".into()),
        approvers: vec!["eve".into()],
        quorum: 1,
        votes: 0,
        escalate: None,
    });
    let counts = |held: &Held| held.approval.requirements.iter().map(|needed| needed.votes).collect::<Vec<_>>();
    held.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    refused(&mut held, vote("ben", Decision::Approve), 2, Refused::Repeated);
    assert_eq!((counts(&held), held.approval.state), (vec![1, 0], ApprovalState::Waiting));
    held.apply(vote("cid", Decision::Approve), at(3)).unwrap();
    assert_eq!((counts(&held), held.approval.state), (vec![2, 0], ApprovalState::Waiting));
    held.apply(vote("eve", Decision::Approve), at(4)).unwrap();
    assert_eq!((counts(&held), held.approval.state), (vec![3, 1], ApprovalState::Approved));
}

fn needing(approvers: &[&str], quorum: u32) -> RequirementRecord {
    let approvers = approvers.iter().map(|one| (*one).to_owned()).collect();
    RequirementRecord { approvers, quorum, ..RequirementRecord::anybody() }
}

#[test]
fn only_those_asked_may_approve_by_name_or_team_and_anybody_may_reject() {
    let mut held = held("1");
    held.approval.requirements = vec![needing(&["finance", "eve"], 2)];
    let why = "this call can be approved by eve, finance only; you may reject it";
    refused(&mut held, vote("ben", Decision::Approve), 1, Refused::NotYours(why.into()));
    let mut rejected = held.clone();
    rejected.apply(vote("ben", Decision::Reject), at(1)).unwrap();
    assert_eq!(states(&rejected), (CallState::Rejected, ApprovalState::Rejected));

    held.apply(vote("eve", Decision::Approve), at(2)).unwrap();
    held.apply(vote_with(|vote, _| vote.teams = vec!["ops".into(), "finance".into()]), at(3)).unwrap();
    assert_eq!(held.approval.state, ApprovalState::Approved);
    held.apply(claim(), at(4)).unwrap();
}

#[test]
fn others_may_approve_once_it_is_escalated_and_it_still_expires() {
    let mut held = held("1");
    let to = vec!["boss".into()];
    let escalate = Some(crate::record::Escalation { after_ms: 100, to, due: Some(at(100)) });
    held.approval.requirements = vec![RequirementRecord { escalate, ..needing(&["finance"], 1) }];
    assert_eq!(held.next_tick(), Some(at(100)));
    let boss = || vote("boss", Decision::Approve);
    let why = "this call can be approved by finance only; you may reject it";
    refused(&mut held, boss(), 99, Refused::NotYours(why.into()));
    held.apply(Event::Tick, at(99)).unwrap();
    assert_eq!(held.approval.escalated_at, None, "not yet");

    held.apply(Event::Tick, at(100)).unwrap();
    assert_eq!((held.approval.escalated_at, held.next_tick()), (Some(at(100)), Some(at(EXPIRES / 2))));
    assert_eq!(held.approval.requirements, [needing(&["boss", "finance"], 1)]);
    let mut expired = held.clone();
    expired.apply(Event::Tick, at(EXPIRES)).unwrap();
    assert_eq!(expired.call().reason.as_deref(), Some("expired"));
    held.apply(boss(), at(101)).unwrap();
    assert_eq!((held.approval.state, held.next_tick()), (ApprovalState::Approved, None));
}

#[test]
fn those_who_were_asked_are_reminded_once_at_half_of_the_time() {
    let mut held = held("1");
    assert_eq!(held.next_tick(), Some(at(EXPIRES / 2)));
    held.apply(Event::Tick, at(EXPIRES / 2 - 1)).unwrap();
    assert_eq!(held.approval.reminded_at, None, "not yet");
    held.apply(Event::Tick, at(EXPIRES / 2)).unwrap();
    assert_eq!((held.approval.reminded_at, held.next_tick()), (Some(at(EXPIRES / 2)), Some(at(EXPIRES))));
    held.apply(rejudged(&held, |approval, _| approval.call.digest = Some("sha256:other".into())), at(EXPIRES - 9))
        .unwrap();
    assert_eq!(held.next_tick(), Some(at(EXPIRES)), "once for a call, whatever is asked of it");

    let mut decided = self::held("2");
    decided.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    decided.apply(Event::Tick, at(EXPIRES / 2)).unwrap();
    assert_eq!(decided.approval.reminded_at, None, "there is nothing to decide any more");
}

#[test]
fn who_was_told_is_kept_whatever_became_of_the_call() {
    let told = |channel: &str, state, ms| NotifiedRecord { channel: channel.into(), state, at: at(ms), detail: None };
    let mut held = held("1");
    held.apply(Event::Told(told("slack:ops", NotifiedState::Pending, 1)), at(1)).unwrap();
    held.apply(Event::Told(told("mail:boss", NotifiedState::Delivered, 2)), at(2)).unwrap();
    held.apply(rejudged(&held, |approval, _| approval.call.digest = Some("sha256:other".into())), at(3)).unwrap();
    held.apply(vote_with(|vote, _| vote.digest = Some("sha256:other".into())), at(4)).unwrap();
    held.apply(Event::Cancel { detail: None }, at(5)).unwrap();
    let before = held.clone();
    held.apply(Event::Told(told("slack:ops", NotifiedState::Closed, 6)), at(9 * EXPIRES)).unwrap();
    let words: Vec<_> = held.approval.notified.iter().map(|told| (told.channel.as_str(), told.state)).collect();
    assert_eq!(words, [("slack:ops", NotifiedState::Closed), ("mail:boss", NotifiedState::Delivered)]);
    assert_eq!(
        (states(&held), held.next_tick(), &held.approval.votes),
        (states(&before), before.next_tick(), &before.approval.votes)
    );
}

#[test]
fn votes_do_not_meet_what_asks_for_other_people() {
    let mut held = held("1");
    held.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    let terms = Terms { people: vec![needing(&["finance"], 1)], ..held.terms.clone() };
    let approval = ApprovalRecord { requirements: terms.people.clone(), ..held.approval.clone() };
    held.apply(Event::Rejudged { approval: Box::new(approval), terms }, at(2)).unwrap();
    assert_eq!((held.approval.state, held.approval.votes.len()), (ApprovalState::Waiting, 0));
    refused(&mut held, claim(), 3, Refused::NotNow);
}

#[test]
fn an_approved_call_waits_for_its_client_and_no_longer_than_the_grace() {
    let mut held = held("1");
    held.apply(Event::Detach { handed_off: true }, at(1)).unwrap();
    assert_eq!((held.approval.client.gone_since, held.approval.client.will_run), (Some(at(1)), WillRun::WhenAttached));
    held.apply(vote("ben", Decision::Approve), at(10)).unwrap();
    refused(&mut held, claim(), 11, Refused::NotNow);
    assert_eq!(held.next_tick(), Some(at(10 + GRACE)));

    let mut back = held.clone();
    back.apply(attach("there"), at(9 + GRACE)).unwrap();
    assert_eq!(back.next_tick(), None);
    refused(&mut back, claim(), 9 + GRACE, Refused::NotNow);
    back.apply(Event::Claim { process: "there".into(), digest: Some(DIGEST.into()) }, at(9 + GRACE)).unwrap();

    refused(&mut held, attach("there"), 10 + GRACE, Refused::Ended);
    held.apply(Event::Tick, at(10 + GRACE)).unwrap();
    assert_eq!(states(&held), (CallState::Cancelled, ApprovalState::Withdrawn));
    assert_eq!(held.call().detail.as_deref(), Some("approved, but its client did not come back"));
    assert_eq!(held.call().reason, None);
}

#[test]
fn run_always_needs_no_client() {
    let mut held = held("1");
    held.terms.run_always = true;
    held.apply(Event::Detach { handed_off: true }, at(1)).unwrap();
    assert_eq!(held.approval.client.will_run, WillRun::Now);
    held.apply(vote("ben", Decision::Approve), at(2)).unwrap();
    assert_eq!(held.next_tick(), None);
    refused(&mut held, Event::Claim { process: "another".into(), digest: Some(DIGEST.into()) }, 3, Refused::NotNow);
    held.apply(claim(), at(3)).unwrap();
}

#[test]
fn only_the_same_executor_attaches_and_takes_over() {
    let mut held = held("1");
    held.terms.run_always = true;
    held.apply(Event::Detach { handed_off: true }, at(1)).unwrap();
    let adopt = |process: &str, executor: &str| Event::Adopt { process: process.into(), executor: executor.into() };
    let other = Event::Attach { process: "there".into(), executor: "sha256:other".into() };
    refused(&mut held, other, 2, Refused::NotNow);
    refused(&mut held, adopt("there", EXECUTOR), 2, Refused::NotNow);
    held.apply(Event::Orphan, at(3)).unwrap();
    assert_eq!(held.approval.client.will_run, WillRun::WhenAttached);
    refused(&mut held, adopt("there", "sha256:other"), 4, Refused::NotNow);
    held.apply(vote("ben", Decision::Approve), at(5)).unwrap();
    refused(&mut held, claim(), 6, Refused::NotNow);
    assert_eq!(held.next_tick(), Some(at(5 + GRACE)));
    let mut left = held.clone();
    left.apply(Event::Tick, at(5 + GRACE)).unwrap();
    assert_eq!(states(&left), (CallState::Cancelled, ApprovalState::Withdrawn));
    held.apply(adopt("there", EXECUTOR), at(7)).unwrap();
    refused(&mut held, claim(), 8, Refused::NotNow);
    held.apply(Event::Claim { process: "there".into(), digest: Some(DIGEST.into()) }, at(8)).unwrap();
    let mut unknown = super::tests::held("2");
    unknown.intent.origin = Origin::default();
    unknown.apply(Event::Detach { handed_off: true }, at(1)).unwrap();
    refused(&mut unknown, adopt("there", ""), 2, Refused::NotNow);
}

#[test]
fn an_attached_call_is_never_shared() {
    let mut held = held("1");
    refused(&mut held, attach("there"), 1, Refused::NotNow);
}

#[test]
fn a_kept_reply_is_there_until_it_is_given_or_too_old() {
    let mut held = held("1");
    held.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    held.apply(claim(), at(2)).unwrap();
    held.apply(Event::Detach { handed_off: false }, at(3)).unwrap();
    held.apply(finish(Outcome::Completed, true), at(10)).unwrap();
    assert!(!held.delivered);
    assert_eq!(held.attachable_until(), Some(at(10 + TTL)));

    let mut given = held.clone();
    given.apply(attach("there"), at(20)).unwrap();
    given.apply(Event::Deliver, at(21)).unwrap();
    refused(&mut given, Event::Deliver, 21, Refused::NotNow);
    given.apply(Event::Detach { handed_off: false }, at(22)).unwrap();
    refused(&mut given, attach("there"), 23, Refused::Ended);

    assert_eq!(held.next_tick(), Some(at(10 + TTL)));
    held.apply(Event::Tick, at(10 + TTL)).unwrap();
    assert_eq!((&held.kept, held.next_tick(), held.attachable_until()), (&None, None, None));
    assert_eq!(held.call().state, CallState::Completed);
}

#[test]
fn only_an_end_that_nobody_was_told_can_be_attached() {
    let gone = |mut held: Held| {
        held.apply(Event::Detach { handed_off: true }, at(1)).unwrap();
        held
    };
    let mut rejected = gone(held("1"));
    rejected.apply(vote("ben", Decision::Reject), at(2)).unwrap();
    assert_eq!(rejected.attachable_until(), Some(at(2 + TTL)));

    let mut cancelled = gone(held("2"));
    cancelled.apply(Event::Cancel { detail: None }, at(2)).unwrap();
    assert_eq!(cancelled.attachable_until(), None);

    let mut died = held("3");
    died.apply(vote("ben", Decision::Approve), at(2)).unwrap();
    died.apply(claim(), at(3)).unwrap();
    let mut unsure = gone(died);
    let event = Event::Finish {
        outcome: Outcome::Failed,
        kept: None,
        tool_error: None,
        detail: Some("the gateway ended".into()),
        may_have_run: true,
    };
    unsure.apply(event, at(4)).unwrap();
    assert_eq!(unsure.attachable_until(), Some(at(4 + TTL)), "a client is told before it asks for a second run");
}

fn rejudged(held: &Held, change: impl FnOnce(&mut ApprovalRecord, &mut Terms)) -> Event {
    let (mut approval, mut terms) = (held.approval.clone(), held.terms.clone());
    change(&mut approval, &mut terms);
    Event::Rejudged { approval: Box::new(approval), terms }
}

#[test]
fn a_new_question_voids_the_votes() {
    let mut held = held("1");
    held.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    let event = rejudged(&held, |approval, terms| {
        approval.call.digest = Some("sha256:new".into());
        approval.call.state = CallState::Running;
        approval.call.created_at = at(7);
        approval.expires_at = at(99);
        approval.client.state = ClientState::Gone;
        terms.asked.push("floor:hard_link".into());
        terms.hold_for_ms = 5;
    });
    held.apply(event, at(2)).unwrap();
    assert_eq!(states(&held), (CallState::AwaitingApproval, ApprovalState::Waiting));
    assert!(held.is_fresh());
    assert_eq!((held.call().created_at, held.approval.client.state), (at(0), ClientState::Attached));
    assert_eq!((held.approval.expires_at, held.hold_for()), (at(99), Duration::from_millis(5)));
    refused(&mut held, claim(), 3, Refused::NotNow);
    refused(&mut held, vote("ben", Decision::Approve), 3, Refused::Digest);

    let another = rejudged(&held, |approval, _| approval.call.id = "call_other".into());
    refused(&mut held, another, 3, Refused::NotNow);
}

#[test]
fn votes_stand_where_they_meet_the_new_terms() {
    type Change = fn(&mut ApprovalRecord, &mut Terms);
    let cases: [(&str, bool, Change); 11] = [
        ("one asks no more", true, |_, terms| terms.asked.clear()),
        ("a shorter hold", true, |_, terms| terms.hold_for_ms = 1),
        ("another expiry", true, |_, terms| terms.expires_ms = 1),
        ("a note for rejections", true, |_, terms| terms.reason_required = true),
        ("less urgent", true, |_, terms| terms.severity = Severity::Low),
        ("owners may decide", true, |_, terms| terms.allow_self = AllowSelf::Always),
        ("one more asks", false, |_, terms| terms.asked.push("other".into())),
        ("another floor", false, |_, terms| terms.asked = vec!["floor:mount of /b".into()]),
        ("more urgent", false, |_, terms| terms.severity = Severity::Critical),
        ("owners may not decide", false, |_, terms| terms.allow_self = AllowSelf::Never),
        ("a second vote", false, |approval, _| approval.requirements[0].quorum = 2),
    ];
    for (what, stands, change) in cases {
        let mut held = held("1");
        // The owner's, as the only approver.
        let own = vote_with(|vote, sole| {
            vote.by = "ana".into();
            *sole = true;
        });
        held.apply(own, at(1)).unwrap();
        let event = rejudged(&held, |approval, terms| {
            approval.call.digest = Some("sha256:new".into());
            change(approval, terms);
        });
        let Event::Rejudged { terms, .. } = event.clone() else { unreachable!() };
        held.apply(event, at(2)).unwrap();
        assert_eq!(held.terms, terms, "{what}");
        assert_eq!(held.approval.state == ApprovalState::Approved, stands, "{what}");
        assert_eq!(held.call().digest.as_deref() == Some(DIGEST), stands, "{what}");
        assert_eq!(held.apply(claim(), at(3)).is_ok(), stands, "{what}");
    }
}

#[test]
fn what_ran_always_waits_for_its_client_where_the_terms_say_so() {
    let mut held = held("1");
    held.terms.run_always = true;
    held.apply(Event::Detach { handed_off: true }, at(1)).unwrap();
    held.apply(vote("ben", Decision::Approve), at(2)).unwrap();
    let event = rejudged(&held, |_, terms| terms.run_always = false);
    held.apply(event, at(3)).unwrap();
    assert_eq!(held.approval.client.will_run, WillRun::WhenAttached);
    refused(&mut held, claim(), 4, Refused::NotNow);
    assert_eq!(held.next_tick(), Some(at(2 + GRACE)));
}

#[test]
fn a_refusal_before_the_run_says_why() {
    let refuse = |reason| Event::Refuse { reason, detail: Some("x".into()) };
    for (reason, approval) in [
        (Rejection::Stale, ApprovalState::Stale),
        (Rejection::Draining, ApprovalState::Withdrawn),
        (Rejection::Guardrail, ApprovalState::Withdrawn),
    ] {
        let mut held = held("1");
        held.apply(vote("ben", Decision::Approve), at(1)).unwrap();
        held.apply(refuse(reason), at(2)).unwrap();
        assert_eq!(states(&held), (CallState::Rejected, approval));
        assert_eq!(held.call().reason.as_deref(), Some(reason.as_str()));
    }
    let mut running = held("2");
    running.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    running.apply(claim(), at(2)).unwrap();
    refused(&mut running, refuse(Rejection::Stale), 3, Refused::NotNow);
}

#[test]
fn cancelling_a_running_call_asks_its_runner() {
    let mut held = held("1");
    held.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    held.apply(claim(), at(2)).unwrap();
    held.apply(Event::Cancel { detail: Some("stopped by ana".into()) }, at(3)).unwrap();
    assert!(held.cancel_requested);
    assert_eq!(held.call().state, CallState::Running);
    held.apply(finish(Outcome::Cancelled, false), at(4)).unwrap();
    assert_eq!((held.call().state, held.call().detail.as_deref()), (CallState::Cancelled, Some("stopped by ana")));
    assert_eq!(held.approval.state, ApprovalState::Consumed);
}

#[test]
fn it_survives_its_json() {
    let mut held = held("1");
    held.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    let text = serde_json::to_string(&held).unwrap();
    assert_eq!(serde_json::from_str::<Held>(&text).unwrap(), held);
}

#[derive(Clone, Debug)]
enum Step {
    Attach(&'static str),
    Detach(bool),
    Vote(&'static str, Decision, bool, bool),
    Rejudged(&'static str, Option<u32>),
    Edit(&'static str, bool),
    Claim(&'static str),
    Finish(Outcome, bool),
    Refuse(Rejection),
    Cancel,
    Tick,
    Deliver,
    Orphan,
    Adopt(&'static str),
}

fn step() -> impl Strategy<Value = Step> {
    let process = || prop_oneof![Just("here"), Just("there")];
    let outcome = prop_oneof![
        Just(Outcome::Completed),
        Just(Outcome::Failed),
        Just(Outcome::Cancelled),
        Just(Outcome::Rejected),
    ];
    prop_oneof![
        2 => process().prop_map(Step::Attach),
        2 => any::<bool>().prop_map(Step::Detach),
        5 => (
            prop_oneof![Just("ana"), Just("ben"), Just("cid")],
            prop_oneof![3 => Just(Decision::Approve), 1 => Just(Decision::Reject)],
            prop::bool::weighted(0.8),
            any::<bool>(),
        ).prop_map(|(by, decision, current, sole)| Step::Vote(by, decision, current, sole)),
        1 => (prop_oneof![Just("writes"), Just("other")], prop::option::of(1u32..3))
            .prop_map(|(asked, quorum)| Step::Rejudged(asked, quorum)),
        1 => (prop_oneof![Just("ana"), Just("ben")], any::<bool>()).prop_map(|(by, current)| Step::Edit(by, current)),
        4 => process().prop_map(Step::Claim),
        2 => (outcome, any::<bool>()).prop_map(|(outcome, kept)| Step::Finish(outcome, kept)),
        1 => prop_oneof![Just(Rejection::Stale), Just(Rejection::Policy)].prop_map(Step::Refuse),
        1 => Just(Step::Cancel),
        2 => Just(Step::Tick),
        1 => Just(Step::Deliver),
        1 => Just(Step::Orphan),
        1 => process().prop_map(Step::Adopt),
    ]
}

/// Other arguments by an approver who was shown what it is now, or was not.
fn edit(held: &Held, by: &str, current: bool) -> Edit {
    let mut approval = held.approval.clone();
    approval.call.arguments = serde_json::json!({"path": "b"});
    approval.call.label = "write_file b".into();
    approval.call.digest = Some(format!("{}+", held.call().digest.as_deref().unwrap_or_default()));
    Edit {
        by: by.into(),
        teams: Vec::new(),
        sole_approver: true,
        seen: if current { held.call().digest.clone().unwrap_or_default() } else { "sha256:stale".into() },
        approval,
        terms: held.terms.clone(),
        message: r#"{"edited":true}"#.into(),
        places: "elsewhere".into(),
        scripts: Vec::new(),
    }
}

#[test]
fn an_edit_voids_earlier_votes_and_what_was_shown_before_never_runs() {
    let mut held = held("1");
    held.approval.requirements[0].quorum = 2;
    held.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    let unseen = edit(&held, "eve", false);
    refused(&mut held, Event::Edit(Box::new(unseen)), 2, Refused::Digest);
    let own = Edit { sole_approver: false, ..edit(&held, "ana", true) };
    assert!(matches!(held.clone().apply(Event::Edit(Box::new(own)), at(2)), Err(Refused::NotYours(_))));

    let first = edit(&held, "eve", true);
    held.apply(Event::Edit(Box::new(first)), at(3)).unwrap();
    assert_eq!((held.approval.votes.len(), held.approval.requirements[0].votes), (0, 0));
    assert_eq!(held.intent.original.as_deref(), Some("{}"));
    assert_eq!(held.call().attach_key.as_deref(), Some("sha256:key"), "the agent's retry still finds it");
    let from = held.approval.edited_from.clone().unwrap();
    assert_eq!((from.by.as_str(), from.at, from.digest.as_deref()), ("eve", at(3), Some(DIGEST)));
    refused(&mut held, vote("ben", Decision::Approve), 4, Refused::Digest);

    let second = edit(&held, "ben", true);
    held.apply(Event::Edit(Box::new(second)), at(5)).unwrap();
    let from = held.approval.edited_from.clone().unwrap();
    assert_eq!((from.by.as_str(), &from.arguments), ("ben", &serde_json::json!({"path": "a"})));
    assert_eq!(held.intent.original.as_deref(), Some("{}"));

    for by in ["ben", "eve"] {
        let current = held.call().digest.clone();
        held.apply(
            vote_with(|vote, _| {
                vote.by = by.into();
                vote.digest = current;
            }),
            at(6),
        )
        .unwrap();
    }
    assert_eq!(held.approval.state, ApprovalState::Approved);
    let late = edit(&held, "eve", true);
    refused(&mut held, Event::Edit(Box::new(late)), 7, Refused::Decided);
    refused(&mut held, claim(), 8, Refused::NotNow);
    let current = held.call().digest.clone();
    held.apply(Event::Claim { process: "here".into(), digest: current }, at(9)).unwrap();
}

#[test]
fn its_end_is_put_off_within_bounds_and_only_while_it_waits() {
    let mut held = held("1");
    held.apply(Event::Extend { to: at(10 * EXPIRES) }, at(1_000)).unwrap();
    assert_eq!((held.approval.expires_at, held.approval.extended_ms), (at(1_000 + EXPIRES), 1_000));
    refused(&mut held, Event::Extend { to: at(1_000) }, 2_000, Refused::NotNow);
    for _ in 0..2 {
        let now = held.approval.expires_at.since(at(1));
        held.apply(Event::Extend { to: at(100 * EXPIRES) }, at(0).after(now)).unwrap();
    }
    let now = at(0).after(held.approval.expires_at.since(at(1)));
    held.apply(Event::Extend { to: at(100 * EXPIRES) }, now).unwrap();
    assert_eq!(held.approval.expires_at, at(4 * EXPIRES), "four times as long in all");
    let mut held = self::held("1");
    held.apply(vote("ben", Decision::Approve), at(1)).unwrap();
    refused(&mut held, Event::Extend { to: at(2 * EXPIRES) }, 2, Refused::Decided);
}

fn attach(process: &str) -> Event {
    Event::Attach { process: process.into(), executor: EXECUTOR.into() }
}

fn event(step: Step, held: &Held) -> Event {
    match step {
        Step::Attach(process) => attach(process),
        Step::Detach(handed_off) => Event::Detach { handed_off },
        Step::Vote(by, decision, current, sole) => vote_with(|vote, sole_approver| {
            vote.by = by.into();
            vote.decision = decision;
            vote.digest = if current { held.call().digest.clone() } else { Some("sha256:stale".into()) };
            *sole_approver = sole;
        }),
        Step::Rejudged(asked, quorum) => rejudged(held, |approval, terms| {
            approval.call.digest = Some(format!("sha256:{asked}"));
            approval.requirements[0].quorum = quorum.unwrap_or(approval.requirements[0].quorum);
            terms.asked = vec![asked.into()];
        }),
        Step::Edit(by, current) => Event::Edit(Box::new(edit(held, by, current))),
        Step::Claim(process) => Event::Claim { process: process.into(), digest: held.call().digest.clone() },
        Step::Finish(outcome, kept) => finish(outcome, kept),
        Step::Refuse(reason) => Event::Refuse { reason, detail: None },
        Step::Cancel => Event::Cancel { detail: None },
        Step::Tick => Event::Tick,
        Step::Deliver => Event::Deliver,
        Step::Orphan => Event::Orphan,
        Step::Adopt(process) => Event::Adopt { process: process.into(), executor: EXECUTOR.into() },
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn laws_hold_in_any_order(
        steps in prop::collection::vec((step(), -5_000i64..200_000), 1..40),
        run_always in any::<bool>(),
        quorum in 1u32..3,
    ) {
        let mut held = held("1");
        held.terms.run_always = run_always;
        held.approval.requirements[0].quorum = quorum;
        let (mut now, mut claims) = (START, 0);
        for (step, passed) in steps {
            now += passed;
            let before = held.clone();
            let event = event(step, &held);
            let claiming = matches!(event, Event::Claim { .. });
            let result = held.apply(event, Timestamp::from_millis(now));
            if result.is_err() {
                prop_assert_eq!(&held, &before, "a refusal changes nothing");
            }
            claims += usize::from(claiming && result.is_ok());
            prop_assert!(claims <= 1, "claimed twice");

            let call = held.call();
            if call.state == CallState::Running {
                let approves = held.approval.votes.iter()
                    .filter(|vote| vote.decision == Decision::Approve && vote.digest == call.digest);
                let needed = held.approval.requirements[0].quorum as usize;
                prop_assert!(approves.count() >= needed, "runs without its votes");
                prop_assert_eq!(claims, 1);
            }
            if let Some(outcome) = before.call().outcome {
                prop_assert_eq!(states(&held), states(&before), "an end is the end");
                prop_assert_eq!(call.outcome, Some(outcome));
                prop_assert_eq!(call.ended_at, before.call().ended_at);
                prop_assert_eq!(&held.approval.votes, &before.approval.votes);
            }
            prop_assert_eq!(call.outcome, call.state.outcome());
            prop_assert_eq!(call.outcome.is_some(), call.ended_at.is_some());
            prop_assert!(held.approval.requirements[0].votes <= held.approval.requirements[0].quorum);
            let mut voters: Vec<_> = held.approval.votes.iter().filter(|vote| vote.decision == Decision::Approve)
                .map(|vote| vote.by.as_str()).collect();
            voters.sort_unstable();
            voters.dedup();
            prop_assert!(held.approval.requirements[0].votes as usize <= voters.len(), "an approver counts once");
            let times = [Some(call.created_at), held.decided_at, call.released_at, call.ended_at];
            let times: Vec<_> = times.into_iter().flatten().collect();
            prop_assert!(times.is_sorted(), "times go forward: {:?}", times);
            prop_assert_eq!(held.attached_at.is_some(), held.approval.client.state == ClientState::Attached);
        }
    }
}

fn question(id: &str) -> Held {
    let asked = Question { text: "which?".into(), choices: Vec::new(), answer: None };
    Held { question: Some(asked), ..held(id) }
}

fn answer(by: &str, text: &str) -> Event {
    let answer = Answered { by: by.into(), channel: "api".into(), text: text.into(), at: at(0) };
    Event::Answer { answer, teams: Vec::new(), body: "{}".into() }
}

#[test]
fn a_question_is_answered_once_and_never_decided() {
    let mut asked = question("1");
    for event in
        [vote("ben", Decision::Approve), vote("ben", Decision::Reject), claim(), finish(Outcome::Completed, true)]
    {
        refused(&mut asked, event, 1, Refused::NotNow);
    }
    asked.terms.run_always = true;
    asked.apply(answer("ben", "this"), at(2)).unwrap();
    assert_eq!(states(&asked), (CallState::Completed, ApprovalState::Consumed));
    assert!(asked.kept.is_some() && asked.attachable_until() == Some(at(2 + TTL)), "whoever comes back is told");
    refused(&mut asked, answer("ben", "this"), 3, Refused::Repeated);
    refused(&mut asked, answer("ben", "that"), 3, Refused::Decided);
    refused(&mut asked, answer("eve", "this"), 3, Refused::Decided);
    refused(&mut asked, claim(), 3, Refused::NotNow);

    let mut approval = held("2");
    refused(&mut approval, answer("ben", "yes"), 1, Refused::NotNow);
    let mut stopped = question("3");
    stopped.apply(Event::Cancel { detail: None }, at(1)).unwrap();
    refused(&mut stopped, answer("ben", "late"), 2, Refused::Ended);
    let mut late = question("4");
    refused(&mut late, answer("ben", "late"), EXPIRES, Refused::Ended);
    let mut others = question("5");
    others.approval.requirements[0].approvers = vec!["finance".into()];
    let why = "the policy asks others to answer this agent".to_owned();
    refused(&mut others, answer("ben", "me"), 1, Refused::NotYours(why));
}

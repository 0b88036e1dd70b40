#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

//! Several stores on one folder stand for several processes; one test kills a real one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::task::JoinSet;

use super::*;
use crate::approval::tests::{EXECUTOR, held, vote};
use crate::approval::{Intent, Kept, Origin};
use crate::record::{ApprovalState, CallState, ClientState, Decision, Outcome, Rejection};

/// When the fixture's calls were made.
const START: Timestamp = Timestamp::from_millis(1_796_000_000_000);

struct Place {
    dir: TempDir,
    clock: Clock,
}

impl Place {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), clock: Clock::manual(START) }
    }

    fn open(&self) -> Store {
        Store::open(self.dir.path(), self.clock.clone()).unwrap()
    }
}

fn call(id: &str, attach_key: &str, session: Option<&str>) -> Held {
    let mut held = held(id);
    held.approval.call.attach_key = Some(attach_key.into());
    held.intent.session = session.map(Into::into);
    held
}

fn retry(agent: &str, attach_key: &str, session: Option<&str>) -> Retry {
    Retry {
        agent: agent.into(),
        attach_key: attach_key.into(),
        session: session.map(Into::into),
        executor: EXECUTOR.into(),
        left: Vec::new(),
    }
}

async fn create(store: &Store, id: &str, key: &str) -> Held {
    match store.hold(call(id, key, None), 1000).await.unwrap() {
        Holding::Created(held) => *held,
        other => panic!("{other:?}"),
    }
}

fn claim(store: &Store) -> Event {
    Event::Claim { process: store.process().into(), digest: Some("sha256:shown".into()) }
}

fn detach() -> Event {
    Event::Detach { handed_off: true }
}

fn finish(kept: bool) -> Event {
    let kept = kept.then(|| Kept { body: "{}".into(), is_error: false, at: START });
    Event::Finish { outcome: Outcome::Completed, kept, tool_error: None, detail: None, may_have_run: false }
}

async fn run(store: &Store, id: &str) {
    store.apply(id, vote("ben", Decision::Approve)).await.unwrap();
    store.apply(id, claim(store)).await.unwrap();
}

async fn until<T>(what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "{what}: not in time");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_call_goes_its_way_and_survives_a_restart() {
    let place = Place::new();
    let store = place.open();
    let made = create(&store, "1", "k").await;
    assert_eq!(made.attached_at.as_deref(), Some(store.process()));
    assert_eq!(store.get("call_1").await.unwrap(), made);
    assert_eq!(store.get("apr_1").await.unwrap(), made);
    assert_eq!(store.get("call_2").await.unwrap_err(), StoreError::NotFound);
    drop(store);

    let store = place.open();
    let again = store.get("call_1").await.unwrap();
    assert_eq!(again.approval.state, ApprovalState::Waiting);
    assert_eq!((again.approval.client.state, again.attached_at), (ClientState::Gone, None));
    let origin = Origin { process: None, gone_since: Some(START), ..made.intent.origin.clone() };
    assert_eq!(again.intent, Intent { origin, ..made.intent });
}

#[tokio::test(flavor = "multi_thread")]
async fn of_64_deciders_and_claimers_one_wins() {
    let place = Place::new();
    let stores = [place.open(), place.open()];
    create(&stores[0], "1", "k").await;
    let mut deciders = JoinSet::new();
    for i in 0..64 {
        let store = stores[i % 2].clone();
        let decision = if i % 3 == 0 { Decision::Reject } else { Decision::Approve };
        deciders.spawn(async move { store.apply("apr_1", vote(&format!("approver{i}"), decision)).await.is_ok() });
    }
    assert_eq!(deciders.join_all().await.into_iter().filter(|won| *won).count(), 1);
    assert_eq!(stores[1].get("call_1").await.unwrap().approval.votes.len(), 1);

    create(&stores[0], "2", "k2").await;
    stores[0].apply("call_2", vote("ben", Decision::Approve)).await.unwrap();
    let mut claimers = JoinSet::new();
    for i in 0..64 {
        let (store, event) = (stores[i % 2].clone(), claim(&stores[0]));
        claimers.spawn(async move { store.apply("call_2", event).await.is_ok() });
    }
    assert_eq!(claimers.join_all().await.into_iter().filter(|won| *won).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_vote_counts_once_whoever_races() {
    let place = Place::new();
    let stores = [place.open(), place.open()];
    create(&stores[0], "1", "k").await;
    let mut voters = JoinSet::new();
    for i in 0..16 {
        let store = stores[i % 2].clone();
        voters.spawn(async move { store.apply("apr_1", vote("ben", Decision::Approve)).await });
    }
    let (counted, repeated): (Vec<_>, Vec<_>) = voters.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((counted.len(), repeated.len()), (1, 15));
    for refused in repeated {
        let Err(StoreError::Refused(Refused::Repeated, held)) = refused else { panic!("{refused:?}") };
        assert_eq!(held.approval.state, ApprovalState::Approved, "a repeat is told how it stands");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_racing_retries_one_attaches() {
    let place = Place::new();
    let stores = [place.open(), place.open()];
    create(&stores[0], "1", "k").await;
    stores[0].apply("call_1", detach()).await.unwrap();
    let mut retries = JoinSet::new();
    for i in 0..8 {
        let store = stores[i % 2].clone();
        retries.spawn(async move { store.hold(call(&format!("retry{i}"), "k", None), 1000).await.unwrap() });
    }
    let all = retries.join_all().await;
    assert_eq!(all.iter().filter(|holding| matches!(holding, Holding::Attached(_))).count(), 1);
    assert_eq!(all.iter().filter(|holding| matches!(holding, Holding::Created(_))).count(), 7);
}

#[tokio::test]
async fn attaching_needs_the_same_call_and_a_client_that_is_gone() {
    let place = Place::new();
    let store = place.open();
    create(&store, "1", "k").await;
    assert_eq!(store.attach(retry("claude", "k", None)).await.unwrap(), None, "its first client is there");
    store.apply("call_1", detach()).await.unwrap();
    assert_eq!(store.attach(retry("other", "k", None)).await.unwrap(), None);
    assert_eq!(store.attach(retry("claude", "other", None)).await.unwrap(), None);
    assert_eq!(store.attach(retry("claude", "k", Some("ses_2"))).await.unwrap(), None);
    let attached = store.attach(retry("claude", "k", None)).await.unwrap().unwrap();
    assert_eq!(attached.attached_at.as_deref(), Some(store.process()));
    assert!(attached.handed_off);
}

#[tokio::test]
async fn a_session_keeps_its_calls_to_itself_until_it_ends() {
    let place = Place::new();
    let store = place.open();
    let session = StoredSession {
        id: "ses_secret".into(),
        agent: "claude".into(),
        upstream: "files".into(),
        initialize: "{}".into(),
        version: "2025-11-25".into(),
        upstream_session: Some("up".into()),
        used_at: START,
        process: None,
    };
    store.put_session(session.clone()).await.unwrap();
    assert_eq!(store.session("ses_secret").await.unwrap(), Some(session));
    store.hold(call("1", "k", Some("ses_secret")), 9).await.unwrap();
    store.apply("call_1", detach()).await.unwrap();
    assert_eq!(store.attach(retry("claude", "k", Some("ses_new"))).await.unwrap(), None);
    assert_eq!(store.attach(retry("claude", "k", None)).await.unwrap(), None);
    let same = store.attach(retry("claude", "k", Some("ses_secret"))).await.unwrap();
    assert!(same.is_some());
    store.apply("call_1", detach()).await.unwrap();
    store.end_session("ses_secret").await.unwrap();
    assert_eq!(store.session("ses_secret").await.unwrap(), None);
    assert!(store.attach(retry("claude", "k", Some("ses_new"))).await.unwrap().is_some());
}

#[tokio::test]
async fn a_call_is_attached_and_adopted_by_the_same_executor_only() {
    let place = Place::new();
    let (first, second) = (place.open(), place.open());
    create(&first, "1", "k").await;
    first.apply("call_1", detach()).await.unwrap();
    let other = Retry { executor: "sha256:other".into(), ..retry("claude", "k", None) };
    assert_eq!(second.attach(other).await.unwrap(), None);
    let names = |name: &str| vec![name.to_owned()];
    assert_eq!(second.adopt(names("claude"), names(EXECUTOR)).await.unwrap(), [], "its process lives");
    drop(first);
    let third = place.open();
    for (agent, executor) in [("claude", "sha256:other"), ("ben", EXECUTOR)] {
        assert_eq!(third.adopt(names(agent), names(executor)).await.unwrap(), []);
    }
    let adopted = second.adopt(names("claude"), names(EXECUTOR)).await.unwrap();
    assert_eq!(adopted[0].intent.origin.process.as_deref(), Some(second.process()));
    assert_eq!(third.adopt(names("claude"), names(EXECUTOR)).await.unwrap(), [], "once");
}

#[tokio::test]
async fn a_session_of_a_process_ends_with_it() {
    let place = Place::new();
    let (first, second) = (place.open(), place.open());
    let session = StoredSession {
        id: "ses_1".into(),
        agent: "claude".into(),
        upstream: "files".into(),
        initialize: "{}".into(),
        version: "2025-11-25".into(),
        upstream_session: None,
        used_at: START,
        process: Some(first.process().into()),
    };
    first.put_session(session.clone()).await.unwrap();
    first.hold(call("1", "k", Some("ses_1")), 9).await.unwrap();
    first.apply("call_1", detach()).await.unwrap();
    assert_eq!(second.attach(retry("claude", "k", Some("ses_2"))).await.unwrap(), None);
    let left = Retry { left: vec!["ses_1".into()], ..retry("claude", "k", Some("ses_2")) };
    assert!(second.attach(left).await.unwrap().is_some(), "its client is known to have left");
    second.apply("call_1", detach()).await.unwrap();
    drop(first);
    let third = place.open();
    assert_eq!(third.session("ses_1").await.unwrap(), None);
    assert_eq!(third.any_session("ses_1").await.unwrap(), Some(session));
    assert!(third.attach(retry("claude", "k", Some("ses_2"))).await.unwrap().is_some());
}

#[tokio::test]
async fn a_second_call_says_what_it_is_beside() {
    let place = Place::new();
    let store = place.open();
    assert_eq!(create(&store, "1", "k").await.approval.flags, [""; 0]);
    assert_eq!(create(&store, "2", "k").await.approval.flags, [SAME_CALL_WAITING]);
    let mut elsewhere = call("3", "k3", None);
    elsewhere.intent.origin.executor = "sha256:other".into();
    let Holding::Created(held) = store.hold(elsewhere, 9).await.unwrap() else { panic!() };
    assert_eq!(held.approval.flags, [SEVERAL_EXECUTORS]);
}

#[tokio::test]
async fn what_expired_while_nobody_lived_ends_at_the_next_start() {
    let place = Place::new();
    let store = place.open();
    create(&store, "1", "k").await;
    drop(store);
    place.clock.advance(Duration::from_millis(900_000));
    let held = place.open().get("call_1").await.unwrap();
    assert_eq!((held.call().state, held.approval.state), (CallState::Rejected, ApprovalState::Expired));
}

#[tokio::test]
async fn a_folder_of_the_first_tables_is_brought_up_to_date() {
    let place = Place::new();
    drop(place.open());
    let old = rusqlite::Connection::open(place.dir.path().join("portcullis.db")).unwrap();
    old.execute_batch(
        "DROP INDEX held_served; DROP INDEX held_executors; DROP INDEX sessions_of;
         ALTER TABLE held DROP COLUMN origin_process; ALTER TABLE held DROP COLUMN executor;
         ALTER TABLE sessions DROP COLUMN process; ALTER TABLE sessions DROP COLUMN ended; PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(old);
    create(&place.open(), "1", "k").await;
}

#[tokio::test]
async fn what_is_left_to_tell_is_told_once() {
    let place = Place::new();
    let store = place.open();
    create(&store, "1", "k").await;
    run(&store, "call_1").await;
    store.apply("call_1", detach()).await.unwrap();
    store.apply("call_1", finish(true)).await.unwrap();
    let Holding::Attached(told) = store.hold(call("2", "k", None), 9).await.unwrap() else { panic!() };
    assert_eq!((told.call().id.as_str(), told.call().state), ("call_1", CallState::Completed));
    assert!(told.kept.is_some());
    store.apply("call_1", Event::Deliver).await.unwrap();
    store.apply("call_1", detach()).await.unwrap();
    assert!(matches!(store.hold(call("3", "k", None), 9).await.unwrap(), Holding::Created(_)));

    create(&store, "4", "k4").await;
    store.apply("call_4", detach()).await.unwrap();
    store.apply("call_4", vote("ben", Decision::Reject)).await.unwrap();
    place.clock.advance(Duration::from_millis(600_000));
    assert_eq!(store.attach(retry("claude", "k4", None)).await.unwrap(), None, "too late to be told");
}

#[tokio::test]
async fn too_many_waiting_calls_are_full() {
    let place = Place::new();
    let store = place.open();
    store.hold(call("1", "a", None), 2).await.unwrap();
    store.hold(call("2", "b", None), 2).await.unwrap();
    assert!(matches!(store.hold(call("3", "c", None), 2).await.unwrap(), Holding::Full));
    store.apply("call_1", Event::Cancel { detail: None }).await.unwrap();
    assert!(matches!(store.hold(call("3", "c", None), 2).await.unwrap(), Holding::Created(_)));
}

#[tokio::test]
async fn only_a_fresh_call_is_held() {
    let place = Place::new();
    let store = place.open();
    let mut forged = call("1", "a", None);
    forged.approval.state = ApprovalState::Approved;
    assert!(matches!(store.hold(forged, 2).await, Err(StoreError::Refused(Refused::NotNow, _))));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_decision_wakes_the_waiter() {
    let place = Place::new();
    let (here, there) = (place.open(), place.open());
    create(&here, "1", "k").await;
    let (mut watch, mut changes) = (here.watch("call_1"), here.changes());
    let first = watch.wait_for(Option::is_some).await.unwrap().clone().unwrap();
    assert_eq!(first.approval.state, ApprovalState::Waiting);
    there.apply("apr_1", vote("ben", Decision::Approve)).await.unwrap();
    let decided = |held: &Option<Arc<Held>>| held.as_ref().is_some_and(|held| !held.approval.votes.is_empty());
    let start = Instant::now();
    watch.wait_for(decided).await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(200), "{:?}", start.elapsed());
    loop {
        if !changes.recv().await.unwrap().held.approval.votes.is_empty() {
            break;
        }
    }
}

#[tokio::test]
async fn time_alone_ends_what_is_due() {
    let place = Place::new();
    let (store, other) = (place.open(), place.open());
    create(&store, "1", "k").await;
    create(&store, "2", "k2").await;
    store.apply("call_2", detach()).await.unwrap();
    store.apply("call_2", vote("ben", Decision::Approve)).await.unwrap();
    place.clock.advance(Duration::from_secs(900));
    let late = store.apply("apr_1", vote("ben", Decision::Approve)).await.unwrap_err();
    let StoreError::Refused(Refused::Ended, held) = late else { panic!("{late:?}") };
    assert_eq!(held.approval.state, ApprovalState::Expired);
    assert_eq!(other.get("call_2").await.unwrap().call().state, CallState::Cancelled);
}

#[tokio::test]
async fn a_dead_process_calls_may_have_run() {
    let place = Place::new();
    let (dead, alive) = (place.open(), place.open());
    create(&dead, "1", "k").await;
    run(&dead, "call_1").await;
    create(&dead, "2", "k2").await;
    drop(dead);
    let ended = until("the running call ends", async || {
        let held = alive.get("call_1").await.unwrap();
        held.call().outcome.is_some().then_some(held)
    })
    .await;
    assert_eq!((ended.call().outcome, ended.call().may_have_run), (Some(Outcome::Failed), true));
    assert_eq!(alive.get("call_2").await.unwrap().approval.client.state, ClientState::Gone);
    assert!(matches!(alive.hold(call("3", "k2", None), 9).await.unwrap(), Holding::Attached(_)));
    let Holding::Attached(told) = alive.hold(call("4", "k", None), 9).await.unwrap() else { panic!("a second run") };
    assert!(told.call().may_have_run);
    assert!(matches!(alive.apply("call_1", claim(&alive)).await, Err(StoreError::Refused(Refused::Ended, _))));
}

#[tokio::test]
async fn an_end_that_nobody_asked_for_is_written_down_by_one_process() {
    let place = Place::new();
    let stores = [place.open(), place.open()];
    let mut settled = stores.clone().map(|store| store.settled().unwrap());
    create(&stores[0], "1", "k").await;
    place.clock.advance(Duration::from_secs(900));
    until("it expires", async || {
        let held = stores[0].get("call_1").await.unwrap();
        held.call().outcome.is_some().then_some(())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let told: Vec<_> = settled.iter_mut().filter_map(|ends| ends.try_recv().ok()).collect();
    assert_eq!(told.len(), 1);
    assert!(settled.iter_mut().all(|ends| ends.try_recv().is_err()));
}

#[tokio::test]
async fn a_row_that_cannot_be_read_does_not_keep_others_waiting() {
    let place = Place::new();
    let store = place.open();
    create(&store, "1", "k").await;
    create(&store, "2", "k2").await;
    let other = rusqlite::Connection::open(place.dir.path().join("portcullis.db")).unwrap();
    other.execute("UPDATE held SET body = 'garbage' WHERE id = 'call_1'", []).unwrap();
    place.clock.advance(Duration::from_secs(900));
    until("the other one expires", async || {
        let held = store.get("call_2").await.unwrap();
        held.call().outcome.is_some().then_some(())
    })
    .await;
    assert!(store.get("call_1").await.unwrap_err().to_string().contains("cannot be read"));
    assert_eq!(store.list(Filter::default()).await.unwrap().0.len(), 1);
}

/// Not a test of its own: the process that the next test kills.
#[test]
#[ignore = "run by `a_killed_process_loses_no_held_call`"]
fn victim() {
    let Ok(dir) = std::env::var("PORTCULLIS_TEST_VICTIM") else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(Path::new(&dir), Clock::manual(START)).unwrap();
        for i in 0..50 {
            create(&store, &i.to_string(), &format!("k{i}")).await;
        }
        run(&store, "call_0").await;
        fs::write(Path::new(&dir).join("done"), "").unwrap();
        std::future::pending::<()>().await;
    });
}

#[tokio::test]
async fn a_killed_process_loses_no_held_call() {
    let place = Place::new();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::victim", "--ignored"])
        .env("PORTCULLIS_TEST_VICTIM", place.dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let store = place.open();
    until("the victim's calls", async || place.dir.path().join("done").exists().then_some(())).await;
    assert_eq!(store.get("call_0").await.unwrap().call().state, CallState::Running);
    child.kill().unwrap();
    child.wait().unwrap();
    until("the victim's client goes", async || {
        let held = store.get("call_49").await.unwrap();
        (held.approval.client.state == ClientState::Gone).then_some(())
    })
    .await;
    let again = place.open();
    let waiting = Filter { state: Some(ApprovalState::Waiting), limit: 100, ..Filter::default() };
    assert_eq!(again.list(waiting).await.unwrap().0.len(), 49);
    assert_eq!(again.get("call_0").await.unwrap().call().state, CallState::Failed);
}

#[tokio::test]
async fn a_client_that_does_not_wait_for_the_answer_is_gone() {
    let place = Place::new();
    let store = place.open();
    {
        let hold = store.hold(call("1", "k", None), 9);
        // Polled once, so that the job is on its way, and dropped.
        let _ = tokio::time::timeout(Duration::ZERO, hold).await;
    }
    until("the orphan is detached", async || {
        let held = store.get("call_1").await.ok()?;
        (held.approval.client.state == ClientState::Gone).then_some(())
    })
    .await;
}

#[tokio::test]
async fn lists_are_filtered_and_paged_newest_first() {
    let place = Place::new();
    let store = place.open();
    for i in 0..5 {
        let mut held = call(&i.to_string(), &format!("k{i}"), None);
        held.approval.call.created_at = START.after(Duration::from_secs(i));
        if i == 4 {
            held.approval.call.group = "ops".into();
        }
        store.hold(held, 9).await.unwrap();
    }
    store.apply("call_0", Event::Refuse { reason: Rejection::Stale, detail: None }).await.unwrap();
    let ids = |page: &[Held]| page.iter().map(|held| held.call().id.clone()).collect::<Vec<_>>();
    let filter = Filter { limit: 2, ..Filter::default() };
    let (page, next) = store.list(filter.clone()).await.unwrap();
    assert_eq!(ids(&page), ["call_4", "call_3"]);
    let (page, next) = store.list(Filter { cursor: next, ..filter.clone() }).await.unwrap();
    assert_eq!(ids(&page), ["call_2", "call_1"]);
    let (page, next) = store.list(Filter { cursor: next, ..filter }).await.unwrap();
    assert_eq!((ids(&page), next), (vec!["call_0".to_owned()], None));

    for (filter, expected) in [
        (Filter { state: Some(ApprovalState::Stale), ..Filter::default() }, vec!["call_0"]),
        (Filter { groups: Some(vec!["ops".into()]), ..Filter::default() }, vec!["call_4"]),
        (Filter { groups: Some(vec![]), ..Filter::default() }, vec![]),
        (Filter { agent: Some("x".into()), ..Filter::default() }, vec![]),
        (Filter { upstream: Some("x".into()), ..Filter::default() }, vec![]),
        (Filter { since: Some(START.after(Duration::from_secs(3))), ..Filter::default() }, vec!["call_4", "call_3"]),
    ] {
        assert_eq!(ids(&store.list(filter.clone()).await.unwrap().0), expected, "{filter:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_value_is_taken_once() {
    let place = Place::new();
    let stores = [place.open(), place.open()];
    stores[0].put("login", "ana", None).await.unwrap();
    assert_eq!(stores[1].read("login").await.unwrap().as_deref(), Some("ana"));
    let mut takers = JoinSet::new();
    for i in 0..32 {
        let store = stores[i % 2].clone();
        takers.spawn(async move { store.take("login").await.unwrap() });
    }
    assert_eq!(takers.join_all().await.into_iter().flatten().count(), 1);

    assert_eq!(stores[0].once("key", "first").await.unwrap(), "first");
    assert_eq!(stores[1].once("key", "second").await.unwrap(), "first");
    stores[0].put("brief", "x", Some(START.after(Duration::from_secs(1)))).await.unwrap();
    place.clock.advance(Duration::from_secs(1));
    assert_eq!(stores[0].read("brief").await.unwrap(), None);
    assert_eq!(stores[0].take("brief").await.unwrap(), None);
}

#[tokio::test]
async fn files_are_the_owners_alone_and_hold_no_session_id() {
    let place = Place::new();
    let dir = place.dir.path().join("new");
    let store = Store::open(&dir, place.clock.clone()).unwrap();
    let session = StoredSession {
        id: "ses_half_a_credential".into(),
        agent: "claude".into(),
        upstream: "files".into(),
        initialize: "{}".into(),
        version: "2025-11-25".into(),
        upstream_session: None,
        used_at: START,
        process: None,
    };
    store.put_session(session).await.unwrap();
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o777, 0o700);
    for file in fs::read_dir(&dir).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "{}", path.display());
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains("ses_half_a_credential"), "{}", path.display());
        }
    }
    store.ready().await.unwrap();
    fs::remove_file(dir.join("portcullis.db")).unwrap();
    assert!(store.ready().await.unwrap_err().to_string().contains("replaced or removed"));
}

#[tokio::test]
async fn what_cannot_be_opened_says_why() {
    let place = Place::new();
    let file = place.dir.path().join("portcullis.db");
    fs::write(&file, "this is not a database, and it is long enough to look like one".repeat(40)).unwrap();
    let error = Store::open(place.dir.path(), place.clock.clone()).err().unwrap().to_string();
    assert!(error.contains("damaged or not a database"), "{error}");
    fs::remove_file(&file).unwrap();

    drop(place.open());
    rusqlite::Connection::open(&file).unwrap().pragma_update(None, "user_version", 7).unwrap();
    let error = Store::open(place.dir.path(), place.clock.clone()).err().unwrap().to_string();
    assert!(error.contains("another version of portcullis (tables 7"), "{error}");
}

#[tokio::test]
async fn a_database_that_cannot_be_written_can_still_be_read() {
    let place = Place::new();
    let database = Database::open_with(place.dir.path(), place.clock.clone(), Duration::from_millis(50)).unwrap();
    let store = Store { database: Arc::new(database) };
    create(&store, "1", "k").await;
    let other = rusqlite::Connection::open(place.dir.path().join("portcullis.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.apply("call_1", detach()).await.unwrap_err();
    assert!(error.to_string().contains("locked"), "{error}");
    assert!(store.ready().await.is_err());
    assert!(store.get("call_1").await.is_ok());
    other.execute_batch("ROLLBACK").unwrap();
    store.apply("call_1", detach()).await.unwrap();
    store.ready().await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_an_answer_and_no_half_of_a_batch() {
    let place = Place::new();
    let store = place.open();
    create(&store, "1", "k").await;
    store.database.write(|tables| tables.limit_for_test(0)).await.unwrap();
    let mut big = call("2", "k2", None);
    big.intent.message = "x".repeat(1 << 20);
    let (small, big) = tokio::join!(store.apply("call_1", detach()), store.hold(big, 9));
    let error = big.unwrap_err();
    assert!(error.to_string().contains("disk is full"), "{error}");
    let attached = store.get("call_1").await.unwrap().approval.client.state;
    assert_eq!(small.is_ok(), attached == ClientState::Gone, "told as it is");
    store.database.write(|tables| tables.limit_for_test(1 << 20)).await.unwrap();
    assert_eq!(store.get("call_2").await.unwrap_err(), StoreError::NotFound);
    create(&store, "2", "k2").await;
}

#[tokio::test]
async fn old_ends_are_removed_and_live_calls_are_not() {
    let place = Place::new();
    let store = place.open();
    create(&store, "old", "k").await;
    store.apply("call_old", Event::Cancel { detail: None }).await.unwrap();
    let mut live = call("live", "k2", None);
    live.approval.expires_at = START.after(Duration::from_secs(30 * 86_400));
    store.hold(live, 9).await.unwrap();
    drop(store);
    place.clock.advance(Duration::from_secs(8 * 86_400));
    let store = place.open();
    until("the old one goes", async || store.get("call_old").await.is_err().then_some(())).await;
    assert_eq!(store.get("call_live").await.unwrap().approval.state, ApprovalState::Waiting);
}

fn sighting(name: &str, digest: &str) -> Sighting {
    Sighting { name: name.into(), digest: digest.into(), definition: format!("{{\"d\":\"{digest}\"}}"), suspect: false }
}

#[tokio::test]
async fn tools_are_accepted_as_they_are_offered_and_no_other_way() {
    let place = Place::new();
    let (one, two) = (place.open(), place.open());
    let changes = two.tool_changes();
    let nothing = || Accepting::Nothing;
    assert_eq!(one.saw_tools("shop", vec![sighting("buy", "A")], nothing()).await.unwrap(), ["buy"]);
    assert_eq!(two.saw_tools("shop", vec![sighting("buy", "A")], nothing()).await.unwrap(), Vec::<String>::new());
    assert_eq!(one.accept_tool("shop", "sell", "A", "ana").await.unwrap(), Acceptance::Unknown);
    assert_eq!(one.accept_tool("shop", "buy", "B", "ana").await.unwrap(), Acceptance::Another);
    assert_eq!(one.accept_tool("shop", "buy", "A", "ana").await.unwrap(), Acceptance::Accepted);
    assert_eq!(two.accept_tool("shop", "buy", "A", "ben").await.unwrap(), Acceptance::Already);
    let known = two.tool("shop", "buy").await.unwrap().unwrap();
    let accepted = known.accepted.clone().unwrap();
    assert_eq!((accepted.digest.as_str(), accepted.by.as_str(), accepted.at), ("A", "ana", START));
    until("the other process hears of it", async || (*changes.borrow() == known.rev).then_some(())).await;

    // Another definition is offered: the accepted one stays, and what was not offered last cannot be accepted.
    assert_eq!(two.saw_tools("shop", vec![sighting("buy", "B")], nothing()).await.unwrap(), ["buy"]);
    assert_eq!(one.tools_since(known.rev).await.unwrap().len(), 1);
    // Calls may be held on the earlier one.
    let earlier = async |digest: &str| one.tool_definition("shop", "buy", digest).await.unwrap();
    assert_eq!(earlier("A").await, Some(sighting("buy", "A").definition));
    assert_eq!(earlier("B").await, Some(sighting("buy", "B").definition));
    assert_eq!(earlier("C").await, None);
    let both = one.tool_definitions("shop", "buy").await.unwrap().unwrap();
    assert_eq!(both, ("{\"d\":\"B\"}".to_owned(), Some("{\"d\":\"A\"}".to_owned())));
    assert_eq!(one.accept_tool("shop", "buy", "A", "ana").await.unwrap(), Acceptance::Already);
    assert_eq!(one.tool("shop", "buy").await.unwrap().unwrap().offered, "B");
    assert_eq!(one.tool("mail", "buy").await.unwrap(), None);
}

#[tokio::test]
async fn a_first_list_is_accepted_once_and_without_what_is_suspect() {
    let place = Place::new();
    let store = place.open();
    let first = || Accepting::FirstList("wrap".into());
    let evil = Sighting { suspect: true, ..sighting("evil", "E") };
    store.saw_tools("shop", vec![sighting("a", "A"), evil, sighting("b", "B")], first()).await.unwrap();
    store.saw_tools("shop", vec![sighting("a", "A2"), sighting("c", "C")], first()).await.unwrap();
    let tools = store.tools_since(0).await.unwrap();
    let accepted: std::collections::BTreeMap<_, _> =
        tools.iter().map(|tool| (tool.name.as_str(), tool.accepted.as_ref().map(|a| a.digest.as_str()))).collect();
    assert_eq!(accepted, [("a", Some("A")), ("b", Some("B")), ("c", None), ("evil", None)].into());
    store.saw_tools("shop", vec![sighting("a", "A2")], Accepting::Always("x".into())).await.unwrap();
    assert_eq!(store.tool("shop", "a").await.unwrap().unwrap().accepted.unwrap().digest, "A2");
}

#[tokio::test]
async fn an_upstream_that_makes_up_names_fills_nothing() {
    let place = Place::new();
    let store = place.open();
    let many = (0..5_010).map(|n| sighting(&format!("t{n}"), "A")).collect();
    assert_eq!(store.saw_tools("shop", many, Accepting::Nothing).await.unwrap().len(), 5_000);
    assert_eq!(store.saw_tools("shop", vec![sighting("more", "A")], Accepting::Nothing).await.unwrap().len(), 0);
    assert_eq!(store.saw_tools("mail", vec![sighting("more", "A")], Accepting::Nothing).await.unwrap(), ["more"]);
}

#[tokio::test]
async fn one_process_tells_and_another_follows_where_it_ended_in_between() {
    let place = Place::new();
    let (here, there) = (place.open(), place.open());
    let lease = Duration::from_secs(45);
    let seq = here.claim_notice("slack:ops", "t", 0, lease).await.unwrap().unwrap();
    assert_eq!(there.claim_notice("slack:ops", "t", 0, lease).await.unwrap(), None);
    let seen = there.notice("slack:ops", "t").await.unwrap().unwrap();
    assert_eq!(there.claim_notice("slack:ops", "t", seen.seq, lease).await.unwrap(), None, "it is taken");
    assert!(there.claim_notice("mail:boss", "t", 0, lease).await.unwrap().is_some(), "another channel");

    let said = |seq, body: &str| Notice { thread: "t".into(), seq, open: true, claimed_until: None, body: body.into() };
    assert!(here.noticed("slack:ops", said(seq, "first")).await.unwrap());
    assert!(!here.noticed("slack:ops", said(seq, "again")).await.unwrap(), "the claim is given back");
    let seen = there.notice("slack:ops", "t").await.unwrap().unwrap();
    assert_eq!((seen.body.as_str(), seen.claimed_until), ("first", None));
    assert_eq!(there.open_notices("slack:ops").await.unwrap(), vec![seen.clone()]);

    let lost = here.claim_notice("slack:ops", "t", seen.seq, lease).await.unwrap().unwrap();
    place.clock.advance(lease);
    let taken = there.claim_notice("slack:ops", "t", lost, lease).await.unwrap().unwrap();
    assert!(!here.noticed("slack:ops", said(lost, "late")).await.unwrap());
    assert!(there.noticed("slack:ops", Notice { open: false, ..said(taken, "second") }).await.unwrap());
    assert_eq!(here.notice("slack:ops", "t").await.unwrap().unwrap().body, "second");
    assert!(here.open_notices("slack:ops").await.unwrap().is_empty());
}

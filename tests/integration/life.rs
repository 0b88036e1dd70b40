//! What becomes of a held call: each kind of client, at each moment of the call's life, at each event, as a table. Every cell
//! is played with a gateway of its own, and stands in `docs/holding.md`.

use std::fmt::Write as _;
use std::path::Path;

use futures_util::{StreamExt as _, stream};
use http::Method;
use serde_json::{Value, json};

use crate::harness::agent::{Agent, about, reply, text};
use crate::harness::gateway::{Gateway, Home};
use crate::harness::http::Answer;
use crate::harness::piped::Piped;
use crate::harness::{eventually, peers};

/// How a client waits for a held call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// A session over HTTP (up to 2025-11-25).
    Session,
    /// Over HTTP without a session (2026-07-28).
    Stateless,
    /// `params.task` (2025-11-25).
    Task,
    /// The extension `io.modelcontextprotocol/tasks` (2026-07-28).
    Extension,
    /// A client of `portcullis wrap`.
    Wrap,
}

use Kind::{Extension, Session, Stateless, Task, Wrap};

const KINDS: [(Kind, &str); 5] = [
    (Session, "HTTP, session"),
    (Stateless, "HTTP, stateless"),
    (Task, "task (2025-11-25)"),
    (Extension, "task (extension)"),
    (Wrap, "`wrap`"),
];

/// Where the call stands when something happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Moment {
    Waiting,
    HandedOff,
    Running,
    Ended,
}

/// What happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Disconnect,
    Cancel,
    Restart,
    OtherProcess,
    Expiry,
    Reload,
    ToolChanged,
}

/// What has become of the call in the end, if an approver approves what can still be approved and the client comes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// It ran once, and its client has the result.
    Ran,
    /// The same; the client was gone meanwhile and is told when it ran.
    Kept,
    /// The same, but policy denies the call by now: its result is not given.
    Denied,
    /// It ran for nobody: withdrawn.
    Withdrawn,
    /// It was running and was stopped.
    Stopped,
    /// Nobody decided in time.
    Expired,
    /// It is not what was approved any more.
    Stale,
    /// The gateway died while it ran.
    MayHaveRun,
    /// Cannot be, or is another row.
    None,
}

impl End {
    fn told(self) -> &'static str {
        match self {
            Self::Ran => "runs once",
            Self::Kept => "runs once; the retry is given the kept result",
            Self::Denied => "ran once; the retry is denied and given nothing",
            Self::Withdrawn => "Cancelled, nothing ran",
            Self::Stopped => "Cancelled, stopped at the far side",
            Self::Expired => "Rejected (`expired`)",
            Self::Stale => "Rejected (`stale`)",
            Self::MayHaveRun => "Failed, may have run; not run again",
            Self::None => "–",
        }
    }
}

use End::{Denied, Expired, Kept, MayHaveRun, Ran, Stale, Stopped, Withdrawn};

struct Row {
    moment: Moment,
    event: Event,
    ends: [End; 5],
    note: &'static str,
}

const fn row(moment: Moment, event: Event, ends: [End; 5], note: &'static str) -> Row {
    Row { moment, event, ends, note }
}

const NO: End = End::None;

#[rustfmt::skip]
const TABLE: &[Row] = &[
    //                                         session    stateless  task       extension  wrap
    row(Moment::Waiting, Event::Disconnect,    [Ran,       Withdrawn, Ran,       Ran,       Ran],       "a closed stream is a cancel in 2026-07-28; the others come back with the identical call"),
    row(Moment::Waiting, Event::Cancel,        [Withdrawn, NO,        Withdrawn, Withdrawn, Withdrawn], "without a session the closed stream is the cancel"),
    row(Moment::Waiting, Event::Restart,       [Ran,       Ran,       Ran,       Ran,       Ran],       "it waits on under the same id"),
    row(Moment::Waiting, Event::OtherProcess,  [Ran,       Ran,       Ran,       Ran,       Ran],       "decided at another process on the same state folder"),
    row(Moment::Waiting, Event::Expiry,        [Expired,   Expired,   Expired,   Expired,   Expired],   ""),
    row(Moment::Waiting, Event::Reload,        [Stale,     Stale,     Stale,     Stale,     Stale],     "the new policy denies it"),
    row(Moment::Waiting, Event::ToolChanged,   [Stale,     Stale,     Stale,     Stale,     Stale],     ""),
    row(Moment::HandedOff, Event::Disconnect,  [Withdrawn, Withdrawn, NO,        NO,        Withdrawn], "the client stays away for `hold_grace` after the decision"),
    row(Moment::HandedOff, Event::Cancel,      [NO,        NO,        NO,        NO,        NO],        "the request has ended; an operator can withdraw the call"),
    row(Moment::HandedOff, Event::Restart,     [Ran,       Ran,       NO,        NO,        Ran],       ""),
    row(Moment::HandedOff, Event::OtherProcess,[Ran,       Ran,       NO,        NO,        Ran],       ""),
    row(Moment::HandedOff, Event::Expiry,      [Expired,   Expired,   NO,        NO,        Expired],   "the retry is told"),
    row(Moment::HandedOff, Event::Reload,      [Withdrawn, Withdrawn, NO,        NO,        Withdrawn], "policy denies the retry before it gets there"),
    row(Moment::HandedOff, Event::ToolChanged, [Stale,     Stale,     NO,        NO,        Stale],     ""),
    row(Moment::Running, Event::Disconnect,    [Kept,      Stopped,   Ran,       Ran,       NO],        "where `wrap` ends, its server ends with it"),
    row(Moment::Running, Event::Cancel,        [Stopped,   NO,        Stopped,   Stopped,   Stopped],   ""),
    row(Moment::Running, Event::Restart,       [MayHaveRun,MayHaveRun,MayHaveRun,MayHaveRun,MayHaveRun],""),
    row(Moment::Running, Event::OtherProcess,  [NO,        NO,        NO,        NO,        NO],        "it is decided"),
    row(Moment::Running, Event::Expiry,        [NO,        NO,        NO,        NO,        NO],        "it is decided"),
    row(Moment::Running, Event::Reload,        [Ran,       Ran,       Ran,       Ran,       Ran],       "what runs goes on"),
    row(Moment::Running, Event::ToolChanged,   [Ran,       Ran,       Ran,       Ran,       Ran],       ""),
    row(Moment::Ended, Event::Disconnect,      [NO,        NO,        NO,        NO,        NO],        "nobody is connected: the result waits to be fetched"),
    row(Moment::Ended, Event::Cancel,          [NO,        NO,        Ran,       Ran,       NO],        "too late"),
    row(Moment::Ended, Event::Restart,         [Kept,      NO,        Ran,       Ran,       NO],        ""),
    row(Moment::Ended, Event::OtherProcess,    [NO,        NO,        NO,        NO,        NO],        "it is decided"),
    row(Moment::Ended, Event::Expiry,          [NO,        NO,        NO,        NO,        NO],        "it is decided; a kept result is given for `result_ttl`"),
    row(Moment::Ended, Event::Reload,          [Denied,    NO,        Ran,       Ran,       NO],        ""),
    row(Moment::Ended, Event::ToolChanged,     [Kept,      NO,        Ran,       Ran,       NO],        ""),
];

fn words(moment: Moment, event: Event) -> (&'static str, &'static str) {
    let moment = match moment {
        Moment::Waiting => "it waits",
        Moment::HandedOff => "its client was told to come back",
        Moment::Running => "it runs",
        Moment::Ended => "it has run, its client was gone",
    };
    let event = match event {
        Event::Disconnect => "the client disconnects",
        Event::Cancel => "the client cancels",
        Event::Restart => "the gateway dies and starts again",
        Event::OtherProcess => "another process decides",
        Event::Expiry => "`expires` passes",
        Event::Reload => "the policy is reloaded",
        Event::ToolChanged => "the tool's definition changes",
    };
    (moment, event)
}

/// The table as it stands in `docs/holding.md`.
fn page() -> String {
    let mut page = String::from("| when | what happens |");
    KINDS.iter().for_each(|(_, name)| write!(page, " {name} |").expect("text"));
    page.push_str(" |\n|---|---|---|---|---|---|---|---|\n");
    for Row { moment, event, ends, note } in TABLE {
        let (moment, event) = words(*moment, *event);
        write!(page, "| {moment} | {event} |").expect("text");
        ends.iter().for_each(|end| write!(page, " {} |", end.told()).expect("text"));
        writeln!(page, " {note} |").expect("text");
    }
    page
}

#[test]
fn the_page_has_this_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/holding.md");
    let text = std::fs::read_to_string(&path).expect("docs/holding.md");
    let (head, rest) = text.split_once("<!-- table -->\n").expect("where the table begins");
    let (_, tail) = rest.split_once("<!-- /table -->").expect("where it ends");
    let now = format!("{head}<!-- table -->\n{}<!-- /table -->{tail}", page());
    if std::env::var_os("PORTCULLIS_WRITE_DOCS").is_some() {
        std::fs::write(&path, &now).expect("written");
    } else {
        assert_eq!(
            text, now,
            "write it anew with PORTCULLIS_WRITE_DOCS=1 cargo test --test integration life::the_page"
        );
    }
}

const POLICY: &str = "
version: 1
groups: { default: { otherwise: deny, rules: [{ name: counted, verdict: ask, tool: [count, slow] }] } }
";

/// Each cell that can be, a few at a time.
#[tokio::test(flavor = "multi_thread")]
async fn every_client_at_every_moment_and_every_event() {
    let cells = TABLE.iter().flat_map(|row| {
        KINDS.iter().zip(row.ends).filter(|(_, end)| *end != NO).map(move |((kind, _), end)| (row, *kind, end))
    });
    let wrong: Vec<String> = stream::iter(cells)
        .map(|(row, kind, end)| async move {
            let played = tokio::spawn(play(kind, row.moment, row.event)).await;
            let cell = format!("{kind:?}, {:?}, {:?}", row.moment, row.event);
            match played {
                Ok(found) if found == end => None,
                Ok(found) => Some(format!("{cell}: {found:?} and not {end:?}")),
                Err(error) => Some(format!("{cell}: {error}")),
            }
        })
        .buffer_unordered(4)
        .filter_map(std::future::ready)
        .collect()
        .await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A client with its call.
struct Peer {
    kind: Kind,
    agent: Option<Agent>,
    piped: Option<Piped>,
    command: Vec<String>,
    tool: &'static str,
    id: u64,
    open: Option<Answer>,
    task: Value,
}

impl Peer {
    async fn start(home: &Home, gateway: &Gateway, kind: Kind, tool: &'static str, server: Vec<String>) -> Self {
        let url = gateway.url("counter");
        let (mut agent, mut piped, command) = (None, None, home.wrap("counter", server));
        match kind {
            Session | Task => agent = Some(Agent::legacy(&url).await),
            Stateless | Extension => agent = Some(Agent::modern(&url)),
            Wrap => piped = Some(Piped::legacy(&command, &[]).await),
        }
        Self { kind, agent, piped, command, tool, id: 1, open: None, task: Value::Null }
    }

    fn arguments(&self) -> Value {
        json!({ "n": "once", "seconds": 1.5 })
    }

    fn is_task(&self) -> bool {
        matches!(self.kind, Task | Extension)
    }

    async fn begin(&mut self) {
        self.id += 1;
        let (id, tool, arguments) = (self.id, self.tool, self.arguments());
        let Some(agent) = &self.agent else {
            return self.piped.as_mut().expect("a process").begin(id, tool, arguments).await;
        };
        let mut params = json!({ "name": tool, "arguments": arguments });
        if self.kind == Task {
            params["task"] = json!({ "ttl": 60_000 });
        }
        let mut message = agent.message(id, "tools/call", params);
        if self.kind == Extension {
            let declared = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
            message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = declared;
        }
        let answer = agent.post(&message).await;
        if self.is_task() {
            let handle = reply(answer, id).await["result"].clone();
            self.task = if self.kind == Task { handle["task"]["taskId"].clone() } else { handle["taskId"].clone() };
        } else {
            self.open = Some(answer);
        }
    }

    /// The answer to the call that is open.
    async fn answer(&mut self) -> Value {
        match (&mut self.piped, self.open.take()) {
            (Some(piped), _) => piped.answer(self.id).await,
            (None, Some(open)) => reply(open, self.id).await,
            (None, None) => panic!("nothing is open"),
        }
    }

    /// Says the identical call again, until it is told an end.
    async fn retry(&mut self) -> Value {
        self.begin().await;
        let told = self.answer().await;
        assert_ne!(about(&told)["state"], "awaiting_approval", "{told}");
        told
    }

    async fn tasks(&self, method: &str) -> Value {
        let agent = self.agent.as_ref().expect("a client over HTTP");
        agent.request(90, method, json!({ "taskId": self.task })).await
    }

    /// What its task ended with.
    async fn fetch(&self) -> Value {
        let ended = eventually("the end of a task", || async {
            let state = self.tasks("tasks/get").await;
            (state["result"]["status"] != "working").then_some(state)
        })
        .await;
        match self.kind {
            Task if ended["result"]["status"] == "completed" => self.tasks("tasks/result").await,
            Extension if ended["result"]["status"] == "completed" => ended["result"].clone(),
            _ => ended,
        }
    }

    async fn disconnect(&mut self) {
        self.open = None;
        if let Some(piped) = self.piped.take() {
            piped.close().await;
        }
    }

    async fn cancel(&mut self) {
        if self.is_task() {
            return drop(self.tasks("tasks/cancel").await);
        }
        match (&self.agent, &mut self.piped) {
            (Some(agent), _) => {
                let params = json!({ "requestId": self.id, "reason": "not needed" });
                let message = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
                assert_eq!(agent.post(&message).await.status, 202);
            }
            (None, Some(piped)) => piped.cancel(self.id).await,
            (None, None) => panic!("nobody is there"),
        }
    }

    /// There again after its gateway, or its own process, was away.
    async fn back(&mut self, gateway: &Gateway) {
        match &self.agent {
            Some(agent) => self.agent = Some(agent.back_at(&gateway.url("counter"))),
            None if self.piped.is_none() => self.piped = Some(Piped::legacy(&self.command, &[]).await),
            None => {}
        }
    }
}

/// Plays one cell.
async fn play(kind: Kind, moment: Moment, event: Event) -> End {
    let is_slow = matches!(moment, Moment::Running | Moment::Ended);
    let (tool, expires) = (if is_slow { "slow" } else { "count" }, if event == Event::Expiry { "2s" } else { "60s" });
    let hold_for = if moment == Moment::HandedOff { "300ms" } else { "50s" };
    let home = Home::new(POLICY, json!({}));
    let runs = home.base().join("runs.txt");
    std::fs::write(&runs, "").expect("a file");
    let server = peers::fixture("counter.py", &[&runs.to_string_lossy()]);
    let home = home
        .with("upstreams", json!({ "counter": { "command": server, "new_tools": "accept" } }))
        .with("approvals", json!({ "hold_for": hold_for, "expires": expires, "hold_grace": "2s" }));
    let mut gateway = home.serve();
    let mut peer = Peer::start(&home, &gateway, kind, tool, server).await;
    peer.begin().await;
    let held = gateway.held(1).await.remove(0);
    let call = held["call"]["id"].as_str().expect("an id").to_owned();
    let ran = || std::fs::read_to_string(&runs).expect("the runs").lines().count();

    if moment == Moment::HandedOff {
        assert_eq!(about(&peer.answer().await)["state"], "awaiting_approval");
    }
    if is_slow {
        assert_eq!(gateway.approve(&held).await.0, 200);
        eventually("the run", || async { (ran() == 1).then_some(()) }).await;
    }
    if moment == Moment::Ended {
        peer.disconnect().await;
        assert_eq!(gateway.ended(&call).await["outcome"], "completed");
    }

    // What happens; whoever was attached before may be gone after.
    let mut is_open = !peer.is_task() && matches!(moment, Moment::Waiting | Moment::Running);
    let mut approver = None;
    match event {
        Event::Disconnect => {
            peer.disconnect().await;
            is_open = false;
        }
        Event::Cancel => {
            peer.cancel().await;
            is_open = false;
        }
        Event::Restart => {
            if let Some(piped) = peer.piped.take() {
                piped.crash().await;
            }
            gateway.crash();
            gateway = home.serve();
            is_open = false;
        }
        Event::OtherProcess => approver = Some(home.serve()),
        Event::Expiry => drop(gateway.ended(&call).await),
        Event::Reload => {
            home.write_policy(&POLICY.replace("verdict: ask", "verdict: deny"));
            assert_eq!(gateway.api(Method::POST, "policy/reload", Value::Null).await.0, 200);
            if let Some(piped) = &peer.piped {
                piped.hang_up();
                // Both processes say so in their logs.
                let version = gateway.get("policy").await["version"].as_str().expect("a version").to_owned();
                eventually("the new policy in both", || async {
                    let logs = std::fs::read_dir(home.state().join("audit")).expect("the logs").flatten();
                    let texts = logs.map(|log| std::fs::read_to_string(log.path()).unwrap_or_default());
                    let loaded = texts.filter(|text| text.contains("policy.loaded") && text.contains(&version));
                    (loaded.count() == 2).then_some(())
                })
                .await;
            }
        }
        Event::ToolChanged => std::fs::write(runs.with_extension("txt.description"), "Counts twice.").expect("a file"),
    }
    // An approver who sees the call as it is now, and a client that comes back.
    let is_gone = moment == Moment::HandedOff && event == Event::Disconnect;
    let is_closed = kind == Stateless && event == Event::Disconnect && moment != Moment::HandedOff;
    if !is_slow && !matches!(event, Event::Cancel | Event::Expiry) && !is_closed {
        let approver = approver.as_ref().unwrap_or(&gateway);
        let now = approver.held(1).await.remove(0);
        assert_eq!(now["call"]["id"], call, "the same call waits on");
        assert_eq!(approver.approve(&now).await.0, 200);
    }
    peer.back(&gateway).await;
    let is_moot = event == Event::Cancel || is_gone || is_closed;
    let told = match (is_moot, is_open) {
        _ if peer.is_task() => peer.fetch().await,
        (true, _) => Value::Null,
        (false, true) => peer.answer().await,
        (false, false) => peer.retry().await,
    };
    let record = gateway.ended(&call).await;
    let others = gateway.waiting().await;
    assert!(others.is_empty(), "nothing else waits: {others:?}");
    found(&record, &told, ran())
}

/// Which end it was, by the record, by what the client was told, and by how often it ran.
fn found(record: &Value, told: &Value, ran: usize) -> End {
    let (outcome, reason) = (record["outcome"].as_str().unwrap_or_default(), record["reason"].as_str());
    let may_have_run = record["may_have_run"] == true;
    let said = if told["result"]["content"].is_array() { text(told).to_owned() } else { told.to_string() };
    match (outcome, reason, ran) {
        ("completed", _, 1) if said.contains("was not run again") => Kept,
        ("completed", _, 1) if said.contains("`counted` denies it") => Denied,
        ("completed", _, 1) => {
            assert!(said.contains("counted once"), "{told}");
            Ran
        }
        ("cancelled", _, 0) => Withdrawn,
        ("cancelled", _, 1) if may_have_run => Stopped,
        ("rejected", Some(reason @ ("expired" | "stale")), 0) => {
            let word = if reason == "expired" { "nobody" } else { "chang" };
            assert!(said.contains(word), "{told}");
            if reason == "expired" { Expired } else { Stale }
        }
        ("failed", _, 1) if may_have_run => {
            assert!(said.contains("may have run"), "{told}");
            MayHaveRun
        }
        _ => panic!("ran {ran} times, told {told}: {record}"),
    }
}

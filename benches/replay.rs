//! How long a million recorded calls take to be judged again. `docs/performance.md` has the figures.
//!
//! Writes the log of a million calls of six kinds (`PORTCULLIS_BENCH_CALLS` for another number), each with its begin and
//! its end, to a temporary folder (`TMPDIR`), replays it with the policy that it was judged with, and removes it.
#![allow(clippy::print_stdout)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;
use std::time::Instant;

use portcullis::audit::{Audit, EVIDENCE};
use portcullis::catalog::Catalogue;
use portcullis::clock::{Clock, Timestamp};
use portcullis::config::{AuditConfig, PolicyConfig, Transport, UpstreamConfig};
use portcullis::facet::extract;
use portcullis::facet::path::Space;
use portcullis::message::{Json, Limits};
use portcullis::policy::{Claimed, Evidence, Policy, Subject, judge, load};
use portcullis::record::{CallRecord, CallState, Depth, Source, Verdict};
use portcullis::replay::{Filter, replay};
use portcullis::secret::Redaction;
use serde_json::{Value, json};

const CALLS: [(&str, &str); 6] = [
    ("read_file", r#"{"path":"src/gate/call.rs"}"#),
    ("grep_files", r#"{"path":"src","pattern":"fn judge"}"#),
    ("write_file", r#"{"path":"src/new.rs","content":"pub fn new() {}"}"#),
    ("execute_cmd", r#"{"command":"cd src && grep -rn 'fn main' . | head -20"}"#),
    ("execute_cmd", r#"{"command":"git commit -am 'Say more' && git push origin main"}"#),
    ("read_file", r#"{"path":"secrets/key.pem"}"#),
];

fn main() {
    let calls = std::env::var("PORTCULLIS_BENCH_CALLS").map_or(1_000_000, |text| text.parse().expect("a number"));
    let folder = tempfile::tempdir().unwrap();
    let policy = policy();
    let began = Instant::now();
    let bytes = write(folder.path(), &policy, calls);
    let per_call = bytes / calls as u64;
    println!("wrote {calls} calls, {per_call} bytes each with begin and end, in {:.1?}", began.elapsed());
    let began = Instant::now();
    let report = replay(&folder.path().join("audit"), &policy, &Filter::default()).unwrap();
    let took = began.elapsed();
    assert_eq!((report.calls, report.unchanged), (calls as u64, calls as u64), "{report:?}");
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    let each = took / u32::try_from(calls).unwrap();
    println!("replayed {calls} calls in {took:.1?}, {each:.2?} each");
}

fn policy() -> Policy {
    let packs = Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let files = ["base.yaml", "coding-agent.yaml"].map(|name| packs.join(name).display().to_string()).to_vec();
    load(&PolicyConfig { files, ..PolicyConfig::default() }, &[]).expect("the packs load").policy
}

/// Writes the log; how many bytes it has.
fn write(state_dir: &Path, policy: &Policy, calls: usize) -> u64 {
    let root = state_dir.join("work");
    std::fs::create_dir_all(root.join("src/gate")).unwrap();
    let space = Space::new(&UpstreamConfig::new("work", Transport::Workspace, root));
    let lines: Vec<(Value, Value)> = CALLS.iter().map(|(tool, text)| lines(policy, &space, tool, text)).collect();
    let audit = Audit::open(state_dir, "bench", &AuditConfig::default(), Clock::system()).unwrap();
    for (number, (begin, end)) in (0..calls).zip(lines.iter().cycle()) {
        let (mut begin, mut end) = (begin.clone(), end.clone());
        for line in [&mut begin, &mut end] {
            *line.get_mut("id").unwrap() = format!("call_{number}").into();
        }
        let denied = begin.get("verdict").and_then(Value::as_str) == Some("deny");
        audit.write(if denied { "call.end" } else { "call.begin" }, &begin).unwrap();
        if !denied {
            audit.write("call.end", &end).unwrap();
        }
    }
    drop(audit);
    let files = std::fs::read_dir(state_dir.join("audit")).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// The first line of a call and its last, as a gateway writes them.
fn lines(policy: &Policy, space: &Space, tool: &str, text: &str) -> (Value, Value) {
    let entry = Catalogue::builtin("workspace").unwrap().tool(tool, None);
    let arguments = Json::parse(text.to_owned().into(), Limits::default()).unwrap();
    let touched = extract(&entry, space, Some(arguments.root())).unwrap();
    let at = Timestamp::from_millis(1_800_000_000_000);
    let subject = Subject {
        group: "coding",
        agent: Some("claude"),
        source: Some(Source::Interactive),
        depth: Some(Depth::Root),
        claimed: Claimed::default(),
        at: Some(at),
        upstream: Some("work"),
        tool: Some(tool),
        category: entry.category.as_deref(),
        method: "tools/call",
        arguments: Some(arguments.root()),
        recorded: None,
    };
    let judgement = judge(policy, &subject, &touched, space);
    let denied = judgement.verdict == Verdict::Deny;
    let evidence =
        Evidence::of(subject.category, Claimed::default(), &touched, &judgement, &Redaction::default(), true);
    let mut record = CallRecord {
        id: String::new(),
        state: CallState::Running,
        outcome: None,
        reason: None,
        detail: None,
        may_have_run: false,
        agent: "claude".into(),
        owner: Some("ana".into()),
        group: "coding".into(),
        source: Source::Interactive,
        depth: Depth::Root,
        session: Some(format!("ses_{}", "x".repeat(16))),
        upstream: "work".into(),
        tool: Some(tool.into()),
        method: "tools/call".into(),
        label: format!("{tool} {text}"),
        arguments: serde_json::from_str(text).unwrap(),
        redacted: Vec::new(),
        hidden: Vec::new(),
        hidden_more: 0,
        facets: judgement.facets.iter().map(|facet| facet.record.clone()).collect(),
        verdict: Some(judgement.verdict),
        decided_by: judgement.decided_by.clone(),
        reasons: judgement.reasons.clone(),
        grant: None,
        shadow_verdict: None,
        // One that differs in a comment, say: every call is judged again.
        policy: Some("sha256:another".into()),
        digest: Some(format!("sha256:{}", "0".repeat(64))),
        attach_key: Some(format!("sha256:{}", "0".repeat(64))),
        created_at: at,
        released_at: (!denied).then_some(at),
        ended_at: None,
        waited_ms: None,
        ran_ms: None,
        tool_error: None,
        approval: None,
        from_upstream: false,
    };
    let mut begin = json!(record);
    let without = begin.to_string().len();
    begin.as_object_mut().unwrap().insert(EVIDENCE.into(), json!(evidence));
    println!("{:>5} bytes, {without} without what was judged: {tool} {text}", begin.to_string().len());
    record.state = CallState::Completed;
    (begin, json!(record))
}

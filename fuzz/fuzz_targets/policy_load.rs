//! The text of a policy: it is refused with a place in the file, or it loads, and judges the same when it is loaded again.
#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use portcullis::catalog::Catalogue;
use portcullis::clock::Timestamp;
use portcullis::config::{PolicyConfig, Transport, UpstreamConfig};
use portcullis::facet::path::Space;
use portcullis::facet::{Touched, extract, extract_shell};
use portcullis::message::{Json, Limits};
use portcullis::policy::{Claimed, Policy, Subject, judge, load};
use portcullis::record::{Depth, Source, Verdict};
use tempfile::TempDir;

/// The folder of the policy, and what some calls touch.
struct World {
    folder: TempDir,
    space: Space,
    touched: Vec<Touched>,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path().join("root");
    std::fs::create_dir_all(root.join("docs")).expect("a folder");
    let space = Space::new(&UpstreamConfig::new("files", Transport::Workspace, root));
    let arguments = Json::parse(r#"{"path":"docs/a.md","amount":1e2}"#.into(), Limits::default()).expect("JSON");
    let entry = Catalogue::builtin("filesystem").expect("a known server").tool("read_file", None);
    let touched = vec![
        extract(&entry, &space, Some(arguments.root())).expect("a path"),
        extract_shell(&space, "git -c a=b log docs | tee x; curl https://a.example").expect("a shell text"),
    ];
    World { folder, space, touched }
});

fuzz_target!(|data: &[u8]| {
    let world = &*WORLD;
    let file = world.folder.path().join("policy.yaml");
    std::fs::write(&file, data).expect("a file can be written");
    let config = PolicyConfig { files: vec![file.to_string_lossy().into_owned()], ..PolicyConfig::default() };
    let own = [PathBuf::from("/etc/portcullis")];
    match load(&config, &own) {
        Ok(mut first) => {
            let again = load(&config, &own).expect("what loads once loads twice");
            assert_eq!(said(&first.policy, world), said(&again.policy, world));
            first.lint(None, Timestamp::from_millis(1_800_000_000_000));
        }
        Err(errors) => {
            assert!(!errors.is_empty(), "a refusal says why");
            let lines = String::from_utf8_lossy(data).split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
            for error in errors {
                assert!(error.line <= lines, "line {} of {lines}: {}", error.line, error.message);
                assert!(!error.message.is_empty());
            }
        }
    }
});

/// What is said of the calls in each group.
fn said(policy: &Policy, world: &World) -> Vec<(Verdict, Vec<String>)> {
    let each = |group| world.touched.iter().map(move |touched| (group, touched));
    let calls = policy.groups().chain(["no such group"]).flat_map(each);
    calls
        .map(|(group, touched)| {
            let subject = Subject {
                group,
                agent: Some("claude"),
                source: Some(Source::Background),
                depth: Some(Depth::Sub),
                claimed: Claimed::default(),
                at: None,
                upstream: Some("files"),
                tool: Some("read_file"),
                category: Some("filesystem"),
                method: "tools/call",
                arguments: None,
                recorded: None,
            };
            let judged = judge(policy, &subject, touched, &world.space);
            assert!(!judged.decided_by.is_empty(), "somebody decides");
            (judged.verdict, judged.decided_by)
        })
        .collect()
}

//! A path in a call: what is allowed leads to where the rule says, as the kernel sees it, and a secret is always denied.
#![no_main]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use portcullis::catalog::{Catalogue, Tool};
use portcullis::config::{PolicyConfig, Transport, UpstreamConfig};
use portcullis::facet::path::Space;
use portcullis::facet::{FacetKind, Touched, extract, extract_resource};
use portcullis::message::{Json, Limits};
use portcullis::policy::{Claimed, Policy, Subject, judge, load};
use portcullis::record::Verdict;
use serde_json::json;
use tempfile::TempDir;

const POLICY: &str = "version: 1
guardrails:
  - { name: secrets, verdict: deny, path: secrets/, reason: Not for models. }
groups:
  default: { otherwise: ask, rules: [{ verdict: allow, path: ./ }] }
";

struct World {
    _folder: TempDir,
    root: PathBuf,
    space: Space,
    policy: Policy,
    tool: Tool,
}

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let top = folder.path().canonicalize().expect("it exists");
    let root = top.join("root");
    for path in ["root/docs/sub", "root/secrets", "out"] {
        fs::create_dir_all(top.join(path)).expect("a folder");
    }
    for file in ["root/docs/a.md", "root/secrets/key", "root/x", "out/file"] {
        fs::write(top.join(file), "x").expect("a file");
    }
    let links = [
        ("docs/out", "../../out"),
        ("docs/key", "../secrets/key"),
        ("up", ".."),
        ("docs/near", "a.md"),
        ("loop", "loop"),
        ("later", "secrets/later"),
    ];
    for (link, to) in links {
        symlink(to, root.join(link)).expect("a link");
    }
    let file = top.join("policy.yaml");
    fs::write(&file, POLICY).expect("a file");
    let config = PolicyConfig { files: vec![file.to_string_lossy().into_owned()], ..PolicyConfig::default() };
    World {
        policy: load(&config, &[]).expect("the policy loads").policy,
        space: Space::new(&UpstreamConfig::new("files", Transport::Workspace, root.clone())),
        tool: Catalogue::builtin("filesystem").expect("a known server").tool("read_file", None),
        root,
        _folder: folder,
    }
});

fuzz_target!(|text: &str| {
    let world = &*WORLD;
    let arguments = json!({ "path": text }).to_string();
    let arguments = Json::parse(arguments.into(), Limits::default()).expect("JSON");
    if let Ok(touched) = extract(&world.tool, &world.space, Some(arguments.root())) {
        let verdict = world.verdict(&touched);
        let is_uri = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"));
        if !is_uri {
            world.holds(text, text, verdict);
        }
        world.forwarded(text, &touched, verdict);
    }
    if let Ok(touched) = extract_resource("resources/read", &world.space, text) {
        world.forwarded(text, &touched, world.verdict(&touched));
    }
});

impl World {
    fn verdict(&self, touched: &Touched) -> Verdict {
        let subject = Subject {
            group: "default",
            agent: Some("local"),
            source: None,
            depth: None,
            claimed: Claimed::default(),
            at: None,
            upstream: Some("files"),
            tool: Some("read_file"),
            category: Some("filesystem"),
            method: "tools/call",
            arguments: None,
            recorded: None,
        };
        judge(&self.policy, &subject, touched, &self.space).verdict
    }

    /// Whether a verdict fits where the kernel finds a path.
    fn holds(&self, text: &str, path: &str, verdict: Verdict) {
        // The kernel creates what is not there yet where its folder leads.
        let at = self.root.join(path);
        let above = || Some(at.parent()?.canonicalize().ok()?.join(at.file_name()?));
        let Some(real) = at.canonicalize().ok().or_else(above) else { return };
        let secret = real.starts_with(self.root.join("secrets"));
        assert!(!secret || verdict == Verdict::Deny, "{text:?} leads to a secret, and the verdict is {verdict:?}");
        let inside = real.starts_with(&self.root);
        assert!(inside || verdict != Verdict::Allow, "{text:?} is allowed, and leads to {}", real.display());
    }

    /// The same for the paths that would be forwarded in its place.
    fn forwarded(&self, text: &str, touched: &Touched, verdict: Verdict) {
        for facet in &touched.facets {
            if let FacetKind::Path(path) = &facet.kind
                && let Some(canonical) = &path.canonical
            {
                self.holds(text, canonical, verdict);
            }
        }
    }
}

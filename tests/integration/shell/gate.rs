//! The gate as a shell text sees it.

use std::path::Path;

use portcullis::config::{PolicyConfig, Transport, UpstreamConfig};
use portcullis::facet::extract_shell;
use portcullis::facet::path::Space;
use portcullis::policy::{Claimed, Judgement, Policy, Subject, judge, load};
use portcullis::record::Verdict;

pub struct Gate {
    policy: Policy,
    space: Space,
}

impl Gate {
    /// A policy over a root that commands start in.
    pub fn new(root: &Path, policy: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        std::fs::write(&file, policy).unwrap();
        let config = PolicyConfig { files: vec![file.to_string_lossy().into_owned()], ..PolicyConfig::default() };
        let loaded = load(&config, &[]).unwrap_or_else(|errors| panic!("{errors:?}"));
        Self {
            policy: loaded.policy,
            space: Space::new(&UpstreamConfig::new("files", Transport::Workspace, root.to_owned())),
        }
    }

    /// What the policy says; a text that is malformed is refused.
    pub fn verdict(&self, text: &str) -> Verdict {
        self.judged(text).map_or(Verdict::Deny, |judged| judged.verdict)
    }

    pub fn judged(&self, text: &str) -> Option<Judgement> {
        let touched = extract_shell(&self.space, text).ok()?;
        let subject = Subject {
            group: "default",
            agent: Some("local"),
            source: None,
            depth: None,
            upstream: Some("files"),
            tool: Some("run"),
            category: None,
            method: "tools/call",
            arguments: None,
            claimed: Claimed::default(),
            at: None,
            recorded: None,
        };
        Some(judge(&self.policy, &subject, &touched, &self.space))
    }
}

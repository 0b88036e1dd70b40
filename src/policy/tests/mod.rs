//! The language of policy.md, from YAML to verdict.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod broken;
mod evidence;
mod examples;
mod holds;
mod index;
mod judging;
mod laws;
mod limits;
mod lints;
mod loading;
mod near;
mod outlook;
mod packs;
mod reach;
mod shell;
mod suite;
mod trial;

use std::path::PathBuf;

use super::judge::judge_with_advice;
use super::{Claimed, Judgement, Loaded, Policy, Subject, judge, load};
use crate::config::{PolicyConfig, Transport, UpstreamConfig};
use crate::diagnostic::Diagnostic;
use crate::facet::path::Space;
use crate::facet::{Facet, FacetKind, Floor, FloorWhy, PathFacet, Touched};
use crate::message::{Json, Limits};
use crate::pattern::Location;
use crate::record::Access;

/// Loads policies of these names and texts, with or without the built-in guardrails.
fn loaded(files: &[(&str, &str)], config: PolicyConfig) -> Result<Loaded, Vec<Diagnostic>> {
    let folder = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for (name, text) in files {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        names.push(file.to_str().unwrap().to_owned());
    }
    load(&PolicyConfig { files: names, ..config }, &[PathBuf::from("/etc/portcullis")])
}

fn plain() -> PolicyConfig {
    let disable = ["secrets", "kernel-paths", "own-files", "runs-later"].map(str::to_owned).to_vec();
    PolicyConfig { disable, ..PolicyConfig::default() }
}

/// A policy without built-in guardrails.
fn policy(text: &str) -> Policy {
    loaded(&[("base.yaml", &format!("version: 1\n{text}"))], plain())
        .unwrap_or_else(|found| panic!("{}", told(&found)))
        .policy
}

/// A policy with the built-in guardrails.
fn guarded(text: &str) -> Policy {
    loaded(&[("base.yaml", &format!("version: 1\n{text}"))], PolicyConfig::default())
        .unwrap_or_else(|found| panic!("{}", told(&found)))
        .policy
}

/// A policy of one group `g` with these rules, each a flow mapping.
fn rules(rules: &[&str]) -> Policy {
    policy(&format!(
        "groups:\n  g:\n    rules:\n{}",
        rules.iter().map(|r| format!("      - {r}\n")).collect::<String>()
    ))
}

fn told(found: &[Diagnostic]) -> String {
    found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// An absolute path, seen from the root `/w`.
fn at(path: &str) -> Location {
    let components: Vec<Box<str>> = path.split('/').filter(|c| !c.is_empty()).map(Box::from).collect();
    let root = (components.first().map(AsRef::as_ref) == Some("w")).then_some(1);
    Location::new(components, root)
}

/// A path facet that really leads elsewhere.
fn linked(access: Option<Access>, lexical: &str, physical: &[&str]) -> Facet {
    let kind = FacetKind::Path(PathFacet {
        access,
        pointer: "/path".into(),
        sent: lexical.into(),
        lexical: at(lexical),
        physical: physical.iter().map(|path| at(path)).collect(),
        canonical: None,
        recursive: false,
        command: None,
        part: None,
        below: None,
    });
    Facet { kind, floors: Vec::new() }
}

fn reads(path: &str) -> Facet {
    linked(Some(Access::Read), path, &[path])
}

fn writes(path: &str) -> Facet {
    linked(Some(Access::Write), path, &[path])
}

fn bare() -> Facet {
    Facet { kind: FacetKind::Bare, floors: Vec::new() }
}

fn floored(facet: Facet, why: FloorWhy) -> Facet {
    Facet { floors: vec![Floor { why, detail: None }], ..facet }
}

/// A tool call of group `g`.
fn call(tool: &str) -> Subject<'_> {
    Subject {
        group: "g",
        agent: Some("claude"),
        source: Some(crate::record::Source::Interactive),
        depth: Some(crate::record::Depth::Root),
        claimed: Claimed::default(),
        at: None,
        upstream: Some("files"),
        tool: Some(tool),
        category: Some("filesystem"),
        method: "tools/call",
        arguments: None,
        recorded: None,
    }
}

fn judged(policy: &Policy, subject: &Subject<'_>, facets: &[Facet]) -> Judgement {
    let touched = Touched { facets: facets.to_vec(), strays: Vec::new(), ..Touched::default() };
    judge(policy, subject, &touched, &space())
}

/// What an allow would have needed.
fn needed(policy: &Policy, subject: &Subject<'_>, facets: &[Facet]) -> Vec<String> {
    let touched = Touched { facets: facets.to_vec(), strays: Vec::new(), ..Touched::default() };
    judge_with_advice(policy, subject, &touched, &space()).1.needed_for_allow
}

fn space() -> Space {
    Space::new(&UpstreamConfig::new("files", Transport::Workspace, "/w".into()))
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned().into(), Limits::default()).unwrap()
}

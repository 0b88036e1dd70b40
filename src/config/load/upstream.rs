//! One entry of `upstreams`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::yaml::{Entry, Fields, Node, Report};
use super::super::{
    FileSystem, ForwardPaths, NewTools, OnDisconnect, Os, RESERVED_UPSTREAM, Transport, UpstreamConfig, is_upstream_id,
};
use super::values::{Surroundings, check_folder, web_address};
use super::{catalogue, set};
use crate::catalog::Dialect;
use crate::pattern::NamePattern;
use crate::secret::Secret;
use http::{HeaderName, HeaderValue};

/// Headers that the gateway sets itself, besides all that start with `mcp-`.
const OWN_HEADERS: [&str; 10] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "te",
    "transfer-encoding",
    "upgrade",
];

pub(super) fn upstream(entry: &Entry, around: &Surroundings<'_>, report: &mut Report) -> Option<UpstreamConfig> {
    check_id(entry, report);
    let mut fields = Fields::new(&entry.value, format!("upstream `{}`", entry.key), report)?;
    let transport = transport(&mut fields, around, report);
    let root = root(&mut fields, transport.as_ref(), around, report);
    let mut upstream = UpstreamConfig::new(
        &*entry.key,
        transport.clone().unwrap_or(Transport::Command(Vec::new())),
        root.clone().unwrap_or_default(),
    );
    let filesystem = fields.optional("filesystem");
    let kinds = [("shared", FileSystem::Shared), ("remote", FileSystem::Remote), ("none", FileSystem::None)];
    set(&mut upstream.filesystem, filesystem.and_then(|node| node.choice(&kinds, report)));
    if let Some(node) = fields.optional("cwd") {
        set(&mut upstream.cwd, around.path(node, report));
    }
    if upstream.filesystem == FileSystem::Shared {
        for (name, path) in [("root", &upstream.root), ("cwd", &upstream.cwd)] {
            if let Some(node) = fields.optional(name).filter(|_| path.is_absolute()) {
                check_folder(path, node.at, report);
            }
        }
    }
    let systems = [("linux", Os::Linux), ("macos", Os::Macos), ("windows", Os::Windows)];
    set(&mut upstream.os, fields.optional("os").and_then(|node| node.choice(&systems, report)));
    set(&mut upstream.case_insensitive, fields.optional("case_insensitive").and_then(|node| node.boolean(report)));
    if let Some(node) = fields.optional("path_map") {
        upstream.path_map = path_map(node, around, report);
    }
    for node in fields.optional("expands").and_then(|node| node.one_or_more(report)).unwrap_or_default() {
        match node.choice(&[("tilde", true), ("env", false)], report) {
            Some(true) => upstream.expands_tilde = true,
            Some(false) => upstream.expands_env = true,
            None => {}
        }
    }
    if let Some(node) = fields.optional("forward_paths") {
        set(
            &mut upstream.forward_paths,
            node.choice(&[("as_sent", ForwardPaths::AsSent), ("canonical", ForwardPaths::Canonical)], report),
        );
        if upstream.forward_paths == ForwardPaths::Canonical && upstream.filesystem != FileSystem::Shared {
            report
                .error(node.at, "without a shared file system there is no canonical path")
                .help("write `forward_paths: as_sent`");
        }
    }
    set(
        &mut upstream.hard_links_ask,
        fields.optional("hard_links").and_then(|node| node.choice(&[("ask", true), ("ignore", false)], report)),
    );
    if let Some(node) = fields.optional("catalogue") {
        if matches!(transport, Some(Transport::Workspace)) {
            report.error(node.at, "the workspace brings its own catalogue").help("leave it out");
        } else {
            set(&mut upstream.catalogue, catalogue::catalogue(node, report));
        }
    }
    let disconnects = [("auto", OnDisconnect::Auto), ("cancel", OnDisconnect::Cancel), ("keep", OnDisconnect::Keep)];
    set(
        &mut upstream.on_disconnect,
        fields.optional("on_disconnect").and_then(|node| node.choice(&disconnects, report)),
    );
    set(&mut upstream.timeout, fields.optional("timeout").and_then(|node| node.duration(report)));
    if let Some(node) = fields.optional("timeouts") {
        upstream.timeouts = timeouts(node, report);
    }
    let answers = [("ask", NewTools::Ask), ("deny", NewTools::Deny), ("accept", NewTools::Accept)];
    set(&mut upstream.new_tools, fields.optional("new_tools").and_then(|node| node.choice(&answers, report)));
    if let Some(dialect) = fields.optional("dialect").and_then(|node| node.choice(&Dialect::ALL, report)) {
        upstream.catalogue.tools.values_mut().for_each(|tool| tool.dialect = Some(dialect));
    }
    if matches!(transport, Some(Transport::Workspace)) && upstream.cwd != upstream.root {
        report.error(fields.at, "the workspace starts at its root").help("leave `cwd` out");
    }
    if matches!(transport, Some(Transport::Workspace)) && upstream.filesystem != FileSystem::Shared {
        let at = filesystem.map_or(fields.at, |node| node.at);
        report.error(at, "the workspace works on this machine's files").help("leave `filesystem` out");
    }
    fields.finish(report);
    (transport.is_some() && root.is_some()).then_some(upstream)
}

fn check_id(entry: &Entry, report: &mut Report) {
    if &*entry.key == RESERVED_UPSTREAM {
        report
            .error(entry.at, format!("`{RESERVED_UPSTREAM}` is reserved for the gateway's own tools"))
            .help("choose another id");
    } else if !is_upstream_id(&entry.key) {
        report
            .error(entry.at, format!("`{}` is no id of an upstream", entry.key))
            .help("use 1 to 32 lower-case letters, digits and hyphens");
    }
}

fn transport(fields: &mut Fields<'_>, around: &Surroundings<'_>, report: &mut Report) -> Option<Transport> {
    let (command, url, workspace) = (fields.optional("command"), fields.optional("url"), fields.optional("workspace"));
    let headers = fields.optional("headers");
    if [command, url, workspace].iter().flatten().count() != 1 {
        report
            .error(fields.at, "an upstream is reached in exactly one way")
            .help("give one of `command: [PROGRAM, ARGUMENT, …]`, `url: https://…` and `workspace: true`");
    }
    if let (Some(node), None) = (headers, url) {
        report.error(node.at, "`headers` go with a `url` only");
    }
    let workspace = workspace.map(|node| match node.boolean(report) {
        Some(true) => Some(Transport::Workspace),
        Some(false) => {
            report.error(node.at, "`workspace: false` says nothing").help("leave it out");
            None
        }
        None => None,
    });
    let url = url.map(|node| {
        let headers = headers.map(|node| read_headers(node, around, report)).unwrap_or_default();
        Some(Transport::Url { url: web_address(node, report)?.into(), headers })
    });
    let command = command.map(|node| read_command(node, around, report).map(Transport::Command));
    command.or(url).or(workspace).flatten()
}

fn read_command(node: &Node, around: &Surroundings<'_>, report: &mut Report) -> Option<Vec<String>> {
    if node.scalar().is_some() {
        report
            .error(node.at, "a command is a list of words")
            .help("write `command: [PROGRAM, ARGUMENT, …]`; no shell reads it");
        return None;
    }
    let nodes = node.one_or_more(report)?;
    let mut words: Vec<String> = nodes.iter().filter_map(|node| node.verbatim(report).map(str::to_owned)).collect();
    if let Some(word) = words.iter().position(|word| word.contains('\0')).and_then(|i| nodes.get(i)) {
        report.error(word.at, "a word of a command cannot hold U+0000");
        return None;
    }
    let (program, at) = (words.first_mut()?, nodes.first()?.at);
    if program.is_empty() {
        report.error(at, "the program has no name");
        return None;
    }
    // A program given as a path starts at the file's folder, like every path here; a bare name is looked up in PATH.
    if program.contains('/') && !Path::new(program.as_str()).is_absolute() {
        *program = around.path(nodes.first()?, report)?.to_str()?.to_owned();
    }
    (words.len() == nodes.len()).then_some(words)
}

fn read_headers(node: &Node, around: &Surroundings<'_>, report: &mut Report) -> Vec<(String, Secret)> {
    let mut headers: Vec<(String, Secret)> = Vec::new();
    for entry in node.mapping(report).unwrap_or_default() {
        let value = around.secret(&entry.value, report);
        let name = entry.key.to_ascii_lowercase();
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            report.error(entry.at, format!("`{}` is no name of a header", entry.key));
        } else if OWN_HEADERS.contains(&&*name) || name.starts_with("mcp-") {
            report.error(entry.at, format!("`{}` is set by the gateway itself", entry.key)).help("leave it out");
        } else if headers.iter().any(|(other, _)| *other == name) {
            report
                .error(entry.at, format!("`{}` is given twice", entry.key))
                .help("names of headers do not differ by case");
        } else if let Some(value) = value {
            if HeaderValue::from_str(value.expose()).is_err() {
                report
                    .error(entry.value.at, "this value cannot stand in a header")
                    .help("remove line ends and control characters");
            }
            headers.push((name, value));
        }
    }
    headers
}

/// The root: as given, else the file's folder; the workspace's must be given.
fn root(
    fields: &mut Fields<'_>,
    transport: Option<&Transport>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<PathBuf> {
    match fields.optional("root") {
        Some(node) => around.path(node, report),
        None if matches!(transport, Some(Transport::Workspace)) => {
            report
                .error(fields.at, "the workspace has no `root`")
                .help("name the folder that the workspace serves, such as `root: ./work`");
            None
        }
        None => Some(around.folder.clone()),
    }
}

/// Names of tools, or globs, with how long their calls may take; in the order of the file.
fn timeouts(node: &Node, report: &mut Report) -> Vec<(NamePattern, Duration)> {
    let mut found = Vec::new();
    for entry in node.mapping(report).unwrap_or_default() {
        let names = NamePattern::parse(&entry.key);
        if let Err(error) = &names {
            report
                .error(entry.at, format!("`{}` names no tool: {}", entry.key, error.what))
                .help("write a tool's name, or a glob");
        }
        if let (Ok(names), Some(within)) = (names, entry.value.duration(report)) {
            found.push((names, within));
        }
    }
    found
}

fn path_map(node: &Node, around: &Surroundings<'_>, report: &mut Report) -> Vec<(String, PathBuf)> {
    let mut map = Vec::new();
    for entry in node.mapping(report).unwrap_or_default() {
        if !entry.key.starts_with('/') {
            report
                .error(entry.at, format!("`{}` is not absolute", entry.key))
                .help("write the upstream's path from `/` on");
        }
        if let Some(ours) = around.path(&entry.value, report) {
            map.push((entry.key.to_string(), ours));
        }
    }
    // The longest first: it is the closest.
    map.sort_by_key(|(theirs, _)| std::cmp::Reverse(theirs.len()));
    map
}

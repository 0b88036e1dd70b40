//! `portcullis.yaml` → [`Config`], all errors at once.

mod catalogue;
mod notify;
mod people;
#[cfg(test)]
mod tests;
mod upstream;
mod values;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::yaml::{self, Fields, Mark, Node, Report};
use super::{ApprovalsConfig, AuditConfig, BUILT_IN_GUARDRAILS, Config, Listen, PolicyConfig, UpstreamConfig};
use crate::diagnostic::{Diagnostic, did_you_mean};
use values::Surroundings;

/// Reads and checks a configuration file. Paths in it start at its folder.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file.
pub fn load(file: &Path) -> Result<Config, Vec<Diagnostic>> {
    load_with(file, &|name| std::env::var(name).ok())
}

/// [`load`] with another environment than the process's.
fn load_with(file: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Config, Vec<Diagnostic>> {
    let name = file.display().to_string();
    let read = std::path::absolute(file).and_then(|absolute| Ok((std::fs::read(&absolute)?, absolute)));
    let (bytes, absolute) = read.map_err(|error| {
        let mut report = Report::new(&name, "");
        report.error(Mark::FILE, format!("cannot be read: {error}"));
        if error.kind() == std::io::ErrorKind::NotFound {
            report.help("`portcullis init` writes one, `--config FILE` names another");
        }
        report.into_diagnostics()
    })?;
    let (mut report, root) = yaml::read(&name, &bytes);
    let folder = absolute.parent().unwrap_or(Path::new("/")).to_owned();
    let around = Surroundings { folder, environment };
    let config = root.and_then(|root| file_fields(&root, absolute, &around, &mut report));
    match config {
        Some(config) if !report.has_errors() => Ok(config),
        _ => Err(report.into_diagnostics()),
    }
}

/// What the `policy:` section of a file that [`load`] refuses still says: the globs and names that can be read. None where
/// it names no files.
pub fn policy_of(file: &Path) -> Option<PolicyConfig> {
    let absolute = std::path::absolute(file).ok()?;
    let bytes = std::fs::read(&absolute).ok()?;
    let (mut unheard, root) = yaml::read("", &bytes);
    let around = Surroundings { folder: absolute.parent()?.to_owned(), environment: &|_| None };
    let root = root?;
    let node = Fields::new(&root, "", &mut unheard)?.optional("policy")?;
    let mut found = policy(node, &around, &mut unheard)?;
    found.disable.retain(|name| BUILT_IN_GUARDRAILS.contains(&name.as_str()));
    (!found.files.is_empty()).then_some(found)
}

fn file_fields(root: &Node, file: PathBuf, around: &Surroundings<'_>, report: &mut Report) -> Option<Config> {
    let mut fields = Fields::new(root, "portcullis.yaml", report)?;
    let (mcp, admin, public_url) = listen(fields.optional("listen"), report);
    let state_dir = match fields.optional("state_dir") {
        Some(node) => around.path(node, report),
        None => around.default_state_dir(root.at, report),
    };
    if let Some(node) = fields.optional("store") {
        store(node, report);
    }
    let policy = fields.required("policy", report).and_then(|node| policy(node, around, report));
    let mut upstreams = upstreams(fields.required("upstreams", report), around, report);
    if fields.optional("clarifications").and_then(|node| node.boolean(report)) == Some(true) {
        let own = UpstreamConfig::own(around.folder.clone());
        upstreams.insert(own.id.clone(), own);
    }
    let catalogues = upstreams.iter().map(|(id, upstream)| (id.clone(), upstream.catalogue.clone())).collect();
    let agents = people::agents(fields.optional("agents"), around, report);
    let approvers = people::approvers(fields.optional("approvers"), report);
    people::refuse_shared_tokens(&agents, &approvers, report);
    let approvals = fields.optional("approvals").and_then(|node| approvals(node, report)).unwrap_or_default();
    let notify = notify::channels(fields.optional("notify"), around, report);
    let audit = fields.optional("audit").and_then(|node| audit(node, report)).unwrap_or_default();
    fields.finish(report);
    Some(Config {
        file: Some(file),
        mcp,
        admin,
        public_url,
        state_dir: state_dir?,
        policy: PolicyConfig { catalogues, ..policy? },
        upstreams,
        agents: agents.into_iter().map(|person| person.config).collect(),
        approvers: approvers.into_iter().map(|person| person.config).collect(),
        approvals,
        notify,
        audit,
    })
}

fn listen(node: Option<&Node>, report: &mut Report) -> (Listen, Listen, Option<String>) {
    let (mut mcp, mut admin, mut public_url) = (Listen::mcp(), Listen::admin(), None);
    let Some(mut fields) = node.and_then(|node| Fields::new(node, "listen", report)) else {
        return (mcp, admin, public_url);
    };
    if let Some(mut of) = fields.optional("mcp").and_then(|node| Fields::new(node, "listen.mcp", report)) {
        set(&mut mcp.address, of.optional("address").and_then(|node| address(node, report)));
        let bytes = of.optional("max_body").and_then(|node| node.bytes(report));
        set(&mut mcp.max_body, bytes.and_then(|bytes| usize::try_from(bytes).ok()));
        of.finish(report);
    }
    if let Some(mut of) = fields.optional("admin").and_then(|node| Fields::new(node, "listen.admin", report)) {
        set(&mut admin.address, of.optional("address").and_then(|node| address(node, report)));
        let url = of.optional("public_url").and_then(|node| values::web_address(node, report));
        public_url = url.map(|url| url.as_str().trim_end_matches('/').to_owned());
        of.finish(report);
    }
    if mcp.address == admin.address && mcp.address.port() != 0 {
        report
            .error(fields.at, format!("agents and approvers would meet at {}", mcp.address))
            .help("give `admin` another port than `mcp`");
    }
    fields.finish(report);
    (mcp, admin, public_url)
}

fn address(node: &Node, report: &mut Report) -> Option<SocketAddr> {
    let text = node.text(report)?;
    let address = text.parse().ok();
    if address.is_none() {
        report
            .error(node.at, format!("`{text}` is no address to listen at"))
            .help("write an IP address and a port, such as 127.0.0.1:7070; port 0 takes a free one");
    }
    address
}

fn store(node: &Node, report: &mut Report) {
    match node.verbatim(report) {
        None | Some("sqlite") => {}
        Some(text) if text.starts_with("postgres") => {
            report.error(node.at, "a Postgres store is not built yet").help("write `store: sqlite`, or leave it out");
        }
        Some(_) => {
            report.error(node.at, "this is no store").help("write `store: sqlite`, or leave it out");
        }
    }
}

fn policy(node: &Node, around: &Surroundings<'_>, report: &mut Report) -> Option<PolicyConfig> {
    let mut fields = Fields::new(node, "policy", report)?;
    let files = fields.required("files", report).and_then(|node| node.one_or_more(report)).unwrap_or_default();
    let files = files.iter().filter_map(|node| around.glob(node, report)).collect();
    let names = |node: &Node, report: &mut Report| {
        node.texts(report).unwrap_or_default().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let require = fields.optional("require").map(|node| names(node, report)).unwrap_or_default();
    let disable = fields.optional("disable").map(|node| names(node, report)).unwrap_or_default();
    if let Some(entry) = fields.entry("disable") {
        for name in disable.iter().filter(|name| !BUILT_IN_GUARDRAILS.contains(&name.as_str())) {
            let near = did_you_mean(name, BUILT_IN_GUARDRAILS);
            let help = near.map_or_else(
                || format!("they are {}", BUILT_IN_GUARDRAILS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            report.error(entry.value.at, format!("`{name}` is no built-in guardrail")).help(&*help);
        }
    }
    fields.finish(report);
    Some(PolicyConfig { files, require, disable, ..PolicyConfig::default() })
}

fn upstreams(node: Option<&Node>, around: &Surroundings<'_>, report: &mut Report) -> BTreeMap<String, UpstreamConfig> {
    let mut upstreams = BTreeMap::new();
    let Some(node) = node else { return upstreams };
    for entry in node.mapping(report).unwrap_or_default() {
        if let Some(upstream) = upstream::upstream(entry, around, report) {
            upstreams.insert(upstream.id.clone(), upstream);
        }
    }
    upstreams
}

fn approvals(node: &Node, report: &mut Report) -> Option<ApprovalsConfig> {
    let mut fields = Fields::new(node, "approvals", report)?;
    let mut approvals = ApprovalsConfig::default();
    for (name, span) in [
        ("hold_for", &mut approvals.hold_for),
        ("expires", &mut approvals.expires),
        ("hold_grace", &mut approvals.hold_grace),
        ("result_ttl", &mut approvals.result_ttl),
        ("grant_ttl", &mut approvals.grant_ttl),
    ] {
        set(span, fields.optional(name).and_then(|node| node.duration(report)));
    }
    if let Some(node) = fields.optional("max_waiting") {
        let number = node.integer(report).and_then(|n| usize::try_from(n).ok());
        if number == Some(0) {
            report.error(node.at, "no call could ever wait for an approval").help("write at least 1");
        }
        set(&mut approvals.max_waiting, number);
    }
    set(
        &mut approvals.allow_self,
        fields.optional("allow_self").and_then(|node| node.choice(&people::ALLOW_SELF, report)),
    );
    fields.finish(report);
    Some(approvals)
}

fn audit(node: &Node, report: &mut Report) -> Option<AuditConfig> {
    let mut fields = Fields::new(node, "audit", report)?;
    let mut audit = AuditConfig::default();
    let sync = fields.optional("sync").and_then(|node| node.choice(&[("batch", false), ("always", true)], report));
    set(&mut audit.sync_always, sync);
    let arguments =
        fields.optional("arguments").and_then(|node| node.choice(&[("redacted", true), ("none", false)], report));
    set(&mut audit.arguments, arguments);
    set(&mut audit.stdout, fields.optional("stdout").and_then(|node| node.boolean(report)));
    set(&mut audit.rotate, fields.optional("rotate").and_then(|node| node.bytes(report)));
    set(&mut audit.keep, fields.optional("keep").and_then(|node| node.duration(report)));
    fields.finish(report);
    Some(audit)
}

/// Takes what was read; what was not read stays the default, and is in the report if it was there.
fn set<T>(place: &mut T, read: Option<T>) {
    if let Some(read) = read {
        *place = read;
    }
}

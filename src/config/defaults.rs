//! What holds where nothing is said, and settings made without a file.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use url::{Host, Url};

use super::{
    AllowSelf, ApprovalsConfig, AuditConfig, Channel, ClaimKey, Config, FileSystem, ForwardPaths, Listen, NewTools,
    OnDisconnect, Os, PolicyConfig, RESERVED_UPSTREAM, Transport, UpstreamConfig,
};
use crate::catalog::{Argument, Catalogue, Tool};
use crate::clock::Timestamp;
use crate::secret::{Redaction, Secret};

impl Config {
    /// Settings without a file, for `wrap` and `demo`: loopback listeners, one local agent, everything else as where
    /// `portcullis.yaml` says nothing.
    pub fn minimal(state_dir: PathBuf, policy: PolicyConfig, upstreams: Vec<UpstreamConfig>) -> Self {
        Self {
            file: None,
            mcp: Listen::mcp(),
            admin: Listen::admin(),
            public_url: None,
            state_dir,
            policy,
            upstreams: upstreams
                .into_iter()
                .map(|upstream| (upstream.id.clone(), upstream))
                .collect::<BTreeMap<_, _>>(),
            agents: Vec::new(),
            approvers: Vec::new(),
            approvals: ApprovalsConfig::default(),
            notify: Vec::new(),
            audit: AuditConfig::default(),
        }
    }

    /// The redaction that hides the values of all configured headers, whole and without their scheme, the secrets of
    /// claims, and those of the channels by which people are told.
    pub fn redaction(&self) -> Redaction {
        let headers = self.upstreams.values().flat_map(|upstream| match &upstream.transport {
            Transport::Url { headers, .. } => headers.as_slice(),
            Transport::Command(_) | Transport::Workspace | Transport::Own => &[],
        });
        let values = headers.flat_map(|(_, value)| {
            let bare = value.expose().split_once(' ').map(|(_, bare)| Secret::new(bare.trim()));
            std::iter::once(value.clone()).chain(bare)
        });
        let claims = self.agents.iter().filter_map(|agent| match &agent.claims {
            Some(ClaimKey::Secret(secret)) => Some(secret.clone()),
            Some(ClaimKey::Ed25519(_)) | None => None,
        });
        let channels = self.notify.iter().flat_map(Channel::secrets);
        Redaction::new(values.chain(claims).chain(channels).collect())
    }
}

impl Config {
    /// Whether agents may ask their people questions, as far as their group's policy lets them.
    pub fn has_clarifications(&self) -> bool {
        self.upstreams.contains_key(RESERVED_UPSTREAM)
    }
}

impl UpstreamConfig {
    /// The gateway's own tools.
    pub fn own(folder: PathBuf) -> Self {
        Self {
            filesystem: FileSystem::None,
            new_tools: NewTools::Accept,
            catalogue: own_catalogue(),
            ..Self::new(RESERVED_UPSTREAM, Transport::Own, folder)
        }
    }

    /// An upstream of which nothing more is known. A URL of another machine does not share our files; the workspace
    /// is sent the canonical paths that were judged, and brings its own catalogue.
    pub fn new(id: impl Into<String>, transport: Transport, root: PathBuf) -> Self {
        let workspace = matches!(transport, Transport::Workspace);
        let elsewhere = matches!(&transport, Transport::Url { url, .. } if !is_here(url));
        let catalogue = if workspace { Catalogue::builtin("workspace").cloned() } else { None };
        Self {
            id: id.into(),
            transport,
            cwd: root.clone(),
            root,
            filesystem: if elsewhere { FileSystem::Remote } else { FileSystem::Shared },
            os: Os::default(),
            case_insensitive: false,
            path_map: Vec::new(),
            expands_tilde: false,
            expands_env: false,
            forward_paths: if workspace { ForwardPaths::Canonical } else { ForwardPaths::AsSent },
            hard_links_ask: true,
            catalogue: catalogue.unwrap_or_default(),
            on_disconnect: OnDisconnect::default(),
            new_tools: NewTools::default(),
            accept_first_list: false,
            timeout: Duration::from_secs(120),
            timeouts: Vec::new(),
        }
    }
}

/// What a question is made of names nothing.
fn own_catalogue() -> Catalogue {
    let texts =
        ["/question", "/choices/*"].into_iter().filter_map(|pointer| Some((pointer.parse().ok()?, Argument::Text)));
    let tool = Tool { category: Some("other".to_owned()), arguments: texts.collect(), ..Tool::default() };
    Catalogue { tools: BTreeMap::from([("ask_user_clarification".to_owned(), tool)]) }
}

impl Listen {
    /// Where agents come in.
    pub const fn mcp() -> Self {
        Self { address: SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7070), max_body: 4 << 20 }
    }

    /// Where approvers come in.
    pub const fn admin() -> Self {
        Self { address: SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7071), max_body: 4 << 20 }
    }
}

impl Default for ApprovalsConfig {
    fn default() -> Self {
        Self {
            hold_for: Duration::from_secs(50),
            expires: Duration::from_secs(15 * 60),
            hold_grace: Duration::from_secs(120),
            result_ttl: Duration::from_secs(600),
            grant_ttl: Duration::from_secs(900),
            max_waiting: 20,
            allow_self: AllowSelf::Single,
        }
    }
}

impl Default for AuditConfig {
    fn default() -> Self {
        Self {
            sync_always: false,
            arguments: true,
            stdout: false,
            rotate: 256 << 20,
            keep: Duration::from_secs(90 * 86_400),
        }
    }
}

/// Whether a text can be an upstream's id: 1 to 32 of `a-z`, `0-9` and `-`. Says nothing of the reserved one.
pub fn is_upstream_id(text: &str) -> bool {
    (1..=32).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// Whether a text can be the name of an agent or an approver: 1 to 64 letters, digits and `. _ @ + -`.
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._@+-".contains(c);
    (1..=64).contains(&text.chars().count()) && text.chars().all(plain)
}

/// When a token stops being good: the beginning of a day in UTC (`2027-01-01`), or an RFC 3339 moment.
pub fn expiry(text: &str) -> Option<Timestamp> {
    let moment: jiff::Timestamp = if text.len() == "2027-01-01".len() {
        text.parse::<jiff::civil::Date>().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp()
    } else {
        text.parse().ok()?
    };
    Some(Timestamp::from_millis(moment.as_millisecond()))
}

/// Where state is kept unless `state_dir` says otherwise: `$XDG_STATE_HOME/portcullis`, else
/// `~/.local/state/portcullis` (XDG Base Directory Specification, which has relative values ignored).
pub fn default_state_dir(environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name, below: &str| {
        let base = PathBuf::from(environment(name)?);
        base.is_absolute().then(|| base.join(below))
    };
    absolute("XDG_STATE_HOME", "portcullis").or_else(|| absolute("HOME", ".local/state/portcullis"))
}

/// Whether a URL leads to this machine.
fn is_here(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

//! `portcullis.yaml`: raw text → checked settings, all errors at once.

mod defaults;
mod load;
mod notify;
pub mod yaml;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::catalog::Catalogue;
use crate::clock::Timestamp;
use crate::record::{Depth, Source};
use crate::secret::{Secret, TokenHash};

pub use defaults::{default_state_dir, expiry, is_name, is_upstream_id};
pub use load::{load, policy_of};
pub use notify::{Channel, Chat, Means, Template};

/// The id of the gateway's own tools, which no configured upstream may take.
pub const RESERVED_UPSTREAM: &str = "portcullis";

/// The guardrails that are on unless `policy.disable` names them.
pub const BUILT_IN_GUARDRAILS: [&str; 4] = ["secrets", "kernel-paths", "own-files", "runs-later"];

/// Everything the gateway is told. Paths are absolute.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file it came from, if it came from one.
    pub file: Option<PathBuf>,
    /// Where the MCP listener binds.
    pub mcp: Listen,
    /// Where the admin listener binds.
    pub admin: Listen,
    /// How approvers reach the admin side, if not by its address.
    pub public_url: Option<String>,
    /// Store, audit, tokens; mode 0700.
    pub state_dir: PathBuf,
    /// Policy files.
    pub policy: PolicyConfig,
    /// By id.
    pub upstreams: BTreeMap<String, UpstreamConfig>,
    /// Who may call; empty: loopback clients are agent `local` of group `default`.
    pub agents: Vec<AgentConfig>,
    /// Who may decide; empty: the first start makes one.
    pub approvers: Vec<ApproverConfig>,
    /// Holding.
    pub approvals: ApprovalsConfig,
    /// Who is told of held calls.
    pub notify: Vec<Channel>,
    /// The audit log.
    pub audit: AuditConfig,
}

/// A listener.
#[derive(Clone, Debug)]
pub struct Listen {
    /// Address and port; port 0 takes a free one.
    pub address: SocketAddr,
    /// Largest body in bytes.
    pub max_body: usize,
}

/// Where the policy is.
#[derive(Clone, Debug, Default)]
pub struct PolicyConfig {
    /// Globs, absolute; `*.test.yaml` is never one.
    pub files: Vec<String>,
    /// Guardrails and groups without which no policy loads.
    pub require: Vec<String>,
    /// Built-in guardrails that are switched off.
    pub disable: Vec<String>,
    /// What the configured upstreams' tools take, by upstream: examples and tests are read with them.
    pub catalogues: BTreeMap<String, Catalogue>,
}

/// How an upstream is reached.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A child process: program and arguments.
    Command(Vec<String>),
    /// Streamable HTTP.
    Url {
        /// The endpoint.
        url: String,
        /// Headers added to each request.
        headers: Vec<(String, Secret)>,
    },
    /// The built-in workspace (`workspace: true`).
    Workspace,
    /// The gateway's own tools (`clarifications: true`).
    Own,
}

/// What the gateway knows of the upstream's file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum FileSystem {
    /// Resolved here.
    #[default]
    Shared,
    /// Lexical only, with an ask floor for links.
    Remote,
    /// Paths are names.
    None,
}

/// Which spellings are aliases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Os {
    /// Linux.
    #[default]
    Linux,
    /// macOS.
    Macos,
    /// Windows.
    Windows,
}

/// What reaches the upstream as a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ForwardPaths {
    /// The text as it was sent.
    #[default]
    AsSent,
    /// The canonical path that was judged.
    Canonical,
}

/// What a disconnect of the client means for its calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnDisconnect {
    /// Cancel for modern streams, keep for legacy and handed-off ones.
    #[default]
    Auto,
    /// Cancel.
    Cancel,
    /// Keep.
    Keep,
}

/// What becomes of calls of a tool that no operator has accepted as it is defined now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NewTools {
    /// A human is asked each time.
    #[default]
    Ask,
    /// Refused.
    Deny,
    /// Whatever the upstream offers is accepted.
    Accept,
}

/// One upstream.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// `[a-z0-9-]{1,32}`.
    pub id: String,
    /// How it is reached.
    pub transport: Transport,
    /// Where policy paths are anchored.
    pub root: PathBuf,
    /// Where relative paths start.
    pub cwd: PathBuf,
    /// Whether its files are ours.
    pub filesystem: FileSystem,
    /// Its operating system.
    pub os: Os,
    /// Whether it folds case.
    pub case_insensitive: bool,
    /// Its view of a path → ours.
    pub path_map: Vec<(String, PathBuf)>,
    /// `tilde`, `env`.
    pub expands_tilde: bool,
    /// `env` among `expands`.
    pub expands_env: bool,
    /// What it is sent as a path.
    pub forward_paths: ForwardPaths,
    /// Whether a second hard link is an ask floor.
    pub hard_links_ask: bool,
    /// What its tools' arguments are.
    pub catalogue: crate::catalog::Catalogue,
    /// What a disconnect means.
    pub on_disconnect: OnDisconnect,
    /// What a tool is that nobody has accepted.
    pub new_tools: NewTools,
    /// Whether the first list ever seen of it counts as accepted: it was named on a command line (`wrap`), never in a
    /// file.
    pub accept_first_list: bool,
    /// How long one call may take.
    pub timeout: Duration,
    /// How long calls of some tools may take instead: the first that fits.
    pub timeouts: Vec<(crate::pattern::NamePattern, Duration)>,
}

impl UpstreamConfig {
    /// How long a call may take: of a tool, or of any other method.
    pub fn within(&self, tool: Option<&str>) -> Duration {
        let own = tool
            .and_then(|tool| self.timeouts.iter().find(|(names, _)| names.matches(tool, crate::pattern::Side::Exact)));
        own.map_or(self.timeout, |(_, within)| *within)
    }
}

/// One agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Its name.
    pub name: String,
    /// Its policy group.
    pub group: String,
    /// The person it belongs to.
    pub owner: Option<String>,
    /// Its credentials.
    pub tokens: Vec<TokenConfig>,
    /// Whether a person is present.
    pub source: Source,
    /// Root or sub.
    pub depth: Depth,
    /// With what its signed claims are checked; none: it makes none.
    pub claims: Option<ClaimKey>,
}

/// The one key, and so the one algorithm, of an agent's signed claims.
#[derive(Clone, Debug)]
pub enum ClaimKey {
    /// Shared, at least 32 bytes; HS256.
    Secret(Secret),
    /// Public; Ed25519.
    Ed25519([u8; 32]),
}

/// One approver.
#[derive(Clone, Debug)]
pub struct ApproverConfig {
    /// Their name.
    pub name: String,
    /// viewer, approver, operator, auditor.
    pub roles: Vec<Role>,
    /// Groups they decide for; empty: none. `*`: all.
    pub groups: Vec<String>,
    /// Teams they belong to.
    pub teams: Vec<String>,
    /// Their credentials.
    pub tokens: Vec<TokenConfig>,
}

/// What an approver may do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees.
    Viewer,
    /// Decides for their groups.
    Approver,
    /// Reloads and cancels.
    Operator,
    /// Reads the audit.
    Auditor,
}

/// A stored credential: never the token, only its hash.
#[derive(Clone, Debug)]
pub struct TokenConfig {
    /// SHA-256 of the token.
    pub hash: TokenHash,
    /// When it stops being good.
    pub expires: Option<Timestamp>,
}

/// Who may decide their own agent's calls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AllowSelf {
    /// Never.
    Never,
    /// Only where they are the only approver.
    #[default]
    Single,
    /// Always.
    Always,
}

/// Holding.
#[derive(Clone, Debug)]
pub struct ApprovalsConfig {
    /// How long a stream is held before the hand-off.
    pub hold_for: Duration,
    /// When an undecided approval ends.
    pub expires: Duration,
    /// How long an approved call waits for its client.
    pub hold_grace: Duration,
    /// How long a result nobody was attached for is kept.
    pub result_ttl: Duration,
    /// How long a grant lasts at most.
    pub grant_ttl: Duration,
    /// Waiting calls per agent; over it `rate_limit`.
    pub max_waiting: usize,
    /// Whether owners may decide their own agent's calls.
    pub allow_self: AllowSelf,
}

/// The audit log.
#[derive(Clone, Debug)]
pub struct AuditConfig {
    /// fsync each line (`always`) or in batches (`batch`).
    pub sync_always: bool,
    /// Whether arguments are written, redacted.
    pub arguments: bool,
    /// Also to standard output.
    pub stdout: bool,
    /// Bytes after which a new file is begun.
    pub rotate: u64,
    /// How long old files are kept.
    pub keep: Duration,
}

//! `portcullis stdio` and `portcullis wrap`: one upstream for one client, over standard input and output.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::client::CONFIG_FILE;
use super::exit::Exit;
use super::say;
use super::serve::{failed, tell_inbox};
use crate::clock::Clock;
use crate::config::{self, Config, RESERVED_UPSTREAM, Transport};
use crate::identity::Refused;
use crate::listen;
use crate::serve::{self, Doors, Gateway, StartError};
use crate::upstream::find_program;

/// Offer one configured upstream to an MCP client that starts this command
#[derive(Args, Debug)]
pub struct Stdio {
    /// The gateway's configuration
    #[arg(long, value_name = "FILE", default_value = CONFIG_FILE)]
    config: PathBuf,
    /// Which upstream; needed where there are several
    #[arg(long, value_name = "ID")]
    upstream: Option<String>,
    /// The agent whose rules hold; needed where agents are configured
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

/// Stand in front of a stdio MCP server: put this command in front of its own in a client's settings
///
/// An agent that runs as the same operating-system user can approve its own calls: `wrap` alone is advisory.
#[derive(Args, Debug)]
pub struct Wrap {
    /// The gateway's configuration [default: portcullis.yaml, if there is one; else the built-in base policy holds]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Take the settings of this entry of `upstreams` (its command is replaced)
    #[arg(long = "as", value_name = "ID")]
    entry: Option<String>,
    /// Where relative paths start and policy paths are anchored [default: the working directory]. The server is started
    /// there; an argument of its command that is this same text is passed on as the absolute path
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The catalogue entry that says what the tools' arguments are
    #[arg(long, value_name = "NAME")]
    catalogue: Option<String>,
    /// The agent whose rules hold; needed where agents are configured
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The server's command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Stdio {
    /// Serves until the client closes standard input.
    pub async fn run(self) -> Exit {
        let config = match config::load(&self.config) {
            Ok(config) => config,
            Err(findings) => return failed(&StartError::Invalid(findings)),
        };
        let upstream = match (
            self.upstream,
            config.upstreams.keys().filter(|id| *id != RESERVED_UPSTREAM).collect::<Vec<_>>().as_slice(),
        ) {
            (Some(id), _) => id,
            (None, [only]) => (*only).clone(),
            (None, several) => {
                say::tell(format_args!("there are {} upstreams; name one with --upstream ID", several.len()));
                return Exit::Usage;
            }
        };
        if !config.upstreams.contains_key(&upstream) {
            say::tell(format_args!("there is no upstream `{upstream}` in {}", self.config.display()));
            return Exit::Usage;
        }
        run(config, &upstream, self.agent.as_deref()).await
    }
}

impl Wrap {
    /// Serves until the client closes standard input.
    pub async fn run(self) -> Exit {
        let config = match self.configured() {
            Ok(config) => config,
            Err(error) => return failed(&error),
        };
        let (config, upstream) = match self.upstream(config) {
            Ok(both) => both,
            Err(what) => {
                say::tell(what);
                return Exit::Usage;
            }
        };
        run(config, &upstream, self.agent.as_deref()).await
    }

    fn configured(&self) -> Result<Config, StartError> {
        let here = PathBuf::from(CONFIG_FILE);
        match &self.config {
            Some(file) => config::load(file).map_err(StartError::Invalid),
            None if here.is_file() => config::load(&here).map_err(StartError::Invalid),
            None => super::bare_config(),
        }
    }

    fn upstream(&self, mut config: Config) -> Result<(Config, String), String> {
        let here = std::env::current_dir().map_err(|error| format!("the working directory: {error}"))?;
        let mut upstream = match &self.entry {
            Some(id) => match config.upstreams.get(id) {
                Some(entry) => entry.clone(),
                None => return Err(format!("there is no entry `{id}` in `upstreams`")),
            },
            None => config::UpstreamConfig::new("wrapped", Transport::Command(Vec::new()), here.clone()),
        };
        let mut command = self.command.clone();
        if let Some(sent) = &self.root {
            let root = here.join(sent);
            let root = root.canonicalize().map_err(|error| format!("--root {}: {error}", root.display()))?;
            let same = command.iter_mut().skip(1).filter(|argument| Path::new(argument) == sent);
            same.for_each(|argument| *argument = root.display().to_string());
            upstream.cwd.clone_from(&root);
            upstream.root = root;
        }
        if self.entry.is_none() {
            upstream.id = id_of(&command, &upstream.root);
        }
        upstream.transport = Transport::Command(command);
        upstream.accept_first_list = true;
        if let Some(name) = &self.catalogue {
            upstream.catalogue = crate::catalog::Catalogue::builtin(name).cloned().ok_or_else(|| {
                format!(
                    "there is no catalogue `{name}`; there are {}",
                    crate::catalog::Catalogue::builtin_names().join(", ")
                )
            })?;
        }
        let id = upstream.id.clone();
        config.upstreams.clear();
        config.upstreams.insert(id.clone(), upstream);
        Ok((config, id))
    }
}

/// An id of the very server: what was accepted of one that was wrapped says nothing of another.
fn id_of(command: &[String], root: &Path) -> String {
    use sha2::{Digest, Sha256};
    let mut hash = Sha256::new();
    for part in command.iter().map(String::as_bytes).chain([root.as_os_str().as_encoded_bytes()]) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    let hash = hex::encode(hash.finalize());
    let hash = hash.get(..8).unwrap_or_default();
    match server_name(command) {
        Some(name) => format!("wrapped-{name}-{hash}"),
        None => format!("wrapped-{hash}"),
    }
}

/// What people would call the server: the package or file that is started.
fn server_name(command: &[String]) -> Option<String> {
    const STARTERS: [&str; 12] =
        ["npx", "npm", "exec", "uvx", "uv", "run", "pipx", "node", "python", "python3", "bunx", "deno"];
    let name = |word: &String| {
        let last = word.rsplit(['/', '\\']).next().unwrap_or(word);
        let last = last.split_once('@').filter(|(name, _)| !name.is_empty()).map_or(last, |(name, _)| name);
        let stem = [".js", ".mjs", ".cjs", ".ts", ".py", ".exe"].iter().find_map(|end| last.strip_suffix(end));
        stem.unwrap_or(last).to_ascii_lowercase()
    };
    let words = command.iter().filter(|word| !word.starts_with('-')).map(name);
    let first = words.into_iter().find(|name| !STARTERS.contains(&name.as_str()))?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let plain: String = first.chars().filter(|c| is_plain(*c)).take(32).collect();
    (!plain.is_empty()).then_some(plain)
}

/// Serves one client on standard input and output.
async fn run(config: Config, upstream: &str, agent: Option<&str>) -> Exit {
    if let Some(served) = config.upstreams.get(upstream)
        && let Transport::Command(command) = &served.transport
        && let Some(program) = command.first()
        && let Err(what) = find_program(program, &served.cwd)
    {
        return failed(&StartError::Failed(what));
    }
    let gateway = match serve::start(config, Doors::AdminIfFree, Clock::system()).await {
        Ok(gateway) => gateway,
        Err(error) => return failed(&error),
    };
    let agent = match who(&gateway, agent) {
        Ok(agent) => agent,
        Err(what) => {
            say::tell(what);
            gateway.stop().await;
            return Exit::Usage;
        }
    };
    tell_inbox(&gateway).await;
    let serving =
        listen::stdio::serve(Arc::clone(&gateway.gate), &agent, upstream, tokio::io::stdin(), tokio::io::stdout());
    tokio::select! {
        _ = serving => {}
        () = serve::told_to_stop() => {}
    }
    gateway.stop().await;
    say::flush();
    // Reading standard input blocks a thread of the runtime that nothing can end but the process.
    std::process::exit(Exit::Done as i32)
}

/// The name of the agent whose rules hold.
fn who(gateway: &Gateway, agent: Option<&str>) -> Result<String, String> {
    let directory = gateway.gate.directory();
    let known = match agent {
        Some(name) => directory.agent_named(name).ok_or_else(|| format!("there is no agent `{name}` in `agents`")),
        None => directory.agent(None, true, Clock::system().now()).map_err(|refused| match refused {
            Refused::Missing => "agents are configured; say whose rules hold with --agent NAME".to_owned(),
            Refused::Unknown | Refused::Expired => "no agent can be used without a token".to_owned(),
        }),
    };
    known.map(|agent| agent.config.name.clone())
}

#[cfg(test)]
mod tests {
    use super::server_name;

    #[test]
    fn a_wrapped_server_is_called_by_its_package_or_file() {
        for (command, name) in [
            ("npx -y @modelcontextprotocol/server-filesystem .", Some("server-filesystem")),
            ("npx -y @modelcontextprotocol/server-filesystem@1.2 .", Some("server-filesystem")),
            ("uvx mcp-server-git", Some("mcp-server-git")),
            ("python3 /srv/tools/Server.py --port 1", Some("server")),
            ("/opt/x/bin/thing", Some("thing")),
            ("npx", None),
        ] {
            let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(server_name(&command).as_deref(), name, "{command:?}");
        }
    }
}

//! `portcullis demo`: the whole path on this machine, in a scratch folder.

mod agent;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;

use super::client::{Client, Failure};
use super::exit::Exit;
use super::say;
use super::serve::failed;
use crate::admin::First;
use crate::clock::Clock;
use crate::config::{Config, Transport, UpstreamConfig};
use crate::secret::random_id;
use crate::serve::{self, Doors, Gateway, StartError};
use agent::{Agent, Answer};

/// Start a gateway, a sample folder and a scripted agent, and decide about what the agent wants to write
#[derive(Args, Debug)]
pub struct Demo {
    /// Approve by itself after this long (`2s`): for tests and recordings
    #[arg(long, value_name = "DURATION", value_parser = super::duration)]
    approve_after: Option<Duration>,
    /// Reject by itself, with this reason, after `--approve-after`
    #[arg(long, value_name = "REASON", requires = "approve_after")]
    reject: Option<String>,
}

impl Demo {
    /// Runs to the end of the agent's script.
    pub async fn run(self) -> Exit {
        let scratch = Scratch(std::env::temp_dir().join(random_id("portcullis-demo-", 6)));
        let config = match furnish(&scratch.0) {
            Ok(config) => config,
            Err(error) => return failed(&StartError::Failed(format!("{}: {error}", scratch.0.display()))),
        };
        let gateway = match serve::start(config, Doors::Both, Clock::system()).await {
            Ok(gateway) => gateway,
            Err(error) => return failed(&error),
        };
        let work = scratch.0.join("work");
        let played = tokio::select! {
            played = self.play(&gateway, &work) => played,
            () = serve::told_to_stop() => Err("stopped".to_owned()),
        };
        let exit = match played {
            Ok(()) => {
                table(&gateway);
                Exit::Done
            }
            Err(what) => {
                say::tell(format_args!("the demo broke off: {what}"));
                Exit::Failed
            }
        };
        gateway.stop().await;
        exit
    }

    async fn play(&self, gateway: &Gateway, work: &Path) -> Result<(), String> {
        let (Some(mcp), Some(admin)) = (gateway.mcp, gateway.admin) else {
            return Err("the listeners did not come up".to_owned());
        };
        let first = gateway.first.as_ref().ok_or("no approver was made")?;
        say::show("Portcullis stands between a scripted agent and a sample folder.");
        say::show(format_args!("  agents connect to  http://{mcp}/mcp/workspace"));
        if let Some(link) = gateway.login_link().await {
            say::show(format_args!("  your inbox         {link}  (good once)"));
        }
        say::show("");

        let mut agent = Agent::connect(&format!("http://{mcp}/mcp/workspace")).await?;
        read(&mut agent, "docs/welcome.md").await?;
        read(&mut agent, "secrets/key.pem").await?;
        read(&mut agent, "docs/../secrets/key.pem").await?;

        let note = "notes/from-the-agent.md";
        say::show(format_args!("agent  write_file {note}"));
        let arguments = serde_json::json!({"path": note, "content": "Hello from an agent that was let in.\n"});
        let write = agent.call("write_file", &arguments);
        let url = format!("http://{admin}");
        let decide = self.decide(gateway, &url, first);
        let (answer, ()) = tokio::try_join!(write, decide)?;
        show(&answer);
        match std::fs::read_to_string(work.join(note)) {
            Ok(text) => say::show(format_args!("       the file is there: {}", text.trim_end())),
            Err(_) => say::show("       the file was not written"),
        }
        agent.disconnect().await;
        Ok(())
    }

    /// Waits until the call is held, says how to decide, and decides where the command line says so.
    async fn decide(&self, gateway: &Gateway, url: &str, first: &First) -> Result<(), String> {
        let (id, digest) = held(gateway).await?;
        say::show("       held: a human must approve it, in the inbox or with");
        let program = std::env::args().next().unwrap_or_else(|| "portcullis".to_owned());
        say::show(format_args!(
            "         {program} approvals approve {id} --url {url} --token-file {}",
            first.file.display()
        ));
        let Some(after) = self.approve_after else { return Ok(()) };
        tokio::time::sleep(after).await;
        let client = Client::to(url, first.token.clone()).map_err(|error| error.to_string())?;
        let body = match &self.reject {
            None => client.post(&format!("approvals/{id}/approve"), &serde_json::json!({"digest": digest})).await,
            Some(reason) => client.post(&format!("approvals/{id}/reject"), &serde_json::json!({"note": reason})).await,
        };
        body.map(drop).map_err(|error: Failure| error.to_string())
    }
}

async fn read(agent: &mut Agent, path: &str) -> Result<(), String> {
    say::show(format_args!("agent  read_file {path}"));
    let answer = agent.call("read_file", &serde_json::json!({"path": path})).await?;
    show(&answer);
    Ok(())
}

fn show(answer: &Answer) {
    let word = if answer.is_error { "told" } else { "got" };
    say::show(format_args!("       {word}: {}", answer.text.trim_end()));
}

/// The one approval that waits.
async fn held(gateway: &Gateway) -> Result<(String, String), String> {
    let waiting =
        crate::store::Filter { state: Some(crate::record::ApprovalState::Waiting), ..crate::store::Filter::default() };
    for _ in 0..200 {
        let (held, _) = gateway.gate.store().list(waiting.clone()).await.map_err(|error| error.to_string())?;
        if let Some(held) = held.first() {
            return Ok((held.approval.id.clone(), held.call().digest.clone().unwrap_or_default()));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Err("the call was not held".to_owned())
}

/// The calls and their outcomes, as the metrics count them.
fn table(gateway: &Gateway) {
    say::show("");
    say::show(format_args!("{:<12} {:<12} {:<10} {:>5}", "upstream", "tool", "outcome", "calls"));
    for (upstream, tool, outcome, count) in gateway.gate.metrics().calls() {
        say::show(format_args!("{upstream:<12} {tool:<12} {outcome:<10} {count:>5}"));
    }
}

/// The scratch folder; removed at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "the scratch folder could not be removed");
        }
    }
}

/// A sample folder, the base policy, and a configuration on free ports.
fn furnish(scratch: &Path) -> std::io::Result<Config> {
    let work = scratch.join("work");
    for folder in ["docs", "secrets", "notes"] {
        std::fs::create_dir_all(work.join(folder))?;
    }
    std::fs::write(work.join("docs/welcome.md"), "Welcome. Agents may read this folder; a human decides the rest.\n")?;
    std::fs::write(work.join("secrets/key.pem"), "not a real key\n")?;
    let mut config = super::with_base_policy(scratch.join("state"))?;
    let free = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    config.mcp.address = free;
    config.admin.address = free;
    let workspace = UpstreamConfig::new("workspace", Transport::Workspace, work);
    config.upstreams.insert(workspace.id.clone(), workspace);
    Ok(config)
}

//! `portcullis serve`.

use std::path::PathBuf;

use clap::Args;

use super::client::CONFIG_FILE;
use super::exit::Exit;
use super::say;
use crate::clock::Clock;
use crate::config;
use crate::serve::{self, Doors, StartError};

/// Run the gateway: MCP for agents on one address, approvals on another
#[derive(Args, Debug)]
pub struct Serve {
    /// The gateway's configuration
    #[arg(long, value_name = "FILE", default_value = CONFIG_FILE)]
    config: PathBuf,
}

impl Serve {
    /// Runs until SIGINT or SIGTERM.
    pub async fn run(self) -> Exit {
        let config = match config::load(&self.config) {
            Ok(config) => config,
            Err(findings) => return failed(&StartError::Invalid(findings)),
        };
        let gateway = match serve::start(config, Doors::Both, Clock::system()).await {
            Ok(gateway) => gateway,
            Err(error) => return failed(&error),
        };
        if let Some(mcp) = gateway.mcp {
            say::tell(format_args!("mcp listening on http://{mcp}"));
            for id in gateway.gate.config().upstreams.keys() {
                say::tell(format_args!("  agents reach `{id}` at http://{mcp}/mcp/{id}"));
            }
            say::tell(format_args!("  agents reach all of them at http://{mcp}/mcp"));
        }
        if let Some(admin) = gateway.admin {
            say::tell(format_args!("admin listening on http://{admin}"));
        }
        tell_inbox(&gateway).await;
        for upstream in gateway.gate.unaccepted() {
            say::tell(format_args!(
                "no tool of `{upstream}` is accepted yet: its calls are held until you look at its tools (`portcullis \
                 tools list --upstream {upstream}`) and accept them (`portcullis tools accept {upstream} --all`)"
            ));
        }
        serve::told_to_stop().await;
        say::tell("stopping: running calls may end, held ones stay held");
        gateway.stop().await;
        Exit::Done
    }
}

/// Says where approvals are decided: by the link that logs in, at the first start where no approvers are configured.
pub async fn tell_inbox(gateway: &serve::Gateway) {
    let is_first = gateway.first.as_ref().is_some_and(|first| first.created);
    let link = if is_first { gateway.login_link().await } else { None };
    let place = match (link, gateway.public_url()) {
        (Some(link), _) => format!("{link}  (good once)"),
        (None, Some(url)) => format!("{url}/"),
        (None, None) => format!("http://{}/", gateway.decided_at),
    };
    say::tell(format_args!("approvals are decided at {place}"));
    if let Some(first) = gateway.first.as_ref().filter(|first| !first.created) {
        say::tell(format_args!("  sign in with the token in {}", first.file.display()));
    }
}

/// Says why the gateway did not start.
pub fn failed(error: &StartError) -> Exit {
    say::tell(error.to_string().trim_end());
    match error {
        StartError::Invalid(_) => Exit::Invalid,
        StartError::Failed(_) => Exit::Failed,
    }
}

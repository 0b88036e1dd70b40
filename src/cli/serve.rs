//! `portcullis serve`.

use std::path::PathBuf;

use clap::Args;

use super::exit::Exit;
use crate::clock::Clock;
use crate::config;
use crate::serve::{self, Doors, StartError};

/// Runs the gateway: MCP for agents on one address, approvals on another.
#[derive(Args, Debug)]
pub struct Serve {
    /// The configuration.
    #[arg(long, default_value = "portcullis.yaml")]
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
            eprintln!("mcp listening on http://{mcp}");
        }
        if let Some(admin) = gateway.admin {
            eprintln!("admin listening on http://{admin}");
        }
        greet(&gateway).await;
        serve::told_to_stop().await;
        eprintln!("stopping: running calls may end, held ones stay held");
        gateway.stop().await;
        Exit::Done
    }
}

/// Tells the approver of the first start how to log in.
pub async fn greet(gateway: &serve::Gateway) {
    if gateway.first.as_ref().is_some_and(|first| first.created)
        && let Some(link) = gateway.login_link().await
    {
        eprintln!("no approvers are configured; log in once with {link}");
    }
}

/// Says why the gateway did not start.
pub fn failed(error: &StartError) -> Exit {
    eprintln!("{}", error.to_string().trim_end());
    match error {
        StartError::Invalid(_) => Exit::Invalid,
        StartError::Failed(_) => Exit::Failed,
    }
}

//! Wiring: the rooms put together, listeners bound, reloads, the way down.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::admin::{self, First};
use crate::audit::Audit;
use crate::clock::Clock;
use crate::config::Config;
use crate::diagnostic::Diagnostic;
use crate::gate::{Gate, Parts};
use crate::identity::Directory;
use crate::metrics::Metrics;
use crate::process::{Claim, claimed, private_dir};
use crate::store::Store;
use crate::{listen, policy, tell, upstream};

/// How long running calls may take to end when the gateway goes down.
const GRACE: Duration = Duration::from_secs(10);

/// How long open streams may take to end after that.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often a process without the inbox looks whether the one that has it is still there.
const TAKE_OVER: Duration = Duration::from_secs(1);

/// How long whoever has the inbox's address is given to say that it shares the state folder, in steps.
const CLAIM: (usize, Duration) = (20, Duration::from_millis(50));

/// How long files must be quiet before they are read again: an editor writes more than once.
const QUIET: Duration = Duration::from_millis(150);

/// Which doors are opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doors {
    /// MCP over HTTP, and the admin side.
    Both,
    /// Only the admin side, and that only if no other process on the same state folder has it (`wrap`, `stdio`).
    AdminIfFree,
}

/// A running gateway.
pub struct Gateway {
    /// The core.
    pub gate: Arc<Gate>,
    /// Where agents come in over HTTP.
    pub mcp: Option<SocketAddr>,
    /// Where the inbox is; none if another process serves it.
    pub admin: Option<SocketAddr>,
    /// Where calls were decided at the start, whoever serves it.
    pub decided_at: SocketAddr,
    /// The approver that the first start made, where none is configured.
    pub first: Option<First>,
    closing: watch::Sender<bool>,
    tasks: JoinSet<()>,
    _watcher: Option<notify::RecommendedWatcher>,
}

/// Why the gateway did not start.
#[derive(Debug)]
pub enum StartError {
    /// The configuration or the policy is not valid.
    Invalid(Vec<Diagnostic>),
    /// Something outside does not work.
    Failed(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(findings) => findings.iter().try_for_each(|finding| writeln!(f, "{finding}")),
            Self::Failed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for StartError {}

/// Starts everything that the configuration names.
///
/// # Errors
/// The configuration or policy is invalid, or a folder, address or database cannot be used.
pub async fn start(config: Config, doors: Doors, clock: Clock) -> Result<Gateway, StartError> {
    let failed = |what: String| StartError::Failed(what);
    raise_open_files();
    let state_dir = config.state_dir.clone();
    private_dir(&state_dir).map_err(|error| failed(format!("the state folder: {error}")))?;

    let first = admin::ensure_first_approver(&config)
        .map_err(|error| failed(format!("the first approver's token could not be kept: {error}")))?;
    let mut directory = Directory::new(&config);
    if let Some(first) = &first {
        directory = directory.with_approver(first.approver.clone());
    }
    let own_files = policy::own_files(&config);
    let loaded = {
        let (config, directory, own_files, now) = (config.clone(), directory.clone(), own_files.clone(), clock.now());
        let load = move || {
            let mut loaded = policy::load(&config.policy, &own_files)?.staffed(&directory)?;
            loaded.lint(Some(&config), now);
            Ok(loaded)
        };
        match tokio::task::spawn_blocking(load).await {
            Ok(loaded) => loaded.map_err(StartError::Invalid)?,
            Err(_) => return Err(failed("the policy could not be loaded".to_owned())),
        }
    };
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let watched = watched_folders(&config, &loaded.files);

    let store = Store::open(&state_dir, clock.clone()).map_err(|error| failed(format!("store: {error}")))?;
    let audit = Audit::open(&state_dir, store.process(), &config.audit, clock.clone())
        .map_err(|error| failed(error.to_string()))?;
    let upstreams = config.upstreams.values().map(upstream::build).collect();
    let (mcp_address, admin_address) = (config.mcp.address, config.admin.address);
    let parts = Parts {
        config,
        directory,
        loaded,
        own_files,
        upstreams,
        store,
        audit,
        metrics: Metrics::new(),
        clock: clock.clone(),
    };
    let gate = Gate::start(parts).await.map_err(|error| failed(format!("store: {error}")))?;

    let (closing, closed) = watch::channel(false);
    let told = closed.clone();
    let mut gateway = Gateway {
        gate: Arc::clone(&gate),
        mcp: None,
        admin: None,
        decided_at: admin_address,
        first,
        closing,
        tasks: JoinSet::new(),
        _watcher: None,
    };
    if doors == Doors::Both {
        let listener = bind(mcp_address, "listen.mcp.address").await.map_err(failed)?;
        gateway.mcp = listener.local_addr().ok();
        let serving = listen::http::serve(listener, Arc::clone(&gate), closed.clone());
        gateway.tasks.spawn(async { report("mcp", serving.await) });
        // What an operator has to accept is there to be seen before any agent comes.
        let gate = Arc::clone(&gate);
        gateway.tasks.spawn(async move { gate.list_unseen_tools().await });
    }
    let inbox = match doors {
        Doors::Both => bind(admin_address, "listen.admin.address").await.and_then(|listener| claim(listener, &gate)),
        Doors::AdminIfFree => find_inbox(admin_address, &gate).await,
    };
    match inbox.map_err(failed)? {
        Inbox::Ours(listener, claim, address) => {
            gateway.admin = Some(address);
            gateway.decided_at = address;
            let serving = admin::serve(listener, Arc::clone(&gate), clock, turned(closed));
            gateway.tasks.spawn(async {
                report("admin", serving.await);
                drop(claim);
            });
        }
        // The store is the meeting point. When that process ends, this one takes its place.
        Inbox::Theirs(address) => {
            gateway.decided_at = address;
            gateway.tasks.spawn(take_over(admin_address, Arc::clone(&gate), clock, closed));
        }
    }
    let base = format!("http://{}", gateway.decided_at);
    gateway.tasks.spawn(tell::run(Arc::clone(&gate), base, told));
    let (changed, changes) = mpsc::channel(16);
    gateway._watcher = watch_files(&watched, changed.clone());
    gateway.tasks.spawn(reload_on_hangup(changed));
    gateway.tasks.spawn(reload(Arc::clone(&gate), changes));
    Ok(gateway)
}

impl Gateway {
    /// A login link for the first approver, good once; none where approvers are configured or another process serves
    /// the inbox.
    pub async fn login_link(&self) -> Option<String> {
        let (first, admin) = (self.first.as_ref()?, self.admin?);
        let base = self.public_url().unwrap_or_else(|| format!("http://{admin}"));
        admin::login_link(self.gate.store(), Clock::system().now(), &first.approver.name, &base)
            .await
            .inspect_err(|error| tracing::error!(%error, "no login link could be made"))
            .ok()
    }

    /// The configured public address, if calls are decided where the configuration says.
    pub fn public_url(&self) -> Option<String> {
        let config = self.gate.config();
        let is_there = config.admin.address.port() == 0 || config.admin.address == self.decided_at;
        config.public_url.clone().filter(|_| is_there)
    }

    /// Goes down: takes no more calls, lets running ones end for a while, ends what it started. What is held stays
    /// held.
    pub async fn stop(mut self) {
        self.gate.drain();
        let until = tokio::time::Instant::now() + GRACE;
        while self.gate.running() > 0 && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.closing.send_replace(true);
        self.gate.shutdown().await;
        let closed = async { while self.tasks.join_next().await.is_some() {} };
        // Watching tasks never end by themselves, and a client may keep its stream open.
        if tokio::time::timeout(LAST_WORDS, closed).await.is_err() {
            self.tasks.shutdown().await;
        }
    }
}

/// Who serves the inbox of a state folder.
enum Inbox {
    /// This process, on this address, and its word that it does.
    Ours(TcpListener, Claim, SocketAddr),
    /// Another process.
    Theirs(SocketAddr),
}

/// The inbox where it is wanted; else wherever a process on the same state folder has it; else, where something has the
/// address that does not share the folder (another home's gateway, or a stranger), on a free port.
async fn find_inbox(wanted: SocketAddr, gate: &Gate) -> Result<Inbox, String> {
    let state_dir = &gate.config().state_dir;
    for _ in 0..CLAIM.0 {
        if let Ok(listener) = TcpListener::bind(wanted).await {
            return claim(listener, gate);
        }
        let theirs = claimed(state_dir);
        if let Some(address) = theirs.iter().find(|address| **address == wanted).or(theirs.first()) {
            return Ok(Inbox::Theirs(*address));
        }
        tokio::time::sleep(CLAIM.1).await;
    }
    let listener = bind(SocketAddr::new(wanted.ip(), 0), "listen.admin.address").await?;
    tracing::warn!(
        "what listens on {wanted} does not share the state folder {}, so calls are not decided there",
        state_dir.display()
    );
    claim(listener, gate)
}

fn claim(listener: TcpListener, gate: &Gate) -> Result<Inbox, String> {
    let state_dir = &gate.config().state_dir;
    let claimed = listener
        .local_addr()
        .and_then(|address| Claim::make(state_dir, gate.store().process(), address).map(|claim| (claim, address)));
    let (claim, address) = claimed.map_err(|error| format!("state folder {}: {error}", state_dir.display()))?;
    Ok(Inbox::Ours(listener, claim, address))
}

/// Serves the inbox as soon as the process that has it ends.
async fn take_over(wanted: SocketAddr, gate: Arc<Gate>, clock: Clock, closed: watch::Receiver<bool>) {
    loop {
        tokio::time::sleep(TAKE_OVER).await;
        match find_inbox(wanted, &gate).await {
            Ok(Inbox::Ours(listener, _claim, address)) => {
                tracing::info!("approvals are now decided at http://{address}/, served by this process");
                return report("admin", admin::serve(listener, gate, clock, turned(closed)).await);
            }
            Ok(Inbox::Theirs(_)) => {}
            Err(error) => tracing::warn!(%error, "the inbox is served by nobody"),
        }
    }
}

/// When the gateway goes down.
async fn turned(mut closed: watch::Receiver<bool>) {
    // An error means that the gateway is gone altogether.
    let _ = closed.wait_for(|closing| *closing).await;
}

fn report(door: &str, served: std::io::Result<()>) {
    if let Err(error) = served {
        tracing::error!(door, %error, "this listener does not serve");
    }
}

/// Waits for SIGINT or SIGTERM.
pub async fn told_to_stop() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(signal) => signal,
        Err(error) => {
            tracing::warn!(%error, "SIGTERM cannot be waited for");
            return drop(tokio::signal::ctrl_c().await);
        }
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

async fn bind(address: SocketAddr, key: &str) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| {
        format!("{key}: cannot listen on {address}: {error}; stop what uses it or name another address (port 0 takes a free one)")
    })
}

/// Held streams are open files: the soft limit goes up to the hard one.
fn raise_open_files() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => tracing::debug!(limit, "open files"),
        Err(error) => tracing::warn!(%error, "the limit of open files could not be raised"),
    }
}

fn watched_folders(config: &Config, policy_files: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        config.file.iter().chain(policy_files).filter_map(|file| file.parent()).map(Path::to_owned).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Reports changes of YAML files in these folders. Without a watcher there is still SIGHUP and the API.
fn watch_files(folders: &[PathBuf], changed: mpsc::Sender<()>) -> Option<notify::RecommendedWatcher> {
    let report = move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let yaml = |path: &PathBuf| path.extension().is_some_and(|e| e == "yaml" || e == "yml");
        if !event.kind.is_access() && event.paths.iter().any(yaml) {
            // A full channel means that a reload is due anyway.
            let _ = changed.try_send(());
        }
    };
    let mut watcher = notify::recommended_watcher(report)
        .inspect_err(|error| tracing::warn!(%error, "files are not watched; use SIGHUP or POST policy/reload"))
        .ok()?;
    for folder in folders {
        if let Err(error) = watcher.watch(folder, RecursiveMode::NonRecursive) {
            tracing::warn!(folder = %folder.display(), %error, "this folder is not watched");
        }
    }
    Some(watcher)
}

async fn reload_on_hangup(changed: mpsc::Sender<()>) {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        if changed.send(()).await.is_err() {
            return;
        }
    }
}

async fn reload(gate: Arc<Gate>, mut changes: mpsc::Receiver<()>) {
    while changes.recv().await.is_some() {
        // Wait until the files are quiet.
        while let Ok(Some(())) = tokio::time::timeout(QUIET, changes.recv()).await {}
        // What is wrong was logged and counted; the last good policy stays.
        let _ = gate.reload().await;
    }
}

//! What a tool is, and what one run of it is.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::sync::watch;

use super::root::Root;

/// A tool of the workspace.
pub(super) trait Tool: Send + Sync {
    /// What it is called and takes.
    fn definition(&self) -> Definition;

    /// Begins a run. Arguments that do not fit end it with an [`Output`] that says so, since the model can mend them
    /// (MCP 2025-11-25, "Error Handling").
    fn start(&self, root: &Arc<Root>, arguments: Value) -> Arc<dyn ToolExecution>;
}

/// One run of a tool.
pub(super) trait ToolExecution: Send + Sync {
    /// Where it stands.
    fn state(&self) -> State;

    /// Waits until nothing of it runs any more.
    fn wait(&self) -> BoxFuture<'_, Output>;

    /// Ends it as soon as it can; [`ToolExecution::wait`] still tells when that is.
    fn stop(&self);
}

/// How a tool presents itself in `tools/list`.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    /// Its name.
    pub name: &'static str,
    /// What it does, for a model.
    pub description: &'static str,
    /// A JSON schema of its arguments.
    pub input_schema: Value,
    /// Whether it changes nothing.
    pub read_only: bool,
}

/// Where a run stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// It works.
    Running,
    /// It was told to stop and works yet.
    Stopping,
    /// It has ended.
    Ended,
}

/// How a run ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Output {
    /// For the model.
    pub text: String,
    /// Whether the tool could not do what it was asked.
    pub failed: bool,
}

impl From<Result<String, String>> for Output {
    fn from(told: Result<String, String>) -> Self {
        let failed = told.is_err();
        Self { text: told.unwrap_or_else(|text| text), failed }
    }
}

/// The switch by which a run is stopped, as the work sees it.
#[derive(Clone, Debug)]
pub(super) struct Stop(watch::Receiver<bool>);

impl Stop {
    /// # Errors
    /// The run is to end.
    pub fn check(&self) -> Result<(), String> {
        if *self.0.borrow() { Err("stopped".into()) } else { Ok(()) }
    }

    /// Waits until the run is to end.
    pub async fn requested(&mut self) {
        // An error means that nobody holds the run any more.
        let _requested = self.0.wait_for(|stopped| *stopped).await;
    }
}

/// A run of blocking or of asynchronous work.
#[derive(Debug)]
pub(super) struct Run {
    stop: watch::Sender<bool>,
    output: watch::Receiver<Option<Output>>,
}

impl Run {
    /// Runs `work`, which must end soon after its switch is thrown.
    pub fn of<F: Future<Output = Output> + Send + 'static>(work: impl FnOnce(Stop) -> F) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (ended, output) = watch::channel(None);
        let work = work(Stop(stopped));
        tokio::spawn(async move { ended.send_replace(Some(work.await)) });
        Self { stop, output }
    }

    /// Runs `work` on a thread where it may block; it looks at its switch between steps.
    pub fn blocking(work: impl FnOnce(&Stop) -> Output + Send + 'static) -> Self {
        Self::of(
            |stop| async move { tokio::task::spawn_blocking(move || work(&stop)).await.unwrap_or_else(|_| broke()) },
        )
    }
}

impl ToolExecution for Run {
    fn state(&self) -> State {
        match (self.output.borrow().is_some(), *self.stop.borrow()) {
            (true, _) => State::Ended,
            (false, true) => State::Stopping,
            (false, false) => State::Running,
        }
    }

    fn wait(&self) -> BoxFuture<'_, Output> {
        let mut output = self.output.clone();
        Box::pin(async move {
            match output.wait_for(Option::is_some).await {
                Ok(output) => output.clone().unwrap_or_else(broke),
                Err(_) => broke(),
            }
        })
    }

    fn stop(&self) {
        self.stop.send_replace(true);
    }
}

fn broke() -> Output {
    Output { text: "the tool broke off; the gateway's log says why".into(), failed: true }
}

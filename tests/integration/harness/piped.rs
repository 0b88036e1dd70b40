//! A client that starts `portcullis wrap` or `stdio` and speaks to it over its standard streams.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::agent::Agent;

/// One client with its process; both end when it is dropped.
pub struct Piped {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    /// Makes messages of its era.
    speaks: Agent,
}

impl Piped {
    /// Starts the command; `env` is added to its environment.
    pub fn modern(command: &[String], env: &[(&str, &str)]) -> Self {
        let (program, arguments) = command.split_first().expect("a command");
        let mut command = Command::new(program);
        command.args(arguments).envs(env.iter().copied()).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("portcullis starts");
        let input = child.stdin.take().expect("its standard input");
        let output = BufReader::new(child.stdout.take().expect("its standard output")).lines();
        Self { child, input, output, speaks: Agent::modern("") }
    }

    /// The same, and shakes hands as a client of 2025-11-25.
    pub async fn legacy(command: &[String], env: &[(&str, &str)]) -> Self {
        let mut piped = Self::modern(command, env);
        piped.speaks.session = Some(String::new());
        let info = json!({ "name": "test", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let answer = piped.request(0, "initialize", hello).await;
        assert!(answer["result"]["protocolVersion"].is_string(), "initialize: {answer}");
        piped.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        piped
    }

    /// Sends a call and does not wait for its answer.
    pub async fn begin(&mut self, id: u64, tool: &str, arguments: Value) {
        let call = self.speaks.message(id, "tools/call", json!({ "name": tool, "arguments": arguments }));
        self.say(&call).await;
    }

    /// Calls a tool and waits for the answer, however long it is held.
    pub async fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.begin(id, tool, arguments).await;
        self.answer(id).await
    }

    /// The answer to a request that was sent.
    pub async fn answer(&mut self, id: u64) -> Value {
        let answered = async {
            loop {
                let line = self.output.next_line().await.expect("a line").expect("it has not ended");
                let message: Value = serde_json::from_str(&line).expect("JSON");
                if message["id"] == json!(id) && message.get("method").is_none() {
                    return message;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), answered).await.expect("an answer in time")
    }

    /// Makes it read its files again.
    pub fn hang_up(&self) {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        rustix::process::kill_process(id.expect("it runs"), rustix::process::Signal::HUP).expect("it runs");
    }

    /// Withdraws a request.
    pub async fn cancel(&mut self, id: u64) {
        let params = json!({ "requestId": id, "reason": "not needed" });
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })).await;
    }

    /// Closes its input, as a client does that ends; waits for its end.
    pub async fn close(self) {
        let Self { mut child, input, output, .. } = self;
        drop((input, output));
        tokio::time::timeout(Duration::from_secs(60), child.wait()).await.expect("an end in time").expect("it ran");
    }

    /// Ends it as a crash would.
    pub async fn crash(mut self) {
        self.child.kill().await.expect("it ran");
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        let message = self.speaks.message(id, method, params);
        self.say(&message).await;
        self.answer(id).await
    }

    async fn say(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.expect("it reads");
        self.input.flush().await.expect("it reads");
    }
}

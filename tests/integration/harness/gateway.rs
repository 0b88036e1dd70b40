//! The built binary, serving on free ports out of a folder of its own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::eventually;
use super::http::Http;

/// The program under test.
pub const PORTCULLIS: &str = env!("CARGO_BIN_EXE_portcullis");

/// The approver's token in every test's configuration.
pub const TOKEN: &str = "pct_test-approver-token";

/// A folder with a configuration, a policy and a sample tree.
pub struct Home {
    temp: TempDir,
    root: PathBuf,
    config: Value,
}

impl Home {
    /// `policy` is the text of the only policy file; `upstreams` the section of that name, in which `$ROOT` stands for
    /// the sample tree.
    pub fn new(policy: &str, upstreams: Value) -> Self {
        let temp = tempfile::Builder::new().prefix("portcullis-").tempdir().expect("a folder");
        let base = fs::canonicalize(temp.path()).expect("its real path");
        let root = base.join("work");
        for (file, text) in
            [("docs/a.md", "hello from a\n"), ("docs/b.md", "and b\n"), ("secrets/key.pem", "the key\n")]
        {
            let file = root.join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, text).expect("a file");
        }
        fs::write(base.join("policy.yaml"), policy).expect("the policy");
        let upstreams: Value =
            serde_json::from_str(&upstreams.to_string().replace("$ROOT", &root.to_string_lossy())).expect("upstreams");
        let config = json!({
            "listen": { "mcp": { "address": "127.0.0.1:0" }, "admin": { "address": "127.0.0.1:0" } },
            "state_dir": base.join("state"),
            "policy": { "files": [base.join("policy.yaml")] },
            "upstreams": upstreams,
            "approvers": [{
                "name": "ana", "roles": ["viewer", "approver", "operator", "auditor"], "groups": ["*"],
                "tokens": [{ "sha256": hex::encode(Sha256::digest(TOKEN)) }],
            }],
        });
        Self { temp, root, config }
    }

    /// A section of `portcullis.yaml`.
    pub fn section(&self, section: &str) -> &Value {
        &self.config[section]
    }

    /// The same with a section of `portcullis.yaml` set.
    pub fn with(mut self, section: &str, value: Value) -> Self {
        self.config[section] = value;
        self
    }

    /// The same without a section.
    pub fn without(mut self, section: &str) -> Self {
        self.config.as_object_mut().expect("a map").remove(section);
        self
    }

    /// The section of that name.
    pub fn upstreams(&self) -> Value {
        self.config["upstreams"].clone()
    }

    /// The sample tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path in the sample tree, as text.
    pub fn path(&self, below: &str) -> String {
        self.root.join(below).to_string_lossy().into_owned()
    }

    /// The gateway's state.
    pub fn state(&self) -> PathBuf {
        self.base().join("state")
    }

    /// The folder that holds everything.
    pub fn base(&self) -> PathBuf {
        fs::canonicalize(self.temp.path()).expect("the folder")
    }

    /// Another policy in the same file.
    pub fn write_policy(&self, text: &str) {
        fs::write(self.base().join("policy.yaml"), text).expect("the policy");
    }

    /// Writes `portcullis.yaml` and returns its path. (JSON is YAML.)
    pub fn write_config(&self) -> PathBuf {
        let file = self.base().join("portcullis.yaml");
        // Processes that were started before may be reading it.
        let (new, text) = (file.with_extension("new"), serde_json::to_string_pretty(&self.config).expect("JSON"));
        fs::write(&new, text).and_then(|()| fs::rename(&new, &file)).expect("the configuration");
        file
    }

    /// The command line of `portcullis wrap` in front of a server, with the settings of the upstream `id`.
    pub fn wrap(&self, id: &str, server: Vec<String>) -> Vec<String> {
        let config = self.write_config().to_string_lossy().into_owned();
        let wrap = [PORTCULLIS, "wrap", "--config", &config, "--as", id, "--"].map(str::to_owned);
        wrap.into_iter().chain(server).collect()
    }

    /// Starts `portcullis serve` and waits until both listeners are open.
    pub fn serve(&self) -> Gateway {
        let config = self.write_config();
        let mut command = Command::new(PORTCULLIS);
        command.arg("serve").arg("--config").arg(config).current_dir(self.base());
        let mut gateway = Gateway::start(command);
        // The first start makes an approver, whose token is kept for the command line.
        if let Ok(token) = fs::read_to_string(self.state().join("approver.token")) {
            gateway.token = token.trim().to_owned();
        }
        gateway
    }
}

/// A running gateway; killed when dropped.
pub struct Gateway {
    child: Child,
    /// The MCP listener's origin.
    pub mcp: String,
    /// The admin listener's origin.
    pub admin: String,
    token: String,
    log: Arc<Mutex<String>>,
    http: Http,
}

impl Gateway {
    /// Starts a command that serves, and reads its addresses from what it says.
    pub fn start(mut command: Command) -> Self {
        command.env("PORTCULLIS_LOG", "info").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("portcullis starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (tell, told) = mpsc::channel();
        follow(child.stderr.take().expect("its standard error"), Arc::clone(&log), tell.clone());
        follow(child.stdout.take().expect("its standard output"), Arc::clone(&log), tell);
        let (mut mcp, mut admin) = (None, None);
        while mcp.is_none() || admin.is_none() {
            let Ok(line) = told.recv_timeout(Duration::from_secs(30)) else {
                let _ = child.kill();
                panic!("portcullis does not say where it listens:\n{}", log.lock().expect("the log"));
            };
            mcp = mcp.or_else(|| after(&line, "mcp listening on "));
            admin = admin.or_else(|| after(&line, "admin listening on "));
        }
        let (mcp, admin) = (mcp.unwrap_or_default(), admin.unwrap_or_default());
        Self { child, mcp, admin, token: TOKEN.to_owned(), log, http: Http::new() }
    }

    /// The same for a command whose reader goes away as soon as it has said where it listens.
    pub fn unheard(mut command: Command) -> Self {
        command.env("PORTCULLIS_LOG", "info").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("portcullis starts");
        let mut said = BufReader::new(child.stderr.take().expect("its standard error"));
        let (mut mcp, mut admin, mut line) = (None, None, String::new());
        while mcp.is_none() || admin.is_none() {
            line.clear();
            assert_ne!(said.read_line(&mut line).expect("text"), 0, "portcullis does not say where it listens");
            mcp = mcp.or_else(|| after(&line, "mcp listening on "));
            admin = admin.or_else(|| after(&line, "admin listening on "));
        }
        let (mcp, admin) = (mcp.unwrap_or_default(), admin.unwrap_or_default());
        Self { child, mcp, admin, token: TOKEN.to_owned(), log: Arc::default(), http: Http::new() }
    }

    /// The endpoint of one upstream.
    pub fn url(&self, upstream: &str) -> String {
        format!("{}/mcp/{upstream}", self.mcp)
    }

    /// What it has said so far.
    pub fn log(&self) -> String {
        self.log.lock().expect("the log").clone()
    }

    /// Ends it as a crash would: SIGKILL, nothing flushed.
    pub fn crash(mut self) {
        self.child.kill().expect("it ran");
        self.child.wait().expect("it ended");
    }

    /// Ends it as an operator would: SIGTERM; waits until it is gone.
    pub fn terminate(mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        self.child.wait().expect("it ended");
    }

    /// The processes that it started.
    pub fn children(&self) -> usize {
        let of_us = |stat: String| stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok();
        let all = fs::read_dir("/proc").expect("processes").flatten();
        let parents = all.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok().and_then(of_us));
        parents.filter(|parent: &u32| *parent == self.child.id()).count()
    }

    /// An admin request with the approver's token; status and JSON body.
    pub async fn api(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        self.api_as(&self.token, method, path, body).await
    }

    /// The same with another approver's token.
    pub async fn api_as(&self, token: &str, method: Method, path: &str, body: Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.api_text(token, method, path, body).await
    }

    /// The same with a body as it is.
    pub async fn api_text(&self, token: &str, method: Method, path: &str, body: String) -> (u16, Value) {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let answer = self.http.send(method, &format!("{}/api/v1/{path}", self.admin), &headers, body).await;
        let status = answer.status;
        let text = answer.text().await;
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// GET, which must succeed.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.api(Method::GET, path, Value::Null).await;
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }

    /// The metrics' text.
    pub async fn metrics(&self) -> String {
        let bearer = format!("Bearer {}", self.token);
        let url = format!("{}/metrics", self.admin);
        self.http.send(Method::GET, &url, &[("authorization", &bearer)], "").await.text().await
    }

    /// All waiting approvals, however many pages.
    pub async fn waiting(&self) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("approvals?state=waiting&limit=100{cursor}")).await;
            items.extend(page["items"].as_array().cloned().unwrap_or_default());
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
    }

    /// Waits until this many calls are held, and returns their approvals.
    pub async fn held(&self, many: usize) -> Vec<Value> {
        eventually(&format!("{many} held calls"), || async {
            Some(self.waiting().await).filter(|waiting| waiting.len() >= many)
        })
        .await
    }

    /// Approves what an approver was shown.
    pub async fn approve(&self, approval: &Value) -> (u16, Value) {
        let id = approval["id"].as_str().expect("an id");
        let body = json!({ "digest": approval["call"]["digest"] });
        self.api(Method::POST, &format!("approvals/{id}/approve"), body).await
    }

    /// Rejects with a reason.
    pub async fn reject(&self, approval: &Value, note: &str) -> (u16, Value) {
        let id = approval["id"].as_str().expect("an id");
        self.api(Method::POST, &format!("approvals/{id}/reject"), json!({ "note": note })).await
    }

    /// Waits until a call has ended, and returns it.
    pub async fn ended(&self, call: &str) -> Value {
        eventually(&format!("the end of {call}"), || async {
            Some(self.get(&format!("calls/{call}")).await).filter(|call| !call["outcome"].is_null())
        })
        .await
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the gateway said:\n{}", self.log());
        }
    }
}

fn after(line: &str, what: &str) -> Option<String> {
    let (_, rest) = line.split_once(what)?;
    rest.split_whitespace().next().map(|origin| origin.trim_end_matches('/').to_owned())
}

fn follow(stream: impl Read + Send + 'static, log: Arc<Mutex<String>>, tell: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            log.lock().expect("the log").push_str(&format!("{line}\n"));
            let _ = tell.send(line);
        }
    });
}

//! Real peers: the official clients and servers that `scripts/test` installs under `target/peers`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

/// A client that speaks to the gateway on its own terms.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Client {
    /// PyPI `mcp` 2.x.
    Python,
    /// npm `@modelcontextprotocol/sdk` 1.x: legacy only.
    TypeScript1,
    /// npm `@modelcontextprotocol/client` 2.x.
    TypeScript2,
}

/// All of them.
pub const CLIENTS: [Client; 3] = [Client::Python, Client::TypeScript1, Client::TypeScript2];

/// How a client reaches a server.
#[derive(Clone, Debug)]
pub enum Way {
    /// Streamable HTTP.
    Url(String),
    /// A child process over stdio.
    Command(Vec<String>),
}

/// What a client's steps gave.
#[derive(Debug)]
pub struct Said(Vec<Value>);

impl Said {
    /// The results (or errors) of the steps, in order.
    pub fn steps(&self) -> Vec<&Value> {
        let aside = ["connect", "progress", "seen"];
        self.0.iter().filter(|line| !aside.iter().any(|word| line["do"] == *word)).collect()
    }

    /// The protocol version it agreed on.
    pub fn version(&self) -> &str {
        self.0[0]["version"].as_str().unwrap_or_default()
    }

    /// What the server sent beside its answers.
    pub fn seen(&self) -> &Value {
        self.0.last().expect("a last line")
    }
}

/// Where the peers are: `PORTCULLIS_PEERS`, or `target/peers`. The drivers are copied there so that they find their
/// packages.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = std::env::var_os("PORTCULLIS_PEERS").map_or_else(|| here.join("target/peers"), PathBuf::from);
        for needed in ["node_modules/.bin/node", "venv/bin/python"] {
            assert!(folder.join(needed).exists(), "no {needed} in {}: run scripts/test --install", folder.display());
        }
        let drivers = fs::read_dir(here.join("tests/peers")).expect("the drivers");
        for driver in drivers.map(|entry| entry.expect("a driver").path()) {
            if driver.extension().is_some_and(|ext| ext == "mjs" || ext == "py") {
                let copy = folder.join(driver.file_name().expect("its name"));
                // Written aside and moved, so that no test running beside this one reads half a file.
                let half = folder.join(format!(".{}", std::process::id()));
                fs::copy(&driver, &half).and_then(|_| fs::rename(&half, copy)).expect("copied");
            }
        }
        folder
    })
}

fn node() -> String {
    at("node_modules/.bin/node")
}

fn at(below: &str) -> String {
    folder().join(below).to_string_lossy().into_owned()
}

/// A script of `tests/peers` in Python.
pub fn python(script: &str) -> Command {
    let mut command = Command::new(at("venv/bin/python"));
    command.arg(at(script));
    command
}

/// The command of schemathesis, with the settings of `tests/peers`.
pub fn schemathesis() -> Command {
    let mut command = Command::new(at("venv/bin/schemathesis"));
    command.arg("--config-file").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/schemathesis.toml"));
    command
}

/// The command of `@modelcontextprotocol/server-filesystem`.
pub fn filesystem(root: &Path) -> Vec<String> {
    vec![
        node(),
        at("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"),
        root.to_string_lossy().into(),
    ]
}

/// The command of `@modelcontextprotocol/server-everything`.
pub fn everything() -> Vec<String> {
    vec![node(), at("node_modules/@modelcontextprotocol/server-everything/dist/index.js")]
}

/// The same over Streamable HTTP on a free port, which it says on standard error as `listening on port N`.
pub fn everything_http() -> Command {
    let mut command = Command::new(node());
    command.arg("--import").arg(at("announce-port.mjs"));
    command.args(&everything()[1..]).arg("streamableHttp").env("PORT", "0");
    command
}

/// The command of `mcp-server-git`.
pub fn git() -> Vec<String> {
    vec![at("venv/bin/mcp-server-git")]
}

/// A fixture server of `tests/fixtures`.
pub fn fixture(name: &str, arguments: &[&str]) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    let mut command = vec![at("venv/bin/python"), file.to_string_lossy().into_owned()];
    command.extend(arguments.iter().map(|argument| (*argument).to_owned()));
    command
}

impl Client {
    /// Plays steps against a server; panics if the client itself broke. `era` is `legacy`, `auto` or `modern`. Blocks.
    pub fn drive(self, way: &Way, era: &str, steps: Value) -> Said {
        let mut job = json!({ "era": era, "steps": steps });
        match way {
            Way::Url(url) => job["url"] = json!(url),
            Way::Command(command) => job["command"] = json!(command),
        }
        let mut command = match self {
            Self::Python => Command::new(at("venv/bin/python")),
            Self::TypeScript1 | Self::TypeScript2 => Command::new(node()),
        };
        command.arg(at(match self {
            Self::Python => "client.py",
            Self::TypeScript1 => "client-v1.mjs",
            Self::TypeScript2 => "client-v2.mjs",
        }));
        let output = run(command.arg(job.to_string()));
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        let story = || format!("{self:?} {way:?} {era}\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let lines = lines.unwrap_or_else(|e| panic!("{e}: {}", story()));
        assert!(output.status.success() && lines.len() > 1, "the client broke: {}", story());
        Said(lines)
    }

    /// The same on a thread of its own, so that the test can decide while the client waits.
    pub async fn drives(self, way: Way, era: &'static str, steps: Value) -> Said {
        tokio::task::spawn_blocking(move || self.drive(&way, era, steps)).await.expect("the client")
    }
}

/// The Inspector's command line for one `tools/call`. It keeps its own state below `home`.
pub fn inspector(way: &Way, era: &str, home: &Path, tool: &str, arguments: &Value) -> Command {
    let mut command = Command::new(node());
    command.arg(at("node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"));
    command.args(["--cli", "-q", "--format", "json", "--protocol-era", era, "--method", "tools/call"]);
    command.args(["--tool-name", tool, "--tool-args-json", &arguments.to_string()]);
    command.env("HOME", home).env("PATH", path());
    match way {
        Way::Url(url) => command.args(["--server-url", url, "--transport", "http"]),
        Way::Command(words) => command.arg("--").args(words),
    };
    command
}

/// Runs it; its exit code and the JSON it printed.
pub fn inspect(way: &Way, era: &str, home: &Path, tool: &str, arguments: &Value) -> (i32, Value) {
    let output = run(&mut inspector(way, era, home, tool, arguments));
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let said = serde_json::from_str(text.trim()).unwrap_or_else(|e| panic!("{e}: {text}\n{error}"));
    (output.status.code().unwrap_or(-1), said)
}

/// The path with Node 22 first: the Inspector starts itself again by name.
fn path() -> String {
    format!("{}:{}", at("node_modules/.bin"), std::env::var("PATH").unwrap_or_default())
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().expect("the peer starts")
}

/// A server on a free port that it says itself; killed when dropped.
pub struct Listening {
    child: std::process::Child,
    pub port: u16,
}

impl Listening {
    /// Starts it and waits for `listening on port N` on its standard error.
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let mut lines = BufReader::new(child.stderr.take().expect("its standard error")).lines();
        let said =
            lines.by_ref().map_while(Result::ok).find_map(|line| line.strip_prefix("listening on port ")?.parse().ok());
        let port = said.expect("its port");
        // Read on, so that it never blocks on a full pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, port }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

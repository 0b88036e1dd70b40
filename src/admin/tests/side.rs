//! A real gate behind a real listener, asked by a plain HTTP client.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

use super::super::*;
use crate::approval::tests::held;
use crate::audit::Audit;
use crate::clock::Timestamp;
use crate::config::{AgentConfig, ApproverConfig, Config, PolicyConfig, Role, TokenConfig};
use crate::gate::Parts;
use crate::identity::Directory;
use crate::metrics::Metrics;
use crate::record::{Depth, Source};
use crate::secret::TokenHash;
use crate::store::Store;

/// When the fixture's calls were made.
pub const START: Timestamp = Timestamp::from_millis(1_796_000_000_000);
/// Decides and operates for the group `default`.
pub const ANA: &str = "token-of-ana";
/// Sees the group `default`.
pub const VIC: &str = "token-of-vic";
/// Decides for another group.
pub const EVE: &str = "token-of-eve";
pub const AGENT: &str = "token-of-an-agent";
pub const DIGEST: &str = "sha256:shown";

const POLICY: &str = "version: 1\ngroups:\n  default:\n    otherwise: ask\n    rules:\n      - { name: reads, verdict: \
                      allow, tool: \"@fs_read\", path: docs/ }\n";

/// The admin side of a gate, with nobody else on it.
pub struct Side {
    pub folder: TempDir,
    pub gate: Arc<Gate>,
    pub clock: Clock,
    pub base: String,
    stop: Option<oneshot::Sender<()>>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
    http: Client<HttpConnector, Full<Bytes>>,
}

/// An HTTP answer, read to its end.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}

fn approver(name: &str, token: &str, roles: &[Role], group: &str) -> ApproverConfig {
    ApproverConfig {
        name: name.into(),
        roles: roles.to_vec(),
        groups: vec![group.into()],
        teams: Vec::new(),
        tokens: vec![TokenConfig { hash: TokenHash::of(token), expires: None }],
    }
}

impl Side {
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("base.yaml");
        std::fs::write(&policy, POLICY).unwrap();
        let files = vec![policy.display().to_string()];
        let policy = PolicyConfig { files, ..PolicyConfig::default() };
        let mut config = Config::minimal(folder.path().join("state"), policy, Vec::new());
        config.approvers = vec![
            approver("ana", ANA, &[Role::Approver, Role::Operator], "default"),
            approver("vic", VIC, &[Role::Viewer], "default"),
            approver("eve", EVE, &[Role::Approver, Role::Operator], "other"),
        ];
        config.agents = vec![AgentConfig {
            name: "claude".into(),
            group: "default".into(),
            owner: None,
            tokens: vec![TokenConfig { hash: TokenHash::of(AGENT), expires: None }],
            source: Source::default(),
            depth: Depth::default(),
            claims: None,
        }];
        change(&mut config);
        let clock = Clock::manual(START);
        let store = Store::open(&config.state_dir, clock.clone()).unwrap();
        let audit = Audit::open(&config.state_dir, store.process(), &config.audit, clock.clone()).unwrap();
        let gate = Gate::start(Parts {
            directory: Directory::new(&config),
            loaded: crate::policy::load(&config.policy, &[]).unwrap(),
            config,
            own_files: Vec::new(),
            upstreams: Vec::new(),
            store,
            audit,
            metrics: Metrics::new(),
            clock: clock.clone(),
        })
        .await
        .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel::<()>();
        let served = tokio::spawn(serve(listener, Arc::clone(&gate), clock.clone(), async {
            let _ = stopped.await;
        }));
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { folder, gate, clock, base, stop: Some(stop), served, http }
    }

    /// A call of the group `default` that waits.
    pub async fn hold(&self, id: &str) {
        let mut held = held(id);
        held.approval.call.attach_key = Some(format!("sha256:{id}"));
        self.gate.store().hold(held, 20).await.unwrap();
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> http::Response<Incoming> {
        let mut request = Request::builder().method(method).uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.http.request(request.body(Full::from(body.to_owned())).unwrap()).await.unwrap()
    }

    pub async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let (parts, body) = self.send(method, path, headers, body).await.into_parts();
        let text = String::from_utf8(body.collect().await.unwrap().to_bytes().into()).unwrap();
        is_documented(method, path, parts.status.as_u16(), &parts.headers);
        Answer { status: parts.status.as_u16(), headers: parts.headers, text }
    }

    pub async fn get(&self, token: &str, path: &str) -> Answer {
        self.ask("GET", &format!("/api/v1/{path}"), &[("authorization", &format!("Bearer {token}"))], "").await
    }

    pub async fn post(&self, token: &str, path: &str, body: Value) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        self.ask("POST", &format!("/api/v1/{path}"), &headers, &body.to_string()).await
    }

    /// Logs a browser in; answers its cookie and its key.
    pub async fn log_in(&self, token: &str) -> Result<(String, String), Answer> {
        let headers = [("origin", self.base.as_str()), ("content-type", "application/json")];
        let answer = self.ask("POST", "/api/v1/login", &headers, &json!({"token": token}).to_string()).await;
        if answer.status != 200 {
            return Err(answer);
        }
        let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
        for part in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
            assert!(cookie.contains(part), "{cookie}");
        }
        let key = answer.json()["key"].as_str().unwrap().to_owned();
        Ok((cookie.split(';').next().unwrap().to_owned(), key))
    }

    pub async fn stop(mut self) {
        let _ = self.stop.take().unwrap().send(());
        self.served.await.unwrap().unwrap();
    }
}

/// The OpenAPI document knows the answer to a request of the API.
fn is_documented(method: &str, path: &str, status: u16, headers: &HeaderMap) {
    let path = path.split('?').next().unwrap();
    let document = api::document::document(&api::table());
    let fits = |template: &str| {
        let (wanted, given) = (template.split('/'), path.split('/'));
        wanted.clone().count() == given.clone().count()
            && wanted.zip(given).all(|(wanted, given)| wanted == given || wanted.starts_with('{'))
    };
    let paths = document["paths"].as_object().unwrap();
    let Some(methods) = paths.get(path).or_else(|| paths.iter().find(|(path, _)| fits(path)).map(|(_, at)| at)) else {
        return;
    };
    let Some(operation) = methods.get(method.to_lowercase()) else {
        return assert_eq!(status, 405, "{method} {path}");
    };
    let mut answer = &operation["responses"][status.to_string()];
    if let Some(to) = answer["$ref"].as_str() {
        answer = document.pointer(to.trim_start_matches('#')).unwrap();
    }
    assert!(answer.is_object(), "{method} {path}: the document does not know {status}");
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap().split(';').next().unwrap());
    let documented = answer["content"].as_object().and_then(|content| content.keys().next());
    assert_eq!(kind, documented.map(String::as_str), "{method} {path}: {status}");
}

/// Reads a stream until it holds what is looked for.
pub async fn read_until(body: &mut Incoming, wanted: &str) -> String {
    let mut text = String::new();
    while !text.contains(wanted) {
        let frame = tokio::time::timeout(Duration::from_secs(5), body.frame()).await.unwrap();
        let frame = frame.unwrap_or_else(|| panic!("the stream ended after {text:?}")).unwrap();
        text.push_str(std::str::from_utf8(&frame.into_data().unwrap()).unwrap());
    }
    text
}

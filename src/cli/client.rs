//! The command line's way to a running gateway: its public API over HTTP, with an approver's token.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::{Host, Url};

use super::exit::Exit;
use super::say;
use crate::admin::TOKEN_FILE;
use crate::config::{self, Listen};
use crate::diagnostic::Diagnostic;
use crate::message::sse::{Decoder, Event};
use crate::process;
use crate::secret::Secret;

/// Bytes of one answer, and of one event.
const MAX_ANSWER: usize = 64 << 20;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long the event stream may be silent: three of the gateway's signs of life.
const SILENCE: Duration = Duration::from_secs(30);
/// The configuration that is looked for where none is named.
pub const CONFIG_FILE: &str = "portcullis.yaml";

/// Which gateway to talk to, as whom, and how to print.
#[derive(Args, Clone, Debug)]
pub struct Connect {
    /// The gateway's configuration, for its address and state folder [default: portcullis.yaml, if there is one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The gateway's admin side, such as http://127.0.0.1:7071 [default: where a gateway that runs on the state folder
    /// says it is]
    ///
    /// Without it the token is sent to no other address: while no gateway runs, anyone on this machine can listen there.
    #[arg(long, env = "PORTCULLIS_URL")]
    url: Option<String>,
    /// A file with an approver's token; else PORTCULLIS_TOKEN, else approver.token in the state folder
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// For people, or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub format: Format,
}

/// How data is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// Text that may change from version to version.
    Human,
    /// The API's JSON, which is stable; one object a line where there are several.
    Json,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The configuration is invalid.
    Config(Vec<Diagnostic>),
    /// The gateway refused, with its own words.
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// What the gateway said.
        detail: String,
    },
    /// The command line makes no sense.
    Usage(String),
    /// Whoever read the output is gone; there is nobody to tell.
    Unread,
    /// Anything else, in plain English.
    Other(String),
}

impl Failure {
    /// Says why on standard error; answers the exit code.
    pub fn report(&self) -> Exit {
        if !matches!(self, Self::Unread) {
            say::tell(format_args!("error: {self}"));
        }
        match self {
            Self::Config(_) => Exit::Invalid,
            Self::Usage(_) => Exit::Usage,
            Self::Refused { .. } | Self::Unread | Self::Other(_) => Exit::Failed,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(findings) => {
                f.write_str("the configuration is invalid")?;
                findings.iter().try_for_each(|finding| write!(f, "\n{finding}"))
            }
            Self::Refused { status, detail } => write!(f, "{detail} ({})", status.as_u16()),
            Self::Unread => f.write_str("nobody reads the output"),
            Self::Usage(what) | Self::Other(what) => f.write_str(what),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::Unread,
            _ => Self::Other(error.to_string()),
        }
    }
}

/// Prints a finished piece of output with a line end.
///
/// # Errors
/// Whoever read it is gone.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end_matches('\n'))?;
    Ok(out.flush()?)
}

/// A connection to one gateway.
pub struct Client {
    place: Place,
    token: Secret,
    http: HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// Where the gateway is.
enum Place {
    /// Where the user says.
    At(Url),
    /// Where a process that runs on this state folder says, best on this address. Asked anew for every request: a gateway
    /// that ended has let go of its address, and whoever has it then must not get the token.
    Claimed(PathBuf, SocketAddr),
}

/// What an error answer says.
#[derive(Deserialize)]
struct Problem {
    detail: String,
}

impl Connect {
    /// Finds the address and the token.
    ///
    /// # Errors
    /// An invalid configuration, no address, no token.
    pub fn client(&self) -> Result<Client, Failure> {
        let found = self.config.clone().or_else(|| Some(PathBuf::from(CONFIG_FILE)).filter(|file| file.exists()));
        let config = found.as_deref().map(config::load).transpose().map_err(Failure::Config)?;
        let state_dir = match &config {
            Some(config) => Some(config.state_dir.clone()),
            None => config::default_state_dir(&|name| std::env::var(name).ok()),
        };
        let place = match (&self.url, &state_dir) {
            (Some(url), _) => Place::At(read_url(url)?),
            (None, Some(folder)) => {
                let wanted = config.map_or(Listen::admin().address, |config| config.admin.address);
                Place::Claimed(folder.clone(), wanted)
            }
            (None, None) => {
                return Err(Failure::Usage("there is no configuration and no home folder; give --url".into()));
            }
        };
        // The token of the state folder is for the gateway of this machine: another address never gets it unasked.
        let is_ours = match &place {
            Place::At(url) => is_loopback(url),
            Place::Claimed(..) => true,
        };
        let token = self.token(state_dir.filter(|_| is_ours).as_deref())?;
        Client::new(place, token)
    }

    fn token(&self, state_dir: Option<&Path>) -> Result<Secret, Failure> {
        if let Some(file) = &self.token_file {
            return read_token(file);
        }
        if let Ok(token) = std::env::var("PORTCULLIS_TOKEN") {
            return Ok(Secret::new(token.trim()));
        }
        let file = state_dir.map(|folder| folder.join(TOKEN_FILE));
        match file {
            Some(file) if file.exists() => read_token(&file),
            file => {
                let place = file.map_or_else(String::new, |file| format!(" in {}", file.display()));
                Err(Failure::Other(format!(
                    "there is no approver's token{place}; `portcullis serve` makes one where no approvers are configured, \
                     else give --token-file or set PORTCULLIS_TOKEN"
                )))
            }
        }
    }
}

impl Client {
    fn new(place: Place, token: Secret) -> Result<Self, Failure> {
        let is_https = matches!(&place, Place::At(url) if url.scheme() == "https");
        Ok(Self { http: http_client(is_https)?, place, token })
    }

    /// A connection to the gateway at `url`, as whoever `token` belongs to.
    ///
    /// # Errors
    /// It is no web address.
    pub fn to(url: &str, token: Secret) -> Result<Self, Failure> {
        Self::new(Place::At(read_url(url)?), token)
    }

    /// Fetches `path` (below `/api/v1/`), as the gateway wrote it.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<String, Failure> {
        self.ask(Method::GET, self.url(path, query)?, None).await
    }

    /// Posts a JSON body to `path`.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn post(&self, path: &str, body: &impl Serialize) -> Result<String, Failure> {
        let body = serde_json::to_string(body).map_err(|error| Failure::Other(format!("it is no JSON: {error}")))?;
        self.ask(Method::POST, self.url(path, &[])?, Some(body)).await
    }

    /// Deletes `path`.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn delete(&self, path: &str) -> Result<String, Failure> {
        self.ask(Method::DELETE, self.url(path, &[])?, None).await
    }

    /// Opens the event stream.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn events(&self) -> Result<Events, Failure> {
        let response = self.send(Method::GET, self.url("events", &[])?, None).await?;
        Ok(Events { body: response.into_body(), decoder: Decoder::new(MAX_ANSWER), ready: Vec::new().into_iter() })
    }

    fn url(&self, path: &str, query: &[(&str, &str)]) -> Result<Url, Failure> {
        let mut url = self.place.base()?;
        let mut segments = url.path_segments_mut().map_err(|()| Failure::Other("this is no web address".into()))?;
        segments.pop_if_empty().extend(["api", "v1"]).extend(path.split('/'));
        drop(segments);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        Ok(url)
    }

    async fn ask(&self, method: Method, url: Url, body: Option<String>) -> Result<String, Failure> {
        let answer = async {
            let response = self.send(method, url, body).await?;
            let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
            let bytes = body.map_err(|error| Failure::Other(format!("the gateway's answer broke off: {error}")))?;
            String::from_utf8(bytes.to_bytes().into()).map_err(|_| Failure::Other("the answer is not text".into()))
        };
        let late = || Failure::Other("the gateway does not answer in time".into());
        tokio::time::timeout(TIMEOUT, answer).await.unwrap_or_else(|_| Err(late()))
    }

    async fn send(&self, method: Method, url: Url, body: Option<String>) -> Result<Response<Incoming>, Failure> {
        let base = url.origin().ascii_serialization();
        let mut request = Request::builder()
            .method(method)
            .uri(url.as_str())
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token.expose()))
            .header("x-portcullis-channel", "cli");
        if body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request
            .body(Full::from(body.unwrap_or_default()))
            .map_err(|error| Failure::Other(format!("the request cannot be written: {error}")))?;
        let response = self.http.request(request).await.map_err(|error| {
            let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            Failure::Other(format!("no gateway answers at {base}: {why}; is `portcullis serve` running?"))
        })?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(response).await) }
    }
}

impl Place {
    fn base(&self) -> Result<Url, Failure> {
        match self {
            Self::At(url) => Ok(url.clone()),
            Self::Claimed(folder, wanted) => {
                let claimed = process::claimed(folder);
                let there = claimed.iter().find(|address| *address == wanted).or(claimed.first());
                let nobody = || {
                    Failure::Other(format!(
                        "no gateway runs on the state folder {}; start `portcullis serve`, or give --url if yours runs \
                         elsewhere or as another user (a token goes to no address that no running gateway vouches for)",
                        folder.display()
                    ))
                };
                read_url(&format!("http://{}", there.ok_or_else(nobody)?))
            }
        }
    }
}

/// The event stream of a gateway.
pub struct Events {
    body: Incoming,
    decoder: Decoder,
    ready: std::vec::IntoIter<Event>,
}

impl Events {
    /// The next event's name and JSON; none when the stream has ended.
    ///
    /// # Errors
    /// The stream broke off, or has been silent for too long.
    pub async fn next(&mut self) -> Result<Option<(String, String)>, Failure> {
        loop {
            for event in self.ready.by_ref() {
                if let (Some(name), Ok(data)) = (event.event, String::from_utf8(event.data.into())) {
                    return Ok(Some((name, data)));
                }
            }
            let frame = tokio::time::timeout(SILENCE, self.body.frame())
                .await
                .map_err(|_| Failure::Other("the gateway has gone silent".into()))?;
            let Some(frame) = frame else { return Ok(None) };
            let frame = frame.map_err(|error| Failure::Other(format!("the event stream broke off: {error}")))?;
            let chunk = frame.into_data().unwrap_or_default();
            let events = self.decoder.push(&chunk).map_err(|error| Failure::Other(error.to_string()))?;
            self.ready = events.into_iter();
        }
    }
}

/// Reads one of the API's objects.
///
/// # Errors
/// It is not one that this version knows.
pub fn read<T: DeserializeOwned>(json: &str) -> Result<T, Failure> {
    serde_json::from_str(json)
        .map_err(|error| Failure::Other(format!("the gateway's answer is not what was expected: {error}")))
}

async fn refusal(response: Response<Incoming>) -> Failure {
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await.map(|body| body.to_bytes());
    let detail = match body.ok().and_then(|body| serde_json::from_slice::<Problem>(&body).ok()) {
        Some(problem) => crate::pattern::visible(&problem.detail),
        None => status.canonical_reason().unwrap_or("refused").to_lowercase(),
    };
    Failure::Refused { status, detail }
}

fn read_url(text: &str) -> Result<Url, Failure> {
    let url = Url::parse(text).map_err(|error| Failure::Usage(format!("{text} is no web address: {error}")))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        scheme => Err(Failure::Usage(format!("a gateway is reached over http or https, not {scheme}"))),
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

fn read_token(file: &Path) -> Result<Secret, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::Other(format!("the token in {} cannot be read: {error}", file.display())))?;
    Ok(Secret::new(text.trim()))
}

/// The machine's trusted roots are read only where they are needed.
fn http_client(is_https: bool) -> Result<HttpClient<HttpsConnector<HttpConnector>, Full<Bytes>>, Failure> {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::Other(error.to_string()))?;
    let tls =
        if is_https { tls.with_native_roots()? } else { tls.with_root_certificates(rustls::RootCertStore::empty()) };
    let connector = HttpsConnectorBuilder::new().with_tls_config(tls.with_no_client_auth()).https_or_http();
    Ok(HttpClient::builder(TokioExecutor::new()).build(connector.enable_http1().build()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::admin::tests::side::{AGENT, ANA, DIGEST, Side};

    fn client_as(base: &str, token: &str) -> Client {
        Client::to(base, Secret::new(token)).unwrap()
    }

    fn client(base: &str) -> Client {
        client_as(base, "t")
    }

    #[tokio::test]
    async fn a_gateway_is_listened_to_and_told() {
        let side = Side::start().await;
        let ana = client_as(&side.base, ANA);
        let mut events = ana.events().await.unwrap();
        side.hold("1").await;
        let (name, approval) = events.next().await.unwrap().unwrap();
        let approval: serde_json::Value = read(&approval).unwrap();
        assert_eq!((name.as_str(), approval["id"].as_str().unwrap()), ("approval", "apr_1"));
        let list: serde_json::Value = read(&ana.get("approvals", &[("state", "waiting")]).await.unwrap()).unwrap();
        assert_eq!(list["items"][0]["id"], "apr_1");
        let body = serde_json::json!({"digest": DIGEST});
        let decided = ana.post("approvals/apr_1/approve", &body).await.unwrap();
        assert_eq!(read::<serde_json::Value>(&decided).unwrap()["votes"][0]["channel"], "cli");
    }

    #[tokio::test]
    async fn a_refusal_keeps_the_gateways_words() {
        let side = Side::start().await;
        let refused = client_as(&side.base, AGENT).get("me", &[]).await.unwrap_err();
        assert!(matches!(&refused, Failure::Refused { status: StatusCode::UNAUTHORIZED, .. }), "{refused}");
        assert!(refused.to_string().contains("an agent's token is not good here"), "{refused}");
        assert_eq!(refused.report(), Exit::Failed);
        let base = side.base.clone();
        side.stop().await;
        let gone = client_as(&base, ANA).get("me", &[]).await.unwrap_err();
        assert!(gone.to_string().contains("portcullis serve"), "{gone}");
    }

    /// An agent of another user listens where the gateway would: it hears nothing.
    #[tokio::test]
    async fn a_token_goes_only_where_a_running_gateway_vouches_for() {
        let stranger = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = stranger.local_addr().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let place = || Place::Claimed(dir.path().to_owned(), address);
        let client = Client::new(place(), Secret::new("t")).unwrap();
        let refused = client.get("me", &[]).await.unwrap_err().to_string();
        assert!(refused.contains("no gateway runs on the state folder"), "{refused}");

        let alive = process::Alive::register(dir.path()).unwrap();
        let claim = process::Claim::make(dir.path(), alive.id(), address).unwrap();
        assert_eq!(place().base().unwrap().port(), Some(address.port()));
        // A crash leaves the claim behind: the connection of a `watch` must not go on to whoever comes then.
        drop(alive);
        assert!(client.events().await.is_err());
        assert!(client.post("approvals/apr_1/approve", &serde_json::json!({})).await.is_err());
        drop(claim);
        let heard = tokio::time::timeout(Duration::from_millis(100), stranger.accept()).await;
        assert!(heard.is_err(), "somebody connected");
    }

    #[test]
    fn ids_stay_inside_their_segment() {
        let url = |base, path| client(base).url(path, &[]).unwrap().to_string();
        assert_eq!(url("http://h:1", "approvals/apr_1"), "http://h:1/api/v1/approvals/apr_1");
        assert_eq!(url("https://h/gate/", "me"), "https://h/gate/api/v1/me");
        assert_eq!(url("http://h:1", "calls/a?b#c"), "http://h:1/api/v1/calls/a%3Fb%23c");
        let query = client("http://h").url("calls", &[("agent", "a&b=c")]).unwrap();
        assert_eq!(query.as_str(), "http://h/api/v1/calls?agent=a%26b%3Dc");
    }

    #[test]
    fn only_http_addresses_are_spoken_to() {
        assert!(read_url("file:///etc/passwd").is_err());
        assert!(read_url("127.0.0.1:7071").is_err());
        for (url, expected) in [
            ("http://127.0.0.1:7071", true),
            ("http://localhost", true),
            ("http://[::1]:1", true),
            ("http://127.0.0.1.evil.example", false),
            ("https://gate.example", false),
        ] {
            assert_eq!(is_loopback(&read_url(url).unwrap()), expected, "{url}");
        }
    }
}

//! One URL, the headers that go with it, and the pool of connections to it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, Error, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::oneshot;

use crate::gate::{Fault, UpstreamError};
use crate::outbound;
use crate::secret::Secret;
use crate::upstream::{may_have_run, not_run};

/// How long it may take until a request is on its way: look-up, connection, TLS.
pub(super) const CONNECT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept. Node and uvicorn close theirs after 5 s, and a call that meets the closing is
/// lost, since it must not be sent twice.
const IDLE: Duration = Duration::from_secs(4);
/// How often a silent connection is probed, so that a vanished machine is noticed.
const PROBE: Duration = Duration::from_secs(30);

/// Where requests go.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub id: String,
    url: Uri,
    /// Scheme, host and port: a path or query may hold a key.
    shown: String,
    headers: HeaderMap,
    client: Client<HttpsConnector<HttpConnector>, Announced>,
    up: AtomicBool,
}

impl Endpoint {
    /// # Errors
    /// The URL or a header cannot be used, or there are no root certificates for https; says what to do.
    pub fn new(id: &str, url: &str, headers: &[(String, Secret)]) -> Result<Self, UpstreamError> {
        let wrong = |what: String| not_run(Fault::Unreachable, format!("upstream `{id}`: {what}"));
        let url: Uri = url.parse().map_err(|error| wrong(format!("its `url` is none ({error})")))?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) = (url.scheme_str(), url.authority()) else {
            return Err(wrong("its `url` must start with http:// or https://".into()));
        };
        if authority.as_str().contains('@') {
            return Err(wrong("its `url` names a user; put the credential under `headers`".into()));
        }
        let mut map = HeaderMap::new();
        map.insert(header::USER_AGENT, HeaderValue::from_static(concat!("portcullis/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in headers {
            let name = HeaderName::try_from(name)
                .map_err(|_| wrong(format!("`{}` is no name of a header", name.escape_debug())))?;
            let mut value = HeaderValue::from_str(value.expose())
                .map_err(|_| wrong(format!("the value of header `{name}` has characters that no header may have")))?;
            value.set_sensitive(true);
            map.insert(name, value);
        }
        Ok(Self {
            id: id.to_owned(),
            shown: format!("{scheme}://{authority}"),
            client: client(scheme == "https").map_err(wrong)?,
            url,
            headers: map,
            up: AtomicBool::new(true),
        })
    }

    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    pub fn set_up(&self, up: bool) {
        self.up.store(up, Ordering::Relaxed);
    }

    /// Begins a request. The receiver hears when the body is being written: from then on the far side may act on it.
    pub fn begin(&self, method: Method, headers: HeaderMap, body: Bytes) -> (ResponseFuture, oneshot::Receiver<()>) {
        let (taken, on_its_way) = oneshot::channel();
        let mut request = Request::new(Announced { body: Full::new(body), taken: Some(taken) });
        *request.method_mut() = method;
        *request.uri_mut() = self.url.clone();
        let all = request.headers_mut();
        *all = self.headers.clone();
        for (name, value) in headers {
            if let Some(name) = name {
                all.insert(name, value);
            }
        }
        (self.client.request(request), on_its_way)
    }

    /// Names a broken request. `sent`: whether its body was being written.
    pub fn broken(&self, error: &Error, sent: bool) -> UpstreamError {
        self.set_up(false);
        let (id, shown) = (&self.id, &self.shown);
        let cause = root_cause(error);
        if error.is_connect() || !sent {
            let what = format!("upstream `{id}` cannot be reached at {shown} ({cause}); check `url` and that it runs");
            return not_run(Fault::Unreachable, what);
        }
        may_have_run(Fault::Died, format!("upstream `{id}` closed the connection without an answer ({cause})"))
    }

    /// It took too long until the request could be written.
    pub fn too_slow(&self) -> UpstreamError {
        self.set_up(false);
        let (id, shown) = (&self.id, &self.shown);
        let seconds = CONNECT.as_secs();
        not_run(Fault::Timeout, format!("upstream `{id}` took no request at {shown} within {seconds} s"))
    }
}

fn client(tls: bool) -> Result<Client<HttpsConnector<HttpConnector>, Announced>, String> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(CONNECT));
    tcp.set_keepalive(Some(PROBE));
    let connector = HttpsConnectorBuilder::new().with_tls_config(outbound::tls(tls)?);
    let connector = connector.https_or_http().enable_http1().wrap_connector(tcp);
    Ok(Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .build(connector))
}

fn root_cause(error: &Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// A body that tells when it is being written.
pub(super) struct Announced {
    body: Full<Bytes>,
    taken: Option<oneshot::Sender<()>>,
}

impl Body for Announced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(taken) = self.taken.take() {
            // Nobody waiting for the news is no error.
            let _unheard = taken.send(());
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

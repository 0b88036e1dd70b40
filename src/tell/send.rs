//! Sends one request over HTTP: no redirects, everything bounded.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use crate::clock::Timestamp;
use crate::outbound;

/// How long one request may take, from the look-up of the name to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Bytes of an answer that are read.
const ANSWER: usize = 64 << 10;

/// Why something could not be told. No secret is in it.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// In words.
    pub why: String,
    /// Whether another try may help.
    pub again: bool,
    /// When the far side wants to be asked again.
    pub after: Option<Duration>,
}

impl Failure {
    /// One that another try may mend.
    pub fn passing(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: true, after: None }
    }

    /// One that no try mends.
    pub fn lasting(why: impl Into<String>) -> Self {
        Self { why: why.into(), again: false, after: None }
    }
}

/// A client with a few connections.
pub struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl Sender {
    /// # Errors
    /// There are no root certificates for https.
    pub fn new(tls: bool) -> Result<Self, String> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(PATIENCE));
        let connector = HttpsConnectorBuilder::new().with_tls_config(outbound::tls(tls)?);
        let connector = connector.https_or_http().enable_http1().wrap_connector(tcp);
        // A connection that the far side closed in between would be one more failure; messages are few.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Ok(Self { client })
    }

    /// Posts JSON; the answer's body where it was taken.
    ///
    /// # Errors
    /// It was not taken.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Vec<u8>, now: Timestamp) -> Result<Bytes, Failure> {
        let uri: Uri = url.parse().map_err(|_| Failure::lasting("its address is none"))?;
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        let all = request.headers_mut();
        let agent = concat!("portcullis/", env!("CARGO_PKG_VERSION"));
        all.insert(header::USER_AGENT, header::HeaderValue::from_static(agent));
        all.entry(header::CONTENT_TYPE)
            .or_insert_with(|| header::HeaderValue::from_static("application/json; charset=utf-8"));
        let exchange = async {
            let answer = self.client.request(request).await.map_err(|error| Failure::passing(root_cause(&error)))?;
            let (head, body) = answer.into_parts();
            let body = Limited::new(body, ANSWER).collect().await;
            if head.status.is_success() {
                // It was taken; what it says may be too long to be read.
                return Ok(body.map(http_body_util::Collected::to_bytes).unwrap_or_default());
            }
            let again = head.status.is_server_error()
                || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS]
                    .contains(&head.status);
            let after = head.headers.get(header::RETRY_AFTER).and_then(|value| retry_after(value.to_str().ok()?, now));
            Err(Failure { why: format!("it answered {}", head.status.as_u16()), again, after })
        };
        match tokio::time::timeout(PATIENCE, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure::passing(format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }
}

/// Seconds, or a date (RFC 9110, section 10.2.3).
fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(value.trim()).ok()?;
    Some(Timestamp::from_millis(date.timestamp().as_millisecond()).since(now))
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_to_come_again_is_seconds_or_a_date() {
        let now = Timestamp::from_millis(1_796_000_000_000);
        assert_eq!(retry_after("7", now), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("Mon, 30 Nov 2026 00:53:50 GMT", now), Some(Duration::from_secs(30)));
        assert_eq!(retry_after("Mon, 30 Nov 2026 00:53:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
    }
}

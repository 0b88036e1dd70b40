//! A small HTTP client: requests with a body, answers read whole or event by event.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::time::timeout;

/// No event that a test waits for takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Connections of one test.
#[derive(Clone)]
pub struct Http(Client<HttpConnector, Full<Bytes>>);

impl Http {
    pub fn new() -> Self {
        Self(Client::builder(TokioExecutor::new()).build_http())
    }

    /// Sends a request; the headers of the answer are there when this returns.
    pub async fn send(&self, method: Method, url: &str, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
        self.attempt(method, url, headers, body).await.unwrap_or_else(|e| panic!("{url}: {e}"))
    }

    /// The same at a server that may not be there.
    pub async fn attempt(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Answer, String> {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body.into())).expect("a request");
        let (parts, body) = self.0.request(request).await.map_err(|e| format!("{e:?}"))?.into_parts();
        Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body, buffer: Vec::new() })
    }
}

/// An answer whose body may still be coming.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    body: Incoming,
    buffer: Vec<u8>,
}

impl Answer {
    /// A header's text; empty if there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The whole body.
    pub async fn text(self) -> String {
        let rest = self.body.collect().await.expect("the body").to_bytes();
        String::from_utf8([self.buffer.as_slice(), &rest].concat()).expect("UTF-8")
    }

    /// The whole body as JSON; none if it breaks off.
    pub async fn try_json(self) -> Option<Value> {
        serde_json::from_slice(&self.body.collect().await.ok()?.to_bytes()).ok()
    }

    /// The whole body as JSON.
    pub async fn json(self) -> Value {
        self.try_json().await.expect("a body in JSON")
    }

    /// The next server-sent event's data as JSON, and how many comments came before it; none when the stream has ended.
    pub async fn event(&mut self) -> Option<(Value, usize)> {
        timeout(PATIENCE, self.next_event()).await.expect("an event in time")
    }

    async fn next_event(&mut self) -> Option<(Value, usize)> {
        let mut comments = 0;
        loop {
            while let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let text = String::from_utf8(block).expect("UTF-8");
                comments += text.lines().filter(|line| line.starts_with(':')).count();
                let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data:")).collect();
                if !data.is_empty() {
                    let data = data.join("\n");
                    if data.trim().is_empty() {
                        continue;
                    }
                    return Some((serde_json::from_str(&data).expect("an event in JSON"), comments));
                }
            }
            let frame = self.body.frame().await?.ok()?;
            if let Ok(data) = frame.into_data() {
                self.buffer.extend(data.iter().filter(|byte| **byte != b'\r'));
            }
        }
    }
}

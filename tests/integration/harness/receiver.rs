//! A server that is told of held calls: keeps what it was sent, and answers as it was told to.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::eventually;

/// What to do with one request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// This status, with these headers and this body.
    Status(u16, Vec<(&'static str, String)>, Value),
    /// Close the connection without a word.
    Drop,
    /// Say nothing at all.
    Hang,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Received {
    pub path: String,
    pub headers: HeaderMap,
    pub text: String,
}

impl Received {
    /// Its body.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// A header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("text"))
    }
}

/// The server. It answers 200 and `{"ok":true}` once its script is over.
#[derive(Clone)]
pub struct Receiver {
    pub origin: String,
    received: Arc<Mutex<Vec<Received>>>,
    script: Arc<Mutex<VecDeque<Answer>>>,
}

impl Receiver {
    /// On a free port of this machine.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let receiver = Self {
            origin: format!("http://{}", listener.local_addr().expect("an address")),
            received: Arc::default(),
            script: Arc::default(),
        };
        let server = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = server.clone();
                tokio::spawn(async move {
                    let service = service_fn(move |request| server.clone().answer(request));
                    // A connection that is dropped on purpose ends with an error.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        receiver
    }

    /// What it does next, before it only says yes.
    pub fn will(&self, answers: impl IntoIterator<Item = Answer>) {
        self.script.lock().unwrap().extend(answers);
    }

    /// All it was sent so far.
    pub fn all(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// All it was sent, once that is so many.
    pub async fn many(&self, many: usize) -> Vec<Received> {
        let all = || async { Some(self.all()).filter(|all| all.len() >= many) };
        eventually(&format!("{many} messages"), all).await
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, std::io::Error> {
        let (head, body) = request.into_parts();
        let text = String::from_utf8(body.collect().await.expect("a body").to_bytes().to_vec()).expect("text");
        self.received.lock().unwrap().push(Received { path: head.uri.path().to_owned(), headers: head.headers, text });
        let answer = self.script.lock().unwrap().pop_front();
        match answer.unwrap_or_else(|| Answer::Status(200, Vec::new(), json!({ "ok": true }))) {
            Answer::Status(status, headers, body) => {
                let mut response = Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                Ok(response.body(Full::new(body.to_string().into())).expect("a response"))
            }
            Answer::Drop => Err(std::io::Error::other("dropped")),
            Answer::Hang => {
                tokio::time::sleep(Duration::from_secs(600)).await;
                Err(std::io::Error::other("it hung"))
            }
        }
    }
}

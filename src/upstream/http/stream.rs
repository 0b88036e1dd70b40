//! A body of server-sent events, and how one that broke is taken up again.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::headers::{self, EVENTS};
use super::link::Shared;
use crate::message::sse::{Decoder, Event};
use crate::upstream::MAX_MESSAGE;
use crate::upstream::backoff::pause;

/// The shortest pause before a stream is taken up again: a server may end each one after its first event.
const SHORTEST: Duration = Duration::from_millis(250);

/// Reads events off a response.
pub(super) struct Events {
    body: Incoming,
    decoder: Decoder,
    ready: VecDeque<Event>,
}

/// Why there are no more events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stopped {
    /// The stream ended or the connection broke.
    Ended,
    /// An event is too long.
    TooLong,
}

impl Events {
    pub fn new(body: Incoming) -> Self {
        Self { body, decoder: Decoder::new(MAX_MESSAGE), ready: VecDeque::new() }
    }

    /// The next event.
    ///
    /// # Errors
    /// There will be none.
    pub async fn next(&mut self) -> Result<Event, Stopped> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            let frame = self.body.frame().await.and_then(Result::ok).ok_or(Stopped::Ended)?;
            if let Ok(data) = frame.into_data() {
                self.ready.extend(self.decoder.push(&data).map_err(|_| Stopped::TooLong)?);
            }
        }
    }

    /// Reads on to the end, so that the connection can be used again; events are ignored.
    pub async fn finish(mut self) {
        while self.next().await.is_ok() {}
    }
}

/// Whether an event carries a message; others prime a client, or are of another kind.
pub(super) fn message_of(event: Event) -> Option<Bytes> {
    (event.event.is_none() && !event.data.is_empty()).then_some(event.data)
}

/// Where a stream stands.
#[derive(Debug, Default)]
pub(super) struct Position {
    /// The id of the last event that had one.
    pub last_event: Option<String>,
    retry: Duration,
    /// Tries since something was last heard.
    pub failures: u32,
}

impl Position {
    pub fn note(&mut self, event: &Event) {
        self.failures = 0;
        if let Some(id) = &event.id {
            self.last_event = Some(id.clone()).filter(|id| !id.is_empty());
        }
        if let Some(retry) = event.retry {
            self.retry = Duration::from_millis(retry).min(pause(u32::MAX));
        }
    }

    /// Waits as long as the server asked, longer after failures.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.retry.max(pause(self.failures)).max(SHORTEST)).await;
        self.failures = self.failures.saturating_add(1);
    }
}

/// Opens a stream by GET, going on after the last event that was read.
///
/// # Errors
/// The status, if there is one, when that is no stream.
pub(super) async fn get(shared: &Shared, position: &Position) -> Result<Events, Option<StatusCode>> {
    let headers = headers::of_get(&shared.conversation(), position.last_event.as_deref());
    let (response, _) = shared.endpoint.begin(Method::GET, headers, Bytes::new());
    let response = response.await.map_err(|_| None)?;
    match is_events(&response) && response.status() == StatusCode::OK {
        true => Ok(Events::new(response.into_body())),
        false => Err(Some(response.status())),
    }
}

/// Whether a response is a stream of events.
pub(super) fn is_events(response: &Response<Incoming>) -> bool {
    content_type(response).eq_ignore_ascii_case(EVENTS)
}

/// The media type of a response without its parameters; empty if there is none.
pub(super) fn content_type(response: &Response<Incoming>) -> &str {
    let value = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.and_then(|value| value.split(';').next()).unwrap_or_default().trim()
}

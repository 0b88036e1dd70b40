//! From what the gate tells a client to an HTTP answer: JSON where it is quick, else a stream of events.
//!
//! The answer owns the exchange: when the client goes away, the server drops the answer and with it the exchange, which is
//! how the gate learns of it.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, StatusCode, header};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::headers::Accept;
use super::refused::json_reply;
use crate::gate::{Exchange, Reply, ToClient};
use crate::listen::closed;
use crate::message::sse;

/// When a client hears something.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// How long an answer may take before a stream is begun for it.
    pub quick: Duration,
    /// How often a silent stream shows that it lives.
    pub heartbeat: Duration,
}

/// What clients bear (headers within a minute, no silence over half a minute at proxies).
pub(super) const PACE: Pace = Pace { quick: Duration::from_secs(5), heartbeat: Duration::from_secs(10) };

/// Answers a request. A client that cannot read streams waits for the JSON, without what comes before it.
pub(super) async fn exchange(mut exchange: Exchange, accept: Accept, pace: Pace) -> Response {
    if accept.stream {
        return match timeout(pace.quick, exchange.events.recv()).await {
            Ok(Some(ToClient::Done(reply))) => finished(reply, accept),
            Ok(first) => streamed(first, exchange.events, pace),
            Err(_) => streamed(None, exchange.events, pace),
        };
    }
    loop {
        match exchange.events.recv().await {
            Some(ToClient::Done(reply)) => return json_reply(reply),
            Some(ToClient::Held | ToClient::Message(_)) => {}
            None => return accepted(),
        }
    }
}

/// A finished answer in the form that the client reads. A status that tells something travels as JSON.
pub(super) fn finished(reply: Reply, accept: Accept) -> Response {
    if accept.json || reply.status != 200 {
        return json_reply(reply);
    }
    events(Body::from(sse::event_bytes(None, &reply.bytes)))
}

/// A notification or a response was taken; also a request that its client cancelled: no answer is owed.
pub(super) fn accepted() -> Response {
    status(StatusCode::ACCEPTED)
}

/// No body.
pub(super) fn status(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// What belongs to no request, until the client or the gateway goes.
pub(super) fn listening(messages: mpsc::Receiver<Bytes>, mut closing: watch::Receiver<bool>, pace: Pace) -> Response {
    let closed = async move { closed(&mut closing).await };
    let stream = beating(None, messages, pace, |message| (sse::event_bytes(None, &message), false));
    events(Body::from_stream(stream.take_until(closed)))
}

fn streamed(first: Option<ToClient>, steps: mpsc::Receiver<ToClient>, pace: Pace) -> Response {
    events(Body::from_stream(beating(first, steps, pace, |step| match step {
        ToClient::Held => (sse::comment(), false),
        ToClient::Message(message) => (sse::event_bytes(None, &message), false),
        ToClient::Done(reply) => (sse::event_bytes(None, &reply.bytes), true),
    })))
}

/// The frames of what comes from `source`, and a comment where nothing comes for a while; ends with the source or after
/// a frame that `frame` calls the last.
fn beating<T: Send + 'static>(
    first: Option<T>,
    source: mpsc::Receiver<T>,
    pace: Pace,
    frame: fn(T) -> (Bytes, bool),
) -> impl stream::Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    stream::unfold(Some((first, source)), move |state| async move {
        let (first, mut source) = state?;
        let next = match first {
            Some(first) => Some(first),
            None => match timeout(pace.heartbeat, source.recv()).await {
                Ok(next) => next,
                Err(_) => return Some((Ok(sse::comment()), Some((None, source)))),
            },
        };
        let (bytes, last) = frame(next?);
        Some((Ok(bytes), (!last).then_some((None, source))))
    })
}

fn events(body: Body) -> Response {
    let mut response = Response::new(body);
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        (header::HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use http_body_util::BodyExt as _;

    use super::*;

    const BOTH: Accept = Accept { json: true, stream: true };
    const JSON: Accept = Accept { json: true, stream: false };
    /// Nothing is slow, and nothing beats.
    const PATIENT: Pace = Pace { quick: Duration::from_secs(60), heartbeat: Duration::from_secs(60) };
    const BRISK: Pace = Pace { quick: Duration::from_millis(5), heartbeat: Duration::from_millis(5) };

    fn started(steps: impl IntoIterator<Item = ToClient>) -> (mpsc::Sender<ToClient>, Exchange) {
        let (tx, events) = mpsc::channel(8);
        steps.into_iter().for_each(|step| tx.try_send(step).unwrap());
        (tx, Exchange { events })
    }

    fn done(text: &'static str, status: u16) -> ToClient {
        ToClient::Done(Reply { bytes: Bytes::from_static(text.as_bytes()), status })
    }

    async fn text(response: Response) -> (u16, String, String) {
        let kind = response.headers().get("content-type").map_or("", |v| v.to_str().unwrap()).to_owned();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, kind, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_quick_answer_is_json_with_its_status() {
        let (_tx, quick) = started([done("{}", 404)]);
        let response = exchange(quick, BOTH, PATIENT).await;
        assert_eq!(text(response).await, (404, "application/json".into(), "{}".into()));
    }

    #[tokio::test]
    async fn a_held_call_streams_what_comes_in_order_and_ends_with_its_answer() {
        let (_tx, held) = started([ToClient::Held, ToClient::Message("{\"n\":1}".into()), done("{}", 404)]);
        let response = exchange(held, BOTH, PATIENT).await;
        assert_eq!(response.headers()["x-accel-buffering"], "no");
        let (status, kind, body) = text(response).await;
        assert_eq!((status, kind.as_str()), (200, "text/event-stream"));
        assert_eq!(body, ": waiting\n\nevent: message\ndata: {\"n\":1}\n\nevent: message\ndata: {}\n\n");
    }

    #[tokio::test]
    async fn a_slow_answer_becomes_a_stream_that_shows_that_it_lives() {
        let (tx, slow) = started([]);
        let mut body = exchange(slow, BOTH, BRISK).await.into_body();
        for _ in 0..3 {
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), ": waiting\n\n");
        }
        tx.send(done("{}", 200)).await.unwrap();
        let rest = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        assert!(rest.ends_with("event: message\ndata: {}\n\n"), "{rest}");
    }

    #[tokio::test]
    async fn a_client_without_streams_waits_for_json_and_one_without_json_reads_events() {
        let steps = || [ToClient::Held, ToClient::Message("{}".into()), done("{\"a\":1}", 200)];
        let (_tx, slow) = started(steps());
        let response = exchange(slow, JSON, BRISK).await;
        assert_eq!(text(response).await, (200, "application/json".into(), "{\"a\":1}".into()));
        let (_tx, quick) = started([done("{}", 200)]);
        let response = exchange(quick, Accept { json: false, stream: true }, PATIENT).await;
        assert_eq!(text(response).await.2, "event: message\ndata: {}\n\n");
    }

    #[tokio::test]
    async fn a_cancelled_request_is_owed_no_answer() {
        let (tx, gone) = started([]);
        drop(tx);
        let response = exchange(gone, BOTH, PATIENT).await;
        assert_eq!(text(response).await, (200, "text/event-stream".into(), String::new()));
        let (tx, gone) = started([]);
        drop(tx);
        assert_eq!(exchange(gone, JSON, PATIENT).await.status(), 202);
    }

    #[tokio::test]
    async fn a_listening_stream_ends_with_the_gateway() {
        let (tx, rx) = mpsc::channel(1);
        tx.send("{}".into()).await.unwrap();
        let (close, closing) = watch::channel(false);
        let mut body = listening(rx, closing, PATIENT).into_body();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "event: message\ndata: {}\n\n");
        close.send(true).unwrap();
        assert!(body.frame().await.is_none());
    }
}

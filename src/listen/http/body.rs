//! The body of a request, bounded in bytes and in time.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use tokio::time::timeout;

use super::refused::Refused;

/// How long a client may take for its body.
const WHOLE: Duration = Duration::from_secs(30);

/// How long the rest of a body that is too large is read and thrown away: a client that is still writing would
/// otherwise see a broken connection instead of the answer.
const REST: Duration = Duration::from_secs(2);

/// Reads the body.
///
/// # Errors
/// It is too large, too slow, or ended in the middle.
pub(super) async fn read(mut body: Body, max: usize) -> Result<Bytes, Refused> {
    match timeout(WHOLE, bounded(&mut body, max)).await {
        Ok(Ok(Some(bytes))) => Ok(bytes),
        Ok(Ok(None)) => {
            let _ = timeout(REST, async { while body.frame().await.is_some_and(|frame| frame.is_ok()) {} }).await;
            Err(problem(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is larger than the {max} bytes allowed")))
        }
        Ok(Err(error)) => Err(problem(StatusCode::BAD_REQUEST, format!("the body could not be read: {error}"))),
        Err(_) => Err(problem(StatusCode::REQUEST_TIMEOUT, format!("the body took over {} s", WHOLE.as_secs()))),
    }
}

fn problem(status: StatusCode, detail: String) -> Refused {
    Refused::Problem(status, detail)
}

/// The whole body; none if it is larger than `max`.
async fn bounded(body: &mut Body, max: usize) -> Result<Option<Bytes>, axum::Error> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > max {
        return Ok(None);
    }
    let mut whole = BytesMut::with_capacity(announced);
    while let Some(frame) = body.frame().await.transpose()? {
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > max {
            return Ok(None);
        }
        whole.extend_from_slice(&data);
    }
    Ok(Some(whole.freeze()))
}

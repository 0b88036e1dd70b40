//! Errors as RFC 9457 problem details: one type, one table from store and state machine to status.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, Uri, header};
use schemars::JsonSchema;
use serde::Serialize;

use crate::approval::Refused;
use crate::record::{ClarificationState, word};
use crate::store::StoreError;

/// A refusal as the outside reads it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Problem {
    /// A stable word for programs, as a URN.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The status in words.
    title: &'static str,
    /// The status as a number.
    #[serde(serialize_with = "as_number")]
    #[schemars(with = "u16", range(min = 400, max = 599))]
    status: StatusCode,
    /// What is wrong with this request, and what to do.
    detail: String,
    /// Where the approval stands now, if that is why.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
}

impl Problem {
    fn new(status: StatusCode, kind: &'static str, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { kind, title, status, detail: detail.into(), state: None }
    }

    /// 400: the request does not say what it has to.
    pub fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "urn:portcullis:bad-request", detail)
    }

    /// 400: a cursor that no list gave, or whose place is gone.
    pub fn no_cursor() -> Self {
        Self::bad_request("`cursor` is not the `next` of a page of this list; leave it out to begin anew")
    }

    /// 401: no credential, or one that is no good.
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "urn:portcullis:unauthorized", detail)
    }

    /// 403: known, but not allowed to.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "urn:portcullis:forbidden", detail)
    }

    /// 404: unknown, or not visible to this approver; the two are never told apart.
    pub fn not_found() -> Self {
        Self::nothing("there is nothing of that name that you can see")
    }

    /// 404, for a reason that the request alone gives: nothing is told of what there is.
    pub fn nothing(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "urn:portcullis:not-found", detail)
    }

    /// 412: the tool is offered with another definition than the one that was shown.
    pub fn another_definition() -> Self {
        let detail = "the tool is no longer defined as you were shown; fetch it again and look at what changed";
        Self::new(StatusCode::PRECONDITION_FAILED, "urn:portcullis:another-digest", detail)
    }

    /// 409: what is offered under the tool's name is no definition.
    pub fn unreadable_definition() -> Self {
        let detail = "what the upstream offers under that name cannot be read and reaches no client, so there is nothing to accept";
        Self::new(StatusCode::CONFLICT, "urn:portcullis:unreadable", detail)
    }

    /// 413: too long a body.
    pub fn too_large(limit: usize) -> Self {
        let detail = format!("the body is longer than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "urn:portcullis:too-large", detail)
    }

    /// 415: a body of another type than JSON.
    pub fn not_json() -> Self {
        let detail = "send the body as JSON, with the header `Content-Type: application/json`";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "urn:portcullis:not-json", detail)
    }

    /// 421: a `Host` that is not ours.
    pub fn misdirected(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::MISDIRECTED_REQUEST, "urn:portcullis:misdirected", detail)
    }

    /// 422: a policy that does not load.
    pub fn invalid_policy(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "urn:portcullis:invalid-policy", detail)
    }

    /// 422: a call that policy denies with the arguments that an approver gave it.
    pub fn denied(by: impl std::fmt::Display) -> Self {
        let detail = format!("policy denies the call with these arguments ({by}); it waits on as it was");
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "urn:portcullis:denied", detail)
    }

    /// 422: an answer for an agent that holds something in the shape of a secret.
    pub fn looks_secret() -> Self {
        let detail = "this answer looks like a secret; an agent should not be told one. Nothing was sent; send it with `\"anyway\": true` if it is none";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "urn:portcullis:looks-secret", detail)
    }

    /// 409: it cannot be done in the state it is in.
    pub fn not_now(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "urn:portcullis:not-now", detail)
    }

    /// 408: the client stopped in the middle of its request.
    pub fn too_slow() -> Self {
        let detail = "the request did not arrive in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "urn:portcullis:too-slow", detail)
    }

    /// 503: the gateway cannot do it now.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "urn:portcullis:unavailable", detail)
    }

    /// Its status code.
    pub fn status(&self) -> u16 {
        self.status.as_u16()
    }

    fn with_state<T: Serialize>(mut self, state: T) -> Self {
        self.state = Some(word(state));
        self
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let (refused, held) = match error {
            StoreError::NotFound => return Self::not_found(),
            StoreError::Unavailable(why) => {
                tracing::error!(%why, "the store does not work");
                return Self::unavailable("the store does not work; see the gateway's log and /readyz");
            }
            StoreError::Refused(refused, held) => (refused, held),
        };
        if held.question.is_some() {
            let state = ClarificationState::of(held.approval.state);
            return match refused {
                Refused::Ended => Self::new(
                    StatusCode::GONE,
                    "urn:portcullis:ended",
                    "this question was taken back or has run out of time: there is nobody left to answer",
                ),
                Refused::NotYours(why) => Self::forbidden(why),
                _ => Self::new(
                    StatusCode::CONFLICT,
                    "urn:portcullis:decided",
                    "this question was answered before you; nothing has changed",
                ),
            }
            .with_state(state);
        }
        let problem = match refused {
            Refused::Decided => Self::new(
                StatusCode::CONFLICT,
                "urn:portcullis:decided",
                "this call was decided otherwise before you; nothing has changed",
            ),
            Refused::NotNow | Refused::Repeated => {
                Self::not_now("this call is not in a state for that; nothing has changed")
            }
            Refused::Ended => Self::new(
                StatusCode::GONE,
                "urn:portcullis:ended",
                "this call has ended: there is nothing left to decide",
            ),
            Refused::Digest => Self::new(
                StatusCode::PRECONDITION_FAILED,
                "urn:portcullis:another-digest",
                "this call is no longer what you were shown; fetch the approval again and look at what changed",
            ),
            Refused::NotYours(why) => Self::forbidden(why),
            Refused::ReasonRequired => Self::bad_request("a rejection of this call needs a `note` that says why"),
        };
        problem.with_state(held.approval.state)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"portcullis\""));
        }
        response
    }
}

/// The answer to a path that does not exist.
pub async fn not_found(uri: Uri) -> Problem {
    let near = match super::api::near(uri.path()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "/api/v1/openapi.json lists all that there are".to_owned(),
    };
    Problem::nothing(format!("there is no such path; {near}"))
}

/// The answer to a method that a path does not have.
pub async fn method_not_allowed() -> Problem {
    let detail = "this path does not know that method; see /api/v1/openapi.json";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "urn:portcullis:method-not-allowed", detail)
}

fn as_number<S: serde::Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

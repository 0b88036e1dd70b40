//! What handlers take from a request, strictly, and the pages that lists give.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header;
use http::request::Parts;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use percent_encoding::percent_decode_str;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::super::auth::Who;
use super::super::problem::Problem;
use crate::clock::Timestamp;

/// Bytes of a request body.
pub const MAX_BODY: usize = 1 << 20;
/// How long a client may take over a request body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Items of one page, unless asked otherwise, and at most.
pub const PAGE: usize = 50;
pub const MAX_PAGE: usize = 200;
/// Characters of a search.
const MAX_SEARCH: usize = 200;

/// What every list takes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery<S> {
    /// Only in this state.
    pub state: Option<S>,
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only of this upstream.
    pub upstream: Option<String>,
    /// Only of this policy group.
    group: Option<String>,
    /// Only of this session, as `session` of calls names it.
    pub session: Option<String>,
    /// Only those with all of these words in what the list shows.
    #[schemars(length(max = MAX_SEARCH))]
    q: Option<String>,
    /// Only created at or after.
    pub since: Option<Timestamp>,
    /// Items of the page.
    #[serde(default = "page")]
    #[schemars(range(min = 1, max = MAX_PAGE))]
    limit: usize,
    /// Where the last page ended (`next`).
    pub cursor: Option<String>,
}

const fn page() -> usize {
    PAGE
}

impl<S> ListQuery<S> {
    /// Items of the page.
    ///
    /// # Errors
    /// 400: out of bounds.
    pub fn limit(&self) -> Result<usize, Problem> {
        limit(self.limit)
    }

    /// The groups whose calls are wanted, of those that the reader covers; none for all.
    pub fn groups(&self, who: &Who) -> Option<Vec<String>> {
        match (&self.group, who.approver.covers(self.group.as_deref().unwrap_or_default())) {
            (None, _) => who.groups(),
            (Some(group), true) => Some(vec![group.clone()]),
            (Some(_), false) => Some(Vec::new()),
        }
    }

    /// The words of a search, few and short.
    ///
    /// # Errors
    /// 400: too long.
    pub fn words(&self) -> Result<Vec<String>, Problem> {
        let text = self.q.as_deref().unwrap_or_default();
        if text.chars().count() > MAX_SEARCH {
            return Err(Problem::bad_request(format!("`q` is longer than {MAX_SEARCH} characters")));
        }
        Ok(text.split_whitespace().map(str::to_owned).collect())
    }
}

/// A page's size, within bounds.
///
/// # Errors
/// 400: it is not.
pub fn limit(limit: usize) -> Result<usize, Problem> {
    if (1..=MAX_PAGE).contains(&limit) {
        return Ok(limit);
    }
    Err(Problem::bad_request(format!("`limit` is from 1 to {MAX_PAGE}")))
}

/// One page of a list.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
pub struct Page<T> {
    /// What there is, as many as were asked for.
    pub items: Vec<T>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// The variable parts of the path: a text, or a tuple of them.
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(parts)) => Ok(Self(parts)),
            // What is no text is no name of anything.
            Err(_) => Err(Problem::not_found()),
        }
    }
}

/// Refuses what can be no id of that kind, such as a call's in the place of its approval's.
///
/// # Errors
/// 404, saying how such ids begin and where they are.
pub fn is_id(id: &str, prefix: &str, list: &str) -> Result<(), Problem> {
    if id.starts_with(prefix) {
        return Ok(());
    }
    Err(Problem::nothing(format!("the ids here begin with `{prefix}`; `GET {list}` has them")))
}

/// The query string, strictly.
pub struct Params<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        if percent_decode_str(parts.uri.query().unwrap_or_default()).decode_utf8().is_err() {
            return Err(Problem::bad_request("the query is not UTF-8"));
        }
        let Query(params) =
            Query::try_from_uri(&parts.uri).map_err(|error| Problem::bad_request(error.body_text().to_lowercase()))?;
        Ok(Self(params))
    }
}

/// Refuses a query where nothing reads one, as [`Params`] refuses what it does not know.
pub async fn no_query(request: Request, next: Next) -> Response {
    match request.uri().query() {
        None | Some("") => next.run(request).await,
        Some(_) => Problem::bad_request("this path takes no query; leave out what follows the `?`").into_response(),
    }
}

/// A JSON body, strictly; an empty one counts as `{}`.
pub struct Body<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let bytes = read_body(request).await?;
        let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        let body = serde_json::from_slice(text)
            .map_err(|error| Problem::bad_request(format!("the body is not what it has to be: {error}")))?;
        Ok(Self(body))
    }
}

/// A JSON body in the shape of `T`, as the text it is.
pub struct Text<T>(pub String, PhantomData<T>);

impl<T, S: Send + Sync> FromRequest<S> for Text<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let body = read_body(request).await?;
        let text = String::from_utf8(body.into()).map_err(|_| Problem::bad_request("the body is not UTF-8"))?;
        Ok(Self(text, PhantomData))
    }
}

/// A JSON object as it is written, byte for byte.
pub struct RawObject(pub Box<RawValue>);

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('{') { Ok(Self(raw)) } else { Err(D::Error::custom("this is to be an object")) }
    }
}

impl JsonSchema for RawObject {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Object".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object"})
    }
}

/// A whole number, in JSON's own sense: `5.0` is one.
///
/// # Errors
/// It is another number, or none.
pub fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number = serde_json::Number::deserialize(deserializer)?;
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && *float >= 0.0);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, not negative; what is too large is taken as the largest"
    )]
    let whole = number.as_u64().or_else(|| float().map(|float| float as u64));
    whole.ok_or_else(|| D::Error::custom(format!("{number} is not a whole number from 0")))
}

/// The bytes of a JSON body, at most [`MAX_BODY`], in bounded time.
async fn read_body(request: Request) -> Result<Bytes, Problem> {
    let (parts, body) = request.into_parts();
    let reading = Limited::new(body, MAX_BODY).collect();
    let bytes = match tokio::time::timeout(BODY_TIMEOUT, reading).await {
        Err(_) => return Err(Problem::too_slow()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(Problem::too_large(MAX_BODY)),
        Ok(Err(_)) => return Err(Problem::bad_request("the body broke off")),
        Ok(Ok(body)) => body.to_bytes(),
    };
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if bytes.is_empty() || kind.eq_ignore_ascii_case("application/json") { Ok(bytes) } else { Err(Problem::not_json()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_and_five_point_nought_are_whole() {
        let read = |text: &str| whole(&mut serde_json::Deserializer::from_str(text)).ok();
        assert_eq!([read("5"), read("5.0"), read("5e3"), read("0")], [Some(5), Some(5), Some(5000), Some(0)]);
        assert_eq!(read("1e300"), Some(u64::MAX));
        for bad in ["5.5", "-1", "-1.0", "\"5\"", "null", "true"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_list_takes_known_words_only() {
        let read = |uri: &'static str| {
            Query::<ListQuery<crate::record::ApprovalState>>::try_from_uri(&http::Uri::from_static(uri)).is_ok()
        };
        assert!(read("/?state=waiting&since=2026-11-30T00:00:00Z&limit=5&agent=a&upstream=u&cursor=c"));
        for bad in ["/?stat=waiting", "/?state=wait", "/?limit=-1", "/?since=yesterday"] {
            assert!(!read(bad), "{bad}");
        }
    }
}

//! Who is asking: an approver's bearer token, or the cookie of a logged-in browser. Never an agent.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, header};

use super::connections::Usage;
use super::guard::Site;
use super::problem::Problem;
use super::{Admin, login};
use crate::identity::{Approver, Refused};
use crate::record::CallRecord;

pub use crate::config::Role;

/// By which way a browser, a program and the command line decide, as the record names it.
const INBOX: &str = "inbox";
const API: &str = "api";
const CLI: &str = "cli";

/// The header by which the command line says that it is one.
const CHANNEL_HEADER: &str = "x-portcullis-channel";

/// The header with the key that makes a browser's cookie good.
const KEY_HEADER: &str = "x-portcullis-key";

/// An approver who proved it on this request.
#[derive(Clone, Debug)]
pub struct Who {
    /// The approver.
    pub approver: Arc<Approver>,
    /// `inbox`, `api` or `cli`.
    pub channel: &'static str,
}

impl Who {
    /// The approver's name.
    pub fn name(&self) -> &str {
        &self.approver.config.name
    }

    /// Goes on only with that role.
    ///
    /// # Errors
    /// 403.
    pub fn require(&self, role: Role) -> Result<(), Problem> {
        if self.approver.has(role) {
            return Ok(());
        }
        let role = crate::record::word(role);
        Err(Problem::forbidden(format!("this needs the role {role}, which {} does not have", self.name())))
    }

    /// Passes on a call of a group they cover; others do not exist for them.
    ///
    /// # Errors
    /// 404.
    pub fn see(&self, call: &CallRecord) -> Result<(), Problem> {
        if self.approver.covers(&call.group) { Ok(()) } else { Err(Problem::not_found()) }
    }

    /// The groups they cover, as list filters take them: none for all.
    pub fn groups(&self) -> Option<Vec<String>> {
        let groups = &self.approver.config.groups;
        if groups.iter().any(|group| group == "*") { None } else { Some(groups.clone()) }
    }
}

impl FromRequestParts<Arc<Admin>> for Who {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, admin: &Arc<Admin>) -> Result<Self, Problem> {
        let who = admin.authenticate(&parts.headers).await?;
        if let Some(usage) = parts.extensions.get::<Usage>() {
            usage.is_an_approvers();
        }
        Ok(who)
    }
}

impl Admin {
    /// Finds out who sent these headers. A bearer token counts alone: if it is no good, the cookie is not looked at.
    ///
    /// # Errors
    /// 401, saying what would be accepted; 503 if the store does not work.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Who, Problem> {
        if headers.contains_key(header::AUTHORIZATION) {
            let token = bearer(headers)
                .ok_or_else(|| Problem::unauthorized("send one header `Authorization: Bearer TOKEN`"))?;
            let approver = self.approver(token)?;
            let is_cli = headers.get(CHANNEL_HEADER).is_some_and(|channel| channel == CLI);
            return Ok(Who { approver, channel: if is_cli { CLI } else { API } });
        }
        let cookie = login::cookie(headers, &self.cookie_name());
        let key = headers.get(KEY_HEADER).and_then(|key| key.to_str().ok());
        let approver = match (cookie, key) {
            (Some(cookie), Some(key)) => login::resume(self, cookie, key).await?,
            _ => None,
        };
        match approver {
            Some(approver) => Ok(Who { approver, channel: INBOX }),
            None => Err(Problem::unauthorized("log in, or send an approver's token as `Authorization: Bearer TOKEN`")),
        }
    }

    /// The approver a token belongs to.
    ///
    /// # Errors
    /// 401; an agent's token is told that this is not its side.
    pub fn approver(&self, token: &str) -> Result<Arc<Approver>, Problem> {
        let directory = self.gate.directory();
        let now = self.clock.now();
        directory.approver(token, now).map_err(|refused| {
            let detail = match refused {
                _ if directory.agent(Some(token), false, now).is_ok() => {
                    "an agent's token is not good here; approvers have tokens of their own"
                }
                Refused::Expired => "this token has expired; make a new one with `portcullis token new`",
                Refused::Missing | Refused::Unknown => "this token belongs to no approver; one that does is among `approvers` in portcullis.yaml, or in approver.token of the state folder",
            };
            tracing::warn!(detail, "a credential was refused on the admin side");
            Problem::unauthorized(detail)
        })
    }

    /// The names of this site, as configured now.
    pub fn site(&self) -> Site {
        let public = self.gate.config().public_url.as_deref().and_then(|url| url.parse().ok());
        Site { bound: self.bound, public }
    }
}

/// The bearer token, where there is exactly one `Authorization` header and it carries one (RFC 6750, section 2.1).
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (all.next(), all.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn one_bearer_token_or_none() {
        assert_eq!(bearer(&headers(&["Bearer abc"])), Some("abc"));
        assert_eq!(bearer(&headers(&["bearer  abc "])), Some("abc"));
        for bad in [&["Basic abc"][..], &["Bearer"], &["Bearer "], &["Bearer a", "Bearer b"], &[]] {
            assert_eq!(bearer(&headers(bad)), None, "{bad:?}");
        }
    }
}

//! From a one-time link, or a pasted token, to a browser's session.
//!
//! The link carries its token in the fragment, which no server, proxy log or link preview ever sees; the page spends it
//! by a POST. Tokens and cookies are kept as hashes only.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, StatusCode, header};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Admin;
use super::api::{Body, Gives, Operation};
use super::auth::{Role, Who};
use super::problem::Problem;
use crate::clock::Timestamp;
use crate::identity::Approver;
use crate::secret::{TokenHash, random_id};
use crate::store::{Store, StoreError};

/// How long a login link is good.
const LINK_LIFE: Duration = Duration::from_secs(15 * 60);
/// How the token of a login link begins.
const LINK_PREFIX: &str = "pc_login_";
/// How long a browser stays logged in.
const SESSION_LIFE: Duration = Duration::from_secs(12 * 60 * 60);

/// A link that logs an approver's browser in, once and within 15 minutes. `base` is the inbox' address.
///
/// # Errors
/// The store does not work.
pub async fn login_link(store: &Store, now: Timestamp, approver: &str, base: &str) -> Result<String, StoreError> {
    let token = random_id(LINK_PREFIX, 32);
    store.put(&link_key(&token), approver, Some(now.after(LINK_LIFE))).await?;
    Ok(format!("{}/#login={token}", base.trim_end_matches('/')))
}

/// What a browser session is bound to: a name, and the tokens that person had when it began, so that taking a token
/// out of the configuration ends the sessions too.
#[derive(Serialize, Deserialize)]
struct Session {
    approver: String,
    tokens: String,
    /// The hash of the page's key.
    key: String,
}

/// The body of a login.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// That of a login link, or an approver's own.
    token: String,
}

/// Who is logged in and what they may do.
#[derive(Serialize, JsonSchema)]
pub struct Me {
    /// Your name.
    name: String,
    /// What you may do.
    roles: Vec<Role>,
    /// Whose calls you see; `*` for all.
    groups: Vec<String>,
    /// How long an approved call waits for its client, ms.
    hold_grace_ms: u64,
    /// Whether agents may ask people questions (`GET clarifications`).
    clarifications: bool,
    /// The gateway's version.
    version: &'static str,
}

/// Who has logged in, and what makes the cookie good.
#[derive(Serialize, JsonSchema)]
pub struct Entered {
    #[serde(flatten)]
    me: Me,
    /// To be sent as `X-Portcullis-Key` with every request that leans on the cookie.
    key: String,
}

/// The answer to a login: the browser's cookie, and who it is.
pub struct LoggedIn(String, Entered);

impl IntoResponse for LoggedIn {
    fn into_response(self) -> Response {
        ([(header::SET_COOKIE, self.0)], Json(self.1)).into_response()
    }
}

impl Gives for LoggedIn {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives::<Entered>(StatusCode::OK);
    }
}

/// The answer to a logout: the cookie that takes the browser's away.
pub struct LoggedOut(String);

impl IntoResponse for LoggedOut {
    fn into_response(self) -> Response {
        (StatusCode::NO_CONTENT, [(header::SET_COOKIE, self.0)]).into_response()
    }
}

impl Gives for LoggedOut {
    fn describe(operation: &mut Operation<'_>) {
        operation.gives_nothing(StatusCode::NO_CONTENT);
    }
}

/// `POST login`: spends a link's token, or takes an approver's own; answers who it is, with the cookie.
pub async fn login(State(admin): State<Arc<Admin>>, Body(login): Body<Login>) -> Result<LoggedIn, Problem> {
    let token = login.token.trim();
    let now = admin.clock.now();
    // Only what looks like a link's is looked up, and only a link that there is is spent: strangers write nothing.
    let link = if token.starts_with(LINK_PREFIX) { spend(&admin, token).await? } else { None };
    let (approver, expires) = match link {
        Some(name) => {
            let approver = named(&admin, &name)
                .ok_or_else(|| Problem::unauthorized("the approver this link was made for is no longer configured"))?;
            (approver, None)
        }
        None if token.starts_with(LINK_PREFIX) => {
            return Err(Problem::unauthorized(
                "this login link was used already or is too old; paste your token instead (approver.token in the state folder)",
            ));
        }
        None => {
            let approver = admin.approver(token)?;
            let hash = TokenHash::of(token);
            let expires =
                approver.config.tokens.iter().find(|known| known.hash == hash).and_then(|known| known.expires);
            (approver, expires)
        }
    };
    let latest = now.after(SESSION_LIFE);
    let expires = expires.map_or(latest, |expires| expires.min(latest));
    let (cookie, key) = (random_id("pc_session_", 32), random_id("pc_key_", 32));
    let session = Session {
        approver: approver.config.name.clone(),
        tokens: tokens_of(&approver),
        key: TokenHash::of(&key).to_hex(),
    };
    let value = serde_json::to_string(&session).map_err(|error| Problem::unavailable(error.to_string()))?;
    admin.gate.store().put(&session_key(&cookie), &value, Some(expires)).await?;
    tracing::info!(approver = %session.approver, "an approver logged in");
    let cookie = admin.set_cookie(&cookie, expires.since(now));
    Ok(LoggedIn(cookie, Entered { me: me_of(&admin, &approver), key }))
}

/// `POST logout`: ends the browser's session, here and in the browser.
pub async fn logout(State(admin): State<Arc<Admin>>, headers: HeaderMap) -> Result<LoggedOut, Problem> {
    if let Some(cookie) = cookie(&headers, &admin.cookie_name()) {
        admin.gate.store().take(&session_key(cookie)).await?;
    }
    Ok(LoggedOut(admin.set_cookie("", Duration::ZERO)))
}

/// `GET me`.
pub async fn me(State(admin): State<Arc<Admin>>, who: Who) -> Json<Me> {
    Json(me_of(&admin, &who.approver))
}

/// The approver a session cookie belongs to, if it is good.
///
/// A browser sends the cookie to every port of its host: what an agent serves there is shown it. So it counts only with
/// the key, which the page keeps in a storage of its own origin, port and all.
///
/// # Errors
/// The store does not work.
pub async fn resume(admin: &Admin, cookie: &str, key: &str) -> Result<Option<Arc<Approver>>, Problem> {
    let Some(value) = admin.gate.store().read(&session_key(cookie)).await? else { return Ok(None) };
    let Ok(session) = serde_json::from_str::<Session>(&value) else { return Ok(None) };
    let is_its_page = TokenHash::of(key).to_hex() == session.key;
    Ok(named(admin, &session.approver).filter(|approver| is_its_page && tokens_of(approver) == session.tokens))
}

/// For whom a link is, which is used up by that.
async fn spend(admin: &Admin, token: &str) -> Result<Option<String>, Problem> {
    let key = link_key(token);
    match admin.gate.store().read(&key).await? {
        Some(_) => Ok(admin.gate.store().take(&key).await?),
        None => Ok(None),
    }
}

/// The value of the cookie of that name.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

impl Admin {
    /// Cookies do not know ports: the name does, so that two gateways on one host keep their sessions apart. Under https
    /// the browser itself holds the cookie to this host.
    pub fn cookie_name(&self) -> String {
        if self.site().is_https() { "__Host-portcullis".into() } else { format!("portcullis-{}", self.bound.port()) }
    }

    fn set_cookie(&self, value: &str, life: Duration) -> String {
        let secure = if self.site().is_https() { "; Secure" } else { "" };
        let (name, seconds) = (self.cookie_name(), life.as_secs());
        format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}")
    }
}

fn me_of(admin: &Admin, approver: &Approver) -> Me {
    let grace = admin.gate.config().approvals.hold_grace;
    Me {
        name: approver.config.name.clone(),
        roles: approver.config.roles.clone(),
        groups: approver.config.groups.clone(),
        hold_grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        clarifications: admin.gate.config().has_clarifications(),
        version: env!("CARGO_PKG_VERSION"),
    }
}

fn named(admin: &Admin, name: &str) -> Option<Arc<Approver>> {
    admin.gate.directory().approvers().iter().find(|approver| approver.config.name == name).cloned()
}

fn tokens_of(approver: &Approver) -> String {
    let hashes: Vec<String> = approver.config.tokens.iter().map(|token| token.hash.to_hex()).collect();
    TokenHash::of(&hashes.join(" ")).to_hex()
}

fn link_key(token: &str) -> String {
    format!("login:{}", TokenHash::of(token).to_hex())
}

fn session_key(cookie: &str) -> String {
    format!("admin-session:{}", TokenHash::of(cookie).to_hex())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, "a=1; portcullis-70710=x; portcullis-7071=pc=y".parse().unwrap());
        headers.append(header::COOKIE, "b=2".parse().unwrap());
        assert_eq!(cookie(&headers, "portcullis-7071"), Some("pc=y"));
        assert_eq!(cookie(&headers, "b"), Some("2"));
        assert_eq!(cookie(&headers, "portcullis"), None);
    }
}

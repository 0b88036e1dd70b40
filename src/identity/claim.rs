//! Signed claims: what the program that runs an agent says of a single request, in a form that its model cannot make.
//!
//! A claim is a JWT (RFC 7519) in the compact serialisation of JWS (RFC 7515, section 3.1), in the request's `_meta`. The
//! key that is configured for the agent decides the algorithm, never the token's header (RFC 8725, section 3.1): a shared
//! secret means HS256 (RFC 7518, section 3.2), a public key Ed25519 (RFC 8037).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::{hmac, signature};

use super::Agent;
use crate::clock::Timestamp;
use crate::config::ClaimKey;
use crate::message::json::Kind;
use crate::message::{Json, Limits, Value};
use crate::record::{Depth, Source};

/// The key in `_meta` that holds a claim.
pub const CLAIM_KEY: &str = "dev.portcullis/claim";

/// Whom a claim must be meant for (`aud`).
pub const AUDIENCE: &str = "portcullis";

/// How far ahead a claim may expire, in ms.
const LIFE: i64 = 3_600_000;
/// How far clocks may be apart, in ms.
const SKEW: i64 = 60_000;
/// Bytes of a claim.
const LONGEST: usize = 4_096;

/// Who calls, for one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// Whether a person is present.
    pub source: Source,
    /// Root or sub.
    pub depth: Depth,
}

/// Why a claim is not believed, in a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsound(String);

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the request's signed claim (`_meta`, `{CLAIM_KEY}`) is refused: {}", self.0)
    }
}

impl std::error::Error for Unsound {}

impl Agent {
    /// By the agent's settings, or what a signed claim in the `_meta` of these parameters says in their place; `at` is
    /// when the request was received.
    ///
    /// # Errors
    /// There is a claim, and it is not a sound one of this agent.
    pub fn standing(&self, params: Option<&Value>, at: Timestamp) -> Result<Standing, Unsound> {
        let settings = Standing { source: self.config.source, depth: self.config.depth };
        let meta = params.and_then(|params| params.get("_meta"));
        match meta.and_then(|meta| meta.get(CLAIM_KEY)) {
            None => Ok(settings),
            Some(claim) => self.claimed(claim, settings, at).map_err(Unsound),
        }
    }

    fn claimed(&self, claim: &Value, settings: Standing, at: Timestamp) -> Result<Standing, String> {
        let name = &self.config.name;
        let Some(key) = &self.config.claims else {
            return Err(format!("no key is configured for claims of agent `{name}` (`claims`)"));
        };
        let token =
            claim.as_str().filter(|token| token.len() <= LONGEST).ok_or("it is no text of at most 4096 bytes")?;
        let payload = verified(token, key)?;
        let claims = object(&payload, "payload")?;
        let text =
            |name: &str| claims.root().get(name).map(|value| value.as_str().ok_or(format!("`{name}` is no text")));
        let known = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "source", "depth"];
        if let Some(member) = claims.root().members().iter().find(|member| !known.contains(&&*member.key)) {
            return Err(format!("`{}` is none of its fields ({})", member.key.escape_debug(), known.join(", ")));
        }
        if text("sub").transpose()? != Some(name) {
            return Err(format!("`sub` is not the name of the agent, `{name}`"));
        }
        if !claims.root().get("aud").is_some_and(is_for_us) {
            return Err(format!("`aud` is not `{AUDIENCE}`"));
        }
        times(claims.root(), at)?;
        let source = word(
            "source",
            text("source").transpose()?,
            &[("interactive", Source::Interactive), ("background", Source::Background)],
        )?;
        let depth = word("depth", text("depth").transpose()?, &[("root", Depth::Root), ("sub", Depth::Sub)])?;
        Ok(Standing { source: source.unwrap_or(settings.source), depth: depth.unwrap_or(settings.depth) })
    }
}

/// The payload, if the signature is the key's.
fn verified(token: &str, key: &ClaimKey) -> Result<Vec<u8>, String> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, mac] = parts.as_slice() else {
        return Err("it is no JWT of three parts".to_owned());
    };
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| "a part is not base64url".to_owned());
    let (head, body, mac) = (decoded(header)?, decoded(payload)?, decoded(mac)?);
    let head = object(&head, "header")?;
    let algorithm = match key {
        ClaimKey::Secret(_) => "HS256",
        ClaimKey::Ed25519(_) => "EdDSA",
    };
    for member in head.root().members() {
        let is_sound = match &*member.key {
            "alg" => member.value.as_str() == Some(algorithm),
            "typ" => member.value.as_str().is_some_and(|typ| typ.eq_ignore_ascii_case("JWT")),
            // There is one key; what it is called changes nothing.
            "kid" => member.value.as_str().is_some(),
            // What is marked as critical must be understood (RFC 7515, section 4.1.11); nothing else is.
            _ => false,
        };
        if !is_sound {
            let key = member.key.escape_debug();
            return Err(format!("its header must say `alg` {algorithm}, `typ` JWT and no more; `{key}` is not so"));
        }
    }
    if head.root().get("alg").is_none() {
        return Err(format!("its header does not say `alg` {algorithm}"));
    }
    let signed = format!("{header}.{payload}");
    let is_good = match key {
        ClaimKey::Secret(secret) => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
            // In constant time.
            hmac::verify(&key, signed.as_bytes(), &mac).is_ok()
        }
        ClaimKey::Ed25519(key) => {
            signature::UnparsedPublicKey::new(&signature::ED25519, key).verify(signed.as_bytes(), &mac).is_ok()
        }
    };
    if is_good { Ok(body) } else { Err("its signature is not of the agent's key".to_owned()) }
}

/// A JSON object that every parser reads alike.
fn object(bytes: &[u8], what: &str) -> Result<Json, String> {
    let limits = Limits { max_bytes: LONGEST, max_depth: 4, ..Limits::default() };
    let json = Json::parse(bytes.to_vec().into(), limits).map_err(|error| format!("its {what}: {error}"))?;
    if matches!(json.root().kind, Kind::Object(_)) { Ok(json) } else { Err(format!("its {what} is no JSON object")) }
}

/// One audience, or several with ours among them (RFC 7519, section 4.1.3).
fn is_for_us(aud: &Value) -> bool {
    match &aud.kind {
        Kind::Array(all) => all.iter().any(|one| one.as_str() == Some(AUDIENCE)),
        _ => aud.as_str() == Some(AUDIENCE),
    }
}

/// `exp` is near and not past; `nbf` and `iat`, where they are given, are not ahead.
fn times(claims: &Value, at: Timestamp) -> Result<(), String> {
    let now = at.as_millis();
    let time = |name: &str| match claims.get(name).map(|value| &value.kind) {
        None => Ok(None),
        Some(Kind::Number(number)) => number
            .parse::<i64>()
            .ok()
            .and_then(|seconds| seconds.checked_mul(1_000))
            .map(Some)
            .ok_or(format!("`{name}` is no whole number of seconds")),
        Some(_) => Err(format!("`{name}` is no number")),
    };
    let exp = time("exp")?.ok_or("it has no `exp`")?;
    if exp <= now {
        return Err("it has expired (`exp`); make a new one for each request".to_owned());
    }
    if exp > now.saturating_add(LIFE + SKEW) {
        return Err("`exp` is more than an hour ahead".to_owned());
    }
    for name in ["nbf", "iat"] {
        if time(name)?.is_some_and(|time| time > now.saturating_add(SKEW)) {
            return Err(format!("`{name}` is ahead of this machine's clock"));
        }
    }
    Ok(())
}

fn word<T: Copy>(name: &str, said: Option<&str>, words: &[(&str, T)]) -> Result<Option<T>, String> {
    let Some(said) = said else { return Ok(None) };
    let found = words.iter().find(|(word, _)| *word == said).map(|(_, value)| *value);
    let names = || words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" or ");
    found.map(Some).ok_or_else(|| format!("`{name}` is not {}", names()))
}

#[cfg(test)]
mod tests;

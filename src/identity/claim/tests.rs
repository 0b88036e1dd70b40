#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
use ring::signature::KeyPair;
use serde_json::{Value as Any, json};

use super::*;
use crate::secret::Secret;

const SECRET: &str = "a secret of thirty-two bytes, or more";
const NOW: i64 = 1_800_000_000;

fn agent(claims: Option<ClaimKey>) -> Agent {
    let mut agent = Agent::gateway();
    agent.config.name = "claude".into();
    agent.config.claims = claims;
    agent
}

fn shared() -> Agent {
    agent(Some(ClaimKey::Secret(Secret::new(SECRET))))
}

fn part(json: &Any) -> String {
    URL_SAFE_NO_PAD.encode(json.to_string())
}

fn token(header: &Any, payload: &Any, secret: &str) -> String {
    let signed = format!("{}.{}", part(header), part(payload));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes())))
}

fn head() -> Any {
    json!({ "alg": "HS256", "typ": "JWT" })
}

/// What is said, with something changed; `null` leaves it out.
fn payload(changes: Any) -> Any {
    let mut all = json!({
        "sub": "claude", "aud": "portcullis", "exp": NOW + 60, "iat": NOW, "source": "background", "depth": "sub",
    });
    for (name, value) in changes.as_object().unwrap() {
        all[name] = value.clone();
    }
    all.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    all
}

fn standing(agent: &Agent, claim: &Any) -> Result<Standing, String> {
    let params = json!({ "_meta": { CLAIM_KEY: claim } }).to_string();
    let params = Json::parse(params.into(), Limits::default()).unwrap();
    agent.standing(Some(params.root()), Timestamp::from_millis(NOW * 1_000)).map_err(|unsound| unsound.to_string())
}

fn said(agent: &Agent, header: &Any, payload: &Any) -> Result<Standing, String> {
    standing(agent, &json!(token(header, payload, SECRET)))
}

const BACKGROUND: Standing = Standing { source: Source::Background, depth: Depth::Sub };

#[test]
fn a_sound_claim_stands_in_for_the_settings() {
    let agent = shared();
    assert_eq!(said(&agent, &head(), &payload(json!({}))).unwrap(), BACKGROUND);
    let one = said(&agent, &head(), &payload(json!({ "source": null }))).unwrap();
    assert_eq!(one, Standing { source: Source::Interactive, depth: Depth::Sub }, "what it leaves out is as set");
    for fine in [
        json!({ "aud": ["other", "portcullis"], "jti": "x", "iss": "runner" }),
        json!({ "exp": NOW + 3_600, "iat": NOW + 60, "nbf": NOW + 60 }),
    ] {
        assert_eq!(said(&agent, &head(), &payload(fine.clone())).unwrap(), BACKGROUND, "{fine}");
    }
    assert!(said(&agent, &json!({ "alg": "HS256", "typ": "jwt", "kid": "1" }), &payload(json!({}))).is_ok());
    let none = agent.standing(None, Timestamp::from_millis(0)).unwrap();
    assert_eq!(none, Standing { source: Source::Interactive, depth: Depth::Root });
}

#[test]
fn a_claim_of_another_or_at_another_time_is_refused() {
    let agent = shared();
    for (change, why) in [
        (json!({ "sub": "other" }), "`sub` is not the name"),
        (json!({ "sub": null }), "`sub` is not the name"),
        (json!({ "sub": ["claude"] }), "`sub` is no text"),
        (json!({ "aud": "another" }), "`aud` is not"),
        (json!({ "aud": null }), "`aud` is not"),
        (json!({ "aud": [["portcullis"]] }), "`aud` is not"),
        (json!({ "exp": null }), "no `exp`"),
        (json!({ "exp": NOW }), "expired"),
        (json!({ "exp": NOW - 1 }), "expired"),
        (json!({ "exp": -1 }), "expired"),
        (json!({ "exp": NOW + 3_661 }), "more than an hour"),
        (json!({ "exp": i64::MAX }), "whole number"),
        (json!({ "exp": 1.8e9 }), "whole number"),
        (json!({ "exp": (NOW + 60).to_string() }), "`exp` is no number"),
        (json!({ "nbf": NOW + 61 }), "`nbf` is ahead"),
        (json!({ "iat": NOW + 61 }), "`iat` is ahead"),
        (json!({ "source": "Background" }), "`source` is not"),
        (json!({ "depth": "0" }), "`depth` is not"),
        (json!({ "depth": 1 }), "`depth` is no text"),
        (json!({ "depht": "sub" }), "`depht` is none of its fields"),
        (json!({ "session": "s" }), "`session` is none of its fields"),
    ] {
        let refused = said(&agent, &head(), &payload(change.clone())).unwrap_err();
        assert!(refused.contains(why), "{change}: {refused}");
    }
}

#[test]
fn nothing_but_the_configured_key_and_algorithm_signs() {
    let agent = shared();
    let good = payload(json!({}));
    for header in [
        json!({ "alg": "none" }),
        json!({ "alg": "hs256" }),
        json!({ "alg": "HS512", "typ": "JWT" }),
        json!({ "alg": "EdDSA", "typ": "JWT" }),
        json!({ "typ": "JWT" }),
        json!({ "alg": "HS256", "typ": "JOSE" }),
        json!({ "alg": "HS256", "crit": ["exp"] }),
        json!({ "alg": "HS256", "b64": false }),
        json!({ "alg": "HS256", "jwk": { "kty": "oct", "k": "eA" } }),
        json!(["HS256"]),
    ] {
        assert!(said(&agent, &header, &good).unwrap_err().contains("header"), "{header}");
    }
    let whole = token(&head(), &good, SECRET);
    let (signed, mac) = whole.rsplit_once('.').unwrap();
    let other = token(&head(), &payload(json!({ "source": "interactive" })), SECRET);
    let body = other.split('.').nth(1).unwrap();
    let unsigned = format!("{}.{}.", part(&json!({ "alg": "none" })), part(&good));
    let twice = URL_SAFE_NO_PAD.encode(r#"{"alg":"HS256","alg":"HS256"}"#);
    let bad = [
        json!(token(&head(), &good, "another secret of thirty-two bytes")),
        json!(token(&head(), &good, "")),
        json!(format!("{signed}.")),
        json!(format!("{signed}.{}", &mac[1..])),
        json!(format!("{signed}.{mac}=")),
        json!(format!("{signed}.{mac}.{mac}")),
        json!(format!(" {whole}")),
        json!(format!("{}.{body}.{mac}", whole.split('.').next().unwrap())),
        json!(format!("{twice}.{}", signed.split_once('.').unwrap().1)),
        json!(unsigned),
        json!(signed),
        json!(""),
        json!("a".repeat(LONGEST + 1)),
        json!(5),
        json!(null),
        json!({ "source": "interactive" }),
    ];
    for claim in bad {
        assert!(standing(&agent, &claim).is_err(), "{claim}");
    }
    let nobody = standing(&self::agent(None), &json!(whole)).unwrap_err();
    assert!(nobody.contains("no key is configured"), "{nobody}");
}

#[test]
fn a_public_key_is_no_shared_secret() {
    let pair = signature::Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let public: [u8; 32] = pair.public_key().as_ref().try_into().unwrap();
    let agent = agent(Some(ClaimKey::Ed25519(public)));
    let signed = format!("{}.{}", part(&json!({ "alg": "EdDSA" })), part(&payload(json!({}))));
    let good = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(pair.sign(signed.as_bytes())));
    assert_eq!(standing(&agent, &json!(good)).unwrap(), BACKGROUND);

    // The public key is known to everybody: no MAC made with it counts, whatever the header says.
    for algorithm in ["HS256", "EdDSA"] {
        let signed = format!("{}.{}", part(&json!({ "alg": algorithm })), part(&payload(json!({}))));
        let mac = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &public), signed.as_bytes());
        let forged = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac));
        assert!(standing(&agent, &json!(forged)).is_err(), "{algorithm}");
    }
    let other = signature::Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap();
    let forged = format!("{signed}.{}", URL_SAFE_NO_PAD.encode(other.sign(signed.as_bytes())));
    assert!(standing(&agent, &json!(forged)).unwrap_err().contains("signature"));
}

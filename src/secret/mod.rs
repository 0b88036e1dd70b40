//! Tokens that never print, and the one redaction.

mod fingerprint;
mod kept;
mod redaction;
mod shapes;

use std::fmt;

pub use fingerprint::Fingerprints;
pub use kept::{Kept, Names};
pub use redaction::{Hidden, REDACTED, Redaction};

/// A value from outside that must never be shown; `Debug` and `Display` print `[redacted]`.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }
    /// The value, to be used and not shown.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

/// SHA-256 of a token; compared in constant time.
#[derive(Clone, Copy, Debug)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// The hash of a token.
    pub fn of(token: &str) -> Self {
        use sha2::{Digest, Sha256};
        Self(Sha256::digest(token.as_bytes()).into())
    }
    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }
    /// 64 hexadecimal digits.
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        use subtle::ConstantTimeEq;
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl std::hash::Hash for TokenHash {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// A new random id or token: the prefix, then `bytes` bytes from the operating system in URL-safe base64
/// (`call_…` of 16 bytes, `pc_agent_…` of 32).
///
/// Where the operating system gives no randomness the process ends: a predictable token would be worse than no gateway.
pub fn random_id(prefix: &str, bytes: usize) -> String {
    use base64::Engine;
    let mut random = vec![0; bytes];
    if let Err(error) = getrandom::fill(&mut random) {
        tracing::error!(%error, "the operating system gives no randomness");
        std::process::abort();
    }
    let mut id = prefix.to_owned();
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode_string(&random, &mut id);
    id
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_secret_never_prints() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "[redacted] [redacted]");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn a_hash_survives_its_text_and_knows_its_token() {
        let hash = TokenHash::of("pc_agent_x");
        assert_eq!(TokenHash::from_hex(&hash.to_hex()).unwrap(), hash);
        assert_ne!(TokenHash::of("pc_agent_y"), hash);
        for wrong in ["", "00", &"0".repeat(63), &"g".repeat(64), &"0".repeat(66)] {
            assert!(TokenHash::from_hex(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn ids_are_long_and_differ() {
        let (one, other) = (random_id("call_", 16), random_id("call_", 16));
        assert_eq!(one.len(), "call_".len() + 22);
        assert!(one.starts_with("call_") && one != other);
    }
}

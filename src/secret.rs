//! Tokens that never print, and the one redaction.

use std::fmt;

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
        f.write_str("[redacted]")
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

/// The one redaction for audit, log and inbox: values the operator named, and well-known shapes of tokens.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    values: Vec<Secret>,
}

impl Redaction {
    /// Redacts these values wherever they appear, besides the known shapes.
    pub fn new(values: Vec<Secret>) -> Self {
        Self { values }
    }

    /// The text with secrets replaced.
    pub fn text(&self, text: &str) -> String {
        let _ = (text, &self.values);
        unimplemented!()
    }

    /// A JSON value with secrets replaced, and the JSON pointers of what was; `named` are pointers the catalogue calls
    /// secret (`*` for every element).
    pub fn json(&self, value: &serde_json::Value, named: &[Vec<Box<str>>]) -> (serde_json::Value, Vec<String>) {
        let _ = (value, named);
        unimplemented!()
    }
}

/// A new random token of 256 bits in URL-safe base64 with a prefix (`pc_agent_…`, `pc_approver_…`, `call_…`).
pub fn random_id(prefix: &str, bytes: usize) -> String {
    let _ = (prefix, bytes);
    unimplemented!()
}

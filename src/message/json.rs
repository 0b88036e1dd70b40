//! Strict JSON with byte spans: what two parsers could read differently is refused.

use std::fmt;

use bytes::Bytes;

/// Bytes `start..end` of the document.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A value with its place in the document. Numbers keep their text.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// Where it stands, quotes and brackets included.
    pub span: Span,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// The text of a number, as it was sent.
    Number(Box<str>),
    /// Unescaped text.
    String(Box<str>),
    /// Elements in order.
    Array(Vec<Value>),
    /// Members in order; keys unescaped and unique.
    Object(Vec<Member>),
}

/// One member of an object.
#[derive(Clone, PartialEq, Debug)]
pub struct Member {
    /// The unescaped key.
    pub key: Box<str>,
    /// Where the key stands, quotes included.
    pub key_span: Span,
    /// Its value.
    pub value: Value,
}

/// Bounds on what is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of the whole document.
    pub max_bytes: usize,
    /// Nesting of arrays and objects.
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 4 << 20, max_depth: 32 }
    }
}

/// Why a text is not the one JSON value that every parser would read alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonError {
    /// Byte offset.
    pub at: usize,
    /// What is wrong, in plain English.
    pub what: String,
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for JsonError {}

/// A parsed document and the bytes it came from.
#[derive(Clone, Debug)]
pub struct Json {
    bytes: Bytes,
    root: Value,
}

impl Json {
    /// Reads one JSON text strictly (RFC 8259, and the refusals of the module's page).
    ///
    /// # Errors
    /// Says what is wrong and where.
    pub fn parse(bytes: Bytes, limits: Limits) -> Result<Self, JsonError> {
        let _ = (bytes, limits);
        unimplemented!()
    }

    /// The outermost value.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// The whole text.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl Value {
    /// The member of that name, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match &self.kind {
            Kind::Object(members) => members.iter().find(|m| &*m.key == key).map(|m| &m.value),
            _ => None,
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// A lossy copy for showing: numbers beyond 64 bits become strings.
    pub fn to_serde(&self) -> serde_json::Value {
        unimplemented!()
    }

    /// The canonical form that attach keys hash: keys sorted, strings unescaped and re-escaped one way, number text kept.
    pub fn write_canonical(&self, into: &mut Vec<u8>) {
        let _ = into;
        unimplemented!()
    }
}

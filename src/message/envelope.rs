//! The JSON-RPC 2.0 envelope.

use std::fmt;

use bytes::Bytes;

use super::json::{Json, Limits, Span, Value};

/// What a message is (JSON-RPC 2.0, sections 4 and 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Has a method and an id.
    Request,
    /// Has a method and no id.
    Notification,
    /// Has a result or an error.
    Response,
}

/// One JSON-RPC message: its bytes, and where the parts stand that a gateway needs.
#[derive(Clone, Debug)]
pub struct Message {
    bytes: Bytes,
    kind: Kind,
    id: Option<Span>,
    method: Option<Box<str>>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
    tree: Option<Value>,
}

/// A message that is refused, with the id to answer under where it could be read.
#[derive(Clone, Debug)]
pub struct Malformed {
    /// JSON-RPC code: -32700 (not JSON) or -32600 (not a request).
    pub code: i64,
    /// The raw JSON of the id, or `null`.
    pub id: String,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Malformed {}

impl Message {
    /// Reads a client's message: one strict parse, a tree kept.
    ///
    /// # Errors
    /// What is wrong, and the id to answer under.
    pub fn strict(bytes: Bytes, limits: Limits) -> Result<Self, Malformed> {
        let _ = (bytes, limits, Json::parse);
        unimplemented!()
    }

    /// Reads an executor's message: framing and UTF-8 only, no tree.
    ///
    /// # Errors
    /// What is wrong.
    pub fn framed(bytes: Bytes) -> Result<Self, Malformed> {
        let _ = bytes;
        unimplemented!()
    }

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }
    /// The whole text.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
    /// The raw JSON of the id (`1`, `"a"`), if there is one.
    pub fn id(&self) -> Option<&str> {
        self.text(self.id)
    }
    /// The method; empty for a response.
    pub fn method(&self) -> &str {
        self.method.as_deref().unwrap_or_default()
    }
    /// The raw JSON of `params`.
    pub fn params(&self) -> Option<&str> {
        self.text(self.params)
    }
    /// The raw JSON of `result`.
    pub fn result(&self) -> Option<&str> {
        self.text(self.result)
    }
    /// The raw JSON of `error`.
    pub fn error(&self) -> Option<&str> {
        self.text(self.error)
    }
    /// The parsed `params` of a strict message.
    pub fn params_tree(&self) -> Option<&Value> {
        self.tree.as_ref().and_then(|root| root.get("params"))
    }
    /// The same message under another id (raw JSON), every other byte as it came.
    pub fn with_id(&self, id: &str) -> Bytes {
        self.spliced(self.id.map(|span| (span, id.to_owned())).as_slice())
    }
    /// The bytes with these places replaced; spans may come in any order and must not overlap.
    pub fn spliced(&self, edits: &[(Span, String)]) -> Bytes {
        let _ = edits;
        unimplemented!()
    }
    fn text(&self, span: Option<Span>) -> Option<&str> {
        span.and_then(|s| self.bytes.get(s.start..s.end)).and_then(|b| std::str::from_utf8(b).ok())
    }
}

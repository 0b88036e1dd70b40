//! The JSON-RPC 2.0 envelope.

use std::fmt;

use bytes::Bytes;

use super::check::{self, NOT_A_REQUEST};
use super::json::{Json, Limits, Member, Span, Value};
use super::{compose, keys, shallow};

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
    /// JSON-RPC code: -32700 (not JSON), -32600 (not a request) or -32602 (not the parameters of its method).
    pub code: i64,
    /// The raw JSON of the id, or `null`.
    pub id: String,
    /// What is wrong.
    pub what: String,
}

impl Malformed {
    /// The JSON-RPC error that answers it.
    pub fn reply(&self) -> Bytes {
        compose::error(&self.id, self.code, &self.what, None)
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Malformed {}

const NOT_JSON: i64 = -32700;

impl Message {
    /// Reads a client's message: one strict parse, a tree kept. Batches, which only MCP 2025-03-26 had, are refused.
    ///
    /// # Errors
    /// What is wrong, and the id to answer under.
    pub fn strict(bytes: Bytes, limits: Limits) -> Result<Self, Malformed> {
        let json = match Json::parse(bytes.clone(), limits) {
            Ok(json) => json,
            Err(error) => {
                let id = if bytes.len() > limits.max_bytes { None } else { readable_id(&bytes) };
                return Err(malformed(NOT_JSON, id.as_deref(), error.to_string()));
            }
        };
        let root = json.root();
        let id = root.get("id").filter(|id| check::is_id(id)).map(|id| json.text(id.span).to_owned());
        if let Err((code, what)) = check::client(root) {
            return Err(malformed(code, id.as_deref(), what));
        }
        let span = |name| root.get(name).map(|value| value.span);
        let method = root.get("method").and_then(Value::as_str).map(Box::from);
        Ok(Self {
            kind: kind_of(method.is_some(), id.is_some()),
            id: span("id"),
            method,
            params: span("params"),
            result: span("result"),
            error: span("error"),
            bytes: json.bytes().clone(),
            tree: Some(json.into_root()),
        })
    }

    /// Reads a client's message that was let in before, however large that was.
    ///
    /// # Errors
    /// As [`Message::strict`]; nothing that was let in is refused.
    pub fn again(text: &str) -> Result<Self, Malformed> {
        let limits = Limits { max_bytes: text.len(), ..Limits::default() };
        Self::strict(Bytes::copy_from_slice(text.as_bytes()), limits)
    }

    /// Reads an executor's message: framing and UTF-8 only, no tree. Members that are not of the envelope survive.
    ///
    /// # Errors
    /// What is wrong.
    pub fn framed(bytes: Bytes) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(&bytes).map_err(|_| malformed(NOT_JSON, None, "invalid UTF-8".to_owned()))?;
        let places = Places::of(text)?;
        let bad = |what: &str| Err(malformed(NOT_A_REQUEST, None, what.to_owned()));
        let raw = |span: Option<Span>| span.and_then(|s| text.get(s.start..s.end));
        if raw(places.jsonrpc).and_then(unquoted).as_deref() != Some("2.0") {
            return bad("`jsonrpc` must be \"2.0\"");
        }
        let method = match raw(places.method).map(unquoted) {
            Some(None) => return bad("`method` must be a string"),
            Some(Some(method)) => Some(method.into_boxed_str()),
            None => None,
        };
        let id = places.id.filter(|_| raw(places.id) != Some("null"));
        if raw(id).is_some_and(|id| !is_raw_id(id)) || (method.is_some() && places.id != id) {
            return bad("`id` must be a string or an integer");
        }
        // some servers write `"error":null` beside a result
        let error = places.error.filter(|_| raw(places.error) != Some("null") || places.result.is_none());
        let answers = usize::from(places.result.is_some()) + usize::from(error.is_some());
        if answers != usize::from(method.is_none()) {
            return bad("a message has either `method`, `result` or `error`");
        }
        Ok(Self {
            kind: kind_of(method.is_some(), id.is_some()),
            id,
            method,
            params: places.params,
            result: places.result,
            error,
            tree: None,
            bytes,
        })
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
    /// Where the id stands.
    pub fn id_span(&self) -> Option<Span> {
        self.id
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

    /// The members of a strict message that JSON-RPC 2.0 does not know.
    pub fn beside(&self) -> impl Iterator<Item = &Member> {
        let members = self.tree.as_ref().map(Value::members).unwrap_or_default();
        members.iter().filter(|member| !keys::ENVELOPE.contains(&&*member.key))
    }

    /// Where the value at this path of keys stands (`["params", "_meta", "progressToken"]`), and its raw JSON. A framed
    /// message is scanned for it: one pass over what is around it; there, a key that stands twice finds nothing.
    pub fn at(&self, path: &[&str]) -> Option<(Span, &str)> {
        let span = match (&self.tree, path) {
            (Some(root), _) => path.iter().try_fold(root, |value, key| value.get(key))?.span,
            (None, [first, rest @ ..]) => {
                let top = match *first {
                    "id" => self.id,
                    "params" => self.params,
                    "result" => self.result,
                    "error" => self.error,
                    _ => None,
                };
                rest.iter().try_fold(top?, |around, key| {
                    let inner = shallow::member(self.text(Some(around))?, key)?;
                    Some(Span { start: around.start + inner.start, end: around.start + inner.end })
                })?
            }
            (None, []) => return None,
        };
        Some((span, self.text(Some(span))?))
    }

    /// The unescaped text of the string at this path.
    pub fn string_at(&self, path: &[&str]) -> Option<String> {
        self.at(path).and_then(|(_, raw)| unquoted(raw))
    }

    /// The progress token: of a request in `params._meta`, of a `notifications/progress` in `params`.
    pub fn progress_token(&self) -> Option<(Span, &str)> {
        match self.kind {
            Kind::Request => self.at(&["params", "_meta", "progressToken"]),
            Kind::Notification => self.at(&["params", "progressToken"]),
            Kind::Response => None,
        }
    }

    /// The protocol version that a modern request carries (2026-07-28, `params._meta`); none tells a legacy message.
    pub fn meta_version(&self) -> Option<String> {
        self.string_at(&["params", "_meta", "io.modelcontextprotocol/protocolVersion"])
    }

    /// The same message under another id (raw JSON), every other byte as it came.
    pub fn with_id(&self, id: &str) -> Bytes {
        self.spliced(self.id.map(|span| (span, id.to_owned())).as_slice())
    }

    /// The bytes with these places replaced; spans may come in any order and must not overlap (the later of two that do
    /// is left out).
    pub fn spliced(&self, edits: &[(Span, String)]) -> Bytes {
        if edits.is_empty() {
            return self.bytes.clone();
        }
        let mut edits: Vec<&(Span, String)> = edits.iter().collect();
        edits.sort_by_key(|(span, _)| span.start);
        let mut out = Vec::with_capacity(self.bytes.len() + edits.iter().map(|(_, new)| new.len()).sum::<usize>());
        let mut done = 0;
        for (span, new) in edits {
            if let Some(kept) = self.bytes.get(done..span.start) {
                out.extend_from_slice(kept);
                out.extend_from_slice(new.as_bytes());
                done = span.end;
            }
        }
        out.extend_from_slice(self.bytes.get(done..).unwrap_or_default());
        out.into()
    }

    fn text(&self, span: Option<Span>) -> Option<&str> {
        span.and_then(|s| self.bytes.get(s.start..s.end)).and_then(|b| std::str::from_utf8(b).ok())
    }
}

/// The raw JSON of an id in the one spelling that stands for all of them.
pub fn id_key(raw: &str) -> String {
    match unquoted(raw) {
        Some(text) => serde_json::Value::from(text).to_string(),
        None if raw == "-0" => "0".to_owned(),
        None => raw.to_owned(),
    }
}

fn malformed(code: i64, id: Option<&str>, what: String) -> Malformed {
    Malformed { code, id: id.unwrap_or("null").to_owned(), what }
}

fn kind_of(method: bool, id: bool) -> Kind {
    match (method, id) {
        (true, true) => Kind::Request,
        (true, false) => Kind::Notification,
        (false, _) => Kind::Response,
    }
}

fn is_raw_id(id: &str) -> bool {
    id.starts_with('"')
        || (id.starts_with(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) && !id.contains(['.', 'e', 'E']))
}

fn unquoted(raw: &str) -> Option<String> {
    serde_json::from_str(raw).ok()
}

/// The id of a message that is refused for something else, so that its sender need not wait for the answer.
fn readable_id(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let span = Places::of(text).ok()?.id?;
    text.get(span.start..span.end).filter(|id| is_raw_id(id) && id.len() <= 256).map(str::to_owned)
}

/// Where the members of the envelope stand.
#[derive(Default)]
struct Places {
    jsonrpc: Option<Span>,
    id: Option<Span>,
    method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
}

impl Places {
    fn of(text: &str) -> Result<Self, Malformed> {
        let mut places = Self::default();
        let (mut twice, mut odd) = (None, None);
        shallow::members(text, |key, span| {
            let place = match &*key {
                "jsonrpc" => &mut places.jsonrpc,
                "id" => &mut places.id,
                "method" => &mut places.method,
                "params" => &mut places.params,
                "result" => &mut places.result,
                "error" => &mut places.error,
                other => {
                    // Go's parser would take it for the one that it looks like.
                    if keys::ENVELOPE.contains(&&*keys::fold(other)) {
                        odd = Some(key);
                    }
                    return;
                }
            };
            if place.replace(span).is_some() {
                twice = Some(key);
            }
        })
        .map_err(|error| malformed(NOT_JSON, None, error.to_string()))?;
        let bad = |what| Err(malformed(NOT_A_REQUEST, None, what));
        match (twice, odd) {
            (Some(key), _) => bad(format!("`{key}` stands twice")),
            (None, Some(key)) => {
                bad(format!("the key {key:?} differs only in case or Unicode form from one that counts"))
            }
            (None, None) => Ok(places),
        }
    }
}

//! Strict JSON with byte spans: what two parsers could read differently is refused.

use std::fmt;

use bytes::Bytes;

use super::parse;

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
    /// Members of all objects and elements of all arrays, together.
    pub max_members: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_bytes: 4 << 20, max_depth: 32, max_members: 100_000 }
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
    /// Reads one JSON text strictly (RFC 8259). Refused besides what the RFC refuses: keys that are equal after
    /// unescaping, a NUL in a key, lone surrogates, integers beyond 64 bits, numbers that overflow a double, a byte order
    /// mark, and what is over the limits.
    ///
    /// # Errors
    /// Says what is wrong and where.
    pub fn parse(bytes: Bytes, limits: Limits) -> Result<Self, JsonError> {
        let root = parse::document(&bytes, limits)?;
        Ok(Self { bytes, root })
    }

    /// The outermost value.
    pub fn root(&self) -> &Value {
        &self.root
    }

    /// The outermost value alone.
    pub fn into_root(self) -> Value {
        self.root
    }

    /// The whole text.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The text of a value of this document, as it came.
    pub fn text(&self, span: Span) -> &str {
        self.bytes.get(span.start..span.end).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or_default()
    }
}

impl Value {
    /// The member of that name, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.members().iter().find(|m| &*m.key == key).map(|m| &m.value)
    }

    /// The members, if this is an object; else none.
    pub fn members(&self) -> &[Member] {
        match &self.kind {
            Kind::Object(members) => members,
            _ => &[],
        }
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    /// Calls `visit` for this value and every one below it, in the order of the text, each with its JSON pointer
    /// (RFC 6901; the value itself is the empty pointer).
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&str, &'a Value)) {
        self.walk_from(&mut String::new(), visit);
    }

    fn walk_from<'a>(&'a self, pointer: &mut String, visit: &mut impl FnMut(&str, &'a Value)) {
        visit(pointer, self);
        let here = pointer.len();
        match &self.kind {
            Kind::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    push_segment(pointer, &index.to_string());
                    element.walk_from(pointer, visit);
                    pointer.truncate(here);
                }
            }
            Kind::Object(members) => {
                for member in members {
                    push_segment(pointer, &member.key);
                    member.value.walk_from(pointer, visit);
                    pointer.truncate(here);
                }
            }
            _ => {}
        }
    }

    /// The values at a JSON pointer given by its unescaped segments, in which `*` stands for every element of an array
    /// and every member of an object; each with the pointer that leads to it alone.
    pub fn pointer<S: AsRef<str>>(&self, segments: &[S]) -> Vec<(String, &Value)> {
        let mut found = vec![(String::new(), self)];
        for segment in segments {
            found = found.into_iter().flat_map(|(at, value)| value.step(&at, segment.as_ref())).collect();
        }
        found
    }

    fn step(&self, at: &str, segment: &str) -> Vec<(String, &Value)> {
        let below = |name: &str| {
            let mut pointer = at.to_owned();
            push_segment(&mut pointer, name);
            pointer
        };
        match &self.kind {
            Kind::Array(elements) => (0..)
                .zip(elements)
                .map(|(index, element): (usize, _)| (index.to_string(), element))
                .filter(|(index, _)| segment == "*" || segment == index)
                .map(|(index, element)| (below(&index), element))
                .collect(),
            Kind::Object(members) => members
                .iter()
                .filter(|m| segment == "*" || segment == &*m.key)
                .map(|m| (below(&m.key), &m.value))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// A copy for showing. A number that a 64-bit integer or a double cannot hold exactly becomes a string with its
    /// text, so that nobody is shown another number than the one that was sent.
    pub fn to_serde(&self) -> serde_json::Value {
        match &self.kind {
            Kind::Null => serde_json::Value::Null,
            Kind::Bool(truth) => (*truth).into(),
            Kind::Number(text) => exact_number(text).map_or_else(|| (**text).into(), serde_json::Value::Number),
            Kind::String(text) => (**text).into(),
            Kind::Array(elements) => elements.iter().map(Self::to_serde).collect(),
            Kind::Object(members) => members.iter().map(|m| (m.key.to_string(), m.value.to_serde())).collect(),
        }
    }

    /// The canonical form that attach keys hash: keys sorted by their UTF-8 bytes, no white space, strings unescaped and
    /// escaped again one way, number text kept (RFC 8785 would make 9007199254740993 and …992 one number).
    pub fn write_canonical(&self, into: &mut Vec<u8>) {
        match &self.kind {
            Kind::Null => into.extend_from_slice(b"null"),
            Kind::Bool(true) => into.extend_from_slice(b"true"),
            Kind::Bool(false) => into.extend_from_slice(b"false"),
            Kind::Number(text) => into.extend_from_slice(text.as_bytes()),
            Kind::String(text) => write_string(text, into),
            Kind::Array(elements) => {
                into.push(b'[');
                for (index, element) in elements.iter().enumerate() {
                    if index > 0 {
                        into.push(b',');
                    }
                    element.write_canonical(into);
                }
                into.push(b']');
            }
            Kind::Object(members) => {
                let mut sorted: Vec<&Member> = members.iter().collect();
                sorted.sort_unstable_by(|a, b| a.key.cmp(&b.key));
                into.push(b'{');
                for (index, member) in sorted.into_iter().enumerate() {
                    if index > 0 {
                        into.push(b',');
                    }
                    write_string(&member.key, into);
                    into.push(b':');
                    member.value.write_canonical(into);
                }
                into.push(b'}');
            }
        }
    }
}

/// Appends `/segment`, escaped as RFC 6901 wants it.
fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for c in segment.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

fn write_string(text: &str, into: &mut Vec<u8>) {
    into.extend_from_slice(serde_json::Value::from(text).to_string().as_bytes());
}

/// Whether a text is that of a number which `to_serde` keeps as a text.
pub fn is_inexact(text: &str) -> bool {
    let is_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && Json::parse(Bytes::copy_from_slice(text.as_bytes()), Limits::default())
            .is_ok_and(|json| matches!(json.root.kind, Kind::Number(_)));
    is_number && exact_number(text).is_none()
}

/// The number, if showing it changes nothing.
fn exact_number(text: &str) -> Option<serde_json::Number> {
    let number: serde_json::Number = serde_json::from_str(text).ok()?;
    (decimal(&number.to_string()) == decimal(text)).then_some(number)
}

/// Sign, digits without outer zeros, and the power of ten of the last digit: equal for equal decimal numbers.
fn decimal(text: &str) -> Option<(bool, String, i64)> {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{}{fraction}", whole.trim_start_matches('-'));
    let digits = all.trim_end_matches('0');
    let dropped = i64::try_from(all.len() - digits.len()).ok()?;
    let power = exponent.parse::<i64>().ok()? - i64::try_from(fraction.len()).ok()? + dropped;
    let digits = digits.trim_start_matches('0').to_owned();
    let power = if digits.is_empty() { 0 } else { power };
    Some((text.starts_with('-'), digits, power))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(Bytes::copy_from_slice(text.as_bytes()), Limits::default()).unwrap()
    }

    fn canonical(text: &str) -> String {
        let mut out = Vec::new();
        json(text).root().write_canonical(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn spans_cover_the_text_as_it_came() {
        let doc = json(" {\"a\" : [1.50, \"x\\n\"]}\r\n");
        let list = doc.root().get("a").unwrap();
        assert_eq!(doc.text(list.span), "[1.50, \"x\\n\"]");
        let Kind::Array(elements) = &list.kind else { panic!("an array") };
        assert_eq!(doc.text(elements[0].span), "1.50");
        assert_eq!(elements[1].as_str(), Some("x\n"));
        assert_eq!(doc.text(doc.root().members()[0].key_span), "\"a\"");
    }

    #[test]
    fn the_canonical_form_forgets_spelling_and_order_but_no_digit() {
        assert_eq!(canonical(r#"{"b":1.0,"a":"A\/"}"#), r#"{"a":"A/","b":1.0}"#);
        assert_ne!(canonical("9007199254740993"), canonical("9007199254740992"));
        assert_eq!(canonical(r#"{"é":1,"z":2}"#), r#"{"z":2,"é":1}"#);
    }

    #[test]
    fn what_is_shown_is_the_number_that_was_sent() {
        for kept in ["9007199254740993", "1.5", "-0.25", "1e3", "18446744073709551615", "0.0", "-1E-2"] {
            assert!(json(kept).root().to_serde().is_number(), "{kept}");
        }
        for text in ["9007199254740993.0", "0.1000000000000000055511151231257827", "1e-400"] {
            assert_eq!(json(text).root().to_serde(), serde_json::Value::from(text));
        }
    }

    #[test]
    fn pointers_and_walks_name_each_value() {
        let doc = json(r#"{"files":[{"p":"a"},{"p":"b"}],"x/y":{"~":"c"}}"#);
        let found = doc.root().pointer(&["files", "*", "p"]);
        let found: Vec<_> = found.iter().map(|(at, v)| (at.as_str(), v.as_str().unwrap())).collect();
        assert_eq!(found, [("/files/0/p", "a"), ("/files/1/p", "b")]);
        let mut strings = Vec::new();
        doc.root().walk(&mut |at, value| strings.extend(value.as_str().map(|s| (at.to_owned(), s))));
        assert_eq!(strings[2], ("/x~1y/~0".to_owned(), "c"));
        assert_eq!(strings.len(), 3);
        assert!(doc.root().pointer(&["files", "7"]).is_empty());
    }
}

//! The strict parser: one pass, bounded depth, spans.

use super::json::{JsonError, Kind, Limits, Member, Span, Value};

/// Reads one document.
pub(super) fn document(bytes: &[u8], limits: Limits) -> Result<Value, JsonError> {
    if bytes.len() > limits.max_bytes {
        return fail(limits.max_bytes, format!("{} bytes are more than the {} allowed", bytes.len(), limits.max_bytes));
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return fail(0, "a byte order mark is not JSON: send plain UTF-8");
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return fail(error.valid_up_to(), "invalid UTF-8"),
    };
    let mut reader = Reader { text, at: 0, room: limits.max_depth, limits, members: 0 };
    reader.space();
    let root = reader.value()?;
    reader.space();
    if reader.at < bytes.len() {
        return fail(reader.at, "more text after the end of the message");
    }
    Ok(root)
}

fn fail<T>(at: usize, what: impl Into<String>) -> Result<T, JsonError> {
    Err(JsonError { at, what: what.into() })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    /// How much deeper it may get.
    room: usize,
    limits: Limits,
    /// Members and elements so far.
    members: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes the byte if it is the next.
    fn take(&mut self, byte: u8) -> bool {
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    /// Skips insignificant white space.
    fn space(&mut self) {
        self.skip(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'));
    }

    fn skip(&mut self, wanted: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let run = rest.iter().position(|b| !wanted(*b)).unwrap_or(rest.len());
        self.at += run;
        run
    }

    fn value(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Kind::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Kind::Number(self.number()?),
            Some(b't') => self.word("true", Kind::Bool(true))?,
            Some(b'f') => self.word("false", Kind::Bool(false))?,
            Some(b'n') => self.word("null", Kind::Null)?,
            Some(b'/') => return fail(start, "comments are not JSON"),
            Some(_) => return fail(start, "a JSON value is expected"),
            None => return fail(start, "the text ends where a JSON value is expected"),
        };
        Ok(Value { span: Span { start, end: self.at }, kind })
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<Kind, JsonError> {
        if !self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return fail(self.at, "a JSON value is expected");
        }
        self.at += word.len();
        Ok(kind)
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Kind, JsonError>) -> Result<Kind, JsonError> {
        let Some(room) = self.room.checked_sub(1) else {
            return fail(self.at, "nested too deeply");
        };
        self.room = room;
        self.at += 1;
        self.space();
        let kind = read(self)?;
        self.room += 1;
        Ok(kind)
    }

    /// One member or element more.
    fn count(&mut self) -> Result<(), JsonError> {
        self.members += 1;
        if self.members > self.limits.max_members {
            let most = self.limits.max_members;
            return fail(self.at, format!("more than the {most} members and elements that a message may have"));
        }
        Ok(())
    }

    fn array(&mut self) -> Result<Kind, JsonError> {
        let mut elements = Vec::new();
        if self.take(b']') {
            return Ok(Kind::Array(elements));
        }
        loop {
            self.count()?;
            elements.push(self.value()?);
            self.space();
            if self.take(b']') {
                return Ok(Kind::Array(elements));
            }
            if !self.take(b',') {
                return fail(self.at, "a comma or `]` is expected");
            }
            self.space();
        }
    }

    fn object(&mut self) -> Result<Kind, JsonError> {
        let mut members = Vec::new();
        if self.take(b'}') {
            return Ok(Kind::Object(members));
        }
        loop {
            self.count()?;
            members.push(self.member()?);
            self.space();
            if self.take(b'}') {
                break;
            }
            if !self.take(b',') {
                return fail(self.at, "a comma or `}` is expected");
            }
            self.space();
        }
        match repeated(&members) {
            Some(again) => fail(again.key_span.start, format!("the key {:?} stands twice in one object", again.key)),
            None => Ok(Kind::Object(members)),
        }
    }

    fn member(&mut self) -> Result<Member, JsonError> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return fail(start, "a key in double quotes is expected");
        }
        let key = self.string()?;
        let key_span = Span { start, end: self.at };
        if key.contains('\0') {
            return fail(start, "a NUL character in a key");
        }
        self.space();
        if !self.take(b':') {
            return fail(self.at, "a colon is expected after the key");
        }
        self.space();
        Ok(Member { key, key_span, value: self.value()? })
    }

    /// At the opening quote.
    fn string(&mut self) -> Result<Box<str>, JsonError> {
        let open = self.at;
        self.at += 1;
        let mut unescaped = String::new();
        loop {
            let start = self.at;
            self.skip(|b| !matches!(b, b'"' | b'\\' | 0..=0x1f));
            let plain = self.text.get(start..self.at).unwrap_or_default();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    if unescaped.is_empty() {
                        return Ok(plain.into());
                    }
                    unescaped.push_str(plain);
                    return Ok(unescaped.into());
                }
                Some(b'\\') => {
                    unescaped.push_str(plain);
                    unescaped.push(self.escape()?);
                }
                Some(_) => return fail(self.at, "a control character in a string must be escaped"),
                None => return fail(open, "a string without its end"),
            }
        }
    }

    /// At the backslash.
    fn escape(&mut self) -> Result<char, JsonError> {
        let start = self.at;
        self.at += 1;
        let letter = self.peek();
        self.at += 1;
        Ok(match letter {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let mut code = self.hex(start)?;
                if (0xd800..0xdc00).contains(&code) && self.take(b'\\') && self.take(b'u') {
                    let low = self.hex(start)?;
                    if (0xdc00..0xe000).contains(&low) {
                        code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    }
                }
                match char::from_u32(code) {
                    Some(c) => c,
                    None => return fail(start, "half of a surrogate pair"),
                }
            }
            _ => return fail(start, "an unknown escape in a string"),
        })
    }

    fn hex(&mut self, escape: usize) -> Result<u32, JsonError> {
        let digits = self.text.get(self.at..self.at + 4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        match digits.and_then(|d| u32::from_str_radix(d, 16).ok()) {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => fail(escape, "four hexadecimal digits are expected after `\\u`"),
        }
    }

    fn number(&mut self) -> Result<Box<str>, JsonError> {
        let start = self.at;
        let negative = self.take(b'-');
        if !self.take(b'0') && self.digits() == 0 {
            return fail(start, "a digit is expected after the minus sign");
        }
        let mut integer = true;
        if self.take(b'.') {
            integer = false;
            if self.digits() == 0 {
                return fail(start, "a digit is expected after the decimal point");
            }
        }
        if self.take(b'e') || self.take(b'E') {
            integer = false;
            let _sign = self.take(b'+') || self.take(b'-');
            if self.digits() == 0 {
                return fail(start, "a digit is expected in the exponent");
            }
        }
        if self.peek().is_some_and(|b| b.is_ascii_digit()) {
            return fail(start, "a number with a leading zero");
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let fits = match (integer, negative) {
            (true, true) => text.parse::<i64>().is_ok(),
            (true, false) => text.parse::<u64>().is_ok(),
            (false, _) => text.parse::<f64>().is_ok_and(f64::is_finite),
        };
        match fits {
            true => Ok(text.into()),
            false if integer => fail(start, "an integer beyond 64 bits: send it as a string"),
            false => fail(start, "a number too large for a double: send it as a string"),
        }
    }

    fn digits(&mut self) -> usize {
        self.skip(|b| b.is_ascii_digit())
    }
}

/// The second of two members with the same key.
fn repeated(members: &[Member]) -> Option<&Member> {
    if members.len() < 2 {
        return None;
    }
    let mut sorted: Vec<&Member> = members.iter().collect();
    sorted.sort_by(|a, b| a.key.cmp(&b.key));
    sorted.iter().zip(sorted.iter().skip(1)).find(|(a, b)| a.key == b.key).map(|(_, again)| *again)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn read(text: impl AsRef<[u8]>) -> Result<Value, JsonError> {
        document(text.as_ref(), Limits { max_bytes: 1000, max_depth: 4, max_members: 40 })
    }

    #[test]
    fn what_has_too_many_parts_is_refused() {
        let list = |n: usize| format!("[{}0]", "0,".repeat(n - 1));
        assert!(read(list(40)).is_ok());
        assert!(read(list(41)).unwrap_err().what.contains("more than the 40 members"));
        let nested = format!(r#"{{"a":{},"b":{}}}"#, list(19), list(20));
        assert!(read(nested).unwrap_err().what.contains("more than the 40 members"));
    }

    #[test]
    fn refuses_what_parsers_read_differently() {
        for (text, what) in [
            (&br#"{"a":1,"\u0061":2}"#[..], "twice"),
            (br#"{"x":[{"b":1,"c":2,"b":3}]}"#, "twice"),
            (br#"{"a\u0000":1}"#, "NUL"),
            (br#""\ud800""#, "surrogate"),
            (br#""\udc00\ud800""#, "surrogate"),
            (br#""\ud800A""#, "surrogate"),
            (br#""\ud800\ud800""#, "surrogate"),
            (br#""\u+123""#, "hexadecimal"),
            (br#""\u12"#, "hexadecimal"),
            (b"\"\xed\xa0\xbd\"", "UTF-8"),
            (b"\"\xc0\xaf\"", "UTF-8"),
            (b"\"a\tb\"", "control"),
            (b"\"a\0\"", "control"),
            (b"\"abc", "without its end"),
            (br#""\x""#, "escape"),
            (b"18446744073709551616", "64 bits"),
            (b"-9223372036854775809", "64 bits"),
            (b"1e999", "double"),
            (b"-1e999", "double"),
            (b"01", "leading zero"),
            (b"-", "digit"),
            (b"1.", "digit"),
            (b"1e", "digit"),
            (b"+1", "value"),
            (b".5", "value"),
            (b"NaN", "value"),
            (b"nul", "value"),
            (b"\xef\xbb\xbf{}", "byte order mark"),
            (b"{}{}", "more text"),
            (b"{} // x", "more text"),
            (b"/* x */{}", "comments"),
            (b"[1,]", "value"),
            (b"{\"a\":1,}", "key"),
            (b"{'a':1}", "key"),
            (b"{\"a\" 1}", "colon"),
            (b"[1 2]", "comma"),
            (b"", "ends"),
            (b"[", "ends"),
            (b"[[[[[]]]]]", "deeply"),
            ("\u{a0}{}".as_bytes(), "value"),
        ] {
            let error = read(text).expect_err(&String::from_utf8_lossy(text));
            assert!(error.what.contains(what), "{}: {error}", String::from_utf8_lossy(text));
        }
        assert!(read(" ".repeat(1001)).expect_err("too long").what.contains("more than"));
    }

    #[test]
    fn accepts_what_is_only_unusual() {
        for text in [
            "[[[[]]]]",
            "\r\n\t {} \r\n",
            r#"{"path":1,"in":{"path":2,"x":{"path":3}}}"#,
            "18446744073709551615",
            "-9223372036854775808",
            "-0",
            "1E-400",
            r#""\ud83d\ude00\/\u0000""#,
            r#"{"":""}"#,
        ] {
            read(text).expect(text);
        }
        assert_eq!(read(r#""\ud83d\ude00""#).unwrap().as_str(), Some("😀"));
    }

    #[test]
    fn an_error_says_where() {
        assert_eq!(read(r#"{"a":1,"a":2}"#).unwrap_err().at, 7);
        assert_eq!(read("[1,x]").unwrap_err().at, 3);
    }
}

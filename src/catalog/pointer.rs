//! JSON pointers in which `*` stands for every element.

use std::fmt;
use std::str::FromStr;

use crate::message::json::Kind;
use crate::message::{Value, variant};

/// A JSON pointer (RFC 6901) in which `*` stands for every element.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Pointer(pub Vec<Box<str>>);

/// What a pointer leads to, with the pointer (without `*`) of that very place.
#[derive(Debug)]
pub enum Selected<'a> {
    /// A value.
    Found(String, &'a Value),
    /// A value on the way that has no elements although the pointer goes on.
    TooShallow(String, &'a Value),
}

impl Pointer {
    /// Everything that the pointer leads to. What is simply absent is left out.
    pub fn select<'a>(&self, root: &'a Value) -> Vec<Selected<'a>> {
        let mut found = Vec::new();
        descend(&self.0, root, &mut String::new(), &mut found);
        found
    }

    /// Visits everything that the pointer leads to.
    pub fn each_mut(&self, root: &mut Value, visit: &mut impl FnMut(&mut Value)) {
        each(&self.0, root, visit);
    }

    /// Where a member stands that another parser could take for one that the pointer names, although it is called
    /// otherwise.
    pub fn variant(&self, root: &Value) -> Option<String> {
        varied(&self.0, root, &mut String::new())
    }

    /// Whether the pointer leads to the place that these keys lead to.
    pub fn fits(&self, keys: &[&str]) -> bool {
        self.0.len() == keys.len() && self.covers(keys)
    }

    /// Whether the pointer leads to that place or to a value around it.
    pub fn covers(&self, keys: &[&str]) -> bool {
        self.0.len() <= keys.len() && self.0.iter().zip(keys).all(|(want, key)| &**want == "*" || &**want == *key)
    }
}

fn descend<'a>(pointer: &[Box<str>], value: &'a Value, at: &mut String, found: &mut Vec<Selected<'a>>) {
    let Some((key, rest)) = pointer.split_first() else {
        found.push(Selected::Found(at.clone(), value));
        return;
    };
    let mut enter = |name: &str, value: &'a Value| {
        let length = at.len();
        push_key(at, name);
        descend(rest, value, at, found);
        at.truncate(length);
    };
    match &value.kind {
        Kind::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let name = index.to_string();
                if &**key == "*" || **key == *name {
                    enter(&name, item);
                }
            }
        }
        Kind::Object(members) => {
            for member in members {
                if &**key == "*" || *key == member.key {
                    enter(&member.key, &member.value);
                }
            }
        }
        _ => found.push(Selected::TooShallow(at.clone(), value)),
    }
}

fn each(pointer: &[Box<str>], value: &mut Value, visit: &mut impl FnMut(&mut Value)) {
    let Some((key, rest)) = pointer.split_first() else { return visit(value) };
    match &mut value.kind {
        Kind::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if &**key == "*" || **key == *index.to_string() {
                    each(rest, item, visit);
                }
            }
        }
        Kind::Object(members) => {
            for member in members.iter_mut().filter(|member| &**key == "*" || *key == member.key) {
                each(rest, &mut member.value, visit);
            }
        }
        _ => {}
    }
}

fn varied(pointer: &[Box<str>], value: &Value, at: &mut String) -> Option<String> {
    let (key, rest) = pointer.split_first()?;
    let mut below = |name: &str, value: &Value| {
        let length = at.len();
        push_key(at, name);
        let found = varied(rest, value, at);
        at.truncate(length);
        found
    };
    match &value.kind {
        Kind::Array(items) => items
            .iter()
            .enumerate()
            .filter(|(index, _)| &**key == "*" || **key == *index.to_string())
            .find_map(|(index, item)| below(&index.to_string(), item)),
        Kind::Object(members) if &**key == "*" => members.iter().find_map(|m| below(&m.key, &m.value)),
        Kind::Object(_) => match variant(value, key) {
            Some(member) => {
                push_key(at, &member.key);
                Some(at.clone())
            }
            None => value.get(key).and_then(|member| below(key, member)),
        },
        _ => None,
    }
}

/// Appends one step to a pointer's text, escaped as RFC 6901 section 3 says.
fn push_key(pointer: &mut String, key: &str) {
    pointer.push('/');
    for c in key.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for key in &self.0 {
            push_key(&mut text, key);
        }
        f.write_str(&text)
    }
}

impl FromStr for Pointer {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let Some(rest) = text.strip_prefix('/') else {
            return Err("a pointer starts with `/`");
        };
        let unescape = |key: &str| {
            let mut rest = key;
            let mut plain = String::new();
            while let Some((before, after)) = rest.split_once('~') {
                plain.push_str(before);
                let (c, after) = match after.as_bytes().first() {
                    Some(b'0') => ('~', after.get(1..)),
                    Some(b'1') => ('/', after.get(1..)),
                    _ => return Err("in a pointer `~` is written `~0` and `/` is written `~1`"),
                };
                plain.push(c);
                rest = after.unwrap_or_default();
            }
            plain.push_str(rest);
            Ok(plain.into_boxed_str())
        };
        rest.split('/').map(unescape).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::message::{Json, Limits};

    fn select(pointer: &str, json: &str) -> Vec<String> {
        let json = Json::parse(bytes::Bytes::copy_from_slice(json.as_bytes()), Limits::default()).unwrap();
        let pointer: Pointer = pointer.parse().unwrap();
        let found = pointer.select(json.root());
        found
            .iter()
            .map(|s| match s {
                Selected::Found(at, value) => format!("{at}={}", value.as_str().unwrap_or("?")),
                Selected::TooShallow(at, _) => format!("{at}!"),
            })
            .collect()
    }

    #[test]
    fn it_reads_and_prints_escapes() {
        for text in ["/path", "/edits/*/path", "/a~1b/~0c", "/"] {
            assert_eq!(text.parse::<Pointer>().unwrap().to_string(), text);
        }
        assert!("path".parse::<Pointer>().is_err());
        assert!("/a~2".parse::<Pointer>().is_err());
        assert!("/a~".parse::<Pointer>().is_err());
    }

    #[test]
    fn a_star_is_every_element_and_every_member() {
        assert_eq!(select("/a/*/p", r#"{"a":[{"p":"x"},{"q":"y"},{"p":"z"}]}"#), ["/a/0/p=x", "/a/2/p=z"]);
        assert_eq!(select("/a/*", r#"{"a":{"k/1":"x","l":"y"}}"#), ["/a/k~11=x", "/a/l=y"]);
        assert_eq!(select("/a/1", r#"{"a":["x","y"]}"#), ["/a/1=y"]);
        assert!(select("/b/*", r#"{"a":[]}"#).is_empty());
    }

    #[test]
    fn a_scalar_on_the_way_is_told() {
        assert_eq!(select("/a/*", r#"{"a":"[\"x\"]"}"#), ["/a!"]);
        assert_eq!(select("/a/*/p", r#"{"a":[{"p":"x"},"y"]}"#), ["/a/0/p=x", "/a/1!"]);
    }

    #[test]
    fn it_fits_places() {
        let pointer: Pointer = "/a/*/p".parse().unwrap();
        assert!(pointer.fits(&["a", "0", "p"]) && !pointer.fits(&["a", "0"]) && !pointer.fits(&["a", "0", "p", "q"]));
        assert!(pointer.covers(&["a", "0", "p", "q"]) && !pointer.covers(&["b", "0", "p"]));
    }
}

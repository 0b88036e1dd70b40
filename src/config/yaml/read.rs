//! Typed readings of a node. Each says in the report what is wrong and answers `None`.

use std::time::Duration;

use super::{Core, Entry, Kind, Node, Report, Scalar};
use crate::diagnostic::did_you_mean;

impl Scalar {
    /// What it is in YAML 1.2's core schema.
    pub fn core(&self) -> Core {
        match &*self.text {
            _ if !self.plain => Core::Text,
            "" | "~" | "null" | "Null" | "NULL" => Core::Null,
            "true" | "True" | "TRUE" => Core::Bool(true),
            "false" | "False" | "FALSE" => Core::Bool(false),
            text if is_number(text) => Core::Number,
            _ => Core::Text,
        }
    }
}

/// Words of other languages for ours, where one of a few is due.
const MEANT: [(&str, &str); 13] = [
    ("accept", "allow"),
    ("permit", "allow"),
    ("block", "deny"),
    ("reject", "deny"),
    ("alter", "ddl"),
    ("create", "ddl"),
    ("drop", "ddl"),
    ("truncate", "delete"),
    ("replace", "insert"),
    ("grant", "dcl"),
    ("revoke", "dcl"),
    ("begin", "tx"),
    ("commit", "tx"),
];

/// A number with a unit as we write it: `15 minutes` is `15m`, `4MB` is `4MiB`.
fn respelled(text: &str) -> Option<String> {
    const UNITS: [(&str, &[&str]); 9] = [
        ("ms", &["ms", "msec", "millisecond"]),
        ("s", &["s", "sec", "second"]),
        ("m", &["m", "min", "minute"]),
        ("h", &["h", "hr", "hour"]),
        ("d", &["d", "day"]),
        ("B", &["byte"]),
        ("KiB", &["k", "kb", "kib"]),
        ("MiB", &["mb", "mib"]),
        ("GiB", &["g", "gb", "gib"]),
    ];
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let unit = unit.trim().to_ascii_lowercase();
    let singular = unit.strip_suffix('s').filter(|rest| !rest.is_empty()).unwrap_or(&unit);
    let (ours, _) = UNITS.iter().find(|(_, others)| others.contains(&singular) || others.contains(&unit.as_str()))?;
    Some(format!("{digits}{ours}"))
}

/// The units of time spans, in ms.
pub const SPANS: [(&str, u64); 5] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

impl Node {
    /// A text that is not empty.
    pub fn text(&self, report: &mut Report) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(scalar) if scalar.core() != Core::Text => {
                let help = format!("put it in quotes: \"{}\"", scalar.text);
                self.wrong("a text", report)?.help(&*help);
                None
            }
            Kind::Scalar(scalar) if scalar.text.is_empty() => {
                report.error(self.at, "the text is empty");
                None
            }
            Kind::Scalar(scalar) => Some(&scalar.text),
            _ => self.refuse("a text", report),
        }
    }

    /// Any scalar as it was written, be it a number or empty: for arguments, versions, hashes.
    pub fn verbatim(&self, report: &mut Report) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(scalar) => Some(&scalar.text),
            _ => self.refuse("a text", report),
        }
    }

    /// `true` or `false`.
    pub fn boolean(&self, report: &mut Report) -> Option<bool> {
        match self.scalar().map(Scalar::core) {
            Some(Core::Bool(value)) => Some(value),
            _ => {
                let word = self.scalar().map(|scalar| scalar.text.to_ascii_lowercase()).unwrap_or_default();
                let meant = match word.as_str() {
                    "yes" | "on" | "y" | "1" | "true" => Some("write `true`"),
                    "no" | "off" | "n" | "0" | "false" => Some("write `false`"),
                    _ => None,
                };
                self.wrong("`true` or `false`", report)?.help(meant);
                None
            }
        }
    }

    /// A decimal integer of at least 0.
    pub fn integer(&self, report: &mut Report) -> Option<u64> {
        let plain = self.scalar().filter(|s| s.plain && s.text.bytes().all(|b| b.is_ascii_digit()));
        let sound = plain.filter(|s| s.text.len() == 1 || !s.text.starts_with('0'));
        if let Some(number) = sound.and_then(|s| s.text.parse().ok()) {
            return Some(number);
        }
        let quoted = self.scalar().is_some_and(|s| !s.plain && s.text.bytes().all(|b| b.is_ascii_digit()));
        self.wrong("a whole number", report)?.help(quoted.then_some("write it without quotes"));
        None
    }

    /// A time span greater than 0: `500ms`, `50s`, `15m`, `8h`, `2d`.
    pub fn duration(&self, report: &mut Report) -> Option<Duration> {
        let millis = self.quantity(&SPANS, "a time span such as 50s, 15m, 8h or 2d", report)?;
        Some(Duration::from_millis(millis))
    }

    /// A size greater than 0 in bytes: `64KiB`, `4MiB`, `1GiB`.
    pub fn bytes(&self, report: &mut Report) -> Option<u64> {
        const UNITS: [(&str, u64); 4] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
        self.quantity(&UNITS, "a size such as 64KiB, 4MiB or 1GiB", report)
    }

    /// One of a few words.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)], report: &mut Report) -> Option<T> {
        let word = self.text(report)?;
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == word) {
            return Some(*value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let lower = word.to_ascii_lowercase();
        let same = names.iter().copied().find(|name| *name == lower);
        let mut meant =
            MEANT.iter().filter(|(other, name)| *other == lower && names.contains(name)).map(|(_, name)| *name);
        let near = same.or_else(|| did_you_mean(word, names.iter().copied()));
        let help = match meant.next() {
            Some(name) => Some(format!("`{word}` is `{name}`")),
            None => near.map(|near| format!("did you mean `{near}`?")),
        };
        report.error(self.at, format!("`{word}` is none of {}", names.join(", "))).help(help.as_deref());
        None
    }

    /// The elements of a list.
    pub fn sequence(&self, report: &mut Report) -> Option<&[Node]> {
        match &self.kind {
            Kind::Sequence(nodes) => Some(nodes),
            _ => {
                self.wrong("a list", report)?.help("begin each entry with `- `, or write `[…]`");
                None
            }
        }
    }

    /// A list that is not empty, or one thing standing for a list of it.
    pub fn one_or_more(&self, report: &mut Report) -> Option<&[Node]> {
        match &self.kind {
            Kind::Broken => None,
            Kind::Sequence(nodes) if nodes.is_empty() => {
                report.error(self.at, "the list is empty").help("name at least one, or leave the field out");
                None
            }
            Kind::Sequence(nodes) => Some(nodes),
            _ => Some(std::slice::from_ref(self)),
        }
    }

    /// A list of texts, or one text.
    pub fn texts(&self, report: &mut Report) -> Option<Vec<&str>> {
        let nodes = self.one_or_more(report)?;
        let texts: Vec<&str> = nodes.iter().filter_map(|node| node.text(report)).collect();
        (texts.len() == nodes.len()).then_some(texts)
    }

    /// The fields of a mapping whose keys are data; where keys are known, use [`Fields`](super::Fields).
    pub fn mapping(&self, report: &mut Report) -> Option<&[Entry]> {
        self.mapping_of("this", report)
    }

    pub(super) fn mapping_of(&self, what: &str, report: &mut Report) -> Option<&[Entry]> {
        match &self.kind {
            Kind::Mapping(entries) => Some(entries),
            Kind::Broken => None,
            _ => {
                report.error(self.at, format!("{what} is {}, where fields are due", self.description()));
                report.help("write `name: value` lines below it, or `{ name: value }`");
                None
            }
        }
    }

    /// The scalar, if it is one.
    pub fn scalar(&self) -> Option<&Scalar> {
        match &self.kind {
            Kind::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The same value as a JSON text, numbers with the digits they were written with.
    pub fn json(&self, report: &mut Report) -> Option<String> {
        let mut text = String::new();
        self.write_json(&mut text, report)?;
        Some(text)
    }

    fn write_json(&self, into: &mut String, report: &mut Report) -> Option<()> {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match &self.kind {
            Kind::Scalar(scalar) => match scalar.core() {
                Core::Text => into.push_str(&quoted(&scalar.text)),
                Core::Bool(value) => into.push_str(if value { "true" } else { "false" }),
                Core::Number if serde_json::from_str::<serde_json::Number>(&scalar.text).is_ok() => {
                    into.push_str(&scalar.text)
                }
                Core::Number | Core::Null => return self.refuse("a number as JSON writes it", report),
            },
            Kind::Sequence(nodes) => {
                into.push('[');
                for (i, node) in nodes.iter().enumerate() {
                    into.push_str(if i == 0 { "" } else { "," });
                    node.write_json(into, report)?;
                }
                into.push(']');
            }
            Kind::Mapping(entries) => {
                into.push('{');
                for (i, entry) in entries.iter().enumerate() {
                    into.push_str(if i == 0 { "" } else { "," });
                    into.push_str(&quoted(&entry.key));
                    into.push(':');
                    entry.value.write_json(into, report)?;
                }
                into.push('}');
            }
            Kind::Broken => return None,
        }
        Some(())
    }

    fn quantity(&self, units: &[(&str, u64)], wanted: &str, report: &mut Report) -> Option<u64> {
        let read = |text: &str| {
            let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
            let (_, size) = units.iter().find(|(name, _)| *name == unit)?;
            digits.parse::<u64>().ok()?.checked_mul(*size).filter(|n| *n > 0)
        };
        let found = self.scalar().and_then(|s| read(&s.text));
        if found.is_none() {
            let bare = self.scalar().is_some_and(|s| s.text.bytes().all(|b| b.is_ascii_digit()));
            let meant = self.scalar().and_then(|s| respelled(&s.text)).filter(|text| read(text).is_some());
            let help = meant.map(|text| format!("write `{text}`")).or_else(|| bare.then(|| "add the unit".to_owned()));
            self.wrong(wanted, report)?.help(help.as_deref());
        }
        found
    }

    /// Reports another type than the wanted one, unless the node is already reported.
    fn wrong<'r>(&self, wanted: &str, report: &'r mut Report) -> Option<&'r mut Report> {
        (self.kind != Kind::Broken)
            .then(|| report.error(self.at, format!("expected {wanted}, found {}", self.description())))
    }

    /// [`Node::wrong`], for readers to end with.
    fn refuse<T>(&self, wanted: &str, report: &mut Report) -> Option<T> {
        self.wrong(wanted, report);
        None
    }

    fn description(&self) -> String {
        match &self.kind {
            Kind::Scalar(scalar) => match scalar.core() {
                Core::Null => "nothing".into(),
                Core::Bool(value) => format!("the truth value `{value}`"),
                Core::Number => format!("the number `{}`", scalar.text),
                Core::Text if scalar.text.is_empty() => "an empty text".into(),
                Core::Text => "a text".into(),
            },
            Kind::Sequence(_) => "a list".into(),
            Kind::Mapping(_) => "a mapping".into(),
            Kind::Broken => "something unreadable".into(),
        }
    }
}

/// Integers and floats of the core schema, `0o` and `0x` too.
fn is_number(text: &str) -> bool {
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if let Some(octal) = text.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|b| matches!(b, b'0'..=b'7'));
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let some_digits = !(whole.is_empty() && fraction.is_empty());
    some_digits && digits(whole) && digits(fraction) && exponent.is_none_or(|e| !e.is_empty() && digits(e))
}

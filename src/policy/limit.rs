//! `limit` on an allow: how much of what it allows, in what time. This room says what a call takes and where; the gate
//! and the store keep count.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::Duration;

use regex::Regex;
use sha2::{Digest, Sha256};
use unicode_normalization::UnicodeNormalization as _;

use super::args::numbers;
use super::decimal::Decimal;
use super::judge::Subject;
use super::model::Rule;
use crate::clock::Timestamp;
use crate::message::Value;
use crate::message::json::Kind;
use crate::pattern::fold;

/// How many counters a call may have a part in by one limit; more are over it.
const MAX_COUNTERS: usize = 256;

/// A rule's `limit`.
#[derive(Debug)]
pub(super) struct Limit {
    pub period: Period,
    pub of: Of,
    /// Whose calls share a counter: those for which all of these are equal. None: all calls.
    pub by: Vec<By>,
    pub then: Then,
}

/// What is counted.
#[derive(Debug)]
pub(super) enum Of {
    Calls(NonZeroU32),
    /// An argument's values.
    Sum {
        /// As it was written.
        name: Box<str>,
        pointer: Vec<Box<str>>,
        max: Decimal,
    },
}

/// What tells counters apart.
#[derive(Debug)]
pub(super) enum By {
    Agent,
    /// An argument's value, by JSON pointer.
    Argument(Vec<Box<str>>),
}

/// The time in which a limit holds. Hours, days and weeks begin in UTC, weeks on Monday.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Period {
    /// 1 s
    Second,
    /// 60 s
    Minute,
    /// 3,600 s
    Hour,
    /// 24 h
    Day,
    /// 7 days
    Week,
}

/// What happens to a call that is over a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Then {
    /// It is rejected: `rate_limit`.
    Reject,
    /// A human is asked.
    Ask,
}

/// What a call takes of one limit, if it runs.
#[derive(Clone, Debug)]
pub struct Charge {
    /// The rule whose limit it is.
    pub rule: String,
    /// Names the counter: the rule, what it counts, and whose calls share it, hashed.
    pub key: String,
    /// In which time.
    pub period: Period,
    /// How much the call takes; none where that cannot be told, which is over every limit.
    pub amount: Option<Decimal>,
    /// How much all calls of one period may take.
    pub max: Decimal,
    /// Calls per second or minute, which are counted by each process for itself.
    pub rate: Option<NonZeroU32>,
    /// What happens over the limit.
    pub then: Then,
    /// The limit in words: `30 calls per minute`.
    pub words: String,
}

impl Charge {
    /// What `limit` says of a call that a rule allows: one for each counter that it has a part in. A call to three people
    /// counts for each of them, so that no other list of the same people opens another counter.
    pub(super) fn of(rule: &Rule, limit: &Limit, subject: &Subject<'_>) -> Vec<Self> {
        let mut shared_by = vec![vec![rule.label.clone(), limit.to_string()]];
        let mut known = true;
        for by in &limit.by {
            let values = match by {
                By::Agent => Some(BTreeSet::from([subject.agent.unwrap_or_default().to_owned()])),
                By::Argument(pointer) => shared(subject.arguments, pointer),
            };
            let values = values.filter(|values| values.len().saturating_mul(shared_by.len()) <= MAX_COUNTERS);
            known &= values.is_some();
            if let Some(values) = values {
                let with = |value: &String| {
                    shared_by.iter().map(|before| [before.clone(), vec![value.clone()]].concat()).collect::<Vec<_>>()
                };
                shared_by = values.iter().flat_map(with).collect();
            }
        }
        shared_by.iter().map(|parts| Self::on(&key(parts), known, rule, limit, subject)).collect()
    }

    fn on(key: &str, known: bool, rule: &Rule, limit: &Limit, subject: &Subject<'_>) -> Self {
        let (amount, max, calls) = match &limit.of {
            Of::Calls(calls) => (Some(Decimal::from(1)), Decimal::from(calls.get()), Some(*calls)),
            Of::Sum { pointer, max, .. } => (sum(subject.arguments, pointer), max.clone(), None),
        };
        Self {
            rule: rule.label.clone(),
            key: key.to_owned(),
            period: limit.period,
            amount: amount.filter(|_| known),
            max,
            rate: calls.filter(|_| limit.period <= Period::Minute),
            then: limit.then,
            words: limit.words(),
        }
    }

    /// How the limit stands in `decided_by`.
    pub fn label(&self) -> String {
        format!("limit:{}", self.rule)
    }

    /// Whether waiting may help: not where the call alone takes more than all may, or nobody knows how much.
    pub fn can_wait(&self) -> bool {
        self.amount.as_ref().is_some_and(|amount| *amount <= self.max)
    }
}

impl Limit {
    fn words(&self) -> String {
        let period = self.period.as_str();
        match &self.of {
            Of::Calls(calls) if calls.get() == 1 => format!("1 call per {period}"),
            Of::Calls(calls) => format!("{calls} calls per {period}"),
            Of::Sum { name, max, .. } => format!("a sum of {max} in {name} per {period}"),
        }
    }
}

/// What is counted, and by what: the same counter goes on if only the most or what happens then changes.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.period)?;
        match &self.of {
            Of::Calls(_) => f.write_str(" calls")?,
            Of::Sum { pointer, .. } => write!(f, " sum {pointer:?}")?,
        }
        self.by.iter().try_for_each(|by| write!(f, " {by:?}"))
    }
}

impl Period {
    /// The word in YAML and in sentences.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
        }
    }

    /// How long it is.
    pub const fn length(self) -> Duration {
        Duration::from_secs(match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
            Self::Week => 7 * 86_400,
        })
    }

    /// The end of the period that a moment lies in.
    pub fn end(self, at: Timestamp) -> Timestamp {
        let length = i64::try_from(self.length().as_millis()).unwrap_or(i64::MAX);
        // The Unix epoch was a Thursday.
        let since_monday = if self == Self::Week { 3 * 86_400_000 } else { 0 };
        let into = (at.as_millis().saturating_add(since_monday)).rem_euclid(length);
        Timestamp::from_millis(at.as_millis().saturating_add(length - into))
    }
}

/// The sum of all numbers that a pointer leads to; none if there is none, or anything that is no number of at least 0.
fn sum(arguments: Option<&Value>, pointer: &[Box<str>]) -> Option<Decimal> {
    let add = |sum: Decimal, number: Decimal| sum.plus(&number).filter(Decimal::is_countable);
    numbers(arguments, pointer)?.into_iter().try_fold(Decimal::from(0), add)
}

/// The name of a counter.
fn key(parts: &[String]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// The values that counters are told apart by: what an upstream may take for the same is the same, so that no other
/// spelling opens another counter.
fn shared(arguments: Option<&Value>, pointer: &[Box<str>]) -> Option<BTreeSet<String>> {
    let found = super::args::all(arguments, pointer)?;
    let texts: Option<BTreeSet<String>> = found
        .into_iter()
        .map(|value| match &value.kind {
            Kind::Bool(value) => Some(value.to_string()),
            Kind::Number(text) | Kind::String(text) => Some(spelled(text)),
            Kind::Null | Kind::Array(_) | Kind::Object(_) => None,
        })
        .collect();
    texts.filter(|texts| !texts.is_empty())
}

/// One spelling of a text: without case and Unicode form, and of a number as tools read numbers, which is more than JSON
/// has: digits of any script, a sign, leading zeros, a bare point, blanks and `_` between digits, and `0x`, `0o` and `0b`.
fn spelled(text: &str) -> String {
    // Twice: what is folded away may have kept two characters from becoming one.
    let wide = fold(&text.nfkc().map(ascii_digit).collect::<String>());
    let text = fold(&wide.nfkc().map(ascii_digit).collect::<String>());
    number(&text).map_or(text, |number| number.to_string())
}

fn number(text: &str) -> Option<Decimal> {
    let text: String = text.chars().filter(|c| !c.is_whitespace() && *c != '_').collect();
    // The minus sign and the hyphens that NFKC leaves.
    let unsigned = text.trim_start_matches(['+', '-', '\u{2212}', '\u{2010}']);
    let sign = match text.strip_suffix(unsigned)? {
        "" | "+" => "",
        "-" | "\u{2212}" | "\u{2010}" => "-",
        _ => return None,
    };
    let radix = |(prefix, radix)| u128::from_str_radix(unsigned.strip_prefix(prefix)?, radix).ok();
    if let Some(whole) = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find_map(radix) {
        return Decimal::parse(&format!("{sign}{whole}"));
    }
    let (mantissa, exponent) = unsigned.split_once('e').map_or((unsigned, None), |(m, e)| (m, Some(e)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    let exponent = exponent.map(|exponent| format!("e{exponent}")).unwrap_or_default();
    Decimal::parse(&format!("{sign}{whole}.{fraction}{exponent}"))
}

/// A decimal digit of any script as the ASCII one; others stay. Unicode keeps the ten digits of a script together, from
/// zero to nine, and after NFKC no two scripts' digits stand side by side but in whole tens.
fn ascii_digit(c: char) -> char {
    if c.is_ascii() || !is_digit(c) {
        return c;
    }
    let before =
        (1..).take_while(|back| u32::from(c).checked_sub(*back).and_then(char::from_u32).is_some_and(is_digit));
    u32::try_from(before.count() % 10).ok().and_then(|digit| char::from_digit(digit, 10)).unwrap_or(c)
}

fn is_digit(c: char) -> bool {
    static DIGIT: OnceLock<Option<Regex>> = OnceLock::new();
    let digit = DIGIT.get_or_init(|| Regex::new(r"^\p{Nd}$").ok());
    digit.as_ref().is_some_and(|digit| digit.is_match(c.encode_utf8(&mut [0; 4])))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::message::{Json, Limits};

    fn with<T>(text: &str, work: impl FnOnce(Option<&Value>) -> T) -> T {
        work(Some(Json::parse(text.to_owned().into(), Limits::default()).unwrap().root()))
    }

    fn pointer(text: &str) -> Vec<Box<str>> {
        text.split('/').skip(1).map(Box::from).collect()
    }

    #[test]
    fn a_sum_is_exact_and_of_numbers_only() {
        let total = |text: &str, at: &str| with(text, |value| sum(value, &pointer(at))).map(|sum| sum.to_string());
        assert_eq!(total(r#"{"a":0.1}"#, "/a"), Some("0.1".into()));
        assert_eq!(
            total(r#"{"a":[{"n":0.1},{"n":0.2},{"n":9007199254740993}]}"#, "/a/*/n"),
            Some("9007199254740993.3".into())
        );
        assert_eq!(total(r#"{"a":1,"A":2}"#, "/a"), Some("3".into()), "both that a tool might read");
        for text in [r#"{}"#, r#"{"a":"5"}"#, r#"{"a":-1}"#, r#"{"a":null}"#, r#"{"a":[]}"#, r#"{"a":1e-999}"#] {
            assert_eq!(total(text, "/a"), None, "{text}");
        }
        assert_eq!(total(r#"{"a":[]}"#, "/a/*"), None);
        assert_eq!(total(r#"{"a":[1,-1]}"#, "/a/*"), None);
    }

    #[test]
    fn other_spellings_share_a_counter() {
        let value = |text: &str| with(text, |value| shared(value, &pointer("/o")));
        let one = value(r#"{"o":1}"#);
        for same in [r#"{"o":"1"}"#, r#"{"o":1.0}"#, r#"{"o":" 1 "}"#, r#"{"o":"1e0"}"#] {
            assert_eq!(value(same), one, "{same}");
        }
        for seven in
            "07 007 +7 7. 7.0 70e-1 0.7E1 .7e+1 ７ ٧ ७ ꩗ 𝟽 0x7 0X07 0b111 0o7 ⁷ 7\u{a0} 0_7 +\u{200b}7".split(' ')
        {
            assert_eq!(spelled(seven), "7", "{seven}");
        }
        for (one, other) in [("Ｘ1", "x1"), ("-0", "0"), ("\u{2212}3", "-3"), ("𝟙𝟘.50", "10.5"), ("ﬁle", "FILE")]
        {
            assert_eq!(spelled(one), spelled(other), "{one} {other}");
        }
        for (one, other) in
            [("-3", "3"), ("7", "70"), ("1.5", "15"), ("a7", "7"), ("--7", "7"), ("7-1", "7"), (".", "0")]
        {
            assert_ne!(spelled(one), spelled(other), "{one} {other}");
        }
        assert_eq!(value(r#"{"o":"Ab"}"#), value(r#"{"o":"aB\u200b"}"#));
        assert_ne!(value(r#"{"o":"a"}"#), value(r#"{"o":"b"}"#));
        let each = |text: &str| with(text, |value| shared(value, &pointer("/to/*")));
        assert_eq!(each(r#"{"to":["b","a","A"]}"#), each(r#"{"to":["a","b"]}"#), "one counter for each");
        assert_eq!(each(r#"{"to":["a","a"]}"#).unwrap().len(), 1);
        for none in [r#"{}"#, r#"{"O":1}"#, r#"{"o":null}"#, r#"{"o":[]}"#, r#"{"o":{}}"#] {
            assert_eq!(value(none), None, "{none}");
        }
    }

    #[test]
    fn periods_end_where_the_calendar_says() {
        let end = |period: Period, at: &str| {
            let at: Timestamp = serde_json::from_value(at.into()).unwrap();
            period.end(at).to_string()
        };
        assert_eq!(end(Period::Minute, "2026-11-30T23:59:59.999Z"), "2026-12-01T00:00:00.000Z");
        assert_eq!(end(Period::Day, "2026-11-30T00:00:00Z"), "2026-12-01T00:00:00.000Z");
        assert_eq!(end(Period::Week, "2026-11-29T23:59:59Z"), "2026-11-30T00:00:00.000Z", "a Monday");
        assert_eq!(end(Period::Week, "2026-11-30T00:00:00Z"), "2026-12-07T00:00:00.000Z");
        assert_eq!(end(Period::Hour, "1969-12-31T23:30:00Z"), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn digits_of_every_script_have_their_value() {
        let zeros = (0x80..=0x10_ffff).filter_map(char::from_u32).filter(|c| is_digit(*c) && c.nfkc().eq([*c]));
        let digits: Vec<char> = zeros.map(ascii_digit).collect();
        assert!(digits.len() >= 600 && digits.len().is_multiple_of(10));
        assert!(digits.iter().zip("0123456789".chars().cycle()).all(|(digit, wanted)| *digit == wanted));
    }

    proptest::proptest! {
        #[test]
        fn one_number_has_one_counter(number: u32, zeros in 0usize..4, fraction in 0usize..4, plus: bool, script in 0u32..3) {
            let zero = ['0', '\u{ff10}', '\u{660}'][script as usize];
            let digits: String = number.to_string().bytes().map(|digit| char::from_u32(zero as u32 + u32::from(digit - b'0')).unwrap()).collect();
            let point = if fraction > 0 { format!(".{}", "0".repeat(fraction - 1)) } else { String::new() };
            let text = format!("{}{}{digits}{point}", if plus { "+" } else { "" }, "0".repeat(zeros));
            proptest::prop_assert_eq!(spelled(&text), spelled(&number.to_string()));
        }
    }
}

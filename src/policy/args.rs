//! The `args` field: tests on arguments by JSON pointer.

use regex::Regex;

use super::decimal::Decimal;
use super::fields::Truth;
use super::recorded::{Doubt, Recorded, hides, hides_value};
use crate::message::json::Kind;
use crate::message::{Value, variant};
use crate::pattern::{NamePattern, Side, fold};

/// One entry of `args`: which argument, and what must hold for it.
#[derive(Debug)]
pub(super) struct ArgTest {
    /// RFC 6901 reference tokens; `*` is every element.
    pub pointer: Vec<Box<str>>,
    /// All must hold, on the same element.
    pub tests: Vec<Test>,
    /// What the upstream assumes where the argument is missing.
    pub default: Option<Scalar>,
}

/// One matcher.
#[derive(Debug)]
pub(super) enum Test {
    /// `eq` and `in`.
    OneOf(Vec<Scalar>),
    /// `gt`, `ge`, `lt`, `le`.
    Compared(Comparison, Decimal),
    /// The whole string.
    Regex(Expression),
    /// The whole string.
    Glob(NamePattern),
    /// Somewhere in the string.
    Contains(Text),
    /// Whether it is there at all; never unknown.
    Present(bool),
}

/// A regular expression for a whole string.
#[derive(Debug)]
pub(super) struct Expression {
    /// As it was written.
    pub exact: Regex,
    /// Where a `.` is a line break too, or a deny of `.*rm.*` would be passed by with one; none where that is the same.
    pub wide: Option<Regex>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Comparison {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// A value that a policy can write down.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Scalar {
    Bool(bool),
    Number(Decimal),
    Text(Text),
}

/// A text as written and as compared widely.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Text {
    exact: Box<str>,
    wide: Box<str>,
}

impl Text {
    pub fn new(text: &str) -> Self {
        Self { exact: text.into(), wide: fold(text).into() }
    }

    /// Whether nothing is left of it where it is compared widely.
    pub fn folds_away(&self) -> bool {
        self.wide.is_empty()
    }
}

impl ArgTest {
    /// The argument's name: a JSON pointer.
    pub fn name(&self) -> String {
        self.pointer.iter().map(|token| format!("/{}", token.replace('~', "~0").replace('/', "~1"))).collect()
    }

    /// What loosens must hold for every element, what tightens for any.
    pub fn holds(&self, arguments: Option<&Value>, side: Side, recorded: Option<&Recorded>) -> Truth {
        let mut found = Vec::new();
        collect(arguments, &self.pointer, recorded.is_some(), &mut found);
        let each = found.into_iter().map(|found| self.element(found, side, recorded));
        match side {
            Side::Exact => each.min(),
            Side::Wide => each.max(),
        }
        // an empty array below `*`
        .unwrap_or_else(|| self.tests.iter().map(Test::of_nothing).min().unwrap_or(Truth::Unknown))
    }

    fn element(&self, found: Found<'_>, side: Side, recorded: Option<&Recorded>) -> Truth {
        let holds = |test: &Test| match recorded {
            Some(recorded) if test.is_hidden(found) => recorded.holds(Doubt::Argument, side),
            _ => test.holds(found, self.default.as_ref(), side),
        };
        self.tests.iter().map(holds).min().unwrap_or(Truth::Unknown)
    }
}

impl Test {
    /// Whether the audit log does not tell enough.
    fn is_hidden(&self, found: Found<'_>) -> bool {
        match found {
            Found::Hidden => true,
            Found::Value(value) => {
                !matches!(self, Self::Present(_)) && matches!(&value.kind, Kind::String(text) if hides_value(text))
            }
            Found::Missing | Found::WrongType => false,
        }
    }

    fn holds(&self, found: Found<'_>, default: Option<&Scalar>, side: Side) -> Truth {
        if let Self::Present(wanted) = self {
            return (matches!(found, Found::Value(_)) == *wanted).into();
        }
        match (found, default) {
            (Found::Value(value), _) => match &value.kind {
                Kind::Bool(value) => self.on(&Given::Bool(*value), side),
                Kind::Number(text) => {
                    Decimal::parse(text).map_or(Truth::Unknown, |n| self.on(&Given::Number(&n), side))
                }
                Kind::String(text) => self.on(&Given::Text(text), side),
                Kind::Null | Kind::Array(_) | Kind::Object(_) => Truth::Unknown,
            },
            (Found::Missing, Some(default)) => self.on(&default.given(), side),
            (Found::Missing, None) => Truth::False,
            (Found::WrongType | Found::Hidden, _) => Truth::Unknown,
        }
    }

    /// What an empty array says: nothing is there, and nothing else is known.
    fn of_nothing(&self) -> Truth {
        match self {
            Self::Present(wanted) => (!wanted).into(),
            _ => Truth::Unknown,
        }
    }

    fn on(&self, given: &Given<'_>, side: Side) -> Truth {
        match (self, given) {
            (Self::OneOf(scalars), _) => {
                scalars.iter().map(|scalar| scalar.equals(given, side)).max().unwrap_or(Truth::Unknown)
            }
            (Self::Compared(comparison, bound), Given::Number(number)) => comparison.holds(number, bound).into(),
            (Self::Regex(expression), Given::Text(text)) => match side {
                Side::Exact => expression.exact.is_match(text),
                Side::Wide => expression.wide.as_ref().unwrap_or(&expression.exact).is_match(text),
            }
            .into(),
            (Self::Glob(pattern), Given::Text(text)) => pattern.matches(text, side).into(),
            (Self::Contains(part), Given::Text(text)) => match side {
                Side::Exact => text.contains(&*part.exact),
                Side::Wide => text.contains(&*part.exact) || fold(text).contains(&*part.wide),
            }
            .into(),
            _ => Truth::Unknown,
        }
    }
}

impl Comparison {
    fn holds(self, number: &Decimal, bound: &Decimal) -> bool {
        match self {
            Self::Greater => number > bound,
            Self::GreaterOrEqual => number >= bound,
            Self::Less => number < bound,
            Self::LessOrEqual => number <= bound,
        }
    }
}

impl Scalar {
    fn given(&self) -> Given<'_> {
        match self {
            Self::Bool(value) => Given::Bool(*value),
            Self::Number(number) => Given::Number(number),
            Self::Text(text) => Given::Text(&text.exact),
        }
    }

    fn equals(&self, given: &Given<'_>, side: Side) -> Truth {
        match (self, given) {
            (Self::Bool(a), Given::Bool(b)) => (a == b).into(),
            (Self::Number(a), Given::Number(b)) => (a == *b).into(),
            (Self::Text(a), Given::Text(b)) => match side {
                Side::Exact => *a.exact == **b,
                Side::Wide => *a.exact == **b || *a.wide == *fold(b),
            }
            .into(),
            _ => Truth::Unknown,
        }
    }
}

/// An argument's value, or what the upstream assumes.
enum Given<'a> {
    Bool(bool),
    Number(&'a Decimal),
    Text(&'a str),
}

/// What stands where a pointer leads.
#[derive(Clone, Copy)]
enum Found<'a> {
    Value(&'a Value),
    Missing,
    /// Something on the way is neither an object nor an array.
    WrongType,
    /// The audit log does not tell.
    Hidden,
}

/// Everything that a pointer may lead to, in either reading of a key's case; none if something is missing in one.
pub(super) fn all<'a>(arguments: Option<&'a Value>, pointer: &[Box<str>]) -> Option<Vec<&'a Value>> {
    let mut found = Vec::new();
    collect(arguments, pointer, false, &mut found);
    let values: Vec<&Value> = found
        .iter()
        .filter_map(|found| match found {
            Found::Value(value) => Some(*value),
            Found::Missing | Found::WrongType | Found::Hidden => None,
        })
        .collect();
    (values.len() == found.len() && !values.is_empty()).then_some(values)
}

/// All numbers that a pointer leads to; none if there is nothing, or anything else than a number of at least 0.
pub(super) fn numbers(arguments: Option<&Value>, pointer: &[Box<str>]) -> Option<Vec<Decimal>> {
    let number = |value: &Value| match &value.kind {
        Kind::Number(text) => Decimal::parse(text).filter(|number| !number.is_negative()),
        _ => None,
    };
    all(arguments, pointer)?.into_iter().map(number).collect()
}

/// What a pointer leads to. In a `recorded` call a redacted text may stand for anything, a redacted name for any other.
fn collect<'a>(value: Option<&'a Value>, pointer: &[Box<str>], recorded: bool, found: &mut Vec<Found<'a>>) {
    let Some(value) = value else { return found.push(Found::Missing) };
    let Some((token, rest)) = pointer.split_first() else { return found.push(Found::Value(value)) };
    let mut below = |value: &'a Value| collect(Some(value), rest, recorded, found);
    match &value.kind {
        Kind::Array(items) if &**token == "*" => items.iter().for_each(below),
        Kind::Object(members) if &**token == "*" => members.iter().for_each(|member| below(&member.value)),
        Kind::Object(members) => {
            let hidden = recorded && members.iter().any(|member| hides(&member.key));
            match value.get(token) {
                Some(value) => below(value),
                None if hidden => found.push(Found::Hidden),
                None => found.push(Found::Missing),
            }
            // `Amount` is `amount` to a tool that reads without regard to case: what loosens must hold for both readings.
            if let Some(member) = variant(value, token) {
                collect(Some(&member.value), rest, recorded, found);
            }
        }
        Kind::Array(items) => match index(token) {
            Some(index) => collect(items.get(index), rest, recorded, found),
            None => found.push(Found::WrongType),
        },
        Kind::String(text) if recorded && hides(text) => found.push(Found::Hidden),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::String(_) => found.push(Found::WrongType),
    }
}

/// An index as RFC 6901 section 4 writes it: no sign, no leading zero.
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || (!token.starts_with('0') && token.bytes().all(|b| b.is_ascii_digit()));
    token.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::message::Json;
    use Side::{Exact, Wide};
    use Truth::{False, True, Unknown};

    fn says(json: &str, test: &ArgTest, side: Side) -> Truth {
        let json = Json::parse(json.to_owned().into(), crate::message::Limits::default()).unwrap();
        test.holds(Some(json.root()), side, None)
    }

    fn at(pointer: &[&str], test: Test) -> ArgTest {
        ArgTest { pointer: pointer.iter().map(|token| Box::from(*token)).collect(), tests: vec![test], default: None }
    }

    fn over(bound: &str) -> Test {
        Test::Compared(Comparison::Greater, Decimal::parse(bound).unwrap())
    }

    #[test]
    fn big_numbers_are_not_rounded() {
        let test = at(&["id"], over("9007199254740992"));
        assert_eq!(says(r#"{"id":9007199254740993}"#, &test, Exact), True);
        assert_eq!(says(r#"{"id":9007199254740992}"#, &test, Wide), False);
        assert_eq!(says(r#"{"id":"9007199254740993"}"#, &test, Wide), Unknown);
    }

    #[test]
    fn what_is_missing_is_false_and_what_is_odd_is_unknown() {
        let test = at(&["a", "b"], over("1"));
        assert_eq!(says(r#"{}"#, &test, Wide), False);
        assert_eq!(says(r#"{"a":{}}"#, &test, Wide), False);
        assert_eq!(says(r#"{"a":"text"}"#, &test, Wide), Unknown);
        assert_eq!(says(r#"{"a":{"b":null}}"#, &test, Wide), Unknown);
        let assumed = ArgTest { default: Some(Scalar::Number(Decimal::parse("5").unwrap())), ..test };
        assert_eq!(says(r#"{}"#, &assumed, Exact), True);
        assert_eq!(says(r#"{"a":{"b":0}}"#, &assumed, Exact), False);
    }

    #[test]
    fn a_key_in_another_case_is_read_both_ways() {
        let forced = at(&["force"], Test::Present(true));
        let gentle = at(&["force"], Test::Present(false));
        let large = at(&["a", "amount"], over("100"));
        let small = ArgTest {
            default: Some(Scalar::Number(Decimal::parse("0").unwrap())),
            ..at(&["a", "amount"], Test::Compared(Comparison::Less, Decimal::parse("100").unwrap()))
        };
        assert_eq!(says(r#"{"Force":true}"#, &gentle, Exact), False);
        assert_eq!(says(r#"{"Force":true}"#, &forced, Exact), False);
        assert_eq!(says(r#"{"Force":true}"#, &forced, Wide), True);
        assert_eq!(says(r#"{"A":{"amount":500}}"#, &large, Wide), True);
        assert_eq!(says(r#"{"a":{"amoun\u0074":1,"other":500}}"#, &large, Wide), False);
        assert_eq!(says(r#"{"a":{"AMOUNT":500}}"#, &small, Exact), False);
        assert_eq!(says(r#"{"a":{"AMOUNT":5}}"#, &small, Exact), True);
    }

    #[test]
    fn every_element_loosens_any_element_tightens_and_none_is_unknown() {
        let test = at(&["to", "*"], Test::OneOf(vec![Scalar::Text(Text::new("ana"))]));
        assert_eq!(says(r#"{"to":["ana","eve"]}"#, &test, Exact), False);
        assert_eq!(says(r#"{"to":["ana","eve"]}"#, &test, Wide), True);
        assert_eq!(says(r#"{"to":[]}"#, &test, Exact), Unknown);
        assert_eq!(says(r#"{"to":[]}"#, &test, Wide), Unknown);
        assert_eq!(says(r#"{"to":"ana"}"#, &test, Exact), Unknown);
    }

    #[test]
    fn an_index_has_one_spelling() {
        let test = |token| at(&["a", token], over("1"));
        assert_eq!(says(r#"{"a":[0,5]}"#, &test("1"), Exact), True);
        for token in ["+1", "01", "-", "1.0"] {
            assert_eq!(says(r#"{"a":[0,5]}"#, &test(token), Exact), Unknown, "{token}");
        }
    }

    #[test]
    fn texts_fold_only_where_they_tighten() {
        let test = at(&["to"], Test::OneOf(vec![Scalar::Text(Text::new("Ana"))]));
        assert_eq!(says(r#"{"to":" aNA\u200b"}"#, &test, Exact), False);
        assert_eq!(says(r#"{"to":" aNA\u200b"}"#, &test, Wide), True);
    }

    #[test]
    fn presence_is_never_unknown() {
        for (json, there) in [(r#"{}"#, False), (r#"{"x":null}"#, True), (r#"{"x":[]}"#, True)] {
            assert_eq!(says(json, &at(&["x"], Test::Present(true)), Wide), there, "{json}");
        }
        assert_eq!(says(r#"{"x":[]}"#, &at(&["x", "*"], Test::Present(true)), Wide), False);
        assert_eq!(says(r#"{"x":"text"}"#, &at(&["x", "y"], Test::Present(false)), Exact), True);
    }
}

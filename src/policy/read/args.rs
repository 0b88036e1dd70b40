//! The `args` field.

use regex::RegexBuilder;

use super::fields::pattern;
use super::shape::{self, Field, Shape, field};
use crate::config::yaml::{Core, Entry, Fields as Yaml, Kind, Mark, Node, Report};
use crate::pattern::{NamePattern, PatternError};
use crate::policy::args::{ArgTest, Comparison, Expression, Scalar, Test, Text};
use crate::policy::decimal::Decimal;

const COMPARISONS: [(&str, Comparison); 4] = [
    ("gt", Comparison::Greater),
    ("ge", Comparison::GreaterOrEqual),
    ("lt", Comparison::Less),
    ("le", Comparison::LessOrEqual),
];
/// What an argument can be tested for.
pub(super) static MATCHERS: &[Field] = &[
    field("eq", Shape::Scalar, "This value."),
    field("in", Shape::OneOrMore(&Shape::Scalar), "One of these values."),
    field("gt", Shape::Number, "More than this; numbers compare exactly."),
    field("ge", Shape::Number, "This or more."),
    field("lt", Shape::Number, "Less than this."),
    field("le", Shape::Number, "This or less."),
    field("regex", Shape::Text, "The whole text, as the regex crate reads it."),
    field("glob", Shape::Text, "The whole text."),
    field("contains", Shape::Text, "Somewhere in the text."),
    field("present", Shape::Truth, "Whether the argument is there at all."),
];
pub(super) static DEFAULT: &[Field] =
    &[field("default", Shape::Scalar, "What the upstream assumes where the argument is missing.")];
/// Bytes that one compiled expression may take.
const REGEX_SIZE: usize = 1 << 20;

/// One test for each argument named.
pub(super) fn tests(node: &Node, report: &mut Report) -> Vec<ArgTest> {
    let entries = node.mapping(report).unwrap_or_default();
    if matches!(node.kind, Kind::Mapping(_)) && entries.is_empty() {
        report.error(node.at, "`args` names no argument").help("write `args: { NAME: { eq: … } }`");
    }
    entries.iter().filter_map(|entry| test(entry, report)).collect()
}

fn test(entry: &Entry, report: &mut Report) -> Option<ArgTest> {
    let pointer = pointer(&entry.key, entry.at, report);
    if entry.value.scalar().is_some() {
        let help = format!("to compare with a value, write `{}: {{ eq: … }}`", entry.key);
        report.error(entry.value.at, "expected matchers, found a value").help(&*help);
        return None;
    }
    let mut yaml = Yaml::new(&entry.value, format!("the matchers of `{}`", entry.key), report)?;
    let mut tests = Vec::new();
    if let Some(node) = yaml.optional("eq") {
        tests.extend(scalar(node, report).map(|scalar| Test::OneOf(vec![scalar])));
    }
    if let Some(node) = yaml.optional("in") {
        let nodes = node.one_or_more(report).unwrap_or_default();
        tests.push(Test::OneOf(nodes.iter().filter_map(|node| scalar(node, report)).collect()));
    }
    for (name, comparison) in COMPARISONS {
        if let Some(node) = yaml.optional(name) {
            tests.extend(number(node, report).map(|bound| Test::Compared(comparison, bound)));
        }
    }
    if let Some(node) = yaml.optional("regex") {
        tests.extend(pattern(node, "regex", report, whole).map(Test::Regex));
    }
    if let Some(node) = yaml.optional("glob") {
        tests.extend(pattern(node, "glob", report, NamePattern::parse).map(Test::Glob));
    }
    if let Some(node) = yaml.optional("contains") {
        tests.extend(pattern(node, "contains", report, part).map(Test::Contains));
    }
    if let Some(node) = yaml.optional("present") {
        tests.extend(node.boolean(report).map(Test::Present));
    }
    if !satisfiable(&tests) {
        report.error(entry.value.at, format!("no number is within the bounds of `{}`", entry.key)).help("correct them");
    }
    let default = yaml.optional("default").and_then(|node| scalar(node, report));
    if !MATCHERS.iter().any(|matcher| yaml.has(matcher.name)) {
        report.error(entry.value.at, format!("`{}` has no matcher", entry.key)).help("write `{ eq: … }` or another");
    }
    shape::MATCHERS.finish(yaml, report);
    Some(ArgTest { pointer: pointer?, tests, default })
}

/// Whether some number is within all bounds.
fn satisfiable(tests: &[Test]) -> bool {
    use Comparison::{Greater, GreaterOrEqual, Less, LessOrEqual};
    let bounds =
        || tests.iter().filter_map(|test| if let Test::Compared(is, bound) = test { Some((*is, bound)) } else { None });
    let lower = bounds().filter(|(is, _)| matches!(is, Greater | GreaterOrEqual));
    lower.into_iter().all(|(low_is, low)| {
        bounds()
            .filter(|(is, _)| matches!(is, Less | LessOrEqual))
            .all(|(high_is, high)| low < high || (low == high && low_is == GreaterOrEqual && high_is == LessOrEqual))
    })
}

/// A top-level name, or a JSON pointer (RFC 6901) where it starts with `/`.
pub(super) fn pointer(key: &str, at: Mark, report: &mut Report) -> Option<Vec<Box<str>>> {
    let mut refuse = |what: &str, help: String| {
        report.error(at, format!("`{key}` {what}")).help(&*help);
        None
    };
    let Some(pointer) = key.strip_prefix('/') else {
        if key.is_empty() || key == "*" || key.contains('/') {
            return refuse("names no argument", format!("a JSON pointer starts with `/`: write `/{key}`"));
        }
        return Some(vec![key.into()]);
    };
    let bad_escape = |token: &str| token.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1']));
    if pointer.split('/').any(bad_escape) {
        return refuse("is no JSON pointer", "a `~` in a name is written `~0`, a `/` is written `~1`".into());
    }
    Some(pointer.split('/').map(|token| token.replace("~1", "/").replace("~0", "~").into()).collect())
}

fn scalar(node: &Node, report: &mut Report) -> Option<Scalar> {
    match node.scalar().map(|scalar| scalar.core()) {
        Some(Core::Bool(value)) => Some(Scalar::Bool(value)),
        Some(Core::Number) => number(node, report).map(Scalar::Number),
        _ => node.text(report).map(|text| Scalar::Text(Text::new(text))),
    }
}

pub(super) fn number(node: &Node, report: &mut Report) -> Option<Decimal> {
    let plain = node.scalar().filter(|scalar| scalar.core() == Core::Number);
    let number = plain.and_then(|scalar| Decimal::parse(&scalar.text));
    if number.is_none() && node.kind != Kind::Broken {
        report
            .error(node.at, "expected a number as JSON writes it")
            .help("write digits, `-12.5` or `1e6`; a text of digits goes in quotes, with `eq` or `in`");
    }
    number
}

/// An expression for the whole string. It must be one by itself, or its brackets could close ours.
fn whole(text: &str) -> Result<Expression, PatternError> {
    if let Some((inside, flags)) = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'))
        && !flags.is_empty()
        && flags.chars().all(|flag| "gimsuxy".contains(flag))
    {
        return Err(PatternError {
            what: "slashes and flags around an expression are a part of it".into(),
            help: Some(format!("write `(?i){inside}` to mind no case; it is matched against the whole string")),
        });
    }
    let compile = |text: &str| {
        RegexBuilder::new(text).size_limit(REGEX_SIZE).build().map_err(|error| PatternError {
            what: match error {
                regex::Error::CompiledTooBig(_) => "the expression is too large".into(),
                other => other.to_string().lines().last().unwrap_or("no regular expression").to_owned(),
            },
            help: Some("it is matched against the whole string, as the regex crate reads it".into()),
        })
    };
    compile(text)?;
    // Under `(?x)` a comment at the end goes on to the end of its line.
    let whole = |flags: &str| {
        compile(&format!(r"{flags}\A(?:{text})\z")).or_else(|_| compile(&format!("{flags}\\A(?:{text}\n)\\z")))
    };
    let wide = text.contains('.').then(|| whole("(?s)")).transpose()?;
    Ok(Expression { exact: whole("")?, wide })
}

fn part(text: &str) -> Result<Text, PatternError> {
    let part = Text::new(text);
    if part.folds_away() {
        return Err(PatternError {
            what: "nothing of it can be seen".into(),
            help: Some("use `regex` for blanks".into()),
        });
    }
    Ok(part)
}

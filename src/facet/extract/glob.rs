//! The fixed part of a glob argument, for each of its brace alternatives.

use crate::facet::{Floor, FloorWhy};

/// How many alternatives are told apart; what has more is judged by what is before its first brace.
const MAX_ALTERNATIVES: usize = 64;

/// Where one alternative of a glob starts.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    /// The folder (or file) that all of its matches are, or lie below; `.` where that is the start itself.
    pub prefix: String,
    /// The whole alternative with `..` folded and wildcards taken as names, if it has a `..` after a wildcard.
    pub folded: Option<String>,
    /// What is odd about it.
    pub floor: Option<Floor>,
}

/// The fixed parts of a pattern.
pub(super) fn fixed_parts(pattern: &str) -> Vec<Fixed> {
    let alternatives = expand(pattern).unwrap_or_else(|| vec![pattern.to_owned()]);
    let mut parts: Vec<Fixed> = Vec::new();
    for fixed in alternatives.iter().map(|alternative| fixed_part(alternative)) {
        if !parts.contains(&fixed) {
            parts.push(fixed);
        }
    }
    parts
}

fn fixed_part(alternative: &str) -> Fixed {
    let components: Vec<&str> = alternative.split('/').collect();
    let fixed = components.iter().take_while(|component| !is_wild(component)).count();
    let (prefix, rest) = components.split_at_checked(fixed).unwrap_or_default();
    let mut prefix = prefix.join("/");
    let climbs = rest.iter().filter(|component| **component == "..").count();
    let folded = (climbs > 0).then(|| alternative.to_owned());
    if prefix.is_empty() {
        prefix.push_str(if alternative.starts_with('/') { "/" } else { "." });
    }
    // Each `..` may climb out of what the wildcard matched; `**` may have matched nothing at all.
    for _ in 0..climbs {
        prefix.push_str("/..");
    }
    let floor = if climbs > 0 {
        Some("`..` after a wildcard")
    } else if rest.iter().any(|component| component.contains('\\')) {
        Some("a backslash")
    } else {
        None
    };
    Fixed { prefix, folded, floor: floor.map(|detail| Floor::because(FloorWhy::Spelling, detail)) }
}

/// Whether a component may match other names than itself.
fn is_wild(component: &str) -> bool {
    let extended = ["!(", "@(", "+("].iter().any(|open| component.contains(open));
    // `:(icase)x`, `:/x`, `:!x` to git.
    component.contains(['*', '?', '[', '{', '\\']) || component.starts_with(['!', ':']) || extended
}

/// Every brace alternative; none where there are too many, or the braces do not pair.
fn expand(pattern: &str) -> Option<Vec<String>> {
    let mut done: Vec<String> = Vec::new();
    let mut open = vec![pattern.to_owned()];
    while let Some(pattern) = open.pop() {
        if done.len() + open.len() > MAX_ALTERNATIVES {
            return None;
        }
        match split_braces(&pattern)? {
            None => done.push(pattern),
            Some((before, choices, after)) => {
                open.extend(choices.iter().rev().map(|choice| format!("{before}{choice}{after}")));
            }
        }
    }
    Some(done)
}

/// The first `{a,b}`: before, choices, after. `{1..3}` and `{x}` have no choices and stay wild. The outer option is
/// none where braces do not pair.
fn split_braces(pattern: &str) -> Option<Option<(&str, Vec<&str>, &str)>> {
    let mut from = 0;
    while let Some(start) = pattern.get(from..)?.find('{').map(|at| at + from) {
        let (mut depth, mut choice, mut choices, mut end) = (0_usize, start + 1, Vec::new(), None);
        for (at, c) in pattern.get(start..)?.char_indices().map(|(at, c)| (at + start, c)) {
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => {
                    choices.push(pattern.get(choice..at)?);
                    end = Some(at + 1);
                    break;
                }
                '}' => depth -= 1,
                ',' if depth == 1 => {
                    choices.push(pattern.get(choice..at)?);
                    choice = at + 1;
                }
                _ => {}
            }
        }
        let end = end?;
        if choices.len() > 1 {
            return Some(Some((pattern.get(..start)?, choices, pattern.get(end..)?)));
        }
        from = start + 1;
    }
    Some(None)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn prefixes(pattern: &str) -> Vec<String> {
        fixed_parts(pattern).into_iter().map(|fixed| fixed.prefix).collect()
    }

    #[test]
    fn the_part_before_the_first_wildcard_is_fixed() {
        for (pattern, prefix) in [
            ("secrets/**", "secrets"),
            ("**/*.pem", "."),
            ("s*/key.pem", "."),
            ("/etc/*.conf", "/etc"),
            ("/*", "/"),
            ("docs/a.md", "docs/a.md"),
            ("../secrets/*", "../secrets"),
            ("docs/[ab]/x", "docs"),
            ("@(docs|secrets)/*", "."),
            ("!docs/**", "."),
            (":(top)docs/a.md", "."),
            ("@scope/pkg/*", "@scope/pkg"),
            ("docs/{1..3}/x", "docs"),
            ("docs/{x}/y", "docs"),
            ("docs/{a", "docs"),
            ("sec\\rets/*", "."),
        ] {
            assert_eq!(prefixes(pattern), [prefix], "{pattern}");
        }
    }

    #[test]
    fn every_alternative_counts() {
        assert_eq!(prefixes("{docs,secrets}/*"), ["docs", "secrets"]);
        assert_eq!(prefixes("a/{b,{c,d/e}}/f*"), ["a/b", "a/c", "a/d/e"]);
        assert_eq!(prefixes("{x}{docs,secrets}/*"), ["."]);
        assert_eq!(prefixes("{,secrets/}key*"), [".", "secrets"]);
        assert_eq!(prefixes("docs/{a,b}.md"), ["docs/a.md", "docs/b.md"]);
        let many = "{a,b}".repeat(7);
        assert_eq!(prefixes(&many), ["."], "too many to tell apart");
    }

    #[test]
    fn climbing_after_a_wildcard_widens() {
        let fixed = fixed_parts("docs/*/../../secrets/*");
        assert_eq!(fixed.len(), 1);
        assert_eq!(fixed.first().unwrap().prefix, "docs/../..");
        assert_eq!(fixed.first().unwrap().folded.as_deref(), Some("docs/*/../../secrets/*"));
        assert!(fixed.first().unwrap().floor.is_some());
        assert!(fixed_parts("docs/../src/*").first().unwrap().floor.is_none(), "before a wildcard it is a plain path");
    }
}

//! What others wrote, made safe to be read anywhere: short, on one line, without links, mentions or invisible characters.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::pattern::visible;

/// Characters of a text that an agent wrote.
const LONGEST: usize = 120;

/// The scheme of an address, also where a path was made of it: `https://` and `https:/`, but not `c:/`.
static SCHEME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?i)([a-z][a-z0-9+.-]+):/").ok());

/// What mail programs and chats make a link of, although nobody wrote it as one: a name of a host at the start of a word.
static HOST: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)(^|//|\]/|[^\p{L}\p{N}._/-])((?:[\p{L}\p{N}_-]+\.)+)(\p{L}{2,})").ok());

/// An agent's text as people are told it.
pub fn tame(text: &str) -> String {
    let shown = visible(text);
    let shown = shown.replace('@', "(at)");
    let shown = match SCHEME.as_ref() {
        Some(scheme) => scheme.replace_all(&shown, "$1[:]/").into_owned(),
        None => shown.replace(":/", "[:]/"),
    };
    let shown = match HOST.as_ref() {
        Some(host) => host
            .replace_all(&shown, |found: &Captures<'_>| {
                let part = |at| found.get(at).map_or("", |part| part.as_str());
                format!("{}{}{}", part(1), part(2).replace('.', "[.]"), part(3))
            })
            .into_owned(),
        // A test compiles the expression.
        None => shown.replace('.', "[.]"),
    };
    let shown = mailto(&shown);
    match shown.char_indices().nth(LONGEST) {
        None => shown,
        Some(_) => shown.chars().take(LONGEST - 1).chain(['…']).collect(),
    }
}

/// Schemes without slashes, such as `mailto:`, `tel:` and `javascript:`.
fn mailto(text: &str) -> String {
    let mut shown = text.to_owned();
    for scheme in ["mailto:", "tel:", "sms:", "javascript:", "data:", "slack:", "msteams:"] {
        while let Some(at) = shown.to_ascii_lowercase().find(scheme) {
            let colon = at + scheme.len() - 1;
            shown.replace_range(colon..=colon, "[:]");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_text_becomes_a_link_a_mention_or_a_second_line() {
        assert!(HOST.is_some() && SCHEME.is_some());
        for (sent, told) in [
            ("write_file docs/a.md (312 bytes)", "write_file docs/a.md (312 bytes)"),
            ("write_file a.md", "write_file a[.]md"),
            ("see https://evil.example/login now", "see https[:]//evil[.]example/login now"),
            ("https:/evil.example/c:/x.md", "https[:]/evil[.]example/c:/x.md"),
            ("go to evil.example/login", "go to evil[.]example/login"),
            ("www.evil.example", "www[.]evil[.]example"),
            ("(evil.example)", "(evil[.]example)"),
            ("пример.рф", "пример[.]рф"),
            ("@channel <!here> <@U123>", "(at)channel <!here> <(at)U123>"),
            ("boss@corp.example", "boss(at)corp[.]example"),
            ("MailTo:boss", "MailTo[:]boss"),
            ("one\r\nBcc: x", "one\\r\\nBcc: x"),
            ("safe\u{202e}gpj.exe", "safe\\u{202e}gpj[.]exe"),
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("version 1.2.3 of ./run.sh -x", "version 1.2.3 of ./run.sh -x"),
        ] {
            assert_eq!(tame(sent), told);
        }
    }

    #[test]
    fn a_text_is_at_most_120_characters_long() {
        let long = tame(&"ä@".repeat(200));
        assert_eq!(long.chars().count(), 120);
        assert!(long.ends_with('…'));
        assert_eq!(tame(&"x".repeat(120)), "x".repeat(120));
    }
}

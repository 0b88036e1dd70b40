//! What a person cannot see or would not tell apart, folded away for the strict side and made visible for people.

use std::borrow::Cow;
use std::fmt::Write;

use unicode_normalization::UnicodeNormalization;

/// Folds what [`Side::Wide`](super::Side::Wide) ignores: case, Unicode form, edge blanks, invisible characters.
///
/// Case goes up and then down, so that letters with one capital (`ſ` and `s`, `K` (U+212A) and `k`) become one, as file
/// systems that ignore case treat them; the result is in NFC.
pub fn fold(text: &str) -> String {
    fold_cow(text).into_owned()
}

/// [`fold`] that keeps the blanks at the edges: for a part of a name.
pub(super) fn fold_inner(text: &str) -> String {
    if text.is_ascii() {
        return text.chars().filter(|c| !is_invisible(*c)).map(|c| c.to_ascii_lowercase()).collect();
    }
    text.nfd().filter(|c| !is_invisible(*c)).flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc().collect()
}

/// [`fold`], without a copy where nothing is to be folded.
pub(super) fn fold_cow(text: &str) -> Cow<'_, str> {
    let plain = |b: u8| matches!(b, b'!'..=b'~') && !b.is_ascii_uppercase();
    let blank_edge = text.starts_with(' ') || text.ends_with(' ');
    if !blank_edge && text.bytes().all(|b| plain(b) || b == b' ') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(fold_inner(text).trim().to_owned())
    }
}

/// Control, format, bidi and invisible characters: what a person cannot see.
///
/// Unicode's categories Cc, Cf, Zl and Zp and everything default-ignorable (zero width, variation selectors, tags,
/// fillers), and the blank Braille pattern. A test compares the table with the Unicode data of the `regex` crate.
pub const fn is_invisible(c: char) -> bool {
    // Most of what is looked at.
    if matches!(c, ' '..='~') {
        return false;
    }
    matches!(c as u32,
        0x00..=0x1f
        | 0x7f..=0x9f
        | 0xad
        | 0x34f
        | 0x600..=0x605
        | 0x61c
        | 0x6dd
        | 0x70f
        | 0x890..=0x891
        | 0x8e2
        | 0x115f..=0x1160
        | 0x17b4..=0x17b5
        | 0x180b..=0x180f
        | 0x200b..=0x200f
        | 0x2028..=0x202e
        | 0x2060..=0x206f
        | 0x2800
        | 0x3164
        | 0xfe00..=0xfe0f
        | 0xfeff
        | 0xffa0
        | 0xfff0..=0xfffb
        | 0x110bd
        | 0x110cd
        | 0x13430..=0x1343f
        | 0x1bca0..=0x1bca3
        | 0x1d173..=0x1d17a
        | 0xe0000..=0xe0fff)
}

/// The text with every invisible character written out (`\n`, `\u{202e}`), for people to see.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            c if is_invisible(c) => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", c as u32);
            }
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_table_is_the_unicode_classes() {
        let class = regex::Regex::new(r"^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u{2800}]$").unwrap();
        let mut buffer = [0; 4];
        let differing: Vec<String> = ('\0'..=char::MAX)
            .filter(|c| is_invisible(*c) != class.is_match(c.encode_utf8(&mut buffer)))
            .map(|c| format!("{:x}", c as u32))
            .collect();
        assert!(differing.is_empty(), "{differing:?}");
    }

    #[test]
    fn spellings_of_one_name_fold_to_one() {
        for spelling in
            ["Secrets", "SECRETS", " secrets ", "sec\u{200c}rets", "secrets\u{feff}", "\u{17f}ecrets", "secrets\n"]
        {
            assert_eq!(fold(spelling), "secrets", "{spelling:?}");
        }
        assert_eq!(fold("se\u{301}crets"), fold("S\u{c9}CRETS"));
        assert_eq!(fold("se\u{200d}\u{301}crets"), fold("s\u{e9}crets"));
        assert_eq!(fold("STRASSE"), fold("stra\u{df}e"));
        assert_eq!(fold("\u{212a}ey"), "key");
        assert_eq!(fold("ΟΔΟΣ"), fold("οδος"));
    }

    #[test]
    fn different_names_stay_different() {
        assert_ne!(fold("secrets"), fold("s\u{435}crets"), "a Cyrillic letter is another letter");
        assert_ne!(fold("read-file"), fold("read_file"));
        assert_ne!(fold("a b"), fold("ab"), "blanks inside a name count");
    }

    #[test]
    fn the_copy_free_fold_is_the_fold() {
        for text in ["", "docs", "README.md", " a", "a ", "a b", "a\tb", "caf\u{e9}", "x\u{200b}"] {
            assert_eq!(fold_cow(text), fold_inner(text).trim(), "{text:?}");
        }
        assert!(matches!(fold_cow("main.rs"), Cow::Borrowed(_)));
    }

    #[test]
    fn hidden_characters_are_shown() {
        assert_eq!(visible("a\u{202e}b\nc\u{e0041}"), "a\\u{202e}b\\nc\\u{e0041}");
        assert_eq!(visible("plain <b>text</b> é"), "plain <b>text</b> é");
    }
}

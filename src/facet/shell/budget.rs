//! What is too large or too deep for the parsers, told in one pass before they see it.

/// Bytes of a shell text.
const MAX_BYTES: usize = 64 * 1024;
/// Levels of brackets and compound commands.
const MAX_DEPTH: usize = 32;
/// Openers altogether: quoted closers can hide depth from a scan that knows no quotes, and this bounds what they hide.
const MAX_OPENERS: usize = 4_000;
/// `$((`, which the parser tries in two ways at each level.
const MAX_ARITHMETIC: usize = 8;

const OPENING: [&str; 7] = ["if", "for", "while", "until", "case", "select", "function"];
const CLOSING: [&str; 3] = ["fi", "done", "esac"];

/// What is too much, if something is.
pub(super) fn excess(text: &str) -> Option<&'static str> {
    if text.len() > MAX_BYTES {
        return Some("the shell text is longer than 64 KiB");
    }
    if text.matches("((").count() + text.matches("$[").count() > MAX_ARITHMETIC {
        return Some("the shell text nests too much arithmetic");
    }
    let (mut depth, mut openers) = (0_usize, 0_usize);
    let mut open = |depth: &mut usize| {
        *depth += 1;
        openers += 1;
        *depth > MAX_DEPTH || openers > MAX_OPENERS
    };
    let mut word = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            continue;
        }
        let keyword = text.get(word..at).unwrap_or_default();
        word = at + 1;
        let too_deep = OPENING.contains(&keyword) && open(&mut depth);
        if CLOSING.contains(&keyword) {
            depth = depth.saturating_sub(1);
        }
        let too_deep = too_deep || matches!(byte, b'(' | b'{') && open(&mut depth);
        if matches!(byte, b')' | b'}') {
            depth = depth.saturating_sub(1);
        }
        if too_deep {
            return Some("the shell text is nested more than 32 levels deep");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_in_brackets_and_keywords() {
        assert_eq!(excess(&format!("echo {}{}", "$(".repeat(30), ")".repeat(30))), None);
        assert!(excess(&"$(".repeat(40)).is_some());
        assert!(excess(&"if true; then ".repeat(40)).is_some());
        assert!(excess(&"( ')' ".repeat(10_000)).is_some(), "quoted closers hide nothing for long");
        assert!(excess(&"$((".repeat(9)).is_some());
    }

    #[test]
    fn long_lists_are_not_deep() {
        assert_eq!(excess(&"(a);".repeat(1_000)), None);
        assert_eq!(excess(&"word ".repeat(13_000)), None);
        assert!(excess(&"x".repeat(65_537)).is_some());
    }
}

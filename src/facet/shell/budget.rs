//! What is too large or too deep for the parsers, told in one pass before they see it.

/// Bytes of a shell text.
const MAX_BYTES: usize = 64 * 1024;
/// Levels of brackets and compound commands.
const MAX_DEPTH: usize = 32;
/// What a parser may go one level deeper for, altogether: quoted closers can hide depth from a scan that knows no quotes,
/// and `!`, `&&` and `elif` need no closer. Measured: 10,000 of `!` overflow the stack of the parser's thread.
const MAX_OPENERS: usize = 1_000;
/// `$((`, which the parser tries in two ways at each level.
const MAX_ARITHMETIC: usize = 8;

/// Here-documents that are announced before the first is read: a parser looks at all of them for each. Measured: 3,000 take
/// three seconds.
const MAX_DOCUMENTS: usize = 64;

const OPENING: [&str; 7] = ["if", "for", "while", "until", "case", "select", "function"];
/// Words that a parser goes deeper for, and that nothing closes.
const UNCLOSED: [&str; 4] = ["elif", "else", "coproc", "time"];
const CLOSING: [&str; 3] = ["fi", "done", "esac"];

/// What is too much, if something is.
pub(super) fn excess(text: &str) -> Option<&'static str> {
    if text.len() > MAX_BYTES {
        return Some("the shell text is longer than 64 KiB");
    }
    if text.matches("((").count() + text.matches("$[").count() > MAX_ARITHMETIC {
        return Some("the shell text nests too much arithmetic");
    }
    let mut announced = 0;
    for line in text.split('\n') {
        announced += line.matches("<<").count();
        if announced > MAX_DOCUMENTS {
            return Some("the shell text has more here-documents at once than are looked at");
        }
        // The next one goes on.
        if !line.ends_with('\\') {
            announced = 0;
        }
    }
    let (mut depth, mut openers) = (0_usize, 0_usize);
    let mut word = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            continue;
        }
        let keyword = text.get(word..at).unwrap_or_default();
        word = at + 1;
        let deeper = usize::from(OPENING.contains(&keyword)) + usize::from(matches!(byte, b'(' | b'{'));
        let back = usize::from(CLOSING.contains(&keyword)) + usize::from(matches!(byte, b')' | b'}'));
        depth = (depth + deeper).saturating_sub(back);
        openers +=
            deeper + usize::from(UNCLOSED.contains(&keyword) || matches!(byte, b'!' | b'[' | b'&' | b'|' | b'`'));
        if depth > MAX_DEPTH {
            return Some("the shell text is nested more than 32 levels deep");
        }
        if openers > MAX_OPENERS {
            return Some("the shell text has more brackets and operators than are looked at");
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
        for unclosed in ["! ", "a && ", "elif a; ", "coproc ", "a[", "time ", "f() "] {
            assert!(excess(&unclosed.repeat(2_000)).is_some(), "{unclosed}");
        }
        assert!(excess(&"$((".repeat(9)).is_some());
    }

    #[test]
    fn here_documents_are_counted_until_their_line_ends() {
        for at_once in [" <<E", " \\\n<<E", " <<-'E'", " 3<<E"] {
            assert!(excess(&format!("cat{}", at_once.repeat(65))).is_some(), "{at_once:?}");
        }
        assert_eq!(excess(&"cat <<E\nx << y << z\nE\n".repeat(2_000)), None);
    }

    #[test]
    fn long_lists_are_not_deep() {
        assert_eq!(excess(&"(a);".repeat(900)), None);
        assert_eq!(excess(&"word ".repeat(13_000)), None);
        assert!(excess(&"x".repeat(65_537)).is_some());
    }
}

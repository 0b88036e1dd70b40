//! The second opinion: another parser must see the same commands in a text.

use std::cell::RefCell;

use tree_sitter::{Node, Parser};

thread_local! {
    static PARSER: RefCell<Option<Parser>> = RefCell::new(parser());
}

fn parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    Some(parser)
}

/// Whether the commands that were seen are those that the second parser sees, as they stand in the text.
pub(super) fn agrees(text: &str, mut seen: Vec<String>) -> bool {
    let Some(mut others) = commands(text) else { return false };
    seen.sort_unstable();
    others.sort_unstable();
    seen == others
}

/// The command words of a text, those inside substitutions included; none if it cannot be parsed.
fn commands(text: &str) -> Option<Vec<String>> {
    let tree = PARSER.with_borrow_mut(|parser| parser.as_mut()?.parse(in_ascii(text), None))?;
    if tree.root_node().has_error() {
        return None;
    }
    let mut found = Vec::new();
    let mut cursor = tree.walk();
    // Depth first, without recursion.
    loop {
        found.extend(command_word(cursor.node(), text));
        if cursor.goto_first_child() || cursor.goto_next_sibling() {
            continue;
        }
        loop {
            if !cursor.goto_parent() {
                return Some(found);
            }
            if cursor.goto_next_sibling() {
                break;
            }
        }
    }
}

/// The text with a letter for each byte of what is not ASCII: to a shell such a character is no more than that, and the
/// parser's scanner looks it up in a table that has no place for it (`{` before U+E0072 ended the process).
fn in_ascii(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'x' }).collect()
}

fn command_word(node: Node<'_>, text: &str) -> Option<String> {
    let of = |node: Node<'_>| text.get(node.byte_range()).map(str::to_owned);
    match node.kind() {
        "command_name" => of(node),
        // These have their keyword for a first child.
        "declaration_command" | "unset_command" => node.child(0).and_then(of),
        "test_command" => node.child(0).and_then(of).filter(|bracket| bracket == "["),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_seen_wherever_they_stand() {
        for (text, words) in [
            ("ls; rm -rf x | cat && true", vec!["ls", "rm", "cat", "true"]),
            ("echo \"a $(ls `pwd`)\" <(cat x)", vec!["echo", "ls", "pwd", "cat"]),
            ("cat <<E\n$(rm)\nE\nexport X=1; [ -f x ]", vec!["cat", "rm", "export", "["]),
            ("X=1 ls # rm", vec!["ls"]),
        ] {
            let words = words.into_iter().map(str::to_owned).collect();
            assert!(agrees(text, words), "{text}: {:?}", commands(text));
        }
        assert!(agrees("é; ls 'ß'; \u{1f600} x", vec!["é".into(), "ls".into(), "\u{1f600}".into()]));
        assert!(commands("ls 'x").is_none() && commands("ls $(").is_none());
    }

    #[test]
    fn no_character_brings_the_parser_down() {
        let characters =
            ['\u{e0001}', '\u{e0072}', '\u{fffff}', '\u{10fffe}', '\u{1f600}', '\u{a0}', '\u{2028}', '\u{661}'];
        for c in characters {
            for text in [
                "ls {@",
                "{@",
                "@",
                "ls {@}",
                "ls ${@",
                "ls $@",
                "ls \"@",
                "ls '@",
                "ls `@",
                "ls $(@",
                "ls <<@\n@\n@",
                "@() { ls; }",
                "@=1 ls",
                "ls @>x",
                "[[ @ =~ @ ]]",
                "((@))",
                "for @ in @; do ls; done",
                "case @ in @) ls;; esac",
                "ls #@",
                "ls \\@",
                "ls $'@",
                "ls !@",
                "ls {@..@}",
                "ls {1..@}",
                "ls ${x:@}",
                "ls ${x@@}",
                "ls ${#@}",
                "[ @ ]",
                "&@",
                "|@",
                "ls <@",
                "ls 2>&@",
                "@[@]=1",
            ] {
                commands(&text.replace('@', &c.to_string()));
                commands(&text.replace('@', &format!("{c}{c}1")));
            }
        }
    }
}

//! What changed between two definitions, as lines that a person reads.

use serde_json::{Map, Value};

/// More lines than this on both sides are not matched one by one.
const MOST: usize = 2_000;

/// The parts that a person looks at first; what else there is comes after them.
const FIRST: [(&str, &str); 5] = [
    ("name", "name"),
    ("title", "title"),
    ("description", "description"),
    ("inputSchema", "arguments"),
    ("annotations", "annotations"),
];

/// From one definition to another, a line each: `- ` gone, `+ ` new, two blanks for what stays. Parts that are the same
/// on both sides are left out.
pub fn difference(old: &Value, new: &Value) -> Vec<String> {
    let (old, new) = (parts(old), parts(new));
    let mut names: Vec<(&str, &str)> = FIRST.to_vec();
    let others = old.keys().chain(new.keys()).map(String::as_str).filter(|key| !FIRST.iter().any(|(k, _)| k == key));
    for key in others {
        if !names.iter().any(|(known, _)| *known == key) {
            names.push((key, key));
        }
    }
    let mut shown = Vec::new();
    for (key, name) in names {
        let (before, after) = (old.get(key), new.get(key));
        if before != after {
            shown.push(format!("  {name}:"));
            let lines = |value: Option<&Value>| value.map(lines).unwrap_or_default();
            shown.extend(compared(&lines(before), &lines(after)));
        }
    }
    shown
}

fn parts(definition: &Value) -> Map<String, Value> {
    match definition {
        Value::Object(parts) => parts.clone(),
        // Two tools of one name in one list.
        other => Map::from_iter([("definitions".to_owned(), other.clone())]),
    }
}

fn lines(value: &Value) -> Vec<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    text.lines().map(|line| format!("  {line}")).collect()
}

/// By the longest common run of lines.
fn compared(old: &[String], new: &[String]) -> Vec<String> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old.iter().skip(head).rev().zip(new.iter().skip(head).rev()).take_while(|(a, b)| a == b).count();
    let middle =
        |all: &[String]| -> Vec<String> { all.iter().skip(head).take(all.len() - head - tail).cloned().collect() };
    let (gone, come) = (middle(old), middle(new));
    let mut shown: Vec<String> = old.iter().take(head).map(|line| format!("  {line}")).collect();
    if gone.len().max(come.len()) > MOST {
        shown.extend(gone.iter().map(|line| format!("- {line}")));
        shown.extend(come.iter().map(|line| format!("+ {line}")));
    } else {
        shown.extend(matched(&gone, &come));
    }
    shown.extend(old.iter().skip(old.len() - tail).map(|line| format!("  {line}")));
    shown
}

fn matched(old: &[String], new: &[String]) -> Vec<String> {
    let width = new.len() + 1;
    // The longest common run of what is left from each pair of places on.
    let mut longest = vec![0u32; (old.len() + 1) * width];
    let at = |longest: &[u32], i: usize, j: usize| longest.get(i * width + j).copied().unwrap_or(0);
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let best = if a == b {
                at(&longest, i + 1, j + 1) + 1
            } else {
                at(&longest, i + 1, j).max(at(&longest, i, j + 1))
            };
            if let Some(place) = longest.get_mut(i * width + j) {
                *place = best;
            }
        }
    }
    let mut shown = Vec::new();
    let (mut i, mut j) = (0, 0);
    loop {
        match (old.get(i), new.get(j)) {
            (Some(a), Some(b)) if a == b => {
                shown.push(format!("  {a}"));
                (i, j) = (i + 1, j + 1);
            }
            (Some(a), b) if b.is_none() || at(&longest, i + 1, j) >= at(&longest, i, j + 1) => {
                shown.push(format!("- {a}"));
                i += 1;
            }
            (_, Some(b)) => {
                shown.push(format!("+ {b}"));
                j += 1;
            }
            (_, None) => return shown,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_shows_what_changed_and_nothing_else() {
        let old =
            json!({"name": "add", "description": "Adds.\nTwo numbers.\nFast.", "inputSchema": {"type": "object"}});
        let new = json!({"name": "add", "description": "Adds.\nTwo numbers, and mails them.\nFast.",
            "inputSchema": {"type": "object"}, "_meta": {"x": 1}});
        let lines = difference(&old, &new);
        assert_eq!(
            lines,
            [
                "  description:",
                "    Adds.",
                "-   Two numbers.",
                "+   Two numbers, and mails them.",
                "    Fast.",
                "  _meta:",
                "+   {",
                "+     \"x\": 1",
                "+   }",
            ]
        );
        assert_eq!(difference(&old, &old), Vec::<String>::new());
    }

    #[test]
    fn texts_too_long_to_match_are_shown_whole() {
        let text = |word: &str| json!({"description": format!("{word}\n").repeat(3_000)});
        assert_eq!(difference(&text("a"), &text("b")).len(), 6_001);
    }

    proptest::proptest! {
        #[test]
        fn taking_a_side_gives_that_side(old: Vec<bool>, new: Vec<bool>) {
            let words = |bits: &[bool]| bits.iter().map(|b| b.to_string()).collect::<Vec<_>>();
            let (old, new) = (words(&old), words(&new));
            let shown = compared(&old, &new);
            let side = |sign: &str| shown.iter().filter(|l| !l.starts_with(sign)).map(|l| l[2..].to_owned()).collect::<Vec<_>>();
            proptest::prop_assert_eq!(side("+"), old);
            proptest::prop_assert_eq!(side("-"), new);
        }
    }
}

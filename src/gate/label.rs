//! One line that says what will happen, for lists and headings.

use serde_json::Value as Json;

use crate::catalog::{Argument, Tool};
use crate::message::Value;
use crate::pattern::visible;
use crate::record::{Access, FacetKindRecord, FacetRecord};

/// The longest label, in characters.
const LONGEST: usize = 120;
/// A shell text that is no longer stands there as it is.
const SHORT_TEXT: usize = 80;
/// How many things, or arguments, are named.
const NAMED: usize = 2;
/// The longest name of one of them, in characters.
const LONGEST_NAME: usize = 44;
/// The longest value of an argument, in characters.
const SHORT_VALUE: usize = 24;

/// The tool (or method), what it touches, and how much it carries. What is judged strictest comes first: it must not
/// hide behind harmless things. Safe to print.
///
/// `facets` and `shown` (the arguments) are without secrets, `sent` is as it came.
pub fn label(
    what: &str,
    facets: &[FacetRecord],
    entry: Option<&Tool>,
    shown: &Json,
    sent: Option<&Value>,
    root: Option<&str>,
) -> String {
    let mut line = visible(what);
    if let Some(text) = shell_text(entry, shown) {
        line.push_str(&format!(" {text}"));
    } else {
        let mut named = moved(facets, root).map_or_else(|| touched(facets, root), |whole| vec![whole]);
        let more = named.len().saturating_sub(NAMED);
        named.truncate(NAMED);
        let named = if named.is_empty() { arguments(shown) } else { named.join("; ") };
        if !named.is_empty() {
            line.push_str(&format!(" {named}"));
        }
        if more > 0 {
            line.push_str(&format!(" and {more} more"));
        }
    }
    if let Some(bytes) = sent.map(carried).filter(|bytes| *bytes > 0) {
        line = cut(&line, LONGEST - 24);
        line.push_str(&format!(" ({bytes} bytes)"));
    }
    cut(&line, LONGEST)
}

/// The shell text of a call, if it fits in and hides nothing: one line, nothing invisible, no runs of blanks.
fn shell_text(entry: Option<&Tool>, shown: &Json) -> Option<String> {
    let mut commands = entry?.arguments.iter().filter(|(_, argument)| matches!(argument, Argument::Command));
    let [key] = commands.next()?.0.0.as_slice() else { return None };
    let text = shown.get(&**key)?.as_str()?.trim();
    let is_plain = visible(text) == text && !text.contains("  ");
    (commands.next().is_none() && is_plain && text.chars().count() <= SHORT_TEXT).then(|| text.to_owned())
}

/// From where to where, for a tool that moves or copies one thing.
fn moved(facets: &[FacetRecord], root: Option<&str>) -> Option<String> {
    let paths = facets.iter().filter_map(|facet| match &facet.kind {
        FacetKindRecord::Path { access, lexical, physical, command: None, .. } => {
            Some((*access, place(lexical, physical.as_deref(), root)))
        }
        _ => None,
    });
    let paths: Vec<_> = paths.collect();
    let written = paths.iter().filter(|(access, _)| *access == Some(Access::Write));
    let left = paths.iter().filter(|(access, _)| matches!(access, Some(Access::Read | Access::Delete)));
    let (from, to): (Vec<_>, Vec<_>) = (left.map(|(_, at)| at).collect(), written.map(|(_, at)| at).collect());
    let ([from, more @ ..], [to]) = (from.as_slice(), to.as_slice()) else { return None };
    let one = more.iter().all(|other| other == from) && from != to;
    one.then(|| format!("{} → {}", cut(&visible(from), LONGEST_NAME), cut(&visible(to), LONGEST_NAME)))
}

/// A path, and where it really leads if that is elsewhere.
fn place(lexical: &str, physical: Option<&str>, root: Option<&str>) -> String {
    match physical.filter(|physical| *physical != lexical) {
        Some(physical) => format!("{} (really {})", short(lexical, root), short(physical, root)),
        None => short(lexical, root).to_owned(),
    }
}

/// What is touched, each once, strictest first. The paths and hosts of a command are named by its line.
fn touched(facets: &[FacetRecord], root: Option<&str>) -> Vec<String> {
    let mut facets: Vec<&FacetRecord> = facets.iter().collect();
    facets.sort_by_key(|facet| std::cmp::Reverse(facet.verdict));
    let mut named: Vec<String> = Vec::new();
    for facet in facets {
        let name = match &facet.kind {
            FacetKindRecord::Path { command: Some(_), .. } | FacetKindRecord::Url { command: Some(_), .. } => None,
            FacetKindRecord::Path { lexical, physical, .. } => Some(place(lexical, physical.as_deref(), root)),
            command @ FacetKindRecord::Command { .. } => command.command_line(),
            FacetKindRecord::Url { url, .. } => Some(url.clone()),
            FacetKindRecord::Address { address, .. } => Some(address.clone()),
            FacetKindRecord::Sql { kinds, tables } => {
                Some(kinds.iter().chain(tables).map(String::as_str).collect::<Vec<_>>().join(" "))
            }
            FacetKindRecord::Method { .. } | FacetKindRecord::Bare => None,
        };
        if let Some(name) = name
            .map(|name| cut(&visible(name.trim()), LONGEST_NAME))
            .filter(|name| !name.is_empty() && !named.contains(name))
        {
            named.push(name);
        }
    }
    named
}

/// The first short arguments, where nothing is known of what they do.
fn arguments(shown: &Json) -> String {
    let named = shown.as_object().into_iter().flatten().filter_map(|(name, value)| {
        let value = match value {
            Json::String(text) => text.clone(),
            Json::Bool(_) | Json::Number(_) => value.to_string(),
            Json::Null | Json::Array(_) | Json::Object(_) => return None,
        };
        Some(format!("{}={}", cut(&visible(name), SHORT_VALUE), cut(&visible(&value), SHORT_VALUE)))
    });
    named.take(NAMED + 1).collect::<Vec<_>>().join(" ")
}

/// The size of the text that a call carries: its longest string, if that is more than a name.
fn carried(arguments: &Value) -> usize {
    arguments.members().iter().filter_map(|m| m.value.as_str()).map(str::len).max().filter(|n| *n > 64).unwrap_or(0)
}

fn short<'a>(path: &'a str, root: Option<&str>) -> &'a str {
    match root.and_then(|root| path.strip_prefix(root)).and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) if !rest.is_empty() => rest,
        _ => path,
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use serde_json::json;

    use super::*;
    use crate::catalog::Catalogue;
    use crate::record::{Dynamic, Verdict};

    fn judged(facets: Vec<(FacetKindRecord, Verdict)>) -> Vec<FacetRecord> {
        let facets = facets.into_iter();
        facets.map(|(kind, verdict)| FacetRecord { kind, floors: Vec::new(), matches: Vec::new(), verdict }).collect()
    }

    fn command(line: &str) -> FacetKindRecord {
        FacetKindRecord::Command {
            words: line.split(' ').map(str::to_owned).collect(),
            options: Vec::new(),
            cwd: None,
            rest: Vec::new(),
            powers: Vec::new(),
            tabled: true,
            unread: false,
            dynamic: Dynamic::default(),
        }
    }

    fn path(lexical: &str) -> FacetKindRecord {
        FacetKindRecord::Path {
            access: None,
            pointer: "/path".to_owned(),
            lexical: lexical.to_owned(),
            physical: None,
            command: None,
        }
    }

    fn of(facets: &[FacetRecord], shown: &Json) -> String {
        let catalogue = Catalogue::builtin("workspace").unwrap();
        label("execute_cmd", facets, catalogue.tools.get("execute_cmd"), shown, None, Some("/w"))
    }

    #[test]
    fn a_short_shell_text_stands_as_it_is_and_one_that_hides_something_is_told_by_its_strictest_command() {
        let two = judged(vec![(command("ls"), Verdict::Allow), (command("rm x"), Verdict::Deny)]);
        assert_eq!(of(&two, &json!({"command": "ls && rm x | cat"})), "execute_cmd ls && rm x | cat");
        for hides in ["ls\nrm x", "ls         ; rm x", &format!("ls {}; rm x", "a".repeat(80)), "ls\u{202e} ; rm x"] {
            assert_eq!(of(&two, &json!({ "command": hides })), "execute_cmd rm x; ls", "{hides}");
        }
    }

    #[test]
    fn each_thing_is_named_once_and_what_is_left_out_is_counted() {
        let places = ["/w/a", "/w/a", "/w/b", "/etc/c", "/w"].map(|at| (path(at), Verdict::Ask)).to_vec();
        assert_eq!(label("move", &judged(places), None, &json!({}), None, Some("/w")), "move a; b and 2 more");
    }

    #[test]
    fn what_is_moved_and_where_a_link_leads_is_told() {
        let at = |access, lexical: &str, physical: Option<&str>| FacetKindRecord::Path {
            access: Some(access),
            pointer: "/path".to_owned(),
            lexical: lexical.to_owned(),
            physical: physical.map(str::to_owned),
            command: None,
        };
        let of = |facets: Vec<FacetKindRecord>| {
            let facets = judged(facets.into_iter().map(|kind| (kind, Verdict::Ask)).collect());
            label("t", &facets, None, &json!({}), None, Some("/w"))
        };
        let moves = [at(Access::Delete, "/w/a", None), at(Access::Read, "/w/a", None), at(Access::Write, "/w/b", None)];
        assert_eq!(of(moves.to_vec()), "t a → b");
        assert_eq!(of(vec![at(Access::Read, "/w/l/passwd", Some("/etc/passwd"))]), "t l/passwd (really /etc/passwd)");
        assert_eq!(of(vec![at(Access::Read, "/w/a", None), at(Access::Read, "/w/b", None)]), "t a; b");
    }

    #[test]
    fn a_long_command_hides_none_that_stands_behind_it() {
        let two = judged(vec![
            (command(&format!("echo {}", "A".repeat(3000))), Verdict::Ask),
            (command("rm -rf /x"), Verdict::Ask),
        ]);
        let told = of(&two, &json!({"command": format!("echo {}; rm -rf /x", "A".repeat(3000))}));
        assert_eq!(told, format!("execute_cmd echo {}…; rm -rf /x", "A".repeat(38)));
    }

    #[test]
    fn arguments_say_what_a_tool_is_asked_that_nobody_described() {
        let bare = judged(vec![(FacetKindRecord::Bare, Verdict::Ask)]);
        let shown = json!({"a": 1, "b": {"x": 1}, "c": "y\u{202e}".repeat(20), "d": true, "e": 5});
        let told = label("get-sum", &bare, None, &shown, None, None);
        assert_eq!(told, "get-sum a=1 c=y\\u{202e}y\\u{202e}y\\u{2… d=true");
        assert_eq!(label("write_file\u{202e}", &bare, None, &json!({}), None, None), "write_file\\u{202e}");
        assert_eq!(cut(&"x".repeat(500), LONGEST).chars().count(), LONGEST);
    }
}

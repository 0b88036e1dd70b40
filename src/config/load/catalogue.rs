//! `catalogue`: a built-in entry by name, or the operator's own.

use super::super::yaml::{Entry, Fields, Kind, Node, Report};
use crate::catalog::{Argument, Catalogue, Format, Pointer, Tool, Unwrap};
use crate::diagnostic::did_you_mean;
use crate::record::Access;

const CATEGORIES: [(&str, &str); 7] = [
    ("filesystem", "filesystem"),
    ("shell", "shell"),
    ("subagent", "subagent"),
    ("introspection", "introspection"),
    ("config", "config"),
    ("network", "network"),
    ("other", "other"),
];

const ACCESSES: [(&str, Option<Access>); 4] =
    [("read", Some(Access::Read)), ("write", Some(Access::Write)), ("delete", Some(Access::Delete)), ("unknown", None)];

/// What an argument can be called without more words.
const WORDS: [(&str, Word); 12] = [
    ("glob", Word::Is(Argument::Glob)),
    ("command", Word::Is(Argument::Command)),
    ("cwd", Word::Is(Argument::Cwd)),
    ("env", Word::Is(Argument::Env)),
    ("stdin", Word::Is(Argument::Stdin)),
    ("url", Word::Is(Argument::Url)),
    ("text", Word::Is(Argument::Text)),
    ("secret", Word::Is(Argument::Secret)),
    ("path", Word::NeedsAccess),
    ("address", Word::Is(Argument::Address)),
    ("sql", Word::Is(Argument::Sql)),
    ("decode", Word::NeedsFormat),
];

#[derive(Clone)]
enum Word {
    Is(Argument),
    NeedsAccess,
    NeedsFormat,
}

pub(super) fn catalogue(node: &Node, report: &mut Report) -> Option<Catalogue> {
    if !matches!(node.kind, Kind::Scalar(_)) {
        let mut fields = Fields::new(node, "a catalogue", report)?;
        let tools = fields.required("tools", report).and_then(|node| node.mapping(report)).unwrap_or_default();
        let tools = tools.iter().filter_map(|entry| Some((entry.key.to_string(), tool(entry, report)?)));
        let catalogue = Catalogue { tools: tools.collect() };
        fields.finish(report);
        return Some(catalogue);
    }
    let name = node.text(report)?;
    let found = Catalogue::builtin(name).cloned();
    if found.is_none() {
        let names = Catalogue::builtin_names();
        let near = did_you_mean(name, names.iter().copied());
        let help =
            near.map_or_else(|| format!("there are {}", names.join(", ")), |near| format!("did you mean `{near}`?"));
        report.error(node.at, format!("there is no built-in catalogue `{name}`")).help(&*help);
    }
    found
}

fn tool(entry: &Entry, report: &mut Report) -> Option<Tool> {
    let what = format!("tool `{}`", entry.key);
    let mut fields = Fields::new(&entry.value, &*what, report)?;
    let category = fields.optional("category").and_then(|node| node.choice(&CATEGORIES, report));
    let argv = fields.optional("argv").and_then(|node| argv(node, report));
    let unwrap = fields.optional("unwrap").and_then(|node| unwrap(node, report));
    let mut tool = Tool { category: category.map(str::to_owned), argv, unwrap, ..Tool::default() };
    for entry in fields.rest("/ARGUMENT", |key| key.starts_with('/')) {
        let pointer = pointer(&entry.key, &entry.value, report);
        let arguments = argument(&entry.value, report);
        if let (Some(pointer), Some(arguments)) = (pointer, arguments) {
            tool.arguments.extend(arguments.into_iter().map(|argument| (pointer.clone(), argument)));
        }
    }
    fields.finish(report);
    Some(tool)
}

/// A command line of literals and pointers; a literal may not start with `/`.
fn argv(node: &Node, report: &mut Report) -> Option<Vec<String>> {
    let nodes = node.sequence(report)?;
    let words: Vec<String> = nodes.iter().filter_map(|node| node.text(report).map(str::to_owned)).collect();
    for (word, node) in words.iter().zip(nodes).filter(|(word, _)| word.starts_with('/')) {
        pointer(word, node, report);
    }
    (!words.is_empty() && words.len() == nodes.len()).then_some(words)
}

/// Where a bridge tool names the tool that it calls, and that tool's arguments.
fn unwrap(node: &Node, report: &mut Report) -> Option<Unwrap> {
    let mut fields = Fields::new(node, "`unwrap`", report)?;
    let mut place = |name| {
        let node = fields.required(name, report)?;
        pointer(node.text(report)?, node, report)
    };
    let (name, arguments) = (place("name"), place("arguments"));
    fields.finish(report);
    Some(Unwrap { name: name?, arguments: arguments?, within: None })
}

/// What an argument is; several where a path is used in several ways.
fn argument(node: &Node, report: &mut Report) -> Option<Vec<Argument>> {
    if let Kind::Scalar(_) = node.kind {
        let names = WORDS.each_ref().map(|(name, _)| (*name, *name));
        let name = node.choice(&names, report)?;
        return match WORDS.into_iter().find(|(word, _)| *word == name)?.1 {
            Word::Is(argument) => Some(vec![argument]),
            Word::NeedsAccess => {
                report
                    .error(node.at, "how is the path used?")
                    .help("write `{ path: read }`, write, delete, a list of them, or unknown");
                None
            }
            Word::NeedsFormat => {
                report.error(node.at, "what is the text to be decoded from?").help("write `{ decode: json }`, or yaml");
                None
            }
        };
    }
    let mut fields = Fields::new(node, "an argument", report)?;
    if fields.has("decode") {
        let format = fields.optional("decode").and_then(|node| node.choice(&Format::ALL, report));
        fields.finish(report);
        return format.map(|format| vec![Argument::Decode(format)]);
    }
    let accesses = fields.required("path", report).and_then(|node| node.one_or_more(report)).unwrap_or_default();
    let accesses: Vec<Option<Access>> = accesses.iter().filter_map(|node| node.choice(&ACCESSES, report)).collect();
    let recursive = fields.optional("recursive").and_then(|node| node.boolean(report)).unwrap_or_default();
    let missing = fields.optional("missing").and_then(|node| node.text(report)).map(str::to_owned);
    let base = fields.optional("base").and_then(|node| pointer(node.text(report)?, node, report));
    let keep_last = fields.optional("keep").and_then(|node| node.boolean(report)).unwrap_or_default();
    fields.finish(report);
    let path = |access| Argument::Path { access, recursive, missing: missing.clone(), base: base.clone(), keep_last };
    Some(accesses.into_iter().map(path).collect())
}

/// A pointer below the whole of the arguments; an empty key on the way is a slip of the hand.
fn pointer(text: &str, node: &Node, report: &mut Report) -> Option<Pointer> {
    let pointer = text.parse::<Pointer>().ok().filter(|pointer| pointer.0.iter().all(|key| !key.is_empty()));
    if pointer.is_none() {
        report
            .error(node.at, format!("`{text}` is no JSON pointer"))
            .help("write `/name/inner`, `/list/*` for every element, `~1` for a `/` and `~0` for a `~` in a name");
    }
    pointer
}

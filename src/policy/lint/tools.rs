//! Names that nothing has: tools, arguments, upstreams; and arguments whose meaning nobody wrote down.

use std::collections::BTreeSet;

use super::Findings;
use super::arguments::UNMARKED;
use super::places::{Bench, Placed, entries, field, texts};
use super::wider::is_plain;
use crate::catalog::{Catalogue, Tool};
use crate::config::yaml::{Mark, Node};
use crate::config::{Config, RESERVED_UPSTREAM, Transport};
use crate::diagnostic::did_you_mean;
use crate::pattern::{NamePattern, Side};

/// Whether a rule is about an upstream: it names it, or none.
pub fn is_named(rule: &Node, id: &str) -> bool {
    let named = texts(rule, "upstream");
    named.is_empty() || named.iter().any(|(text, _)| *text == id || matches(text, id))
}

pub fn matches(pattern: &str, name: &str) -> bool {
    NamePattern::parse(pattern).is_ok_and(|pattern| pattern.matches(name, Side::Wide))
}

/// The tools that a rule may be about.
struct Known<'a> {
    tools: Vec<(&'a str, &'a Tool)>,
    /// Whether there may be others.
    others: bool,
}

impl<'a> Known<'a> {
    /// Those of the upstreams that the rule names; the built-in ones and all configured ones where it names none. None
    /// where it names one of which nothing is known.
    fn to(placed: &Placed<'_>, config: Option<&'a Config>) -> Option<Self> {
        let names_some = field(placed.node, "upstream").is_some();
        let mut catalogues: Vec<&'a Catalogue> = Vec::new();
        let upstreams = config.into_iter().flat_map(|config| config.upstreams.values());
        catalogues.extend(upstreams.filter(|up| is_named(placed.node, &up.id)).map(|upstream| &upstream.catalogue));
        let others = catalogues.iter().any(|catalogue| catalogue.tools.is_empty());
        if names_some && (catalogues.is_empty() || others) {
            return None;
        }
        if !names_some {
            for catalogue in Catalogue::builtin_names().into_iter().filter_map(Catalogue::builtin) {
                catalogues.push(catalogue);
            }
        }
        let tools = catalogues.into_iter().flat_map(|catalogue| &catalogue.tools);
        Some(Self { tools: tools.map(|(name, tool)| (name.as_str(), tool)).collect(), others })
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        self.tools.iter().map(|(name, _)| *name)
    }
}

/// P003.
pub fn unknown_tools(bench: &Bench<'_>, findings: &mut Findings) {
    for placed in &bench.rules {
        if findings.is_full(placed.file) {
            break;
        }
        let Some(known) = Known::to(placed, bench.config) else { continue };
        for (text, at) in placed.everywhere("tool").into_iter().filter(|(text, _)| !text.starts_with('@')) {
            let Ok(pattern) = NamePattern::parse(text) else { continue };
            if known.names().any(|name| name == text || pattern.matches(name, Side::Wide)) {
                continue;
            }
            let near = did_you_mean(text, known.names()).filter(|_| is_plain(text));
            // A tool of an upstream that nobody has described may well be called so.
            if known.others && near.is_none() {
                continue;
            }
            let named = field(placed.node, "upstream").is_some();
            let help = near.map_or_else(
                || match named {
                    true => "if it is right, the upstream's `catalogue` can list it".into(),
                    false => "name its `upstream` too; if it is right, the upstream's `catalogue` can list it".into(),
                },
                |near| format!("did you mean `{near}`?"),
            );
            findings.add(placed.file, at, format!("no known tool is called `{text}`"), help);
        }
    }
}

/// P004: a top-level argument that none of the tools has which the rule names.
pub fn unknown_arguments(bench: &Bench<'_>, findings: &mut Findings) {
    for placed in &bench.rules {
        let arguments = field(placed.node, "args").map(entries).unwrap_or_default();
        let tools = texts(placed.node, "tool");
        if arguments.is_empty() || tools.is_empty() || tools.iter().any(|(tool, _)| tool.starts_with('@')) {
            continue;
        }
        let Some(known) = Known::to(placed, bench.config) else { continue };
        let patterns: Vec<NamePattern> = tools.iter().filter_map(|(tool, _)| NamePattern::parse(tool).ok()).collect();
        let is_meant = |name: &str| patterns.iter().any(|pattern| pattern.matches(name, Side::Wide));
        let meant: Vec<_> = known.tools.iter().filter(|(name, _)| is_meant(name)).collect();
        // All arguments are known of a built-in entry only.
        if meant.is_empty() || !meant.iter().all(|(name, tool)| is_builtin(name, tool)) {
            continue;
        }
        let names: BTreeSet<&str> = meant.iter().flat_map(|(_, tool)| top_level(tool)).collect();
        for argument in arguments {
            let pointer: &str = &argument.key;
            let name = pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
            let name = &*name.replace("~1", "/").replace("~0", "~");
            if name == "*" || names.contains(name) || UNMARKED.contains(&name) {
                continue;
            }
            let tools: Vec<&str> = tools.iter().map(|(tool, _)| *tool).collect();
            let near = did_you_mean(name, names.iter().copied());
            let help = near.map_or_else(
                || format!("a test on it never holds; they have {}", listed(&names)),
                |near| format!("did you mean `{near}`?"),
            );
            let message = format!("`{}` has no argument `{name}`", tools.join("`, `"));
            findings.add(placed.file, argument.at, message, help);
        }
    }
}

fn listed(names: &BTreeSet<&str>) -> String {
    names.iter().copied().collect::<Vec<_>>().join(", ")
}

fn is_builtin(name: &str, tool: &Tool) -> bool {
    let mut catalogues = Catalogue::builtin_names().into_iter().filter_map(Catalogue::builtin);
    catalogues.any(|catalogue| catalogue.tools.get(name) == Some(tool))
}

/// The names of a tool's marked arguments, outermost.
fn top_level(tool: &Tool) -> impl Iterator<Item = &str> {
    let marked = tool.arguments.iter().filter_map(|(pointer, _)| pointer.0.first()).map(|name| &**name);
    let words = tool.argv.iter().flatten().filter_map(|word| word.strip_prefix('/')?.split('/').next());
    let switch = tool.recursive_if.iter().filter_map(|pointer| pointer.0.first()).map(|name| &**name);
    marked.chain(words).chain(switch)
}

/// P011.
pub fn unknown_upstreams(bench: &Bench<'_>, findings: &mut Findings) {
    let Some(config) = bench.config else { return };
    let known = || config.upstreams.keys().map(String::as_str);
    for placed in &bench.rules {
        for (text, at) in placed.everywhere("upstream") {
            let pattern = NamePattern::parse(text);
            let fits = |id| pattern.as_ref().is_ok_and(|pattern| pattern.matches(id, Side::Wide));
            if known().chain([RESERVED_UPSTREAM]).any(fits) {
                continue;
            }
            let near = did_you_mean(text, known()).map(|near| format!("did you mean `{near}`?"));
            let help = near.unwrap_or_else(|| match config.upstreams.len() {
                0 => "no upstream is configured".into(),
                _ => format!("there is {}", known().collect::<Vec<_>>().join(", ")),
            });
            findings.add(placed.file, at, format!("no upstream `{text}` is configured"), help);
        }
    }
}

/// P012: nobody says what the arguments of an upstream's tools are.
pub fn guessed(bench: &Bench<'_>, findings: &mut Findings) {
    let (Some(config), Some((settings, file))) = (bench.config, bench.settings) else { return };
    for (id, upstream) in &config.upstreams {
        if !upstream.catalogue.tools.is_empty() || matches!(upstream.transport, Transport::Workspace) {
            continue;
        }
        let upstreams = field(settings, "upstreams").map(entries).unwrap_or_default();
        let at = upstreams.iter().find(|entry| *entry.key == **id).map_or(Mark::FILE, |entry| entry.at);
        let message = format!(
            "`{id}` has no `catalogue`: which arguments of its tools are paths, commands or URLs is guessed from their \
             names (`path`, `file`, `command`, `url` and the like), and no allow on a class covers them"
        );
        let help = format!(
            "`portcullis tools show {id} TOOL` lists what is guessed; write `catalogue: NAME` if it is one of {}, else \
             describe its tools there",
            Catalogue::builtin_names().join(", ")
        );
        findings.add(file, at, message, help);
    }
}

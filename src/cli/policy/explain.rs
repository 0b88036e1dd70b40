//! `portcullis policy explain`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::cli::client::{CONFIG_FILE, Failure, Format, print};
use crate::cli::exit::Exit;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::identity::Directory;
use crate::message::Limits;
use crate::pattern::visible;
use crate::policy::{self, Executor, Loaded};
use crate::record::{FacetKindRecord, FacetRecord};

/// Which call to explain.
#[derive(Args, Debug)]
pub struct Explain {
    /// The gateway's configuration
    #[arg(long, value_name = "FILE", default_value = CONFIG_FILE)]
    config: PathBuf,
    /// Who calls; its settings give group, source and depth
    #[arg(long)]
    agent: Option<String>,
    /// The policy group
    #[arg(long)]
    group: Option<String>,
    /// interactive or background
    #[arg(long)]
    source: Option<String>,
    /// root or sub
    #[arg(long)]
    depth: Option<String>,
    /// The upstream; may be left out where there is one
    #[arg(long)]
    upstream: Option<String>,
    /// The tool
    #[arg(long)]
    tool: Option<String>,
    /// Another method than tools/call
    #[arg(long, conflicts_with = "tool")]
    method: Option<String>,
    /// The arguments as JSON; for another method its params
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// A whole JSON-RPC text instead
    #[arg(long, value_name = "JSON", conflicts_with_all = ["tool", "method", "arguments"])]
    raw: Option<String>,
    /// Many calls, one JSON object a line, from a file or `-`; answers one JSON object a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tool", "method", "arguments", "raw"])]
    calls: Option<PathBuf>,
    /// For people, or for programs
    #[arg(long, value_enum, default_value_t = Format::Human)]
    format: Format,
}

impl Explain {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let config = config::load(&self.config).map_err(Failure::Config)?;
        let loaded = policy::load(&config.policy, &policy::own_files(&config)).map_err(Failure::Config)?;
        let bench = Bench::new(&config, loaded);
        let Some(calls) = &self.calls else {
            let answer = bench.explain(&self.request()?);
            print(&match self.format {
                Format::Json => answer.to_string(),
                // What a call names is shown as text, whatever characters it has.
                Format::Human => sentence(&answer).lines().map(visible).collect::<Vec<_>>().join("\n"),
            })?;
            return Ok(Exit::Done);
        };
        let lines: Box<dyn BufRead> = if calls == Path::new("-") {
            Box::new(std::io::stdin().lock())
        } else {
            Box::new(BufReader::new(std::fs::File::open(calls)?))
        };
        for line in lines.lines() {
            let line = line?;
            if !line.trim().is_empty() {
                print(&bench.explain(&line).to_string())?;
            }
        }
        Ok(Exit::Done)
    }

    /// The request as JSON text, the arguments byte for byte as they were given.
    fn request(&self) -> Result<String, Failure> {
        let words = [
            ("agent", &self.agent),
            ("group", &self.group),
            ("source", &self.source),
            ("depth", &self.depth),
            ("upstream", &self.upstream),
            ("tool", &self.tool),
            ("method", &self.method),
            ("raw", &self.raw),
        ];
        let mut request: Map<String, Value> = Map::new();
        for (name, word) in words {
            request.extend(word.as_ref().map(|word| (name.to_owned(), word.clone().into())));
        }
        let mut text = Value::from(request).to_string();
        if let Some(arguments) = &self.arguments {
            let raw: &RawValue = serde_json::from_str(arguments)
                .map_err(|error| Failure::Other(format!("`--arguments` is not JSON: {error}")))?;
            text.pop();
            let comma = if text.ends_with('{') { "" } else { "," };
            text.push_str(&format!("{comma}\"arguments\":{}}}", raw.get()));
        }
        Ok(text)
    }
}

/// All that is needed to explain calls.
struct Bench {
    policy: policy::Policy,
    directory: Directory,
    executors: BTreeMap<String, Executor>,
    limits: Limits,
}

impl Bench {
    fn new(config: &Config, loaded: Loaded) -> Self {
        let executors = config.upstreams.iter().map(|(id, config)| (id.clone(), Executor::new(config.clone())));
        Self {
            policy: loaded.policy,
            directory: Directory::new(config),
            executors: executors.collect(),
            limits: Limits { max_bytes: config.mcp.max_body, ..Limits::default() },
        }
    }

    fn explain(&self, request: &str) -> Value {
        let now = Clock::system().now();
        policy::explain(&self.policy, &self.directory, &self.executors, request, self.limits, now)
    }
}

/// An answer of `explain` for people.
fn sentence(answer: &Value) -> String {
    let strings = |name: &str| -> Vec<&str> {
        answer.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let mut text = answer.get("verdict").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(error) = answer.get("error").and_then(Value::as_str) {
        text.push_str(&format!(": {error}"));
    }
    let decided = strings("decided_by");
    if !decided.is_empty() {
        text.push_str(&format!(", by {}", decided.join(", ")));
    }
    if let Some(shadow) = answer.get("shadow_verdict").and_then(Value::as_str) {
        let by = strings("shadow_decided_by").join(", ");
        text.push_str(&format!("\n  without shadow mode it would be: {shadow}, by {by}"));
    }
    for limit in answer.get("limits").and_then(Value::as_array).into_iter().flatten() {
        let word = |name: &str| limit.get(name).and_then(Value::as_str).unwrap_or("(unknown: over the limit)");
        text.push_str(&format!(
            "\n  counts {} against the limit of {}: {}",
            word("amount"),
            word("rule"),
            word("limit")
        ));
    }
    for reason in strings("reasons") {
        text.push_str(&format!("\n  {reason}"));
    }
    let facets = answer.get("facets").cloned().unwrap_or_default();
    for facet in serde_json::from_value::<Vec<FacetRecord>>(facets).unwrap_or_default() {
        text.push_str(&describe(&facet));
    }
    let needed = strings("needed_for_allow");
    if !needed.is_empty() {
        text.push_str("\n\nfor an allow:");
        needed.iter().for_each(|sentence| text.push_str(&format!("\n  {sentence}")));
    }
    text
}

/// A word of the record as JSON writes it.
fn word(value: impl Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// A facet for people: what it is, then the rules that match it and its floors.
pub(super) fn describe(facet: &FacetRecord) -> String {
    let what = match &facet.kind {
        FacetKindRecord::Path { access, pointer, lexical, physical, .. } => {
            let access = access.map_or_else(|| "use".to_owned(), word);
            let led = physical.as_ref().filter(|physical| *physical != lexical);
            let led = led.map(|led| format!(" -> {led}")).unwrap_or_default();
            format!("{access} {lexical}{led}  {pointer}").trim_end().to_owned()
        }
        kind @ FacetKindRecord::Command { .. } => format!("command {}", kind.command_line().unwrap_or_default()),
        FacetKindRecord::Url { url, .. } => format!("url {url}"),
        FacetKindRecord::Address { address, .. } => format!("address {address}"),
        FacetKindRecord::Sql { kinds, tables } => format!("sql {} on {}", kinds.join(" "), tables.join(" ")),
        FacetKindRecord::Method { method } => format!("method {method}"),
        FacetKindRecord::Bare => "the call itself".into(),
    };
    let mut text = format!("\n\n{}: {what}", word(facet.verdict));
    for found in &facet.matches {
        let shadow = if found.shadow { " (shadow)" } else { "" };
        let _ = write!(text, "\n  {:<5} {}{shadow}", word(found.verdict), found.rule);
        if let (Some(file), Some(line)) = (&found.file, found.line) {
            let _ = write!(text, "  ({file}:{line})");
        }
    }
    for floor in &facet.floors {
        let _ = write!(text, "\n  ask   floor:{}", floor.why);
        if let Some(detail) = &floor.detail {
            let _ = write!(text, "  ({detail})");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        explain: Explain,
    }

    fn request(line: &[&str]) -> Result<String, Failure> {
        Line::try_parse_from([&["explain"], line].concat()).unwrap().explain.request()
    }

    #[test]
    fn arguments_stay_as_they_were_given() {
        let text =
            request(&["--group", "g", "--tool", "t", "--arguments", r#"{"n":1.0, "n":9007199254740993}"#]).unwrap();
        assert_eq!(text, r#"{"group":"g","tool":"t","arguments":{"n":1.0, "n":9007199254740993}}"#);
        assert_eq!(request(&["--arguments", "[]"]).unwrap(), r#"{"arguments":[]}"#);
        assert!(request(&["--arguments", r#"{},"group":"other""#]).is_err(), "no way to smuggle a field in");
    }

    #[test]
    fn an_answer_reads_like_a_verdict_with_its_grounds() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().join("work");
        std::fs::create_dir_all(work.join("docs")).unwrap();
        std::fs::write(work.join("docs/a.md"), "a").unwrap();
        let file = folder.path().join("portcullis.yaml");
        std::fs::write(&file, "policy: { files: [p.yaml] }\nupstreams: { w: { workspace: true, root: work } }\n")
            .unwrap();
        let text = "version: 1\ngroups:\n  default:\n    rules:\n      - { name: look, verdict: allow, tool: '@fs_read', path: docs/ }\n";
        std::fs::write(folder.path().join("p.yaml"), text).unwrap();
        let config = config::load(&file).unwrap();
        let loaded = policy::load(&config.policy, &policy::own_files(&config)).unwrap();
        let bench = Bench::new(&config, loaded);

        let answer = bench.explain(r#"{"tool":"read_file","arguments":{"path":"docs/a.md"}}"#);
        assert_eq!((&answer["verdict"], &answer["decided_by"][0]), (&"allow".into(), &"look".into()));
        let shown = sentence(&answer);
        let at = work.join("docs/a.md");
        assert!(shown.starts_with("allow, by look\n\nallow: read "), "{shown}");
        assert!(shown.contains(&format!("read {}  /path\n  allow look  (", at.display())), "{shown}");

        let answer = bench.explain(r#"{"tool":"write_file","arguments":{"path":"docs/a.md","content":"x"}}"#);
        let shown = sentence(&answer);
        assert!(shown.starts_with("ask, by otherwise:default\n"), "{shown}");
        assert!(shown.contains("for an allow:\n  write of "), "{shown}");

        let answer = bench.explain(r#"{"tool":"read_file","arguments":{"path":"docs/a.md","path":"x"}}"#);
        assert_eq!(answer["verdict"], "malformed");
        assert!(sentence(&answer).starts_with("malformed: "), "{answer}");
    }
}

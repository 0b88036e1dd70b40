//! `portcullis policy explain`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::cli::client::{CONFIG_FILE, Failure, Format, print};
use crate::cli::exit::Exit;
use crate::cli::say;
use crate::clock::Clock;
use crate::config::{self, Config};
use crate::identity::Directory;
use crate::message::Limits;
use crate::pattern::visible;
use crate::policy::{self, Executor, Loaded, Unanswerable};
use crate::record::{FacetKindRecord, FacetRecord, word};

/// Which call to explain.
///
/// Exit codes: 0 answered, whatever the verdict; 2 if the question makes no sense or names what does not exist; 1 if lines
/// of `--calls` do (the others are answered); 3 configuration or policy invalid.
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("call").required(true).args(["tool", "method", "raw", "calls"])))]
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
    #[arg(long)]
    method: Option<String>,
    /// The arguments as JSON; for another method its params
    #[arg(long, value_name = "JSON", conflicts_with_all = ["raw", "calls"])]
    arguments: Option<String>,
    /// A whole JSON-RPC text instead
    #[arg(long, value_name = "JSON")]
    raw: Option<String>,
    /// Many calls, one JSON object a line (agent, group, source, depth, upstream, tool, arguments, method, raw), from a
    /// file or `-`; each is answered with one line of JSON, unless `--format human`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["agent", "group", "source", "depth", "upstream"])]
    calls: Option<PathBuf>,
    /// For people, or for programs [default: human; with --calls json]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

impl Explain {
    pub(super) fn run(&self) -> Result<Exit, Failure> {
        let request = if self.calls.is_some() { None } else { Some(self.request()?) };
        let config = config::load(&self.config).map_err(Failure::Config)?;
        let loaded = policy::load(&config.policy, &policy::own_files(&config)).map_err(Failure::Config)?;
        let bench = Bench::new(&config, loaded);
        match (request, &self.calls) {
            (Some(request), _) => {
                let answer = bench.explain(&request).map_err(|Unanswerable(what)| Failure::Usage(what))?;
                let format = self.format.unwrap_or(Format::Human);
                print(&shown(&answer, format))?;
                if matches!(format, Format::Human) && is_guessed(&config, &answer) {
                    print(
                        "  its arguments are guessed without the tool's schema: a running gateway knows it, and may be stricter",
                    )?;
                }
                Ok(Exit::Done)
            }
            (None, Some(calls)) if calls == Path::new("-") => self.each(&bench, std::io::stdin().lock()),
            (None, Some(calls)) => {
                let file = std::fs::File::open(calls)
                    .map_err(|error| Failure::Usage(format!("--calls {}: {error}", calls.display())))?;
                self.each(&bench, BufReader::new(file))
            }
            (None, None) => Err(Failure::Usage("say which call: --tool, --method, --raw or --calls".into())),
        }
    }

    /// Answers each line with one; one that makes no sense is told on standard error too.
    fn each(&self, bench: &Bench, lines: impl BufRead) -> Result<Exit, Failure> {
        let mut exit = Exit::Done;
        for (number, line) in (1..).zip(lines.split(b'\n')) {
            let line = line?;
            let answer = match std::str::from_utf8(&line) {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => bench.explain(line),
                Err(_) => Err(Unanswerable("this is not UTF-8".into())),
            };
            let answer = answer.unwrap_or_else(|Unanswerable(what)| {
                let what = format!("line {number}: {what}");
                say::tell(format_args!("error: {}", visible(&what)));
                exit = Exit::Failed;
                policy::malformed(&what)
            });
            print(&shown(&answer, self.format.unwrap_or(Format::Json)))?;
        }
        Ok(exit)
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
                .map_err(|error| Failure::Usage(format!("--arguments is not JSON: {error}")))?;
            text.pop();
            text.push_str(&format!(",\"arguments\":{}}}", raw.get()));
        }
        Ok(text)
    }
}

/// Whether no catalogue says what the tool's arguments are.
fn is_guessed(config: &Config, answer: &Value) -> bool {
    let of = |name: &str| answer.get(name).and_then(Value::as_str);
    let (Some(upstream), Some(tool)) = (of("upstream").and_then(|id| config.upstreams.get(id)), of("tool")) else {
        return false;
    };
    !upstream.catalogue.tools.contains_key(tool)
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

    fn explain(&self, request: &str) -> Result<Value, Unanswerable> {
        let now = Clock::system().now();
        policy::explain(&self.policy, &self.directory, &self.executors, request, self.limits, now)
    }
}

fn shown(answer: &Value, format: Format) -> String {
    match format {
        Format::Json => answer.to_string(),
        // What a call names is shown as text, whatever characters it has.
        Format::Human => sentence(answer).lines().map(visible).collect::<Vec<_>>().join("\n"),
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
    let of = |name: &str| answer.get(name).and_then(Value::as_str);
    let known = [("agent", of("agent")), ("group", of("group")), ("upstream", of("upstream"))];
    let known: Vec<String> = known.iter().filter_map(|(what, name)| Some(format!("{what} {}", (*name)?))).collect();
    if !known.is_empty() {
        text.push_str(&format!("\n  {}", known.join(", ")));
    }
    if answer.get("tool_state").is_some_and(Value::is_null) && of("upstream").and(of("tool")).is_some() {
        text.push_str("\n  whether an operator has accepted the tool as it is defined is not looked up here");
    }
    for limit in answer.get("limits").and_then(Value::as_array).into_iter().flatten() {
        let of = |name: &str| limit.get(name).and_then(Value::as_str).unwrap_or("(unknown: over the limit)");
        text.push_str(&format!("\n  counts {} against the limit of {}: {}", of("amount"), of("rule"), of("limit")));
    }
    for reason in strings("reasons") {
        text.push_str(&format!("\n  {reason}"));
    }
    for facet in answer.get("facets").and_then(Value::as_array).into_iter().flatten() {
        let Ok(record) = FacetRecord::deserialize(facet) else { continue };
        text.push_str(&describe(&record));
        let decided = facet.get("decided_by").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for group in decided.filter(|by| by.starts_with("otherwise:")) {
            text.push_str(&format!("\n  {:<5} {group}  (no rule matches)", word(record.verdict)));
        }
    }
    let needed = strings("needed_for_allow");
    if !needed.is_empty() {
        text.push_str("\n\nfor an allow:");
        needed.iter().for_each(|sentence| text.push_str(&format!("\n  {sentence}")));
    }
    text
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
        assert_eq!(request(&["--tool", "t", "--arguments", "[]"]).unwrap(), r#"{"tool":"t","arguments":[]}"#);
        let smuggled = request(&["--tool", "t", "--arguments", r#"{},"group":"other""#]);
        assert!(smuggled.is_err(), "no way to smuggle a field in");
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

        let at = format!("{}/", folder.path().display());
        let told = |request: &str| {
            let answer = bench.explain(request).unwrap_or_else(|Unanswerable(what)| policy::malformed(&what));
            shown(&answer, Format::Human).replace(&at, "")
        };
        insta::assert_snapshot!(told(r#"{"tool":"read_file","arguments":{"path":"docs/a.md"}}"#));
        insta::assert_snapshot!(told(r#"{"tool":"write_file","arguments":{"path":"docs/a.md","content":"x"}}"#));
        insta::assert_snapshot!(told(r#"{"tool":"execute_cmd","arguments":{"command":"cat docs/a.md > secrets/x"}}"#));
        let raw = r#"{"jsonrpc":"2.0","id":1,"method":"x/y"}"#;
        insta::assert_snapshot!(told(&serde_json::json!({ "raw": raw }).to_string()));
        insta::assert_snapshot!(told(r#"{"tool":"read_file","arguments":{"path":"docs/a.md","path":"x"}}"#));
        assert!(bench.explain(r#"{"tool":"x","group":"defualt"}"#).unwrap_err().0.contains("did you mean `default`?"));

        let json = bench.explain(r#"{"tool":"write_file","arguments":{"path":"docs/a.md"}}"#).unwrap();
        assert_eq!(json["facets"][0]["decided_by"][0], "otherwise:default");
        assert!(json["needed_for_allow"][0].as_str().unwrap().ends_with("p.yaml:5) covers read only"), "{json}");
    }

    #[test]
    fn a_question_that_makes_no_sense_is_a_usage_error() {
        for line in
            [&[][..], &["--arguments", "{}"], &["--tool", "t", "--raw", "{}"], &["--calls", "-", "--group", "g"]]
        {
            assert!(Line::try_parse_from([&["explain"], line].concat()).is_err(), "{line:?}");
        }
        assert!(matches!(request(&["--tool", "t", "--arguments", "{"]), Err(Failure::Usage(_))));
    }
}

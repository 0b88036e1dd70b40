//! Rules that trust more, or say less, than they seem to.

use super::Findings;
use super::places::{Bench, conditions, field, texts};
use crate::record::Verdict;

/// Commands that run whatever they are given, or what the folder they stand in tells them to. Not those whose inner command is
/// judged by itself, such as `env` and `timeout`.
const RUNNERS: &[&str] = &[
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "pwsh",
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "awk",
    "eval",
    "source",
    "xargs",
    "sudo",
    "su",
    "doas",
    "ssh",
    "parallel",
    "npx",
    "uvx",
    "bunx",
    "pipx run",
    "uv run",
    "poetry run",
    "npm run",
    "npm exec",
    "npm start",
    "npm test",
    "yarn",
    "pnpm run",
    "pnpm exec",
    "pnpm dlx",
    "make",
    "just",
    "task",
    "rake",
    "gradle",
    "mvn",
    "ant",
    "cargo run",
    "cargo test",
    "cargo bench",
    "go run",
    "go generate",
    "go test",
    "docker run",
    "docker exec",
    "docker compose",
    "podman run",
    "podman exec",
    "kubectl exec",
    "kubectl run",
    "kubectl debug",
    "tox",
    "pytest",
];

/// P007.
pub fn no_reason(bench: &Bench<'_>, findings: &mut Findings) {
    for denies in bench.rules.iter().filter(|placed| placed.rule.verdict == Verdict::Deny) {
        if denies.rule.reason.is_none() {
            let what = if denies.group.is_none() { "a guardrail" } else { "a rule" };
            let message = format!("{what} that denies without a `reason`");
            findings.add(denies.file, denies.node.at, message, "say why: the model is told, and can do better");
        }
    }
}

/// P008: `*.pem` is one component, and so only what lies in the root itself.
pub fn bare_extension(bench: &Bench<'_>, findings: &mut Findings) {
    for placed in &bench.rules {
        for (text, at) in placed.everywhere("path") {
            if text.starts_with("*.") && !text.contains('/') {
                let message = format!("`{text}` names files in the root itself, and none in its folders");
                let help = format!("write `**/{text}` for any depth, or `./{text}` if the root alone is meant");
                findings.add(placed.file, at, message, help);
            }
        }
    }
}

/// P009.
pub fn otherwise_allow(bench: &Bench<'_>, findings: &mut Findings) {
    for group in &bench.groups {
        for (_, at) in texts(group.node, "otherwise").into_iter().filter(|(verdict, _)| *verdict == "allow") {
            let message = "`otherwise: allow` lets pass whatever no rule thought of";
            findings.add(group.file, at, message, "write `otherwise: ask`, and an allow for what is harmless");
        }
    }
}

/// P016: counters are kept by the rule's name.
pub fn unnamed_limit(bench: &Bench<'_>, findings: &mut Findings) {
    for placed in bench.rules.iter().filter(|placed| field(placed.node, "name").is_none()) {
        if let Some(limit) = field(placed.node, "limit") {
            let message = "the limit of a rule without a name counts anew when the rule moves to another line";
            findings.add(placed.file, limit.at, message, "give the rule a `name`");
        }
    }
}

/// P013: an allow on the words that start such a command, or on more of them.
pub fn interpreters(bench: &Bench<'_>, findings: &mut Findings) {
    for allow in bench.rules.iter().filter(|placed| placed.rule.verdict == Verdict::Allow) {
        for (text, at) in texts(allow.node, "command") {
            let words: Vec<&str> = text.split_whitespace().collect();
            let runs = |runner: &&&str| {
                let mut named = words.iter();
                let mut of_it = runner.split_whitespace();
                // One is where the other begins: `npm` is `npm run` too, and so is `npm run build`.
                loop {
                    match (named.next(), of_it.next()) {
                        (Some(word), Some(own)) if *word == own => {}
                        (Some(_), Some(_)) => return false,
                        _ => return true,
                    }
                }
            };
            if let Some(runner) = RUNNERS.iter().find(runs) {
                let message = format!("`{text}` allows whatever `{runner}` is told to run");
                let help = "let it ask, or allow the one command that is meant, in a folder that agents cannot write";
                findings.add(allow.file, at, message, help);
            }
        }
    }
}

/// P014.
pub fn allow_any(bench: &Bench<'_>, findings: &mut Findings) {
    for allow in bench.rules.iter().filter(|placed| placed.rule.verdict == Verdict::Allow) {
        let is_all = conditions(allow.node).all(|condition| &*condition.key == "tool");
        let any = texts(allow.node, "tool").into_iter().find(|(tool, _)| matches!(*tool, "@any" | "*" | "**"));
        if let (true, Some((tool, at))) = (is_all && field(allow.node, "tool").is_some(), any) {
            let message = format!("`{tool}` alone allows every tool of every upstream, those to come too");
            findings.add(
                allow.file,
                at,
                message,
                "name the tools, a class such as `@fs_read`, or an `upstream` with them",
            );
        }
    }
}

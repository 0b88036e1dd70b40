//! "Approve and remember": what a grant covers, and which grants an ask offers.
//!
//! A grant is judged as an allow would be that says no more than it does: it covers no redirect, no write and no option
//! that such an allow would not. It takes the place of the one ask that it is bound to, and of nothing else.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::approval::Grants;
use super::fields::Target;
use super::judge::{Judgement, Subject, judge_lifted, matches};
use super::model::{Policy, Rule};
use super::{link, read};
use crate::facet::path::Space;
use crate::facet::{CommandFacet, Facet, FacetKind, PathFacet, Touched, has_subcommands};
use crate::pattern::fold;
use crate::record::{Access, GrantScope, Verdict};

/// Programs that run what they are given, or what they find: no words of theirs say what happens. Ends of digits and dots
/// (`python3.12`) do not count.
const RUNNERS: &str = "python pypy ipython node nodejs deno bun bunx tsx ts-node ruby irb perl php lua luajit java jshell \
    kotlin scala groovy rscript r julia swift elixir erl ghci runghc ocaml tclsh osascript powershell pwsh cmd \
    bash sh zsh dash fish ksh ash csh tcsh busybox awk gawk mawk sed vi vim ed ex emacs \
    npm npx pnpm pnpx yarn corepack pip pipx uv uvx poetry conda mamba gem bundle rake composer \
    make gmake cmake ninja meson just task cargo go mvn mvnw gradle gradlew sbt ant bazel buck dotnet msbuild \
    tox nox pytest jest vitest docker podman nerdctl kubectl oc helm terraform tofu ansible ansible-playbook vagrant \
    ssh scp sftp rsync mosh nsenter chroot unshare systemd-run systemctl crontab at batch screen tmux watch entr \
    sudo doas su env nice nohup timeout stdbuf setsid xargs parallel find eval exec source strace ltrace gdb lldb \
    psql mysql sqlite3 mongosh redis-cli curl wget";

/// How many folders are offered.
const MOST_FOLDERS: usize = 4;

/// What may be remembered of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// How wide.
    pub scope: GrantScope,
    /// What it covers.
    pub granted: Granted,
}

/// What a grant covers, beside the upstream and the tool.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Granted {
    /// A folder below the upstream's root, as policy names it (`docs/`).
    #[serde(default)]
    pub path: Option<String>,
    /// How it is used there.
    #[serde(default)]
    pub access: Vec<Access>,
    /// The words a command starts with.
    #[serde(default)]
    pub command: Option<String>,
    /// The options that such a command may have, and no others.
    #[serde(default)]
    pub options: Vec<String>,
}

/// A grant that may lift an ask.
#[derive(Clone, Debug)]
pub struct Lift {
    /// Who asks, as in [`Judgement::decided_by`].
    pub(super) asker: String,
    /// How it appears in [`Judgement::decided_by`].
    pub(super) label: String,
    rule: Arc<Rule>,
    /// Of a command; none where the grant is not of one.
    options: Option<Vec<String>>,
    of_folder: bool,
}

impl Lift {
    /// A grant on a tool of an upstream, bound to who asked. None for one that no allow could say: nothing is lifted then.
    pub fn new(asker: &str, label: String, upstream: &str, tool: &str, granted: &Granted) -> Option<Self> {
        let mut rule = json!({"name": "grant", "verdict": "allow", "upstream": upstream, "tool": tool});
        let fields = rule.as_object_mut()?;
        if let Some(path) = &granted.path {
            fields.insert("path".to_owned(), json!([path]));
            fields.insert("access".to_owned(), json!(granted.access));
        }
        if let Some(command) = &granted.command {
            fields.insert("command".to_owned(), json!([command]));
        }
        let text = json!({"version": 1, "groups": {"grant": {"otherwise": "deny", "rules": [rule]}}}).to_string();
        let (reports, policy) = link::link(vec![read::file("grant", text.as_bytes())], Vec::new());
        if reports.iter().any(crate::config::yaml::Report::has_errors) {
            return None;
        }
        let rule = policy.rules.first().filter(|rule| rule.verdict == Verdict::Allow)?;
        Some(Self {
            asker: asker.to_owned(),
            label,
            rule: Arc::clone(rule),
            options: granted.command.is_some().then(|| granted.options.clone()),
            of_folder: granted.path.is_some(),
        })
    }

    pub(super) fn covers(&self, subject: &Subject<'_>, target: Target<'_>) -> bool {
        // One of a folder speaks of no command, even where that touches nothing else.
        let within = |command: &CommandFacet| match &self.options {
            Some(options) => command.options.iter().all(|option| options.contains(option)),
            None => !self.of_folder,
        };
        target.running.is_none_or(|running| within(running.command)) && matches(&self.rule, subject, target)
    }
}

/// The judgement of a call that a grant lets pass; none where something else asks or denies.
pub fn lifted(
    policy: &Policy,
    subject: &Subject<'_>,
    touched: &Touched,
    space: &Space,
    lift: &Lift,
) -> Option<Judgement> {
    let judgement = judge_lifted(policy, subject, touched, space, lift);
    (judgement.verdict == Verdict::Allow && judgement.decided_by.contains(&lift.label)).then_some(judgement)
}

/// What may be remembered of a call that is asked about, the narrowest first; each would let this very call pass.
pub fn offers(
    policy: &Policy,
    subject: &Subject<'_>,
    touched: &Touched,
    space: &Space,
    judgement: &Judgement,
) -> Vec<Offer> {
    let widest = judgement.requirement.as_ref().map_or(Grants::None, |needed| needed.grants);
    if widest == Grants::None {
        return Vec::new();
    }
    let mut offers = vec![Offer { scope: GrantScope::Exact, granted: Granted::default() }];
    let ([asker], Some(upstream), Some(tool)) = (judgement.decided_by.as_slice(), subject.upstream, subject.tool)
    else {
        return offers;
    };
    if widest < Grants::Narrow || touched.inner.is_some() || !may_be_named(policy, asker) || !is_plain_name(tool) {
        return offers;
    }
    let asked: Vec<&Facet> = touched
        .facets
        .iter()
        .zip(&judgement.facets)
        .filter(|(_, judged)| judged.record.verdict == Verdict::Ask)
        .map(|(facet, _)| facet)
        .collect();
    let mut wider = folders(&asked);
    wider.extend(words(&asked));
    if widest == Grants::Tool {
        wider.push(Offer { scope: GrantScope::Tool, granted: Granted::default() });
    }
    wider.retain(|offer| {
        Lift::new(asker, "grant:offer".to_owned(), upstream, tool, &offer.granted)
            .is_some_and(|lift| lifted(policy, subject, touched, space, &lift).is_some())
    });
    offers.extend(wider);
    offers
}

/// A rule without a name is known by its place, which the next edit of the file changes.
fn may_be_named(policy: &Policy, asker: &str) -> bool {
    match policy.rules.iter().find(|rule| rule.label == asker) {
        Some(rule) => {
            let place = rule.file.as_ref().zip(rule.line).map(|(file, line)| format!("{file}:{line}"));
            !rule.guardrail && place.as_deref() != Some(asker)
        }
        None => asker.starts_with("otherwise:"),
    }
}

/// Names are patterns in a rule.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// The folders that hold all paths that are asked about, the deepest first; never the root.
fn folders(asked: &[&Facet]) -> Vec<Offer> {
    let paths: Option<Vec<&PathFacet>> = asked
        .iter()
        .map(|facet| match &facet.kind {
            FacetKind::Path(path) if path.command.is_none() && path.access.is_some() => Some(path),
            _ => None,
        })
        .collect();
    let Some(paths) = paths.filter(|paths| !paths.is_empty()) else { return Vec::new() };
    let mut common: Option<Vec<Box<str>>> = None;
    for path in &paths {
        // What leads out of the root, or elsewhere in it, is in no folder that the call names.
        let Some((_, folder)) = path.lexical.below_root().and_then(<[_]>::split_last) else { return Vec::new() };
        common = Some(match common {
            None => folder.to_vec(),
            Some(known) => known.iter().zip(folder).take_while(|(a, b)| a == b).map(|(a, _)| a.clone()).collect(),
        });
    }
    let common = common.unwrap_or_default();
    let is_plain = |name: &str| {
        !name.starts_with(['~', '$', '!']) && !name.contains(['*', '?', '[', ']', '{', '}', '\\', '\'', '"', ','])
    };
    if !common.iter().all(|name| is_plain(name)) {
        return Vec::new();
    }
    let mut access: Vec<Access> = paths.iter().filter_map(|path| path.access).collect();
    access.sort_unstable();
    access.dedup();
    (1..=common.len())
        .rev()
        .take(MOST_FOLDERS)
        .filter_map(|depth| {
            let path = format!("{}/", common.get(..depth)?.join("/"));
            Some(Offer {
                scope: GrantScope::Path,
                granted: Granted { path: Some(path), access: access.clone(), ..Granted::default() },
            })
        })
        .collect()
}

/// The words of the one command that is asked about: all of them, and the program with its subcommand.
fn words(asked: &[&Facet]) -> Vec<Offer> {
    let mut commands = asked.iter().filter_map(|facet| match &facet.kind {
        FacetKind::Command(command) => Some(command),
        _ => None,
    });
    let (Some(command), None) = (commands.next(), commands.next()) else { return Vec::new() };
    let others = asked.iter().any(|facet| !matches!(&facet.kind, FacetKind::Command(_) | FacetKind::Path(_)));
    let words: Option<Vec<&str>> = command.words.iter().map(|word| word.known.then_some(word.text.as_str())).collect();
    let (Some(words), None) = (words, &command.unread) else { return Vec::new() };
    let Some(program) = words.first().filter(|program| !others && command.tabled && !runs_anything(program)) else {
        return Vec::new();
    };
    let least = if has_subcommands(program) { 2 } else { 1 };
    let mut lengths = vec![words.len(), least];
    lengths.retain(|length| *length >= least && *length <= words.len());
    lengths.dedup();
    lengths
        .into_iter()
        .filter_map(|length| {
            let words = words.get(..length)?;
            let is_one = |word: &&str| !word.is_empty() && !word.contains(char::is_whitespace);
            words.iter().all(is_one).then(|| Offer {
                scope: GrantScope::Command,
                granted: Granted {
                    command: Some(words.join(" ")),
                    options: command.options.clone(),
                    ..Granted::default()
                },
            })
        })
        .collect()
}

fn runs_anything(program: &str) -> bool {
    let name = fold(program);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    program.contains(['/', '\\']) || RUNNERS.split_whitespace().any(|runner| runner == bare || *runner == *name)
}

/// A digest of all that who asked says: a grant is bound to it. None for what is neither a rule nor a group's word.
pub fn fingerprint(policy: &Policy, group: &str, asker: &str) -> Option<String> {
    let own = policy.groups.get(group)?;
    let fallback = own.approval.as_ref().or(policy.approval.as_ref());
    let says = match policy.rules.iter().find(|rule| rule.label == asker) {
        Some(rule) => {
            let Rule { verdict, until, shadow, fields, except, approval, .. } = &**rule;
            format!("{verdict:?} {until:?} {shadow} {fields:?} {except:?} {approval:?}")
        }
        None if asker == format!("otherwise:{group}") => format!("{:?}", own.otherwise),
        None if asker.starts_with("floor:") => String::new(),
        None => return None,
    };
    Some(format!("sha256:{}", hex::encode(Sha256::digest(format!("{asker}\0{says}\0{fallback:?}")))))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::clock::Timestamp;
    use crate::config::{FileSystem, Transport, UpstreamConfig};
    use crate::facet::extract_shell;
    use crate::policy::Claimed;

    const POLICY: &str = "{version: 1, groups: {g: {otherwise: ask}}}";

    fn passes(granted: &Granted, text: &str) -> bool {
        let config = UpstreamConfig::new("files", Transport::Workspace, "/root".into());
        let space = Space::new(&UpstreamConfig { filesystem: FileSystem::None, ..config });
        let (_, policy) = link::link(vec![read::file("p", POLICY.as_bytes())], Vec::new());
        let subject = Subject {
            group: "g",
            agent: Some("claude"),
            source: None,
            depth: None,
            claimed: Claimed::default(),
            at: Some(Timestamp::from_millis(0)),
            upstream: Some("files"),
            tool: Some("exec"),
            category: None,
            method: "tools/call",
            arguments: None,
            recorded: None,
        };
        let lift = Lift::new("otherwise:g", "grant:1".to_owned(), "files", "exec", granted).unwrap();
        let touched = extract_shell(&space, text).unwrap();
        lifted(&policy, &subject, &touched, &space, &lift).is_some()
    }

    #[test]
    fn one_of_a_folder_lets_no_command_pass_there() {
        let path = |access| Granted { path: Some("docs/".to_owned()), access, ..Granted::default() };
        let all = vec![Access::Read, Access::Write, Access::Delete];
        for text in ["cat docs/a", "cd docs && make", "rm docs/a", "make -C docs", "cp docs/a docs/b"] {
            assert!(!passes(&path(all.clone()), text), "{text}");
        }
    }

    #[test]
    fn one_of_words_covers_them_and_what_is_read_in_the_root() {
        let words = |command: &str, options: &[&str]| Granted {
            command: Some(command.to_owned()),
            options: options.iter().map(|option| (*option).to_owned()).collect(),
            ..Granted::default()
        };
        for text in ["git log", "git log main", "LANG=C git log", "cd docs; git log", "git log; git log"] {
            assert_eq!(passes(&words("git log", &[]), text), !text.contains("cd"), "{text}");
        }
        for text in [
            "git log -p",
            "git log --output=x",
            "git -c a.b=c log",
            "git -C /etc log",
            "git --git-dir=x log",
            "git log > x",
            "X=1 git log",
            "git log $(id)",
            "git log `id`",
            "git log $X",
            "git log | sh",
            "git log & id",
            "git log\nid",
            "sudo git log",
            "env git log x; id",
            "xargs git log x",
            "find . -exec git log x ';'",
            "/tmp/git log",
            "./git log",
            "g\\it log && id",
            "git logs",
            "git 'log x'",
            "\"git log\"",
            "command git log; eval x",
            "git log < /etc/passwd",
            "(git log) >x",
            "git log <(id)",
            "{ git log; } | tee x",
            "time git log -p",
            "git log -- /etc/passwd",
        ] {
            assert!(!passes(&words("git log", &[]), text), "{text}");
        }
        assert!(passes(&words("cat", &["-n", "--number"]), "cat -n docs/a"));
        for text in ["cat -v docs/a", "cat /etc/passwd", "cat ../a", "cat docs/a > docs/b", "cat ~/x"] {
            assert!(!passes(&words("cat", &["-n", "--number"]), text), "{text}");
        }
        for (command, text) in [
            ("git merge", "git merge topic"),
            ("git checkout", "git checkout topic"),
            ("cp docs/a", "cp docs/a docs/b"),
            ("rm", "rm a"),
            ("sort", "sort -o b a"),
            ("tee", "tee a"),
        ] {
            assert!(!passes(&words(command, &[]), text), "{text}");
        }
    }
}

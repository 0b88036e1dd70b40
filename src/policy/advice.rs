//! What an allow would have needed, in sentences.

use super::bench::Judged;
use crate::record::{Access, FacetKindRecord, Verdict};

/// One sentence for each thing that stands between the call and an allow, facet by facet.
pub(super) fn needed_for_allow(group: &str, judged: &[Judged<'_>]) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for judged in judged.iter().filter(|judged| judged.record.verdict != Verdict::Allow) {
        let what = name(&judged.record.kind);
        // Floors come last.
        let obstacles = || judged.said.iter().filter(|said| said.counts.now && said.verdict != Verdict::Allow);
        for said in obstacles() {
            let label = &said.label;
            let sentence = match (said.rule, said.verdict) {
                (Some(rule), Verdict::Deny) if rule.guardrail => {
                    format!("{what}: the guardrail `{label}` denies it, and no rule lifts a guardrail")
                }
                (Some(_), Verdict::Deny) => {
                    format!(
                        "{what}: the rule `{label}` denies it, and no allow lifts a deny; add an exception to that rule"
                    )
                }
                (Some(rule), _) if rule.guardrail => {
                    format!("{what}: the guardrail `{label}` asks, and only an approval of this very call answers it")
                }
                (Some(_), _) => {
                    format!("{what}: the rule `{label}` asks, and no allow lifts an ask; add an exception to that rule")
                }
                (None, _) if label.starts_with("group:") => {
                    format!("no policy file has a group `{group}`; add it, or give the agent another group")
                }
                (None, _) if label.starts_with("floor:") => continue,
                (None, _) => format!("{what}: no rule of group `{group}` covers it; {}", rule_for(&judged.record.kind)),
            };
            sentences.push(sentence);
        }
        for said in obstacles() {
            let Some(floor) = said.label.strip_prefix("floor:") else { continue };
            let why = said.detail.as_deref().unwrap_or_else(|| plain(floor));
            sentences.push(format!("{what}: {why} (floor `{floor}`); no allow lifts that, an approval does"));
        }
    }
    sentences.dedup();
    sentences
}

fn name(kind: &FacetKindRecord) -> String {
    match kind {
        FacetKindRecord::Path { access, pointer, lexical, physical, .. } => {
            let verb = match access {
                Some(Access::Read) => "read",
                Some(Access::Write) => "write",
                Some(Access::Delete) => "delete",
                None => "use",
            };
            let at = if pointer.is_empty() { String::new() } else { format!(" (`{pointer}`)") };
            match physical {
                Some(physical) if physical != lexical => format!("{verb} of {lexical}, really {physical}{at}"),
                _ => format!("{verb} of {lexical}{at}"),
            }
        }
        FacetKindRecord::Command { words, .. } => format!("command `{}`", words.join(" ")),
        FacetKindRecord::Url { url, .. } => format!("URL {url}"),
        FacetKindRecord::Address { address, .. } => format!("address {address}"),
        FacetKindRecord::Sql { kinds, tables } if kinds.is_empty() && tables.is_empty() => {
            "SQL that is not read".into()
        }
        FacetKindRecord::Sql { kinds, tables } if tables.is_empty() => format!("SQL ({})", kinds.join(", ")),
        FacetKindRecord::Sql { kinds, tables } => format!("SQL ({}) on {}", kinds.join(", "), tables.join(", ")),
        FacetKindRecord::Method { method } => format!("method `{method}`"),
        FacetKindRecord::Bare => "the call".into(),
    }
}

fn rule_for(kind: &FacetKindRecord) -> &'static str {
    match kind {
        FacetKindRecord::Path { access: None, .. } => {
            "an allow with `tool` and `path` would, or a catalogue entry that says how the path is used"
        }
        FacetKindRecord::Path { .. } => "an allow with `path`, and `tool` or `access`, would",
        FacetKindRecord::Method { .. } => "an allow with `method` would",
        FacetKindRecord::Command { .. } => {
            "an allow with `command` would, with `option` too where an option runs programs or writes files, and with `path` \
             where it writes or leaves the root"
        }
        FacetKindRecord::Url { command: Some(_), .. } => "an allow with `command` and `host` would",
        FacetKindRecord::Url { .. } | FacetKindRecord::Address { .. } => "an allow with `tool` or `host` would",
        FacetKindRecord::Sql { .. } => "an allow with `sql` and `tool` would",
        FacetKindRecord::Bare => "an allow with `tool` would",
    }
}

/// The words of floors that come without a sentence.
fn plain(why: &str) -> &str {
    match why {
        "shell" => "the shell text is not fully understood",
        "invisible" => "it holds characters that nobody can see",
        "spelling" => "the upstream may read the path in another way",
        "dangling_link" => "a link leads nowhere, or in a circle",
        "hard_link" => "the file has other names (hard links)",
        "mount" => "another mount lies there",
        "remote_links" => "a remote file system may hide links",
        "heuristic" => "the argument's meaning is guessed from its name; a catalogue entry would say it",
        "option_like" => "an argument that starts with `-` may be read as an option",
        "odd_url" => "the URL cannot be read one way",
        _ => "it needs a person",
    }
}

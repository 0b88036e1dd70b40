//! Approvals and calls as text for people. What agents chose is printed with every invisible character written out, so
//! that no terminal is steered and nothing looks like something else.

use std::fmt::Write;

use serde::Deserialize;

use crate::cli::client::{Failure, read};
use crate::clock::Timestamp;
use crate::pattern::visible;
use crate::record::{
    Access, ApprovalRecord, ApprovalState, ApprovalView, CallRecord, CallState, ClientRecord, ClientState, Decision,
    FacetKindRecord, FacetRecord, FileDiff, FileState, HiddenRecord, NotifiedRecord, NotifiedState, Severity, Verdict,
    Vote, WillRun, word,
};

/// A table of approvals.
pub fn approvals(items: &[ApprovalRecord], next: Option<&str>, now: Timestamp) -> String {
    if items.is_empty() {
        return "nothing to decide".into();
    }
    let rows = items.iter().map(|approval| {
        let standing = match approval.state {
            ApprovalState::Waiting => left(approval.expires_at, now),
            _ => approval_standing(approval),
        };
        let call = &approval.call;
        [approval.id.clone(), standing, visible(&call.agent), visible(&call.upstream), visible(&call.label)]
    });
    table(["APPROVAL", "LEFT", "AGENT", "UPSTREAM", "WHAT"], rows.collect(), next)
}

/// A table of calls.
pub fn calls(items: &[CallRecord], next: Option<&str>, now: Timestamp) -> String {
    if items.is_empty() {
        return "no calls".into();
    }
    let rows = items.iter().map(|call| {
        let age = format!("{} ago", span(now.since(call.created_at).as_secs()));
        [call.id.clone(), age, standing(call), visible(&call.agent), visible(&call.label)]
    });
    table(["CALL", "RECEIVED", "STATE", "AGENT", "WHAT"], rows.collect(), next)
}

/// Everything that is known of a held call.
pub fn approval(view: &ApprovalView, now: Timestamp) -> String {
    let approval = &view.approval;
    let call = &approval.call;
    let mut out = String::new();
    heading(&mut out, &call.label);
    let standing = match approval.state {
        ApprovalState::Waiting => format!("waiting, {} left", left(approval.expires_at, now)),
        _ => approval_standing(approval),
    };
    field(&mut out, "approval", &format!("{} ({standing})", approval.id));
    if let Some(place) = &approval.runs_in {
        field(&mut out, "runs in", &visible(place));
    }
    details(&mut out, call);
    for sentence in &view.look_at {
        field(&mut out, "look", &visible(sentence));
    }
    if let Some(edit) = &approval.edited_from {
        field(&mut out, "changed by", &visible(&format!("{}; the agent sent {}", edit.by, edit.label)));
    }
    if let Some(claim) = approval.claimed.as_ref().filter(|claim| claim.until > now) {
        field(&mut out, "looked at by", &visible(&claim.by));
    }
    for needed in approval.requirements.iter().filter(|needed| needed.quorum > 1 || !needed.approvers.is_empty()) {
        let by =
            if needed.approvers.is_empty() { String::new() } else { format!(" by {}", needed.approvers.join(", ")) };
        let later = needed.escalate.as_ref().and_then(|more| {
            let due = left(more.due?, now);
            Some(format!("; from {} too in {due}", more.to.join(", ")))
        });
        let later = later.unwrap_or_default();
        field(&mut out, "needs", &visible(&format!("{} of {} approvals{by}{later}", needed.votes, needed.quorum)));
    }
    for vote in &approval.votes {
        field(&mut out, "vote", &vote_text(vote));
    }
    for told in &approval.notified {
        field(&mut out, "told", &visible(&told_text(told, now)));
    }
    if approval.state == ApprovalState::Waiting {
        field(&mut out, "on approval", effect(&approval.client));
        if approval.severity != Severity::Normal {
            field(&mut out, "severity", &word(approval.severity));
        }
        if approval.reason_required {
            field(&mut out, "to reject", "a note is needed");
        }
        for option in approval.grant_options.iter().filter(|_| view.you.may_approve) {
            let how = match (&option.path, &option.command) {
                (Some(path), _) => format!("path={path}"),
                (_, Some(command)) => format!("'command={command}'"),
                _ => word(option.scope),
            };
            let most = span(option.max_ttl_ms / 1000);
            field(&mut out, "--remember", &visible(&format!("{how}: {} (up to {most})", option.sentence)));
        }
        if let Some(why) = &view.you.why_not {
            field(&mut out, "you cannot", &visible(&format!("approve it: {why}")));
        }
    }
    out
}

/// What a call would change in a file.
pub fn diff(file: &FileDiff) -> String {
    let what = match file.state {
        FileState::Changed => "would change",
        FileState::New => "would be made",
        FileState::Same => "would stay as it is",
        FileState::Binary => "would be written; it is no text",
        FileState::TooLarge => "would be written; it is too large to show, or cannot be read",
        FileState::Unclear => "would be written; what becomes of it cannot be told",
    };
    let moved = if file.moved_on { "\n(changed since the call was held: an approval ends as stale)" } else { "" };
    let more = if file.truncated { "\n… and more" } else { "" };
    let mut lines: Vec<String> = file.lines.iter().map(|line| visible(line)).collect();
    lines.extend(file.hidden.iter().map(|hidden| format!("(redacted in {})", visible(&hidden_text(hidden)))));
    format!("\n{} {what}:{moved}\n{}{more}", visible(&file.path), lines.join("\n"))
}

/// Everything that is known of a call.
pub fn call(call: &CallRecord) -> String {
    let mut out = String::new();
    heading(&mut out, &call.label);
    field(&mut out, "call", &format!("{} ({})", call.id, standing(call)));
    details(&mut out, call);
    field(&mut out, "received", &call.created_at.to_string());
    for (name, millis) in [("waited", call.waited_ms), ("ran", call.ran_ms)] {
        if let Some(millis) = millis {
            field(&mut out, name, &format!("{millis} ms"));
        }
    }
    if let Some(detail) = &call.detail {
        field(&mut out, "detail", &visible(detail));
    }
    out
}

/// What became of a decision, in one line.
pub fn decided(approval: &ApprovalRecord) -> String {
    match (approval.state, approval.client.state) {
        (ApprovalState::Waiting, _) => "counted; more approvals are needed".into(),
        (ApprovalState::Approved, ClientState::Attached) => "approved; the call runs now".into(),
        (ApprovalState::Approved, ClientState::Gone) => match approval.client.will_run {
            WillRun::Now => "approved; the call runs now, although the agent is not connected".into(),
            WillRun::WhenAttached => "approved; the call runs if the agent comes back with it in time".into(),
        },
        (ApprovalState::Consumed, _) => format!("approved; the call is {}", standing(&approval.call)),
        _ => approval_line(approval),
    }
}

/// Where an approval stands, in one line.
pub fn approval_line(approval: &ApprovalRecord) -> String {
    let by = match (approval.state, approval.votes.last()) {
        (ApprovalState::Approved | ApprovalState::Rejected, Some(vote)) => format!(" by {}", visible(&vote.by)),
        _ => String::new(),
    };
    format!("{}{by}  {}  {}", approval_standing(approval), approval.id, what(&approval.call))
}

/// Where a call stands, in one line.
pub fn call_line(call: &CallRecord) -> String {
    format!("{}  {}  {}", standing(call), call.id, what(call))
}

/// The policy in force, in one line, from the API's JSON.
///
/// # Errors
/// It is not a policy.
pub fn policy_line(json: &str) -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct InForce {
        version: String,
        error: Option<String>,
    }
    let policy: InForce = read(json)?;
    Ok(match policy.error {
        None => format!("policy {} is in force", policy.version),
        Some(error) => format!("policy reload refused, {} stays in force: {}", policy.version, visible(&error)),
    })
}

fn what(call: &CallRecord) -> String {
    format!("{} → {}: {}", visible(&call.agent), visible(&call.upstream), visible(&call.label))
}

/// What both an approval and a call show of a call.
fn details(out: &mut String, call: &CallRecord) {
    let owner = call.owner.as_ref().map_or_else(String::new, |owner| format!(" of {owner}"));
    field(out, "agent", &visible(&format!("{}{owner}, group {}", call.agent, call.group)));
    let tool = match &call.tool {
        Some(tool) => format!("tool {tool}"),
        None => format!("method {}", call.method),
    };
    field(out, "upstream", &visible(&format!("{}, {tool}", call.upstream)));
    for facet in &call.facets {
        facet_text(out, facet);
    }
    for reason in &call.reasons {
        field(out, "why", &visible(reason));
    }
    if let Some(verdict) = call.verdict {
        let by = call.decided_by.join(", ");
        field(out, "verdict", &visible(&format!("{} by {by}", verdict_word(verdict))));
    }
    field(out, "arguments", &arguments(call));
    for hidden in &call.hidden {
        field(out, "redacted", &visible(&hidden_text(hidden)));
    }
    if call.hidden_more > 0 {
        field(out, "redacted", &format!("{} more, of which nothing is told", call.hidden_more));
    }
    if call.hidden.is_empty() && !call.redacted.is_empty() {
        field(out, "redacted", &visible(&call.redacted.join(" ")));
    }
    if let Some(digest) = &call.digest {
        field(out, "digest", digest);
    }
}

/// A secret that is not shown, as far as it is known.
fn hidden_text(hidden: &HiddenRecord) -> String {
    let ends = match (&hidden.starts, &hidden.ends) {
        (Some(starts), Some(ends)) => format!(", {starts}…{ends}"),
        _ => String::new(),
    };
    format!("{}: {} characters{ends} #{}", hidden.pointer, hidden.length, hidden.hash)
}

fn facet_text(out: &mut String, facet: &FacetRecord) {
    match &facet.kind {
        FacetKindRecord::Path { access, lexical, physical, command, .. } => {
            let access = match access {
                Some(Access::Read) => "read",
                Some(Access::Write) => "write",
                Some(Access::Delete) => "delete",
                None => "touches",
            };
            field(out, access, &visible(lexical));
            if let Some(physical) = physical.as_ref().filter(|physical| *physical != lexical) {
                field(out, "", &format!("resolves to {}", visible(physical)));
            }
            if let Some(command) = command {
                field(out, "", &format!("named by {}", visible(command)));
            }
        }
        kind @ FacetKindRecord::Command { .. } => {
            field(out, "command", &visible(&kind.command_line().unwrap_or_default()));
        }
        FacetKindRecord::Url { url, .. } => field(out, "url", &visible(url)),
        FacetKindRecord::Address { address, .. } => field(out, "address", &visible(address)),
        FacetKindRecord::Sql { kinds, tables } => {
            field(out, "sql", &visible(&format!("{} on {}", kinds.join(" "), tables.join(" "))));
        }
        FacetKindRecord::Method { method } => field(out, "method", &visible(method)),
        FacetKindRecord::Bare => {}
    }
    for floor in &facet.floors {
        field(out, "", &format!("! {}", visible(floor.detail.as_deref().unwrap_or(&floor.why))));
    }
    for matched in &facet.matches {
        let place = match (&matched.file, matched.line) {
            (Some(file), Some(line)) => format!(" ({file}:{line})"),
            _ => String::new(),
        };
        field(out, "", &visible(&format!("{}: {}{place}", verdict_word(matched.verdict), matched.rule)));
    }
}

/// The arguments as JSON, a member a line.
fn arguments(call: &CallRecord) -> String {
    let json = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
    json.lines().map(visible).collect::<Vec<_>>().join("\n")
}

fn effect(client: &ClientRecord) -> &'static str {
    if client.task {
        return "runs at once: the agent has a task for it and asks for its end later";
    }
    match (client.state, client.will_run) {
        (ClientState::Attached, _) => "runs at once: the agent is waiting for it",
        (ClientState::Gone, WillRun::Now) => "runs at once, although the agent is not connected now",
        (ClientState::Gone, WillRun::WhenAttached) => "runs if the agent comes back in time with the same call",
    }
}

/// Who was told, or was not.
fn told_text(told: &NotifiedRecord, now: Timestamp) -> String {
    let ago = format!("{} ago", span(now.since(told.at).as_secs()));
    let why = told.detail.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    match told.state {
        NotifiedState::Delivered => format!("{} {ago}", told.channel),
        NotifiedState::Updated => format!("{} {ago}, once more", told.channel),
        NotifiedState::Closed => format!("{} {ago}, of its end", told.channel),
        NotifiedState::Pending => format!("{} not yet{why}; it is tried again", told.channel),
        NotifiedState::Failed => format!("{} could not be told {ago}{why}", told.channel),
    }
}

fn vote_text(vote: &Vote) -> String {
    let verb = match vote.decision {
        Decision::Approve => "approved",
        Decision::Reject => "rejected",
    };
    let note = vote.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
    visible(&format!("{} {verb} at {} ({}){note}", vote.by, vote.at, vote.channel))
}

/// The state; once used by its run, what became of that.
fn approval_standing(approval: &ApprovalRecord) -> String {
    let word = match approval.state {
        ApprovalState::Waiting => "waiting",
        ApprovalState::Approved => "approved",
        ApprovalState::Rejected => "rejected",
        ApprovalState::Expired => "expired",
        ApprovalState::Withdrawn => "withdrawn",
        ApprovalState::Stale => "stale",
        ApprovalState::Consumed => return standing(&approval.call),
    };
    word.to_owned()
}

const fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    }
}

fn standing(call: &CallRecord) -> String {
    match call.state {
        CallState::Pending => "pending".into(),
        CallState::AwaitingApproval => "waiting".into(),
        CallState::Running => "running".into(),
        CallState::Completed if call.tool_error == Some(true) => "completed (tool error)".into(),
        CallState::Completed => "completed".into(),
        CallState::Failed if call.may_have_run => "failed (may have run)".into(),
        CallState::Failed => "failed".into(),
        CallState::Cancelled => "cancelled".into(),
        CallState::Rejected => match &call.reason {
            Some(reason) => format!("rejected ({})", visible(reason)),
            None => "rejected".into(),
        },
    }
}

pub fn left(expires: Timestamp, now: Timestamp) -> String {
    span(expires.since(now).as_secs())
}

/// `75` as `1m15s`.
pub fn span(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn heading(out: &mut String, label: &str) {
    out.push_str(&visible(label));
    out.push_str("\n\n");
}

/// A name and a value; further lines of the value stand under its first.
fn field(out: &mut String, name: &str, value: &str) {
    for (at, line) in value.lines().enumerate() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "  {:12} {line}", if at == 0 { name } else { "" });
    }
}

/// Columns as wide as their widest cell, the last one ragged.
fn table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>, next: Option<&str>) -> String {
    let mut widths = head.map(|cell| cell.chars().count());
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let padded: Vec<String> = cells.zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        out.push_str(padded.join("  ").trim_end());
        out.push('\n');
    };
    line(&mut head.iter().copied());
    for row in &rows {
        line(&mut row.iter().map(String::as_str));
    }
    if let Some(next) = next {
        let _ = writeln!(out, "more with --cursor {}", visible(next));
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use serde_json::{Value, json};

    use super::*;

    fn held() -> Value {
        serde_json::from_str(include_str!("../../admin/api/approval.example.json")).unwrap()
    }

    fn now() -> Timestamp {
        serde_json::from_value(json!("2026-11-30T00:08:30Z")).unwrap()
    }

    #[test]
    fn an_approval_shows_all_that_is_decided_on() {
        let record: ApprovalView = serde_json::from_value(held()).unwrap();
        insta::assert_snapshot!(approval(&record, now()), @r#"
        write_file docs/a.md (1 byte)

          approval     apr_1 (waiting, 1m30s left)
          agent        claude of ana, group default
          upstream     files, tool write_file
          write        /w/docs/a.md
                       resolves to /w/other/a.md
                       ! hard_link
                       ask: docs (base.yaml:12)
          why          Writes are looked at.
          verdict      ask by docs
          arguments    {
                         "content": "a\u{202e}b\u001b[2K",
                         "path": "docs/a.md",
                         "size": 9007199254740993
                       }
          digest       sha256:d
          look         the file has other names (hard links)
          needs        0 of 1 approvals by finance
          told         slack:ops 8m29s ago
          on approval  runs if the agent comes back in time with the same call
          you cannot   approve it: this call can be approved by finance only; you may reject it
        "#);
    }

    #[test]
    fn nothing_an_agent_chose_steers_the_terminal() {
        let mut record = held();
        for pointer in ["/call/agent", "/call/label", "/call/tool", "/call/facets/0/lexical", "/call/reasons/0"] {
            *record.pointer_mut(pointer).unwrap() = json!("x\u{1b}]0;y\u{7}\u{202e}\n z\u{200b}");
        }
        let view: ApprovalView = serde_json::from_value(record).unwrap();
        let record = view.approval.clone();
        let all = [
            approval(&view, now()),
            call(&record.call),
            approval_line(&record),
            call_line(&record.call),
            decided(&record),
            approvals(std::slice::from_ref(&record), Some("c\u{1b}"), now()),
            calls(std::slice::from_ref(&record.call), None, now()),
        ];
        for text in all {
            let unseen: Vec<char> = text.chars().filter(|c| *c != '\n' && crate::pattern::is_invisible(*c)).collect();
            assert!(unseen.is_empty(), "{unseen:?} in {text}");
            assert!(!text.lines().any(|line| line.starts_with(" z")), "{text}");
        }
    }

    #[test]
    fn a_table_lines_up() {
        let record: ApprovalRecord = serde_json::from_value(held()).unwrap();
        insta::assert_snapshot!(approvals(&[record], Some("c1"), now()), @r"
        APPROVAL  LEFT   AGENT   UPSTREAM  WHAT
        apr_1     1m30s  claude  files     write_file docs/a.md (1 byte)
        more with --cursor c1
        ");
        assert_eq!(approvals(&[], None, now()), "nothing to decide");
    }

    #[test]
    fn a_decision_is_told_as_it_is() {
        let line = |state: &str, call_state: &str, client: &str| {
            let mut record = held();
            record["state"] = json!(state);
            record["call"]["state"] = json!(call_state);
            record["client"]["state"] = json!(client);
            decided(&serde_json::from_value(record).unwrap())
        };
        assert_eq!(line("waiting", "awaiting_approval", "gone"), "counted; more approvals are needed");
        assert_eq!(line("approved", "awaiting_approval", "attached"), "approved; the call runs now");
        assert!(line("approved", "awaiting_approval", "gone").contains("if the agent comes back"));
        assert_eq!(line("consumed", "running", "attached"), "approved; the call is running");
        assert!(line("rejected", "rejected", "gone").starts_with("rejected  apr_1"));
    }
}

//! One line of the log: which call begins its life there, and what another policy says of it.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::tally::{Example, Tally};
use super::{Filter, Place, fault};
use crate::clock::Timestamp;
use crate::message::json::{Kind, Member, Span};
use crate::message::{Json, Limits, Value};
use crate::policy::{Evidence, Policy, Subject};
use crate::record::{Depth, Source, Verdict};
use crate::secret::REDACTED;

/// What is read of a line. Other events have fields of the same names that hold something else.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(default)]
    approval: Option<IgnoredAny>,
    #[serde(default)]
    released_at: Option<IgnoredAny>,
    #[serde(borrow, default)]
    judged: Option<&'a RawValue>,
}

impl Line<'_> {
    /// Whether it is the first line about a call that was judged.
    fn opens(&self) -> bool {
        let is_new = self.approval.is_none();
        match &*self.event {
            // Changed by an approver, it is another call.
            "call.held" | "call.edited" => true,
            "call.begin" => is_new,
            // Refused at once.
            "call.end" => is_new && self.released_at.is_none(),
            _ => false,
        }
    }
}

/// A call, as its first line tells of it.
#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    agent: Cow<'a, str>,
    #[serde(borrow)]
    group: Cow<'a, str>,
    source: Source,
    depth: Depth,
    #[serde(borrow)]
    upstream: Cow<'a, str>,
    #[serde(borrow)]
    tool: Option<Cow<'a, str>>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    label: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
    verdict: Verdict,
    decided_by: Vec<String>,
    #[serde(borrow, default)]
    policy: Option<Cow<'a, str>>,
    created_at: Timestamp,
}

/// Judges the call that a line opens, if it opens one that the filter wants.
pub(super) fn judge(bytes: &[u8], policy: &Policy, filter: &Filter, at: Place, file: &str, tally: &mut Tally) {
    let line: Line<'_> = match serde_json::from_slice(bytes) {
        Ok(line) => line,
        Err(error) => return tally.fault(at, fault(file, at.line, format!("not a line of this log: {error}"))),
    };
    if !line.opens() {
        return;
    }
    let call: Call<'_> = match serde_json::from_slice(bytes) {
        Ok(call) => call,
        Err(error) => return tally.fault(at, fault(file, at.line, format!("not a call of this log: {error}"))),
    };
    if filter.since.is_some_and(|since| call.created_at < since)
        || filter.agent.as_ref().is_some_and(|agent| *agent != call.agent)
        || filter.group.as_ref().is_some_and(|group| *group != call.group)
    {
        return;
    }
    let (before, before_by) = call.policy_alone();
    let example = || Example {
        file: file.to_owned(),
        line: at.line,
        call: call.id.clone().into_owned(),
        at: call.created_at,
        agent: call.agent.clone().into_owned(),
        label: call.label.clone().into_owned(),
    };
    // It was judged with this very policy: what the log leaves out changes nothing.
    if call.policy.as_deref() == Some(&policy.version) {
        return tally.same();
    }
    let Some(judged) = line.judged else {
        return tally.not_judged(at, before, "the version that wrote the line did not keep what was judged", example);
    };
    match serde_json::from_str::<Evidence>(judged.get()) {
        Ok(evidence) => {
            let arguments = call.arguments();
            let after = evidence.ready().judge(policy, &call.subject(&arguments));
            tally.judged(at, before, &before_by, after, example);
        }
        Err(_) => tally.not_judged(at, before, "what was judged was written by another version", example),
    }
}

impl Call<'_> {
    /// What policy said, limits and grants apart: limits count as not exhausted.
    fn policy_alone(&self) -> (Verdict, Cow<'_, [String]>) {
        // A person's word for a while, not policy's: that asked.
        if self.decided_by.iter().any(|label| label.starts_with("grant:")) {
            return (Verdict::Ask, Cow::Borrowed(&self.decided_by));
        }
        let is_limit = |label: &String| label.starts_with("limit:");
        match self.decided_by.iter().any(is_limit) {
            false => (self.verdict, Cow::Borrowed(&self.decided_by)),
            true if self.decided_by.iter().all(is_limit) => (Verdict::Allow, Cow::Borrowed(&self.decided_by)),
            true => (
                self.verdict,
                self.decided_by.iter().filter(|label| !is_limit(label)).cloned().collect::<Vec<_>>().into(),
            ),
        }
    }

    fn subject<'s>(&'s self, arguments: &'s Value) -> Subject<'s> {
        Subject {
            group: &self.group,
            agent: Some(&self.agent),
            source: Some(self.source),
            depth: Some(self.depth),
            claimed: Default::default(),
            at: Some(self.created_at),
            upstream: Some(&self.upstream),
            tool: self.tool.as_deref(),
            category: None,
            method: &self.method,
            arguments: Some(arguments),
            recorded: None,
        }
    }

    /// The arguments as rules see them (for other methods the parameters), as far as the log has them.
    fn arguments(&self) -> Value {
        let read = self.arguments.and_then(|raw| {
            let bytes = Bytes::copy_from_slice(raw.get().as_bytes());
            Json::parse(bytes, Limits { max_bytes: usize::MAX, ..Limits::default() }).ok()
        });
        let Some(shown) = read.map(Json::into_root) else { return value(Kind::String(REDACTED.into())) };
        let Kind::Object(members) = shown.kind else { return shown };
        // Two prefixes tell arguments from parameters (`gate::shown`).
        let (mut arguments, mut params) = (Vec::new(), Vec::new());
        for mut member in members {
            if let Some(name) = member.key.strip_prefix("params.") {
                member.key = name.into();
                params.push(member);
            } else {
                member.key = member.key.strip_prefix("arguments.").unwrap_or(&member.key).into();
                arguments.push(member);
            }
        }
        if self.tool.is_some() {
            return value(Kind::Object(arguments));
        }
        params.push(member("arguments", Kind::Object(arguments)));
        // `name` and `_meta` are not in the log.
        params.push(member(REDACTED, Kind::Null));
        value(Kind::Object(params))
    }
}

fn member(key: &str, kind: Kind) -> Member {
    Member { key: key.into(), key_span: Span::default(), value: value(kind) }
}

fn value(kind: Kind) -> Value {
    Value { span: Span::default(), kind }
}

//! An approver changes the arguments of a held call: judged again as if the agent had sent them, and told to the model.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value as Shown, json};

use super::judged::{Judged, Target, judged};
use super::unattended::conversation;
use super::{Gate, Session, asked, call, shown};
use crate::approval::{Edit, Event, Held, NO_FILE, Refused, Terms};
use crate::message::{Json, Limits, Message};
use crate::record::{
    ApprovalRecord, ApprovalState, CallRecord, Decision, FacetKindRecord, FacetRecord, RequirementRecord, Verdict, Vote,
};
use crate::secret::REDACTED;
use crate::store::StoreError;

/// Characters of one value in what the model is told.
const MAX_VALUE: usize = 200;
/// Changes that the model is told one by one.
const MAX_CHANGES: usize = 20;

/// Who changes a call, and how they vote on what it then is.
pub struct Editor {
    /// Their name.
    pub by: String,
    /// `inbox`, `api` or `cli`.
    pub channel: String,
    /// The digest of what they were shown.
    pub seen: String,
    /// Why.
    pub note: Option<String>,
}

/// Why a call was not changed. It waits on as it was.
#[derive(Debug)]
pub enum NotEdited {
    /// The store or the state machine refuses.
    Store(StoreError),
    /// The arguments cannot be taken: why.
    Bad(String),
    /// Policy denies the call with these arguments: which rules, and why.
    Denied(String),
    /// It cannot be judged again here and now: why.
    NotHere(String),
}

impl From<StoreError> for NotEdited {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Gate {
    /// Puts other arguments (raw JSON of an object) in the place of a waiting call's, and votes for it where that brings
    /// nothing to look at that the editor was not shown; otherwise it waits, to be looked at again. Earlier votes are
    /// void.
    ///
    /// # Errors
    /// Why nothing has changed.
    pub async fn edit(self: &Arc<Self>, approval: &str, editor: Editor, arguments: &str) -> Result<Held, NotEdited> {
        let before = self.disowned(self.store.get(approval).await?).await?;
        // Said before anything is asked of the upstream; the store has the last word.
        if before.approval.state != ApprovalState::Waiting {
            let refused = if before.call().outcome.is_some() { Refused::Ended } else { Refused::Decided };
            return Err(StoreError::Refused(refused, Box::new(before)).into());
        }
        if before.call().digest.as_ref() != Some(&editor.seen) {
            return Err(StoreError::Refused(Refused::Digest, Box::new(before)).into());
        }
        if before.call().from_upstream {
            let why =
                "an upstream asked this of its client, and it is its own to change; approve or reject it as it is";
            return Err(NotEdited::NotHere(why.to_owned()));
        }
        let message = Arc::new(with_arguments(&before, arguments, self.config().mcp.max_body)?);
        let executor = self.executors.get(&before.call().upstream);
        if executor.is_none_or(|executor| executor.place.digest != before.intent.origin.executor) {
            let why = "this gateway does not run calls like this one: it was made through another process, with an upstream of its own; approve or reject it as it is";
            return Err(NotEdited::NotHere(why.to_owned()));
        }
        let (session, _) = conversation(self, &before).await.map_err(NotEdited::NotHere)?;
        let edited = self.judged_again(&session, &before, &message).await;
        self.done_with(&session).await;
        let (approval, terms, judged, evidence) = edited?;
        let voter = self.directory().approvers().iter().find(|one| one.config.name == editor.by).cloned();
        let news = brings_news(&before.approval, &approval, &terms, &judged, &before);
        let edit = Edit {
            by: editor.by.clone(),
            teams: voter.map(|voter| voter.config.teams.clone()).unwrap_or_default(),
            sole_approver: self.has_sole_approver(before.call()),
            seen: editor.seen,
            approval,
            terms,
            message: String::from_utf8_lossy(message.bytes()).into_owned(),
            places: shown::places_digest(&judged.judgement),
            scripts: judged.scripts,
        };
        let held = self.apply(&before.call().id, Event::Edit(Box::new(edit))).await?;
        self.note_call("call.edited", &held, Some(evidence));
        let kept = |call: &CallRecord| self.audit.keeps_arguments().then(|| call.arguments.clone());
        self.note(
            "approval.edited",
            &json!({"approval": held.approval.id, "call": held.call().id, "by": editor.by, "channel": editor.channel,
                "from": kept(before.call()), "to": kept(held.call()),
                "from_digest": before.call().digest, "to_digest": held.call().digest}),
        );
        tracing::info!(call = held.call().id, by = editor.by, "an approver changed the arguments of a call");
        if news {
            return Ok(held);
        }
        let vote = Vote {
            by: editor.by,
            teams: Vec::new(),
            decision: Decision::Approve,
            channel: editor.channel,
            note: editor.note,
            digest: held.call().digest.clone(),
            remember: None,
            at: self.clock.now(),
        };
        Ok(self.vote(&held.approval.id, vote).await?)
    }

    /// What the call with the other arguments is to the policy, and how it is shown.
    async fn judged_again(
        self: &Arc<Self>,
        session: &Arc<Session>,
        before: &Held,
        message: &Arc<Message>,
    ) -> Result<(ApprovalRecord, Terms, Judged, Shown), NotEdited> {
        let target = match before.call().tool.as_deref() {
            Some(name) => match session.definition(name, message).await {
                Ok(Some(definition)) if Some(&definition.digest) == before.intent.definition.as_ref() => {
                    Target::Tool { name: name.to_owned(), definition }
                }
                Ok(_) => {
                    return Err(NotEdited::NotHere("the tool is no longer defined as it was; reject the call".into()));
                }
                Err(error) => {
                    return Err(NotEdited::NotHere(format!("the upstream cannot be asked for its tools: {error}")));
                }
            },
            None => return Err(NotEdited::Bad("only the arguments of a tool call can be changed".into())),
        };
        let Some(agent) = session.agent() else {
            return Err(NotEdited::NotHere("its agent is no longer configured".into()));
        };
        let (now, received) = (self.clock.now(), before.call().created_at);
        let judged = judged(self.policy().policy, &session.executor, &agent, &target, message, now, received, &[])
            .await
            .map_err(|malformed| NotEdited::Bad(malformed.to_string()))?;
        if judged.judgement.verdict == Verdict::Deny {
            let by = judged.judgement.decided_by.join(", ");
            let why = judged.judgement.reasons.join("; ");
            return Err(NotEdited::Denied(if why.is_empty() { by } else { format!("{by}: {why}") }));
        }
        let evidence = self.evidence(&target, message, &judged);
        let mut fresh = call::record(session, message, &target, &judged);
        let mut approval = before.approval.clone();
        approval.call.label = std::mem::take(&mut fresh.label);
        approval.call.arguments = fresh.arguments.take();
        approval.call.redacted = std::mem::take(&mut fresh.redacted);
        (approval.call.hidden, approval.call.hidden_more) = (std::mem::take(&mut fresh.hidden), fresh.hidden_more);
        approval.call.rejudge(fresh);
        // What policy allows needs nobody; whoever changed it answers for it.
        let terms = asked::terms(&judged, &self.config().approvals).unwrap_or_else(|| Terms {
            asked: Vec::new(),
            people: vec![RequirementRecord::anybody()],
            ..before.terms.clone()
        });
        asked::show(&mut approval, &terms, &judged.scripts, now);
        // What the agent asks again is not what was approved.
        approval.grant_options.clear();
        Ok((approval, terms, judged, evidence))
    }
}

/// The stored request with other arguments, read as strictly as a client's.
fn with_arguments(before: &Held, arguments: &str, max_bytes: usize) -> Result<Message, NotEdited> {
    let old = before.intent.message().map_err(NotEdited::NotHere)?;
    if old.method() != "tools/call" {
        return Err(NotEdited::Bad("only the arguments of a tool call can be changed".into()));
    }
    if old.at(&["params", "requestState"]).is_some() || old.at(&["params", "inputResponses"]).is_some() {
        let why = "this call goes on from an earlier one with these very arguments; approve or reject it as it is";
        return Err(NotEdited::Bad(why.into()));
    }
    let arguments = with_secrets(before, &old, arguments)?;
    let edited = match (old.at(&["params", "arguments"]), old.at(&["params"])) {
        (Some((span, _)), _) => old.spliced(&[(span, arguments)]),
        // The parameters of a tool call are an object, with its name at least.
        (None, Some((mut span, params))) => {
            let opened = params.strip_prefix('{').unwrap_or(params);
            span.end = span.start + (params.len() - opened.len());
            old.spliced(&[(span, format!("{{\"arguments\":{arguments},"))])
        }
        (None, None) => return Err(NotEdited::Bad("the request has no parameters".into())),
    };
    let limits = Limits { max_bytes, ..Limits::default() };
    let message =
        Message::strict(edited, limits).map_err(|malformed| NotEdited::Bad(format!("`arguments`: {malformed}")))?;
    match message.at(&["params", "arguments"]) {
        Some((_, text)) if text.starts_with('{') => Ok(message),
        _ => Err(NotEdited::Bad("`arguments` must be an object".into())),
    }
}

/// The editor was shown secrets as replaced: where one stands as it was shown, the agent's own value takes its place, and
/// so it does where the agent itself wrote what a replaced one looks like. Anywhere else it would run as that very text.
fn with_secrets(before: &Held, old: &Message, arguments: &str) -> Result<String, NotEdited> {
    let limits = Limits { max_bytes: arguments.len(), ..Limits::default() };
    let tree = Json::parse(Bytes::copy_from_slice(arguments.as_bytes()), limits)
        .map_err(|error| NotEdited::Bad(format!("`arguments`: {error}")))?;
    let call = before.call();
    let (mut edits, mut stray) = (Vec::new(), None);
    let shown_before = &call.arguments;
    let shown_now: Shown = serde_json::from_str(arguments).unwrap_or_default();
    tree.root().walk(&mut |pointer, value| {
        let own = super::judged::arguments(old).and_then(|own| super::judged::at(own, pointer));
        let is_name_hidden = pointer.rsplit('/').next().is_some_and(|name| name.contains(REDACTED));
        if is_name_hidden && own.is_none() {
            stray = Some(pointer.to_owned());
        }
        let Some(text) = value.as_str().filter(|text| text.contains(REDACTED)) else { return };
        let is_shown_so = call.redacted.iter().any(|redacted| redacted == pointer)
            && call.arguments.pointer(pointer).and_then(Shown::as_str) == Some(text);
        let is_shown_so = is_shown_so && stands_still(pointer, shown_before, &shown_now);
        let as_it_stood = own.filter(|own| is_shown_so || own.as_str() == Some(text));
        match as_it_stood.and_then(|own| old.bytes().get(own.span.start..own.span.end)) {
            Some(raw) => edits.push((value.span, String::from_utf8_lossy(raw).into_owned())),
            None => stray = Some(pointer.to_owned()),
        }
    });
    if let Some(pointer) = stray {
        let why = format!(
            "{pointer} holds the text `{REDACTED}`, which stands for a secret that you were not shown; write all of it, or leave it as it stood"
        );
        return Err(NotEdited::Bad(why));
    }
    edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut arguments = arguments.to_owned();
    for (span, raw) in edits {
        arguments.replace_range(span.start..span.end, &raw);
    }
    Ok(arguments)
}

/// Whether what stands at a pointer is surely what stood there. In a list all marks look the same: one that was taken out or
/// moved would leave its place, and with it its secret, to the next. So a list keeps its length and the places of its
/// marks, and of what holds a mark nothing else is changed.
fn stands_still(pointer: &str, before: &Shown, now: &Shown) -> bool {
    let is_marked = |value: &Shown| value.as_str().is_some_and(|text| text.contains(REDACTED));
    let ends = pointer.match_indices('/').map(|(at, _)| at).skip(1).chain([pointer.len()]);
    let mut around = "";
    for end in ends {
        let inner = pointer.get(..end).unwrap_or(pointer);
        if let (Some(Shown::Array(old)), now) = (before.pointer(around), now.pointer(around)) {
            let Some(Shown::Array(new)) = now else { return false };
            let same_marks = old.len() == new.len()
                && old
                    .iter()
                    .zip(new)
                    .all(|(old, new)| is_marked(old) == is_marked(new) && (!is_marked(old) || old == new));
            let scalar = before.pointer(inner).is_some_and(Shown::is_string);
            return same_marks && (scalar || before.pointer(inner) == now_at(new, inner, around));
        }
        around = inner;
    }
    true
}

/// The element of a list by its whole pointer.
fn now_at<'v>(list: &'v [Shown], inner: &str, around: &str) -> Option<&'v Shown> {
    list.get(inner.strip_prefix(around)?.strip_prefix('/')?.parse::<usize>().ok()?)
}

/// Whether the call is about something that its editor was not shown: then they look again before they approve it.
fn brings_news(old: &ApprovalRecord, new: &ApprovalRecord, terms: &Terms, judged: &Judged, before: &Held) -> bool {
    let leads_elsewhere = |facet: &FacetRecord| match &facet.kind {
        FacetKindRecord::Path { lexical, physical: Some(physical), .. } => lexical != physical,
        _ => false,
    };
    let known = |facet: &FacetRecord| old.call.facets.iter().any(|shown| shown.kind == facet.kind);
    terms.asked.iter().any(|asked| !before.terms.asked.contains(asked))
        || terms.severity > old.severity
        || new.flags.iter().any(|flag| !old.flags.contains(flag))
        || new.call.facets.iter().any(|facet| leads_elsewhere(facet) && !known(facet))
        || judged
            .scripts
            .iter()
            .any(|file| file.content.as_deref() != Some(NO_FILE) && !before.intent.scripts.contains(file))
}

/// What the model is told of a call whose arguments an approver changed; nothing of one that ran as it was sent.
pub fn note(held: &Held) -> Option<String> {
    let from = held.approval.edited_from.as_ref()?;
    let mut changes = Vec::new();
    compare(&from.arguments, &held.call().arguments, "", &mut changes);
    let more = changes.len().saturating_sub(MAX_CHANGES);
    changes.truncate(MAX_CHANGES);
    if more > 0 {
        changes.push(format!("and {more} more"));
    }
    Some(format!(
        "(An approver changed the arguments of this call before it ran: {}. This is the result of the changed call.)",
        if changes.is_empty() {
            "in how they are written, or in what is redacted".to_owned()
        } else {
            changes.join("; ")
        }
    ))
}

/// Each place where two JSON values differ.
fn compare(old: &Shown, new: &Shown, at: &str, changes: &mut Vec<String>) {
    match (old, new) {
        (Shown::Object(old), Shown::Object(new)) => {
            let gone = old.iter().filter(|(key, _)| !new.contains_key(*key));
            changes.extend(gone.map(|(key, value)| format!("{at}/{key} was {} and is left out", short(value))));
            for (key, value) in new {
                match old.get(key) {
                    Some(was) => compare(was, value, &format!("{at}/{key}"), changes),
                    None => changes.push(format!("{at}/{key} is added: {}", short(value))),
                }
            }
        }
        _ if old == new => {}
        _ => changes.push(format!("{at} was {} and is {}", short(old), short(new))),
    }
}

fn short(value: &Shown) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE) {
        Some((cut, _)) => format!("{}… ({} characters)", text.get(..cut).unwrap_or_default(), text.chars().count()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_in_a_list_that_was_changed_stands_for_nothing() {
        let mark = REDACTED;
        let before = json!({ "env": { "TOKEN": mark, "HOST": "a" }, "argv": ["-H", mark, "-d", mark, "x"],
            "users": [{ "name": "a", "token": mark }, { "name": "b", "token": mark }] });
        let with = |pointer: &str, value: Shown| {
            let mut now = before.clone();
            if let Some(place) = now.pointer_mut(pointer) {
                *place = value;
            }
            now
        };
        for (pointer, now) in [
            ("/env/TOKEN", with("/env/HOST", json!("b"))),
            ("/env/TOKEN", with("/argv", json!([]))),
            ("/argv/1", with("/argv/4", json!("y"))),
            ("/users/0/token", with("/argv", json!([]))),
            ("/users/1/token", with("/users/0/name", json!("c"))),
        ] {
            assert!(stands_still(pointer, &before, &now), "{pointer}: {now}");
        }
        for (pointer, now) in [
            // The first pair is taken out: the second would run with the first's secret.
            ("/argv/1", with("/argv", json!(["-d", mark, "x"]))),
            ("/argv/1", with("/argv", json!(["-d", mark, "x", "y", "z"]))),
            ("/users/0/token", with("/users", json!([{ "name": "b", "token": mark }]))),
            ("/users/0/token", with("/users", json!([{ "name": "b", "token": mark }, { "name": "a", "token": mark }]))),
            ("/users/0/token", with("/users/0/name", json!("c"))),
            ("/users/0/token", with("/users", json!({ "0": { "token": mark } }))),
        ] {
            assert!(!stands_still(pointer, &before, &now), "{pointer}: {now}");
        }
    }
}

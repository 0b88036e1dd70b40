//! Clarifications: questions of agents to their people. Judged like every call and held like one that policy asks about,
//! but ended by an answer: text for the model, never a decision.

use serde::Deserialize;
use serde_json::json;

use super::call::{self, Call};
use super::client::Client;
use super::judged::Judged;
use super::limits::Reserved;
use super::unattended::era_word;
use super::{Gate, asked, hold};
use crate::approval::{Answered, Event, Held, Question, Refused, Terms};
use crate::config::{AllowSelf, Config, RESERVED_UPSTREAM};
use crate::identity::Approver;
use crate::message::Message;
use crate::pattern::visible;
use crate::record::{ClarificationRecord, ClarificationState, RequirementRecord, Verdict};
use crate::secret::Redaction;
use crate::store::StoreError;

/// The tool's name.
pub const ASK_USER: &str = "ask_user_clarification";
/// Characters of a question.
pub const MAX_QUESTION: usize = 2_000;
/// Answers that a question offers.
pub const MAX_CHOICES: usize = 10;
/// Characters of each.
pub const MAX_CHOICE: usize = 200;
/// Characters of an answer.
pub const MAX_ANSWER: usize = 4_000;

/// Why a question was not answered.
#[derive(Debug)]
pub enum NotAnswered {
    /// The store or the state of the question.
    Store(StoreError),
    /// The answer holds something in the shape of a secret, and was not sent with that in mind.
    LooksSecret,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    question: String,
    #[serde(default)]
    choices: Vec<String>,
}

/// The question of a call of the gateway's own tool; none for any other call.
///
/// # Errors
/// What is wrong with its arguments, for the model.
pub fn of(upstream: &str, message: &Message, redaction: &Redaction) -> Result<Option<Question>, String> {
    if upstream != RESERVED_UPSTREAM || message.method() != "tools/call" {
        return Ok(None);
    }
    let arguments = message.at(&["params", "arguments"]).map_or("{}", |(_, raw)| raw);
    let Asked { question, choices } =
        serde_json::from_str(arguments).map_err(|error| format!("the arguments do not fit: {error}"))?;
    let shown =
        |text: &str| text.trim().lines().map(|line| visible(&redaction.text(line))).collect::<Vec<_>>().join("\n");
    let is_bad = |text: &str, longest: usize| text.trim().is_empty() || text.chars().count() > longest;
    if is_bad(&question, MAX_QUESTION) {
        return Err(format!("`question` has from 1 to {MAX_QUESTION} characters"));
    }
    if choices.len() > MAX_CHOICES || choices.iter().any(|choice| is_bad(choice, MAX_CHOICE)) {
        return Err(format!("`choices` are at most {MAX_CHOICES} texts of 1 to {MAX_CHOICE} characters"));
    }
    let choices = choices.iter().map(|choice| shown(choice).replace('\n', " ")).collect();
    Ok(Some(Question { text: shown(&question), choices, answer: None }))
}

/// Holds a question that policy does not deny, until it is answered.
pub async fn ask(mut call: Call, judged: Judged, question: Question, client: Client) -> Option<hold::Waiting> {
    let gate = &call.session.gate;
    let verdict = judged.judgement.verdict;
    gate.said(&judged.agent.config.group, verdict, &judged.judgement.decided_by);
    if verdict == Verdict::Allow {
        match gate.reserve(&judged.judgement.charges, &[]).await {
            // Asked counts.
            Reserved::Taken(_) | Reserved::Asks(_) => {}
            Reserved::Over(over) => {
                call::refuse_over(call, client, over).await;
                return None;
            }
            Reserved::Broken(error) => {
                hold::unavailable(&mut call, &client, &error).await;
                return None;
            }
        }
    }
    hold::hold_question(call, &judged, question, client).await
}

/// Who may answer and for how long it waits: as the ask says where the policy asks, else anybody of the group.
pub fn terms(judged: &Judged, config: &Config) -> Terms {
    let configured = &config.approvals;
    asked::terms(judged, configured).unwrap_or_else(|| Terms {
        people: vec![RequirementRecord::anybody()],
        group: judged.agent.config.group.clone(),
        owner: judged.agent.config.owner.clone(),
        allow_self: AllowSelf::Always,
        expires_ms: asked::millis(configured.expires),
        hold_for_ms: asked::millis(configured.hold_for),
        hold_grace_ms: asked::millis(configured.hold_grace),
        result_ttl_ms: asked::millis(configured.result_ttl),
        ..Terms::default()
    })
}

impl Gate {
    /// A question as people see it; none for a call that is none.
    pub fn clarification(&self, held: &Held) -> Option<ClarificationRecord> {
        let question = held.question.as_ref()?;
        let (approval, call) = (&held.approval, held.call());
        let answer = question.answer.as_ref();
        Some(ClarificationRecord {
            id: call.id.clone(),
            agent: call.agent.clone(),
            group: call.group.clone(),
            session: call.session.clone(),
            question: question.text.clone(),
            choices: question.choices.clone(),
            state: ClarificationState::of(approval.state),
            asked_at: call.created_at,
            expires_at: approval.expires_at,
            answer: answer.map(|answer| self.redaction().text(&answer.text)),
            answered_by: answer.map(|answer| answer.by.clone()),
            answered_at: answer.map(|answer| answer.at),
            detail: call.detail.clone(),
            client: approval.client.clone(),
        })
    }

    /// Answers a question. An answer in the shape of a secret is taken only with `anyway`: the agent reads it, and whoever
    /// reads the agent.
    ///
    /// # Errors
    /// It looks like a secret; or as the state machine says.
    pub async fn answer(
        &self,
        held: &Held,
        approver: &Approver,
        channel: &str,
        text: &str,
        anyway: bool,
    ) -> Result<Held, NotAnswered> {
        let looks_secret = self.redaction().text(text) != text;
        if looks_secret && !anyway {
            return Err(NotAnswered::LooksSecret);
        }
        let who = &approver.config;
        let mut result = json!({
            "content": [{ "type": "text", "text": format!("The user answered: {text}") }],
            "isError": false,
        });
        if held.intent.era == era_word(super::Era::Modern)
            && let Some(members) = result.as_object_mut()
        {
            members.insert("resultType".to_owned(), json!("complete"));
        }
        let answer =
            Answered { by: who.name.clone(), channel: channel.to_owned(), text: text.to_owned(), at: self.clock.now() };
        let event = Event::Answer { answer, teams: who.teams.clone(), body: result.to_string() };
        let now = match self.apply(&held.call().id, event).await {
            Err(StoreError::Refused(Refused::Repeated, now)) => return Ok(*now),
            applied => applied.map_err(NotAnswered::Store)?,
        };
        self.note(
            "clarification.answered",
            &json!({"call": now.call().id, "agent": now.call().agent, "by": who.name, "channel": channel,
                "answer": self.redaction().text(text), "looks_secret": looks_secret}),
        );
        tracing::info!(call = now.call().id, by = who.name, channel, "a question was answered");
        Ok(now)
    }
}

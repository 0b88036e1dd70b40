//! A question of an agent to its people: held like a call that waits for an approval, ended by an answer. An answer is text
//! for the model and never a decision.

use serde::{Deserialize, Serialize};

use super::transition::Stage;
use super::{Held, Kept, Refused};
use crate::clock::Timestamp;
use crate::record::{ApprovalState, CallState};

/// What the agent asks, as people are shown it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Question {
    /// Its words, redacted, with invisible characters written out.
    pub text: String,
    /// Answers that it offers.
    pub choices: Vec<String>,
    /// The answer, once there is one.
    pub answer: Option<Answered>,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Answered {
    /// Who gave it.
    pub by: String,
    /// By which way: `inbox`, `api`, `cli`.
    pub channel: String,
    /// As the agent is told it.
    pub text: String,
    /// When.
    pub at: Timestamp,
}

impl Held {
    pub(super) fn answer(
        &mut self,
        answer: Answered,
        teams: &[String],
        body: String,
        now: Timestamp,
    ) -> Result<(), Refused> {
        let stage = self.stage();
        let Some(question) = &mut self.question else { return Err(Refused::NotNow) };
        if let Some(given) = &question.answer {
            let same = (&given.by, &given.text) == (&answer.by, &answer.text);
            return Err(if same { Refused::Repeated } else { Refused::Decided });
        }
        if stage != Stage::Waiting {
            return Err(Refused::Ended);
        }
        // Anybody who could approve the asking: also the agent's own person, whom it asks first of all.
        if !self.approval.requirements.iter().any(|needed| needed.counts(&answer.by, teams)) {
            return Err(Refused::NotYours("the policy asks others to answer this agent".to_owned()));
        }
        question.answer = Some(Answered { at: now, ..answer });
        self.kept = Some(Kept { body, is_error: false, at: now });
        self.decide(now);
        self.end(CallState::Completed, ApprovalState::Consumed, None, now);
        self.approval.call.tool_error = Some(false);
        Ok(())
    }
}

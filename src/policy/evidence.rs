//! What a call was judged on, as the audit log keeps it, and the judgement of another policy on the same.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::claimed::Claimed;
use super::examples::nowhere;
use super::judge::{CLAIM, Judgement, Subject, judge};
use super::model::Policy;
use super::recorded::{Doubt, Lean, Recorded};
use crate::facet::path::Space;
use crate::facet::{Facet, FacetKind, FloorWhy, Touched};
use crate::record::Verdict;
use crate::secret::Redaction;

/// A call's facets and what else of it is judged and stands in no other field of its record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    category: Option<String>,
    #[serde(default, skip_serializing_if = "Claimed::is_silent")]
    claimed: Claimed,
    /// What refused it whatever policy says: its tool being new, or a claim that is not sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused_by: Option<String>,
    touched: Touched,
}

/// What a policy says of a recorded call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rejudged {
    /// The strictest that it may say.
    pub strictest: Verdict,
    /// Who says so, as in [`Judgement::decided_by`].
    pub strictest_by: Vec<String>,
    /// The loosest that it may say; the same where the log tells all that the verdict hangs on.
    pub loosest: Verdict,
    /// Who says so.
    pub loosest_by: Vec<String>,
    /// Why the two differ.
    pub doubts: Vec<&'static str>,
}

impl Evidence {
    /// Of a call that was just judged. Secrets are replaced; with `arguments`, places that its unmarked strings may name
    /// are kept.
    pub fn of(
        category: Option<&str>,
        claimed: Claimed,
        touched: &Touched,
        judgement: &Judgement,
        redaction: &Redaction,
        arguments: bool,
    ) -> Self {
        let mut touched = touched.clone();
        let mut walks = judgement.walks.iter().peekable();
        each_facet(&mut touched, &mut 0, &mut |at, facet| {
            if let (FacetKind::Path(path), Some((_, below))) = (&mut facet.kind, walks.next_if(|(of, _)| *of == at)) {
                path.below = Some(Box::new(below.clone()));
            }
        });
        Self {
            category: category.map(str::to_owned),
            claimed,
            refused_by: match judgement.decided_by.as_slice() {
                [by] if judgement.verdict == Verdict::Deny && (*by == new_tool() || by == CLAIM) => Some(by.clone()),
                _ => None,
            },
            touched: touched.recorded(redaction, arguments),
        }
    }

    /// Judges the recorded call. Of the subject, what this has is left out; its arguments are as they stand in the log.
    /// Limits count as not exhausted.
    pub fn judge(&self, policy: &Policy, subject: &Subject<'_>) -> Rejudged {
        let strict = Recorded::leaning(Lean::Strict);
        let (strictest, strictest_by) = self.lean(policy, subject, &strict);
        let mut said = Rejudged {
            loosest: strictest,
            loosest_by: strictest_by.clone(),
            strictest,
            strictest_by,
            doubts: strict.doubts().map(Doubt::sentence).collect(),
        };
        if !said.doubts.is_empty() {
            (said.loosest, said.loosest_by) = self.lean(policy, subject, &strict.turned());
        }
        if said.loosest == said.strictest {
            said.doubts.clear();
        }
        said
    }

    /// Makes it ready to be judged, after it was read.
    #[must_use]
    pub fn ready(mut self) -> Self {
        self.touched.tie();
        self
    }

    fn lean(&self, policy: &Policy, subject: &Subject<'_>, recorded: &Recorded) -> (Verdict, Vec<String>) {
        // What was found in the file system is in the facets.
        static NOWHERE: LazyLock<Space> = LazyLock::new(|| Space::new(&nowhere()));
        let subject = Subject {
            category: self.category.as_deref(),
            claimed: self.claimed,
            recorded: Some(recorded),
            ..subject.clone()
        };
        let said = judge(policy, &subject, &self.touched, &NOWHERE);
        if let Some(by) = self.refused_by.as_ref().filter(|_| said.verdict != Verdict::Deny) {
            return (Verdict::Deny, vec![by.clone()]);
        }
        (said.verdict, said.decided_by)
    }
}

/// As `decided_by` names the floor of a new tool.
fn new_tool() -> String {
    format!("floor:{}", FloorWhy::NewTool.as_str())
}

/// Goes through the facets of a call and of those within it, in the order in which they are judged.
fn each_facet(touched: &mut Touched, at: &mut usize, look: &mut impl FnMut(usize, &mut Facet)) {
    for facet in &mut touched.facets {
        look(*at, facet);
        *at += 1;
    }
    if let Some(inner) = &mut touched.inner {
        each_facet(&mut inner.touched, at, look);
    }
}

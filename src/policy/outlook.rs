//! What the policy says of a tool before anybody calls it: for lists, where arguments are not known.

use super::fields::Certainty;
use super::index::{Names, Near};
use super::model::{Policy, Rule};
use crate::catalog::{Argument, Tool};
use crate::clock::Timestamp;
use crate::record::{Depth, Source, ToolVerdict, Verdict};

/// A tool and who might call it. What is `None` of the caller is not known.
#[derive(Clone, Copy, Debug)]
pub struct Prospect<'a> {
    /// The policy group.
    pub group: &'a str,
    /// The agent's name.
    pub agent: Option<&'a str>,
    /// Interactive or background.
    pub source: Option<Source>,
    /// Root or sub.
    pub depth: Option<Depth>,
    /// When.
    pub at: Timestamp,
    /// The configured upstream.
    pub upstream: &'a str,
    /// The tool's name.
    pub tool: &'a str,
    /// The catalogue's entry, or the guess.
    pub entry: &'a Tool,
    /// Whether an argument that its schema declares could hold a text.
    pub takes_text: bool,
}

impl Prospect<'_> {
    /// Whether its calls have a bare facet and nothing else, whatever their arguments.
    pub(super) fn is_bare(&self) -> bool {
        let names_nothing = |argument: &Argument| matches!(argument, Argument::Text | Argument::Secret);
        self.entry.argv.is_none()
            && self.entry.unwrap.is_none()
            && self.entry.arguments.iter().all(|(_, argument)| names_nothing(argument))
    }
}

/// What can be said for sure. [`ToolVerdict::Deny`] means that every call of it is denied; [`ToolVerdict::Allow`] that
/// every call is allowed that sends no more than the arguments of its schema.
pub fn outlook(policy: &Policy, prospect: &Prospect<'_>) -> ToolVerdict {
    let Some(group) = policy.groups.get(prospect.group) else { return ToolVerdict::Deny };
    let names = Names::of_tool(prospect.upstream, prospect.tool);
    let in_shadow = group.is_in_shadow(Some(prospect.at));
    let judged = |rule: &Rule| {
        let counts = rule.counts(Some(prospect.at), in_shadow).is_some_and(|counts| counts.now);
        counts.then(|| (rule.verdict, rule.certainty(prospect)))
    };
    let own: Vec<_> = group.rules.concerning(&names).near(&Near::Every).filter_map(judged).collect();
    let guardrails: Vec<_> = policy.guardrails.concerning(&names).near(&Near::Every).filter_map(judged).collect();
    // In shadow mode only guardrails are obeyed.
    let otherwise = if in_shadow { Verdict::Allow } else { group.otherwise };
    let all = || own.iter().chain(&guardrails);
    let surely = |wanted: Verdict| all().any(|(verdict, how)| *verdict == wanted && *how == Certainty::Always);
    let maybe = |wanted: Verdict| all().any(|(verdict, how)| *verdict == wanted && *how != Certainty::Never);
    let untouched = own.iter().all(|(_, how)| *how == Certainty::Never);
    if surely(Verdict::Deny) || (untouched && otherwise == Verdict::Deny) {
        return ToolVerdict::Deny;
    }
    if surely(Verdict::Ask) || (!maybe(Verdict::Allow) && otherwise != Verdict::Allow) {
        return ToolVerdict::Ask;
    }
    let allowed = surely(Verdict::Allow) || otherwise == Verdict::Allow;
    // A text may name a guarded path, or look like an option.
    if allowed && prospect.is_bare() && !prospect.takes_text && !maybe(Verdict::Deny) && !maybe(Verdict::Ask) {
        return ToolVerdict::Allow;
    }
    ToolVerdict::Depends
}

impl Policy {
    /// Whether only guardrails are obeyed in a group: what its rules, `otherwise` and floors say is logged.
    pub fn is_in_shadow(&self, group: &str, at: Timestamp) -> bool {
        self.groups.get(group).is_some_and(|group| group.is_in_shadow(Some(at)))
    }
}

impl Rule {
    /// Whether it matches calls of a tool, whatever their arguments.
    fn certainty(&self, prospect: &Prospect<'_>) -> Certainty {
        let fields = self.fields.certainty(prospect, super::fields::Reading::of(self.verdict));
        let exception = super::fields::Reading::of_exception(self.verdict);
        let excepted = self.except.iter().map(|except| except.certainty(prospect, exception));
        // What an allow covers of a path or a command is another question than whether its fields hold.
        let least = if self.verdict == Verdict::Allow && !prospect.is_bare() { Certainty::Maybe } else { fields };
        excepted.fold(fields.min(least), |certainty, exception| match exception {
            Certainty::Never => certainty,
            Certainty::Maybe => certainty.min(Certainty::Maybe),
            Certainty::Always => Certainty::Never,
        })
    }
}

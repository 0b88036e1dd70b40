//! What can stand in a policy file: one table for the reader, which must ask for exactly these fields, and for the JSON
//! Schema that editors complete from.

use super::{VERDICTS, args, fields, limit, terms, trial};
use crate::config::yaml::{Fields as Yaml, Report};
use crate::policy::fields::ToolTerm;
use crate::policy::request;
use crate::record::Verdict;

/// The fields of one kind of mapping.
pub(in crate::policy) struct Table {
    /// What it is, as the schema's definitions are called.
    pub name: &'static str,
    /// Its fields.
    pub parts: &'static [&'static [Field]],
    /// Fields of which one at least is there; empty: any or none.
    pub one_of: &'static [Field],
}

/// One field.
pub(in crate::policy) struct Field {
    pub name: &'static str,
    /// For people, in their editor.
    pub about: &'static str,
    pub shape: Shape,
    pub required: bool,
}

/// What a value looks like. The reader may ask for more: that a pattern is one, that a name is known.
pub(in crate::policy) enum Shape {
    /// A text that is not empty.
    Text,
    /// A text, and some that are known.
    TextSuchAs(fn() -> Vec<&'static str>),
    /// One of a few words.
    Word(fn() -> Vec<&'static str>),
    /// `true` or `false`.
    Truth,
    /// A number.
    Number,
    /// This number.
    Exactly(u32),
    /// A text, a number or a truth value.
    Scalar,
    /// A time span, such as `15m`.
    Span,
    /// A shape, or a list of it that is not empty.
    OneOrMore(&'static Shape),
    /// A list.
    List(&'static Shape),
    /// A mapping whose keys are names.
    Named(&'static Shape),
    /// A mapping.
    Fields(&'static Table),
    /// A name, or a mapping.
    NameOr(&'static Table),
    /// A shell text, or a mapping of these fields.
    TextOr(fn() -> Vec<&'static str>),
}

impl Table {
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.parts.iter().copied().flatten()
    }

    /// Ends the reading of such a mapping.
    pub(super) fn finish(&self, yaml: Yaml<'_>, report: &mut Report) {
        debug_assert!(
            yaml.has_asked_for(self.fields().map(|field| field.name)),
            "the table `{}` in policy/read/shape.rs and the reader differ: {yaml:?}",
            self.name
        );
        yaml.finish(report);
    }
}

pub(super) const fn field(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, about, shape, required: false }
}

const fn required(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, about, shape, required: true }
}

pub(super) fn names<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}

pub(in crate::policy) static FILE: Table = Table {
    name: "file",
    parts: &[&[
        required("version", Shape::Exactly(1), "The version of the language: 1."),
        field(
            "guardrails",
            Shape::List(&Shape::Fields(&GUARDRAIL)),
            "Tried for every group; nothing in a group loosens them.",
        ),
        field("approvals", Shape::Named(&Shape::Fields(&APPROVAL)), "Approvals by name, for use in rules and groups."),
        field(
            "approval",
            Shape::NameOr(&APPROVAL),
            "Of asks that have none of their own, in every group; once over all files.",
        ),
        field("groups", Shape::Named(&Shape::Fields(&GROUP)), "The groups of agents and their rules."),
    ]],
    one_of: &[],
};

pub(super) static GROUP: Table = Table {
    name: "group",
    parts: &[&[
        field("extends", Shape::Text, "A group all of whose rules hold here too."),
        field(
            "otherwise",
            Shape::Word(|| names(&VERDICTS)),
            "The verdict where no rule matches; the parent's if left out, ask without a parent.",
        ),
        field("approval", Shape::NameOr(&APPROVAL), "Of the group's asks that have none of their own."),
        field("rules", Shape::List(&Shape::Fields(&RULE)), "In no order that matters: the strictest match wins."),
        field(
            "mode",
            Shape::Word(|| names(&trial::MODE)),
            "shadow: only guardrails are obeyed, the rest is logged; needs `until`.",
        ),
        field("until", Shape::Text, "The end of shadow mode: a date (until the end of that day, UTC) or a time."),
    ]],
    one_of: &[],
};

pub(super) static RULE: Table = Table {
    name: "rule",
    parts: &[
        &[required("verdict", Shape::Word(|| names(&VERDICTS)), "What the rule says of what it matches.")],
        OWN,
        fields::MATCHING,
    ],
    one_of: fields::MATCHING,
};

pub(super) static GUARDRAIL: Table = Table {
    name: "guardrail",
    parts: &[
        &[required("verdict", Shape::Word(of_guardrails), "What the guardrail says of what it matches.")],
        OWN,
        fields::MATCHING,
    ],
    one_of: fields::MATCHING,
};

/// What a rule has besides its verdict and what it matches.
static OWN: &[Field] = &[
    field("name", Shape::Text, "Unique over all files; without it `file:line` stands for the rule."),
    field("reason", Shape::Text, "Told to the model and to the approver."),
    field(
        "except",
        Shape::OneOrMore(&Shape::Fields(&EXCEPTION)),
        "Matching fields; an exception that holds takes the rule away.",
    ),
    field("approval", Shape::NameOr(&APPROVAL), "Of an ask: a name, or written out."),
    field("limit", Shape::Fields(&LIMIT), "Of an allow: how often, or how much, in what time."),
    field("examples", Shape::Fields(&EXAMPLES), "Checked at load: a policy whose examples fail does not load."),
    field("mode", Shape::Word(|| names(&trial::MODE)), "shadow: judged, counted and logged, not obeyed."),
    field(
        "until",
        Shape::Text,
        "The end of an allow or of shadow mode: a date (until the end of that day, UTC) or a time.",
    ),
];

pub(super) static EXCEPTION: Table = Table { name: "exception", parts: &[fields::MATCHING], one_of: fields::MATCHING };

pub(super) static EXAMPLES: Table = Table {
    name: "examples",
    parts: &[&[
        field("match", EXAMPLE, "For an allow: this rule alone covers every facet. Else: it matches one at least."),
        field("not_match", EXAMPLE, "The negation of `match`."),
    ]],
    one_of: &[],
};

const EXAMPLE: Shape = Shape::OneOrMore(&Shape::TextOr(|| request::FIELDS.to_vec()));

pub(super) static APPROVAL: Table = Table {
    name: "approval",
    parts: &[&[
        field(
            "approvers",
            Shape::OneOrMore(&Shape::Text),
            "Names or teams that may approve; any approver of the group if left out.",
        ),
        field("quorum", Shape::Number, "How many people must approve; 1 if left out."),
        field("escalate", Shape::Fields(&ESCALATION), "Who else is asked if they let it wait."),
        field("expires", Shape::Span, "When an undecided approval ends."),
        field("hold_for", Shape::Span, "How long the client's stream is held before the hand-off."),
        field(
            "run",
            Shape::Word(|| names(&terms::RUN)),
            "attached: an approved call waits for its client. always: it runs at once.",
        ),
        field(
            "allow_self",
            Shape::Word(|| names(&terms::ALLOW_SELF)),
            "Whether owners may decide their own agent's calls.",
        ),
        field("reason_required", Shape::Truth, "Whether a rejection needs a note."),
        field("severity", Shape::Word(|| names(&terms::SEVERITY)), "How urgent it is."),
        field("grants", Shape::Word(|| names(&terms::GRANTS)), "The widest \"approve and remember\" that is offered."),
    ]],
    one_of: &[],
};

pub(super) static ESCALATION: Table = Table {
    name: "escalation",
    parts: &[&[
        required("after", Shape::Span, "After how long of waiting."),
        required("to", Shape::OneOrMore(&Shape::Text), "Names or teams that may then approve, too."),
    ]],
    one_of: &[],
};

pub(super) static LIMIT: Table = Table {
    name: "limit",
    parts: &[
        &[required("per", Shape::Word(|| names(&limit::PERIOD)), "The time in which it holds, in UTC.")],
        COUNTED,
        &[
            field("max", Shape::Number, "The most that the sum may come to."),
            field(
                "by",
                Shape::OneOrMore(&Shape::TextSuchAs(|| vec!["agent"])),
                "Calls that agree in all of these share a counter: `agent`, or arguments by JSON pointer.",
            ),
            field(
                "then",
                Shape::Word(|| names(&limit::THEN)),
                "reject (if left out): the call over it is rejected. ask: it is held.",
            ),
        ],
    ],
    one_of: COUNTED,
};

/// What a limit counts.
static COUNTED: &[Field] = &[
    field("calls", Shape::Number, "The most calls that run."),
    field("sum", Shape::Text, "The argument whose values are added up, by JSON pointer or top-level name; with `max`."),
];

pub(super) static MATCHERS: Table =
    Table { name: "matchers", parts: &[args::MATCHERS, args::DEFAULT], one_of: args::MATCHERS };

/// The classes of tools.
pub(super) fn classes() -> Vec<&'static str> {
    names(&ToolTerm::CLASSES)
}

/// A guardrail tightens.
fn of_guardrails() -> Vec<&'static str> {
    VERDICTS.iter().filter(|(_, verdict)| *verdict != Verdict::Allow).map(|(word, _)| *word).collect()
}

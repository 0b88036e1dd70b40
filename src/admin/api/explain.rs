//! The question and the answer of `POST policy/explain`, which the policy's own room reads and writes: described by hand,
//! field by field.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::record::{FacetRecord, FloorRecord};

/// A call that nobody makes, as `explain` takes it. Its reader is strict; here it is only described.
pub struct Question;

impl JsonSchema for Question {
    fn schema_name() -> Cow<'static, str> {
        "Question".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let said = |about: &str| json!({"type": ["string", "null"], "description": about});
        json_schema!({
            "description": "A call that nobody makes. What is left out is taken to hold, or stands in the agent's settings.",
            "type": "object",
            "properties": {
                "agent": said("Who calls."),
                "group": said("Its policy group, if not its own."),
                "source": said("`interactive` or `background`."),
                "depth": said("`root` or `sub`."),
                "session": said("The session."),
                "upstream": said("The tool executor, where there is more than one."),
                "tool": said("The tool's name."),
                "arguments": {"type": "object", "description": "The call's arguments, or `params` of another method."},
                "method": said("Another MCP method than `tools/call`."),
                "raw": said("A whole JSON-RPC text, in the place of `tool`, `arguments` and `method`."),
            },
            "additionalProperties": false,
        })
    }
}

/// What the policy says of a question.
#[derive(Serialize)]
#[serde(transparent)]
pub struct Answer(pub Value);

impl JsonSchema for Answer {
    fn schema_name() -> Cow<'static, str> {
        "Answer".into()
    }

    fn json_schema(shapes: &mut SchemaGenerator) -> Schema {
        let texts = |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
        let text = |about: &str| json!({"type": ["string", "null"], "description": about});
        json_schema!({
            "description": "What the policy says of a call that nobody makes.",
            "type": "object",
            "properties": {
                "verdict": {
                    "enum": ["allow", "ask", "deny", "malformed"],
                    "description": "`malformed`: no upstream would see it, and `error` says why.",
                },
                "error": {"type": "string", "description": "Why it is malformed."},
                "agent": text("Who would call."),
                "group": {"type": "string", "description": "Its policy group."},
                "upstream": text("The tool executor."),
                "tool": text("The tool."),
                "tool_state": {
                    "enum": ["accepted", "new", "changed", "unknown", null],
                    "description": "How far an operator has accepted the tool as it was last offered; `unknown`: it never was.",
                },
                "facets": {
                    "type": "array",
                    "items": shapes.subschema_for::<FacetRecord>(),
                    "description": "What it would touch, each with its own `decided_by`.",
                },
                "decided_by": texts("Rules, `otherwise:GROUP`, `builtin:NAME`, `floor:WHY`."),
                "floors": {
                    "type": "array",
                    "items": shapes.subschema_for::<FloorRecord>(),
                    "description": "Asks that no allow lifts.",
                },
                "reasons": texts("The reasons of the deciding rules, for people."),
                "needed_for_allow": texts("What would have to be otherwise for the call to be allowed."),
                "limits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "rule": {"type": "string", "description": "The rule with the limit."},
                            "limit": {"type": "string", "description": "The limit in words."},
                            "amount": text(
                                "What it takes, a decimal number; null where that cannot be told, which is over the limit.",
                            ),
                            "max": {"type": "string", "description": "A decimal number."},
                            "then": {"enum": ["reject", "ask"], "description": "What becomes of a call that is over it."},
                        },
                        "required": ["rule", "limit", "amount", "max", "then"],
                    },
                    "description": "What the call would take of the limits of allows; they are not looked up.",
                },
                "shadow_verdict": {
                    "enum": ["allow", "ask", "deny", null],
                    "description": "The verdict had nothing been in shadow mode; null where nothing in shadow mode concerns it.",
                },
                "shadow_decided_by": texts("What would have decided then."),
            },
            "required": ["verdict", "facets", "decided_by", "floors", "reasons", "needed_for_allow"],
        })
    }
}

//! Signed claims on their way: they are for the gateway, and no executor sees them.

use crate::identity::CLAIM_KEY;
use crate::message::{Message, Span};

/// Cuts the claim out of a client's message, with the comma that goes with it.
pub fn cut(message: &Message) -> Option<(Span, String)> {
    let meta = message.params_tree()?.get("_meta")?.members();
    let at = meta.iter().position(|member| &*member.key == CLAIM_KEY)?;
    let claim = meta.get(at)?;
    let (mut start, mut end) = (claim.key_span.start, claim.value.span.end);
    if let Some(next) = meta.get(at + 1) {
        end = next.key_span.start;
    } else if let Some(before) = at.checked_sub(1).and_then(|before| meta.get(before)) {
        start = before.value.span.end;
    }
    Some((Span { start, end }, String::new()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::message::Limits;

    #[test]
    fn the_claim_goes_and_nothing_else_does() {
        for (before, after) in [
            (r#"{ "dev.portcullis/claim" : "x" }"#, "{  }"),
            (r#"{"dev.portcullis/claim":"x", "a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1 , "dev.portcullis/claim":{"y":[]}}"#, r#"{"a":1}"#),
            (r#"{"a":1,"dev.portcullis\/claim":"x","b":2}"#, r#"{"a":1,"b":2}"#),
            (r#"{"dev.portcullis/claims":"x"}"#, r#"{"dev.portcullis/claims":"x"}"#),
        ] {
            let text = |meta| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{meta},"x":0}}}}"#);
            let message = Message::strict(text(before).into(), Limits::default()).unwrap();
            let edits: Vec<_> = cut(&message).into_iter().collect();
            assert_eq!(message.spliced(&edits), text(after), "{before}");
        }
    }
}

//! What clients tell the gateway in `_meta` (`dev.portcullis/…`, claims among it): it is for the gateway, and no executor
//! sees it.

use crate::message::json::Member;
use crate::message::{Message, Span};

/// Whether a key of `_meta` is the gateway's.
pub fn is_own(key: &str) -> bool {
    key.starts_with("dev.portcullis/")
}

/// Cuts what is the gateway's out of a client's message, with the commas that go with it.
pub fn cut(message: &Message) -> Vec<(Span, String)> {
    let meta = message.params_tree().and_then(|params| params.get("_meta"));
    let meta = meta.map(|meta| meta.members()).unwrap_or_default();
    let kept = meta.iter().rposition(|member| !is_own(&member.key)).map_or(0, |last| last + 1);
    let (before, tail) = meta.split_at(kept);
    // Each that others follow, up to the next one; those at the end from the last that stays.
    let mut cuts: Vec<Span> = (before.iter().zip(before.iter().skip(1)))
        .filter(|(member, _)| is_own(&member.key))
        .map(|(member, next)| Span { start: member.key_span.start, end: next.key_span.start })
        .collect();
    if let (Some(first), Some(last)) = (tail.first(), tail.last()) {
        let end_of = |member: &Member| member.value.span.end;
        cuts.push(Span { start: before.last().map_or(first.key_span.start, end_of), end: end_of(last) });
    }
    cuts.into_iter().map(|span| (span, String::new())).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::message::Limits;

    #[test]
    fn what_is_the_gateways_goes_and_nothing_else_does() {
        for (before, after) in [
            (r#"{ "dev.portcullis/claim" : "x" }"#, "{  }"),
            (r#"{"dev.portcullis/claim":"x", "a":1}"#, r#"{"a":1}"#),
            (r#"{"a":1 , "dev.portcullis/claim":{"y":[]}}"#, r#"{"a":1}"#),
            (r#"{"a":1,"dev.portcullis\/claim":"x","b":2}"#, r#"{"a":1,"b":2}"#),
            (r#"{"dev.portcullis/source":"x", "dev.portcullis/depth":{} , "dev.portcullis/x":1 }"#, "{ }"),
            (r#"{"dev.portcullis/source":"x","a":1,"dev.portcullis/depth":"sub","b":2}"#, r#"{"a":1,"b":2}"#),
            (r#"{"a":1,"dev.portcullis/source":"x","dev.portcullis/depth":"sub"}"#, r#"{"a":1}"#),
            (
                r#"{"dev.portcullisx":"x","x/dev.portcullis/claim":1}"#,
                r#"{"dev.portcullisx":"x","x/dev.portcullis/claim":1}"#,
            ),
        ] {
            let text = |meta| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"_meta":{meta},"x":0}}}}"#);
            let message = Message::strict(text(before).into(), Limits::default()).unwrap();
            assert_eq!(message.spliced(&cut(&message)), text(after), "{before}");
        }
    }
}

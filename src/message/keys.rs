//! Keys that one parser takes for another: equal but for case or for Unicode form.
//!
//! Go's `encoding/json` matches members without regard to case (and folds `ſ` to `s`); file systems and databases fold
//! Unicode forms. A message in which that could matter is refused.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;

use super::json::{Kind, Member, Value};

/// What the gateway reads at the top level.
pub(super) const ENVELOPE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];

/// What the gateway reads in `params`.
pub(super) const PARAMS: &[&str] = &[
    "name",
    "arguments",
    "uri",
    "_meta",
    "task",
    "taskId",
    "requestId",
    "requestState",
    "inputResponses",
    "cursor",
    "progressToken",
    "protocolVersion",
    "clientInfo",
    "capabilities",
];

/// What the gateway reads in `params._meta`.
pub(super) const META: &[&str] = &[
    "dev.portcullis/source",
    "dev.portcullis/depth",
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/subscriptionId",
];

/// The first member of this object that another parser could take for one of `known` or for a member beside it.
pub(super) fn confusable<'a>(object: &'a Value, known: &[&str]) -> Option<&'a Member> {
    confusable_in(object.members(), |member| &member.key, known)
}

/// As [`confusable`], in any list of members.
pub(super) fn confusable_in<'a, T>(
    members: &'a [T],
    key: impl for<'k> Fn(&'k T) -> &'k str,
    known: &[&str],
) -> Option<&'a T> {
    let stranger = members.iter().find(|member| {
        let folded = fold(key(member));
        known.iter().any(|name| *name != key(member) && fold(name) == folded)
    });
    stranger.or_else(|| clash(members, key))
}

/// The member that another parser could take for the one called `key`, although it is called otherwise.
pub fn variant<'a>(object: &'a Value, key: &str) -> Option<&'a Member> {
    object.members().iter().find(|m| &*m.key != key && fold(&m.key) == fold(key))
}

/// As [`confusable`], for members beside each other, in this value and everywhere below it.
pub(super) fn confusable_below(value: &Value) -> Option<&Member> {
    match &value.kind {
        Kind::Array(elements) => elements.iter().find_map(confusable_below),
        Kind::Object(members) => {
            clash(members, |member| &member.key).or_else(|| members.iter().find_map(|m| confusable_below(&m.value)))
        }
        _ => None,
    }
}

/// The later of two members whose keys fold to the same.
fn clash<T>(members: &[T], key: impl for<'k> Fn(&'k T) -> &'k str) -> Option<&T> {
    if members.len() < 2 {
        return None;
    }
    let mut folded: Vec<(Cow<'_, str>, &T)> = members.iter().map(|member| (fold(key(member)), member)).collect();
    folded.sort_by(|a, b| a.0.cmp(&b.0));
    folded.iter().zip(folded.iter().skip(1)).find(|(a, b)| a.0 == b.0).map(|(_, later)| later.1)
}

/// One spelling for all keys that are equal but for case or Unicode form.
pub fn fold(key: &str) -> Cow<'_, str> {
    if !key.is_ascii() {
        return Cow::Owned(key.nfkc().collect::<String>().to_uppercase().to_lowercase().nfkc().collect());
    }
    match key.bytes().any(|b| b.is_ascii_uppercase()) {
        true => Cow::Owned(key.to_ascii_lowercase()),
        false => Cow::Borrowed(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_what_some_parser_folds() {
        for (a, b) in [
            ("Path", "path"),
            ("paramſ", "params"),
            ("\u{212a}ey", "key"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("ＰＡＴＨ", "path"),
            ("STRASSE", "straße"),
            ("ΣΑΣ", "σας"),
        ] {
            assert_eq!(fold(a), fold(b), "{a} {b}");
        }
        assert_ne!(fold("path"), fold("pa\u{442}h"));
        assert_ne!(fold("file_path"), fold("filePath"));
    }
}

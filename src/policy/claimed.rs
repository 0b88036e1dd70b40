//! What a client says of itself with a call. It can only tighten: a deny or ask holds on it too, an allow never does.

use serde::{Deserialize, Serialize};

use crate::message::Value;
use crate::record::{Depth, Source};

/// The key in `_meta` that says whether a person is present: `interactive` or `background`.
pub const SOURCE_KEY: &str = "dev.portcullis/source";
/// The key in `_meta` that says who started the agent: `root` (a person) or `sub` (another agent).
pub const DEPTH_KEY: &str = "dev.portcullis/depth";

/// Its words on `source` and `depth`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Claimed {
    /// Under [`SOURCE_KEY`].
    pub source: Claim<Source>,
    /// Under [`DEPTH_KEY`].
    pub depth: Claim<Depth>,
}

/// One such word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Claim<T> {
    /// Nothing was said.
    #[default]
    Absent,
    /// This was said.
    Said(T),
    /// Something was said that is none of the words: it may mean any of them.
    Unreadable,
}

impl Claimed {
    /// Whether it says nothing of either.
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the `_meta` of a request's parameters.
    pub fn of(params: Option<&Value>) -> Self {
        let meta = params.and_then(|params| params.get("_meta"));
        let said = |key| meta.and_then(|meta| meta.get(key));
        Self {
            source: claim(
                said(SOURCE_KEY),
                &[("interactive", Source::Interactive), ("background", Source::Background)],
            ),
            depth: claim(said(DEPTH_KEY), &[("root", Depth::Root), ("sub", Depth::Sub)]),
        }
    }
}

fn claim<T: Copy>(said: Option<&Value>, words: &[(&str, T)]) -> Claim<T> {
    let Some(said) = said else { return Claim::Absent };
    let known = words.iter().find(|(word, _)| said.as_str() == Some(word));
    known.map_or(Claim::Unreadable, |(_, value)| Claim::Said(*value))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::message::{Json, Limits};

    #[test]
    fn only_the_documented_keys_and_words_are_read() {
        let claimed = |meta: &str| {
            let params = Json::parse(format!(r#"{{"_meta":{meta}}}"#).into(), Limits::default()).unwrap();
            Claimed::of(Some(params.root()))
        };
        let both = claimed(r#"{"dev.portcullis/source":"background","dev.portcullis/depth":"sub","depth":"root"}"#);
        assert_eq!(both, Claimed { source: Claim::Said(Source::Background), depth: Claim::Said(Depth::Sub) });
        assert_eq!(claimed(r#"{"depth":"sub","progressToken":1}"#), Claimed::default());
        for odd in [r#""Sub""#, "5", "null", "[]"] {
            assert_eq!(claimed(&format!(r#"{{"dev.portcullis/depth":{odd}}}"#)).depth, Claim::Unreadable, "{odd}");
        }
        assert_eq!(Claimed::of(None), Claimed::default());
        assert_eq!(claimed("5"), Claimed::default());
    }
}

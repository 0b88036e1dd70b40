//! What a call touches as the audit log keeps it: all that a judgement looks at, secrets replaced.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CommandFacet, Facet, FacetKind, Touched};
use crate::facet::Argument;
use crate::pattern::Location;
use crate::secret::{Kept, REDACTED, Redaction};

/// How many bytes of places that strings may name are kept of one call: an agent decides how many there are.
const MAX_STRAYS: usize = 16 * 1024;

impl Touched {
    /// A copy for the log. With `strays`, the places that its unmarked strings may name are in it, as far as there is
    /// room for them; else one that is not told stands for them all.
    #[must_use]
    pub fn recorded(&self, redaction: &Redaction, strays: bool) -> Self {
        let mut copy = self.clone();
        copy.redact(redaction, strays);
        copy
    }

    fn redact(&mut self, redaction: &Redaction, strays: bool) {
        for facet in &mut self.facets {
            match &mut facet.kind {
                FacetKind::Path(path) => {
                    std::iter::once(&mut path.lexical).chain(&mut path.physical).for_each(|at| place(at, redaction));
                    path.below.iter_mut().flat_map(|below| &mut below.met).for_each(|at| place(at, redaction));
                }
                FacetKind::Command(command) => self::redact(Arc::make_mut(command), redaction),
                FacetKind::Url(url) => url.host.iter_mut().for_each(|host| *host = redaction.text(host)),
                FacetKind::Address(address) => address.host.iter_mut().for_each(|host| *host = redaction.text(host)),
                FacetKind::Sql(sql) => {
                    sql.tables = std::mem::take(&mut sql.tables).iter().map(|table| redaction.text(table)).collect();
                }
                FacetKind::Method(_) | FacetKind::Bare => {}
            }
        }
        let of = |at: &Location| at.components.iter().map(|name| name.len() + 1).sum::<usize>();
        let size: usize = self.strays.iter().flat_map(|stray| &stray.locations).map(of).sum();
        if !strays || size > MAX_STRAYS {
            self.strays.truncate(1);
            self.strays.iter_mut().for_each(|stray| stray.locations = vec![Location::of_text(REDACTED, None)]);
        }
        self.strays.iter_mut().flat_map(|stray| &mut stray.locations).for_each(|at| place(at, redaction));
        if let Some(inner) = &mut self.inner {
            inner.touched.redact(redaction, strays);
        }
    }

    /// Ties what was read from the log to the commands that name it: the last one before it.
    pub fn tie(&mut self) {
        let mut last: Option<Arc<CommandFacet>> = None;
        for Facet { kind, .. } in &mut self.facets {
            let of_command = match kind {
                FacetKind::Command(command) => {
                    last = Some(Arc::clone(command));
                    continue;
                }
                FacetKind::Path(path) => &mut path.command,
                FacetKind::Url(url) => &mut url.command,
                _ => continue,
            };
            if let (Some(command), Some(last)) = (of_command, &last) {
                *command = Arc::clone(last);
            }
        }
        if let Some(inner) = &mut self.inner {
            inner.touched.tie();
        }
    }
}

/// Replaces secrets in a place: within its components where they lie there, else all of it.
fn place(at: &mut Location, redaction: &Redaction) {
    let text = at.to_string();
    if redaction.text(&text) == text {
        return;
    }
    let components = at.components.iter().map(|name| redaction.text(name).into()).collect();
    *at = Location::new(components, at.root);
    let text = at.to_string();
    if redaction.text(&text) != text {
        *at = Location::of_text(REDACTED, at.root);
    }
}

fn redact(command: &mut CommandFacet, redaction: &Redaction) {
    for line in [&mut command.words, &mut command.rest] {
        let mut texts: Vec<String> = line.iter_mut().map(|word| std::mem::take(&mut word.text)).collect();
        redaction.words(&mut texts, &Kept::default());
        line.iter_mut().zip(texts).for_each(|(word, text)| word.text = text);
    }
    let named = command.options.iter_mut().chain(command.powers.iter_mut().flatten()).chain(&mut command.unread);
    named.for_each(|text| *text = redaction.text(text));
    command.cwd.iter_mut().for_each(|at| place(at, redaction));
}

/// A word of a command in the log.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Word {
    Known(String),
    /// Only a running shell knows it.
    Dynamic {
        dynamic: String,
    },
}

impl From<Word> for Argument {
    fn from(word: Word) -> Self {
        match word {
            Word::Known(text) => Self { text, known: true },
            Word::Dynamic { dynamic } => Self { text: dynamic, known: false },
        }
    }
}

impl From<Argument> for Word {
    fn from(word: Argument) -> Self {
        if word.known { Self::Known(word.text) } else { Self::Dynamic { dynamic: word.text } }
    }
}

/// A command, shared by what it names.
pub(super) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::facet::CommandFacet;

    pub fn serialize<S: Serializer>(command: &CommandFacet, to: S) -> Result<S::Ok, S::Error> {
        command.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<CommandFacet>, D::Error> {
        CommandFacet::deserialize(from).map(Arc::new)
    }
}

/// The command of a facet: that there is one. [`Touched::tie`] finds it again.
pub(super) mod command {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::facet::CommandFacet;

    pub fn serialize<S: Serializer>(command: &Option<Arc<CommandFacet>>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bool(command.is_some())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<CommandFacet>>, D::Error> {
        Ok(bool::deserialize(from)?.then(Arc::default))
    }
}

/// Arguments that are not those of the call: that there are some, and that nobody can tell which.
pub(super) mod arguments {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::message::Value;
    use crate::message::json::{Kind, Span};
    use crate::secret::REDACTED;

    pub fn serialize<S: Serializer>(arguments: &Option<Arc<Value>>, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bool(arguments.is_some())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Arc<Value>>, D::Error> {
        let untold = || Arc::new(Value { span: Span::default(), kind: Kind::String(REDACTED.into()) });
        Ok(bool::deserialize(from)?.then(untold))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;
    use crate::config::{Transport, UpstreamConfig};
    use crate::facet::path::Space;
    use crate::facet::{FloorWhy, extract_shell};

    fn touched(command: &str) -> Touched {
        let mut config = UpstreamConfig::new("work", Transport::Workspace, "/work".into());
        config.filesystem = crate::config::FileSystem::None;
        extract_shell(&Space::new(&config), command).unwrap()
    }

    fn again(touched: &Touched) -> (String, Touched) {
        let text = serde_json::to_string(&touched.recorded(&Redaction::default(), true)).unwrap();
        let mut read: Touched = serde_json::from_str(&text).unwrap();
        read.tie();
        (text, read)
    }

    #[test]
    fn what_a_judgement_looks_at_is_read_as_it_was_written() {
        let before = touched("git -C sub log --oneline docs/a.md | sh -c 'cat $X' > out/b; cat <(ls)");
        let (text, after) = again(&before);
        assert_eq!(serde_json::to_string(&after).unwrap(), text);
        assert_eq!(after.facets.len(), before.facets.len());
        let mut tied = 0;
        for (before, after) in before.facets.iter().zip(&after.facets) {
            let why = |facet: &Facet| facet.floors.iter().map(|floor| floor.why).collect::<Vec<FloorWhy>>();
            assert_eq!(why(before), why(after));
            match (&before.kind, &after.kind) {
                (FacetKind::Path(before), FacetKind::Path(after)) => {
                    assert_eq!((&before.lexical, &before.physical), (&after.lexical, &after.physical));
                    let words = |command: &Option<Arc<CommandFacet>>| command.as_ref().map(|c| c.words.clone());
                    assert_eq!(words(&before.command), words(&after.command));
                    tied += usize::from(after.command.is_some());
                }
                (FacetKind::Command(before), FacetKind::Command(after)) => {
                    assert_eq!((&before.words, &before.rest), (&after.words, &after.rest));
                    assert_eq!((&before.options, &before.powers), (&after.options, &after.powers));
                    assert_eq!((before.tabled, &before.unread), (after.tabled, &after.unread));
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(tied > 1, "{text}");
    }

    #[test]
    fn no_secret_is_kept() {
        let token = format!("ghp_{}", "a1".repeat(18));
        let command = format!(
            "curl -H 'Authorization: Bearer {token}' https://{token}.example/; deploy --token={token} bearer {token}; \
             cat keys/{token}/a; cat keys/$(x {token})"
        );
        let (text, after) = again(&touched(&command));
        assert!(!text.contains(&token) && text.contains(REDACTED), "{text}");
        assert!(after.facets.len() > 3, "{text}");
    }

    #[test]
    fn strays_are_kept_as_far_as_there_is_room() {
        let mut call = touched("echo a");
        call.strays = touched("cat $X/secrets/key").strays;
        assert!(again(&call).0.contains("/secrets/key"), "{}", again(&call).0);
        let without = serde_json::to_string(&call.recorded(&Redaction::default(), false)).unwrap();
        assert!(!without.contains("secrets") && without.contains(REDACTED), "{without}");
        call.strays[0].locations = vec![call.strays[0].locations[0].clone(); 2_000];
        assert!(again(&call).0.len() < 1_000);
    }

    #[test]
    fn floors_are_kept_by_their_words() {
        for why in [FloorWhy::Shell, FloorWhy::NewTool, FloorWhy::RecursiveGuarded, FloorWhy::OddUrl] {
            assert_eq!(serde_json::to_value(why).unwrap(), why.as_str());
        }
    }
}

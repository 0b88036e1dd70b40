//! A path as patterns see it: components, folded once.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use super::fold::fold_cow;

/// An absolute path as components, and how many of them are the upstream's root.
///
/// Made by [`Location::new`] only and never changed, so that the folded form which the strict side compares is always
/// that of these components. As text it is the root's length and the path: `2:/srv/work/docs`, `:/etc` outside the root.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Location {
    parts: Parts,
    /// None where folding changes nothing.
    folded: Option<Box<Parts>>,
}

/// What a [`Location`] is made of; read through it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Parts {
    /// All components from `/`.
    pub components: Vec<Box<str>>,
    /// How many leading components are the root's, where the path lies in it.
    pub root: Option<usize>,
}

impl Location {
    /// A location of components without `.` and `..`, of which `root` lead to the upstream's root.
    pub fn new(components: Vec<Box<str>>, root: Option<usize>) -> Self {
        let parts = Parts { components, root };
        let folded = parts.folded().map(Box::new);
        Self { parts, folded }
    }

    /// A location of a path's text, `root` of whose components at most lead to the upstream's root.
    pub fn of_text(path: &str, root: Option<usize>) -> Self {
        let components: Vec<Box<str>> = path.split('/').filter(|c| !c.is_empty()).map(Box::from).collect();
        let root = root.map(|root| root.min(components.len()));
        Self::new(components, root)
    }

    /// The components with case, Unicode form, blanks and invisible characters folded; those of which nothing is left
    /// are gone.
    pub fn folded(&self) -> &Parts {
        self.folded.as_deref().unwrap_or(&self.parts)
    }
}

impl Parts {
    /// The components below the root, where the path lies in it.
    pub fn below_root(&self) -> Option<&[Box<str>]> {
        self.root.and_then(|root| self.components.get(root..))
    }

    fn folded(&self) -> Option<Self> {
        let folded: Vec<Cow<'_, str>> = self.components.iter().map(|c| fold_cow(c)).collect();
        if folded.iter().all(|c| matches!(c, Cow::Borrowed(_))) {
            return None;
        }
        let left = |c: &&Cow<'_, str>| !c.is_empty();
        let root = self.root.map(|root| folded.iter().take(root).filter(left).count());
        Some(Self { components: folded.iter().filter(left).map(|c| Box::from(&**c)).collect(), root })
    }
}

impl Deref for Location {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.components.is_empty() {
            return f.write_str("/");
        }
        self.components.iter().try_for_each(|c| write!(f, "/{c}"))
    }
}

impl From<Location> for String {
    fn from(at: Location) -> Self {
        let root = at.root.map(|root| root.to_string()).unwrap_or_default();
        format!("{root}:{at}")
    }
}

impl TryFrom<String> for Location {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let read = text.split_once(':').and_then(|(root, path)| {
            let root = if root.is_empty() { None } else { Some(root.parse().ok()?) };
            path.starts_with('/').then(|| Self::of_text(path, root))
        });
        read.ok_or_else(|| format!("`{text}` is no place"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn location(path: &str, root: Option<usize>) -> Location {
        Location::new(path.split('/').filter(|c| !c.is_empty()).map(Box::from).collect(), root)
    }

    #[test]
    fn it_prints_as_a_path() {
        assert_eq!(location("", None).to_string(), "/");
        assert_eq!(location("/srv/a b", None).to_string(), "/srv/a b");
    }

    #[test]
    fn it_is_written_and_read_again() {
        for at in [location("", None), location("/srv/a:b/Docs", Some(1)), location("/etc", None)] {
            let text = serde_json::to_string(&at).unwrap();
            assert_eq!(serde_json::from_str::<Location>(&text).unwrap(), at, "{text}");
        }
        for text in ["\"/etc\"", "\"x:/etc\"", "\"1:etc\"", "5"] {
            assert!(serde_json::from_str::<Location>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_root_is_kept_through_folding() {
        let at = location("/\u{200b}/Work/\u{feff}/Docs", Some(3));
        assert_eq!(at.folded().components, ["work".into(), "docs".into()] as [Box<str>; 2]);
        assert_eq!(at.folded().below_root().unwrap(), ["docs".into()] as [Box<str>; 1]);
        assert!(location("/work/docs", Some(1)).folded.is_none(), "nothing to fold, nothing kept");
    }
}

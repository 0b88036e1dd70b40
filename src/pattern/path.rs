//! Entries of `path`: folders, files and globs, compared component by component.

use std::path::{Component, Path};

use super::glob::Glob;
use super::{Location, Parts, PatternError, Side};

/// A `path` entry of the policy language.
///
/// | entry | names |
/// |---|---|
/// | `docs/`, `docs/**` | the folder below the upstream's root, and all below it |
/// | `docs/a.md` | that file; from [`Side::Wide`] also a folder of that name and all below it |
/// | `./` | the root and all below it |
/// | `**/x/`, `**/x` | a folder, a file at any depth: inside the root only components below it count, outside it all |
/// | `./**/x` | the same inside the root only |
/// | `/srv/data/` | an absolute path; `/` is everything |
///
/// `*`, `?`, `[…]` and `{a,b}` stay within a component; `**` spans any number of them.
#[derive(Clone, Debug)]
pub struct PathPattern {
    text: Box<str>,
    anchor: Anchor,
    /// Whether a folder is meant, and so all below it.
    folder: bool,
    segments: Vec<Segment>,
    /// An absolute entry with the links of its fixed part resolved, where that differs.
    physical: Option<Vec<Segment>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Anchor {
    /// The upstream's root.
    Root,
    /// The root where the path lies in it, else `/`.
    AnyDepth,
    /// `/`.
    Absolute,
}

#[derive(Clone, Debug)]
enum Segment {
    /// `**`: any number of components.
    Deep,
    /// One component.
    One(Glob),
}

impl PathPattern {
    /// Reads one entry.
    ///
    /// # Errors
    /// `~` at the start, `$`, an empty entry, `..` out of the root, a bad glob, invisible characters.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        refuse_expansion(text)?;
        let mut segments: Vec<Segment> = Vec::new();
        let absolute = text.starts_with('/');
        let mut folder = false;
        for component in text.split('/') {
            folder = matches!(component, "" | "." | ".." | "**");
            match component {
                "" | "." => {}
                ".." => match segments.pop() {
                    Some(Segment::One(glob)) if glob.literal().is_some() => {}
                    None if absolute => {}
                    None => {
                        return Err(
                            PatternError::new("leaves the root").help("write an absolute path: it starts with `/`")
                        );
                    }
                    Some(_) => {
                        return Err(PatternError::new("`..` after a wildcard leads to more than one place")
                            .help("write the path without `..`"));
                    }
                },
                "**" => {
                    if !matches!(segments.last(), Some(Segment::Deep)) {
                        segments.push(Segment::Deep);
                    }
                }
                _ if component.contains("**") => {
                    return Err(PatternError::new("`**` stands alone between slashes")
                        .help("write `*` within a name, `**/` for any depth"));
                }
                _ => segments.push(Segment::One(Glob::parse(component)?)),
            }
        }
        let anchored = text.split('/').next() != Some("**");
        // `x/**` is `x/`: the folder and all below.
        if matches!(segments.last(), Some(Segment::Deep)) {
            segments.pop();
        }
        let anchor = match (absolute, anchored) {
            (true, _) => Anchor::Absolute,
            (false, true) => Anchor::Root,
            (false, false) if segments.is_empty() => {
                return Err(PatternError::new("does not say where")
                    .help("write `./` for the root and all below it, `/` for everything"));
            }
            (false, false) => Anchor::AnyDepth,
        };
        Ok(Self { text: text.into(), anchor, folder, segments, physical: None })
    }

    /// The entry for one absolute path, whatever characters its names have, and for all below it.
    pub fn exactly(path: &Path) -> Self {
        let segments = path
            .components()
            .filter_map(|c| match c {
                Component::Normal(name) => Some(Segment::One(Glob::exactly(&name.to_string_lossy()))),
                _ => None,
            })
            .collect();
        let text = path.to_string_lossy().into();
        Self { text, anchor: Anchor::Absolute, folder: true, segments, physical: None }
    }

    /// Resolves the links in the fixed part of an absolute entry, as the file system has them now. From
    /// [`Side::Wide`] both spellings count, from [`Side::Exact`] the resolved one, which is what an allow is compared
    /// with. Looks at the file system; other entries are returned as they are.
    #[must_use]
    pub fn with_physical(mut self) -> Self {
        if self.anchor == Anchor::Absolute {
            let fixed: Vec<&str> = self
                .segments
                .iter()
                .map_while(|segment| match segment {
                    Segment::One(glob) => glob.literal(),
                    Segment::Deep => None,
                })
                .collect();
            self.physical = resolve(&fixed).map(|resolved| {
                let rest = self.segments.iter().skip(fixed.len()).cloned();
                resolved.into_iter().map(Segment::One).chain(rest).collect()
            });
        }
        self
    }

    /// The entry as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the path is, or lies below, what the entry names.
    pub fn matches(&self, at: &Location, side: Side) -> bool {
        self.matches_by(at, side, Glob::fits, Glob::fits_folded)
    }

    /// The same of a path in whose components `hidden` stands for another text; none where that text decides.
    pub fn matches_around(&self, hidden: &str, at: &Location, side: Side) -> Option<bool> {
        let surely = |fits: fn(&Glob, &str) -> bool| {
            move |glob: &Glob, text: &str| if text.contains(hidden) { glob.is_star() } else { fits(glob, text) }
        };
        let maybe = |fits: fn(&Glob, &str) -> bool| {
            move |glob: &Glob, text: &str| {
                if text.contains(hidden) { glob.may_fit(text, hidden) } else { fits(glob, text) }
            }
        };
        let least = self.matches_by(at, side, surely(Glob::fits), surely(Glob::fits_folded));
        let most = self.matches_by(at, side, maybe(Glob::fits), maybe(Glob::fits_folded));
        (least == most).then_some(least)
    }

    fn matches_by(
        &self,
        at: &Location,
        side: Side,
        exact: impl Fn(&Glob, &str) -> bool,
        folded: impl Fn(&Glob, &str) -> bool,
    ) -> bool {
        match side {
            Side::Exact => {
                let segments = self.physical.as_ref().unwrap_or(&self.segments);
                self.start(at).is_some_and(|components| fits(segments, components, self.folder, &exact))
            }
            Side::Wide => [Some(&self.segments), self.physical.as_ref()].into_iter().flatten().any(|segments| {
                self.start(at).is_some_and(|components| fits(segments, components, true, &exact))
                    || self.start(at.folded()).is_some_and(|components| fits(segments, components, true, &folded))
            }),
        }
    }

    /// Names of which a path must contain one among its folded components to match from any side: the last that is fixed,
    /// of each spelling. None if there is none, and so any path might.
    pub fn landmarks(&self) -> Option<Vec<&str>> {
        [Some(&self.segments), self.physical.as_ref()].into_iter().flatten().map(|s| last_fixed(s)).collect()
    }

    /// Whether the entry is `/` (or `/**`, `/*`, `**/*`), which guards everything and so nothing in particular.
    pub fn is_everything(&self) -> bool {
        self.anchor != Anchor::Root
            && match self.segments.as_slice() {
                [] => true,
                [Segment::One(glob)] | [Segment::Deep, Segment::One(glob)] => glob.is_star(),
                _ => false,
            }
    }

    /// The components that the entry is compared with.
    fn start<'a>(&self, at: &'a Parts) -> Option<&'a [Box<str>]> {
        match self.anchor {
            Anchor::Root => at.below_root(),
            Anchor::AnyDepth => Some(at.below_root().unwrap_or(&at.components)),
            Anchor::Absolute => Some(&at.components),
        }
    }
}

/// The last component without wildcards, folded.
fn last_fixed(segments: &[Segment]) -> Option<&str> {
    segments.iter().rev().find_map(|segment| match segment {
        Segment::One(glob) => glob.folded_literal(),
        Segment::Deep => None,
    })
}

/// Refuses what a shell would expand and we do not, and entries that say nothing.
fn refuse_expansion(text: &str) -> Result<(), PatternError> {
    if text.is_empty() {
        return Err(PatternError::new("an empty path names nothing").help("write `./` for the upstream's root"));
    }
    if text.starts_with('~') {
        return Err(PatternError::new("`~` is not expanded in a policy").help("write the absolute path"));
    }
    if text.contains('$') {
        return Err(PatternError::new("variables are not expanded in a policy").help("write the path itself"));
    }
    Ok(())
}

/// Whether the segments fit the components, or with `below` an ancestor of theirs. Linear in the product of both
/// lengths: only the last `**` is ever tried again.
fn fits(segments: &[Segment], components: &[Box<str>], below: bool, test: impl Fn(&Glob, &str) -> bool) -> bool {
    let (mut segment, mut component) = (0, 0);
    let mut deep: Option<(usize, usize)> = None;
    loop {
        match segments.get(segment) {
            Some(Segment::Deep) => {
                segment += 1;
                deep = Some((segment, component));
                continue;
            }
            Some(Segment::One(glob)) if components.get(component).is_some_and(|c| test(glob, c)) => {
                segment += 1;
                component += 1;
                continue;
            }
            None if below || component == components.len() => return true,
            _ => {}
        }
        match deep {
            Some((after, from)) if from < components.len() => {
                (segment, component) = (after, from + 1);
                deep = Some((after, from + 1));
            }
            _ => return false,
        }
    }
}

/// The fixed components with links resolved in the longest part of them that exists, if that makes another path.
fn resolve(fixed: &[&str]) -> Option<Vec<Glob>> {
    let lexical: std::path::PathBuf = std::iter::once("/").chain(fixed.iter().copied()).collect();
    let (ancestor, real) = lexical.ancestors().find_map(|a| Some((a, a.canonicalize().ok()?)))?;
    let resolved = real.join(lexical.strip_prefix(ancestor).unwrap_or(Path::new("")));
    if resolved == lexical {
        return None;
    }
    resolved
        .components()
        .filter_map(|c| match c {
            Component::Normal(name) => Some(name.to_str().map(Glob::exactly)),
            _ => None,
        })
        .collect()
}

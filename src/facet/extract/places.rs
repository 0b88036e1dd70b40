//! Path and glob arguments.

use super::*;
use crate::pattern::Location;

impl<'a> Call<'a> {
    /// The working directory that the call itself chooses: read, and where its relative paths start.
    pub(super) fn working_directory(&mut self) -> Result<(), Malformed> {
        for (pointer, _) in self.tool.arguments.iter().filter(|(_, argument)| *argument == Argument::Cwd) {
            for (at, text) in self.texts(pointer, "a working directory")? {
                let plain = self.plain(&at, text)?;
                self.add_path(&at, text, &plain, None, Use { access: Some(Access::Read), ..Use::default() });
                self.cwd.get_or_insert(plain);
            }
        }
        self.bases = self.facets.len();
        Ok(())
    }

    pub(super) fn path_argument(&mut self, pointer: &Pointer, argument: &Argument) -> Result<(), Malformed> {
        let Argument::Path { recursive, missing, base, .. } = argument else { return Ok(()) };
        let used = self.used(argument);
        let start = match base {
            Some(base) => match self.texts(base, "a path")?.first() {
                Some((at, text)) => Some(self.plain(at, text)?),
                None => None,
            },
            None => None,
        };
        for (at, text) in self.texts(pointer, "a path")? {
            if self.tool.heuristic {
                self.guess_path(&at, text);
            } else {
                self.path_text(&at, text, start.as_ref(), used)?;
            }
        }
        if !self.is_absent(pointer) {
            return Ok(());
        }
        match missing.as_deref() {
            // Left out, it names nothing.
            Some("") => {}
            Some(text) => {
                let plain = self.plain("", text)?;
                self.add_path("", text, &plain, start.as_ref(), used);
            }
            None if *recursive => {
                let root = self.space.plain_root();
                self.add_path("", root.text(), &root, None, used);
            }
            None => {}
        }
        Ok(())
    }

    /// How the tool uses a path argument in this very call.
    fn used(&self, argument: &Argument) -> Use {
        let Argument::Path { access, recursive, keep_last, .. } = argument else { return Use::default() };
        let switched_on = self.tool.recursive_if.as_ref().is_none_or(|pointer| {
            self.select(pointer).iter().any(|selected| match selected {
                Selected::Found(_, value) => value.kind != Kind::Bool(false),
                Selected::TooShallow(..) => true,
            })
        });
        let keep_last = *keep_last || *access == Some(Access::Delete);
        Use { access: *access, recursive: *recursive && switched_on, keep_last }
    }

    /// Whether the call leaves the whole argument out (an empty list is there, and names nothing).
    fn is_absent(&self, pointer: &Pointer) -> bool {
        let first = pointer.0.first().map(|key| &**key).unwrap_or_default();
        self.arguments.is_none_or(|arguments| arguments.get(first).is_none())
    }

    fn path_text(&mut self, at: &str, text: &'a str, start: Option<&Plain>, used: Use) -> Result<(), Malformed> {
        if is_url(text) {
            self.add_url(at.to_owned(), text)?;
            self.loose.push((at.to_owned(), text));
            // What a server that knows no URLs makes of it: a path whose first folder ends in a colon.
            if text.contains("://") && !self.leads_off(text, start) {
                return Ok(());
            }
        }
        let plain = self.plain(at, text)?;
        self.add_path(at, text, &plain, start, used);
        if text.starts_with('-') {
            self.floors.push(Floor::because(FloorWhy::OptionLike, format!("`{at}` starts with `-`")));
            self.loose.push((at.to_owned(), text));
        }
        Ok(())
    }

    /// Whether a URL, read as a path, leads elsewhere than its words say: by `..`, or through a link.
    fn leads_off(&self, text: &str, start: Option<&Plain>) -> bool {
        if text.split(['/', '\\']).any(|component| component == "..") {
            return true;
        }
        // What is too long or too odd for a path is none.
        self.space.plain(text).is_ok_and(|plain| {
            let reading = self.space.read(&plain, start.or(self.cwd.as_ref()), false);
            reading.physical.iter().any(|at| *at != reading.lexical)
        })
    }

    /// A path by its argument's name only.
    pub(super) fn guess_path(&mut self, at: &str, text: &'a str) {
        let guess = guessed("a path");
        if is_url(text) {
            let (host, mut floors) = url::read(text).unwrap_or_default();
            floors.push(guess);
            self.add(FacetKind::Url(UrlFacet { url: text.to_owned(), host, command: None, unmarked: false }), floors);
            return;
        }
        let Ok(plain) = self.space.plain(text) else {
            self.floors.push(guess);
            return;
        };
        self.add_path(at, text, &plain, None, Use::default());
        self.as_sent([guess]);
    }

    pub(super) fn glob_argument(&mut self, pointer: &Pointer) -> Result<(), Malformed> {
        let below = self.tool.arguments.iter().find_map(|(pointer, argument)| match argument {
            Argument::Path { access, missing, .. } => Some((pointer, *access, missing.as_deref())),
            _ => None,
        });
        let (start, access) = match below {
            Some((pointer, access, missing)) => {
                let given = self.texts(pointer, "a path")?;
                let start = match given.first() {
                    Some((at, text)) if !is_url(text) => Some(self.plain(at, text)?),
                    _ => missing.filter(|text| !text.is_empty()).map(|text| self.plain("", text)).transpose()?,
                };
                (start, access.or(Some(Access::Read)))
            }
            None => (None, Some(Access::Read)),
        };
        let used = Use { access, recursive: true, keep_last: false };
        for (at, text) in self.texts(pointer, "a glob")? {
            if text.chars().any(char::is_control) {
                return Err(Malformed { pointer: at, what: "a control character in a glob".to_owned() });
            }
            for fixed in glob::fixed_parts(text) {
                let plain = self.plain(&at, &fixed.prefix)?;
                let before = self.facets.len();
                self.add_path(&at, text, &plain, start.as_ref(), used);
                self.as_sent(fixed.floor);
                self.drop_repeated(before);
                if let Some(folded) = fixed.folded {
                    let joined = start.as_ref().map_or_else(|| folded.clone(), |s| format!("{}/{folded}", s.text()));
                    let locations = self.space.guess(&joined, &[]);
                    self.strays.push(Stray { pointer: at.clone(), sent: text.to_owned(), locations });
                }
            }
        }
        Ok(())
    }

    /// Gives the last facet floors, and keeps its argument as it was sent: it holds more than the path.
    pub(super) fn as_sent(&mut self, floors: impl IntoIterator<Item = Floor>) {
        let Some(facet) = self.facets.last_mut() else { return };
        facet.floors.extend(floors);
        if let FacetKind::Path(path) = &mut facet.kind {
            path.canonical = None;
        }
    }

    /// Drops the last facet if it says nothing that one before it does not.
    fn drop_repeated(&mut self, index: usize) {
        let Some((Facet { kind: FacetKind::Path(last), floors }, before)) = self.facets.split_last() else { return };
        let same = |facet: &Facet| {
            matches!(&facet.kind, FacetKind::Path(p) if p.lexical == last.lexical && p.access == last.access && p.recursive)
                && floors.iter().all(|floor| facet.floors.contains(floor))
        };
        if index == before.len() && before.iter().any(same) {
            self.facets.pop();
        }
    }

    fn plain(&self, at: &str, text: &str) -> Result<Plain, Malformed> {
        self.space.plain(text).map_err(|what| Malformed { pointer: at.to_owned(), what })
    }

    pub(super) fn add_path(&mut self, at: &str, sent: &str, plain: &Plain, start: Option<&Plain>, used: Use) {
        let reading = self.space.read(plain, start.or(self.cwd.as_ref()), used.keep_last);
        if !reading.elsewhere.is_empty() {
            self.strays.push(Stray { pointer: at.to_owned(), sent: sent.to_owned(), locations: reading.elsewhere });
        }
        let made = reading.physical.first().filter(|_| used.access == Some(Access::Write));
        let mut floors = reading.floors;
        floors.extend(made.filter(|at| repository::makes_one(at)).map(|_| {
            Floor::because(
                FloorWhy::Shell,
                "makes a folder one that git takes for a repository, whose settings can run programs",
            )
        }));
        let forwarded = |facet: &Facet| matches!(&facet.kind, FacetKind::Path(path) if path.pointer == at);
        let facet = PathFacet {
            access: used.access,
            pointer: at.to_owned(),
            sent: sent.to_owned(),
            lexical: reading.lexical,
            physical: reading.physical,
            canonical: reading.canonical.filter(|_| !self.facets.iter().any(forwarded)),
            recursive: used.recursive,
            command: None,
            part: None,
            below: None,
        };
        self.add(FacetKind::Path(facet), floors);
    }

    /// Where strays may start: the root, the working directories, each of those paths and its folder.
    pub(super) fn starts(&self, is_meant: impl Fn(&PathFacet) -> bool) -> Vec<Location> {
        let mut bases = self.space.guess(".", &[]);
        let mut add = |at: Location| {
            if !bases.contains(&at) {
                bases.push(at);
            }
        };
        for facet in &self.facets {
            let FacetKind::Path(path) = &facet.kind else { continue };
            if !is_meant(path) {
                continue;
            }
            for at in [Some(&path.lexical), path.physical.first()].into_iter().flatten() {
                if let Some((_, above)) = at.components.split_last() {
                    add(Location::new(above.to_vec(), at.root.filter(|root| *root <= above.len())));
                }
                add(at.clone());
            }
        }
        bases
    }
}

/// Whether a path argument holds a URL rather than a path or a `file:` URI.
fn is_url(text: &str) -> bool {
    file_rest(text).is_none() && scheme(text).is_some()
}

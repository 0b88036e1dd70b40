//! One path text, read by the rules of `policy.md`, "How a path in a call is read".

use std::path::Path;

use super::spelling::{self, Spelled};
use super::{Names, Space, fold_names, names, resolve, uri};
use crate::config::FileSystem;
use crate::facet::{Floor, FloorWhy};
use crate::pattern::Location;

/// A path text that is no URI any more and holds nothing malformed.
#[derive(Debug)]
pub(in crate::facet) struct Plain {
    text: String,
    spelled: Spelled,
    /// Other texts that a reader might take it for.
    others: Vec<String>,
}

/// Where a path text leads.
#[derive(Debug)]
pub(in crate::facet) struct Reading {
    /// With `.` and `..` folded.
    pub lexical: Location,
    /// With links resolved; the one to forward first. Empty where the file system is not shared.
    pub physical: Vec<Location>,
    /// The path to forward, in the upstream's view.
    pub canonical: Option<String>,
    /// Asks that no allow lifts.
    pub floors: Vec<Floor>,
    /// Where it leads for a reader that understands the text in another way.
    pub elsewhere: Vec<Location>,
}

/// What a reader might take any text for: a `file:` URI in it, escapes decoded, separators and look-alikes of other
/// systems. For guarded paths only.
pub(in crate::facet) fn other_texts(text: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let lower = text.to_ascii_lowercase();
    texts.extend(lower.find("file:").and_then(|at| text.get(at + "file:".len()..)).map(uri::loosely));
    if text.contains('%') {
        texts.push(uri::decoded(text));
    }
    for plain in std::iter::once(text.to_owned()).chain(texts.clone()) {
        texts.extend(spelling::other_readings(&plain));
    }
    texts
}

impl Plain {
    /// The path text.
    pub(in crate::facet) fn text(&self) -> &str {
        &self.text
    }
}

impl Space {
    /// Reads a text as a path: a `file:` URI is decoded, once; anything else is taken as it is.
    ///
    /// # Errors
    /// What no upstream may see, or what this one would read as another path (rules 1 and 2), in plain English.
    pub(in crate::facet) fn plain(&self, text: &str) -> Result<Plain, String> {
        let Some(rest) = uri::file_rest(text) else {
            let spelled = self.check(text)?;
            return Ok(Plain { others: spelling::other_readings(text), text: text.to_owned(), spelled });
        };
        let odd = uri::oddly_begun(text)?;
        let uri = uri::read(rest)?;
        let mut spelled = self.check(&uri.path)?;
        let mut others = spelling::other_readings(&uri.path);
        others.extend(odd.is_some().then(|| text.to_owned()));
        spelled.floors.extend(odd);
        if let Some(fragment) = uri.fragment {
            spelled.floors.push(Floor::because(FloorWhy::Spelling, "a fragment in a `file:` URI"));
            others.push(format!("{}#{fragment}", uri.path));
        }
        Ok(Plain { text: uri.path, spelled, others })
    }

    /// The upstream's root, for a tool that takes it by itself.
    pub(in crate::facet) fn plain_root(&self) -> Plain {
        Plain { text: self.their_root.clone(), spelled: Spelled::default(), others: Vec::new() }
    }

    /// Checks the spelling; what the root's own name holds is the operator's word.
    fn check(&self, text: &str) -> Result<Spelled, String> {
        let below = |root: &str| text.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match below(&self.their_root).map(|rest| rest.trim_start_matches('/')) {
            Some("") => Ok(Spelled::default()),
            Some(rest) => spelling::check(rest, self.reader),
            None => spelling::check(text, self.reader),
        }
    }

    /// Where a path leads that starts, if it is relative, at `base` or else at the upstream's working directory. With
    /// `keep_last` the last component counts as it is *and* followed.
    pub(in crate::facet) fn read(&self, plain: &Plain, base: Option<&Plain>, keep_last: bool) -> Reading {
        let mut floors: Vec<Floor> = plain.spelled.floors.clone();
        let mut reading = if plain.spelled.foreign {
            let at = Location::new(fold_names(plain.text.split(['/', '\\'])), None);
            let physical = if self.filesystem == FileSystem::Shared { vec![at.clone()] } else { Vec::new() };
            Reading { lexical: at, physical, canonical: None, floors: Vec::new(), elsewhere: Vec::new() }
        } else {
            floors.extend(base.into_iter().flat_map(|base| base.spelled.floors.clone()));
            self.follow(&self.spell(plain, base), keep_last)
        };
        if self.filesystem == FileSystem::Remote {
            floors.push(Floor::new(FloorWhy::RemoteLinks));
        }
        floors.append(&mut reading.floors);
        floors.sort();
        floors.dedup();
        reading.floors = floors;
        self.add_elsewhere(plain, base, &mut reading);
        reading
    }

    /// Adds what other readers would make of the text.
    fn add_elsewhere(&self, plain: &Plain, base: Option<&Plain>, reading: &mut Reading) {
        let mut elsewhere: Vec<Location> = Vec::new();
        if plain.spelled.foreign {
            elsewhere.extend(self.guess(&plain.text, &[]));
        }
        for other in &plain.others {
            elsewhere.extend(self.guess(other, &[]));
            if let Some(base) = base {
                elsewhere.extend(self.guess(&format!("{}/{other}", base.text), &[]));
            }
        }
        elsewhere.extend(self.alias(&reading.lexical.components).map(|names| self.place(names)));
        elsewhere.extend(reading.physical.iter().chain([&reading.lexical]).filter_map(|at| self.place_widely(at)));
        for at in elsewhere {
            if !reading.elsewhere.contains(&at) {
                reading.elsewhere.push(at);
            }
        }
    }

    /// Where a text might lead, lexically, from each of `bases` (from the root and the working directory if there are
    /// none), and from `/` if it is absolute. For guarded paths only.
    pub(in crate::facet) fn guess(&self, text: &str, bases: &[Location]) -> Vec<Location> {
        let mut found: Vec<Location> = Vec::new();
        let mut add = |at: Location| {
            if let Some(inside) = self.place_widely(&at).filter(|inside| !found.contains(inside)) {
                found.push(inside);
            }
            if !found.contains(&at) {
                found.push(at);
            }
        };
        if text.starts_with('/') {
            let theirs = fold_names(text.split('/'));
            if let Some(ours) = self.our_names(&theirs).filter(|ours| *ours != theirs) {
                add(self.place(ours));
            }
            add(self.place(theirs));
            return found;
        }
        let own = || [self.our_names(&self.cwd).unwrap_or_else(|| self.cwd.clone()), names(&self.root)];
        let starts =
            if bases.is_empty() { own().to_vec() } else { bases.iter().map(|b| b.components.clone()).collect() };
        for start in starts {
            add(self.place(fold_names(start.iter().map(|n| &**n).chain(text.split('/')))));
        }
        found
    }

    /// The absolute path in the upstream's view, nothing folded yet.
    fn spell<'a>(&'a self, plain: &'a Plain, base: Option<&'a Plain>) -> Vec<&'a str> {
        let mut spelled: Vec<&str> = Vec::new();
        for text in [base, Some(plain)].into_iter().flatten().map(Plain::text) {
            if text.starts_with('/') {
                spelled.clear();
            } else if spelled.is_empty() {
                spelled.extend(self.cwd.iter().map(|n| &**n));
            }
            spelled.extend(text.split('/').filter(|c| !matches!(*c, "" | ".")));
        }
        spelled
    }

    fn follow(&self, spelled: &[&str], keep_last: bool) -> Reading {
        let theirs = fold_names(spelled);
        let mut reading = Reading {
            lexical: Location::new(Names::new(), None),
            physical: Vec::new(),
            canonical: None,
            floors: Vec::new(),
            elsewhere: Vec::new(),
        };
        let Some(ours) = self.our_names(&theirs) else {
            // The upstream sees a file there that we do not: outside, whatever we have under that name.
            reading.lexical = Location::new(theirs, None);
            if self.filesystem == FileSystem::Shared {
                reading.physical.push(reading.lexical.clone());
                reading.canonical = Some(reading.lexical.to_string());
            }
            reading.elsewhere.push(self.place(reading.lexical.components.clone()));
            return reading;
        };
        reading.lexical = self.place(ours.clone());
        if self.filesystem != FileSystem::Shared {
            return reading;
        }
        // The kernel goes up from where a link led, others fold `..` first.
        let walked: Option<Vec<&str>> = spelled.contains(&"..").then(|| self.our_spelling(spelled)).flatten();
        let folded: Vec<&str> = ours.iter().map(|n| &**n).collect();
        for way in walked.into_iter().chain([folded]) {
            self.resolve(&way, keep_last, &mut reading);
        }
        self.add_aliases(&mut reading);
        reading
    }

    /// Our spelling of a path in the upstream's view, nothing folded; none where only folding finds its place.
    fn our_spelling<'a>(&'a self, spelled: &[&'a str]) -> Option<Vec<&'a str>> {
        if self.mapped.is_empty() {
            return Some(spelled.to_vec());
        }
        let fits =
            |theirs: &Names| spelled.len() >= theirs.len() && theirs.iter().zip(spelled).all(|(a, b)| **a == **b);
        let mapped = self.mapped.iter().find(|m| fits(&m.theirs))?;
        let rest = spelled.iter().skip(mapped.theirs.len()).copied();
        Some(mapped.ours.iter().map(|n| &**n).chain(rest).collect())
    }

    fn resolve(&self, way: &[&str], keep_last: bool, reading: &mut Reading) {
        if let (true, Some((last, above))) = (keep_last, way.split_last().filter(|(last, _)| **last != "..")) {
            let mut kept = resolve::resolve(above.iter().copied(), &self.real_root);
            kept.path.push(last);
            self.add(&kept.path, reading);
        }
        let followed = resolve::resolve(way.iter().copied(), &self.real_root);
        self.add(&followed.path, reading);
        if self.hard_links_ask && followed.hard_links > 1 {
            let detail = format!("the file has {} hard links", followed.hard_links);
            reading.floors.push(Floor::because(FloorWhy::HardLink, detail));
        }
        reading.floors.extend(followed.floors);
    }

    /// Adds a physical path; the first is the one to forward.
    fn add(&self, path: &Path, reading: &mut Reading) {
        let at = self.locate(path);
        if reading.physical.is_empty() {
            let theirs = path.to_str().and_then(|_| self.their_names(&at.components));
            reading.canonical = theirs.map(|names| Location::new(names, None).to_string());
        }
        if !reading.physical.contains(&at) {
            reading.physical.push(at);
        }
    }

    /// A path through `/proc/self/root` or `/proc/self/cwd` is also the file that it is an alias of.
    fn add_aliases(&self, reading: &mut Reading) {
        let mut seen = reading.physical.clone();
        seen.push(reading.lexical.clone());
        // Each round strips one `/proc/self/root`, and a path of 4,096 bytes cannot hold more than 300.
        for _ in 0..300 {
            let Some(at) = seen.pop() else { return };
            let Some(names) = self.alias(&at.components) else { continue };
            let way: Vec<&str> = names.iter().map(|n| &**n).collect();
            let mut alias = resolve::resolve(way, &self.real_root);
            reading.floors.append(&mut alias.floors);
            reading.floors.push(Floor::because(FloorWhy::Spelling, "an alias through /proc"));
            for at in [self.locate(&alias.path), self.place(names)] {
                if !reading.physical.contains(&at) {
                    seen.push(at.clone());
                    reading.physical.push(at);
                }
            }
        }
    }

    /// What `/proc/PID/root/…`, `/proc/PID/cwd/…` and `/proc/PID/task/TID/…` of these stand for.
    fn alias(&self, names: &[Box<str>]) -> Option<Names> {
        let (first, rest) = names.split_first()?;
        let (process, mut rest) = rest.split_first()?;
        let is_process = matches!(&**process, "self" | "thread-self") || process.bytes().all(|b| b.is_ascii_digit());
        if &**first != "proc" || !is_process {
            return None;
        }
        if let [task, _, inner @ ..] = rest
            && &**task == "task"
        {
            rest = inner;
        }
        let (link, rest) = rest.split_first()?;
        let start = match &**link {
            "root" => Names::new(),
            "cwd" => self.our_names(&self.cwd).unwrap_or_else(|| self.cwd.clone()),
            _ => return None,
        };
        Some(fold_names(start.iter().chain(rest)))
    }
}

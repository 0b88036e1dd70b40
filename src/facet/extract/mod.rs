//! From arguments to facets, through the catalogue.

mod bridge;
mod command;
mod decode;
mod glob;
mod places;
mod remote;
mod repository;
mod sql;
mod stray;

use std::sync::Arc;

use super::path::{Plain, Space, file_rest, scheme};
use super::{Facet, FacetKind, Floor, FloorWhy, Malformed, PathFacet, Stray, Touched, UrlFacet, url};
use crate::catalog::{Argument, Pointer, Selected, Tool};
use crate::message::Value;
use crate::message::json::Kind;
use crate::record::Access;

/// What a tool call touches. Looks at the file system's metadata only; walks nothing.
///
/// # Errors
/// Arguments that cannot be read as the catalogue says.
pub fn extract(tool: &Tool, space: &Space, arguments: Option<&Value>) -> Result<Touched, Malformed> {
    let (decoded, floors) = decode::decoded(tool, arguments);
    let mut call = Call::new(tool, space, decoded.as_ref().or(arguments));
    call.floors.extend(floors);
    call.keys_as_marked()?;
    call.working_directory()?;
    for (pointer, argument) in &tool.arguments {
        match argument {
            Argument::Path { .. } => call.path_argument(pointer, argument)?,
            Argument::Command => call.command_argument(pointer, false)?,
            Argument::Words => call.command_argument(pointer, true)?,
            Argument::Code => call.code_argument(pointer),
            Argument::Url => call.url_argument(pointer)?,
            Argument::Address => call.address_argument(pointer)?,
            Argument::Sql => call.sql_argument(pointer)?,
            _ => {}
        }
    }
    for (pointer, _) in tool.arguments.iter().filter(|(_, argument)| *argument == Argument::Glob) {
        call.glob_argument(pointer)?;
    }
    call.command_line()?;
    call.repository_argument()?;
    call.unmarked();
    let inner = tool.unwrap.as_ref().map(|unwrap| call.bridged(unwrap)).transpose()?.flatten();
    let touched = call.finish();
    Ok(Touched { inner, decoded: decoded.map(Arc::new), ..touched })
}

/// What `resources/read` or `resources/subscribe` of `uri` touches; `method` names the facet where the URI has neither
/// a path nor a host.
///
/// # Errors
/// A `file:` URI that cannot be read one way.
pub fn extract_resource(method: &str, space: &Space, uri: &str) -> Result<Touched, Malformed> {
    let tool = Tool::default();
    let mut call = Call::new(&tool, space, None);
    let malformed = |what| Malformed { pointer: "/uri".to_owned(), what };
    if file_rest(uri).is_some() {
        let plain = space.plain(uri).map_err(malformed)?;
        call.add_path("/uri", uri, &plain, None, Use { access: Some(Access::Read), ..Use::default() });
        call.as_sent(None);
    } else {
        match url::read(uri).map_err(malformed)? {
            (host @ Some(_), floors) => {
                call.add(
                    FacetKind::Url(UrlFacet { url: uri.to_owned(), host, command: None, unmarked: false }),
                    floors,
                );
            }
            // `foo:x`, `urn:isbn:1`: names that its server gave, and only it reads.
            (None, floors) => {
                let given = scheme(uri).is_some() && !uri.contains("//");
                call.add(FacetKind::Method(method.to_owned()), if given { Vec::new() } else { floors });
            }
        }
        call.loose.push(("/uri".to_owned(), uri));
    }
    Ok(call.finish())
}

/// What a shell text touches, whatever tool it is given to.
///
/// # Errors
/// A text that no shell can be given.
pub fn extract_shell(space: &Space, text: &str) -> Result<Touched, Malformed> {
    let tool = Tool::default();
    let mut call = Call::new(&tool, space, None);
    call.shell_text("/command", text)?;
    Ok(call.finish())
}

/// One call while it is taken apart.
struct Call<'a> {
    tool: &'a Tool,
    space: &'a Space,
    arguments: Option<&'a Value>,
    /// Where the call's relative paths start, if it says so.
    cwd: Option<Plain>,
    facets: Vec<Facet>,
    strays: Vec<Stray>,
    /// How many facets, the first ones, are directories that the call chooses to work in.
    bases: usize,
    /// Floors of the call as a whole.
    floors: Vec<Floor>,
    /// Paths of commands that are walked when they are judged.
    walked: usize,
    /// Strings that may name a path, with their pointers.
    loose: Vec<(String, &'a str)>,
    /// Whole program texts, which may be the name of one.
    programs: Vec<(String, &'a str)>,
    /// Whether what is looked at is guessed by its name.
    guessing: bool,
}

/// How a path is used.
#[derive(Clone, Copy, Default)]
struct Use {
    access: Option<Access>,
    recursive: bool,
    keep_last: bool,
}

impl<'a> Call<'a> {
    fn new(tool: &'a Tool, space: &'a Space, arguments: Option<&'a Value>) -> Self {
        Self {
            tool,
            space,
            arguments,
            cwd: None,
            facets: Vec::new(),
            strays: Vec::new(),
            bases: 0,
            floors: Vec::new(),
            walked: 0,
            loose: Vec::new(),
            programs: Vec::new(),
            guessing: tool.heuristic,
        }
    }

    fn finish(mut self) -> Touched {
        self.try_strays();
        if self.facets.is_empty() {
            self.add(FacetKind::Bare, Vec::new());
        }
        let floors = std::mem::take(&mut self.floors);
        if let Some(first) = self.facets.first_mut() {
            first.floors.extend(floors);
        }
        for facet in &mut self.facets {
            facet.floors.sort();
            facet.floors.dedup();
        }
        Touched { facets: self.facets, strays: self.strays, ..Touched::default() }
    }

    fn add(&mut self, kind: FacetKind, floors: Vec<Floor>) {
        self.facets.push(Facet { kind, floors });
    }

    /// `Path` is `path` to a tool that reads its arguments without regard to case: no mark must be passed by like that.
    ///
    /// # Errors
    /// A key that differs from a marked one in case or Unicode form only, unless the entry is a guess.
    fn keys_as_marked(&mut self) -> Result<(), Malformed> {
        let Some(arguments) = self.arguments else { return Ok(()) };
        let in_argv = self.tool.argv.iter().flatten().filter_map(|word| word.parse::<Pointer>().ok());
        let in_argv: Vec<Pointer> = in_argv.collect();
        let marked = self.tool.arguments.iter().map(|(pointer, _)| pointer);
        let unwrapped = self.tool.unwrap.iter().flat_map(|unwrap| [&unwrap.name, &unwrap.arguments]);
        let mut marked = marked.chain(&in_argv).chain(&self.tool.recursive_if).chain(unwrapped);
        // A key with a mark of its own is no variant of another's, unless the call gives both.
        let alone = |pointer: &Pointer| !self.select(pointer).iter().any(|at| matches!(at, Selected::Found(..)));
        let variant =
            |pointer: &Pointer| pointer.variant(arguments).filter(|at| !(self.is_marked(at) && alone(pointer)));
        match marked.find_map(variant) {
            None => {}
            Some(at) if self.tool.heuristic => {
                let detail = format!("`{at}` differs from an argument of the tool in case or Unicode form only");
                self.floors.push(Floor::because(FloorWhy::Heuristic, detail));
            }
            Some(pointer) => {
                let what =
                    "differs from an argument of the tool in case or Unicode form only; write it as the tool does";
                return Err(Malformed { pointer, what: what.to_owned() });
            }
        }
        Ok(())
    }

    /// The strings at a pointer, each with its own pointer.
    ///
    /// # Errors
    /// Anything else there, unless the entry is a guess.
    fn texts(&self, pointer: &Pointer, what: &str) -> Result<Vec<(String, &'a str)>, Malformed> {
        let mut texts = Vec::new();
        for selected in self.select(pointer) {
            match selected {
                Selected::Found(at, value) => match value.as_str() {
                    Some(text) => texts.push((at, text)),
                    None if self.tool.heuristic => {}
                    None => return Err(Malformed { pointer: at, what: format!("{what} must be a string") }),
                },
                // An argument that may also be of another type has a mark for that.
                Selected::TooShallow(at, _) if self.tool.heuristic || self.is_marked(&at) => {}
                Selected::TooShallow(at, _) => {
                    return Err(Malformed {
                        pointer: at,
                        what: format!("a list or an object that holds {what} is due here"),
                    });
                }
            }
        }
        Ok(texts)
    }

    fn select(&self, pointer: &Pointer) -> Vec<Selected<'a>> {
        self.arguments.map(|arguments| pointer.select(arguments)).unwrap_or_default()
    }

    fn is_marked(&self, at: &str) -> bool {
        let Ok(place) = at.parse::<Pointer>() else { return false };
        let keys: Vec<&str> = place.0.iter().map(|key| &**key).collect();
        self.tool.arguments.iter().any(|(pointer, _)| pointer.fits(&keys))
    }
}

fn guessed(what: &str) -> Floor {
    Floor::because(
        FloorWhy::Heuristic,
        format!("an argument looks like {what} by its name; say in the catalogue what it is"),
    )
}

/// The text of a value that has no parts.
fn scalar(value: &Value) -> Option<String> {
    match &value.kind {
        Kind::String(text) | Kind::Number(text) => Some(text.to_string()),
        Kind::Bool(truth) => Some(truth.to_string()),
        Kind::Null | Kind::Array(_) | Kind::Object(_) => None,
    }
}

#[cfg(test)]
mod tests;

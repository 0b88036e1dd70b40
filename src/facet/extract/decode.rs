//! Arguments that are texts of JSON or YAML: what the catalogue says of their inside is read through them.

use bytes::Bytes;

use crate::catalog::{Argument, Format, Tool};
use crate::config::yaml;
use crate::facet::{Floor, FloorWhy};
use crate::message::json::Kind;
use crate::message::{Json, Limits, Value};

/// The arguments with the texts decoded that the catalogue marks so; none where there are none. A text that cannot be
/// read one way stays a text, with a floor.
pub(super) fn decoded(tool: &Tool, arguments: Option<&Value>) -> (Option<Value>, Vec<Floor>) {
    let marked = tool.arguments.iter().filter_map(|(pointer, argument)| match argument {
        Argument::Decode(format) => Some((pointer, *format)),
        _ => None,
    });
    let mut marked: Vec<_> = marked.collect();
    // A text within a text is there only once the outer one is decoded.
    marked.sort_by_key(|(pointer, _)| pointer.0.len());
    let (Some(arguments), false) = (arguments, marked.is_empty()) else { return (None, Vec::new()) };
    let (mut whole, mut floors) = (arguments.clone(), Vec::new());
    for (pointer, format) in marked {
        pointer.each_mut(&mut whole, &mut |value| {
            let Kind::String(text) = &value.kind else { return };
            match decode(text, format) {
                Ok(inner) => *value = inner,
                Err(what) => floors.push(Floor::because(
                    FloorWhy::NotDecoded,
                    format!("`{pointer}` is no {} that everyone reads alike: {what}", format.as_str()),
                )),
            }
        });
    }
    (Some(whole), floors)
}

/// One value, strictly: no key twice, nothing behind it, no tags, merges or second documents.
pub(super) fn decode(text: &str, format: Format) -> Result<Value, String> {
    let json = match format {
        Format::Json => text.to_owned(),
        Format::Yaml => {
            let (mut report, node) = yaml::read("the text", text.as_bytes());
            let json = node.and_then(|node| node.json(&mut report));
            let said = report.into_diagnostics().into_iter().next().map(|diagnostic| diagnostic.message);
            match (json, said) {
                (Some(json), None) => json,
                (_, said) => return Err(said.unwrap_or_else(|| "it cannot be read".to_owned())),
            }
        }
    };
    let parsed = Json::parse(Bytes::from(json.into_bytes()), Limits::default());
    parsed.map(Json::into_root).map_err(|error| error.to_string())
}

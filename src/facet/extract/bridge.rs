//! Bridge tools: a call of one is a call of the tool that it names, too.

use super::*;
use crate::catalog::{Format, Unwrap};
use crate::facet::Inner;

impl Call<'_> {
    /// The call that a bridge tool makes, with what it touches. One that cannot be told is a floor.
    ///
    /// # Errors
    /// Arguments of the inner tool that cannot be read as the catalogue says.
    pub(super) fn bridged(&mut self, unwrap: &Unwrap) -> Result<Option<Box<Inner>>, Malformed> {
        let mut lost = |why: &str| {
            self.floors.push(Floor::because(FloorWhy::Bridge, why));
            Ok(None)
        };
        let Some(arguments) = self.arguments else { return lost("a bridge that names no tool") };
        let named = unwrap.name.select(arguments);
        let [Selected::Found(_, name)] = named.as_slice() else { return lost("a bridge that names no tool") };
        let Some(name) = name.as_str() else { return lost("a bridge whose tool has no name") };
        let given = unwrap.arguments.select(arguments);
        let inner = match given.as_slice() {
            [] => None,
            [Selected::Found(at, value)] => match &value.kind {
                Kind::Object(_) => Some((*value).clone()),
                Kind::Null => None,
                // Many bridges take them as a text.
                Kind::String(text) => match decode::decode(text, Format::Json) {
                    Ok(value @ Value { kind: Kind::Object(_), .. }) => Some(value),
                    _ => return lost(&format!("a bridge whose `{at}` are no arguments")),
                },
                _ => return lost(&format!("a bridge whose `{at}` are no arguments")),
            },
            _ => return lost("a bridge with several calls"),
        };
        let tool = unwrap.within.as_ref().map(|within| within.tool(name, None)).unwrap_or_default();
        let malformed =
            |inner: Malformed| Malformed { pointer: format!("{}{}", unwrap.arguments, inner.pointer), ..inner };
        let touched = extract(&tool, self.space, inner.as_ref()).map_err(malformed)?;
        let arguments = touched.decoded.clone().or_else(|| inner.map(Arc::new));
        Ok(Some(Box::new(Inner { tool: name.to_owned(), category: tool.category, arguments, touched })))
    }
}

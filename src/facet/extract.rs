//! From arguments to facets, through the catalogue.

use super::path::Space;
use super::{Malformed, Touched};
use crate::catalog::Tool;
use crate::message::Value;

/// What a tool call touches. Looks at the file system's metadata only; walks nothing.
///
/// # Errors
/// Arguments that cannot be read as the catalogue says.
pub fn extract(tool: &Tool, space: &Space, arguments: Option<&Value>) -> Result<Touched, Malformed> {
    let _ = (tool, space, arguments);
    unimplemented!()
}

/// What `resources/read` or `resources/subscribe` of `uri` touches; `method` names the facet where the URI has neither
/// a path nor a host.
///
/// # Errors
/// A `file:` URI that cannot be read one way.
pub fn extract_resource(method: &str, space: &Space, uri: &str) -> Result<Touched, Malformed> {
    let _ = (method, space, uri);
    unimplemented!()
}

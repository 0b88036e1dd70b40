//! `list_files`.

use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{FileTool, Text, parse, schema};
use crate::upstream::workspace::root::Root;
use crate::upstream::workspace::tool::{Definition, Stop};
use crate::upstream::workspace::walk::walk;

pub(super) const TOOL: FileTool = FileTool { definition, run };

fn definition() -> Definition {
    Definition {
        name: "list_files",
        description: "Lists a folder of the workspace, one name a line: folders end in /, symbolic links in @. With \
                      `recursive`, everything below it too.",
        input_schema: schema(
            json!({
                "path": { "type": "string", "description": "The folder; the workspace itself if left out" },
                "recursive": { "type": "boolean", "default": false },
            }),
            &[],
        ),
        read_only: true,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    path: String,
    #[serde(default)]
    recursive: bool,
}

fn run(root: &Root, arguments: Value, stop: &Stop) -> Result<String, String> {
    let Arguments { path, recursive } = parse(arguments)?;
    let folder = root.folder(&root.place(&path)?)?;
    let mut list = Text::default();
    let left = walk(&folder, recursive, stop, &mut |entry| {
        let mark = match entry.kind {
            FileType::Directory => "/",
            FileType::Symlink => "@",
            _ => "",
        };
        list.line(&format!("{}{mark}", entry.path))
    })?;
    Ok(list.finish(&left.note(), "[the folder is empty]"))
}

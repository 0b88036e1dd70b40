//! The catalogue's entry for the tools that cases call.

use portcullis::catalog::{Argument, Catalogue, Dialect, Format, Pointer, Tool, Unwrap};
use portcullis::record::Access;

/// Names under which tools take a path; a tool that is not recursive takes any of them.
const PATH_NAMES: [&str; 13] = [
    "path",
    "file_path",
    "filePath",
    "filepath",
    "filename",
    "file",
    "uri",
    "absolute_path",
    "target_file",
    "directory",
    "dir",
    "folder",
    "paths/*",
];

/// One entry for every fixture tool.
pub fn catalogue() -> Catalogue {
    let mut catalogue = Catalogue::default();
    let mut add = |names: &[&str], category: &str, arguments: Vec<(&str, Argument)>| {
        for name in names {
            let arguments = arguments.iter().map(|(at, argument)| (pointer(at), argument.clone())).collect();
            let tool = Tool { category: Some(category.to_owned()), arguments, ..Tool::default() };
            catalogue.tools.insert((*name).to_owned(), tool);
        }
    };
    let fs = "filesystem";
    add(
        &["read_file", "read_text_file", "read_media_file", "read_multiple_files", "get_file_info", "read_resource"],
        fs,
        plus(paths(path(Access::Read)), &[("cwd", Argument::Cwd), ("files/*", path(Access::Read))]),
    );
    add(&["list_directory", "list_files"], fs, vec![("path", with_root(false)), ("cwd", Argument::Cwd)]);
    let recursive = || vec![("path", with_root(true)), ("cwd", Argument::Cwd)];
    add(&["directory_tree", "tree"], fs, plus(recursive(), &[("excludePatterns", Argument::Text)]));
    add(
        &["grep", "search_files", "search", "search_file_content"],
        fs,
        plus(
            recursive(),
            &[
                ("pattern", Argument::Text),
                ("query", Argument::Text),
                ("excludePatterns", Argument::Text),
                ("include", Argument::Glob),
                ("glob", Argument::Glob),
            ],
        ),
    );
    // How far a glob reaches is the pattern's own matter: its fixed prefix is judged, and what lies below.
    let globbed = vec![("path", path(Access::Read)), ("pattern", Argument::Glob), ("cwd", Argument::Cwd)];
    add(&["glob", "find_files"], fs, globbed);
    add(
        &["write_file", "create_file", "append_file", "edit_file", "apply_edits", "create_directory"],
        fs,
        plus(
            plus(paths(path(Access::Write)), &[("content", Argument::Text), ("cwd", Argument::Cwd)]),
            &[
                ("edits/*/path", path(Access::Write)),
                ("edits/*/file_path", path(Access::Write)),
                ("edits/*/filePath", path(Access::Write)),
                ("edits/*/old", Argument::Text),
                ("edits/*/new", Argument::Text),
                ("edits/*/oldText", Argument::Text),
                ("edits/*/newText", Argument::Text),
            ],
        ),
    );
    add(&["delete_file", "delete_directory", "remove_file"], fs, paths(kept(Access::Delete)));
    add(
        &["move_file", "rename_file"],
        fs,
        vec![("source", kept(Access::Delete)), ("destination", kept(Access::Write))],
    );
    add(&["copy_file"], fs, vec![("source", path(Access::Read)), ("destination", path(Access::Write))]);
    let below =
        Argument::Path { access: Some(Access::Write), recursive: true, missing: None, base: None, keep_last: false };
    add(&["extract_archive"], fs, vec![("archive", path(Access::Read)), ("destination", below)]);
    let target = Argument::Path { access: None, recursive: false, missing: None, base: None, keep_last: false };
    add(&["create_symlink", "create_link"], fs, vec![("link", kept(Access::Write)), ("target", target)]);
    let repo = || ("repo_path", with_root(true));
    add(
        &["git_status", "git_diff", "git_log", "git_commit", "git_show"],
        fs,
        vec![repo(), ("message", Argument::Text)],
    );
    let staged = Argument::Path {
        access: Some(Access::Read),
        recursive: true,
        missing: None,
        base: Some(pointer("repo_path")),
        keep_last: false,
    };
    add(&["git_add"], fs, vec![("repo_path", path(Access::Read)), ("files/*", staged)]);
    add(&["fetch", "http_get", "navigate"], "network", vec![("url", Argument::Url)]);
    add(&["send_mail"], "network", vec![("to", Argument::Address), ("body", Argument::Text)]);
    add(&["pay", "note", "get"], "other", vec![("title", Argument::Text)]);
    add(&["send"], "other", vec![("body", Argument::Decode(Format::Json)), ("body/path", path(Access::Read))]);
    add(&["apply"], "other", vec![("manifest", Argument::Decode(Format::Yaml))]);
    add(
        &["run_shell", "exec", "execute_command"],
        "shell",
        vec![
            ("command", Argument::Command),
            ("cwd", Argument::Cwd),
            ("env", Argument::Env),
            ("stdin", Argument::Stdin),
        ],
    );
    let unwrap = Unwrap { name: pointer("name"), arguments: pointer("arguments"), within: None };
    catalogue.tools.insert("call_tool".to_owned(), Tool { unwrap: Some(unwrap), ..Tool::default() });
    let dialects = [None, Some(Dialect::Postgres), Some(Dialect::MySql), Some(Dialect::Sqlite)];
    for (name, dialect) in ["query", "pg_query", "my_query", "lite_query"].into_iter().zip(dialects) {
        let tool = Tool { dialect, arguments: vec![(pointer("sql"), Argument::Sql)], ..Tool::default() };
        catalogue.tools.insert(name.to_owned(), tool);
    }
    // A program and its arguments, which no shell reads; the program alone may be a whole text.
    if let Some(exec) = catalogue.tools.get_mut("exec") {
        exec.argv = Some(vec!["/command".to_owned(), "/args/*".to_owned()]);
    }
    catalogue
}

fn pointer(at: &str) -> Pointer {
    Pointer(at.split('/').map(Box::from).collect())
}

fn paths(argument: Argument) -> Vec<(&'static str, Argument)> {
    PATH_NAMES.iter().map(|name| (*name, argument.clone())).collect()
}

fn plus<'a>(mut arguments: Vec<(&'a str, Argument)>, more: &[(&'a str, Argument)]) -> Vec<(&'a str, Argument)> {
    arguments.extend_from_slice(more);
    arguments
}

fn path(access: Access) -> Argument {
    Argument::Path { access: Some(access), recursive: false, missing: None, base: None, keep_last: false }
}

/// Judged with the last component kept and followed.
fn kept(access: Access) -> Argument {
    Argument::Path { access: Some(access), recursive: false, missing: None, base: None, keep_last: true }
}

/// Read, and the root where it is left out.
fn with_root(recursive: bool) -> Argument {
    Argument::Path {
        access: Some(Access::Read),
        recursive,
        missing: Some(".".to_owned()),
        base: None,
        keep_last: false,
    }
}

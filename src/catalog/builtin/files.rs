//! Servers whose arguments are files: the reference file server, git, the built-in workspace.

use super::{COMMAND, CWD, DELETE, GLOB, Line, Mark, READ, Server, TEXT, WRITE, tool};

/// `@modelcontextprotocol/server-filesystem`.
pub(super) const FILESYSTEM: Server = Server {
    name: "filesystem",
    category: "filesystem",
    tools: &[
        tool("read_file", &[("/path", READ)]),
        tool("read_text_file", &[("/path", READ)]),
        tool("read_media_file", &[("/path", READ)]),
        tool("read_multiple_files", &[("/paths/*", READ)]),
        tool("write_file", &[("/path", WRITE), ("/content", TEXT)]).whole("/path", "/content"),
        // Answers with the difference, also where `dryRun` has nothing written.
        tool("edit_file", &[("/path", READ), ("/path", WRITE), ("/edits/*/oldText", TEXT), ("/edits/*/newText", TEXT)])
            .replaced("/path", Some("/edits"), "oldText", "newText"),
        tool("create_directory", &[("/path", WRITE)]),
        tool("list_directory", &[("/path", READ)]),
        tool("list_directory_with_sizes", &[("/path", READ), ("/sortBy", TEXT)]),
        tool("directory_tree", &[("/path", READ.recursive()), ("/excludePatterns/*", TEXT)]),
        tool("move_file", &[("/source", DELETE), ("/destination", WRITE.keep_last())]),
        tool("search_files", &[("/path", READ.recursive()), ("/pattern", GLOB), ("/excludePatterns/*", TEXT)]),
        tool("get_file_info", &[("/path", READ)]),
        tool("list_allowed_directories", &[]).category("introspection"),
    ],
};

/// `mcp-server-git`. Revisions and branches are unmarked: one that starts with `-` would be an option of git, and
/// `HEAD:secrets/key.pem` names a file.
pub(super) const GIT: Server = Server {
    name: "git",
    category: "filesystem",
    tools: &[
        in_repository("git_status", &[("/repo_path", READ)]),
        // A diff or a commit shows the content of any file of the repository.
        in_repository("git_diff_unstaged", &[("/repo_path", READ.recursive())]),
        in_repository("git_diff_staged", &[("/repo_path", READ.recursive())]),
        in_repository("git_diff", &[("/repo_path", READ.recursive())]),
        in_repository("git_show", &[("/repo_path", READ.recursive())]),
        in_repository("git_log", &[("/repo_path", READ)]),
        in_repository("git_branch", &[("/repo_path", READ), ("/branch_type", TEXT)]),
        in_repository("git_commit", &[("/repo_path", WRITE), ("/message", TEXT)]),
        // To git these are patterns.
        in_repository("git_add", &[("/repo_path", WRITE), ("/files/*", GLOB)]),
        in_repository("git_reset", &[("/repo_path", WRITE)]),
        in_repository("git_create_branch", &[("/repo_path", WRITE)]),
        // Writes the files of the other branch anywhere in the repository.
        in_repository("git_checkout", &[("/repo_path", WRITE.recursive())]),
    ],
};

/// A tool of git.
const fn in_repository(name: &'static str, arguments: &'static [(&'static str, Mark)]) -> Line {
    tool(name, arguments).repository("/repo_path")
}

/// The built-in workspace.
pub(super) const WORKSPACE: Server = Server {
    name: "workspace",
    category: "filesystem",
    tools: &[
        tool("list_files", &[("/path", READ.recursive().missing("."))]).recursive_if("/recursive"),
        tool("read_file", &[("/path", READ)]),
        tool("write_file", &[("/path", WRITE), ("/content", TEXT)]).whole("/path", "/content"),
        // Tells whether a text is there.
        tool("edit_file", &[("/path", READ), ("/path", WRITE), ("/old_text", TEXT), ("/new_text", TEXT)])
            .replaced("/path", None, "old_text", "new_text"),
        tool("search_file", &[("/path", READ.recursive().missing(".")), ("/pattern", GLOB)]),
        tool("grep_files", &[("/path", READ.recursive().missing(".")), ("/pattern", TEXT)]),
        tool("execute_cmd", &[("/command", COMMAND), ("/cwd", CWD)]).category("shell"),
    ],
};

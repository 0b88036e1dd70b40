//! `mcp-shell-server`.

use super::{CWD, STDIN, Server, WORDS, tool};

pub(super) const SHELL: Server = Server {
    name: "shell",
    category: "shell",
    tools: &[tool("shell_execute", &[("/command", WORDS), ("/directory", CWD), ("/stdin", STDIN)])],
};

//! `mcp-shell-server`.

use super::{COMMAND, CWD, STDIN, Server, tool};

pub(super) const SHELL: Server = Server {
    name: "shell",
    category: "shell",
    tools: &[tool("shell_execute", &[("/command", COMMAND), ("/directory", CWD), ("/stdin", STDIN)])],
};

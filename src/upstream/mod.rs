//! Executors: child processes, Streamable HTTP servers, the built-in workspace.

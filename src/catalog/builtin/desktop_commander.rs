//! `@wonderwhy-er/desktop-commander`.

use super::{CODE, COMMAND, DELETE, GLOB, READ, Server, TEXT, WRITE, tool};

pub(super) const DESKTOP_COMMANDER: Server = Server {
    name: "desktop-commander",
    category: "filesystem",
    tools: &[
        tool("get_config", &[("/origin", TEXT)]).category("config"),
        // Unmarked: `allowedDirectories` and the like take paths.
        tool("set_config_value", &[("/key", TEXT), ("/origin", TEXT)]).category("config"),
        tool("read_file", &[("/path", READ), ("/sheet", TEXT), ("/range", TEXT), ("/origin", TEXT)]),
        tool("read_multiple_files", &[("/paths/*", READ)]),
        tool("write_file", &[("/path", WRITE), ("/content", TEXT), ("/mode", TEXT), ("/origin", TEXT)])
            .whole_unless("/path", "/content", "/mode", "append"),
        // Changes to a PDF start from `path`. Markdown is rendered in a browser, which loads the files that it names.
        tool(
            "write_pdf",
            &[
                ("/path", READ),
                ("/path", WRITE),
                ("/outputPath", WRITE),
                ("/content", CODE),
                ("/content/*/sourcePdfPath", READ),
            ],
        ),
        tool("create_directory", &[("/path", WRITE)]),
        // Two levels deep unless `depth` says otherwise.
        tool("list_directory", &[("/path", READ.recursive()), ("/origin", TEXT)]),
        tool("move_file", &[("/source", DELETE), ("/destination", WRITE.keep_last())]),
        tool(
            "start_search",
            &[
                ("/path", READ.recursive()),
                ("/pattern", TEXT),
                ("/searchType", TEXT),
                ("/filePattern", GLOB),
                ("/origin", TEXT),
            ],
        ),
        tool("get_more_search_results", &[("/sessionId", TEXT)]),
        tool("stop_search", &[("/sessionId", TEXT)]),
        tool("list_searches", &[]).category("introspection"),
        tool("get_file_info", &[("/path", READ)]),
        tool(
            "edit_block",
            &[
                ("/file_path", READ),
                ("/file_path", WRITE),
                ("/old_string", TEXT),
                ("/new_string", TEXT),
                ("/range", TEXT),
                ("/content", TEXT),
                ("/content/*/*", TEXT),
                ("/origin", TEXT),
            ],
        )
        .replaced("/file_path", None, "old_string", "new_string"),
        // `shell` is whatever program is to read the command.
        tool("start_process", &[("/command", COMMAND), ("/shell", CODE), ("/origin", TEXT)]).category("shell"),
        // Typed into a shell or an interpreter that was left in a state nobody knows.
        tool("interact_with_process", &[("/input", CODE)]).category("shell"),
        tool("read_process_output", &[]).category("shell"),
        tool("force_terminate", &[]).category("shell"),
        tool("kill_process", &[]).category("shell"),
        tool("list_sessions", &[]).category("introspection"),
        tool("list_processes", &[]).category("introspection"),
        tool("get_usage_stats", &[]).category("introspection"),
        tool("get_recent_tool_calls", &[("/toolName", TEXT), ("/since", TEXT)]).category("introspection"),
        tool("give_feedback_to_desktop_commander", &[]).category("other"),
        tool("get_prompts", &[("/action", TEXT), ("/promptId", TEXT)]).category("introspection"),
    ],
};

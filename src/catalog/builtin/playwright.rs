//! `@playwright/mcp`: a browser that can save to and read from this machine's files, which is never all that a call does.

use super::{CODE, Server, TEXT, URL, USED, tool};

pub(super) const PLAYWRIGHT: Server = Server {
    name: "playwright",
    category: "network",
    tools: &[
        tool("browser_close", &[]),
        tool("browser_resize", &[]),
        tool("browser_console_messages", &[("/filename", USED), ("/level", TEXT)]),
        tool("browser_handle_dialog", &[("/promptText", TEXT)]),
        tool("browser_emulate_media", &[]),
        // Runs in the page, not on this machine.
        tool("browser_evaluate", &[("/filename", USED), ("/element", TEXT), ("/target", TEXT), ("/function", TEXT)]),
        tool("browser_file_upload", &[("/paths/*", USED)]),
        tool("browser_drop", &[("/paths/*", USED), ("/element", TEXT), ("/target", TEXT), ("/data/*", TEXT)]),
        tool("browser_find", &[("/filename", USED), ("/text", TEXT), ("/regex", TEXT)]),
        tool(
            "browser_fill_form",
            &[
                ("/fields/*/element", TEXT),
                ("/fields/*/target", TEXT),
                ("/fields/*/name", TEXT),
                ("/fields/*/type", TEXT),
                ("/fields/*/value", TEXT),
            ],
        ),
        tool("browser_press_key", &[("/key", TEXT)]),
        tool("browser_type", &[("/element", TEXT), ("/target", TEXT), ("/text", TEXT)]),
        tool("browser_navigate", &[("/url", URL)]),
        tool("browser_navigate_back", &[]),
        tool("browser_network_requests", &[("/filename", USED), ("/filter", TEXT)]),
        tool("browser_network_request", &[("/filename", USED), ("/part", TEXT)]),
        // Runs in the server's own process.
        tool("browser_run_code_unsafe", &[("/code", CODE), ("/filename", USED), ("/filename", CODE)]).category("shell"),
        tool("browser_take_screenshot", &[("/filename", USED), ("/element", TEXT), ("/target", TEXT), ("/type", TEXT)]),
        tool("browser_snapshot", &[("/filename", USED), ("/target", TEXT)]),
        tool("browser_click", &[("/element", TEXT), ("/target", TEXT), ("/modifiers/*", TEXT)]),
        tool(
            "browser_drag",
            &[("/startElement", TEXT), ("/startTarget", TEXT), ("/endElement", TEXT), ("/endTarget", TEXT)],
        ),
        tool("browser_hover", &[("/element", TEXT), ("/target", TEXT)]),
        tool("browser_select_option", &[("/element", TEXT), ("/target", TEXT), ("/values/*", TEXT)]),
        tool("browser_tabs", &[("/url", URL), ("/action", TEXT)]),
        tool("browser_wait_for", &[("/text", TEXT), ("/textGone", TEXT)]),
    ],
};

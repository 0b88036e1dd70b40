//! Servers that keep nothing in this machine's files: web, code hosting, databases, memory and demonstrations.

use super::{Dialect, READ, SQL, Server, TEXT, URL, USED, WRITE, tool};

/// `mcp-server-fetch`.
pub(super) const FETCH: Server =
    Server { name: "fetch", category: "network", tools: &[tool("fetch", &[("/url", URL)])] };

/// `@modelcontextprotocol/server-github`. Paths are names in a repository: say `filesystem: none`.
pub(super) const GITHUB: Server = Server {
    name: "github",
    category: "network",
    tools: &[
        tool(
            "create_or_update_file",
            &[
                ("/path", WRITE),
                ("/content", TEXT),
                ("/owner", TEXT),
                ("/repo", TEXT),
                ("/message", TEXT),
                ("/branch", TEXT),
                ("/sha", TEXT),
            ],
        ),
        tool("get_file_contents", &[("/path", READ), ("/owner", TEXT), ("/repo", TEXT), ("/branch", TEXT)]),
        tool(
            "push_files",
            &[
                ("/files/*/path", WRITE),
                ("/files/*/content", TEXT),
                ("/owner", TEXT),
                ("/repo", TEXT),
                ("/branch", TEXT),
                ("/message", TEXT),
            ],
        ),
        tool(
            "create_pull_request_review",
            &[
                ("/comments/*/path", USED),
                ("/comments/*/body", TEXT),
                ("/owner", TEXT),
                ("/repo", TEXT),
                ("/commit_id", TEXT),
                ("/body", TEXT),
                ("/event", TEXT),
            ],
        ),
        tool("search_repositories", &[("/query", TEXT)]),
        tool("search_code", &[("/q", TEXT), ("/order", TEXT)]),
        tool("search_issues", &[("/q", TEXT), ("/order", TEXT), ("/sort", TEXT)]),
        tool("search_users", &[("/q", TEXT), ("/order", TEXT), ("/sort", TEXT)]),
        tool("create_repository", &[("/name", TEXT), ("/description", TEXT)]),
        tool("fork_repository", &[("/owner", TEXT), ("/repo", TEXT), ("/organization", TEXT)]),
        tool("create_branch", &[("/owner", TEXT), ("/repo", TEXT), ("/branch", TEXT), ("/from_branch", TEXT)]),
        tool("list_commits", &[("/owner", TEXT), ("/repo", TEXT), ("/sha", TEXT)]),
        tool(
            "list_issues",
            &[
                ("/owner", TEXT),
                ("/repo", TEXT),
                ("/labels/*", TEXT),
                ("/direction", TEXT),
                ("/since", TEXT),
                ("/sort", TEXT),
                ("/state", TEXT),
            ],
        ),
        tool(
            "create_issue",
            &[
                ("/owner", TEXT),
                ("/repo", TEXT),
                ("/title", TEXT),
                ("/body", TEXT),
                ("/assignees/*", TEXT),
                ("/labels/*", TEXT),
            ],
        ),
        tool(
            "update_issue",
            &[
                ("/owner", TEXT),
                ("/repo", TEXT),
                ("/title", TEXT),
                ("/body", TEXT),
                ("/assignees/*", TEXT),
                ("/labels/*", TEXT),
                ("/state", TEXT),
            ],
        ),
        tool("add_issue_comment", &[("/owner", TEXT), ("/repo", TEXT), ("/body", TEXT)]),
        tool("get_issue", &[("/owner", TEXT), ("/repo", TEXT)]),
        tool(
            "create_pull_request",
            &[("/owner", TEXT), ("/repo", TEXT), ("/title", TEXT), ("/body", TEXT), ("/head", TEXT), ("/base", TEXT)],
        ),
        tool(
            "list_pull_requests",
            &[
                ("/owner", TEXT),
                ("/repo", TEXT),
                ("/state", TEXT),
                ("/head", TEXT),
                ("/base", TEXT),
                ("/sort", TEXT),
                ("/direction", TEXT),
            ],
        ),
        tool(
            "merge_pull_request",
            &[
                ("/owner", TEXT),
                ("/repo", TEXT),
                ("/commit_title", TEXT),
                ("/commit_message", TEXT),
                ("/merge_method", TEXT),
            ],
        ),
        tool("update_pull_request_branch", &[("/owner", TEXT), ("/repo", TEXT), ("/expected_head_sha", TEXT)]),
        tool("get_pull_request", &[("/owner", TEXT), ("/repo", TEXT)]),
        tool("get_pull_request_files", &[("/owner", TEXT), ("/repo", TEXT)]),
        tool("get_pull_request_status", &[("/owner", TEXT), ("/repo", TEXT)]),
        tool("get_pull_request_comments", &[("/owner", TEXT), ("/repo", TEXT)]),
        tool("get_pull_request_reviews", &[("/owner", TEXT), ("/repo", TEXT)]),
    ],
};

/// `mcp-server-sqlite`.
pub(super) const SQLITE: Server = Server {
    name: "sqlite",
    category: "other",
    tools: &[
        tool("read_query", &[("/query", SQL)]).dialect(Dialect::Sqlite),
        tool("write_query", &[("/query", SQL)]).dialect(Dialect::Sqlite),
        tool("create_table", &[("/query", SQL)]).dialect(Dialect::Sqlite),
        tool("list_tables", &[]).category("introspection"),
        tool("describe_table", &[("/table_name", TEXT)]).category("introspection"),
        tool("append_insight", &[("/insight", TEXT)]),
    ],
};

/// `@modelcontextprotocol/server-memory`.
pub(super) const MEMORY: Server = Server {
    name: "memory",
    category: "other",
    tools: &[
        tool(
            "create_entities",
            &[("/entities/*/name", TEXT), ("/entities/*/entityType", TEXT), ("/entities/*/observations/*", TEXT)],
        ),
        tool(
            "create_relations",
            &[("/relations/*/from", TEXT), ("/relations/*/to", TEXT), ("/relations/*/relationType", TEXT)],
        ),
        tool("add_observations", &[("/observations/*/entityName", TEXT), ("/observations/*/contents/*", TEXT)]),
        tool("delete_entities", &[("/entityNames/*", TEXT)]),
        tool("delete_observations", &[("/deletions/*/entityName", TEXT), ("/deletions/*/observations/*", TEXT)]),
        tool(
            "delete_relations",
            &[("/relations/*/from", TEXT), ("/relations/*/to", TEXT), ("/relations/*/relationType", TEXT)],
        ),
        tool("read_graph", &[]),
        tool("search_nodes", &[("/query", TEXT)]),
        tool("open_nodes", &[("/names/*", TEXT)]),
    ],
};

/// `@upstash/context7-mcp`. A library's id looks like a path (`/org/project`) and is none.
pub(super) const CONTEXT7: Server = Server {
    name: "context7",
    category: "network",
    tools: &[
        tool("resolve-library-id", &[("/query", TEXT), ("/libraryName", TEXT)]),
        tool("query-docs", &[("/libraryId", TEXT), ("/query", TEXT)]),
    ],
};

/// `mcp-server-time`.
pub(super) const TIME: Server = Server {
    name: "time",
    category: "other",
    tools: &[
        tool("get_current_time", &[("/timezone", TEXT)]),
        tool("convert_time", &[("/source_timezone", TEXT), ("/time", TEXT), ("/target_timezone", TEXT)]),
    ],
};

/// `@modelcontextprotocol/server-sequential-thinking`.
pub(super) const SEQUENTIAL_THINKING: Server = Server {
    name: "sequential-thinking",
    category: "other",
    tools: &[tool(
        "sequentialthinking",
        &[
            ("/thought", TEXT),
            ("/nextThoughtNeeded", TEXT),
            ("/isRevision", TEXT),
            ("/needsMoreThoughts", TEXT),
            ("/branchId", TEXT),
        ],
    )],
};

/// `@modelcontextprotocol/server-everything`.
pub(super) const EVERYTHING: Server = Server {
    name: "everything",
    category: "other",
    tools: &[
        tool("echo", &[("/message", TEXT)]),
        tool("get-annotated-message", &[("/messageType", TEXT)]),
        tool("get-env", &[]).category("introspection"),
        tool("get-resource-links", &[]),
        tool("get-resource-reference", &[("/resourceType", TEXT)]),
        tool("get-structured-content", &[("/location", TEXT)]),
        tool("get-sum", &[]),
        tool("get-tiny-image", &[]),
        tool("gzip-file-as-resource", &[("/data", URL), ("/name", TEXT), ("/outputType", TEXT)]).category("network"),
        tool("toggle-simulated-logging", &[]).category("config"),
        tool("toggle-subscriber-updates", &[]).category("config"),
        tool("trigger-long-running-operation", &[]),
        tool("simulate-research-query", &[("/topic", TEXT)]),
    ],
};

//! `mcp-server-kubernetes`: files here that `kubectl` and `helm` change a cluster by, commands that run in a pod or here.
//! Names of resources stay unmarked, since they become words of a command line.

use super::{CODE, Line, Mark, Server, TEXT, URL, USED, tool};

/// A file or a folder of them; left out, the manifest is in the call.
const FILES: Mark = USED.recursive().missing("");

pub(super) const KUBERNETES: Server = Server {
    name: "kubernetes",
    category: "network",
    tools: &[
        plain("cleanup"),
        plain("kubectl_get"),
        plain("kubectl_describe"),
        tool("kubectl_apply", &[("/filename", FILES), ("/manifest", TEXT)]),
        tool("kubectl_delete", &[("/filename", FILES), ("/manifest", TEXT)]),
        // `fromFile` holds `key=path`; its name says so, and it asks.
        tool(
            "kubectl_create",
            &[
                ("/filename", FILES),
                ("/manifest", TEXT),
                ("/command", CODE),
                ("/fromLiteral/*", TEXT),
                ("/fromFileContent/*/key", TEXT),
                ("/fromFileContent/*/content", TEXT),
            ],
        ),
        plain("kubectl_logs"),
        plain("kubectl_scale"),
        tool("kubectl_patch", &[("/patchFile", USED)]),
        plain("kubectl_rollout"),
        plain("kubectl_context").category("config"),
        plain("kubectl_reconnect"),
        plain("explain_resource").category("introspection"),
        // A chart is a name, a folder or a URL.
        tool("install_helm_chart", &[("/chart", USED.recursive()), ("/repo", URL), ("/valuesFile", USED)]),
        tool("upgrade_helm_chart", &[("/chart", USED.recursive()), ("/repo", URL), ("/valuesFile", USED)]),
        plain("uninstall_helm_chart"),
        plain("node_management"),
        plain("port_forward"),
        plain("stop_port_forward"),
        tool("exec_in_pod", &[("/command", CODE)]).category("shell"),
        plain("list_api_resources").category("introspection"),
        plain("kubectl_generic").category("shell").argv(&[
            "kubectl",
            "/command",
            "/subCommand",
            "/resourceType",
            "/name",
            "/flags/*",
            "/args/*",
        ]),
        plain("ping").category("introspection"),
    ],
};

const fn plain(name: &'static str) -> Line {
    tool(name, &[])
}

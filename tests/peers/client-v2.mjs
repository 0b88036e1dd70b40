// Drives the TypeScript client of the 2.x line (`@modelcontextprotocol/client`). See README.md for the job and its answers.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { drive } from "./drive.mjs";

const MODES = { legacy: "legacy", auto: "auto", modern: { pin: "2026-07-28" } };

await drive({
  StdioClientTransport,
  StreamableHTTPClientTransport,
  connect: async (job, info, options, transport, handlers) => {
    const client = new Client(info, { ...options, versionNegotiation: { mode: MODES[job.era ?? "auto"] } });
    client.setRequestHandler("sampling/createMessage", handlers.sample);
    client.setRequestHandler("elicitation/create", handlers.elicit);
    client.setRequestHandler("roots/list", handlers.roots);
    client.setNotificationHandler("notifications/message", handlers.log);
    await client.connect(transport);
    return { client, version: client.getNegotiatedProtocolVersion() };
  },
  callTool: (client, params, options) => client.callTool(params, options),
});

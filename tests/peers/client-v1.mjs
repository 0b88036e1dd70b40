// Drives the TypeScript client of the 1.x line (`@modelcontextprotocol/sdk`). See README.md for the job and its answers.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { drive } from "./drive.mjs";

await drive({
  StdioClientTransport,
  StreamableHTTPClientTransport,
  connect: async (_job, info, options, transport, handlers) => {
    const client = new Client(info, options);
    client.setRequestHandler(CreateMessageRequestSchema, handlers.sample);
    client.setRequestHandler(ElicitRequestSchema, handlers.elicit);
    client.setRequestHandler(ListRootsRequestSchema, handlers.roots);
    client.setNotificationHandler(LoggingMessageNotificationSchema, handlers.log);
    await client.connect(transport);
    return { client, version: transport.protocolVersion ?? "legacy" };
  },
  callTool: (client, params, options) => client.callTool(params, undefined, options),
});

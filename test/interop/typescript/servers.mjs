// MCP servers over Streamable HTTP of the official TypeScript SDKs, each with one tool, deploy, that asks
// before it does anything. It prints its URL.
//
//   node servers.mjs server    version 2 of the SDK: 2026-07-28, questions in results
//   node servers.mjs sdk       version 1: a session, questions as requests of the server

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

const requestedSchema = { type: "object", properties: { sure: { type: "boolean" } }, required: ["sure"] };
const question = { message: "Deploy to production?", requestedSchema };
const told = (answer, how) => ({
  content: [{ type: "text", text: `${answer?.action === "accept" && answer.content?.sure ? "deployed" : `not deployed: ${answer?.action}`}, ${how}` }],
});
const about = { name: "docs", version: "1" };
const tool = { description: "Deploys.", inputSchema: { type: "object", properties: {} } };

let serve;
if (process.argv[2] === "server") {
  const { createMcpHandler, inputRequired, Server } = await import("@modelcontextprotocol/server");
  const handler = createMcpHandler(({ era }) => {
    const server = new Server(about, { capabilities: { tools: {} } });
    server.setRequestHandler("tools/list", () => ({ tools: [{ name: "deploy", ...tool }] }));
    server.setRequestHandler("tools/call", (_, context) => {
      const answer = context.mcpReq.inputResponses?.sure;
      return answer ? told(answer, era) : inputRequired({ inputRequests: { sure: inputRequired.elicit(question) } });
    });
    return server;
  });
  serve = async (req, res) => {
    const body = req.method === "POST" ? await read(req) : undefined;
    const answer = await handler.fetch(new Request(`http://${req.headers.host}${req.url}`, { method: req.method, headers: req.headers, body }));
    res.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body) for await (const part of answer.body) res.write(part);
    res.end();
  };
} else {
  const { Server } = await import("@modelcontextprotocol/sdk/server/index.js");
  const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const { CallToolRequestSchema, ListToolsRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
  const sessions = new Map();
  serve = async (req, res) => {
    let transport = sessions.get(req.headers["mcp-session-id"]);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (id) => sessions.set(id, transport) });
      const server = new Server(about, { capabilities: { tools: {} } });
      server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: "deploy", ...tool }] }));
      server.setRequestHandler(CallToolRequestSchema, async () => told(await server.elicitInput(question), "legacy"));
      await server.connect(transport);
    }
    await transport.handleRequest(req, res);
  };
}

async function read(req) {
  const parts = [];
  for await (const part of req) parts.push(part);
  return Buffer.concat(parts);
}

const http = createServer((req, res) => serve(req, res).catch((error) => res.writeHead(500).end(String(error))));
http.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${http.address().port}/mcp`));
process.on("SIGTERM", () => process.exit(0));

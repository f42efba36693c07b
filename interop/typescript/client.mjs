// The official TypeScript client, driven by JSON-RPC, a message a line: it connects,
// lists, calls, and hands questions and progress on. It closes its connection at the
// end of its standard input.
//
//   node client.mjs sdk '' '{"command":["codex-mcp"],"cwd":"/tmp","env":{},"asks":true}'
//   node client.mjs client auto '{…}'
//   node client.mjs client 2026-07-28 '{…}'

import { createInterface } from "node:readline";

const [name, mode, given] = process.argv.slice(2);
const setup = JSON.parse(given);

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const asked = new Map();
const running = new Map();
const ask = ({ params }) =>
  new Promise((resolve, reject) => {
    const id = `ask-${asked.size}`;
    asked.set(id, { resolve, reject });
    send({ id, method: "ask", params: { message: params.message } });
  });

const about = { name: "interop-typescript", version: "1" };
const capabilities = setup.asks ? { elicitation: {} } : {};
let client, Stdio, HTTP, elicit, callTool;
if (name === "sdk") {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
  client = new Client(about, { capabilities });
  [Stdio, HTTP, elicit] = [StdioClientTransport, StreamableHTTPClientTransport, ElicitRequestSchema];
  callTool = (params, options) => client.callTool(params, undefined, options);
} else {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
  client = new Client(about, { capabilities, versionNegotiation: { mode: mode === "auto" ? mode : { pin: mode } } });
  [Stdio, HTTP, elicit] = [StdioClientTransport, StreamableHTTPClientTransport, "elicitation/create"];
  callTool = (params, options) => client.callTool(params, options);
}
if (setup.asks) client.setRequestHandler(elicit, async (request) => ({ action: await ask(request) }));

const methods = {
  connect: async () => {
    const [command, ...args] = setup.command ?? [];
    const transport = setup.url
      ? new HTTP(new URL(setup.url), { requestInit: { headers: { Authorization: `Bearer ${setup.token}` } } })
      : new Stdio({ command, args, cwd: setup.cwd, env: setup.env, stderr: "inherit" });
    await client.connect(transport);
    return {};
  },
  list: () => client.listTools(),
  call: ({ tool, arguments: args, progress }, signal) => {
    const options = { signal };
    if (progress) options.onprogress = (params) => send({ method: "progress", params });
    return callTool({ name: tool, arguments: args }, options);
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === "notifications/cancelled") {
    running.get(params.requestId)?.abort("enough");
  } else if (method) {
    const end = new AbortController();
    running.set(id, end);
    methods[method](params, end.signal).then(
      (result) => send({ id, result }),
      (error) => send({ id, error: { code: -32000, message: String(error) } }),
    );
  } else if (error) {
    asked.get(id).reject(new Error("the form is broken"));
  } else {
    asked.get(id).resolve(result);
  }
}
await client.close();
process.exit(0);

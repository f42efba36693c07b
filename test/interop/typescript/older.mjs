// The official TypeScript client of MCP 2025-03-26, the only version with batches: it connects, calls
// a tool, sends a batch, and prints what it got.
//
//   node older.mjs '{"command":["codex-mcp"],"cwd":"/tmp","env":{}}'
//   node older.mjs '{"url":"http://…","token":"…"}'

import { Client } from "sdk-2025-03-26/client/index.js";
import { StdioClientTransport } from "sdk-2025-03-26/client/stdio.js";
import { StreamableHTTPClientTransport } from "sdk-2025-03-26/client/streamableHttp.js";
import { LATEST_PROTOCOL_VERSION } from "sdk-2025-03-26/types.js";

const setup = JSON.parse(process.argv[2]);
const [command, ...args] = setup.command ?? [];
const transport = setup.url
  ? new StreamableHTTPClientTransport(new URL(setup.url), { requestInit: { headers: { Authorization: `Bearer ${setup.token}` } } })
  : new StdioClientTransport({ command, args, cwd: setup.cwd, env: setup.env, stderr: "inherit" });
const seen = { asked: LATEST_PROTOCOL_VERSION, answers: [], unread: 0 };
const client = new Client({ name: "interop-older", version: "1" });
try {
  await client.connect(transport);
  seen.tools = (await client.listTools()).tools.length;
  const result = await client.callTool({ name: "codex", arguments: { prompt: "hello", cwd: setup.cwd } });
  seen.text = result.content[0].text;

  // The client has no method for batches, but its transport sends them.
  const done = new Promise((resolve) => {
    const pass = transport.onmessage;
    transport.onmessage = (message, extra) => {
      if (!String(message.id).startsWith("b")) return pass(message, extra);
      if (seen.answers.push(message.id) === 2) resolve();
    };
    transport.onerror = () => {
      seen.unread++; // it does not read an array
      resolve();
    };
  });
  await transport.send([
    { jsonrpc: "2.0", id: "b1", method: "ping" },
    { jsonrpc: "2.0", id: "b2", method: "tools/list" },
  ]);
  await done;
  await client.ping();
} catch (error) {
  seen.error = error.message;
}
seen.answers.sort();
console.log(JSON.stringify(seen));
await client.close();

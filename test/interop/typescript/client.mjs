// The official TypeScript client, driven by JSON-RPC, a message a line: it connects,
// lists, calls, and hands questions and progress on. It closes its connection at the
// end of its standard input.
//
//   node client.mjs sdk '' '{"command":["codex-mcp"],"cwd":"/tmp","env":{},"asks":true}'
//   node client.mjs client auto '{…}'
//   node client.mjs client 2026-07-28 '{…}'
//   node client.mjs ext-tasks 2026-07-28 '{…}'
//
// With ext-tasks it calls tools with the official client for tasks, on top of the client of
// version 2.

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
let client, Stdio, HTTP, elicit, callTool, transport;
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
client.onerror = (error) => send({ method: "trouble", params: { message: String(error) } });
if (setup.asks && name !== "ext-tasks") client.setRequestHandler(elicit, ask);

const methods = {
  connect: async () => {
    const [command, ...args] = setup.command ?? [];
    transport = setup.url
      ? new HTTP(new URL(setup.url), { requestInit: { headers: { Authorization: `Bearer ${setup.token}` } } })
      : new Stdio({ command, args, cwd: setup.cwd, env: setup.env, stderr: "inherit" });
    await client.connect(transport);
    if (name === "ext-tasks") await addTasks();
    return {};
  },
  list: () => client.listTools(),
  call: ({ tool, arguments: args, progress }, signal) => {
    const options = { signal };
    if (progress) options.onprogress = (params) => send({ method: "progress", params });
    return callTool({ name: tool, arguments: args }, options);
  },
};

// addTasks puts the client for tasks in place of the calls. It needs a host that sends
// requests whose results the SDK does not know, and finds their answers.
async function addTasks() {
  const { createTaskSessionFromClient, resultFromTaskOutcome } = await import("@modelcontextprotocol/ext-tasks/client");
  const open = new Map();
  const { onmessage } = transport;
  transport.onmessage = (message, extra) => {
    const answer = message.method ? undefined : open.get(message.id);
    open.delete(message.id);
    if (!answer) onmessage(message, extra);
    else if (message.error) answer({ kind: "error", error: message.error });
    else answer({ kind: "result", result: message.result });
  };
  let last = 0;
  const rawDispatch = (request, { signal, context } = {}) =>
    new Promise((resolve, reject) => {
      const id = `raw-${++last}`;
      open.set(id, resolve);
      signal?.addEventListener("abort", () => open.delete(id) && reject(signal.reason));
      transport.send({ jsonrpc: "2.0", id, ...request }, { requestSignal: signal, headers: context?.headers }).catch(reject);
    });
  let holds = false;
  const session = createTaskSessionFromClient(client, {
    endpointId: "codex-mcp",
    rawDispatch,
    v2RequestFraming: { protocolVersion: mode, clientInfo: about, clientCapabilities: capabilities },
    onInputRequest: async (request) => (holds ? new Promise(() => {}) : await ask(request)),
  });
  // The list of tools says which argument a header mirrors.
  const begin = ({ tool, arguments: args }) =>
    session.callTool(tool, args, setup.url && args.threadId ? { headers: { "Mcp-Param-Thread-Id": args.threadId } } : {});
  const settle = async (execution) => resultFromTaskOutcome((await execution.settle()).outcome);
  methods.call = async (params, signal) => {
    const execution = await begin(params);
    const cancel = () => execution.cancel().catch(() => {});
    if (signal.aborted) cancel();
    signal.addEventListener("abort", cancel);
    return settle(execution);
  };
  // begin leaves a task with its question open and returns a reference to it.
  methods.begin = async (params) => {
    holds = true;
    const execution = await begin(params);
    const { promise, resolve } = Promise.withResolvers();
    await execution.handoff(resolve);
    return promise;
  };
  methods.resume = async (reference) => {
    holds = false;
    return settle(await session.resumeTask(reference));
  };
}

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
    const filled = !["accept", "decline", "cancel"].includes(result); // a decision in the form
    asked.get(id).resolve(filled ? { action: "accept", content: { decision: result } } : { action: result });
  }
}
await client.close();
process.exit(0);

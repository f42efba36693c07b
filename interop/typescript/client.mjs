// Plays one script with the official TypeScript client and prints what it saw
// as one line of JSON. A line on standard input cancels the call that is to be
// cancelled. The script and the report are those of clients_test.go.
//
//   node client.mjs '{"command":["codex-mcp"],"cwd":"/tmp","env":{},"answer":"accept","calls":[…]}'

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const script = JSON.parse(process.argv[2]);
const report = { server: "", tools: [], asked: [], progress: [], results: [] };

const client = new Client(
  { name: "interop-typescript", version: "1" },
  { capabilities: script.answer ? { elicitation: {} } : {} },
);
if (script.answer) {
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    report.asked.push(params.message);
    if (script.answer === "error") throw new Error("the form is broken");
    return { action: script.answer };
  });
}

const enough = new AbortController();
process.stdin.once("data", () => enough.abort("enough"));

const [command, ...args] = script.command;
await client.connect(new StdioClientTransport({ command, args, cwd: script.cwd, env: script.env, stderr: "inherit" }));
report.server = client.getServerVersion().name;

if (script.list) {
  report.tools = (await client.listTools()).tools.map((tool) => tool.name);
}
let threadId;
for (const call of script.calls ?? []) {
  const params = { name: call.tool, arguments: { ...call.arguments, ...(call.reply && { threadId }) } };
  const options = {};
  if (call.cancel) options.signal = enough.signal;
  if (call.progress) options.onprogress = ({ progress, message }) => report.progress.push({ progress, message });
  try {
    const result = await client.callTool(params, undefined, options);
    threadId = result.structuredContent?.threadId ?? "";
    report.results.push({ text: result.content.map((c) => c.text), isError: result.isError ?? false, threadId });
  } catch (error) {
    report.results.push({ failed: String(error) });
  }
}

await client.close();
console.log(JSON.stringify(report));
process.exit(0);

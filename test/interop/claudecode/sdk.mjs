// A program with the Agent SDK, as people write them: it has no person to ask.
//
//	node sdk.mjs declines|accepts PROMPT
//
// What declines is the SDK, since nothing handles its questions; accepts is a handler that reads none.
import { query } from "@anthropic-ai/claude-agent-sdk";

const [way, prompt] = process.argv.slice(2);
const options = { settingSources: ["user"], permissionMode: "default" };
if (way === "accepts") options.onElicitation = async () => ({ action: "accept", content: {} });
for await (const message of query({ prompt, options })) {
  if (message.type === "result" && message.is_error) throw new Error(JSON.stringify(message));
}

// A program with the Agent SDK, as people write them.
//
//	node sdk.mjs declines|accepts|reads|waits PROMPT
//
// What declines is the SDK, since nothing handles its questions; accepts is a handler that reads none, reads one whose person
// accepts once the file $WORK/answer is there, and waits one whose person never answers: it says when the question is withdrawn.
import { query } from "@anthropic-ai/claude-agent-sdk";
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";

const [way, prompt] = process.argv.slice(2);
const options = { settingSources: ["user"], permissionMode: "default" };
const handlers = {
  accepts: async () => ({ action: "accept", content: {} }),
  reads: async () => {
    while (!existsSync(`${process.env.WORK}/answer`)) await setTimeout(100);
    return { action: "accept", content: {} };
  },
  waits: (_, { signal }) => new Promise((answer) => signal.addEventListener("abort", () => {
    console.log("withdrawn");
    answer({ action: "cancel" });
  })),
};
if (way in handlers) options.onElicitation = handlers[way];
for await (const message of query({ prompt, options })) {
  if (message.type === "result" && message.is_error) throw new Error(JSON.stringify(message));
}

// A host made with a library: it gives the prompt to a model on loopback, which may call the
// tools of codex-mcp.
//
//	node sdk.mjs ai|agents MODEL-URL SETUP PROMPT
//
// SETUP is JSON: the server's command, cwd and env, and patient, which raises the limit of
// a call.
const [library, baseURL, encoded, prompt] = process.argv.slice(2);
const { patient, cwd, env, command: [command, ...args] } = JSON.parse(encoded);

const hosts = {
  async ai() {
    const { createMCPClient, ElicitationRequestSchema } = await import("@ai-sdk/mcp");
    const { Experimental_StdioMCPTransport } = await import("@ai-sdk/mcp/mcp-stdio");
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    const { isStepCount, streamText } = await import("ai");
    const client = await createMCPClient({
      transport: new Experimental_StdioMCPTransport({ command, args, cwd, env }),
      capabilities: { elicitation: {} },
    });
    try {
      client.onElicitationRequest(ElicitationRequestSchema, async () => ({ action: "accept", content: {} }));
      const model = createOpenAICompatible({ name: "mock", baseURL, apiKey: "none" })("mock-model");
      await streamText({ model, prompt, tools: await client.tools(), stopWhen: isStepCount(50), maxRetries: 0 }).text;
    } finally {
      await client.close();
    }
  },

  async agents() {
    const { Agent, MCPServerStdio, OpenAIProvider, Runner } = await import("@openai/agents");
    const server = new MCPServerStdio({ command, args, cwd, env, ...(patient ? { timeout: 3600000 } : {}) });
    await server.connect();
    try {
      const modelProvider = new OpenAIProvider({ baseURL, apiKey: "none", useResponses: false });
      const agent = new Agent({ name: "host", model: "mock-model", mcpServers: [server] });
      const run = await new Runner({ modelProvider, tracingDisabled: true }).run(agent, prompt, { stream: true, maxTurns: 50 });
      await run.completed;
    } finally {
      await server.close();
    }
  },
};

await hosts[library]();

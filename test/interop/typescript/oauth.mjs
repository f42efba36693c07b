// The official TypeScript client finds its way to a server through OAuth, from the
// address alone, and has a tool called, approving what is asked.
//
//   node oauth.mjs sdk URL CLIENT_ID REDIRECT_URL '{"name":"codex","arguments":{}}'
//   node oauth.mjs client URL CLIENT_ID REDIRECT_URL '{"name":"codex","arguments":{}}'

const [name, address, client_id, redirectUrl, call] = process.argv.slice(2);
const about = [{ name: "interop-oauth", version: "1" }, { capabilities: { elicitation: {} } }];
let client, Transport, elicit;
if (name === "sdk") {
  const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
  ({ StreamableHTTPClientTransport: Transport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js"));
  ({ ElicitRequestSchema: elicit } = await import("@modelcontextprotocol/sdk/types.js"));
  client = () => new Client(...about);
} else {
  const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  [Transport, elicit] = [StreamableHTTPClientTransport, "elicitation/create"];
  about[1].versionNegotiation = { mode: "auto" };
  client = () => new Client(...about);
}

let tokens, verifier, code, asked = 0;
const authProvider = {
  redirectUrl,
  clientMetadata: { redirect_uris: [redirectUrl], token_endpoint_auth_method: "none" },
  clientInformation: () => ({ client_id }),
  tokens: () => tokens,
  saveTokens: (given) => void (tokens = given),
  codeVerifier: () => verifier,
  saveCodeVerifier: (made) => void (verifier = made),
  // A browser whose user is signed in.
  redirectToAuthorization: async (url) => {
    const answer = await fetch(url, { redirect: "manual" });
    code = new URL(answer.headers.get("location")).searchParams.get("code");
  },
};

const connect = async () => {
  const transport = new Transport(new URL(address), { authProvider });
  const c = client();
  c.setRequestHandler(elicit, async () => (asked++, { action: "accept", content: { decision: "approved" } }));
  try {
    await c.connect(transport);
    return c;
  } catch (error) {
    if (!code) throw error;
    await transport.finishAuth(code);
    code = undefined;
    return connect();
  }
};

const c = await connect();
const result = name === "sdk" ? await c.callTool(JSON.parse(call), undefined) : await c.callTool(JSON.parse(call));
console.log(JSON.stringify({ asked, scope: tokens.scope, result }));
await c.close();
process.exit(0);

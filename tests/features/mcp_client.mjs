// A client of MCP version 2026-07-28, with the official SDK. The arguments are its `elicitation`
// capability and the server's command. A line of the input is {tool, arguments, content}: the call,
// and the content with which the client answers forms. A line of the output is {result, asked}: the
// result of the call, and what the server asked for. The first line is the list of tools.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const [elicitation, command, ...args] = process.argv.slice(2);
const capabilities = { elicitation: JSON.parse(elicitation) };
const client = new Client(
  { name: "test", version: "1.0.0" },
  { capabilities, versionNegotiation: { mode: { pin: "2026-07-28" } } },
);
let asked = [];
let content;
client.setRequestHandler("elicitation/create", async ({ params }) => {
  asked.push(params);
  return params.mode === "url" ? { action: "accept" } : { action: "accept", content };
});
const tell = (outcome) => console.log(JSON.stringify(outcome));
await client.connect(new StdioClientTransport({ command, args, env: process.env, stderr: "inherit" }));
tell({ era: client.getProtocolEra(), listed: await client.listTools() });
for await (const line of createInterface({ input: process.stdin })) {
  const call = JSON.parse(line);
  [asked, content] = [[], call.content];
  const calling = client.callTool({ name: call.tool, arguments: call.arguments });
  tell({ ...(await calling.then((result) => ({ result }), (error) => ({ error: String(error) }))), asked });
}
await client.close();

// An MCP server of version 2026-07-28, with the official SDK.
import { randomBytes } from "node:crypto";
import { McpServer, acceptedContent, createRequestStateCodec, inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod/v4";

const amount = { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] };
const codec = createRequestStateCodec({ key: randomBytes(32), ttlSeconds: 600 });
const text = (said) => ({ content: [{ type: "text", text: said }] });

function server() {
  const capabilities = { tools: {} };
  const options = { capabilities, requestState: { verify: codec.verify } };
  const server = new McpServer({ name: "rounds", version: "1.0.0" }, options);
  const tool = (name, description, input, run) =>
    server.registerTool(name, { description, inputSchema: z.object({ [input]: z.string() }) }, run);
  tool("echo", "Echoes a message.", "message", async ({ message }) => text(`Echo: ${message}`));
  tool("wipe", "Wipes a disk.", "disk", async ({ disk }) => text(`Wiped ${disk}`));
  tool("pay", "Asks for an amount, and pays it.", "payee", async ({ payee }, { mcpReq }) => {
    const given = acceptedContent(mcpReq.inputResponses, "amount", z.object({ amount: z.number() }));
    if (given && mcpReq.requestState()?.payee === payee) return text(`Paid ${given.amount} to ${payee}`);
    const asked = inputRequired.elicit({ message: "How much?", requestedSchema: amount });
    return inputRequired({ inputRequests: { amount: asked }, requestState: await codec.mint({ payee }) });
  });
  return server;
}

// Refuses the sessions of earlier versions.
serveStdio(server, { legacy: "reject" });

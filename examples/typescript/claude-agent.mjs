// An agent that pays invoices, with the Claude Agent SDK. Its tool runs only with a permit.
//
//     node claude-agent.mjs 1200     # pays at once
//     node claude-agent.mjs 25000    # waits for an approval, at most ten minutes
import { createSdkMcpServer, query, tool } from '@anthropic-ai/claude-agent-sdk';
import { guardAgent } from '@agent-authority/sdk/adapters/claude-agent';
import { Authority } from '@agent-authority/sdk/guard';
import { z } from 'zod';
import { startScriptedModel } from './scripted/claude-agent.mjs';

const amount = process.argv[2] ?? '1200';
const authority = Authority.fromEnv();
const scripted = process.env.ANTHROPIC_API_KEY ? undefined : await startScriptedModel(amount);

const input = { amount: z.number(), currency: z.string(), payee: z.string() };
const pay = tool('pay', 'Pays an invoice', input, async (args) => (
  { content: [{ type: 'text', text: `paid ${args.amount} ${args.currency} to ${args.payee}` }] }
));

const options = guardAgent(authority, {
  mcpServers: { bank: createSdkMcpServer({ name: 'bank', tools: [pay] }) },
  allowedTools: ['mcp__bank__pay'],
  tools: [],
  ...(scripted && { env: { ...process.env, ...scripted.env } }),
}, {
  actions: { mcp__bank__pay: 'payment.execute' },
  purpose: 'invoice-settlement',
  context: ({ arguments: args }) => ({ amount: args.amount, currency: args.currency, jurisdiction: 'DE' }),
  wait: '10m',
});
for await (const message of query({ prompt: `Pay ${amount} EUR to Northwind Ltd.`, options })) {
  if (message.type === 'result' && message.subtype === 'success') console.log(message.result);
}
scripted?.close();
await authority.flush();

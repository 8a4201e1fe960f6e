// An agent that pays invoices, with LangChain. Its tool runs only with a permit.
//
//     node langchain.mjs 1200     # pays at once
//     node langchain.mjs 25000    # waits for an approval, at most ten minutes
import { createAgent, tool } from 'langchain';
import { guardAgent } from '@agent-authority/sdk/adapters/langchain';
import { Authority } from '@agent-authority/sdk/guard';
import { z } from 'zod';
import { scriptedModel } from './scripted/langchain.mjs';

const amount = process.argv[2] ?? '1200';
const authority = Authority.fromEnv();

const pay = tool(async (args) => `paid ${args.amount} ${args.currency} to ${args.payee}`, {
  name: 'pay',
  description: 'Pays an invoice',
  schema: z.object({ amount: z.number(), currency: z.string(), payee: z.string() }),
});

const agent = createAgent(guardAgent(authority, {
  model: process.env.OPENAI_API_KEY ? 'openai:gpt-5' : scriptedModel(amount),
  tools: [pay],
}, {
  actions: { pay: 'payment.execute' },
  purpose: 'invoice-settlement',
  context: ({ arguments: args }) => ({ amount: args.amount, currency: args.currency, jurisdiction: 'DE' }),
  wait: '10m',
}));
const prompt = { role: 'user', content: `Pay ${amount} EUR to Northwind Ltd.` };
const { messages } = await agent.invoke({ messages: [prompt] });
console.log(messages.at(-1)?.text);
await authority.flush();

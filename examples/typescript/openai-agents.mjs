// An agent that pays invoices, with the OpenAI Agents SDK. Its tool runs only with a permit.
//
//     node openai-agents.mjs 1200     # pays at once
//     node openai-agents.mjs 25000    # waits for an approval, at most ten minutes
import { Agent, tool } from '@openai/agents';
import { guardedRunner } from '@agent-authority/sdk/adapters/openai-agents';
import { Authority } from '@agent-authority/sdk/guard';
import { z } from 'zod';
import { scriptedModel } from './scripted/openai-agents.mjs';

const amount = process.argv[2] ?? '1200';
const authority = Authority.fromEnv();

const pay = tool({
  name: 'pay',
  description: 'Pays an invoice',
  parameters: z.object({ amount: z.number(), currency: z.string(), payee: z.string() }),
  execute: async (args) => `paid ${args.amount} ${args.currency} to ${args.payee}`,
});

const agent = new Agent({
  name: 'Payer',
  model: process.env.OPENAI_API_KEY ? 'gpt-5' : scriptedModel(amount),
  tools: [pay],
});
const runner = guardedRunner(authority, {
  actions: { pay: 'payment.execute' },
  purpose: 'invoice-settlement',
  context: ({ arguments: args }) => ({ amount: args.amount, currency: args.currency, jurisdiction: 'DE' }),
  wait: '10m',
}, { tracingDisabled: !process.env.OPENAI_API_KEY });
const result = await runner.run(agent, `Pay ${amount} EUR to Northwind Ltd.`);
console.log(result.finalOutput);
await authority.flush();

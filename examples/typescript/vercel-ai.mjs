// An agent that pays invoices, with the Vercel AI SDK. Its tool runs only with a permit.
//
//     node vercel-ai.mjs 1200     # pays at once
//     node vercel-ai.mjs 25000    # waits for an approval, at most ten minutes
import { generateText, isStepCount, tool } from 'ai';
import { guardAgent } from '@agent-authority/sdk/adapters/vercel-ai';
import { Authority } from '@agent-authority/sdk/guard';
import { z } from 'zod';
import { scriptedModel } from './scripted/vercel-ai.mjs';

const amount = process.argv[2] ?? '1200';
const authority = Authority.fromEnv();

const pay = tool({
  description: 'Pays an invoice',
  inputSchema: z.object({ amount: z.number(), currency: z.string(), payee: z.string() }),
  execute: async (args) => `paid ${args.amount} ${args.currency} to ${args.payee}`,
});

const { text } = await generateText(guardAgent(authority, {
  model: process.env.OPENAI_API_KEY ? (await import('@ai-sdk/openai')).openai('gpt-5') : scriptedModel(amount),
  prompt: `Pay ${amount} EUR to Northwind Ltd.`,
  tools: { pay },
  stopWhen: isStepCount(5),
}, {
  actions: { pay: 'payment.execute' },
  purpose: 'invoice-settlement',
  context: ({ arguments: args }) => ({ amount: args.amount, currency: args.currency, jurisdiction: 'DE' }),
  wait: '10m',
}));
console.log(text);
await authority.flush();

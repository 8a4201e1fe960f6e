// Checked by the compiler with the frameworks' own types; never run.
import type { Options } from '@anthropic-ai/claude-agent-sdk';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { Agent } from '@openai/agents';
import { guardAgent as guardClaude } from '@agent-authority/sdk/adapters/claude-agent';
import { guardAgent as guardLangChain, guardTools } from '@agent-authority/sdk/adapters/langchain';
import { guardedRunner } from '@agent-authority/sdk/adapters/openai-agents';
import { guardAgent as guardVercel, wrapMcpTools } from '@agent-authority/sdk/adapters/vercel-ai';
import { Authority } from '@agent-authority/sdk/guard';
import { streamText, tool as vercelTool, ToolLoopAgent, type PrepareStepFunction } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { createAgent, createMiddleware, fakeModel, tool } from 'langchain';
import { z } from 'zod';

const authority = Authority.fromEnv();
const model = new MockLanguageModelV4();

const options: Options = {
  hooks: { PreToolUse: [{ hooks: [async () => ({})] }] },
  canUseTool: async (_name, input) => ({ behavior: 'allow', updatedInput: input }),
};
export const guarded: Options = guardClaude(authority, options);

const pay = tool(async ({ amount }) => amount, { name: 'pay', description: '', schema: z.object({ amount: z.number() }) });
const middleware = [createMiddleware({ name: 'other' })];
export const agent = createAgent(guardLangChain(authority, { model: fakeModel(), tools: [pay], middleware }, {
  held: 'interrupt', wait: '10m',
}));
export const node = new ToolNode(guardTools(authority, [pay]));

const tools = { pay: vercelTool({ inputSchema: z.object({ amount: z.number() }), execute: async ({ amount }) => amount }) };
const prepareStep: PrepareStepFunction<typeof tools> = () => ({ activeTools: ['pay'] });
export const loop = new ToolLoopAgent(guardVercel(authority, { model, tools, prepareStep }));
export const stream = streamText(guardVercel(authority, { model, tools, prompt: '' }));
export const { pay: wrapped } = wrapMcpTools(authority, tools, { actions: { pay: 'payment.execute' } });

const result = await guardedRunner(authority, { held: 'interrupt' }).run(new Agent({ name: 'Payer' }), '');
export const output: string | undefined = result.finalOutput;

// @ts-expect-error A purpose can't come from a call.
guardVercel(authority, { model }, { purpose: (call: { arguments: { purpose: string } }) => call.arguments.purpose });
// @ts-expect-error Only the authority has a subject.
guardVercel(authority, { model }, { subject: 'svc:agent:acme:other' });

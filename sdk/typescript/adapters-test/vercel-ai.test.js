import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  dynamicTool, generateText, isStepCount, streamText, tool as defineTool, ToolLoopAgent, toolSearch,
} from 'ai';
import { experimental_toolCaller } from '@ai-sdk/provider-utils';
import { MockLanguageModelV4 } from 'ai/test';
import { guardAgent, wrapMcpTools } from '@agent-authority/sdk/adapters/vercel-ai';
import { z } from 'zod';
import { options, testCommon, tool, until } from './common.js';
import { createWorld } from './world.js';

const world = await createWorld(`vercel${Date.now()}`);
const { authority } = world;
const small = { amount: 1200, currency: 'EUR' };
const schema = z.object({ amount: z.number(), currency: z.string() });
const usage = { inputTokens: { total: 1, noCache: 1 }, outputTokens: { total: 1, text: 1 } };

/** A model that calls one tool, and then answers. */
function scriptedModel(call = { toolName: 'pay', args: small }, read = () => {}) {
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt, tools }) => {
      const last = prompt.at(-1);
      if (last.role === 'tool') {
        read(JSON.stringify(last.content[0].output), tools);
        return { content: [{ type: 'text', text: 'done' }], finishReason: { unified: 'stop' }, usage, warnings: [] };
      }
      const content = [{ type: 'tool-call', toolCallId: 'call-1', toolName: call.toolName, input: JSON.stringify(call.args), ...call.extra }];
      return { content, finishReason: { unified: 'tool-calls' }, usage, warnings: [] };
    },
  });
}

const payTool = (body, more = {}) => defineTool({
  description: 'Pays', inputSchema: schema, execute: (args, { abortSignal }) => body(args, abortSignal), ...more,
});

testCommon(world, async ({ authority: given, options: guardOptions, tool: body, args }) => {
  let seen;
  const model = scriptedModel({ toolName: 'pay', args }, (text) => { seen = text; });
  await generateText(guardAgent(given, {
    model, prompt: 'Pay the invoice.', stopWhen: isStepCount(3), tools: { pay: payTool(body) },
  }, guardOptions));
  return seen;
});

const generate = (settings, more = {}) => generateText(guardAgent(
  authority, { prompt: 'Pay the invoice.', stopWhen: isStepCount(3), ...settings }, { ...options, ...more },
));

const webSearch = { type: 'provider', id: 'openai.web_search', isProviderExecuted: true, args: {}, inputSchema: z.object({}) };

test('a tool of the provider is refused at start, unless it is in `unguarded`', async () => {
  const tools = { pay: payTool(tool()), web_search: webSearch };
  assert.throws(() => guardAgent(authority, { model: scriptedModel(), tools }), /without a guard: web_search/);
  await generate({ model: scriptedModel(), tools }, { unguarded: ['web_search'] });
});

test('a tool that the client runs is refused at start', () => {
  const tools = { pay: defineTool({ inputSchema: schema }) };
  assert.throws(() => guardAgent(authority, { model: scriptedModel(), tools }), /without a guard: pay/);
});

test('tools whose `execute` the SDK replaces are refused at start', () => {
  const caller = experimental_toolCaller(payTool(tool()), { type: 'local', bind: () => payTool(tool()) });
  for (const search of [toolSearch(), caller]) {
    assert.throws(() => guardAgent(authority, { model: scriptedModel(), tools: { search } }), /without a guard: search/);
    guardAgent(authority, { model: scriptedModel(), tools: { search } }, { unguarded: ['search'] });
  }
});

test('MCP servers at the provider are refused', async () => {
  const providerOptions = { anthropic: { mcpServers: [{ type: 'url', name: 'bank', url: 'https://bank.example/mcp' }] } };
  const settings = { model: scriptedModel(), tools: { pay: payTool(tool()) }, providerOptions };
  await assert.rejects(generate(settings), /without a guard: bank/);
});

test('a call that the provider ran by itself ends the run', async () => {
  const call = { toolName: 'code_execution', args: {}, extra: { providerExecuted: true, dynamic: true } };
  await assert.rejects(generate({ model: scriptedModel(call), tools: { pay: payTool(tool()) } }), /without a guard: code_execution/);
});

test('a tool that is added to guarded settings never reaches the model', async () => {
  const pay = tool();
  const settings = guardAgent(authority, { model: scriptedModel(), prompt: 'Pay.', tools: {} }, options);
  settings.tools.pay = payTool(pay);
  await assert.rejects(generateText(settings), /without a guard: pay/);
  assert.deepEqual(pay.calls, []);
});

test('tools of prepareCall and models of prepareStep are guarded', async () => {
  const pay = tool();
  const agent = new ToolLoopAgent(guardAgent(authority, {
    model: scriptedModel(),
    prepareCall: (call) => ({ ...call, tools: { pay: payTool(pay) } }),
    prepareStep: () => ({ model: scriptedModel({ toolName: 'pay', args: { ...small, currency: 'USD' } }) }),
  }, options));
  await agent.generate({ prompt: 'Pay the invoice.' });
  assert.deepEqual(pay.calls, []);
});

test('another agent that uses the guarded model can have only guarded tools', async () => {
  const pay = tool();
  const { model } = guardAgent(authority, { model: scriptedModel() }, options);
  const inner = () => generateText({ model, prompt: 'Pay.', tools: { pay: payTool(pay) } });
  const outer = payTool(async () => (await inner()).text);
  const { steps } = await generate({ model: scriptedModel(), tools: { pay: outer } });
  assert.match(String(steps[0].content[1].error), /without a guard: pay/);
  assert.deepEqual(pay.calls, []);
});

test('arguments that are changed while the call is held do not reach the tool', async () => {
  const pay = tool();
  const args = { amount: 28_000, currency: 'EUR' };
  let input;
  const running = generate({
    model: scriptedModel({ toolName: 'pay', args }), tools: { pay: payTool(pay) },
    onToolExecutionStart: ({ toolCall }) => { input = toolCall.input; },
  }, { wait: '60s' });
  await until(async () => (await world.pending()).length > 0);
  input.amount = 1;
  await world.approve();
  await running;
  assert.deepEqual(pay.calls, [args]);
});

test('a tool that changes its arguments fails', async () => {
  const pay = tool((args) => { args.amount = 1; });
  const { steps } = await generate({ model: scriptedModel(), tools: { pay: payTool(pay) } });
  assert.match(String(steps[0].content[1].error), /read only/);
});

test('a tool that yields results returns the last one', async () => {
  let seen;
  const pay = payTool(async function* () { yield 'half'; yield 'whole'; });
  await generate({ model: scriptedModel(undefined, (text) => { seen = text; }), tools: { pay } });
  assert.match(seen, /whole/);
});

test('a streamed call is guarded', async () => {
  const pay = tool();
  const model = new MockLanguageModelV4({
    doStream: async () => ({
      stream: new ReadableStream({
        start(controller) {
          controller.enqueue({ type: 'stream-start', warnings: [] });
          controller.enqueue({ type: 'tool-call', toolCallId: 'call-1', toolName: 'pay', input: '{"amount":5,"currency":"USD"}' });
          controller.enqueue({ type: 'finish', finishReason: { unified: 'tool-calls' }, usage });
          controller.close();
        },
      }),
    }),
  });
  const result = streamText(guardAgent(authority, { model, prompt: 'Pay.', tools: { pay: payTool(pay) } }, options));
  const parts = [];
  for await (const part of result.fullStream) parts.push(part);
  assert.match(String(parts.find((part) => part.type === 'tool-error').error), /not permitted: constraint_exceeded/);
  assert.deepEqual(pay.calls, []);
});

test('a model must be an object', () => {
  assert.throws(() => guardAgent(authority, { model: 'openai/gpt-5' }), /must be an object/);
});

test('tools of an MCP server are denied unless they are in `actions`', async () => {
  const [pay, wipe] = [tool(), tool()];
  const mcp = {
    pay: dynamicTool({ inputSchema: schema, execute: (args) => pay(args) }),
    wipe: dynamicTool({ inputSchema: schema, execute: (args) => wipe(args) }),
  };
  const tools = wrapMcpTools(authority, mcp, options);
  const seen = [];
  for (const toolName of ['pay', 'wipe']) {
    const model = scriptedModel({ toolName, args: small }, (text) => seen.push(text));
    await generateText(guardAgent(authority, { model, prompt: 'Pay.', stopWhen: isStepCount(3), tools }));
  }
  assert.match(seen[0], /paid/);
  assert.match(seen[1], /not in .?actions/);
  assert.deepEqual([pay.calls, wipe.calls], [[small], []]);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  Agent, codeInterpreterTool, hostedMcpTool, Runner, RunState, tool as defineTool, toolNamespace, toolSearchTool, webSearchTool,
} from '@openai/agents';
import { assistantMessage, functionCall, ScriptedModel } from '@openai/agents-core/testing';
import { guardedRunner } from '@agent-authority/sdk/adapters/openai-agents';
import { z } from 'zod';
import { options, testCommon, tool, until } from './common.js';
import { createWorld } from './world.js';

const world = await createWorld(`openai${Date.now()}`);
const { authority } = world;
const small = { amount: 1200, currency: 'EUR' };
const foreign = { amount: 1200, currency: 'USD' };
const config = { tracingDisabled: true };

const payTool = (body, name = 'pay', more = {}) => defineTool({
  name, description: 'Pays', parameters: z.object({ amount: z.number(), currency: z.string() }),
  execute: (args, _context, details) => body(args, details?.signal), ...more,
});
const call = (args = small, name = 'pay', callId = 'call-1') => functionCall(name, args, { callId });
/** A model that calls one tool, and then answers. */
const scriptedModel = (args, name) => new ScriptedModel([[call(args, name)], [assistantMessage('done')]]);
const runner = (more = {}) => guardedRunner(authority, { ...options, ...more }, config);
const resultOf = ({ newItems }) => newItems.find((item) => item.type === 'tool_call_output_item')?.output;

testCommon(world, async ({ authority: given, options: guardOptions, tool: body, args }) => {
  const agent = new Agent({ name: 'Payer', model: scriptedModel(args), tools: [payTool(body)] });
  return resultOf(await guardedRunner(given, guardOptions, config).run(agent, 'Pay the invoice.'));
});

test('tools of the provider are refused at start, unless they are in `unguarded`', async () => {
  const hosted = [webSearchTool(), codeInterpreterTool(), hostedMcpTool({ serverLabel: 'bank', serverUrl: 'https://bank.example/mcp' })];
  const agent = new Agent({ name: 'Payer', model: scriptedModel(), tools: [payTool(tool()), ...hosted] });
  await assert.rejects(runner().run(agent, 'Pay.'), /without a guard: web_search, code_interpreter, hosted_mcp/);
  assert.equal(agent.model.calls.length, 0);
  const unguarded = hosted.map(({ name }) => name);
  assert.equal(resultOf(await runner({ unguarded }).run(agent, 'Pay.')), 'paid');
});

test('a search of the program, which loads tools without a guard, needs an entry of its own', async () => {
  const search = toolSearchTool({ execution: 'client', execute: async () => [] });
  const agent = new Agent({ name: 'Payer', model: scriptedModel(), tools: [payTool(tool()), search] });
  await assert.rejects(runner({ unguarded: ['tool_search'] }).run(agent, 'Pay.'), /without a guard: tool_search:client/);
});

test('a stored prompt, and tools in raw settings, are refused', async () => {
  const stored = new Agent({ name: 'Payer', model: scriptedModel(), prompt: { promptId: 'pmpt_1' } });
  await assert.rejects(runner().run(stored, 'Pay.'), /without a guard: prompt/);
  const raw = new Agent({ name: 'Payer', model: scriptedModel(), modelSettings: { providerData: { tools: [{ type: 'web_search' }] } } });
  await assert.rejects(runner().run(raw, 'Pay.'), /without a guard: modelSettings/);
});

test('a tool of the provider at an agent of a handoff is refused at start', async () => {
  const second = new Agent({ name: 'Second', model: scriptedModel(), tools: [webSearchTool()] });
  const first = new Agent({ name: 'First', model: scriptedModel(), handoffs: [second] });
  await assert.rejects(runner().run(first, 'Pay.'), /without a guard: web_search/);
});

test('a tool that is added during the run is guarded', async () => {
  const extra = tool();
  const agent = new Agent({ name: 'Payer', tools: [payTool(tool(() => { agent.tools.push(payTool(extra, 'extra')); }))] });
  agent.model = new ScriptedModel([[call()], [call(small, 'extra', 'call-2')], [assistantMessage('done')]]);
  const { newItems } = await runner({ actions: { ...options.actions, extra: 'bank.close' } }).run(agent, 'Pay.');
  const outputs = newItems.filter((item) => item.type === 'tool_call_output_item').map((item) => item.output);
  assert.match(outputs[1], /Denied/);
  assert.deepEqual(extra.calls, []);
});

test('a tool of the provider that is added during the run ends it', async () => {
  const agent = new Agent({ name: 'Payer', model: scriptedModel(), tools: [payTool(tool(() => { agent.tools.push(webSearchTool()); }))] });
  await assert.rejects(runner().run(agent, 'Pay.'), /without a guard: web_search/);
});

test('tools after a handoff are guarded', async () => {
  const pay = tool();
  const second = new Agent({ name: 'Second', model: scriptedModel(foreign), tools: [payTool(pay)] });
  const first = new Agent({ name: 'First', handoffs: [second] });
  first.model = new ScriptedModel([[functionCall('transfer_to_Second', {}, { callId: 'call-0' })]]);
  const { newItems } = await runner().run(first, 'Pay.');
  assert.match(resultOf({ newItems }), /constraint_exceeded/);
  assert.deepEqual(pay.calls, []);
});

test('an agent as a tool is guarded, and so are its tools', async () => {
  const pay = tool();
  const inner = new Agent({ name: 'Accountant', model: scriptedModel(foreign), tools: [payTool(pay)] });
  const outer = new Agent({
    name: 'Boss', model: scriptedModel({ input: 'Pay.' }, 'ask'), tools: [inner.asTool({ toolName: 'ask', toolDescription: 'Asks' })],
  });
  const facts = ({ name, arguments: args }) => (name === 'pay' ? options.context({ arguments: args }) : small);
  await runner({ context: facts }).run(outer, 'Pay.');
  assert.match(JSON.stringify(inner.model.calls[1].request.input), /constraint_exceeded/);
  assert.deepEqual(pay.calls, []);
  const actions = (await world.outcomes()).map(({ action }) => action);
  assert.deepEqual(actions.slice(0, 2).sort(), ['payment.execute', 'tool.ask']);
});

test('tools of an MCP server are guarded', async () => {
  const calls = [];
  const server = {
    name: 'bank', cacheToolsList: false, connect: async () => {}, close: async () => {}, invalidateToolsCache: async () => {},
    listTools: async () => [{ name: 'wipe', description: 'Wipes', inputSchema: { type: 'object', properties: {}, required: [], additionalProperties: false } }],
    callTool: async (name) => { calls.push(name); return [{ type: 'text', text: 'wiped' }]; },
  };
  const agent = new Agent({ name: 'Payer', model: scriptedModel({}, 'wipe'), mcpServers: [server] });
  const { newItems } = await runner({ context: undefined, actions: { wipe: 'bank.wipe' } }).run(agent, 'Wipe.');
  assert.match(JSON.stringify(resultOf({ newItems })), /Denied/);
  assert.deepEqual(calls, []);
});

test('tools in a namespace are guarded', async () => {
  const pay = tool();
  const tools = toolNamespace({ name: 'bank', description: 'The bank', tools: [payTool(pay)] });
  const model = new ScriptedModel([[functionCall('pay', foreign, { callId: 'call-1', namespace: 'bank' })], [assistantMessage('done')]]);
  const { newItems } = await runner().run(new Agent({ name: 'Payer', model, tools }), 'Pay.');
  assert.match(resultOf({ newItems }), /constraint_exceeded/);
  assert.deepEqual(pay.calls, []);
});

test('a streamed run is guarded', async () => {
  const pay = tool();
  const agent = new Agent({ name: 'Payer', model: scriptedModel(foreign), tools: [payTool(pay)] });
  const result = await runner().run(agent, 'Pay.', { stream: true });
  for await (const _ of result);
  assert.match(resultOf(result), /constraint_exceeded/);
  assert.deepEqual(pay.calls, []);
});

test('a tool runs as before in a run that is not guarded', async () => {
  const pay = tool();
  const shared = payTool(pay);
  const agent = () => new Agent({ name: 'Payer', model: scriptedModel(foreign), tools: [shared] });
  await runner().run(agent(), 'Pay.');
  assert.deepEqual(pay.calls, []);
  assert.equal(resultOf(await new Runner(config).run(agent(), 'Pay.')), 'paid');
});

test('arguments that are not JSON are refused', async () => {
  const pay = tool();
  const agent = new Agent({ name: 'Payer', model: scriptedModel('{"amount": 5'), tools: [payTool(pay)] });
  await runner().run(agent, 'Pay.').catch(() => {});
  assert.deepEqual(pay.calls, []);
});

/** Runs until the call is held, and returns the state as another process would read it. */
async function interrupted(pay, args) {
  const create = (model) => new Agent({ name: 'Payer', model, tools: [payTool(pay)] });
  const result = await runner({ held: 'interrupt' }).run(create(new ScriptedModel([[call(args)]])), 'Pay.', { context: {} });
  const agent = create(new ScriptedModel([[assistantMessage('done')]]));
  const state = await RunState.fromString(agent, result.state.toString());
  return { result, agent, state, resume: () => runner({ held: 'interrupt' }).run(agent, state) };
}

test('a held call interrupts the run, and runs after the approval when it is resumed', async () => {
  const pay = tool();
  const args = { amount: 33_000, currency: 'EUR' };
  const { result, state, resume } = await interrupted(pay, args);
  const [interruption] = result.interruptions;
  assert.equal(interruption.name, 'pay');
  assert.match(state._context.context.held['call-1'].verify_url, /\/receipts\//);
  assert.deepEqual(pay.calls, []);
  await world.approve();
  state.approve(state.getInterruptions()[0]);
  assert.equal(resultOf(await resume()), 'paid');
  assert.deepEqual(pay.calls, [args]);
});

test('approving the interruption alone does not run the tool', async () => {
  const pay = tool();
  const { state, resume } = await interrupted(pay, { amount: 34_000, currency: 'EUR' });
  state.approve(state.getInterruptions()[0]);
  assert.match(resultOf(await resume()), /waits for approval/);
  assert.deepEqual(pay.calls, []);
  await world.decline();
});

test('with `held: interrupt`, a call that is not held runs or is denied at once', async () => {
  for (const [args, expected] of [[small, /paid/], [foreign, /constraint_exceeded/]]) {
    const pay = tool();
    const agent = new Agent({ name: 'Payer', model: scriptedModel(args), tools: [payTool(pay)] });
    assert.match(resultOf(await runner({ held: 'interrupt' }).run(agent, 'Pay.', { context: {} })), expected);
    assert.equal(pay.calls.length, args === small ? 1 : 0);
  }
  assert.equal((await world.outcomes())[1].outcome, 'executed');
});

test('calls of two agents with one id do not share a permit', async () => {
  const [paid, closed] = [tool(), tool()];
  let isCloseDecided = false;
  let isPayDecided = false;
  const after = (run) => [{ name: 'wait', run: async () => { await run(); return { behavior: { type: 'allow' } }; } }];
  const agentOf = (name, body, more) => new Agent({
    name, tools: [payTool(body, name, more)], model: new ScriptedModel([[call(small, name, 'call-3')], [assistantMessage('done')]]),
  });
  // `close` is decided first, then `pay`; then `close` runs before `pay`.
  const closing = agentOf('close', closed, { inputGuardrails: after(() => { isCloseDecided = true; return until(() => isPayDecided); }) });
  const paying = agentOf('pay', paid, {
    needsApproval: async () => { await until(() => isCloseDecided); return false; },
    inputGuardrails: after(() => { isPayDecided = true; return until(() => closing.model.calls.length === 2); }),
  });
  const asked = ['pay', 'close'].map((name, index) => call({ input: 'Do it.' }, `ask_${name}`, `call-${index}`));
  const tools = [paying, closing].map((agent) => agent.asTool({ toolName: `ask_${agent.name}`, toolDescription: 'Asks' }));
  const outer = new Agent({ name: 'Boss', model: new ScriptedModel([asked, [assistantMessage('done')]]), tools });
  const more = { held: 'interrupt', actions: { ...options.actions, close: 'bank.close' }, context: () => small };
  await runner(more).run(outer, 'Go.', { context: {} });
  assert.match(JSON.stringify(closing.model.calls[1].request.input), /Denied/);
  assert.deepEqual([closed.calls, paid.calls], [[], [small]]);
});

test('a permit for a call that a guardrail rejects is reported', async () => {
  const pay = tool();
  const inputGuardrails = [{ name: 'never', run: async () => ({ behavior: { type: 'rejectContent', message: 'no' } }) }];
  const agent = new Agent({ name: 'Payer', model: scriptedModel(), tools: [payTool(pay, 'pay', { inputGuardrails })] });
  await runner({ held: 'interrupt' }).run(agent, 'Pay.', { context: {} });
  assert.deepEqual(pay.calls, []);
  await until(async () => (await world.outcomes())[0].outcome === 'failed');
});

test('arguments that a hook changes after the decision are a denial', async () => {
  const pay = tool();
  const agent = new Agent({ name: 'Payer', model: scriptedModel(), tools: [payTool(pay)] });
  const guarded = runner({ held: 'interrupt' });
  guarded.on('agent_tool_start', (_context, _agent, _tool, { toolCall }) => { toolCall.arguments = JSON.stringify(foreign); });
  assert.match(resultOf(await guarded.run(agent, 'Pay.', { context: {} })), /arguments changed/);
  assert.deepEqual(pay.calls, []);
});

test('a permission that expires in a guardrail is a denial', async () => {
  const { now } = performance;
  const pay = tool();
  const run = async () => {
    performance.now = () => now.call(performance) + 120_000;
    return { behavior: { type: 'allow' } };
  };
  const agent = new Agent({ name: 'Payer', model: scriptedModel(), tools: [payTool(pay, 'pay', { inputGuardrails: [{ name: 'slow', run }] })] });
  try {
    assert.match(resultOf(await runner({ held: 'interrupt' }).run(agent, 'Pay.', { context: {} })), /expired before the tool began/);
  } finally {
    performance.now = now;
  }
  assert.deepEqual(pay.calls, []);
});

test('with `held: interrupt`, a running tool is cancelled by a stop', async () => {
  const pay = tool(() => new Promise(() => {}));
  const agent = new Agent({ name: 'Payer', model: scriptedModel(), tools: [payTool(pay)] });
  const running = runner({ held: 'interrupt', watch: true }).run(agent, 'Pay.', { context: {} });
  await until(() => pay.calls.length === 1);
  const stop = await world.stop();
  assert.match(resultOf(await running), /has ended/);
  await world.lift(stop);
});

test('a tool that needs the application\'s own approval needs the permit as well', async () => {
  const pay = tool();
  const agent = new Agent({ name: 'Payer', model: scriptedModel(foreign), tools: [payTool(pay, 'pay', { needsApproval: true })] });
  const { state } = await runner().run(agent, 'Pay.');
  state.approve(state.getInterruptions()[0]);
  assert.match(resultOf(await runner().run(agent, state)), /constraint_exceeded/);
  assert.deepEqual(pay.calls, []);
});

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { Command, MemorySaver, MessagesAnnotation, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { createAgent, createMiddleware, fakeModel, tool as defineTool } from 'langchain';
import { guardAgent, guardTools } from '@agent-authority/sdk/adapters/langchain';
import { z } from 'zod';
import { options, testCommon, tool } from './common.js';
import { createWorld } from './world.js';

const world = await createWorld(`langchain${Date.now()}`);
const { authority } = world;
const small = { amount: 1200, currency: 'EUR' };
const foreign = { amount: 1200, currency: 'USD' };
const schema = z.object({ amount: z.number(), currency: z.string() });

const payTool = (body, name = 'pay') => defineTool((args, config) => body(args, config.signal), { name, description: 'Pays', schema });
const callOf = (args, name = 'pay') => new AIMessage({ content: '', tool_calls: [{ id: 'call-1', name, args, type: 'tool_call' }] });
/** A model that calls one tool, and then answers. */
const scriptedModel = (args = small, name = 'pay') => fakeModel().respond(callOf(args, name)).respond(new AIMessage('done'));
const start = { messages: [new HumanMessage('Pay the invoice.')] };
const resultOf = ({ messages }) => messages.find(ToolMessage.isInstance);

/** Runs a guarded agent, and returns the message of the tool. */
async function invoke(params, more = {}, guarded = authority) {
  const agent = createAgent(guardAgent(guarded, { model: scriptedModel(), ...params }, { ...options, ...more }));
  return resultOf(await agent.invoke(start));
}

testCommon(world, async ({ authority: given, options: guardOptions, tool: body, args }) => {
  const params = { model: scriptedModel(args), tools: [payTool(body)] };
  const agent = createAgent(guardAgent(given, params, guardOptions));
  return resultOf(await agent.invoke(start)).content;
});

test('a refusal has the status error', async () => {
  const message = await invoke({ model: scriptedModel(foreign), tools: [payTool(tool())] });
  assert.deepEqual([message.status, message.tool_call_id], ['error', 'call-1']);
});

test('a held call interrupts the graph, and runs after the approval when it is resumed', async () => {
  const pay = tool();
  const args = { amount: 31_000, currency: 'EUR' };
  const params = { model: scriptedModel(args), tools: [payTool(pay)], checkpointer: new MemorySaver() };
  const agent = createAgent(guardAgent(authority, params, { ...options, held: 'interrupt' }));
  const thread = { configurable: { thread_id: '1' } };
  const { __interrupt__: [interrupt] } = await agent.invoke(start, thread);
  assert.match(interrupt.value.verify_url, /\/receipts\//);
  assert.deepEqual(pay.calls, []);
  await world.approve();
  assert.equal(resultOf(await agent.invoke(new Command({ resume: true }), thread)).content, 'paid');
  assert.deepEqual(pay.calls, [args]);
});

test('a graph that is resumed without an approval does not run the tool', async () => {
  const pay = tool();
  const args = { amount: 32_000, currency: 'EUR' };
  const params = { model: scriptedModel(args), tools: [payTool(pay)], checkpointer: new MemorySaver() };
  const agent = createAgent(guardAgent(authority, params, { ...options, held: 'interrupt' }));
  const thread = { configurable: { thread_id: '2' } };
  await agent.invoke(start, thread);
  const message = resultOf(await agent.invoke(new Command({ resume: true }), thread));
  assert.deepEqual([message.status, pay.calls], ['error', []]);
  await world.decline();
});

const webSearch = { type: 'web_search', name: 'web_search' };

test('a tool of the provider is refused at start, unless it is in `unguarded`', async () => {
  const params = { model: scriptedModel(), tools: [payTool(tool()), webSearch] };
  assert.throws(() => guardAgent(authority, params), /without a guard: web_search/);
  assert.equal((await invoke(params, { unguarded: ['web_search'] })).content, 'paid');
});

test('a tool of the provider that middleware brings is refused', async () => {
  const tools = [payTool(tool())];
  const brings = createMiddleware({ name: 'brings', tools: [webSearch] });
  assert.throws(() => guardAgent(authority, { model: scriptedModel(), tools, middleware: [brings] }), /web_search/);
  const adds = createMiddleware({
    name: 'adds', wrapModelCall: (request, handler) => handler({ ...request, tools: [...request.tools, webSearch] }),
  });
  await assert.rejects(invoke({ tools, middleware: [adds] }), /without a guard: web_search/);
});

test('a tool that middleware adds at run time is guarded', async () => {
  const extra = tool();
  const added = payTool(extra, 'extra');
  const adds = createMiddleware({
    name: 'adds',
    wrapModelCall: (request, handler) => handler({ ...request, tools: [...request.tools, added] }),
    wrapToolCall: (request, handler) => handler(request.toolCall.name === 'extra' ? { ...request, tool: added } : request),
  });
  const params = { model: scriptedModel(small, 'extra'), tools: [payTool(tool())], middleware: [adds] };
  assert.match((await invoke(params, { actions: { extra: 'bank.close' } })).content, /Denied/);
  assert.deepEqual(extra.calls, []);
});

test('the arguments that other middleware has changed are asked', async () => {
  const pay = tool();
  const changes = createMiddleware({
    name: 'changes',
    wrapToolCall: (request, handler) => handler({ ...request, toolCall: { ...request.toolCall, args: foreign } }),
  });
  const message = await invoke({ tools: [payTool(pay)], middleware: [changes] });
  assert.match(message.content, /constraint_exceeded/);
  assert.deepEqual(pay.calls, []);
});

test('middleware after the guard can change the arguments, but not what is asked', async () => {
  const pay = tool();
  const params = guardAgent(authority, { model: scriptedModel(), tools: [payTool(pay)] }, options);
  const changes = createMiddleware({
    name: 'changes',
    wrapToolCall: (request, handler) => handler({ ...request, toolCall: { ...request.toolCall, args: foreign } }),
  });
  const agent = createAgent({ ...params, middleware: [...params.middleware, changes] });
  assert.match(resultOf(await agent.invoke(start)).content, /constraint_exceeded/);
  assert.deepEqual(pay.calls, []);
});

test('a call that other middleware has renamed is refused', async () => {
  const pay = tool();
  const renames = createMiddleware({
    name: 'renames',
    wrapToolCall: (request, handler) => handler({ ...request, tool: undefined, toolCall: { ...request.toolCall, name: 'pay' } }),
  });
  const message = await invoke({ model: scriptedModel(small, 'other'), tools: [payTool(pay)], middleware: [renames] });
  assert.match(message.content, /not a tool of this agent/);
  assert.deepEqual(pay.calls, []);
});

test('tools of an agent within a tool run only if they are guarded', async () => {
  for (const isGuarded of [false, true]) {
    const pay = tool();
    const params = { model: scriptedModel(), tools: [payTool(pay)] };
    const inner = createAgent(isGuarded ? guardAgent(authority, params, options) : params);
    const outer = payTool(async () => resultOf(await inner.invoke(start)).content, 'ask_accountant');
    const message = await invoke({ model: scriptedModel(small, 'ask_accountant'), tools: [outer] });
    assert.match(message.content, isGuarded ? /paid/ : /has no guard/);
    assert.equal(pay.calls.length, isGuarded ? 1 : 0);
  }
});

test('guarded tools work in a graph of one\'s own', async () => {
  for (const [args, expected] of [[small, /paid/], [foreign, /constraint_exceeded/]]) {
    const pay = tool();
    const graph = new StateGraph(MessagesAnnotation)
      .addNode('model', async () => ({ messages: [callOf(args)] }))
      .addNode('tools', new ToolNode(guardTools(authority, [payTool(pay)], options)))
      .addEdge('__start__', 'model').addEdge('model', 'tools').addEdge('tools', '__end__')
      .compile();
    assert.match(resultOf(await graph.invoke(start)).content, expected);
    assert.equal(pay.calls.length, args === small ? 1 : 0);
  }
});

test('a graph of one\'s own is not interrupted within a task of several calls, which would run again', async () => {
  const pay = tool();
  const held = { amount: 36_000, currency: 'EUR' };
  const calls = [small, held].map((args, index) => ({ id: `call-${index}`, name: 'pay', args, type: 'tool_call' }));
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('model', async () => ({ messages: [new AIMessage({ content: '', tool_calls: calls })] }))
    .addNode('tools', new ToolNode(guardTools(authority, [payTool(pay)], { ...options, held: 'interrupt' })))
    .addEdge('__start__', 'model').addEdge('model', 'tools').addEdge('tools', '__end__')
    .compile({ checkpointer: new MemorySaver() });
  const { messages, __interrupt__ } = await graph.invoke(start, { configurable: { thread_id: '3' } });
  assert.equal(__interrupt__, undefined);
  assert.deepEqual(messages.filter(ToolMessage.isInstance).map(({ status }) => status), ['success', 'error']);
  assert.deepEqual(pay.calls, [small]);
  await world.decline();
});

test('a refusal within a tool is an error of that tool, which is not run again', async () => {
  const inner = authority.guard({
    action: 'payment.execute', purpose: options.purpose, context: ({ amount, currency }) => ({ amount, currency }),
  }, () => 'paid');
  const outer = tool(() => inner({ amount: 37_000, currency: 'EUR' }));
  const params = { model: scriptedModel(), tools: [payTool(outer)], checkpointer: new MemorySaver() };
  const agent = createAgent(guardAgent(authority, params, { ...options, held: 'interrupt' }));
  const result = await agent.invoke(start, { configurable: { thread_id: '4' } });
  assert.match(resultOf(result).content, /waits for approval.*\n Please fix/);
  assert.deepEqual([result.__interrupt__, outer.calls.length], [undefined, 1]);
  await world.decline();
});

test('an error of a tool is shown to the model, as without a guard', async () => {
  const failing = payTool(() => { throw new Error('the bank is closed'); });
  assert.match((await invoke({ tools: [failing] })).content, /the bank is closed\n Please fix/);
  assert.equal((await world.outcomes())[0].outcome, 'failed');
});

// Tests that every adapter must pass. Each agent has a tool `pay`, and a scripted model that calls it.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Authority } from '@agent-authority/sdk/guard';

export const options = {
  actions: { pay: 'payment.execute' },
  purpose: 'invoice-settlement',
  context: ({ arguments: { amount, currency } }) => ({ amount, currency }),
};

/** A tool that notes its calls. */
export function tool(body = () => 'paid') {
  const calls = [];
  const run = async (args, signal) => {
    calls.push(args);
    return body(args, signal);
  };
  return Object.assign(run, { calls });
}

export const until = async (isDone) => {
  for (let waited = 0; !await isDone(); waited += 1) {
    if (waited > 1200) throw new Error('the condition did not hold within a minute');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

/**
 * `run({ authority, options, tool, args })` runs an agent until its model has answered, and returns
 * the result of the tool as the model read it.
 */
export function testCommon(world, run, { passesSignal = true, defaultAction = 'tool.pay' } = {}) {
  const { authority } = world;
  const small = { amount: 1200, currency: 'EUR' };
  const large = { amount: 25_000, currency: 'EUR' };

  test('allowed: the tool runs with the arguments of the request', async () => {
    const pay = tool();
    assert.match(await run({ authority, options, tool: pay, args: small }), /paid/);
    assert.deepEqual(pay.calls, [small]);
    const [last] = await world.outcomes();
    assert.deepEqual([last.action, last.outcome], ['payment.execute', 'executed']);
  });

  test('denied: the tool does not run, and the model reads the reason', async () => {
    const pay = tool();
    assert.match(await run({ authority, options, tool: pay, args: { ...small, currency: 'USD' } }), /not permitted: constraint_exceeded/);
    assert.deepEqual(pay.calls, []);
  });

  test('held, then approved: the tool runs once', async () => {
    const pay = tool();
    const running = run({ authority, options: { ...options, wait: '60s' }, tool: pay, args: large });
    const approved = await world.approve();
    assert.deepEqual(approved.request.context, { ...large, arguments: large });
    assert.equal(pay.calls.length, 0);
    assert.match(await running, /paid/);
    assert.deepEqual(pay.calls, [large]);
  });

  test('held, then declined: the tool does not run', async () => {
    const pay = tool();
    const args = { ...large, amount: 26_000 };
    const running = run({ authority, options: { ...options, wait: '60s' }, tool: pay, args });
    await world.decline();
    assert.match(await running, /declined/);
    assert.deepEqual(pay.calls, []);
  });

  test('held without a wait: the model reads where people decide', async () => {
    const pay = tool();
    const args = { ...large, amount: 27_000 };
    assert.match(await run({ authority, options, tool: pay, args }), /waits for approval.*\/receipts\//);
    assert.deepEqual(pay.calls, []);
    await world.decline();
  });

  test('stopped: a running tool is cancelled', async () => {
    let signal;
    const pay = tool((_args, given) => new Promise(() => { signal = given; }));
    const running = run({ authority, options: { ...options, watch: true }, tool: pay, args: small }).catch((error) => error.message);
    await until(() => pay.calls.length === 1);
    const stop = await world.stop();
    assert.match(String(await running), passesSignal ? /has ended/ : /abort|has ended/i);
    if (passesSignal) assert.ok(signal.aborted);
    await world.lift(stop);
    const [last] = await world.outcomes();
    assert.equal(last.outcome, 'abandoned');
  });

  test('the service is down: the tool does not run', async () => {
    const pay = tool();
    const down = new Authority({ baseUrl: 'http://127.0.0.1:9', apiKey: world.apiKey, subject: world.agent, logger: silent });
    assert.match(await run({ authority: down, options, tool: pay, args: small }), /no decision|can't be read/);
    assert.deepEqual(pay.calls, []);
  });

  test('an exception in a mapping is a denial', async () => {
    const pay = tool();
    const failing = { ...options, context: () => { throw new Error('no such member'); } };
    assert.match(await run({ authority, options: failing, tool: pay, args: small }), /mapping/);
    assert.deepEqual(pay.calls, []);
  });

  test('without an entry in `actions`, the action is tool.<name>', async () => {
    const { actions, ...others } = options;
    const pay = tool();
    assert.match(await run({ authority, options: others, tool: pay, args: small }), /paid/);
    const [last] = await world.outcomes();
    assert.equal(last.action, defaultAction);
  });
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

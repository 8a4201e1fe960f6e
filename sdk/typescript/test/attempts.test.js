// Attempts of one call: failures of the connection and of the service never run a tool, and decide once.
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import assert from 'node:assert/strict';
import { Unavailable } from '@agent-authority/sdk/guard';
import { EvaluateDecisionResponseSchema } from '@agent-authority/sdk/proto/runtime/v1/runtime_service_pb';
import { Service } from './service.js';
import { args, authorityOf, denied, guarded, impatient, service, settled, unavailable } from './world.js';

/** Faults after which the same call is sent again, with the same key. */
const passing = {
  'a connection that is cut': ({ cut }) => cut(),
  'a connection that is cut after the decision': async ({ decide, cut }) => {
    await decide();
    cut();
  },
  'a connection that is cut within the answer': async ({ decide, response }) => {
    await decide();
    response.writeHead(200, { 'content-type': 'application/grpc-web+proto', 'content-length': '1000' });
    response.write(Buffer.from([0, 0, 0, 3, 0, 1]));
    await sleep(20);
    response.destroy();
  },
  'a 502': ({ status }) => status(502),
  'a 503': ({ status }) => status(503),
  'a 504': ({ status }) => status(504),
  'a 429': ({ status }) => status(429),
  UNAVAILABLE: ({ error }) => error(14, 'unavailable'),
  RESOURCE_EXHAUSTED: ({ error }) => error(8, 'rate_limited'),
  'a first call that still runs': async ({ decide, error }) => {
    await decide();
    error(10, 'idempotency_in_progress');
  },
  'an answer without a message': ({ raw }) => raw(Buffer.alloc(0)),
};
for (const [name, fault] of Object.entries(passing)) {
  test(`after ${name}, the call is repeated with its key, and decided once`, async () => {
    const { pay, made } = guarded();
    service.faults = [fault, fault];
    assert.equal(await pay(args), 'paid');
    assert.equal(service.keys.length, 3);
    assert.equal(new Set(service.keys).size, 1);
    assert.match(service.keys[0], /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
    assert.equal(new Set(service.asked.map((question) => question.client_nonce)).size, 1);
    assert.equal(service.answers.size, 1);
    assert.equal(made.length, 1);
    // Another call has another key and another nonce.
    await pay(args);
    assert.equal(new Set(service.keys).size, 2);
    assert.equal(new Set(service.asked.map((question) => question.client_nonce)).size, 2);
  });
}

test('with any of these each time, the tool does not run', async () => {
  await Promise.all(
    Object.entries(passing).map(async ([name, fault]) => {
      const own = await Service.start();
      own.faults = Array(100).fill(fault);
      const { pay, made } = guarded({}, impatient({ baseUrl: own.baseUrl, jwks: own.jwks }));
      const start = performance.now();
      await assert.rejects(pay(args), Unavailable, name);
      assert.ok(performance.now() - start < 3500, name);
      assert.deepEqual(made, [], name);
      assert.equal(new Set(own.keys).size, 1, name);
    }),
  );
});

/** Errors of the service after which the call is not repeated. */
for (const [status, reason, code = reason] of [
  [3, 'invalid_request'],
  [16, 'unauthenticated'],
  [7, 'forbidden'],
  [7, 'subject_not_permitted'],
  [5, 'not_found'],
  [11, 'too_large'],
  [3, 'idempotency_key_reused'],
  [10, 'a_later_code'],
  [10, 'decision_stopped', 'stopped'],
]) {
  test(`${reason} is a denial, and not repeated`, async () => {
    const { pay, made } = guarded();
    service.faults = [({ error }) => error(status, reason)];
    await assert.rejects(pay(args), denied(code));
    assert.equal(service.asked.length, 1);
    assert.deepEqual(made, []);
  });
}

for (const [name, fault] of Object.entries({
  'an internal error': ({ error }) => error(13, 'internal'),
  'a 404 of a proxy': ({ status }) => status(404),
  'a 401 of a proxy': ({ status }) => status(401),
})) {
  test(`${name} is no decision; what was decided is given back`, async () => {
    const { pay, made } = guarded();
    service.faults = [fault];
    await assert.rejects(pay(args), unavailable);
    assert.deepEqual(made, []);
    await settled(() => service.reports.length === 1);
    assert.equal(service.reports[0].outcome, 'abandoned');
    assert.equal(new Set(service.keys).size, 1);
  });
}

test('Retry-After is obeyed, of the service and of a proxy', async () => {
  for (const fault of [
    ({ error }) => error(14, 'unavailable', { retry_after: '1' }),
    ({ status }) => status(503, { 'retry-after': '1' }),
  ]) {
    const { pay } = guarded();
    service.faults = [fault];
    const start = performance.now();
    assert.equal(await pay(args), 'paid');
    assert.ok(performance.now() - start >= 990);
  }
});

test('a pause that is longer than the deadline is not waited for', async () => {
  const { pay, made } = guarded({}, impatient());
  service.faults = [({ error }) => error(8, 'rate_limited', { retry_after: '5' })];
  const start = performance.now();
  await assert.rejects(pay(args), (error) => unavailable(error) && error.code === 'rate_limited');
  assert.ok(performance.now() - start < 500);
  assert.deepEqual(made, []);
});

test('a longer timeout waits for a slow decision', async () => {
  const { pay } = guarded();
  service.faults = [
    async ({ answered }) => {
      await sleep(2300);
      await answered();
    },
  ];
  assert.equal(await pay(args), 'paid');
  assert.equal(service.keys.length, 1);
  assert.throws(() => authorityOf({ timeout: 0 }), TypeError);
});

test('an attempt may take the whole timeout', async () => {
  const { pay } = guarded({}, authorityOf({ timeout: '2m' }));
  assert.equal(await pay(args), 'paid');
  assert.equal(service.lastHeaders['grpc-timeout'], '120000m');
});

test('a decision that arrives after the deadline is reported as abandoned', async () => {
  const { pay, made } = guarded({}, impatient());
  service.faults = [
    async ({ answered }) => {
      await sleep(2300);
      await answered();
    },
  ];
  const start = performance.now();
  await assert.rejects(pay(args), unavailable);
  const took = performance.now() - start;
  assert.ok(took > 1900 && took < 2300, `${took} ms`);
  await settled(() => service.reports.length === 1);
  assert.equal(service.reports[0].outcome, 'abandoned');
  assert.equal(service.answers.size, 1);
  assert.deepEqual(made, []);
});

test('a decision whose answers are lost until the deadline is reported as abandoned', async () => {
  const { pay, made } = guarded({}, impatient());
  let isOver = false;
  const fault = async ({ decide, cut, answered }) => {
    if (isOver) return answered();
    await decide();
    cut();
  };
  service.faults = Array(100).fill(fault);
  await assert.rejects(pay(args), unavailable);
  isOver = true;
  await settled(() => service.reports.length === 1);
  assert.equal(service.reports[0].outcome, 'abandoned');
  assert.equal(service.answers.size, 1);
  assert.deepEqual(made, []);
});

test('an answer to an earlier call is denied on the first attempt', async () => {
  const { pay, made } = guarded();
  service.faults = [
    async ({ decide, answered }) => {
      await decide();
      await answered();
    },
  ];
  await assert.rejects(pay(args), denied('replayed'));
  assert.deepEqual(made, []);
});

test('an answer that cannot be trusted is asked for again, and a genuine permission is given back', async () => {
  const { pay, made } = guarded();
  service.faults = [
    async ({ key, question, message }) => {
      const genuine = await service.answer(question);
      service.answers.set(key, genuine);
      message(EvaluateDecisionResponseSchema, { ...genuine, record: `${genuine.record} ` });
    },
  ];
  await assert.rejects(pay(args), denied('unverified'));
  await settled(() => service.reports.length === 1);
  assert.equal(service.reports[0].outcome, 'abandoned');
  assert.deepEqual(made, []);
});

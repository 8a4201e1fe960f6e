// The hand-written parts of the client, against services in this process.
import { copyFileSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import assert from 'node:assert/strict';
import { Code, ConnectError, createRouterTransport } from '@connectrpc/connect';
import { AuthorityError, createClient, Decision, parseEvent } from '@agent-authority/sdk/client';
import { EventService } from '@agent-authority/sdk/proto/events/v1/event_service_pb';
import { ToolService } from '@agent-authority/sdk/proto/registry/v1/tool_pb';
import { RuntimeService } from '@agent-authority/sdk/proto/runtime/v1/runtime_service_pb';
import { BadRequestSchema, ErrorInfoSchema } from '../dist/generated/google/rpc/error_details_pb.js';

const baseUrl = 'https://authority.example';

/** Returns a client of a service that is implemented here. */
const clientOf = (service, methods, credential) => createClient({
  baseUrl, credential, transport: createRouterTransport(({ service: serve }) => serve(service, methods)),
});

/** Returns an error in the form of the service. */
const refusal = (status, reason, { metadata = {}, violations = [], domain = 'authority' } = {}) => new ConnectError(
  `it is ${reason}`, status, undefined, [
    { desc: ErrorInfoSchema, value: { reason, domain, metadata } },
    { desc: BadRequestSchema, value: { fieldViolations: violations } },
  ],
);

const failed = (code) => (error) => error instanceof AuthorityError && error.code === code;

test('each call has a credential of that moment and a request id', async () => {
  const seen = [];
  const evaluate = (_, { requestHeader }) => {
    seen.push([requestHeader.get('authorization'), requestHeader.get('x-request-id')]);
    return { decision: Decision.ALLOW };
  };
  let tokens = 0;
  const client = clientOf(RuntimeService, { evaluate }, async () => `token-${tokens += 1}`);
  assert.equal((await client.runtime.evaluate({ subject: 'a' })).decision, Decision.ALLOW);
  await client.runtime.evaluate({}, { headers: { 'x-request-id': 'mine' } });
  await clientOf(RuntimeService, { evaluate }, 'svc_live_key').runtime.evaluate({});
  await clientOf(RuntimeService, { evaluate }).runtime.evaluate({});
  const credentials = ['Bearer token-1', 'Bearer token-2', 'Bearer svc_live_key', null];
  assert.deepEqual(seen.map(([credential]) => credential), credentials);
  assert.match(seen[0][1], /^[0-9a-f-]{36}$/);
  assert.equal(seen[1][1], 'mine');
  assert.notEqual(seen[2][1], seen[3][1]);
});

test('an error has the reason as its code, and the members at fault', async () => {
  const violations = [{ field: 'context.amount', description: 'is no number' }];
  const client = clientOf(RuntimeService, {
    evaluate: () => { throw refusal(Code.InvalidArgument, 'invalid_request', { violations }); },
  });
  const error = await client.runtime.evaluate({}, { headers: { 'x-request-id': 'mine' } }).catch((thrown) => thrown);
  assert.ok(error instanceof AuthorityError && error instanceof Error);
  const { code, status, message, details, requestId, isTransient } = error;
  assert.deepEqual({ code, status, message, details, requestId, isTransient }, {
    code: 'invalid_request', status: Code.InvalidArgument, message: 'it is invalid_request',
    details: [{ field: 'context.amount', problem: 'is no number' }], requestId: 'mine', isTransient: false,
  });
});

test('an error that the service did not name has the code of its status', async () => {
  for (const [thrown, code] of [
    [new ConnectError('x', Code.DeadlineExceeded), 'deadline_exceeded'],
    [new ConnectError('x', Code.NotFound), 'not_found'],
    [refusal(Code.NotFound, 'SOME_PROXY', { domain: 'proxy.example' }), 'not_found'],
    [new ConnectError('the network', Code.Unknown), 'unavailable'],
  ]) {
    const client = clientOf(RuntimeService, { evaluate: () => { throw thrown; } });
    await assert.rejects(client.runtime.evaluate({}), failed(code));
  }
  const nowhere = createClient({ baseUrl: 'http://127.0.0.1:1' });
  await assert.rejects(nowhere.runtime.evaluate({}), (error) => failed('unavailable')(error) && error.isTransient);
});

test('what the caller aborts fails with the reason of the caller', async () => {
  const reason = new Error('enough');
  const evaluate = async () => { await sleep(1000); return {}; };
  const client = clientOf(RuntimeService, { evaluate });
  await assert.rejects(client.runtime.evaluate({}, { signal: AbortSignal.abort(reason) }), reason);
});

test('a page is given no API key', async () => {
  globalThis.document = {};
  try {
    assert.throws(() => createClient({ baseUrl, credential: 'svc_live_key' }), TypeError);
    const evaluate = () => assert.fail('it was sent');
    await assert.rejects(clientOf(RuntimeService, { evaluate }, () => 'svc_live_key').runtime.evaluate({}), TypeError);
    assert.ok(createClient({ baseUrl, credential: 'eyJ.a.b' }));
  } finally {
    delete globalThis.document;
  }
  for (const invalid of ['', 'authority.example', 'file:///tmp']) {
    assert.throws(() => createClient({ baseUrl: invalid }), TypeError);
  }
});

test('every service of the API', async () => {
  const client = clientOf(ToolService, { getTool: ({ id }) => ({ id }) });
  assert.equal((await client.service(ToolService).getTool({ id: 'svc:tool' })).id, 'svc:tool');
});

const bytesOf = (sequence) => new TextEncoder().encode(`{"event_id":"svc:event:${sequence}","sequence":${sequence}}`);

test('an event is its members, and beside them its bytes', () => {
  const bytes = bytesOf(7);
  const event = parseEvent(bytes);
  assert.equal(event.bytes, bytes);
  assert.equal(JSON.stringify(event), new TextDecoder().decode(bytes));
  assert.throws(() => parseEvent(new Uint8Array([0xff])), TypeError);
});

/**
 * A log of `head` events. Its streams break as `attempts` specifies: after a number of messages,
 * with an error.
 */
function log(head, attempts, credential) {
  const opened = [];
  async function* streamEvents({ after, eventType, tenantId }) {
    opened.push({ after: Number(after), eventType, tenantId });
    const { messages = Infinity, error, beat } = attempts[opened.length - 1] ?? {};
    if (beat) yield { sequence: BigInt(beat) };
    for (let sequence = Number(after) + 1; sequence <= head && sequence - Number(after) <= messages; sequence += 1) {
      yield { sequence: BigInt(sequence), event: bytesOf(sequence) };
    }
    if (error) throw error;
  }
  const listEvents = () => ({ head: BigInt(head) });
  return { client: clientOf(EventService, { streamEvents, listEvents }, credential), opened };
}

/** Returns the sequences of the events until `last`. */
async function sequences(events, last) {
  const seen = [];
  for await (const { sequence } of events) {
    seen.push(sequence);
    if (sequence === last) break;
  }
  return seen;
}

const unavailable = refusal(Code.Unavailable, 'unavailable');
const hurried = (t) => t.mock.method(Math, 'random', () => 0);

test('a broken stream resumes after the last event', async (t) => {
  hurried(t);
  const { client, opened } = log(9, [
    { messages: 2, error: unavailable }, { messages: 0 }, { messages: 3 },
    { messages: 1, error: refusal(Code.Internal, 'internal') },
  ]);
  const told = [];
  const followed = client.followEvents({
    after: 1, eventTypes: ['svc.decision.*'], tenantId: 'svc:tenant:acme',
    onRetry: ({ code }, delay) => told.push([code, delay]),
  });
  assert.deepEqual(await sequences(followed, 9), [2, 3, 4, 5, 6, 7, 8, 9]);
  assert.deepEqual(opened.map(({ after }) => after), [1, 3, 3, 6, 7]);
  assert.deepEqual(opened[4].eventType, ['svc.decision.*']);
  assert.equal(opened[4].tenantId, 'svc:tenant:acme');
  assert.deepEqual(told, [['unavailable', 0], ['unavailable', 0], ['unavailable', 0], ['internal', 0]]);
});

test('without a sequence it begins at the head, also after a first attempt that failed', async (t) => {
  hurried(t);
  const broken = { messages: 0, error: unavailable };
  const { client, opened } = log(5, [broken, { beat: 8, ...broken }]);
  const aborted = new AbortController();
  const onRetry = () => { if (opened.length === 3) aborted.abort(); };
  await assert.rejects(client.followEvents({ signal: aborted.signal, onRetry }).next(), { name: 'AbortError' });
  assert.deepEqual(opened.map(({ after }) => after), [5, 5, 8]);
});

test('the next attempt waits longer each time, at random, and as long as the service says', async (t) => {
  t.mock.method(Math, 'random', () => 0.01);
  const { client } = log(9, [
    ...Array(4).fill({ messages: 0, error: unavailable }),
    { messages: 0, error: refusal(Code.ResourceExhausted, 'rate_limited', { metadata: { retry_after: '0.2' } }) },
    { messages: 1 },
  ]);
  const delays = [];
  await sequences(client.followEvents({ after: 0, onRetry: (_, delay) => delays.push(delay) }), 2);
  assert.deepEqual(delays, [5, 10, 20, 40, 200, 5]);
});

test('a stream that cannot be opened for good ends', async () => {
  for (const [status, code] of [
    [Code.Aborted, 'sequence_expired'], [Code.Aborted, 'sequence_ahead'], [Code.Unauthenticated, 'unauthenticated'],
    [Code.PermissionDenied, 'permission_scope_exceeded'], [Code.InvalidArgument, 'invalid_request'],
    [Code.NotFound, 'not_found'],
  ]) {
    const { client, opened } = log(9, [{ messages: 0, error: refusal(status, code, { metadata: { oldest: '3' } }) }]);
    const error = await client.followEvents({ after: 1 }).next().catch((thrown) => thrown);
    assert.ok(failed(code)(error));
    assert.equal(error.metadata.oldest, '3');
    assert.equal(opened.length, 1);
  }
});

test('a stream whose token expires goes on with the next token, and ends if that is refused', async (t) => {
  hurried(t);
  const expired = refusal(Code.Unauthenticated, 'unauthenticated');
  let tokens = 0;
  const attempts = [2, 2, 0].map((messages) => ({ messages, error: expired }));
  const { client, opened } = log(9, attempts, () => `token-${tokens += 1}`);
  const seen = [];
  await assert.rejects(async () => {
    for await (const { sequence } of client.followEvents({ after: 0 })) seen.push(sequence);
  }, failed('unauthenticated'));
  assert.deepEqual([seen, opened.length, tokens], [[1, 2, 3, 4], 3, 3]);
});

test('leaving the loop ends the stream, and so does the signal', async () => {
  const signals = [];
  const client = clientOf(EventService, {
    async* streamEvents(_, { signal }) {
      signals.push(signal);
      yield { sequence: 1n, event: bytesOf(1) };
      await new Promise(() => {});
    },
  });
  await sequences(client.followEvents({ after: 0 }), 1);
  const reason = new Error('enough');
  const aborted = new AbortController();
  const events = client.followEvents({ after: 0, signal: aborted.signal });
  await events.next();
  const next = events.next();
  aborted.abort(reason);
  await assert.rejects(next, reason);
  assert.deepEqual(signals.map(({ aborted: ended }) => ended), [true, true]);
});

test('a silent connection is given up', async (t) => {
  hurried(t);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let opened = 0;
  const client = clientOf(EventService, {
    async* streamEvents(_, { signal }) {
      opened += 1;
      if (opened === 1) {
        await new Promise((resolve) => { signal.addEventListener('abort', resolve); });
      }
      yield { sequence: 1n, event: bytesOf(1) };
    },
  });
  const told = [];
  const next = client.followEvents({ after: 0, onRetry: ({ message }) => told.push(message) }).next();
  for (let seconds = 0; seconds < 60 && opened < 2; seconds += 1) {
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    t.mock.timers.tick(1000);
  }
  assert.equal((await next).value.sequence, 1);
  assert.deepEqual(told, ['no message received for 45 seconds']);
});

test('receivers of webhooks need no other package', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-authority-'));
  for (const file of ['index.js', 'verify-webhook.js', 'bytes.js']) {
    copyFileSync(new URL(`../dist/${file}`, import.meta.url), join(folder, file));
  }
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  assert.equal(typeof (await import(join(folder, 'index.js'))).verifyWebhook, 'function');
});

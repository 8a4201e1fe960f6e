// The shared table of good and bad deliveries, and tests that are specific to this library.
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { verifyWebhook, WebhookError } from '../dist/index.js';

// The table is in this repository, or next to a copy of this library that is tested elsewhere.
const path = process.env.WEBHOOK_VECTORS ?? new URL('../../vectors/webhooks.json', import.meta.url);
const { options: common, cases } = JSON.parse(readFileSync(path, 'utf8'));

async function judged({ body, headers, options, now, mentions = [] }, given = headers) {
  try {
    const event = await verifyWebhook(new TextEncoder().encode(body), given, { ...common, ...options, now });
    assert.deepEqual(event, JSON.parse(body));
    return 'valid';
  } catch (error) {
    if (!(error instanceof WebhookError)) throw error;
    assert.ok(error.message);
    for (const word of mentions) assert.ok(error.message.includes(word), error.message);
    return error.code;
  }
}

assert.ok(cases.length > 100);
for (const one of cases) {
  test(one.name, async () => assert.equal(await judged(one), one.expect));
}

const valid = cases.find((one) => one.name === 'all suites');

test('headers of fetch, of Node and as pairs', async () => {
  const record = Object.fromEntries(valid.headers);
  for (const headers of [new Headers(record), new Map(valid.headers), record, { ...record, absent: undefined }]) {
    assert.equal(await judged(valid, headers), 'valid');
  }
  const twice = { ...record, signature: [record.signature, record.signature] };
  assert.equal(await judged(valid, twice), 'malformed');
  assert.equal(await judged(valid, { ...record, signature: [record.signature] }), 'valid');
});

test('a body as text, or a view of a larger buffer', async () => {
  const options = { ...common, now: valid.now };
  assert.ok(await verifyWebhook(valid.body, valid.headers, options));
  const larger = Buffer.from(`x${valid.body}x`);
  assert.ok(await verifyWebhook(larger.subarray(1, -1), valid.headers, options));
});

test('options that are no options', async () => {
  for (const options of [{ accept: ['rsa'] }, { tolerance: -1 }, { tolerance: NaN }]) {
    assert.equal(await judged({ ...valid, options }), 'configuration');
  }
  const now = undefined; // The machine's time is years after the time in the table.
  assert.equal(await judged({ ...valid, now }), 'time');
});

test('a JWKS with a key of that name twice', async () => {
  const [key] = common.jwks.keys;
  assert.equal(await judged({ ...valid, options: { jwks: { keys: [key, key] } } }), 'unknown_key');
});

// The README's programs, with stand-ins for their servers and for the service.
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Service, subject } from './service.js';

const path = process.env.WEBHOOK_VECTORS ?? new URL('../../vectors/webhooks.json', import.meta.url);
const { options, cases } = JSON.parse(readFileSync(path, 'utf8'));
const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');

test('the receiver loses nothing in a rotation', async () => {
  const [sample] = /(?<=```ts\n)import \{ createServer[^]*?(?=```)/.exec(readme);
  const library = new URL('../dist/index.js', import.meta.url);
  const code = sample
    .replace(/import \{ createServer \}.*\n/, '')
    .replace(/import \{ buffer \}.*\n/, '')
    .replace("'@agent-authority/sdk'", JSON.stringify(library.href));
  let handler;
  let [published, fetches, now] = [{ keys: [] }, 0, 1_790_000_000];
  const handled = [];
  const { fetch, Date: { now: machine } } = globalThis;
  Object.assign(globalThis, {
    createServer: (given) => ((handler = given), { listen() {} }),
    buffer: async (request) => new TextEncoder().encode(request.body),
    handleOnce: async (id) => handled.push(id),
    fetch: async (url) => {
      assert.equal(url, 'https://authority.example/.well-known/jwks.json');
      fetches += 1;
      return new Response(JSON.stringify(published));
    },
  });
  Date.now = () => now * 1000;
  const receive = async (name) => {
    const { body, headers } = cases.find((one) => one.name === name);
    let status;
    const response = { writeHead: (given) => ((status = given), response), end() {} };
    await handler({ body, headers: Object.fromEntries(headers) }, response);
    return status;
  };
  try {
    await import(`data:text/javascript,${encodeURIComponent(code)}`);
    published = options.jwks;
    // Not more than one fetch a minute, so that a stranger's deliveries cause no load.
    assert.deepEqual([await receive('rfc9421: signed'), fetches], [401, 1]);
    now += 60;
    assert.deepEqual([await receive('rfc9421: signed'), fetches], [204, 2]);
    assert.deepEqual([await receive('jwt: signed'), fetches], [204, 2]);
    assert.deepEqual([await receive('jwt: a key that is not published'), fetches], [401, 2]);
    assert.equal(handled.length, 2);
  } finally {
    globalThis.fetch = fetch;
    Date.now = machine;
  }
});

test('the guarded tool runs, and its refusals are printed', async () => {
  const [sample] = /(?<=```ts\n)import \{ Authority[^]*?(?=```)/.exec(readme);
  const library = new URL('../dist/guard.js', import.meta.url);
  const service = await Service.start();
  const variables = { URL: service.baseUrl, API_KEY: 'svc_sandbox_1_2_3', SUBJECT: subject };
  for (const [name, value] of Object.entries(variables)) process.env[`AGENT_AUTHORITY_${name}`] = value;
  const printed = [];
  const { log, error } = console;
  const print = (...words) => printed.push(words);
  Object.assign(console, { log: print, error: print });
  let runs = 0;
  const run = () => import(`data:text/javascript,${encodeURIComponent(
    `${sample.replace("'@agent-authority/sdk/guard'", JSON.stringify(library.href))}\nawait authority.flush(); // ${runs += 1}`,
  )}`);
  try {
    await run();
    service.decision = 'deny';
    await run();
    service.changeAnswer = (answer) => Object.assign(answer, { decision: 3, eligible: 'none' });
    await run();
    service.faults = [({ error: fail }) => fail(13, 'internal')];
    await run();
  } finally {
    Object.assign(console, { log, error });
    for (const name of Object.keys(variables)) delete process.env[`AGENT_AUTHORITY_${name}`];
    await service.stop();
  }
  assert.deepEqual(printed[0], ['paid 1200.00 EUR to DE02120300000000202051']);
  assert.deepEqual(printed[1].slice(0, 2), ['denied:', 'approval_threshold_breach']);
  assert.match(printed[2][0], /waits .* no registered person/);
  assert.match(printed[3][0], /no decision/);
  assert.equal(service.asked[0].context.jurisdiction, 'DE');
});

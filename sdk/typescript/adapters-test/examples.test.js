import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createWorld } from './world.js';

const world = await createWorld(`examples${Date.now()}`);
const { OPENAI_API_KEY, ANTHROPIC_API_KEY, ...others } = process.env;
const env = {
  ...others, AGENT_AUTHORITY_URL: world.url, AGENT_AUTHORITY_API_KEY: world.apiKey, AGENT_AUTHORITY_SUBJECT: world.agent,
};

for (const name of ['vercel-ai', 'langchain', 'openai-agents', 'claude-agent']) {
  const file = fileURLToPath(new URL(`examples/${name}.mjs`, import.meta.url));
  const run = async (amount) => (await promisify(execFile)(process.execPath, [file, amount], { env, timeout: 60_000 })).stdout;

  test(`the example ${name} pays, and waits for an approval of a large amount`, async () => {
    assert.equal(await run('1200'), 'paid 1200 EUR to Northwind Ltd\n');
    const running = run('25000');
    const { request } = await world.approve();
    assert.equal(request.context.arguments.payee, 'Northwind Ltd');
    assert.equal(await running, 'paid 25000 EUR to Northwind Ltd\n');
  });
}

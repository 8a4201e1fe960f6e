// The size of the first page, and the time until the first byte of pages.
import { strict as assert } from 'node:assert';
import { Agent, request } from 'node:http';
import { APPROVER, AUDITOR, opened, scenario, signedIn } from './browser.mjs';
import { kind, screens } from './found.mjs';
import { BASE, held } from './service.mjs';

const FIRST_PAGE = 100_000;
const TIMES = 20;

scenario('the first page with all that it needs is under 100 KB', async (t) => {
  const signed = await signedIn(APPROVER);
  const context = await opened({ storageState: await signed.context().storageState() });
  const page = await context.newPage();
  const answers = [];
  page.on('response', (answer) => answers.push(answer));
  await page.goto('/console', { waitUntil: 'networkidle' });
  const bodies = await Promise.all(answers.filter((answer) => answer.status() === 200).map((answer) => answer.body()));
  const bytes = bodies.reduce((sum, body) => sum + body.length, 0);
  t.diagnostic(`${bytes} bytes in ${bodies.length} files, not compressed`);
  assert.ok(bodies.length >= 3 && bytes < FIRST_PAGE, `${bytes} bytes in ${bodies.length} files`);
});

/** Returns the milliseconds from the request to the response's first byte, on a kept connection. */
function firstByte(agent, path, cookie) {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    request(`${BASE}${path}`, { agent, headers: { cookie } }, (answer) => {
      const took = performance.now() - start;
      answer.resume();
      answer.on('end', () => (answer.statusCode === 200 ? resolve(took) : reject(new Error(`${path}: ${answer.statusCode}`))));
    }).on('error', reject).end();
  });
}

// The times are printed and not compared, because other load on the machine affects them.
scenario('the first byte', async (t) => {
  await held(25_300);
  const page = await signedIn(AUDITOR);
  const paths = await screens(page);
  const cookie = (await page.context().cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  // Measures the list of each section, and one page of a record in each section.
  for (const path of paths.filter((path) => /^\/console\/[a-z-]+(\/\{\})?$/.test(kind(path)))) {
    const took = [];
    for (let time = 0; time < TIMES; time += 1) took.push(await firstByte(agent, path, cookie));
    took.sort((a, b) => a - b);
    const at = (part) => took[Math.ceil(part * TIMES) - 1].toFixed(1);
    t.diagnostic(`${kind(path)}: p50 ${at(0.5)} ms, p95 ${at(0.95)} ms of ${TIMES}`);
  }
  agent.destroy();
});

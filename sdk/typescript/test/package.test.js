// The package as others install it: into an empty folder, and checked by the compiler.
import { test } from 'node:test';
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import assert from 'node:assert/strict';

const library = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(import.meta.url);
const run = promisify(execFile);
/** Returns the folder of an installed package. */
const folderOf = (name) =>
  require.resolve
    .paths(name)
    .map((place) => join(place, name))
    .find((place) => existsSync(place));

const consumer = `
import { Authority, Denied, Held, Unavailable } from '@agent-authority/sdk/guard';
import type { Guarded, Permit, Question } from '@agent-authority/sdk/guard';
import { verifyPermit, verifyEvidence } from '@agent-authority/sdk/verify';
import { verifyWebhook } from '@agent-authority/sdk';

const subject = 'svc:agent:acme:bot';
const authority = new Authority({ baseUrl: 'http://127.0.0.1:1', apiKey: 'svc_sandbox_1', subject, verify: false });
interface Order { amount: string; currency: string; iban: string }
const pay = authority.guard({
  action: 'payment.execute', purpose: 'invoice-settlement', wait: '10m', redact: [],
  context: ({ amount, currency }: Order) => ({ amount, currency }),
}, async (order: Order, { signal, permit }) => ({ paid: order.iban, by: permit?.decision.decisionId, aborted: signal.aborted }));
const typed: Guarded<Order, { paid: string; by: string | undefined; aborted: boolean }> = pay;
const question: Question = { action: 'payment.execute', context: { amount: '1200.00', currency: 'EUR' } };
const use = async (permit: Permit): Promise<number> => permit.run(() => 1);
try {
  await typed({ amount: '1', currency: 'EUR', iban: 'DE1' }, { signal: AbortSignal.timeout(3000) });
} catch (error) {
  if (error instanceof Denied || error instanceof Held) throw error;
  if (!(error instanceof Unavailable)) throw error;
  console.log(error.code, typeof use, typeof verifyPermit, typeof verifyEvidence, typeof verifyWebhook);
  console.log(question.action);
}
`;

test('the tarball installs into an empty folder, runs, and satisfies the strict compiler', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-authority-'));
  try {
    await run('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder], { cwd: library });
    const [tarball] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
    writeFileSync(join(folder, 'package.json'), '{"private": true, "type": "module"}');
    await run('npm', ['install', '--offline', '--no-audit', '--no-fund', '--legacy-peer-deps', `./${tarball}`], {
      cwd: folder,
    });
    // Without other packages: what receivers of webhooks and servers of tools use.
    const alone = 'await import("@agent-authority/sdk"); await import("@agent-authority/sdk/verify"); console.log("ok")';
    assert.equal((await run('node', ['--input-type=module', '-e', alone], { cwd: folder })).stdout, 'ok\n');
    for (const name of ['@bufbuild/protobuf', '@connectrpc/connect', '@connectrpc/connect-web']) {
      const place = join(folder, 'node_modules', name);
      mkdirSync(dirname(place), { recursive: true });
      symlinkSync(folderOf(name), place, 'dir');
    }
    writeFileSync(join(folder, 'consumer.ts'), consumer);
    const tsc = join(folderOf('typescript'), 'bin/tsc');
    await run(
      'node',
      [
        tsc,
        '--strict',
        '--exactOptionalPropertyTypes',
        '--noUncheckedIndexedAccess',
        '--target',
        'es2022',
        '--module',
        'nodenext',
        '--lib',
        'es2022,dom,dom.iterable',
        '--types',
        '',
        'consumer.ts',
      ],
      { cwd: folder },
    );
    const printed = (await run('node', ['consumer.js'], { cwd: folder })).stdout;
    assert.equal(printed, 'unavailable function function function function\npayment.execute\n');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

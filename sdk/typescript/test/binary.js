// The service with its demonstration tenant, for tests: the program AGENT_AUTHORITY_BIN, or a running service at
// AGENT_AUTHORITY_URL with AGENT_AUTHORITY_API_KEY and tokens in OWNER, ADMIN and APPROVER.
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const { env } = process;
const program = env.AGENT_AUTHORITY_BIN;
/** Whether the tests start the service, and can stop it. */
export const isOwn = Boolean(program);
export const isThere = isOwn || Boolean(env.AGENT_AUTHORITY_URL && env.OWNER);
export const subject = 'svc:agent:acme:invoice-bot';

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Returns the service's address, an API key, its people's tokens and a function that makes their calls. */
export async function connect() {
  if (isOwn) return start();
  const tokens = { owner: env.OWNER, admin: env.ADMIN, approver: env.APPROVER };
  return { ...clientOf(env.AGENT_AUTHORITY_URL, tokens), apiKey: env.AGENT_AUTHORITY_API_KEY, stop() {} };
}

function clientOf(baseUrl, tokens) {
  const call = async (role, path, body) => {
    const response = await fetch(`${baseUrl}${path}`, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${tokens[role]}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
  return { baseUrl, tokens, call };
}

async function start() {
  const folder = mkdtempSync(join(tmpdir(), 'agent-authority-'));
  // The database's own user must be able to enter it.
  chmodSync(folder, 0o755);
  const [listen, ops] = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
  const child = spawn(program, ['serve', '--data-dir', folder, '--listen', listen], {
    env: { ...env, AGENT_AUTHORITY__LISTEN__OPS: ops },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let banner = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => {
      banner += data;
    });
  const baseUrl = `http://${listen}`;
  const ended = new Promise((resolve) => child.on('exit', resolve));
  for (let tries = 0; ; tries += 1) {
    const ready = await fetch(`${baseUrl}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
    if (ready && /KEY=(\S+)/.test(banner)) break;
    if (tries > 600 || child.exitCode !== null) throw new Error(`the program did not start:\n${banner}`);
    await sleep(200);
  }
  const token = (...words) =>
    execFileSync(program, ['token', ...words, '--data-dir', folder], { encoding: 'utf8' }).trim();
  const tokens = { owner: token('owner') };
  for (const role of ['approver', 'admin']) tokens[role] = token('tenant', '--tenant', 'acme', '--role', role);
  const stop = async () => {
    child.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...clientOf(baseUrl, tokens), apiKey: /KEY=(\S+)/.exec(banner)[1], stop };
}

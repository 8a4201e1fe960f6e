// A tenant with an agent, its authority and its approvers, on a real server.
//
// AGENT_AUTHORITY_SERVER is the service's program. A server of its own starts with the first tenant
// and ends with the process, unless AGENT_AUTHORITY_URL and AGENT_AUTHORITY_DATA name a running one.
import { execFile, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { after } from 'node:test';
import { Authority } from '@agent-authority/sdk/guard';

const program = process.env.AGENT_AUTHORITY_SERVER;
let server;

/** Creates a tenant. Amounts over 10000 are held, and other currencies than EUR are denied. */
export async function createWorld(slug) {
  const { url, token } = await (server ??= startServer());
  const owner = await token('owner');
  const send = sender(url, owner);
  const tenant = `svc:tenant:${slug}`;
  await send('/api/v1/tenants', { name: slug, slug, env: 'sandbox' });
  const person = await send('/api/v1/principals', {
    tenant_id: tenant, principal_class: 'human', display_name: 'Head of finance', email: `finance@${slug}.example`,
  });
  await send('/api/v1/principals', {
    tenant_id: tenant, principal_class: 'human', display_name: 'First approver', email: `approver@${slug}.example`,
  });
  const agent = await send('/api/v1/principals', {
    tenant_id: tenant, principal_class: 'agent', name: 'payment-bot', display_name: 'Pays supplier invoices',
    owner_principal_id: person.id,
  });
  await send('/api/v1/purposes', {
    tenant_id: tenant, slug: 'invoice-settlement', name: 'Settle invoices', allowed_actions: ['payment.*', 'tool.*'],
  });
  await send('/api/v1/delegations', {
    tenant_id: tenant, delegator_id: person.id, delegate_id: agent.id, actions: ['payment.execute', 'tool.*'],
    purposes: ['invoice-settlement'], max_amount: '50000', currency: 'EUR',
  });
  await send('/api/v1/policies', {
    tenant_id: tenant, regime: 'internal', name: 'Large payments', applies_to: ['action:payment.*'],
    cedar: '@id("large") @decision("require_approval") @reason("approval_threshold_breach") '
      + 'forbid (principal, action, resource) unless { context has amount && context.amount.lessThanOrEqual(decimal("10000.0")) };',
  });
  const key = await send('/api/v1/api-keys', {
    tenant_id: tenant, label: 'payment-bot', scopes: ['runtime:write', 'runtime:read'], principal_ids: [agent.id],
  });
  const approver = sender(url, await token('tenant', '--tenant', slug, '--role', 'approver'));
  const authority = new Authority({ baseUrl: url, apiKey: key.secret, subject: agent.id, logger: quiet });
  const open = async () => (await approver('/api/v1/app/approvals?state=pending')).approvals;
  const decide = async (verb) => {
    const [approval] = await until(open, (pending) => pending.length > 0);
    const { request_digest } = await approver(`/api/v1/app/approvals/${approval.id}`);
    return approver(`/api/v1/app/approvals/${approval.id}/${verb}`, { request_digest, ...(verb === 'decline' && { reason: 'a test' }) });
  };
  return {
    authority, url, apiKey: key.secret, agent: agent.id, tenant,
    pending: open,
    approve: () => decide('approve'),
    decline: () => decide('decline'),
    stop: () => send('/api/v1/stop-signals', { tenant_id: tenant, actor_id: agent.id, reason: 'a test' }),
    lift: (signal) => send(`/api/v1/stop-signals/${signal.id}/lift`, {}),
    /** The decisions with their reported outcomes, newest first. */
    async outcomes() {
      await authority.flush();
      const { decisions } = await send(`/api/v1/decisions?tenant_id=${tenant}&limit=5`);
      return Promise.all(decisions.map(async (each) => {
        const { report } = await send(`/api/v1/decisions/${each.decision_id}`);
        return { action: each.action, outcome: report?.outcome };
      }));
    },
  };
}

const quiet = { debug() {}, info() {}, warn() {}, error: (message) => console.error(message) };

/** Reads until a condition holds, for at most a minute. */
export async function until(read, isDone) {
  for (let waited = 0; waited < 60_000; waited += 50) {
    const value = await read();
    if (isDone(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error('the condition did not hold within a minute');
}

function sender(url, token) {
  return async (path, body) => {
    const response = await fetch(url + path, {
      method: body ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
    // A created or read record is the only member beside `ok`.
    const { ok, ...members } = JSON.parse(text);
    const [first, ...others] = Object.values(members);
    return typeof first === 'object' && !Array.isArray(first) && others.length === 0 ? first : members;
  };
}

async function startServer() {
  const { AGENT_AUTHORITY_URL: running, AGENT_AUTHORITY_DATA: runningData } = process.env;
  const data = runningData ?? await mkdtemp(join(tmpdir(), 'agent-authority-'));
  const listen = running ? new URL(running).host : `127.0.0.1:${await freePort()}`;
  const options = ['--data-dir', data, '--listen', listen];
  const token = async (...args) => (await promisify(execFile)(program, ['token', ...args, ...options])).stdout.trim();
  if (running) return { url: running, token };
  const child = spawn(program, ['serve', ...options], {
    env: { ...process.env, AGENT_AUTHORITY__LISTEN__OPS: `127.0.0.1:${await freePort()}` }, stdio: 'ignore',
  });
  after(async () => {
    const ended = new Promise((resolve) => { child.once('exit', resolve); });
    child.kill();
    await ended;
    await rm(data, { recursive: true, force: true });
  });
  const url = `http://${listen}`;
  const isReady = () => fetch(`${url}/.well-known/jwks.json`).then((response) => response.ok, () => false);
  for (let waited = 0; !await isReady(); waited += 1) {
    if (waited > 120 || child.exitCode !== null) throw new Error('the server did not start');
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  return { url, token };
}

function freePort() {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

// The service that is looked at, and what agents and owners do there by its API.
//
// It is told by the environment: CONSOLE_URL, an agent's API key in CONSOLE_AGENT_KEY, and a token of the
// installation's owner in CONSOLE_OWNER_TOKEN. The service has the demonstration, and is this run's own.
import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';

const told = (name) => process.env[name] ?? assert.fail(`${name} is not set`);

export const BASE = new URL(told('CONSOLE_URL')).origin;
export const TENANT = 'svc:tenant:acme';
export const AGENT = 'svc:agent:acme:invoice-bot';

async function call(token, method, path, body) {
  const answer = await fetch(`${BASE}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  const json = await answer.json();
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${JSON.stringify(json)}`);
  return json;
}

/** The API as the installation's owner. */
export const owner = {
  get: (path) => call(told('CONSOLE_OWNER_TOKEN'), 'GET', path),
  post: (path, body) => call(told('CONSOLE_OWNER_TOKEN'), 'POST', path, body),
  patch: (path, body) => call(told('CONSOLE_OWNER_TOKEN'), 'PATCH', path, body),
};

/** An agent asks for something that is held; the id of the request for approval, a new one each time. */
export async function held(amount, { context = {}, ...members } = {}) {
  const decision = await call(told('CONSOLE_AGENT_KEY'), 'POST', '/api/v1/runtime/evaluate', {
    subject: AGENT, action: 'payment.execute', purpose: 'invoice-settlement', ...members,
    context: { amount, currency: 'EUR', jurisdiction: 'DE', run: randomUUID(), ...context },
  });
  assert.equal(decision.decision, 'require_approval', JSON.stringify(decision));
  return decision.approval_id;
}

/** A request for approval as the API has it. */
export const approval = async (id) => (await owner.get(`/api/v1/approvals/${encodeURIComponent(id)}`)).approval;

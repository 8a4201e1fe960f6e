// The service under test, and the API calls of its agents and owners.
//
// The environment sets CONSOLE_URL, an agent's API key in CONSOLE_AGENT_KEY, and a token of the installation's owner
// in CONSOLE_OWNER_TOKEN. The service has the demonstration data and is used only by this run.
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

/** The API, called as the installation's owner. */
export const owner = {
  get: (path) => call(told('CONSOLE_OWNER_TOKEN'), 'GET', path),
  post: (path, body) => call(told('CONSOLE_OWNER_TOKEN'), 'POST', path, body),
  patch: (path, body) => call(told('CONSOLE_OWNER_TOKEN'), 'PATCH', path, body),
};

/** Makes an agent's request. Returns the decision. */
export const decided = (amount, { context = {}, ...members } = {}) =>
  call(told('CONSOLE_AGENT_KEY'), 'POST', '/api/v1/runtime/evaluate', {
    subject: AGENT, action: 'payment.execute', purpose: 'invoice-settlement', ...members,
    context: { amount, currency: 'EUR', jurisdiction: 'DE', run: randomUUID(), ...context },
  });

/** Makes an agent's request that is held. Returns the id of the new approval. */
export async function held(amount, members) {
  const decision = await decided(amount, members);
  assert.equal(decision.decision, 'require_approval', JSON.stringify(decision));
  return decision.approval_id;
}

/** Creates an agent of the head of finance. */
export async function newAgent(members) {
  const { principals } = await owner.get(`/api/v1/principals?tenant_id=${TENANT}&limit=500`);
  const head = principals.find(({ email }) => email === 'owner@acme.example').id;
  const { principal } = await owner.post('/api/v1/principals', {
    tenant_id: TENANT, principal_class: 'agent', owner_principal_id: head, ...members,
  });
  return principal;
}

/** Returns an approval from the API. */
export const approval = async (id) => (await owner.get(`/api/v1/approvals/${encodeURIComponent(id)}`)).approval;

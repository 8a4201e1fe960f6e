// Guards against the service itself. Skipped without one (binary.js).
import { after, before, test } from 'node:test';
import { existsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import assert from 'node:assert/strict';
import { Authority, Denied, Held, Unavailable, verifyPermit } from '@agent-authority/sdk/guard';
import { connect, isOwn, isThere, subject } from './binary.js';

const options = { skip: isThere ? false : 'AGENT_AUTHORITY_BIN is not set' };
let binary;
before(async () => {
  if (isThere) binary = await connect();
});
after(() => binary?.stop());

const warnings = [];
const logger = { debug() {}, info() {}, warn: (text) => warnings.push(text), error: (text) => warnings.push(text) };
const authorityOf = (more = {}) =>
  new Authority({ baseUrl: binary.baseUrl, apiKey: binary.apiKey, subject, logger, ...more });
const question = (amount, reference) => ({
  action: 'payment.execute',
  purpose: 'invoice-settlement',
  context: { amount, currency: 'EUR', jurisdiction: 'DE', arguments: { reference } },
});
/** Returns a guarded payment, and the references that were paid. */
const guarded = ({ body, ...guards } = {}, authority = authorityOf()) => {
  const paid = [];
  const context = ({ amount, country }) => ({ amount, currency: 'EUR', jurisdiction: country ?? 'DE' });
  const guard = { action: 'payment.execute', purpose: 'invoice-settlement', context, ...guards };
  const pay = authority.guard(guard, async (args, scope) => {
    paid.push(args.reference);
    return body ? body(args, scope) : 'paid';
  });
  return { pay, paid, authority };
};
const approve = (id) => binary.call('approver', `/api/v1/app/approvals/${id}/approve`, {});
const decline = (id) => binary.call('approver', `/api/v1/app/approvals/${id}/decline`, { reason: 'not known' });
const denied = (code) => (error) =>
  error instanceof Denied && (error.code === code || assert.fail(`${error.code}: ${error.message}`));
const outcomeOf = async ({ decisionId }) =>
  (await binary.call('owner', `/v1/decisions/${decisionId}`)).report?.outcome;

/** Returns the request for approval of a reference, once it is there. */
async function requested(reference) {
  for (let tries = 0; tries < 200; tries += 1) {
    const { approvals } = await binary.call('approver', '/api/v1/app/approvals?state=pending&limit=500');
    const found = approvals.find(({ request }) => request?.context?.arguments?.reference === reference);
    if (found) return found.id;
    await sleep(50);
  }
  return assert.fail(`no request for ${reference}`);
}

test('allowed: verified, run, reported', options, async () => {
  let decision;
  const { pay, authority } = guarded({
    body: (_, { permit }) => {
      decision = permit.decision;
      return 'paid';
    },
  });
  assert.equal(await pay({ amount: '1200.00', reference: 'allowed' }), 'paid');
  await authority.flush();
  assert.equal(await outcomeOf(decision), 'executed');
});

test('denied, with every declared member of a question', options, async () => {
  const { pay, paid } = guarded();
  await assert.rejects(
    pay({ amount: '1200', country: 'US', reference: 'denied' }),
    denied('jurisdiction_unsupported'),
  );
  await assert.rejects(
    authorityOf().decide({ ...question('1', 'x'), delegationId: 'svc:del:acme:none' }),
    denied('delegation_unknown'),
  );
  await assert.rejects(authorityOf().decide({ ...question('1', 'x'), subject: 'my-bot' }), denied('invalid_request'));
  await assert.rejects(
    authorityOf({ apiKey: 'svc_sandbox_1_2_3' }).decide(question('1', 'x')),
    denied('unauthenticated'),
  );
  const decision = await authorityOf().decide({
    ...question('1', 'x'),
    explain: true,
    justification: 'a test',
    atLeastRevision: 1,
    actionDeclaration: { effectClass: 'financial', reversibility: 'compensatable', rollbackAvailable: true },
    actionRiskClassification: { riskTier: 'limited', requiredOversightMode: 'none' },
  });
  assert.equal(decision.reasonCode, 'permission_granted');
  assert.deepEqual(paid, []);
});

test('held, approved, run once; its digest is what people sign', options, async () => {
  const { pay, paid } = guarded({ wait: '30s' });
  const outcome = pay({ amount: 25000, reference: 'held' });
  const id = await requested('held');
  const { approval } = await binary.call('approver', `/api/v1/app/approvals/${id}`);
  const held = await guarded()
    .pay({ amount: 25000, reference: 'held' })
    .catch((error) => error);
  assert.ok(held instanceof Held);
  assert.deepEqual([held.approvalId, held.digest], [id, approval.request_digest]);
  await approve(id);
  assert.equal(await outcome, 'paid');
  assert.deepEqual(paid, ['held']);
  await assert.rejects(authorityOf().resume(held.toJSON()), denied('used'));
});

test('an approval that is ready is used by the next call, and its permit verifies', options, async () => {
  const held = await guarded()
    .pay({ amount: 25000, reference: 'ready' })
    .catch((error) => error);
  await approve(held.approvalId);
  const { pay, paid } = guarded();
  assert.equal(await pay({ amount: 25000, reference: 'ready' }), 'paid');
  assert.deepEqual(paid, ['ready']);
});

test('declined, and cancelled by the agent itself', options, async () => {
  const { pay, paid, authority } = guarded({ wait: '30s' });
  const first = pay({ amount: 25000, reference: 'declined' });
  first.catch(() => {});
  await decline(await requested('declined'));
  await assert.rejects(first, denied('declined'));
  const second = pay({ amount: 25000, reference: 'cancelled' });
  second.catch(() => {});
  await authority.client.approvals.cancelApproval({ id: await requested('cancelled') });
  await assert.rejects(second, denied('void'));
  assert.deepEqual(paid, []);
});

test('50 wait for one approval, and one runs', options, async () => {
  const { pay, paid } = guarded({ wait: '60s' });
  const waiting = Promise.allSettled(Array.from({ length: 50 }, () => pay({ amount: 25000, reference: 'many' })));
  const id = await requested('many');
  await sleep(1000);
  await approve(id);
  const results = await waiting;
  assert.deepEqual(paid, ['many']);
  const refused = results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason);
  assert.equal(refused.length, 49);
  const codes = new Set(refused.map((error) => (error instanceof Denied ? error.code : error.name)));
  assert.ok(
    [...codes].every((code) => ['used', 'void', 'Unavailable'].includes(code)),
    [...codes].join(),
  );
  // No request for approval stays behind.
  await sleep(500);
  const { approvals } = await binary.call('approver', '/api/v1/app/approvals?state=pending&limit=500');
  assert.deepEqual(
    approvals.filter(({ request }) => request.context.arguments.reference === 'many'),
    [],
  );
});

test('two processes with one held question: one runs', options, async () => {
  const held = await guarded()
    .pay({ amount: 25000, reference: 'resumed' })
    .catch((error) => JSON.stringify(error));
  await approve(JSON.parse(held).approval_id);
  const both = [guarded(), guarded()];
  const results = await Promise.allSettled(
    both.map(({ pay }) => pay.resume(JSON.parse(held), { amount: 25000, reference: 'resumed' })),
  );
  assert.deepEqual(
    both.flatMap(({ paid }) => paid),
    ['resumed'],
  );
  assert.ok(denied('used')(results.find(({ status }) => status === 'rejected').reason));
});

test('another tool server verifies the permit for exactly this call', options, async () => {
  const authority = authorityOf();
  const jwks = await (await fetch(`${binary.baseUrl}/.well-known/jwks.json`)).json();
  const permit = await authority.permit(question('10.50', 'proof'));
  const proof = JSON.parse(JSON.stringify(permit.proof));
  const expected = { jwks, tenantId: 'svc:tenant:acme', question: question('10.5', 'proof') };
  assert.equal((await verifyPermit(proof, expected)).decisionId, permit.decision.decisionId);
  assert.equal((await authority.verify(proof, question('10.50', 'proof'))).decisionId, permit.decision.decisionId);
  for (const [change, code] of [
    [{ question: question('10.51', 'proof') }, 'unverified'],
    [{ question: { ...question('10.5', 'proof'), action: 'payment.other' } }, 'unverified'],
    [{ question: { ...question('10.5', 'proof'), purpose: 'other' } }, 'unverified'],
    [{ tenantId: 'svc:tenant:globex' }, 'unverified'],
    [{ question: { ...question('10.5', 'proof'), resourceId: 'svc:ent:acme:resource:1' } }, 'unverified'],
    [{ jwks: { keys: [] } }, 'unverified'],
    [{ now: Date.now() + 3_600_000 }, 'late'],
  ])
    await assert.rejects(verifyPermit(proof, { ...expected, ...change }), denied(code));
  await assert.rejects(
    verifyPermit({ ...proof, record: proof.record.replace('proof', 'x') + ' ' }, expected),
    denied('unverified'),
  );
  await permit.run(() => 'paid');
  const pack = await fetch(`${binary.baseUrl}/v1/evidence/seal`, {
    method: 'POST',
    headers: { authorization: `Bearer ${binary.tokens.owner}`, 'content-type': 'application/json' },
    body: JSON.stringify({ decision_id: permit.decision.decisionId }),
  });
  assert.equal(await authority.verify(await pack.text()), 'valid');
});

test('a stop ends a running tool within a second, and it is reported as abandoned', options, async () => {
  let decision;
  const body = (_, { signal, permit }) =>
    new Promise((_resolve, reject) => {
      ({ decision } = permit);
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  const { pay, authority } = guarded({ watch: true, body });
  const running = pay({ amount: '5', reference: 'stopped' });
  running.catch(() => {});
  while (!decision) await sleep(10);
  const signal = await binary.call('admin', '/api/v1/app/stop-signals', {
    tenant_id: 'svc:tenant:acme',
    actor_id: subject,
    reason: 'test',
  });
  const stoppedAt = performance.now();
  await assert.rejects(running, (error) => denied('stopped')(error) && error.started);
  assert.ok(performance.now() - stoppedAt < 1000);
  await authority.flush();
  assert.equal(await outcomeOf(decision), 'abandoned');
  await assert.rejects(guarded().pay({ amount: '5', reference: 'after' }), denied('actor_stopped'));
  await binary.call('admin', `/api/v1/app/stop-signals/${signal.stop_signal.id}/lift`, {});
  assert.equal(await guarded().pay({ amount: '5', reference: 'again' }), 'paid');
});

test('without the service no tool begins', { skip: !isOwn }, async () => {
  const file = join(tmpdir(), `agent-authority-${process.pid}`);
  const touch = () => writeFileSync(file, '');
  const { pay, authority } = guarded({ body: touch });
  await authority.decide(question('1', 'before'));
  await binary.stop();
  for (let n = 0; n < 3; n += 1) {
    await assert.rejects(pay({ amount: '1', reference: 'gone' }), (error) => error instanceof Unavailable);
  }
  assert.ok(!existsSync(file));
});

// Held calls, against a service in this process: they wait for people, and continue in other processes.
import { beforeEach, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { setTimeout as sleep } from 'node:timers/promises';
import assert from 'node:assert/strict';
import { Held, Unavailable } from '@agent-authority/sdk/guard';
import { Service } from './service.js';
import { authorityOf, denied, impatient, service, settled, silent } from './world.js';

beforeEach(() => hold());

const approval = 'svc:approval:01a22ec98efe700097b20d9f31f17f82';
const args = { amount: '25000', currency: 'EUR', iban: 'DE02' };

/** Returns a guarded payment that may be held, and the payments that were made. */
function guarded(options = {}, authority = authorityOf()) {
  const made = [];
  const guards = { action: 'payment.execute', context: ({ amount, currency }) => ({ amount, currency }), ...options };
  return {
    pay: authority.guard(guards, async (given) => {
      made.push(given);
      return 'paid';
    }),
    made,
    authority,
  };
}

/** Holds questions that cite no approved approval. A citing question uses the approval up. */
function hold(extra = {}) {
  service.approvals.set(approval, 'pending');
  const decide = Service.prototype.answer.bind(service);
  service.answer = (question) => {
    const { approval_id: cited } = question;
    const state = service.approvals.get(cited);
    service.decision = state === 'approved' ? 'allow_with_constraints' : 'require_approval';
    if (state === 'approved') service.approvals.set(cited, 'used');
    service.changeAnswer = (answer) => {
      if (cited) answer.citedApproval = { id: cited, state: state ?? 'unknown' };
      if (service.decision === 'require_approval') {
        answer.approvalId = service.approvals.get(approval) === 'pending' ? approval : 'svc:approval:second';
      }
      Object.assign(answer, extra);
    };
    return decide(question);
  };
  service.onWatchDecision = async (stream) => {
    stream.state('pending');
    while (service.approvals.get(approval) === 'pending') await sleep(10);
    stream.state(service.approvals.get(approval));
    stream.end();
  };
}
/** Decides a while after the next call was held, however slow the machine is. */
async function decideAfter(state, delay = 100) {
  const { approvals, asked } = service;
  const before = asked.length;
  await settled(() => asked.length > before);
  setTimeout(() => approvals.set(approval, state), delay);
}

test('without wait, a held call has what is needed to continue, and no secret', async () => {
  const { pay, made } = guarded({ redact: ['iban'] }, authorityOf({ redactKey: 'k' }));
  const held = await pay(args).catch((error) => error);
  assert.ok(held instanceof Held);
  const text = JSON.stringify(held);
  const json = JSON.parse(text);
  assert.deepEqual(Object.keys(json), [
    'kind',
    'approval_id',
    'verify_url',
    'digest',
    'eligible',
    'question',
    'decision_id',
    'reason_code',
  ]);
  assert.equal(json.approval_id, approval);
  assert.match(json.digest, /^sha256:[0-9a-f]{64}$/);
  assert.equal(json.question.context.amount, 25000);
  assert.ok(!text.includes('DE02') && !text.includes('svc_sandbox') && !text.includes(service.keys[0]));
  assert.ok(!('client_nonce' in json.question) && !('approval_id' in json.question));
  assert.deepEqual(made, []);
});

test('a wait is logged with the approval and the receipt', async () => {
  const warnings = [];
  const logger = { ...silent, warn: (text) => warnings.push(text) };
  const { pay } = guarded({ wait: '10s' }, authorityOf({ logger }));
  decideAfter('approved');
  assert.equal(await pay(args), 'paid');
  assert.equal(warnings.length, 1);
  assert.ok(warnings[0].startsWith(`waiting for approval ${approval}: ${service.baseUrl}/receipts/svc:decision:`));
});

test('a held call waits, cites its approval with a new key, and runs once', async () => {
  const { pay, made } = guarded({ wait: '10s' });
  decideAfter('approved');
  assert.equal(await pay(args), 'paid');
  assert.equal(made.length, 1);
  const [first, second] = service.asked;
  assert.equal(second.approval_id, approval);
  const { approval_id: _, client_nonce: nonce, ...asked } = second;
  assert.deepEqual({ ...asked, client_nonce: first.client_nonce }, first);
  assert.notEqual(nonce, first.client_nonce);
  assert.notEqual(service.keys[0], service.keys[1]);
});

for (const state of ['declined', 'expired', 'void', 'used']) {
  test(`a wait that ends with ${state} is denied`, async () => {
    const { pay, made } = guarded({ wait: '10s' });
    decideAfter(state);
    await assert.rejects(pay(args), denied(state));
    assert.equal(service.asked.length, 1);
    assert.deepEqual(made, []);
  });
}

test('the wait ends with Held, and a signal ends it before', async () => {
  const { pay, made } = guarded({ wait: '300ms' });
  const start = performance.now();
  await assert.rejects(pay(args), Held);
  assert.ok(performance.now() - start < 1500);
  const reason = new Error('the user left');
  const waiting = guarded({ wait: '1h' }).pay(args, { signal: AbortSignal.timeout(100) });
  await assert.rejects(waiting, { name: 'TimeoutError' });
  await assert.rejects(guarded({ wait: '1h' }).pay(args, { signal: AbortSignal.abort(reason) }), reason);
  assert.deepEqual(made, []);
});

test('the wait ends and follows the approval while garbage is collected', async () => {
  setFlagsFromString('--expose-gc');
  const collecting = setInterval(runInNewContext('gc'), 50);
  try {
    const start = performance.now();
    await assert.rejects(guarded({ wait: '1s' }).pay(args), Held);
    assert.ok(performance.now() - start < 4000);
    await assert.rejects(guarded({ wait: '1h' }).pay(args, { signal: AbortSignal.timeout(500) }), {
      name: 'TimeoutError',
    });
    decideAfter('approved', 500);
    assert.equal(await guarded({ wait: '1h' }).pay(args), 'paid');
  } finally {
    clearInterval(collecting);
  }
});

test('if nobody can approve, the wait ends at once', async () => {
  hold({ eligible: 'none' });
  const { pay } = guarded({ wait: '1h' });
  await assert.rejects(pay(args), (error) => error instanceof Held && error.eligible === 'none');
});

test('an approval that is ready is cited without a wait', async () => {
  service.approvals.set(approval, 'approved');
  const decide = service.answer;
  service.answer = async (question) => {
    const answer = await decide(question);
    if (answer.decision === 3) Object.assign(answer, { approvalId: approval, readyApprovalId: approval });
    return answer;
  };
  const { pay } = guarded();
  assert.equal(await pay(args), 'paid');
  assert.equal(service.asked[1].approval_id, approval);
});

const broken = {
  'that is cut': (stream) => stream.cut(),
  'that ends': (stream) => stream.end(),
  'that fails': (stream) => stream.refuse(14, 'unavailable'),
  'that is forbidden': (stream) => stream.refuse(7, 'permission_scope_exceeded'),
  'that has a state of a later version': (stream) => {
    stream.state('escalated');
    stream.end();
  },
};
for (const [name, fault] of Object.entries(broken)) {
  test(`the wait goes on after a stream ${name}`, async () => {
    const watch = service.onWatchDecision;
    let opened = 0;
    service.onWatchDecision = (stream) => {
      opened += 1;
      return opened === 1 ? fault(stream) : watch(stream);
    };
    const { pay, made } = guarded({ wait: '20s' });
    decideAfter('approved', 300);
    assert.equal(await pay(args), 'paid');
    assert.equal(made.length, 1);
  });
}

/** Runs with pauses of 30 seconds that end after 30 milliseconds. */
async function quickly(run) {
  const { setTimeout: own } = globalThis;
  const isPause = (delay) => delay === 30_000 && new Error().stack.includes('at sleep');
  globalThis.setTimeout = (callback, delay, ...rest) => own(callback, isPause(delay) ? 30 : delay, ...rest);
  try {
    return await run();
  } finally {
    globalThis.setTimeout = own;
  }
}

test('a hold that no approval ends is asked again, each 30 seconds, with a new key', async () => {
  let asked = 0;
  const decide = Service.prototype.answer.bind(service);
  service.answer = (question) => {
    asked += 1;
    service.decision = asked < 4 ? 'require_approval' : 'allow_with_constraints';
    service.changeAnswer = (answer) => {
      delete answer.approvalId;
    };
    return decide(question);
  };
  // The service may be unavailable for a moment during the wait.
  service.faults = [undefined, ({ error }) => error(14, 'unavailable', { retry_after: '5' })];
  const { pay, made } = guarded({ wait: '1h' }, impatient());
  assert.equal(await quickly(() => pay(args)), 'paid');
  assert.equal(made.length, 1);
  assert.equal(new Set(service.keys).size, 5);
  asked = 0;
  await assert.rejects(
    guarded({ wait: 0 }).pay(args),
    (error) => error instanceof Held && error.approvalId === undefined,
  );
});

test('a key that may not read approvals asks again', async () => {
  service.onWatchDecision = (stream) => stream.refuse(7, 'permission_scope_exceeded');
  service.approvals.get = () => undefined;
  const { pay } = guarded({ wait: '1h' });
  const { answer } = service;
  service.answer = async (question) => {
    if (service.asked.length < 3) return answer(question);
    service.decision = 'allow_with_constraints';
    service.changeAnswer = () => {};
    return Service.prototype.answer.call(service, question);
  };
  assert.equal(await quickly(() => pay(args)), 'paid');
});

test('a permission that was lost with its answer does not run, although the approval is used', async () => {
  const { pay, made } = guarded({ wait: '20s' }, impatient());
  decideAfter('approved');
  service.faults = [
    undefined,
    ...Array(50).fill(async ({ decide, cut, key }) => {
      if (!service.answers.has(key)) await decide();
      cut();
    }),
  ];
  await assert.rejects(pay(args), Unavailable);
  service.faults = [];
  while (!service.reports.length) await sleep(20);
  assert.equal(service.reports[0].outcome, 'abandoned');
  assert.equal(service.approvals.get(approval), 'used');
  assert.deepEqual(made, []);
});

test('a held call continues in another process, once', async () => {
  const held = JSON.parse(
    JSON.stringify(
      await guarded()
        .pay(args)
        .catch((error) => error),
    ),
  );
  service.approvals.set(approval, 'approved');
  const workers = Array.from({ length: 20 }, () => guarded({}, authorityOf()));
  const results = await Promise.allSettled(workers.map(({ pay }) => pay.resume(held, args)));
  assert.equal(results.filter(({ value }) => value === 'paid').length, 1);
  const refused = results.filter(({ status }) => status === 'rejected').map(({ reason }) => reason);
  assert.ok(refused.length === 19 && refused.every(denied('used')));
  assert.equal(workers.flatMap(({ made }) => made).length, 1);
  // The requests for approval that the slower ones opened would be answered in vain.
  assert.ok(service.cancelled.every((id) => id === 'svc:approval:second'));
});

test('a held question that ended is not asked again', async () => {
  const held = await guarded()
    .pay(args)
    .catch((error) => error);
  for (const state of ['declined', 'expired', 'void', 'used']) {
    service.approvals.set(approval, state);
    await assert.rejects(guarded().pay.resume(held, args), denied(state));
    await assert.rejects(authorityOf().resume(held), denied(state));
  }
  assert.equal(service.asked.length, 1);
});

test('a held call continues only with its own arguments, and only if it was not changed', async () => {
  const { pay, made } = guarded();
  const held = (await pay(args).catch((error) => error)).toJSON();
  service.approvals.set(approval, 'approved');
  await assert.rejects(pay.resume(held, { ...args, iban: 'DE99' }), denied('arguments_changed'));
  const question = { ...held.question, purpose: 'other' };
  await assert.rejects(pay.resume({ ...held, question }, args), denied('invalid_question'));
  await assert.rejects(authorityOf().resume({}), denied('invalid_question'));
  assert.deepEqual(made, []);
  assert.equal(await pay.resume(held, args), 'paid');
});

test('a held call continues only if its whole question is the held one', async () => {
  const held = (await guarded({ purpose: 'invoice-settlement' }).pay(args).catch((error) => error)).toJSON();
  service.approvals.set(approval, 'approved');
  for (const other of [
    { purpose: 'refund' },
    { purpose: undefined },
    { resourceId: 'svc:ent:acme:resource:1' },
    { subject: 'svc:agent:acme:other' },
    { context: ({ amount, currency }) => ({ amount, currency, jurisdiction: 'DE' }) },
  ]) {
    const { pay, made } = guarded({ purpose: 'invoice-settlement', ...other });
    await assert.rejects(pay.resume(held, args), denied('arguments_changed'));
    assert.deepEqual(made, []);
  }
  // Handlers and the justification are not a part of what people approved.
  const same = { purpose: 'invoice-settlement', justification: 'urgent', obligations: { 'mask.pii': {} } };
  assert.equal(await guarded(same).pay.resume(held, args), 'paid');
});

test('a held call that is still pending waits again', async () => {
  const { pay } = guarded({ wait: '10s' });
  const held = await guarded()
    .pay(args)
    .catch((error) => error);
  decideAfter('approved', 200);
  assert.equal(await pay.resume(held, args), 'paid');
});

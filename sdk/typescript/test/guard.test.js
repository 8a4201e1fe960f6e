// Tools behind a guard: they run with the arguments that were asked.
import { test } from 'node:test';
import { inspect } from 'node:util';
import assert from 'node:assert/strict';
import { Authority, Held } from '@agent-authority/sdk/guard';
import { subject } from './service.js';
import { action, args, authorityOf, denied, guarded, service, silent } from './world.js';

test('a permitted tool runs once with what was asked, and its outcome is reported', async () => {
  const { pay, made, authority } = guarded();
  assert.equal(await pay(args), 'paid');
  await authority.flush();
  assert.deepEqual(made, [args]);
  assert.equal(service.asked.length, 1);
  const [{ client_nonce: nonce, ...question }] = service.asked;
  assert.match(nonce, /^[0-9a-f]{32}$/);
  assert.deepEqual(question, {
    subject,
    action,
    purpose: 'invoice-settlement',
    supported_obligations: [],
    include_record: true,
    context: { amount: 1200, currency: 'EUR', jurisdiction: 'DE', arguments: args },
  });
  assert.deepEqual(
    service.reports.map(({ outcome, detail }) => [outcome, detail]),
    [['executed', undefined]],
  );
  assert.match(service.lastHeaders['user-agent'], /^agent-authority-typescript\/[0-9.]+$/);
});

test('a denial, an unknown decision and a hold do not run the tool', async () => {
  const { pay, made } = guarded();
  service.decision = 'deny';
  await assert.rejects(pay(args), denied('approval_threshold_breach'));
  service.decision = 'allow';
  service.changeAnswer = (answer) => {
    answer.decision = 77;
  };
  await assert.rejects(pay(args), denied('unknown_decision'));
  service.changeAnswer = (answer) => {
    answer.decision = 0;
  };
  await assert.rejects(pay(args), denied('unknown_decision'));
  service.decision = 'require_approval';
  service.changeAnswer = (answer) => {
    answer.approvalId = 'svc:approval:1';
  };
  await assert.rejects(pay(args), Held);
  assert.deepEqual(made, []);
});

test('what runs is what was asked: the arguments are copied before the question, and frozen', async () => {
  const given = {
    amount: '10',
    currency: 'EUR',
    to: { iban: 'DE1' },
    when: new Date(0),
    note: new Uint8Array([1, 2]),
  };
  const { pay, made } = guarded({
    body: (own) => {
      assert.throws(() => {
        own.amount = '20';
      }, TypeError);
      assert.throws(() => {
        own.to.iban = 'DE2';
      }, TypeError);
      return 'paid';
    },
  });
  const paid = pay(given);
  given.amount = '99999';
  given.to.iban = 'DE2';
  given.when.setTime(1);
  given.note[0] = 9;
  await paid;
  assert.deepEqual(made, [
    { amount: '10', currency: 'EUR', to: { iban: 'DE1' }, when: new Date(0), note: new Uint8Array([1, 2]) },
  ]);
  assert.equal(service.asked[0].context.arguments.amount, '10');
  assert.equal(service.asked[0].context.arguments.when, '1970-01-01T00:00:00Z');
});

test('arguments that change in place after the question are denied', async () => {
  service.obligations = ['mask.pii'];
  let own;
  const { pay, made } = guarded({
    context: (copy) => {
      own = copy;
      return {};
    },
    obligations: {
      'mask.pii': {
        before: () => {
          own.note[0] = 9;
        },
      },
    },
  });
  await assert.rejects(pay({ note: new Uint8Array([1, 2]) }), denied('arguments_changed'));
  assert.deepEqual(made, []);
});

test('arguments without an exact form, and mappings that fail, are denied without a question', async () => {
  class Order {
    total = 1;
  }
  const circular = {};
  circular.self = circular;
  for (const bad of [
    { amount: 0.1 + 0.2 },
    { amount: '1.23456' },
    { amount: '1e3' },
    { amount: 'ten' },
    { amount: Infinity },
    { amount: NaN },
    { amount: '9007199254740993' },
    { amount: '92233720368547.58071' },
    { amount: '1', n: NaN },
    { amount: '1', n: 2 ** 53 },
    { amount: '1', n: 2n ** 60n },
    { amount: '1', f() {} },
    { amount: '1', s: Symbol('s') },
    { amount: '1', order: new Order() },
    { amount: '1', map: new Map() },
    { amount: '1', text: '\ud800' },
    { amount: '1', text: 'a\0' },
    circular,
    { amount: '1', when: new Date(NaN) },
    { amount: '1', list: [undefined] },
  ]) {
    const { pay, made } = guarded({ context: (a) => ({ amount: a.amount }) });
    await assert.rejects(pay(bad), denied('invalid_question'));
    assert.deepEqual(made, []);
  }
  for (const failing of [
    {
      context: () => {
        throw new Error('x');
      },
    },
    { context: () => ({ arguments: {} }) },
    { context: async () => ({ amount: '1' }) },
    { resourceId: async () => 'svc:ent:acme:resource:1' },
    {
      resourceId: () => {
        throw new Error('x');
      },
    },
    { context: () => ({ amount: '1', f() {} }) },
  ]) {
    const { pay, made } = guarded(failing);
    await assert.rejects(pay(args), denied('invalid_question'));
    assert.deepEqual(made, []);
  }
  assert.equal(service.asked.length, 0);
});

test('redacted arguments are asked as their code', async () => {
  const { pay, made } = guarded(
    { redact: ['iban', '/card/number'] },
    authorityOf({ redactKey: 'a key of this agent' }),
  );
  await pay({ ...args, card: { number: '4111', kind: 'x' } });
  const { iban, card } = service.asked[0].context.arguments;
  assert.match(iban.hmac, /^[0-9a-f]{64}$/);
  assert.match(card.number.hmac, /^[0-9a-f]{64}$/);
  assert.equal(card.kind, 'x');
  assert.equal(made[0].iban, args.iban);
  assert.throws(() => guarded({ redact: ['iban'] }), /redactKey/);
});

test('shadow mode runs the tool whatever the answer, and needs a sandbox', async () => {
  const warnings = [];
  const logger = { ...silent, warn: (text) => warnings.push(text) };
  const { pay, made, authority } = guarded({ shadow: true }, authorityOf({ logger }));
  assert.match(warnings[0], /shadow mode/);
  assert.equal(await pay(args), 'paid');
  await authority.flush();
  assert.equal(service.reports[0].detail, 'shadow mode');
  service.decision = 'deny';
  assert.equal(await pay(args), 'paid');
  service.faults = Array(99).fill(({ cut }) => cut());
  assert.equal(await pay(args), 'paid');
  assert.equal(await pay({ amount: NaN }), 'paid');
  assert.equal(made.length, 4);
  assert.equal(warnings.length, 4);
  const live = { apiKey: 'svc_prod_1_2_3', logger };
  assert.throws(() => guarded({ shadow: true }, authorityOf(live)), /sandbox/);
  assert.ok(guarded({ shadow: true }, authorityOf({ ...live, shadowInProduction: true })));
});

test('a member of a question that has another type is refused, not left out', async () => {
  const authority = authorityOf();
  const members = ['purpose', 'resourceId', 'delegationId', 'toolId', 'onBehalfOf', 'actionDeclaration'];
  for (const name of members) {
    for (const value of [{}, [], Promise.resolve('x'), false]) {
      if (name === 'actionDeclaration' && value?.constructor === Object) continue;
      await assert.rejects(authority.decide({ action, [name]: value }), denied('invalid_question'));
    }
  }
  await assert.rejects(authority.decide({ action, explain: 'yes' }), denied('invalid_question'));
  await assert.rejects(authority.decide({ action, atLeastRevision: '7' }), denied('invalid_question'));
  assert.equal(service.asked.length, 0);
  const actionDeclaration = { effectClass: 'informational', rollbackAvailable: false };
  await authority.decide({ action, purpose: undefined, explain: false, actionDeclaration, actionRiskClassification: {} });
  const { purpose, action_risk_classification: risk, action_declaration: declared } = service.asked[0];
  assert.deepEqual([purpose, risk, declared.effect_class], [undefined, undefined, 'informational']);
});

test('decide returns the decision, and denies obligations that the caller does not name', async () => {
  const authority = authorityOf();
  service.obligations = ['mask.pii'];
  const question = { action, purpose: 'invoice-settlement', context: { amount: '1' } };
  await assert.rejects(authority.decide(question), denied('obligation_unsupported'));
  const decision = await authority.decide({ ...question, supportedObligations: ['mask.pii'] });
  assert.deepEqual(decision.obligations, ['mask.pii']);
  await assert.rejects(authority.decide({ ...question, purose: 'x' }), denied('invalid_question'));
  await assert.rejects(authorityOf({ subject: undefined }).decide(question), denied('invalid_question'));
});

test('an API key is refused where window is defined, and options are checked', async () => {
  globalThis.window = globalThis;
  try {
    assert.throws(() => authorityOf(), TypeError);
  } finally {
    delete globalThis.window;
  }
  assert.throws(() => Authority.fromEnv(), /AGENT_AUTHORITY_URL/);
  process.env.AGENT_AUTHORITY_URL = service.baseUrl;
  assert.throws(() => Authority.fromEnv(), /AGENT_AUTHORITY_API_KEY/);
  process.env.AGENT_AUTHORITY_API_KEY = 'svc_sandbox_1_2_3';
  process.env.AGENT_AUTHORITY_SUBJECT = subject;
  try {
    await (await Authority.fromEnv().permit({ action })).run(() => 'paid');
    assert.equal(service.lastHeaders.authorization, 'Bearer svc_sandbox_1_2_3');
    // An option that is undefined does not unpin the keys.
    process.env.AGENT_AUTHORITY_JWKS = '/no/such/file.json';
    const { options } = Authority.fromEnv({ jwks: undefined, subject: undefined, logger: silent });
    assert.deepEqual([options.jwks, options.subject], ['/no/such/file.json', subject]);
  } finally {
    for (const name of ['URL', 'API_KEY', 'SUBJECT', 'JWKS']) delete process.env[`AGENT_AUTHORITY_${name}`];
  }
  const shown = inspect(authorityOf({ redactKey: 'the key' }), { depth: 9 }) + JSON.stringify(authorityOf());
  assert.ok(!shown.includes('svc_sandbox_1_2_3') && !shown.includes('the key'));
  assert.throws(() => authorityOf().guard({ action: '' }, () => {}), TypeError);
  assert.throws(() => authorityOf({ subject: undefined }).guard({ action }, () => {}), TypeError);
  await assert.rejects(authorityOf().permit({ action }, { wait: '10 minutes' }), TypeError);
});

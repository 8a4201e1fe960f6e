// The scope in which a permitted tool runs: obligations, stop conditions, reports.
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import assert from 'node:assert/strict';
import { ToolGuard } from '../dist/adapters/tool-guard.js';
import { action, ahead, args, authorityOf, denied, guarded, service, settled, silent } from './world.js';

test('an obligation without handler is denied before anything runs, also if the service ignores the list', async () => {
  service.obligations = ['audit.emit', 'mask.pii', 'constructor'];
  const { pay, made } = guarded();
  await assert.rejects(pay(args), denied('obligation_unsupported'));
  await settled(() => service.reports.length === 1);
  assert.equal(service.reports[0].outcome, 'abandoned');
  assert.deepEqual(made, []);
});

test('handlers meet obligations before and after the tool', async () => {
  service.obligations = ['audit.emit', 'mask.pii', 'notify.owner'];
  const order = [];
  const obligations = {
    'notify.owner': {
      after: async (permit, result) => {
        order.push(`after ${result}`);
      },
    },
    'mask.pii': {
      before: async (permit) => {
        order.push(`before ${permit.decision.decisionId.slice(0, 13)}`);
      },
    },
  };
  const { pay } = guarded({
    obligations,
    body: () => {
      order.push('tool');
      return 'paid';
    },
  });
  assert.equal(await pay(args), 'paid');
  assert.deepEqual(order, ['before svc:decision:', 'tool', 'after paid']);
  assert.deepEqual(service.asked[0].supported_obligations, ['mask.pii', 'notify.owner']);
});

test('a handler that fails denies before the tool, and withholds the result after it', async () => {
  service.obligations = ['mask.pii'];
  const fail = () => {
    throw new RangeError('private');
  };
  const early = guarded({ obligations: { 'mask.pii': { before: fail } } });
  await assert.rejects(early.pay(args), denied('obligation_failed'));
  assert.deepEqual(early.made, []);
  const late = guarded({ obligations: { 'mask.pii': { after: fail } } });
  await assert.rejects(late.pay(args), RangeError);
  assert.equal(late.made.length, 1);
  await settled(() => service.reports.length === 2);
  assert.deepEqual(
    service.reports.map(({ outcome }) => outcome),
    ['abandoned', 'executed'],
  );
});

test('warnings about reality are logged, and do not stop the tool', async () => {
  service.obligations = ['audit.emit', 'reality.warn', 'reality.overridden'];
  const warnings = [];
  const { pay } = guarded({}, authorityOf({ logger: { ...silent, warn: (text) => warnings.push(text) } }));
  assert.equal(await pay(args), 'paid');
  assert.equal(warnings.length, 2);
});

test('a failure of the tool is reported by its type, and stays the failure', async () => {
  class BankError extends Error {
    name = 'BankError';
  }
  const failure = new BankError('account DE02 is closed');
  const { pay, authority } = guarded({
    body: () => {
      throw failure;
    },
  });
  await assert.rejects(pay(args), failure);
  await authority.flush();
  const loud = guarded(
    {
      body: () => {
        throw failure;
      },
    },
    authorityOf({ reportMessages: true }),
  );
  await assert.rejects(loud.pay(args), failure);
  await loud.authority.flush();
  assert.deepEqual(
    service.reports.map(({ outcome, detail }) => [outcome, detail]),
    [
      ['failed', 'BankError'],
      ['failed', 'BankError: account DE02 is closed'],
    ],
  );
});

test('a generator, which would run after the permit, is refused', async () => {
  let ran = false;
  const bodies = [
    function* () {
      ran = true;
    },
    async function* () {
      ran = true;
    },
  ];
  for (const body of bodies) {
    const { pay, authority } = guarded({ body });
    await assert.rejects(pay(args), TypeError);
    await authority.flush();
    assert.deepEqual(service.reports.at(-1).outcome, 'failed');
  }
  assert.equal(ran, false);
  assert.deepEqual(await guarded({ body: () => new Map([[1, 2]]).values() }).pay(args).then((each) => [...each]), [2]);
});

test('a tool that runs elsewhere must begin before the end of its permit', async () => {
  for (const clock of [performance, Date]) {
    // Time that passes between the request and the tool does not lengthen the permission.
    const { now } = clock;
    const pass = () => { clock.now = () => now.call(clock) + 50_000; };
    service.obligations = ['mask.pii'];
    const obligations = { 'mask.pii': { before: pass } };
    const guard = new ToolGuard(authorityOf(), { actions: { pay: action }, obligations });
    try {
      const call = await guard.open('pay', args);
      assert.equal(call.isLate(), false);
      await ahead(clock, 11_000, () => assert.equal(call.isLate(), true));
      call.finish();
    } finally {
      clock.now = now;
    }
    service.obligations = [];
    const permit = await authorityOf().permit({ action });
    assert.ok(permit.remaining > 50_000 && permit.remaining <= 60_000);
    permit.end('abandoned');
  }
});

test('a permit does not outlast the sleep of the machine, or a wall clock that is set back', async () => {
  for (const clock of [performance, Date]) {
    const permit = await authorityOf().permit({ action });
    await ahead(clock, 61_000, async () => {
      assert.equal(permit.remaining, 0);
      await assert.rejects(permit.run(() => assert.fail('it ran')), denied('late'));
    });
  }
});

test('a report is repeated with one key, once counted, and never changes the result', async () => {
  const faults = [
    ({ cut }) => cut() ?? true,
    ({ status }) => status(503) ?? true,
    ({ error }) => error(14, 'unavailable') ?? true,
  ];
  service.onReport = (reply) => faults.shift()?.(reply);
  const { pay, authority } = guarded();
  assert.equal(await pay(args), 'paid');
  await authority.flush();
  assert.equal(service.reports.length, 4);
  assert.equal(new Set(service.reports.map(({ key }) => key)).size, 1);
  const errors = [];
  service.onReport = ({ error }) => error(10, 'already_reported') ?? true;
  const other = guarded({}, authorityOf({ logger: { ...silent, error: (text) => errors.push(text) } }));
  assert.equal(await other.pay(args), 'paid');
  await other.authority.flush();
  assert.equal(errors.length, 1);
});

test('a tool that is running stops within a second, and the outcome is reported as abandoned', async () => {
  let stop;
  service.onWatchStop = (stream) => {
    stream.heartbeat();
    stop = stream.stopped;
  };
  let aborted;
  const body = (_, { signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        aborted = performance.now();
        reject(signal.reason);
      });
    });
  for (const watch of [true, false]) {
    stop = undefined;
    const { pay, authority } = guarded({ watch, body });
    const running = pay(args);
    running.catch(() => {});
    await settled(() => stop);
    await sleep(20);
    const stoppedAt = performance.now();
    stop('actor.stop_signal');
    await assert.rejects(
      running,
      (error) => denied('stopped')(error) && error.started && /actor.stop_signal/.test(error.message),
    );
    assert.ok(aborted - stoppedAt < 1000);
    await authority.flush();
    assert.deepEqual(service.reports.at(-1).outcome, 'abandoned');
    assert.deepEqual(service.reports.at(-1).detail, 'actor.stop_signal');
  }
  assert.equal(service.reports.length, 2);
});

test('a tool that ignores its signal is left, and its later failure is not unhandled', async () => {
  service.onWatchStop = (stream) => {
    stream.heartbeat();
    setTimeout(stream.stopped, 50, 'delegation.revoked');
  };
  const { pay } = guarded({
    watch: true,
    body: async () => {
      await sleep(300);
      throw new Error('too late');
    },
  });
  await assert.rejects(pay(args), denied('stopped'));
  await sleep(350);
});

test('with watch, the tool does not begin unless the permission is confirmed', async () => {
  for (const [refuse, condition] of [
    [(stream) => stream.refuse(8, 'rate_limited'), 'watch_refused: rate_limited'],
    [(stream) => stream.refuse(7, 'permission_scope_exceeded'), 'watch_refused: permission_scope_exceeded'],
    [(stream) => stream.stopped('actor.stop_signal'), 'actor.stop_signal'],
    [(stream) => stream.stopped(undefined), 'stopped'],
  ]) {
    service.onWatchStop = refuse;
    const { pay, made, authority } = guarded({ watch: true });
    await assert.rejects(
      pay(args),
      (error) => denied('stopped')(error) && !error.started && error.message.includes(condition),
    );
    assert.deepEqual(made, []);
    await authority.flush();
    assert.equal(service.reports.at(-1).outcome, 'abandoned');
  }
});

test('a broken stream is opened again, and silence ends the permission', async () => {
  let opened = 0;
  service.onWatchStop = (stream) => {
    opened += 1;
    stream.heartbeat();
    if (opened < 3) stream.cut();
  };
  const { pay } = guarded({
    watch: true,
    body: async () => {
      await settled(() => opened === 3);
      return 'paid';
    },
  });
  assert.equal(await pay(args), 'paid');
});

test('a permission without a heartbeat for 30 seconds has ended', async () => {
  service.onWatchStop = (stream) => {
    stream.heartbeat();
    stream.send({ kind: 'a_later_kind' });
  };
  const { now } = Date;
  const passing = (seconds) => guarded({
    watch: true,
    body: async (_, { signal }) => {
      Date.now = () => now() + seconds * 1000;
      await sleep(1500, undefined, { signal });
      return 'paid';
    },
  });
  try {
    assert.equal(await passing(27).pay(args), 'paid');
    Date.now = now;
    await assert.rejects(
      passing(31).pay(args),
      (error) => denied('stopped')(error) && error.started && /no_heartbeat/.test(error.message),
    );
  } finally {
    Date.now = now;
  }
});

test('the permission that the caller cancels is abandoned, before and while the tool runs', async () => {
  const reason = new Error('the user left');
  const controller = new AbortController();
  const { pay, made, authority } = guarded({
    body: (_, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
        controller.abort(reason);
      }),
  });
  await assert.rejects(pay(args, { signal: AbortSignal.abort(reason) }), reason);
  assert.deepEqual(made, []);
  await assert.rejects(pay(args, { signal: controller.signal }), reason);
  assert.equal(made.length, 1);
  await authority.flush();
  assert.equal(service.reports.at(-1).outcome, 'abandoned');
});

test('a permit runs once, and leaving its scope reports what is not known', async () => {
  const authority = authorityOf();
  const permit = await authority.permit({ action, context: {} });
  assert.equal(await permit.run(() => 'paid'), 'paid');
  await assert.rejects(
    permit.run(() => 'paid again'),
    denied('used'),
  );
  const unused = await authority.permit({ action, context: {} });
  await unused[Symbol.asyncDispose]();
  const left = await authority.permit({ action, context: {} });
  await left.begin();
  await left[Symbol.asyncDispose]();
  const ended = await authority.permit({ action, context: {} });
  await ended.begin();
  ended.end('executed', 'reference 4711');
  await ended[Symbol.asyncDispose]();
  await authority.flush();
  assert.deepEqual(service.reports.map(({ outcome, detail }) => [outcome, detail]).sort(), [
    ['abandoned', 'not used'],
    ['executed', undefined],
    ['executed', 'reference 4711'],
    ['failed', 'outcome unknown'],
  ]);
});

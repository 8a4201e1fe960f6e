// Permits that must not be accepted: forged, changed, for another call, of another key, too late.
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import assert from 'node:assert/strict';
import { verifyPermit } from '@agent-authority/sdk/verify';
import { signingKey, subject } from './service.js';
import { action, ahead, args, authorityOf, denied, guarded, service, settled, unavailable } from './world.js';

test('an older permit of the same question is denied', async () => {
  const { pay, made } = guarded();
  await pay(args);
  const [older] = service.answers.values();
  // The older answer, without the mark of a repetition.
  service.answer = async () => older;
  await assert.rejects(pay(args), (error) => denied('unverified')(error) && /client_nonce/.test(error.message));
  assert.equal(made.length, 1);
});

/** Records that are signed, but not of this call. */
const foreign = {
  'another action': (record) => {
    record.request.action = 'payment.other';
  },
  'another subject': (record) => {
    record.request.subject = 'svc:agent:acme:other';
  },
  'another purpose': (record) => {
    record.request.purpose = 'other';
  },
  'no purpose': (record) => {
    delete record.request.purpose;
  },
  'a resource': (record) => {
    record.request.resource_id = 'svc:ent:acme:resource:1';
  },
  'a tool': (record) => {
    record.request.tool_id = 'svc:ent:acme:tool:1';
  },
  'a delegation': (record) => {
    record.request.delegation_id = 'svc:del:acme:1';
  },
  'another principal': (record) => {
    record.request.on_behalf_of = 'svc:agent:acme:2';
  },
  'a workspace': (record) => {
    record.request.workspace_id = 'w';
  },
  'a project': (record) => {
    record.request.project_id = 'p';
  },
  'a declaration': (record) => {
    record.request.action_declaration = { effect_class: 'informational' };
  },
  'a risk': (record) => {
    record.request.action_risk_classification = { risk_tier: 'minimal' };
  },
  'other obligations': (record) => {
    record.request.supported_obligations = ['mask.pii'];
  },
  'no obligations': (record) => {
    delete record.request.supported_obligations;
  },
  'another nonce': (record) => {
    record.request.client_nonce = '0'.repeat(32);
  },
  'no nonce': (record) => {
    delete record.request.client_nonce;
  },
  'a revision': (record) => {
    record.request.at_least_revision = 3;
  },
  'another context': (record) => {
    record.request.context_digest = `sha256:${'0'.repeat(64)}`;
  },
  'another tenant': (record) => {
    record.tenant_id = 'svc:tenant:globex';
  },
  'another kind': (record) => {
    record.kind = 'svc.decision.report.v1';
  },
  'no end': (record) => {
    record.valid_until = null;
  },
  'a wrong time': (record) => {
    record.evaluated_at = '2026-02-30T00:00:00Z';
  },
};
for (const [name, change] of Object.entries(foreign)) {
  test(`a signed record with ${name} is denied`, async () => {
    const { pay, made } = guarded();
    service.changeRecord = change;
    await assert.rejects(pay(args), denied('unverified'));
    assert.deepEqual(made, []);
  });
}

/** Answers that differ from their record. */
const changedAnswers = {
  'allow instead of allow_with_constraints': (answer) => {
    answer.decision = 1;
  },
  'another decision_id': (answer) => {
    answer.decisionId = answer.decisionId.replace(/.$/, (c) => (c === '0' ? '1' : '0'));
  },
  'another digest': (answer) => {
    answer.evidencePack.recordDigest = `sha256:${'0'.repeat(64)}`;
  },
  'another reason': (answer) => {
    answer.reasonCode = 'other';
  },
  'other reasons': (answer) => {
    answer.reasons = [];
  },
  'fewer obligations': (answer) => {
    answer.obligations = [];
  },
  'fewer stop conditions': (answer) => {
    answer.stopConditions = [];
  },
  'another tool': (answer) => {
    answer.toolId = 'svc:ent:acme:tool:1';
  },
  'a later end': (answer) => {
    answer.validUntil.seconds += 3600n;
  },
  'no end': (answer) => {
    delete answer.validUntil;
  },
  'another time': (answer) => {
    answer.evaluatedAt.seconds -= 60n;
  },
  'another revision': (answer) => {
    answer.authorityRevision = 8;
  },
  'no record': (answer) => {
    delete answer.record;
  },
  'no salt': (answer) => {
    delete answer.contextSalt;
  },
  'another salt': (answer) => {
    answer.contextSalt = Buffer.alloc(16).toString('base64');
  },
  'a short salt': (answer) => {
    answer.contextSalt = '';
  },
  'no signature': (answer) => {
    delete answer.evidencePack.signature;
  },
  'no pack': (answer) => {
    delete answer.evidencePack;
  },
  'an unknown key': (answer) => {
    answer.evidencePack.signature.kid = 'svc-evidence-2026-00000000';
  },
  'a record that is not canonical': (answer) => {
    answer.record = ` ${answer.record}`;
  },
  'a record with a member twice': (answer) => {
    answer.record = answer.record.replace('{', '{"authority_revision":7,');
  },
};
for (const [name, change] of Object.entries(changedAnswers)) {
  test(`an answer with ${name} is denied`, async () => {
    const { pay, made } = guarded();
    service.changeAnswer = change;
    await assert.rejects(pay(args), denied('unverified'));
    assert.deepEqual(made, []);
  });
}

test('each changed byte of a record is denied, and each of a signature', async () => {
  const { pay, made } = guarded();
  let length = 1;
  for (let at = 0; at < length; at += 7) {
    service.changeAnswer = (answer) => {
      length = answer.record.length;
      answer.record =
        answer.record.slice(0, at) + (answer.record[at] === 'x' ? 'y' : 'x') + answer.record.slice(at + 1);
    };
    await assert.rejects(pay(args), denied('unverified'));
  }
  assert.ok(length > 700);
  for (let at = 0; at < 86; at += 5) {
    service.changeAnswer = ({ evidencePack: { signature } }) => {
      signature.value =
        signature.value.slice(0, at) + (signature.value[at] === 'A' ? 'B' : 'A') + signature.value.slice(at + 1);
    };
    await assert.rejects(pay(args), denied('unverified'));
  }
  assert.deepEqual(made, []);
});

test('keys: of another purpose, of another name, revoked', async () => {
  const { jwk, privateKey, kid } = await signingKey('webhook');
  const refused = async (jwks) => {
    const { pay, made } = guarded({}, authorityOf({ jwks }));
    await assert.rejects(pay(args), denied('unverified'));
    assert.deepEqual(made, []);
  };
  const own = service.key;
  const revoked = (at) => ({ keys: [{ ...own.jwk, revoked_at: new Date(Date.now() + at).toISOString() }] });
  await refused(revoked(-60_000));
  await refused({ keys: [{ ...own.jwk, revoked_at: 'never' }] });
  await refused({ keys: [{ ...own.jwk, x: jwk.x }] });
  await refused({ keys: [] });
  // A thief of the key could write an earlier time into a record.
  await refused(revoked(60_000));
  service.key = { jwk, privateKey, kid };
  await refused({ keys: [jwk] });
  // The name has the purpose, but the key is another one.
  service.key = { privateKey, kid: own.kid };
  await refused({ keys: [{ ...jwk, kid: own.kid }] });
});

test('keys from the service are fetched at the start, and again once for an unknown key', async () => {
  const { pay, made } = guarded({}, authorityOf({ jwks: undefined }));
  assert.equal(await pay(args), 'paid');
  service.key = await signingKey();
  service.jwks = { keys: [service.key.jwk] };
  // Not more than once a minute: strangers' kids cause no load.
  await assert.rejects(pay(args), denied('unverified'));
  await assert.rejects(pay(args), denied('unverified'));
  assert.deepEqual([service.reads, made.length], [1, 1]);
  for (const clock of [performance, Date]) {
    await ahead(clock, 61_000, async () => assert.equal(await pay(args), 'paid'));
  }
  assert.equal(service.reads, 2);
});

test('a key is not trusted longer than ten minutes after its revocation', async () => {
  for (const clock of [performance, Date]) {
    service.jwks = { keys: [service.key.jwk] };
    const { pay, made } = guarded({}, authorityOf({ jwks: undefined }));
    assert.equal(await pay(args), 'paid');
    service.jwks = { keys: [{ ...service.key.jwk, revoked_at: new Date().toISOString() }] };
    await ahead(clock, 595_000, async () => assert.equal(await pay(args), 'paid'));
    await ahead(clock, 601_000, () => assert.rejects(pay(args), denied('unverified')));
    assert.equal(made.length, 2);
  }
});

test('keys that are too old and cannot be read again permit nothing', async () => {
  const { pay, made } = guarded({}, authorityOf({ jwks: undefined }));
  assert.equal(await pay(args), 'paid');
  service.jwksStatus = 503;
  const asked = service.asked.length;
  await ahead(Date, 601_000, async () => {
    for (const _ of [1, 2, 3]) {
      await assert.rejects(pay(args), (error) => unavailable(error) && error.code === 'keys_unavailable');
    }
  });
  assert.deepEqual([made.length, service.asked.length], [1, asked]);
});

test('Cache-Control shortens the time of keys, to a minute at least', async () => {
  const times = { 'public, max-age=300': 300, 'max-age=5': 60, 's-maxage=60': 600, 'max-age=86400': 600 };
  for (const [header, seconds] of Object.entries(times)) {
    service.jwksHeaders = { 'cache-control': header };
    service.reads = 0;
    const { pay } = guarded({}, authorityOf({ jwks: undefined }));
    await pay(args);
    for (const [later, reads] of [[-5, 1], [1, 2]]) {
      // Calls at the same time share a read.
      await ahead(Date, (seconds + later) * 1000, () => Promise.all([pay(args), pay(args), pay(args)]));
      assert.equal(service.reads, reads, header);
    }
  }
});

test('given keys are not read again', async () => {
  const { pay } = guarded();
  await ahead(Date, 1e9, async () => assert.equal(await pay(args), 'paid'));
  assert.equal(service.reads, 0);
});

test('without keys nothing is asked', async () => {
  const { pay, made } = guarded({}, authorityOf({ jwks: '/no/such/file.json' }));
  await assert.rejects(pay(args), (error) => unavailable(error) && error.code === 'keys_unavailable');
  assert.deepEqual([made.length, service.asked.length], [0, 0]);
  assert.throws(() => authorityOf({ jwks: 'http://authority.example/jwks.json' }), /https/);
});

test('the deadline is that of the first attempt', async () => {
  service.validFor = 700;
  const { pay, made } = guarded();
  service.faults = [
    async ({ decide, cut }) => {
      await decide();
      await sleep(800);
      cut();
    },
  ];
  await assert.rejects(pay(args), denied('late'));
  await settled(() => service.reports.length === 1);
  assert.equal(service.reports[0].outcome, 'abandoned');
  assert.deepEqual(made, []);
});

test('a wall clock that is an hour off changes nothing', async () => {
  const { now } = Date;
  for (const off of [3_600_000, -3_600_000]) {
    const { pay } = guarded();
    const { answer } = service;
    service.answer = async (question) => {
      Date.now = now;
      try {
        return await answer.call(service, question);
      } finally {
        Date.now = () => now() + off;
      }
    };
    Date.now = () => now() + off;
    try {
      assert.equal(await pay(args), 'paid');
    } finally {
      Date.now = now;
      service.answer = answer;
    }
  }
});

test('a permission for one tool is not used for another', async () => {
  service.changeRecord = (record) => {
    record.verdict.tool_id = 'svc:ent:acme:tool:1';
  };
  service.changeAnswer = (answer) => {
    answer.toolId = 'svc:ent:acme:tool:1';
  };
  const { pay, made } = guarded();
  await assert.rejects(pay(args), denied('tool_mismatch'));
  assert.deepEqual(made, []);
});

test('a permit for one tool is not accepted as one for another, or for none', async () => {
  const toolId = 'svc:ent:acme:tool:1';
  const signed = async (verdictTool) => {
    service.changeRecord = ({ verdict }) => {
      verdict.tool_id = verdictTool;
    };
    const { record, contextSalt, evidencePack } = await service.answer({ subject, action, context: {} });
    return { record, context_salt: contextSalt, signature: evidencePack.signature };
  };
  const options = { jwks: service.jwks, tenantId: 'svc:tenant:acme', question: { action } };
  assert.ok(await verifyPermit(await signed(null), options));
  await assert.rejects(
    verifyPermit(await signed(toolId), options),
    (error) => denied('unverified')(error) && error.message.includes(toolId),
  );
});

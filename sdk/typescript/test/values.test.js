// Values of questions, canonical JSON, and evidence files.
import { test } from 'node:test';
import { createHmac } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { digestArguments, exactAmount, serialize, snapshot } from '@agent-authority/sdk/guard';
import { canonicalize, InvalidEvidence, UnreadableEvidence, verifyEvidence } from '@agent-authority/sdk/verify';
import { USER_AGENT } from '../dist/version.js';

/** As the classes of decimal.js, big.js and bignumber.js. */
class Decimal {
  constructor(text) {
    this.text = text;
  }

  toFixed() {
    return this.text;
  }

  plus() {}

  times() {}
}

test('RFC 8785: numbers, texts and the order of names', () => {
  // Appendix B of the RFC: bits of the double, and its text.
  for (const [bits, text] of [
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])
    assert.equal(canonicalize(Buffer.from(bits, 'hex').readDoubleBE()), text, bits);
  for (const bad of [NaN, Infinity, '\ud800', { '\udc00': 1 }]) assert.throws(() => canonicalize(bad), TypeError);
  // Section 3.2.3.
  const names = { '\u20ac': 1, '\r': 2, '\ufb33': 3, 1: 4, '\u{1f600}': 5, '\u0080': 6, '\u00f6': 7 };
  assert.deepEqual(Object.values(JSON.parse(canonicalize(names))).sort(), [1, 2, 3, 4, 5, 6, 7]);
  assert.equal(canonicalize(names), '{"\\r":2,"1":4,"\u0080":6,"\u00f6":7,"\u20ac":1,"\u{1f600}":5,"\ufb33":3}');
  assert.equal(
    canonicalize({ b: [true, null, { z: 1, a: '\u000f\n"\\/' }], a: [] }),
    '{"a":[],"b":[true,null,{"a":"\\u000f\\n\\"\\\\/","z":1}]}',
  );
});

test('amounts are exact', () => {
  for (const [given, number] of [
    ['1200.00', 1200],
    ['0.1', 0.1],
    [0.1, 0.1],
    [12n, 12],
    ['-3.5', -3.5],
    ['-0', 0],
    [-0, 0],
    ['0.0001', 0.0001],
    ['1.50000', 1.5],
    ['9007199254740991', 9007199254740991],
    ['99999999999.9999', 99999999999.9999],
    [new Decimal('12.40'), 12.4],
  ])
    assert.ok(Object.is(exactAmount(given), number), String(given));
  for (const bad of [
    0.1 + 0.2,
    '0.00001',
    '1.23456',
    '1e3',
    '.5',
    '5.',
    '+1',
    ' 1',
    '1 000',
    '007',
    '',
    'ten',
    NaN,
    Infinity,
    1e21,
    2 ** 53,
    null,
    undefined,
    true,
    {},
    [],
    '9007199254740993',
    '9007199254740992',
    '12345678901234.5678',
    new Decimal('1.23456'),
    { toFixed: () => '12.40' },
    new Number(12),
  ])
    assert.throws(() => exactAmount(bad), TypeError, String(bad));
});

test('arguments as JSON', async () => {
  const given = {
    text: 'é',
    none: null,
    absent: undefined,
    number: 0.30000000000000004,
    zero: -0,
    big: 12n,
    yes: true,
    list: [1, [2], {}],
    when: new Date('2026-01-05T10:30:00.120Z'),
    whole: new Date('2026-01-05T10:30:00Z'),
    bytes: new TextEncoder().encode('abc'),
    buffer: new TextEncoder().encode('abc').buffer,
    decimal: new Decimal('12.40'),
  };
  const abc = { sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad' };
  assert.deepEqual(await serialize(snapshot(given)), {
    text: 'é',
    none: null,
    number: 0.30000000000000004,
    zero: 0,
    big: 12,
    yes: true,
    list: [1, [2], {}],
    when: '2026-01-05T10:30:00.12Z',
    whole: '2026-01-05T10:30:00Z',
    bytes: abc,
    buffer: abc,
    decimal: 12.4,
  });
  const redacted = await serialize(
    { iban: 'DE1', to: { 'a/b': [1, 2] } },
    { names: ['iban', '/to/a~1b/1', 'other'], key: 'k' },
  );
  const code = (text) => createHmac('sha256', 'k').update(text).digest('hex');
  assert.deepEqual(redacted, { iban: { hmac: code('"DE1"') }, to: { 'a/b': [1, { hmac: code('2') }] } });
  const named = await serialize(
    { 'a/b': 1, 'c~d': 2 },
    { names: ['a/b', 'c~d'], key: new TextEncoder().encode('k') },
  );
  assert.deepEqual(named, { 'a/b': { hmac: code('1') }, 'c~d': { hmac: code('2') } });
  let deep = 1;
  for (let n = 0; n < 31; n += 1) deep = [deep];
  assert.deepEqual(snapshot(deep), deep);
  assert.throws(() => snapshot([deep]), TypeError);
  const own = JSON.parse('{"__proto__": {"polluted": 1}}');
  assert.equal(canonicalize(await serialize(snapshot(own))), '{"__proto__":{"polluted":1}}');
  assert.equal({}.polluted, undefined);
  assert.equal(await digestArguments({ b: 1, a: [2] }), await digestArguments({ a: [2], b: 1 }));
});

test('a tool gets a decimal of the text that was asked, and nothing else of the instance', async () => {
  const texts = ['12.40', '99'];
  const given = Object.assign(new Decimal('7'), { account: 'DE1', toFixed: () => texts.shift() });
  const { amount } = snapshot({ amount: given });
  given.text = '8';
  assert.deepEqual([amount.toFixed(), amount.account], ['12.40', undefined]);
  assert.ok(amount instanceof Decimal);
  class Rounded extends Decimal {
    constructor(text) {
      super(String(Math.round(text)));
    }
  }
  const refused = [new Number(5), { toFixed: () => '5', plus() {}, times() {} }, Object.assign(new Rounded('5'), { text: '5.5' })];
  for (const bad of refused) assert.throws(() => snapshot({ bad }), TypeError);
});

test('evidence: sealed decisions of earlier versions, and each changed byte', async (t) => {
  const folder = new URL('../../../tests/golden/', import.meta.url);
  let names;
  try {
    names = readdirSync(folder);
  } catch {
    return t.skip('tests/golden is not here');
  }
  assert.ok(names.length >= 50);
  for (const name of names) {
    const file = readFileSync(new URL(name, folder), 'utf8');
    assert.match(await verifyEvidence(file), /^consistent; issuer not pinned: /, name);
    const bundle = JSON.parse(file);
    assert.equal(
      await verifyEvidence(file, { jwks: { keys: bundle.keys }, checkpointKey: bundle.log_key }),
      'valid',
      name,
    );
  }
  const text = readFileSync(new URL(names[0], folder), 'utf8');
  const { keys } = JSON.parse(text);
  for (let at = 0; at < text.length; at += 97) {
    if (/\s/.test(text[at])) continue;
    const changed = text.slice(0, at) + (text[at] === '7' ? '8' : '7') + text.slice(at + 1);
    await assert.rejects(
      verifyEvidence(changed, { jwks: { keys } }),
      (error) => error instanceof InvalidEvidence || error instanceof UnreadableEvidence,
    );
  }
  await assert.rejects(verifyEvidence(text, { jwks: text }), UnreadableEvidence);
  await assert.rejects(verifyEvidence('{}'), UnreadableEvidence);
  await assert.rejects(verifyEvidence(text, { checkpointKey: 'x' }), UnreadableEvidence);
});

test('the version is that of the package', () => {
  const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  assert.equal(USER_AGENT, `agent-authority-typescript/${version}`);
});

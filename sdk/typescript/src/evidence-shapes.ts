// The shapes of evidence files, as EVIDENCE.md defines them.

import { isObject, type Json, type JsonObject } from './jcs.js';
import { need, under } from './evidence-json.js';

// Base64 of this many bytes. The last letter's spare bits are zero: any bytes have exactly one text.
const [B16, B64] = [21, 85].map((n) => `[A-Za-z0-9+/]{${n}}[AQgw]==`) as [string, string];
const [B32, B68] = [42, 90].map((n) => `[A-Za-z0-9+/]{${n}}[AEIMQUYcgkosw048]=`) as [string, string];
const TEXT = '[^]*';
const HEX = '[0-9a-f]{64}';
const ORIGIN = '[!-*,-~]+';
const NUMBER = '0|[1-9][0-9]{0,15}';
const [DIGEST, DECISION, EVIDENCE] =
  ['sha256', 'svc:decision', 'svc:evidence'].map((prefix) => `${prefix}:${HEX}`) as [string, string, string];

export const VKEY = `(${ORIGIN})\\+([0-9a-f]{8})\\+(A[Q-Za-f][A-Za-z0-9+/]{42})`;
export const NOTE = `c2sp\\.org/tlog-proof@v1\nindex (${NUMBER})\n((?:${B32}\n)*)\n`
  + `((${ORIGIN})\n(${NUMBER})\n(${B32})\n)\n— (${ORIGIN}) (${B68})\n`;

/**
 * A text: a pattern of the whole string. `Object`, `Array`: any value of that type. `Number`: an
 * integer from 0. `null`: anything. `OrNull`: the shape or null. `[shape]`: an array of it. `{…}`: an
 * object with exactly these members or, with `*` among them, at least these; a name with `?` may be
 * absent.
 */
export type Shape = string | typeof Object | typeof Array | typeof Number | null | OrNull | [Shape] | Members;
interface Members { [name: string]: Shape }
class OrNull { constructor(readonly shape: Shape) {} }
const orNull = (shape: Shape) => new OrNull(shape);

const SIGNATURE: Shape = { alg: 'Ed25519', canonicalization: 'RFC8785', kid: TEXT, value: B64 };
const RECORD: Shape = {
  kind: 'svc\\.decision\\.record\\.v1', evaluated_at: TEXT, facts_digest: DIGEST,
  request: { context_digest: DIGEST, '*': null }, '*': null,
};
const KEY: Shape = {
  alg: 'EdDSA', crv: 'Ed25519', kid: TEXT, kty: 'OKP', use: 'sig', x: '[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]',
};
const FACTS: Shape = {
  approval: orNull(Object), 'declined?': Object, gathered: DIGEST, 'open_requests?': Object, reality: orNull(DIGEST),
  spent: Array, 'zones?': Array,
};
export const PACK: Shape = {
  kind: 'svc\\.evidence\\.pack\\.v1', id: EVIDENCE, decision_id: DECISION, record: RECORD,
  record_digest: DIGEST, sealed_at: TEXT, issuer: TEXT, signature: SIGNATURE,
  log: { origin: ORIGIN, index: Number, leaf_hash: DIGEST, proof: TEXT },
};
export const BUNDLE: Shape = {
  kind: TEXT, pack: PACK, context: { salt: B16, value: Object }, facts: { salt: B16, value: FACTS },
  blobs: [Object], keys: [KEY], log_key: VKEY, bundle_digest: DIGEST,
};
export const GATHERED: Shape = {
  policies: [{ sha256: HEX, '*': null }],
  'observing?': [{ sha256: HEX, '*': null }],
  'schemas?': [{ sha256: HEX }],
  '*': null,
};
export const PROOF: Shape = {
  kind: TEXT, id: 'svc:replay:[0-9a-f]{32}', evidence_id: EVIDENCE, decision_id: DECISION,
  mode: 'historical_state_snapshot|current_state|policy_pin', semantics: TEXT,
  policy: orNull({ id: TEXT, version: Number, sha256: DIGEST }), result: 'match|mismatch|indeterminate',
  recomputed_decision_id: orNull(DECISION), diff: [{ member: TEXT, sealed: null, recomputed: null }],
  detail: orNull(TEXT), replayed_at: TEXT, issuer: TEXT, signature: SIGNATURE,
};
export const JSON_BLOB: Shape = { sha256: DIGEST, json: Object };
export const TEXT_BLOB: Shape = { sha256: DIGEST, text: TEXT };

export const matched = (text: string, pattern: string) => new RegExp(`^(?:${pattern})$`).exec(text);

/** @throws {InvalidEvidence} The value has another shape. */
export function fit(value: Json, shape: Shape, path: string): void {
  if (shape instanceof OrNull) {
    if (value !== null) fit(value, shape.shape, path);
  } else if (typeof shape === 'string') {
    need(typeof value === 'string' && matched(value, shape), path, `must be text like ${shape}`);
  } else if (shape === Number) {
    need(Number.isInteger(value) && (value as number) >= 0, path, 'must be an integer from 0');
  } else if (shape === Array || Array.isArray(shape)) {
    need(Array.isArray(value), path, 'must be an array');
    if (shape !== Array) value.forEach((item, index) => fit(item as Json, (shape as [Shape])[0], `${path}[${index}]`));
  } else if (shape !== null) {
    need(isObject(value), path, 'must be an object');
    if (shape !== Object) fitMembers(value, shape as Members, path);
  }
}

function fitMembers(value: JsonObject, shape: Members, path: string): void {
  const { '*': open, ...members } = shape;
  for (const name of Object.keys(value).sort()) {
    const known = Object.hasOwn(members, `${name}?`) || (Object.hasOwn(members, name) && !name.endsWith('?'));
    need(open === null || known, under(path, name), 'is unknown');
  }
  for (const [known, inner] of Object.entries(members)) {
    const name = known.replace('?', '');
    if (name !== known && !Object.hasOwn(value, name)) continue;
    need(Object.hasOwn(value, name), under(path, name), 'is missing');
    fit(value[name]!, inner, under(path, name));
  }
}

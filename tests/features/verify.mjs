// Verifies an evidence pack, an evidence bundle or a replay proof offline, by EVIDENCE.md.
//
// Usage: node verify.mjs FILE [--jwks FILE] [--checkpoint-key VKEY] [--require-trust]
// Needs Node 18 and `npm install jose canonicalize`. Exit code: 0 valid, 1 invalid, 2 unreadable.
import { readFileSync } from 'node:fs';
import { createHash, createPublicKey, verify as ed25519, webcrypto } from 'node:crypto';
import { parseArgs } from 'node:util';
import { calculateJwkThumbprint } from 'jose';
import canonicalize from 'canonicalize';

globalThis.crypto ??= webcrypto; // Node 18 does not have it as a global, which jose needs

// Base64 of this many bytes. The last letter's spare bits are zero: any bytes have exactly one text.
const [B16, B64] = [21, 85].map((n) => `[A-Za-z0-9+/]{${n}}[AQgw]==`);
const [B32, B68] = [42, 90].map((n) => `[A-Za-z0-9+/]{${n}}[AEIMQUYcgkosw048]=`);
const [TEXT, HEX, ORIGIN, NUMBER] = ['[^]*', '[0-9a-f]{64}', '[!-*,-~]+', '0|[1-9][0-9]{0,15}'];
const [DIGEST, DECISION, EVIDENCE] = ['sha256', 'svc:decision', 'svc:evidence'].map((of) => `${of}:${HEX}`);
const VKEY = `(${ORIGIN})\\+([0-9a-f]{8})\\+(A[Q-Za-f][A-Za-z0-9+/]{42})`;
const NOTE = `c2sp\\.org/tlog-proof@v1\nindex (${NUMBER})\n((?:${B32}\n)*)\n`
  + `((${ORIGIN})\n(${NUMBER})\n(${B32})\n)\n— (${ORIGIN}) (${B68})\n`;

// Shapes. A text: a pattern of the whole string; Object, Array: any value of that kind; Number: an integer
// from 0; null: anything; orNull(shape): that or null; [shape]: an array of it; {…}: an object with exactly
// these members or, with "*" among them, at least these.
class OrNull { constructor(shape) { this.shape = shape; } }
const orNull = (shape) => new OrNull(shape);
const SIGNATURE = { alg: 'Ed25519', canonicalization: 'RFC8785', kid: TEXT, value: B64 };
const RECORD = {
  kind: 'svc\\.decision\\.record\\.v1', evaluated_at: TEXT, facts_digest: DIGEST,
  request: { context_digest: DIGEST, '*': null }, '*': null,
};
const PACK = {
  kind: 'svc\\.evidence\\.pack\\.v1', id: EVIDENCE, decision_id: DECISION, record: RECORD,
  record_digest: DIGEST, sealed_at: TEXT, issuer: TEXT, signature: SIGNATURE,
  log: { origin: ORIGIN, index: Number, leaf_hash: DIGEST, proof: TEXT },
};
const KEY = {
  alg: 'EdDSA', crv: 'Ed25519', kid: TEXT, kty: 'OKP', use: 'sig', x: '[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]',
};
// A name with `?` may be absent.
const FACTS = {
  approval: orNull(Object), 'declined?': Object, gathered: DIGEST, 'open_requests?': Object, reality: orNull(DIGEST),
  spent: Array, 'zones?': Array,
};
const BUNDLE = {
  kind: TEXT, pack: PACK, context: { salt: B16, value: Object }, facts: { salt: B16, value: FACTS },
  blobs: [Object], keys: [KEY], log_key: VKEY, bundle_digest: DIGEST,
};
const GATHERED = { policies: [{ sha256: HEX, '*': null }], 'schemas?': [{ sha256: HEX }], '*': null };
const PROOF = {
  kind: TEXT, id: 'svc:replay:[0-9a-f]{32}', evidence_id: EVIDENCE, decision_id: DECISION,
  mode: 'historical_state_snapshot|current_state|policy_pin', semantics: TEXT,
  policy: orNull({ id: TEXT, version: Number, sha256: DIGEST }), result: 'match|mismatch|indeterminate',
  recomputed_decision_id: orNull(DECISION), diff: [{ member: TEXT, sealed: null, recomputed: null }],
  detail: orNull(TEXT), replayed_at: TEXT, issuer: TEXT, signature: SIGNATURE,
};

class Invalid extends Error {}
class Unreadable extends Error {}

function need(holds, path, what) {
  if (!holds) throw new Invalid(`${path || 'the file'}: ${what}`);
}

const matched = (text, pattern) => new RegExp(`^(?:${pattern})$`).exec(text);
const escaped = (text) => JSON.stringify(text).replace(/[\u007f-\uffff]/g,
  (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

function under(path, name) {
  if (!/^[A-Za-z0-9_]+$/.test(name)) return `${path}[${escaped(name)}]`; // no name can look like a path
  return path ? `${path}.${name}` : name;
}

const sha256 = (...parts) => createHash('sha256').update(Buffer.concat(parts)).digest();
const digest = (...parts) => `sha256:${sha256(...parts).toString('hex')}`;
const bytes = (text) => Buffer.from(text, 'base64');
const dumps = (value) => Buffer.from(canonicalize(value));
const without = (members, name) => dumps(Object.fromEntries(Object.entries(members).filter(([n]) => n !== name)));
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
const thumbprint = (x) => calculateJwkThumbprint({ crv: 'Ed25519', kty: 'OKP', x });

function holds(key, signature, signed) {
  const jwk = { crv: 'Ed25519', kty: 'OKP', x: key.toString('base64url') };
  return ed25519(null, signed, createPublicKey({ key: jwk, format: 'jwk' }), signature);
}

/** A file's JSON; refused if two parsers could understand it differently. */
function read(file) {
  let text;
  let value;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFileSync(file));
    value = JSON.parse(text);
  } catch (error) {
    throw new Unreadable(`${file}: ${error.message}`);
  }
  const fault = inspect(text, file);
  if (fault) throw fault;
  return value;
}

/** The first fault in a text that is known to be JSON. The parser drops duplicate members. */
function inspect(text, file) {
  const tokens = text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  const next = () => tokens.next().value[0];
  let fault = null;
  const demand = (ok, path, what) => {
    if (!ok) fault ??= new Invalid(`${path || 'the file'}: ${what}`);
  };
  const string = (token, path) => demand(!/\p{Surrogate}/u.test(JSON.parse(token)), path, 'holds a lone surrogate');
  const value = (token, path, depth) => {
    if ('{['.includes(token) && depth === 127) throw new Unreadable(`${file}: nested too deeply`);
    if (token === '{') {
      const seen = new Set();
      for (let name = next(); name !== '}'; name = next()) {
        if (name === ',') name = next();
        const parsed = JSON.parse(name);
        const at = under(path, parsed);
        demand(!seen.has(parsed), at, 'occurs twice');
        seen.add(parsed);
        string(name, at);
        next(); // the colon
        value(next(), at, depth + 1);
      }
    } else if (token === '[') {
      let index = 0;
      for (let item = next(); item !== ']'; item = next()) {
        value(item === ',' ? next() : item, `${path}[${index}]`, depth + 1);
        index += 1;
      }
    } else if (token[0] === '"') {
      string(token, path);
    } else if (/^[-0-9]/.test(token)) {
      demand(Math.abs(Number(token)) < 2 ** 53, path, 'is beyond 2^53-1');
      const integer = /^-?[0-9]+$/.test(token) && token !== '-0';
      demand(integer || /^context\.value\b/.test(path), path, 'must be an integer');
    }
  };
  value(next(), '', 0);
  return fault;
}

function fit(value, shape, path) {
  if (shape instanceof OrNull) {
    if (value !== null) fit(value, shape.shape, path);
  } else if (typeof shape === 'string') {
    need(typeof value === 'string' && matched(value, shape), path, `must be text like ${shape}`);
  } else if (shape === Number) {
    need(Number.isInteger(value) && value >= 0, path, 'must be an integer from 0');
  } else if (shape === Array || Array.isArray(shape)) {
    need(Array.isArray(value), path, 'must be an array');
    if (shape !== Array) value.forEach((item, index) => fit(item, shape[0], `${path}[${index}]`));
  } else if (shape !== null) {
    need(isObject(value), path, 'must be an object');
    if (shape === Object) return;
    const { '*': open, ...members } = shape;
    for (const name of Object.keys(value).sort()) {
      const known = Object.hasOwn(members, `${name}?`) || (Object.hasOwn(members, name) && !name.endsWith('?'));
      need(open === null || known, under(path, name), 'is unknown');
    }
    for (const [known, inner] of Object.entries(members)) {
      const name = known.replace('?', '');
      if (name !== known && !Object.hasOwn(value, name)) continue;
      need(Object.hasOwn(value, name), under(path, name), 'is missing');
      fit(value[name], inner, under(path, name));
    }
  }
}

function milliseconds(moment, path) {
  const found = matched(moment, '([0-9T:-]{19})(?:\\.([0-9]{1,9}))?Z');
  const at = new Date(found ? `${found[1]}Z` : NaN);
  // Formatting it again detects the 30th of February, which Date reads as a day of March.
  const sound = at >= 0 && at.toISOString().startsWith(found[1]);
  need(sound, path, 'must be a time since 1970, in UTC with Z');
  return Number(at) + Number((found[2] ?? '').padEnd(3, '0').slice(0, 3));
}

async function checkSignature(signature, purpose, signed, keys, path) {
  const { kid } = signature;
  const named = matched(kid, 'svc-([a-z]+)-[0-9]{4}-([0-9a-f]{8})');
  need(named?.[1] === purpose, `${path}.kid`, `names no key for ${purpose}`);
  need(keys.has(kid), `${path}.kid`, `no key for ${kid}`);
  const x = keys.get(kid);
  const print = Buffer.from(await thumbprint(x), 'base64url').toString('hex');
  need(print.slice(0, 8) === named[2], `${path}.kid`, 'does not fit its key');
  need(holds(Buffer.from(x, 'base64url'), bytes(signature.value), signed), `${path}.value`, 'is not valid');
}

/** Origin, key id and key, or undefined if they do not match. */
function readVkey(text) {
  const found = matched(text, VKEY);
  if (!found) return undefined;
  const typed = bytes(found[3]);
  const id = sha256(Buffer.from(`${found[1]}\n`), typed).subarray(0, 4);
  const fits = typed[0] === 1 && id.toString('hex') === found[2];
  return fits ? { text, origin: found[1], id, key: typed.subarray(1) } : undefined;
}

/** The keys of purpose `log` in a JWK set. */
async function logKeys(jwks) {
  const found = [];
  for (const [kid, x] of jwks ?? []) {
    const named = matched(kid, 'svc-log-[0-9]{4}-([0-9a-f]{8})');
    const print = named && Buffer.from(await thumbprint(x), 'base64url').toString('hex');
    if (named && print.slice(0, 8) === named[1]) found.push(Buffer.from(x, 'base64url'));
  }
  return found;
}

/** The log key with this id under this origin, as `readVkey` returns it. */
function logKeyOf(origin, keys, id) {
  const of = (key) => sha256(Buffer.from(`${origin}\n`), Buffer.of(1), key).subarray(0, 4);
  const key = keys.find((key) => of(key).equals(id));
  return key && { origin, id, key };
}

/** The root from the siblings (RFC 9162, 2.1.3.2); null if there are too few or too many. */
function rootOver(leaf, index, size, siblings) {
  const half = (number) => Math.floor(number / 2); // shifts would truncate to 32 bits
  let [node, last] = [leaf, size - 1];
  for (const sibling of siblings) {
    if (last === 0) return null;
    if (index % 2 || index === last) {
      node = sha256(Buffer.of(1), sibling, node);
      while (index && index % 2 === 0) [index, last] = [half(index), half(last)];
    } else {
      node = sha256(Buffer.of(1), node, sibling);
    }
    [index, last] = [half(index), half(last)];
  }
  return last === 0 ? node : null;
}

function checkLog(pack, trusted, path) {
  const { log } = pack;
  const leaf = sha256(Buffer.of(0), without(pack, 'log'));
  need(log.leaf_hash === `sha256:${leaf.toString('hex')}`, `${path}.leaf_hash`, "is not the pack's");
  const found = matched(log.proof, NOTE);
  need(found, `${path}.proof`, 'is not a tlog-proof@v1 with a checkpoint and one signature');
  const [, index, siblings, signed, origin, size, root, signer, sealed] = found;
  need(origin === log.origin, `${path}.origin`, "is not the checkpoint's");
  need(signer === origin, `${path}.proof`, 'the checkpoint is signed by another log');
  need(Number(index) === log.index, `${path}.index`, "is not the proof's");
  const within = Number(index) < Number(size) && Number(size) < 2 ** 53;
  need(within, `${path}.proof`, "the index is not within the checkpoint's size");
  const lines = siblings.split('\n').slice(0, -1).map(bytes);
  const reached = rootOver(leaf, Number(index), Number(size), lines);
  need(reached?.equals(bytes(root)), `${path}.proof`, "does not lead to the checkpoint's root");
  const signature = bytes(sealed);
  const any = Array.isArray(trusted); // of the JWK set's
  const logKey = any ? logKeyOf(origin, trusted, signature.subarray(0, 4)) : trusted;
  need(logKey || !any, `${path}.proof`, 'the checkpoint is signed with no log key of the JWK set');
  if (logKey) {
    need(logKey.origin === origin, `${path}.origin`, 'is not the log of the checkpoint key');
    need(signature.subarray(0, 4).equals(logKey.id), `${path}.proof`, 'the checkpoint is signed with another key');
    const sound = holds(logKey.key, signature.subarray(4), Buffer.from(signed));
    need(sound, `${path}.proof`, "the checkpoint's signature is not valid");
  }
}

async function checkPack(pack, keys, logKey, at = '') {
  const record = dumps(pack.record);
  const time = milliseconds(pack.record.evaluated_at, `${at}record.evaluated_at`);
  const name = time.toString(16).padStart(12, '0') + sha256(record).toString('hex').slice(0, 52);
  need(pack.record_digest === digest(record), `${at}record_digest`, "is not the record's");
  need(pack.decision_id === `svc:decision:${name}`, `${at}decision_id`, "is not the record's");
  need(pack.id === `svc:evidence:${name}`, `${at}id`, "is not the record's");
  await checkSignature(pack.signature, 'evidence', record, keys, `${at}signature`);
  checkLog(pack, logKey, `${at}log`);
}

async function checkBundle(bundle, pinned, pinnedLog) {
  const { pack, keys, context, facts } = bundle;
  need(keys.length === 1, 'keys', 'must hold one key');
  const [{ kid, x }] = keys;
  const logKey = readVkey(bundle.log_key);
  need(kid === pack.signature.kid, 'keys[0].kid', "is not the signature's");
  need(!pinned || pinned.has(kid), 'pack.signature.kid', `no key for ${escaped(kid).slice(1, -1)}`);
  need(!pinned || pinned.get(kid) === x, 'keys[0].x', 'is not the pinned key');
  need(logKey, 'log_key', 'its id does not fit its key');
  if (Array.isArray(pinnedLog)) {
    need(pinnedLog.some((key) => key.equals(logKey.key)), 'log_key', 'is not a log key of the JWK set');
  } else {
    need(!pinnedLog || pinnedLog.text === logKey.text, 'log_key', 'is not the pinned key');
  }
  await checkPack(pack, new Map([[kid, x]]), logKey, 'pack.');
  const salted = (part) => digest(bytes(part.salt), dumps(part.value));
  need(salted(context) === pack.record.request.context_digest, 'context', "does not have the record's digest");
  need(salted(facts) === pack.record.facts_digest, 'facts', "does not have the record's digest");
  checkBlobs(bundle.blobs, facts.value);
  need(bundle.bundle_digest === digest(without(bundle, 'bundle_digest')), 'bundle_digest', "is not the bundle's");
}

function checkBlobs(blobs, { gathered, reality }) {
  const isJson = (blob) => blob !== undefined && Object.hasOwn(blob, 'json');
  blobs.forEach((blob, index) => {
    const body = isJson(blob) ? { json: Object } : { text: TEXT };
    fit(blob, { sha256: DIGEST, ...body }, `blobs[${index}]`);
    need(!index || blobs[index - 1].sha256 < blob.sha256, `blobs[${index}].sha256`, 'is not in order');
    const hashed = isJson(blob) ? dumps(blob.json) : Buffer.from(blob.text);
    need(digest(hashed) === blob.sha256, `blobs[${index}].sha256`, "is not the body's");
  });
  const place = (name) => blobs.findIndex((blob) => blob.sha256 === name);
  need(isJson(blobs[place(gathered)]), 'facts.value.gathered', 'no json blob has it');
  need(reality === null || isJson(blobs[place(reality)]), 'facts.value.reality', 'no json blob has it');
  const at = `blobs[${place(gathered)}].json`;
  const { json } = blobs[place(gathered)];
  fit(json, GATHERED, at);
  const named = new Set([gathered, reality]);
  for (const kind of ['policies', 'schemas']) {
    (Object.hasOwn(json, kind) ? json[kind] : []).forEach((one, index) => {
      const name = `sha256:${one.sha256}`;
      const found = place(name) >= 0 && !isJson(blobs[place(name)]);
      need(found, `${at}.${kind}[${index}].sha256`, 'no text blob has it');
      named.add(name);
    });
  }
  blobs.forEach((blob, index) => need(named.has(blob.sha256), `blobs[${index}]`, 'is named by nothing'));
}

async function checkProof(proof, keys) {
  need(proof.evidence_id.slice(-64) === proof.decision_id.slice(-64), 'evidence_id', 'is not of the decision');
  need((proof.result === 'mismatch') === proof.diff.length > 0, 'diff', 'does not fit the result');
  need(proof.result !== 'indeterminate' || proof.detail, 'detail', 'must say what is indeterminate');
  const free = proof.mode !== 'historical_state_snapshot' || proof.result !== 'match';
  const same = proof.recomputed_decision_id === proof.decision_id;
  need(free || same, 'recomputed_decision_id', "is not the decision's");
  await checkSignature(proof.signature, 'replay', without(proof, 'signature'), keys, 'signature');
}

/** The Ed25519 keys of a JWK set by kid; others in it do not sign evidence. */
function readJwks(file) {
  try {
    const whole = read(file);
    if (whole.kind != null) throw new Invalid('it is an evidence file, and cannot vouch for itself');
    const keys = whole.keys.filter((key) => key.crv === 'Ed25519');
    for (const key of keys) fit(key, { kty: 'OKP', kid: TEXT, x: KEY.x, '*': null }, 'key');
    const byKid = new Map(keys.map((key) => [key.kid, key.x]));
    if (byKid.size < keys.length) throw new Invalid('two keys have one kid');
    return byKid;
  } catch (error) {
    throw new Unreadable(`${file} is no JWK set: ${error.message}`);
  }
}

/** The output for a file without faults. */
async function verify(file, jwks, checkpointKey) {
  const pinned = jwks === undefined ? undefined : readJwks(jwks);
  const given = checkpointKey === undefined ? undefined : readVkey(checkpointKey);
  if (checkpointKey !== undefined && !given) throw new Unreadable('--checkpoint-key is no vkey');
  const published = await logKeys(pinned);
  const logKey = given ?? (published.length ? published : undefined);
  const document = read(file);
  const kind = isObject(document) ? document.kind : undefined;
  if (kind === 'svc.evidence.pack.v1') {
    fit(document, PACK, '');
    await checkPack(document, pinned ?? new Map(), logKey);
    return logKey ? 'valid' : 'valid; checkpoint signature not checked';
  }
  if (kind === 'svc.replay.proof.v1') {
    fit(document, PROOF, '');
    await checkProof(document, pinned ?? new Map());
    return 'valid';
  }
  if (kind !== 'svc.evidence.bundle.v1') {
    throw new Unreadable(`${file}: its kind must be that of a pack, a bundle or a replay proof`);
  }
  fit(document, BUNDLE, '');
  await checkBundle(document, pinned, logKey);
  if (!pinned) return `consistent; issuer not pinned: ${await thumbprint(document.keys[0].x)}`;
  return logKey ? 'valid' : 'valid; log key not pinned';
}

function options() {
  const text = { type: 'string' };
  const known = { jwks: text, 'checkpoint-key': text, 'require-trust': { type: 'boolean' } };
  try {
    const { values, positionals } = parseArgs({ options: known, allowPositionals: true });
    if (positionals.length === 1) return [values, positionals[0]];
  } catch (error) {
    throw new Unreadable(error.message);
  }
  throw new Unreadable('one FILE is needed');
}

try {
  const [asked, file] = options();
  const found = await verify(file, asked.jwks, asked['checkpoint-key']);
  console.log(found);
  process.exitCode = Number(Boolean(asked['require-trust']) && found !== 'valid');
} catch (error) {
  if (!(error instanceof Invalid || error instanceof Unreadable)) throw error;
  const invalid = error instanceof Invalid;
  console.log(`${invalid ? 'invalid' : 'unreadable'}: ${error.message}`);
  process.exitCode = invalid ? 1 : 2;
}

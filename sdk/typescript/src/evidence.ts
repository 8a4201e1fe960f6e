// Verifies evidence packs, evidence bundles and replay proofs offline, as EVIDENCE.md defines them.

import { digestText, equal, fromBase64, fromBase64Url, hex, isSignedBy, sha256, utf8 } from './bytes.js';
import { need, parseEvidence, shown, UnreadableEvidence } from './evidence-json.js';
import {
  BUNDLE, fit, GATHERED, JSON_BLOB, matched, NOTE, PACK, PROOF, TEXT_BLOB, VKEY,
} from './evidence-shapes.js';
import { canonicalize, isObject, type Json, type JsonObject } from './jcs.js';
import { hasSigned, isKeyFor, keysOf, thumbprint, type PublicKey } from './keys.js';
import { milliseconds } from './time.js';
import type { Jwks } from './verify-webhook.js';

export { InvalidEvidence, UnreadableEvidence } from './evidence-json.js';

export interface EvidenceOptions {
  /**
   * The keys that you trust, from `/.well-known/jwks.json`, fetched at another time. Without them, a
   * bundle is checked with its own key, which proves that it is consistent but not who signed it.
   */
  jwks?: Jwks | string | Uint8Array | undefined;
  /** The log's key, from `GET /v1/log/{slug}/key`, instead of the log keys of the JWK set. */
  checkpointKey?: string | undefined;
}

type Keys = ReadonlyMap<string, PublicKey>;
interface LogKey { text?: string; origin: string; id: Uint8Array; key: Uint8Array<ArrayBuffer> }
/** One log key, or every log key of a JWK set. */
type LogTrust = LogKey | readonly Uint8Array<ArrayBuffer>[] | undefined;

interface Signature { kid: string; value: string }
interface Pack extends JsonObject {
  id: string; decision_id: string; record_digest: string; record: JsonObject & { evaluated_at: string };
  signature: JsonObject & Signature;
  log: { origin: string; index: number; leaf_hash: string; proof: string };
}
interface Salted extends JsonObject { salt: string; value: JsonObject }
interface Blob extends JsonObject { sha256: string; json: JsonObject; text: string }
interface Bundle extends JsonObject {
  pack: Pack; context: Salted; facts: Salted & { value: { gathered: string; reality: string | null } };
  blobs: readonly Blob[]; keys: readonly (JsonObject & { kid: string; x: string })[]; log_key: string;
  bundle_digest: string;
}
interface Proof extends JsonObject {
  evidence_id: string; decision_id: string; recomputed_decision_id: string | null; mode: string; result: string;
  diff: readonly Json[]; detail: string | null; signature: JsonObject & Signature;
}

/**
 * Verifies an evidence file. Returns `valid` if the keys that you trust signed it and its log.
 * Otherwise the text names the part that was not checked.
 *
 * @throws {InvalidEvidence} The file is damaged or forged.
 * @throws {UnreadableEvidence} The file is not evidence, or the trusted keys are not readable.
 */
export async function verifyEvidence(file: string | Uint8Array, options: EvidenceOptions = {}): Promise<string> {
  const pinned = options.jwks === undefined ? undefined : readJwks(options.jwks);
  const given = options.checkpointKey === undefined ? undefined : await readVkey(options.checkpointKey);
  if (options.checkpointKey !== undefined && !given) throw new UnreadableEvidence('the checkpoint key is not a vkey');
  const published = await logKeys(pinned);
  const log = given ?? (published.length ? published : undefined);
  const document = parseEvidence(file);
  const kind = isObject(document) ? document['kind'] : undefined;
  if (kind === 'svc.evidence.pack.v1') {
    fit(document, PACK, '');
    await checkPack(document as Pack, pinned ?? new Map(), log);
    return log ? 'valid' : 'valid; checkpoint signature not checked';
  }
  if (kind === 'svc.replay.proof.v1') {
    fit(document, PROOF, '');
    await checkProof(document as Proof, pinned ?? new Map());
    return 'valid';
  }
  if (kind !== 'svc.evidence.bundle.v1') {
    throw new UnreadableEvidence('its kind must be that of a pack, a bundle or a replay proof');
  }
  fit(document, BUNDLE, '');
  const bundle = document as Bundle;
  await checkBundle(bundle, pinned, log);
  if (!pinned) return `consistent; issuer not pinned: ${base64Url(await thumbprint(bundle.keys[0]!.x))}`;
  return log ? 'valid' : 'valid; log key not pinned';
}

const base64Url = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes))
  .replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
const bytes = (base64: string) => fromBase64(base64)!;

function without(members: JsonObject, name: string): string {
  return canonicalize(Object.fromEntries(Object.entries(members).filter(([each]) => each !== name)));
}

/** Reads a JWK set. An evidence file also has keys, but cannot vouch for itself. */
function readJwks(jwks: Jwks | string | Uint8Array): Keys {
  try {
    const set = typeof jwks === 'string' || jwks instanceof Uint8Array ? parseEvidence(jwks) : jwks as unknown as Json;
    return keysOf(set);
  } catch (error) {
    throw new UnreadableEvidence(`not a JWK set: ${(error as Error).message}`);
  }
}

async function checkSignature(signature: Signature, purpose: string, signed: string, keys: Keys, path: string) {
  const { kid } = signature;
  need(matched(kid, `svc-${purpose}-[0-9]{4}-[0-9a-f]{8}`), `${path}.kid`, `names no key for ${purpose}`);
  const key = keys.get(kid);
  need(key, `${path}.kid`, `no key for ${kid}`);
  need(await isKeyFor(purpose, key), `${path}.kid`, 'does not fit its key');
  need(await hasSigned(key, bytes(signature.value), signed), `${path}.value`, 'is not valid');
}

/** Returns the parts of a vkey; undefined if its id does not fit its key. */
async function readVkey(text: string): Promise<LogKey | undefined> {
  const found = matched(text, VKEY);
  if (!found) return undefined;
  const [, origin, id, encoded] = found as unknown as [string, string, string, string];
  const typed = bytes(encoded);
  const key = typed.subarray(1) as Uint8Array<ArrayBuffer>;
  const fits = typed[0] === 1 && hex(await logKeyId(origin, key)) === id;
  return fits ? { text, origin, id: await logKeyId(origin, key), key } : undefined;
}

async function logKeyId(origin: string, key: Uint8Array): Promise<Uint8Array> {
  return (await sha256(utf8(`${origin}\n`), Uint8Array.of(1), key)).subarray(0, 4);
}

/** Returns the keys of purpose `log` of a JWK set. */
async function logKeys(keys: Keys | undefined): Promise<Uint8Array<ArrayBuffer>[]> {
  const found = [];
  for (const key of keys?.values() ?? []) if (await isKeyFor('log', key)) found.push(fromBase64Url(key.x)!);
  return found;
}

/** Returns the root that the siblings lead to (RFC 9162, 2.1.3.2); null if there are too few or too many. */
async function rootOver(
  leaf: Uint8Array, index: number, size: number, siblings: readonly Uint8Array[],
): Promise<Uint8Array | null> {
  const half = (number: number) => Math.floor(number / 2); // shifts would truncate to 32 bits
  let [node, last] = [leaf, size - 1];
  for (const sibling of siblings) {
    if (last === 0) return null;
    if (index % 2 || index === last) {
      node = await sha256(Uint8Array.of(1), sibling, node);
      while (index && index % 2 === 0) [index, last] = [half(index), half(last)];
    } else {
      node = await sha256(Uint8Array.of(1), node, sibling);
    }
    [index, last] = [half(index), half(last)];
  }
  return last === 0 ? node : null;
}

async function checkLog(pack: Pack, trusted: LogTrust, path: string): Promise<void> {
  const { log } = pack;
  const leaf = await sha256(Uint8Array.of(0), utf8(without(pack, 'log')));
  need(log.leaf_hash === `sha256:${hex(leaf)}`, `${path}.leaf_hash`, "is not the pack's");
  const found = matched(log.proof, NOTE);
  need(found, `${path}.proof`, 'is not a tlog-proof@v1 with a checkpoint and one signature');
  const [, index, siblings, signed, origin, size, root, signer, sealed] = found as unknown as string[];
  need(origin === log.origin, `${path}.origin`, "is not the checkpoint's");
  need(signer === origin, `${path}.proof`, 'the checkpoint is signed by another log');
  need(Number(index) === log.index, `${path}.index`, "is not the proof's");
  const isWithin = Number(index) < Number(size) && Number(size) < 2 ** 53;
  need(isWithin, `${path}.proof`, "the index is not within the checkpoint's size");
  const nodes = siblings!.split('\n').slice(0, -1).map(bytes);
  const reached = await rootOver(leaf, Number(index), Number(size), nodes);
  need(reached && equal(reached, bytes(root!)), `${path}.proof`, "does not lead to the checkpoint's root");
  await checkCheckpoint({ origin: log.origin, signed: signed!, signature: bytes(sealed!) }, trusted, path);
}

interface Checkpoint { origin: string; signed: string; signature: Uint8Array<ArrayBuffer> }

async function checkCheckpoint({ origin, signed, signature }: Checkpoint, trusted: LogTrust, path: string) {
  if (!trusted) return;
  let key: LogKey | undefined;
  if ('origin' in trusted) {
    key = trusted;
  } else {
    for (const each of trusted) {
      const id = await logKeyId(origin, each);
      if (equal(id, signature.subarray(0, 4))) key = { origin, id, key: each };
    }
    need(key, `${path}.proof`, 'the checkpoint is signed with no log key of the JWK set');
  }
  need(key.origin === origin, `${path}.origin`, 'is not the log of the checkpoint key');
  need(equal(signature.subarray(0, 4), key.id), `${path}.proof`, 'the checkpoint is signed with another key');
  const sealed = signature.subarray(4) as Uint8Array<ArrayBuffer>;
  need(await isSignedBy(key.key, sealed, utf8(signed)), `${path}.proof`, "the checkpoint's signature is not valid");
}

async function checkPack(pack: Pack, keys: Keys, log: LogTrust, at = ''): Promise<void> {
  const record = canonicalize(pack.record);
  const time = milliseconds(pack.record.evaluated_at);
  need(time !== undefined, `${at}record.evaluated_at`, 'must be a time since 1970, in UTC with Z');
  const digest = hex(await sha256(utf8(record)));
  const name = time.toString(16).padStart(12, '0') + digest.slice(0, 52);
  need(pack.record_digest === `sha256:${digest}`, `${at}record_digest`, "is not the record's");
  need(pack.decision_id === `svc:decision:${name}`, `${at}decision_id`, "is not the record's");
  need(pack.id === `svc:evidence:${name}`, `${at}id`, "is not the record's");
  await checkSignature(pack.signature, 'evidence', record, keys, `${at}signature`);
  await checkLog(pack, log, `${at}log`);
}

async function checkBundle(bundle: Bundle, pinned: Keys | undefined, pinnedLog: LogTrust): Promise<void> {
  const { pack, keys, context, facts } = bundle;
  need(keys.length === 1, 'keys', 'must hold one key');
  const [{ kid, x }] = keys as [{ kid: string; x: string }];
  const logKey = await readVkey(bundle.log_key);
  need(kid === pack.signature.kid, 'keys[0].kid', "is not the signature's");
  need(!pinned || pinned.has(kid), 'pack.signature.kid', `no key for ${shown(kid)}`);
  need(!pinned || pinned.get(kid)!.x === x, 'keys[0].x', 'is not the pinned key');
  need(logKey, 'log_key', 'its id does not fit its key');
  if (pinnedLog && !('origin' in pinnedLog)) {
    need(pinnedLog.some((key) => equal(key, logKey.key)), 'log_key', 'is not a log key of the JWK set');
  } else {
    need(!pinnedLog || pinnedLog.text === logKey.text, 'log_key', 'is not the pinned key');
  }
  await checkPack(pack, new Map([[kid, { kid, x, revokedAt: undefined }]]), logKey, 'pack.');
  const salted = ({ salt, value }: Salted) => digestText(bytes(salt), utf8(canonicalize(value)));
  const request = pack.record['request'] as { context_digest: string } & JsonObject;
  need(await salted(context) === request.context_digest, 'context', "does not have the record's digest");
  need(await salted(facts) === pack.record['facts_digest'], 'facts', "does not have the record's digest");
  await checkBlobs(bundle.blobs, facts.value);
  const digest = await digestText(utf8(without(bundle, 'bundle_digest')));
  need(bundle.bundle_digest === digest, 'bundle_digest', "is not the bundle's");
}

async function checkBlobs(blobs: readonly Blob[], facts: { gathered: string; reality: string | null }): Promise<void> {
  const isJson = (blob: Blob | undefined) => blob !== undefined && Object.hasOwn(blob, 'json');
  for (const [index, blob] of blobs.entries()) {
    fit(blob, isJson(blob) ? JSON_BLOB : TEXT_BLOB, `blobs[${index}]`);
    need(!index || blobs[index - 1]!.sha256 < blob.sha256, `blobs[${index}].sha256`, 'is not in order');
    const hashed = isJson(blob) ? canonicalize(blob.json) : blob.text;
    need(await digestText(utf8(hashed)) === blob.sha256, `blobs[${index}].sha256`, "is not the body's");
  }
  const place = (name: string | null) => blobs.findIndex((blob) => blob.sha256 === name);
  const { gathered, reality } = facts;
  need(isJson(blobs[place(gathered)]), 'facts.value.gathered', 'no json blob has it');
  need(reality === null || isJson(blobs[place(reality)]), 'facts.value.reality', 'no json blob has it');
  const at = `blobs[${place(gathered)}].json`;
  const { json } = blobs[place(gathered)]!;
  fit(json, GATHERED, at);
  const named = new Set([gathered, reality]);
  for (const kind of ['policies', 'observing', 'schemas']) {
    const references = (Object.hasOwn(json, kind) ? json[kind] : []) as readonly { sha256: string }[];
    references.forEach((reference, index) => {
      const name = `sha256:${reference.sha256}`;
      const isText = place(name) >= 0 && !isJson(blobs[place(name)]);
      need(isText, `${at}.${kind}[${index}].sha256`, 'no text blob has it');
      named.add(name);
    });
  }
  blobs.forEach((blob, index) => need(named.has(blob.sha256), `blobs[${index}]`, 'is named by nothing'));
}

async function checkProof(proof: Proof, keys: Keys): Promise<void> {
  need(proof.evidence_id.slice(-64) === proof.decision_id.slice(-64), 'evidence_id', 'is not of the decision');
  need((proof.result === 'mismatch') === proof.diff.length > 0, 'diff', 'does not fit the result');
  need(proof.result !== 'indeterminate' || proof.detail, 'detail', 'must say what is indeterminate');
  const isFree = proof.mode !== 'historical_state_snapshot' || proof.result !== 'match';
  const isSame = proof.recomputed_decision_id === proof.decision_id;
  need(isFree || isSame, 'recomputed_decision_id', "is not the decision's");
  await checkSignature(proof.signature, 'replay', without(proof, 'signature'), keys, 'signature');
}

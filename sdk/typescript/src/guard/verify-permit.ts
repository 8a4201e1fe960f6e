// Verifies the signed record of a permit: its signature, its context and its question.

import { digestText, fromBase64, utf8 } from '../bytes.js';
import { canonicalize, isObject, type Json, type JsonObject } from '../jcs.js';
import { hasSigned, isKeyFor, keysOf, type PublicKey } from '../keys.js';
import { microseconds } from '../time.js';
import type { Jwks } from '../verify-webhook.js';
import { Denied } from './failures.js';
import { differingMember, normalize, type Question } from './question.js';

/** A permit that someone presents: the signed record, its signature, and the salt of the context. */
export interface PermitProof {
  /** The record, byte for byte. */
  readonly record: string;
  readonly signature: { readonly kid: string; readonly value: string };
  /** Base64 of the salt. */
  readonly context_salt: string;
}

export interface VerifyPermitOptions {
  /** The keys that you trust, from `/.well-known/jwks.json`. */
  jwks: Jwks;
  /** The tenant that you serve: `svc:tenant:acme`. */
  tenantId: string;
  /**
   * The call as you see it. Who asks, for which purpose and under which delegation is compared only if
   * it is set here. Everything else must be equal.
   */
  question: Question;
  /** The time in milliseconds; now if absent. */
  now?: number | undefined;
}

/** A record with a genuine signature. */
export interface VerifiedRecord {
  readonly decisionId: string;
  readonly recordDigest: string;
  readonly record: JsonObject;
  readonly request: JsonObject;
  readonly verdict: JsonObject;
  /** Microseconds since 1970. */
  readonly evaluatedAt: number;
  /** Microseconds since 1970; undefined unless the record permits the action. */
  readonly validUntil: number | undefined;
}

function need(holds: unknown, problem: string): asserts holds {
  if (!holds) throw new Denied('unverified', `the permit can't be trusted: ${problem}`);
}

/** Checks that a key of the service signed the record. @throws {Denied} */
export async function verifyRecord(
  { record: text, signature }: PermitProof, findKey: (kid: string) => Promise<PublicKey | undefined>,
): Promise<VerifiedRecord> {
  const record = parsed(text);
  need(isObject(record), 'its record is not canonical JSON');
  const { request, verdict } = record;
  need(record['kind'] === 'svc.decision.record.v1', 'the record has another kind');
  need(isObject(request) && isObject(verdict), 'the record lacks its request or verdict');
  const evaluatedAt = microseconds(record['evaluated_at']);
  need(evaluatedAt !== undefined, 'evaluated_at of the record is not a time');
  const validUntil = microseconds(record['valid_until']);
  need(validUntil !== undefined || record['valid_until'] === null, 'valid_until of the record is not a time');
  const key = await findKey(signature.kid);
  need(key && await isKeyFor('evidence', key), `no trusted key ${signature.kid} for evidence`);
  // A thief of the key could write an earlier time into a record.
  need(key.revokedAt === undefined, `the key ${key.kid} is revoked`);
  const [isSigned, recordDigest] = await Promise.all([
    hasSigned(key, fromBase64(signature.value), text), digestText(utf8(text)),
  ]);
  need(isSigned, "the record's signature is not valid");
  const name = Math.floor(evaluatedAt / 1000).toString(16).padStart(12, '0') + recordDigest.slice(7, 59);
  return { decisionId: `svc:decision:${name}`, recordDigest, record, request, verdict, evaluatedAt, validUntil };
}

function parsed(text: string): Json | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return canonicalize(value) === text ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Checks that the record is about this context. @throws {Denied} */
export async function verifyContext({ request }: VerifiedRecord, salt: string, context: JsonObject): Promise<void> {
  const bytes = fromBase64(salt);
  need(bytes?.length === 16, 'the salt of the context is not valid');
  const digest = await digestText(bytes, utf8(canonicalize(context)));
  need(request['context_digest'] === digest, 'the context differs from the one that was decided');
}

/**
 * Verifies that another party's permit is for exactly this call, and still valid. Accept each
 * `decisionId` only once.
 *
 * @throws {Denied} `unverified` or `late`: do not act.
 */
export async function verifyPermit(permit: PermitProof, options: VerifyPermitOptions): Promise<VerifiedRecord> {
  const keys = keysOf(options.jwks);
  const asked = await normalize(options.question);
  const verified = await verifyRecord(permit, async (kid) => keys.get(kid));
  const { record, request, verdict, validUntil } = verified;
  need(record['tenant_id'] === options.tenantId, 'it is of another tenant');
  const isPermitted = verdict['decision'] === 'allow_with_constraints' || verdict['decision'] === 'allow';
  need(isPermitted, `the decision is ${String(verdict['decision'])}`);
  const member = differingMember(request, asked, false);
  need(member === undefined, `${member} differs from the one that was decided`);
  const toolId = verdict['tool_id'] ?? undefined;
  need(toolId === undefined || toolId === asked['tool_id'], `it is only for the tool ${String(toolId)}`);
  await verifyContext(verified, permit.context_salt, asked['context'] as JsonObject);
  need(validUntil !== undefined, 'it has no end');
  const now = (options.now ?? Date.now()) * 1000;
  if (now >= validUntil) throw new Denied('late', 'the permit has expired');
  return verified;
}

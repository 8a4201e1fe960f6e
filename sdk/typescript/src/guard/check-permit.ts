// Checks that an answer is a genuine permit for the call that was made.

import { timestampMs, type Timestamp } from '@bufbuild/protobuf/wkt';
import { Decision } from '../client.js';
import type { EvaluateDecisionResponse } from '../generated/authority/runtime/v1/runtime_service_pb.js';
import { canonicalize, type Json, type JsonObject } from '../jcs.js';
import { Denied } from './failures.js';
import type { Keyring } from './keyring.js';
import { differingMember, tenantOf } from './question.js';
import { verifyContext, verifyRecord, type VerifiedRecord } from './verify-permit.js';

/**
 * Verifies the signed record of a permission member by member. Returns for how many milliseconds it is
 * valid after its evaluation.
 *
 * @throws {Denied} It is not signed by the service, or about another question or call.
 */
export async function checkPermit(
  answer: EvaluateDecisionResponse, question: JsonObject, keys: Keyring,
): Promise<number> {
  const { record, contextSalt, evidencePack } = answer;
  try {
    const isSigned = record !== undefined && contextSalt !== undefined && evidencePack?.signature !== undefined;
    need(isSigned, 'the answer has no signed record');
    const { kid, value } = evidencePack.signature!;
    const proof = { record, context_salt: contextSalt, signature: { kid, value } };
    const verified = await verifyRecord(proof, (id) => keys.find(id));
    need(evidencePack.recordDigest === verified.recordDigest, 'record_digest is of another record');
    need(answer.decisionId === verified.decisionId, 'decision_id is of another record');
    need(verified.record['tenant_id'] === tenantOf(String(question['subject'])), 'the record is of another tenant');
    const member = differingMember(verified.request, question, true);
    need(member === undefined, `${member} of the record differs from the question`);
    await verifyContext(verified, contextSalt, question['context'] as JsonObject);
    checkVerdict(answer, verified);
    const { evaluatedAt, validUntil } = verified;
    need(validUntil !== undefined, 'the record has no valid_until');
    return (validUntil - evaluatedAt) / 1000;
  } catch (error) {
    throw new Denied('unverified', (error as Error).message, { decision: answer, cause: error });
  }
}

function need(holds: unknown, problem: string): asserts holds {
  if (!holds) throw new Error(`the answer is not a permit for this call: ${problem}`);
}

const WORDS: Readonly<Partial<Record<Decision, string>>> = {
  [Decision.ALLOW]: 'allow', [Decision.ALLOW_WITH_CONSTRAINTS]: 'allow_with_constraints',
};

function checkVerdict(answer: EvaluateDecisionResponse, { verdict, record, evaluatedAt, validUntil }: VerifiedRecord) {
  const expected: Record<string, Json> = {
    decision: WORDS[answer.decision] ?? null, reason_code: answer.reasonCode, reasons: answer.reasons,
    obligations: answer.obligations, stop_conditions: answer.stopConditions, tool_id: answer.toolId ?? null,
  };
  for (const [name, value] of Object.entries(expected)) {
    need(canonicalize(verdict[name] ?? null) === canonicalize(value), `${name} of the record differs from the answer`);
  }
  const isSame = (isEqual: boolean, name: string) => need(isEqual, `${name} of the record differs from the answer`);
  isSame(record['authority_revision'] === answer.authorityRevision, 'authority_revision');
  isSame(micros(answer.evaluatedAt) === evaluatedAt, 'evaluated_at');
  isSame(micros(answer.validUntil) === validUntil, 'valid_until');
}

const micros = (time: Timestamp | undefined) =>
  (time && Number(time.seconds) * 1_000_000 + Math.floor(time.nanos / 1000));

/** Returns for how many milliseconds a permission is valid after its evaluation, if it is not verified. */
export function validity({ evaluatedAt, validUntil }: EvaluateDecisionResponse): number {
  return evaluatedAt && validUntil ? timestampMs(validUntil) - timestampMs(evaluatedAt) : 0;
}

// Guards the tools of an agent.

export { AuthorityError, Decision, type AuthorityClient, type Credential } from './client.js';
export type { EvaluateDecisionResponse } from './generated/authority/runtime/v1/runtime_service_pb.js';
export { Authority, type AuthorityOptions, type PermitOptions } from './guard/authority.js';
export { Denied, Held, Unavailable, type HeldJson } from './guard/failures.js';
export type { CallOptions, Guarded, GuardOptions, Tool } from './guard/guard.js';
export type { Logger } from './guard/log.js';
export type { ObligationHandler, Obligations, Permit, Scope } from './guard/permit.js';
export type { Question } from './guard/question.js';
export type { Outcome } from './guard/reporter.js';
export { digestArguments, exactAmount, serialize, snapshot, type Redaction } from './guard/values.js';
export type { Duration } from './time.js';
export {
  InvalidEvidence, UnreadableEvidence, verifyEvidence, verifyPermit,
  type EvidenceOptions, type Jwks, type PermitProof, type VerifiedRecord, type VerifyPermitOptions,
} from './verify.js';

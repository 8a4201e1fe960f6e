// Verifies permits of other parties and evidence files, offline. It uses only WebCrypto.

export { canonicalize, type Json, type JsonObject } from './jcs.js';
export { InvalidEvidence, UnreadableEvidence, verifyEvidence, type EvidenceOptions } from './evidence.js';
export { Denied } from './guard/failures.js';
export type { Question } from './guard/question.js';
export {
  verifyPermit, type PermitProof, type VerifiedRecord, type VerifyPermitOptions,
} from './guard/verify-permit.js';
export type { Jwks } from './verify-webhook.js';

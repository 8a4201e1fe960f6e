// The failures of a decision: denied, held, unavailable.

import type { EvaluateDecisionResponse } from '../generated/authority/runtime/v1/runtime_service_pb.js';
import type { JsonObject } from '../jcs.js';

/**
 * The action is not permitted. The tool did not run, unless `started` is true.
 *
 * `code` is the reason code of the service's denial (`permission_missing`), its error code if it
 * refused the request (`invalid_request`), or a code of this library:
 *
 * - `declined`, `expired`, `void`, `used`: how the approval that was waited for ended.
 * - `stopped`: the permission ended before or, if `started` is true, while the tool ran.
 * - `late`: the permission was not used in time.
 * - `obligation_unsupported`, `obligation_failed`: an obligation has no handler, or its handler failed.
 * - `unverified`, `replayed`, `unknown_decision`: the answer is not a permit for this call.
 * - `tool_mismatch`: the permission is for a tool that the question does not name.
 * - `invalid_question`: the question could not be made: an argument has no exact JSON form, or a mapping failed.
 * - `arguments_changed`: the arguments differ from the question.
 * - `unguarded_tool`: an adapter refuses a tool that is not guarded.
 */
export class Denied extends Error {
  override readonly name = 'Denied';
  readonly code: string;
  /** The service's answer, if there is one. */
  readonly decision: EvaluateDecisionResponse | undefined;
  /** Whether the tool was running when its permission ended. Its effect is then unknown. */
  readonly started: boolean;

  constructor(code: string, message: string, { decision, started = false, cause }: {
    decision?: EvaluateDecisionResponse | undefined; started?: boolean; cause?: unknown;
  } = {}) {
    super(message, { cause });
    this.code = code;
    this.decision = decision;
    this.started = started;
  }
}

/** A held question as JSON. It has no secret, and `resume` accepts it in any process. */
export interface HeldJson {
  readonly kind: 'agent-authority.held.v1';
  readonly approval_id: string | null;
  readonly verify_url: string;
  readonly digest: string;
  readonly eligible: string | null;
  /** The whole question, with the API's names. */
  readonly question: JsonObject;
  readonly decision_id: string;
  readonly reason_code: string;
}

/** The action waits for people. The tool did not run. */
export class Held extends Error {
  override readonly name = 'Held';
  /** The approval request; undefined if no approval would permit the action. */
  readonly approvalId: string | undefined;
  /** The receipt page's address. */
  readonly verifyUrl: string;
  /** The question's digest, which people sign: `sha256:…`. */
  readonly digest: string;
  /** `none` if no registered person could approve the request. */
  readonly eligible: string | undefined;
  readonly question: JsonObject;
  /** The service's answer. */
  readonly decision: EvaluateDecisionResponse;

  constructor(question: JsonObject, digest: string, decision: EvaluateDecisionResponse) {
    const { approvalId, eligible, verifyUrl, reasonCode } = decision;
    const people = eligible === 'none' ? '; no registered person can approve it' : '';
    const reason = approvalId ? 'for approval' : `(${reasonCode})`;
    super(`${String(question['action'])} waits ${reason}${people}: ${verifyUrl}`);
    this.approvalId = approvalId;
    this.verifyUrl = verifyUrl;
    this.digest = digest;
    this.eligible = eligible;
    this.question = question;
    this.decision = decision;
  }

  toJSON(): HeldJson {
    return {
      kind: 'agent-authority.held.v1', approval_id: this.approvalId ?? null, verify_url: this.verifyUrl,
      digest: this.digest, eligible: this.eligible ?? null, question: this.question,
      decision_id: this.decision.decisionId, reason_code: this.decision.reasonCode,
    };
  }
}

/** No decision was received. The tool did not run. */
export class Unavailable extends Error {
  override readonly name = 'Unavailable';
  /** `unavailable`, `keys_unavailable`, or the service's error code, such as `rate_limited`. */
  readonly code: string;

  constructor(code: string, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}

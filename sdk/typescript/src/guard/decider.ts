// Gets a permission for a question: asks, verifies the answer, and waits for people.

import { create, fromJson, type JsonValue } from '@bufbuild/protobuf';
import { hex } from '../bytes.js';
import { Decision, type AuthorityClient } from '../client.js';
import { DecisionRequestSchema } from '../generated/authority/runtime/v1/decision_pb.js';
import { EvaluateDecisionRequestSchema } from '../generated/authority/runtime/v1/decision_service_pb.js';
import type { EvaluateDecisionResponse } from '../generated/authority/runtime/v1/runtime_service_pb.js';
import type { JsonObject } from '../jcs.js';
import { Deadline, sleep } from '../time.js';
import { USER_AGENT } from '../version.js';
import { ask, type Call } from './attempts.js';
import { checkPermit, validity } from './check-permit.js';
import { Denied, Held, Unavailable } from './failures.js';
import { followApproval, readApproval, type Settled } from './hold.js';
import type { Keyring } from './keyring.js';
import type { Logger } from './log.js';
import { BUILT_IN } from './permit.js';
import { digestQuestion } from './question.js';
import type { Reporter } from './reporter.js';

/** An answer that permits the action, and the time before which the action must begin. */
export interface Permitted {
  readonly answer: EvaluateDecisionResponse;
  readonly deadline: Deadline;
}

/** A question in normal form, and how it is asked. */
export interface Asking {
  readonly question: JsonObject;
  /** The obligations that the caller can meet. */
  readonly supported: readonly string[];
  /** The approval to cite. */
  readonly approvalId?: string | undefined;
}

/** Milliseconds between two requests if no approval can help. */
const ASK_AGAIN = 30_000;
/** Milliseconds between two requests while the service is unavailable during a wait, at least and at most. */
const [SHORTEST_PAUSE, LONGEST_PAUSE] = [1000, 5000];
/** States in which an approval can no longer permit the action. */
const ENDED: readonly string[] = ['declined', 'expired', 'void', 'used'];

export interface DeciderParts {
  readonly client: AuthorityClient;
  readonly keys: Keyring;
  readonly reporter: Reporter;
  readonly log: Logger;
  /** Whether permissions are verified. */
  readonly verifies: boolean;
  /** Milliseconds for a decision, with all its attempts. */
  readonly timeout: number;
}

export class Decider {
  readonly #parts: DeciderParts;

  constructor(parts: DeciderParts) {
    this.#parts = parts;
  }

  /** Asks once, with attempts. @throws {Denied | Held | Unavailable} */
  async decide({ question, supported, approvalId }: Asking): Promise<Permitted> {
    const { keys, verifies, timeout, reporter, log } = this.#parts;
    if (verifies) {
      await keys.ready().catch((error: Error) => {
        const message = `the service's keys can't be read: ${error.message}`;
        throw new Unavailable('keys_unavailable', message, { cause: error });
      });
    }
    const asked = { ...question, client_nonce: hex(crypto.getRandomValues(new Uint8Array(16))) };
    const verify = async (answer: EvaluateDecisionResponse) =>
      (verifies ? checkPermit(answer, asked, keys) : validity(answer));
    const abandon = ({ decisionId }: EvaluateDecisionResponse) =>
      reporter.report(decisionId, 'abandoned', 'the permission could not be used');
    const cites = approvalId === undefined ? {} : { approval_id: approvalId };
    const call = this.#call({ ...asked, ...cites, include_record: verifies });
    const { answer, timer, learn } = await ask(call, timeout, (late) => {
      if (isPermission(late)) verify(late).then(() => abandon(late), (error: Error) => log.warn(error.message));
    });
    if (answer.decision === Decision.REQUIRE_APPROVAL) throw await this.#held(question, answer, approvalId);
    if (answer.decision === Decision.DENY) throw denial(question, answer);
    if (!isPermission(answer)) {
      const message = `the decision ${answer.decision} is unknown to this version`;
      throw new Denied('unknown_decision', message, { decision: answer });
    }
    const duration = await verify(answer).catch((error: unknown) => {
      // The service may have permitted the action, although this answer can't be trusted.
      learn();
      throw error;
    });
    const unusable = problemOf(answer, question, supported);
    if (unusable) {
      abandon(answer);
      throw unusable;
    }
    // Since the first attempt: a late repeat does not lengthen it.
    return { answer, deadline: new Deadline(duration, timer) };
  }

  /**
   * Decides, and waits for people until the action is permitted.
   *
   * @throws {Denied | Held | Unavailable} `Held` when the wait has ended.
   */
  async decideWaiting(asking: Asking, wait: number, signal: AbortSignal | undefined): Promise<Permitted> {
    const until = new Deadline(wait);
    let { approvalId } = asking;
    let last: Held | undefined;
    for (;;) {
      signal?.throwIfAborted();
      try {
        return await this.decide({ ...asking, approvalId });
      } catch (error) {
        if (error instanceof Held) {
          last = error;
          approvalId = await this.#nextApproval(error, approvalId, until, signal);
        } else if (error instanceof Unavailable && last && approvalId === undefined) {
          // During a wait of hours, the service may be unavailable for a moment. A call that cites an
          // approval may have used it, and is not repeated with another key.
          if (until.isOver) throw last;
          const pause = SHORTEST_PAUSE + Math.random() * (LONGEST_PAUSE - SHORTEST_PAUSE);
          await sleep(Math.min(pause, until.remaining), signal);
        } else {
          throw error;
        }
      }
    }
  }

  /** Fails if the approval of a held question has ended. */
  async checkApproval(approvalId: string, question: JsonObject, signal: AbortSignal | undefined): Promise<void> {
    const state = await readApproval(this.#parts.client, approvalId, signal);
    if (typeof state === 'string' && state !== 'approved') throw ended(state, question);
  }

  /** Waits until the question can be asked again. Returns the approval to cite. */
  async #nextApproval(
    held: Held, cited: string | undefined, until: Deadline, signal: AbortSignal | undefined,
  ): Promise<string | undefined> {
    const { approvalId, decision, question } = held;
    const ready = decision.readyApprovalId;
    if (ready !== undefined && ready !== cited) return ready;
    if (held.eligible === 'none' || until.isOver) throw held;
    const { client, log } = this.#parts;
    let state: Settled | 'unreadable' | undefined = 'unreadable';
    if (approvalId !== undefined && approvalId !== ready) {
      log.warn(`waiting for approval ${approvalId}: ${held.verifyUrl}`);
      state = await followApproval(client, { decisionId: decision.decisionId, approvalId, until, signal });
    }
    if (state === 'approved') return approvalId;
    if (state === undefined) throw held;
    if (state !== 'unreadable') throw ended(state, question, decision);
    // No approval helps, or this key may not read it: only another request shows a change.
    await sleep(Math.min(ASK_AGAIN, until.remaining), signal);
    return undefined;
  }

  #call(request: JsonObject): Call {
    try {
      const decoded = fromJson(DecisionRequestSchema, request as JsonValue);
      const message = create(EvaluateDecisionRequestSchema, { request: decoded });
      return ({ headers, timeoutMs, onHeader }) => this.#parts.client.decisions.evaluateDecision(
        message, { headers: { ...headers, ...userAgent() }, timeoutMs, onHeader },
      );
    } catch (error) {
      throw new Denied('invalid_question', (error as Error).message, { cause: error });
    }
  }

  async #held(
    question: JsonObject, answer: EvaluateDecisionResponse, cited: string | undefined,
  ): Promise<Held | Denied> {
    const state = cited && answer.citedApproval?.id === cited ? answer.citedApproval.state : undefined;
    if (state && ENDED.includes(state)) {
      // Another call was faster. The approval request that this call has opened would be answered in vain.
      if (answer.approvalId && answer.approvalId !== cited) this.#cancel(answer.approvalId);
      return ended(state, question, answer);
    }
    const { explain, ...asked } = question;
    return new Held(asked, await digestQuestion(question), answer);
  }

  #cancel(approvalId: string): void {
    const cancelled = this.#parts.client.approvals.cancelApproval({ id: approvalId }, { timeoutMs: 10_000 });
    cancelled.catch((error: Error) => this.#parts.log.debug(`${approvalId} is not cancelled: ${error.message}`));
  }
}

/** Pages can't set the header. */
const userAgent = (): Record<string, string> => (typeof window === 'undefined' ? { 'user-agent': USER_AGENT } : {});

const isPermission = ({ decision }: EvaluateDecisionResponse) =>
  decision === Decision.ALLOW || decision === Decision.ALLOW_WITH_CONSTRAINTS;

/** Returns the reason why this caller can't act under a permission. */
function problemOf(
  decision: EvaluateDecisionResponse, question: JsonObject, supported: readonly string[],
): Denied | undefined {
  const { toolId, obligations } = decision;
  if (toolId !== undefined && toolId !== question['tool_id']) {
    const message = `the permission is only for the tool ${toolId}: name it in toolId`;
    return new Denied('tool_mismatch', message, { decision });
  }
  const missing = obligations.find((name) => !Object.hasOwn(BUILT_IN, name) && !supported.includes(name));
  return missing === undefined ? undefined
    : new Denied('obligation_unsupported', `the obligation ${missing} has no handler`, { decision });
}

function denial(question: JsonObject, answer: EvaluateDecisionResponse): Denied {
  const change = answer.smallestChange?.sentence;
  const message = `${String(question['action'])} is not permitted: ${answer.reasonCode}${change ? `; ${change}` : ''}`;
  return new Denied(answer.reasonCode || 'denied', message, { decision: answer });
}

/** The failure for an approval that ended: `declined`, `expired`, `void` or `used`. */
function ended(state: string, question: JsonObject, decision?: EvaluateDecisionResponse): Denied {
  const problem = state === 'used' ? 'another call used the approval' : `the request for approval is ${state}`;
  return new Denied(state, `${String(question['action'])} is not permitted: ${problem}`, { decision });
}

// Makes one call for a decision, and repeats it after failures with the same idempotency key.

import { AuthorityError, Code } from '../client.js';
import type { EvaluateDecisionResponse } from '../generated/authority/runtime/v1/runtime_service_pb.js';
import { Deadline, sleep, Timer, within } from '../time.js';
import { Denied, Unavailable } from './failures.js';

/** Milliseconds of an attempt, at least: the last one goes on after the deadline, to learn the decision. */
const LATE = 30_000;
/** The most that fits the header `grpc-timeout`. */
const LONGEST = 99_999_999;
const FIRST_DELAY = 50;

/** One call, with headers; `onHeader` gets the headers of the answer. */
export type Call = (options: {
  headers: Record<string, string>; timeoutMs: number; onHeader: (headers: Headers) => void;
}) => Promise<EvaluateDecisionResponse>;

export interface Answered {
  readonly answer: EvaluateDecisionResponse;
  /** The time since the first attempt began. */
  readonly timer: Timer;
  /** Asks once more, in the background. `onLate` gets the answer. */
  readonly learn: () => void;
}

type Attempt = { answer: EvaluateDecisionResponse; isReplayed: boolean } | { error: AuthorityError };

/**
 * Returns the service's answer. If none arrives within `total` milliseconds, one attempt goes on, and
 * `onLate` gets its answer.
 *
 * @throws {Denied} The service refused the request.
 * @throws {Unavailable} No answer arrived.
 */
export async function ask(
  call: Call, total: number, onLate: (answer: EvaluateDecisionResponse) => void,
): Promise<Answered> {
  // The key exists only here: two processes with one key would both get the permission.
  const headers = { 'idempotency-key': crypto.randomUUID() };
  const timer = new Timer();
  const deadline = new Deadline(total, timer);
  const goOn = async (attempt: Promise<Attempt>) => {
    const late = await attempt;
    if ('answer' in late) onLate(late.answer);
  };
  const longest = Math.min(Math.max(LATE, Math.ceil(total)), LONGEST);
  const learn = () => void goOn(once(call, headers, longest));
  let mayBeDecided = false;
  for (let number = 0; ; number += 1) {
    const attempt = once(call, headers, longest);
    const outcome = await within(attempt, deadline.remaining);
    if (!outcome) {
      void goOn(attempt);
      throw new Unavailable('unavailable', `no decision was received within ${total / 1000} seconds`);
    }
    if ('answer' in outcome) {
      if (number > 0 || !outcome.isReplayed) return { answer: outcome.answer, timer, learn };
      throw new Denied('replayed', 'the answer is to an earlier call', { decision: outcome.answer });
    }
    const { error } = outcome;
    mayBeDecided ||= error.status !== Code.ResourceExhausted;
    if (!mayRepeat(error)) {
      const refused = refusal(error);
      if (refused instanceof Unavailable) learn();
      throw refused;
    }
    const delay = error.retryAfterMs ?? Math.random() * FIRST_DELAY * 2 ** number;
    if (delay >= deadline.remaining) {
      // An attempt may have been decided although its answer was lost.
      if (mayBeDecided) void sleep(Math.min(delay, LATE)).then(learn);
      throw refusal(error);
    }
    await sleep(delay);
  }
}

async function once(call: Call, headers: Record<string, string>, timeoutMs: number): Promise<Attempt> {
  let isReplayed = false;
  const onHeader = (received: Headers) => { isReplayed = received.get('idempotency-replayed') === 'true'; };
  try {
    const answer = await call({ headers, timeoutMs, onHeader });
    return { answer, isReplayed };
  } catch (error) {
    return { error: AuthorityError.from(error) };
  }
}

/** Whether the same call may be repeated: the connection failed, or the service is overloaded or not done. */
function mayRepeat(error: AuthorityError): boolean {
  if (!error.isFromService) return error.isTransient;
  const isBusy = error.status === Code.Unavailable || error.status === Code.ResourceExhausted;
  return isBusy || error.code === 'idempotency_in_progress';
}

function refusal(error: AuthorityError): Denied | Unavailable {
  const { code, message } = error;
  if (code === 'decision_stopped') return new Denied('stopped', message, { cause: error });
  return error.isRefusal
    ? new Denied(code, `the service refused the request: ${message}`, { cause: error })
    : new Unavailable(code, `no decision: ${message}`, { cause: error });
}

// Waits for the people who decide on a held request.

import { AuthorityError, type AuthorityClient } from '../client.js';
import { Deadline, sleep, within } from '../time.js';

/** Milliseconds of one stream. It is then opened again: a connection can be dead without an error. */
const LONGEST_STREAM = 45_000;
const FIRST_DELAY = 500;
const LONGEST_DELAY = 5_000;

const SETTLED = ['approved', 'declined', 'expired', 'void', 'used'] as const;
/** How an approval request ended. */
export type Settled = typeof SETTLED[number];

const settled = (state: string | undefined): Settled | undefined => SETTLED.find((each) => each === state);

/**
 * Returns how the approval request of a held decision ended; undefined if it is still pending at the
 * end of the wait, and `unreadable` if this credential may not read it.
 */
export async function followApproval(
  client: AuthorityClient, { decisionId, approvalId, until, signal }: {
    decisionId: string; approvalId: string; until: Deadline; signal: AbortSignal | undefined;
  },
): Promise<Settled | 'unreadable' | undefined> {
  for (let failures = 0; !until.isOver; failures += 1) {
    try {
      const state = await watched(client, decisionId, Math.min(LONGEST_STREAM, until.remaining), signal);
      if (state) return state;
      failures = 0;
    } catch (thrown) {
      signal?.throwIfAborted();
      const refused = AuthorityError.from(thrown).isRefusal;
      const polled = await readApproval(client, approvalId, signal);
      if (polled instanceof AuthorityError) {
        if (refused && polled.isRefusal) return 'unreadable';
        await sleep(Math.min(polled.retryAfterMs ?? 0, until.remaining), signal);
      } else if (polled) {
        return polled;
      }
    }
    const delay = Math.max(FIRST_DELAY, Math.random() * Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** failures));
    await sleep(Math.min(delay, until.remaining), signal);
  }
  return undefined;
}

/** Follows one stream for a time. Returns how the request ended; undefined if it is pending or the stream ended. */
async function watched(
  client: AuthorityClient, decisionId: string, duration: number, signal: AbortSignal | undefined,
): Promise<Settled | undefined> {
  const end = new Deadline(duration);
  const left = new AbortController();
  const updates = client.runtime.watchDecision({ decisionId }, { signal: left.signal })[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = updates.next();
      next.catch(() => {});
      const update = await within(next, end.remaining, signal);
      if (!update || update.done) return undefined;
      const state = settled(update.value.approvalState);
      if (state) return state;
    }
  } finally {
    left.abort();
  }
}

/** Reads an approval request once: how it ended, undefined if it is pending, or the error. */
export async function readApproval(
  client: AuthorityClient, approvalId: string, signal?: AbortSignal,
): Promise<Settled | AuthorityError | undefined> {
  const options = { timeoutMs: 2000, ...(signal && { signal }) };
  try {
    return settled((await client.approvals.getAskedApproval({ id: approvalId }, options)).state);
  } catch (thrown) {
    signal?.throwIfAborted();
    return AuthorityError.from(thrown);
  }
}

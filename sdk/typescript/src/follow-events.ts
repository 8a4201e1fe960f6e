// Follows events in a stream that resumes when its connection breaks.

import { Code, type Client } from '@connectrpc/connect';
import { AuthorityError } from './authority-error.js';
import { parseEvent, type AuthorityEvent } from './event.js';
import type { EventService } from './generated/authority/events/v1/event_service_pb.js';
import { sleep, within } from './time.js';

export interface FollowOptions {
  /** The `sequence` of the last event that was handled; only new events if absent. */
  after?: number | undefined;
  /** Limits the stream to these types: patterns, such as `svc.decision.*`. */
  eventTypes?: readonly string[] | undefined;
  /** The tenant. Required for the owner. */
  tenantId?: string | undefined;
  /** Ends the stream, also while it waits. The loop then fails with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Called each time that the stream breaks, with the milliseconds until the next attempt. */
  onRetry?: ((error: AuthorityError, delayMs: number) => void) | undefined;
}

/** Milliseconds. The service sends a message every 15 seconds. */
const SILENCE = 45_000;
const FIRST_DELAY = 500;
const LONGEST_DELAY = 30_000;

/**
 * Yields each event after a sequence, in order, at least once. A broken stream is opened again
 * after the last event that the loop has handled.
 *
 * @throws {AuthorityError} The stream cannot be opened and no later attempt can succeed: the
 * credential is refused (`unauthenticated`, `forbidden`, …), or the log does not have the sequence
 * (`sequence_ahead`, or `sequence_expired` with `oldest` in its metadata).
 */
export async function* followEvents(
  events: Client<typeof EventService>, options: FollowOptions = {},
): AsyncGenerator<AuthorityEvent, void> {
  const { eventTypes = [], tenantId, signal, onRetry } = options;
  const selected = { eventType: [...eventTypes], ...(tenantId === undefined ? {} : { tenantId }) };
  let after = options.after === undefined ? undefined : BigInt(options.after);
  let failures = 0;
  for (;;) {
    signal?.throwIfAborted();
    const silent = new AbortController();
    const call = { signal: signal ? AbortSignal.any([signal, silent.signal]) : silent.signal };
    let received = false;
    let broken: AuthorityError;
    try {
      // The position is fixed before the stream is opened. No events are lost then if the first
      // attempt fails.
      after ??= (await heard(events.listEvents({ ...selected, limit: 1 }, call), silent, signal)).head;
      const messages = events.streamEvents({ ...selected, after }, call)[Symbol.asyncIterator]();
      for (;;) {
        const message = await heard(messages.next(), silent, signal);
        if (message.done) break;
        received = true;
        failures = 0;
        const { event, sequence } = message.value;
        if (event) yield parseEvent(event);
        after = sequence;
      }
      broken = unavailable('the stream of events ended');
    } catch (thrown) {
      // If the credential expires while a stream is open, the next credential may be valid. A
      // credential that is refused when a stream is opened is final.
      if (!(thrown instanceof AuthorityError) || !(thrown.isTransient || received)) throw thrown;
      broken = thrown;
    } finally {
      silent.abort();
    }
    const longest = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** failures);
    const delay = Math.max(Math.random() * longest, broken.retryAfterMs ?? 0);
    failures += 1;
    onRetry?.(broken, delay);
    await sleep(delay, signal);
  }
}

const unavailable = (message: string) => new AuthorityError(message, { code: 'unavailable', status: Code.Unavailable });

/** Ends the call if no message arrives: a connection can be dead without an error. */
async function heard<T>(answer: Promise<T>, silent: AbortController, signal: AbortSignal | undefined): Promise<T> {
  const message = await within(answer, SILENCE, signal);
  if (message !== undefined) return message;
  const error = unavailable(`no message received for ${SILENCE / 1000} seconds`);
  silent.abort(error);
  throw error;
}

// Watches the stop conditions of a permission while its action runs.

import type { Client } from '@connectrpc/connect';
import { AuthorityError, Code } from '../client.js';
import type { RuntimeService } from '../generated/authority/runtime/v1/runtime_service_pb.js';
import { Deadline, sleep } from '../time.js';

/** Milliseconds without a heartbeat after which the permission counts as ended. The service sends one every 15 s. */
const SILENCE = 30_000;
/** Milliseconds between two checks of the silence. A timer of 30 seconds would stand still while the machine sleeps. */
const CHECK = 1000;
const FIRST_DELAY = 100;
const LONGEST_DELAY = 3_000;

export interface StopWatch {
  /** Resolves with the first heartbeat, or when the permission has ended. */
  readonly confirmed: Promise<void>;
  close(): void;
}

/**
 * Follows a permission. Calls `stop` once, with the reason: a stop condition, `watch_refused: …` if
 * the stream is refused, or `no_heartbeat`.
 */
export function watchPermission(
  runtime: Client<typeof RuntimeService>, decisionId: string, stop: (condition: string) => void,
): StopWatch {
  const closed = new AbortController();
  const { signal } = closed;
  let confirm = () => {};
  const confirmed = new Promise<void>((resolve) => { confirm = resolve; });
  const end = (condition: string) => {
    if (signal.aborted) return;
    close();
    stop(condition);
  };
  const close = () => {
    clearInterval(check);
    closed.abort();
    confirm();
  };
  let silence = new Deadline(SILENCE);
  const check = setInterval(() => { if (silence.isOver) end('no_heartbeat'); }, CHECK);
  const follow = async () => {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        for await (const event of runtime.watchStopConditions({ decisionId }, { signal })) {
          if (event.kind === 'stopped') return end(event.stopCondition ?? 'stopped');
          if (event.kind !== 'heartbeat' || signal.aborted) continue;
          silence = new Deadline(SILENCE);
          failures = 0;
          confirm();
        }
      } catch (thrown) {
        const error = AuthorityError.from(thrown);
        const isFull = error.isFromService && error.status === Code.ResourceExhausted;
        if (error.isRefusal || isFull) return end(`watch_refused: ${error.code}`);
      }
      await sleep(Math.random() * Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** failures), signal).catch(() => {});
    }
  };
  void follow();
  return { confirmed, close };
}

// Reports of outcomes, sent in the background.

import type { Client } from '@connectrpc/connect';
import { AuthorityError } from '../client.js';
import type { DecisionService } from '../generated/authority/runtime/v1/decision_service_pb.js';
import { Deadline, sleep } from '../time.js';
import type { Logger } from './log.js';

export type Outcome = 'executed' | 'failed' | 'abandoned';

/** Milliseconds for all attempts of a report. */
const TOTAL = 30_000;
const FIRST_DELAY = 50;
const LONGEST_DELAY = 5_000;
const LONGEST_DETAIL = 2000;

/** Sends reports. A report that can't be sent is logged and changes nothing else. */
export class Reporter {
  readonly #decisions: Client<typeof DecisionService>;
  readonly #log: Logger;
  readonly #pending = new Set<Promise<void>>();

  constructor(decisions: Client<typeof DecisionService>, log: Logger) {
    this.#decisions = decisions;
    this.#log = log;
  }

  report(decisionId: string, outcome: Outcome, detail = ''): void {
    const sent = this.#send(decisionId, outcome, detail.slice(0, LONGEST_DETAIL)).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      this.#log.error(`the outcome ${outcome} of ${decisionId} is not reported: ${reason}`);
    });
    this.#pending.add(sent);
    void sent.finally(() => this.#pending.delete(sent));
  }

  /** Waits until every report is sent or given up, for at most 30 seconds. */
  async flush(): Promise<void> {
    await Promise.all(this.#pending);
  }

  async #send(decisionId: string, outcome: Outcome, detail: string): Promise<void> {
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const end = new Deadline(TOTAL);
    for (let number = 0; ; number += 1) {
      try {
        const timeoutMs = Math.max(1, Math.ceil(end.remaining));
        const report = { decisionId, outcome, ...(detail && { detail }) };
        await this.#decisions.reportDecision(report, { headers, timeoutMs });
        return;
      } catch (thrown) {
        const error = AuthorityError.from(thrown);
        const longest = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** number);
        const delay = error.retryAfterMs ?? Math.random() * longest;
        if (error.isRefusal || delay >= end.remaining) throw error;
        await sleep(delay);
      }
    }
  }
}

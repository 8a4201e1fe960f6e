/// <reference lib="esnext.disposable" preserve="true" />
// A permit: the scope in which a tool may run.

import type { Client } from '@connectrpc/connect';
import type { EvaluateDecisionResponse } from '../generated/authority/runtime/v1/runtime_service_pb.js';
import type { RuntimeService } from '../generated/authority/runtime/v1/runtime_service_pb.js';
import type { JsonObject } from '../jcs.js';
import type { Deadline } from '../time.js';
import type { PermitProof } from './verify-permit.js';
import { Denied } from './failures.js';
import { typeName, type Logger } from './log.js';
import type { Outcome, Reporter } from './reporter.js';
import { watchPermission, type StopWatch } from './stop-watch.js';

/** Meets an obligation of a permission. If a handler fails, the tool does not run or its result is not returned. */
export interface ObligationHandler {
  /** Called before the tool runs. */
  readonly before?: ((permit: Permit) => void | Promise<void>) | undefined;
  /** Called after the tool has returned. */
  readonly after?: ((permit: Permit, result: unknown) => void | Promise<void>) | undefined;
}
export type Obligations = Readonly<Record<string, ObligationHandler>>;

/** What a tool gets in addition to its arguments. */
export interface Scope {
  /** Aborted when the permission ends. Pass it on to whatever the tool calls. */
  readonly signal: AbortSignal;
  /** Absent only in shadow mode, when there is no permission. */
  readonly permit?: Permit | undefined;
}

/** Milliseconds after which the stop conditions are watched in any case. */
const WATCHED_AFTER = 1000;

/** Node before 20.5 lacks the symbol. */
const asyncDispose: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose') as never;

interface Parts {
  readonly decision: EvaluateDecisionResponse;
  readonly question: JsonObject;
  readonly proof: PermitProof | undefined;
  readonly deadline: Deadline;
  readonly watch: boolean;
  readonly obligations: Obligations;
  readonly signal: AbortSignal | undefined;
  readonly runtime: Client<typeof RuntimeService>;
  readonly reporter: Reporter;
  readonly log: Logger;
  readonly reportMessages: boolean;
}

/**
 * A verified permission for one action. Use `run`, or `begin` and `end`:
 *
 *     await using permit = await authority.permit(question);
 *     await permit.run(({ signal }) => bank.pay(order, { signal }));
 */
export class Permit {
  readonly decision: EvaluateDecisionResponse;
  /** The question that was decided, with the API's names. */
  readonly question: JsonObject;
  /** The signed record, for a tool's own server to verify (`verifyPermit`). */
  readonly proof: PermitProof | undefined;
  /** Aborted when the permission ends: a stop condition, or the caller's own signal. */
  readonly signal: AbortSignal;
  readonly #parts: Parts;
  readonly #stopped = new AbortController();
  #state: 'unused' | 'begun' | 'ended' = 'unused';
  #watch: StopWatch | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Made by `Authority`. */
  constructor(parts: Parts) {
    this.#parts = parts;
    this.decision = parts.decision;
    this.question = parts.question;
    this.proof = parts.proof;
    this.signal = this.#stopped.signal;
    parts.signal?.addEventListener('abort', this.#abort, { once: true });
    if (parts.signal?.aborted) this.#abort();
  }

  /**
   * Runs the tool, once, and reports its outcome. `isUnchanged` is called last. If it returns
   * false, the arguments differ from the question.
   *
   * @throws {Denied} The tool did not run. With `started`, its permission ended while it ran.
   * @throws {TypeError} The tool returned a generator, which would run after the permit.
   */
  async run<T>(tool: (scope: Scope) => T | Promise<T>, isUnchanged?: () => Promise<boolean>): Promise<T> {
    await this.begin(isUnchanged);
    const running = (async () => tool({ signal: this.signal, permit: this }))();
    let result: T;
    try {
      result = await Promise.race([running, this.#whenStopped()]);
      if (isGenerator(result)) throw new TypeError('a guarded tool must not return a generator, which runs later');
    } catch (error) {
      this.end('failed', this.#detailOf(error));
      throw this.signal.aborted ? this.signal.reason : error;
    }
    this.#unwatch();
    await this.#after(result);
    this.end('executed');
    return result;
  }

  /**
   * Begins the action: checks the deadline, meets obligations, watches the stop conditions. End it with
   * `end`.
   *
   * @throws {Denied} The action must not begin.
   */
  async begin(isUnchanged?: () => Promise<boolean>): Promise<void> {
    if (this.#state !== 'unused') throw this.#denied('used', 'this permit was already used');
    this.#state = 'begun';
    try {
      this.#checkDeadline();
      for (const name of this.decision.obligations) await this.#before(name);
      if (this.#parts.watch) await this.#openWatch().confirmed;
      if (isUnchanged && !await isUnchanged()) {
        throw this.#denied('arguments_changed', 'the arguments changed after the decision');
      }
      this.signal.throwIfAborted();
      this.#checkDeadline();
    } catch (error) {
      this.end('abandoned', error instanceof Denied ? error.code : typeName(error));
      throw error;
    }
    this.#timer = setTimeout(() => { this.#watch ??= this.#openWatch(); }, WATCHED_AFTER);
  }

  /** Milliseconds in which the action must begin; 0 when it is too late. */
  get remaining(): number {
    return this.#parts.deadline.remaining;
  }

  /** Ends the scope and reports the outcome, once, in the background. */
  end(outcome: Outcome, detail = ''): void {
    if (this.#state === 'ended') return;
    this.#state = 'ended';
    this.#unwatch();
    this.#parts.reporter.report(this.decision.decisionId, outcome, detail);
  }

  /** Ends the scope if it did not end: as `abandoned`, or as `failed` if the action has begun. */
  async [asyncDispose](): Promise<void> {
    if (this.#state === 'begun') this.end('failed', 'outcome unknown');
    else this.end('abandoned', 'not used');
  }

  #unwatch(): void {
    clearTimeout(this.#timer);
    this.#watch?.close();
    this.#parts.signal?.removeEventListener('abort', this.#abort);
  }

  #checkDeadline(): void {
    if (!this.#parts.deadline.isOver) return;
    throw this.#denied('late', 'the action did not begin before the permission expired; ask again');
  }

  async #before(name: string): Promise<void> {
    if (Object.hasOwn(BUILT_IN, name)) return BUILT_IN[name]!(this.#parts.log, this.decision);
    try {
      await this.#parts.obligations[name]?.before?.(this);
    } catch (error) {
      const message = `the obligation ${name} was not met`;
      throw new Denied('obligation_failed', message, { decision: this.decision, cause: error });
    }
  }

  /** Meets the obligations after the tool. The tool has run: its outcome is reported in any case. */
  async #after(result: unknown): Promise<void> {
    for (const name of this.decision.obligations) {
      try {
        await this.#parts.obligations[name]?.after?.(this, result);
      } catch (error) {
        this.end('executed', `the obligation ${name} was not met`);
        throw error;
      }
    }
  }

  #openWatch(): StopWatch {
    const stop = (condition: string) => {
      const started = this.#timer !== undefined;
      const effect = started ? '; the tool was asked to stop, and its effect is unknown' : '';
      const message = `the permission has ended: ${condition}${effect}`;
      const { decision } = this;
      this.#stop(new Denied('stopped', message, { decision, started }), condition);
    };
    this.#watch = watchPermission(this.#parts.runtime, this.decision.decisionId, stop);
    return this.#watch;
  }

  readonly #abort = () => this.#stop(this.#parts.signal?.reason, 'cancelled by the caller');

  #stop(reason: unknown, detail: string): void {
    this.#stopped.abort(reason);
    if (this.#timer !== undefined) this.end('abandoned', detail);
  }

  #whenStopped(): Promise<never> {
    return new Promise((_, reject) => {
      const fail = () => reject(this.signal.reason);
      if (this.signal.aborted) fail();
      this.signal.addEventListener('abort', fail, { once: true });
    });
  }

  #detailOf(error: unknown): string {
    const name = typeName(error);
    return this.#parts.reportMessages && error instanceof Error ? `${name}: ${error.message}` : name;
  }

  #denied(code: string, message: string): Denied {
    return new Denied(code, message, { decision: this.decision });
  }
}

const isGenerator = (value: unknown): boolean =>
  /^\[object (Async)?Generator\]$/.test(Object.prototype.toString.call(value));

/** Obligations that the library meets itself. */
export const BUILT_IN: Readonly<Record<string, (log: Logger, decision: EvaluateDecisionResponse) => void>> = {
  'audit.emit': (log, { decisionId }) => log.info(`permitted by ${decisionId}`),
  'reality.warn': (log, { decisionId }) => log.warn(`permitted by ${decisionId}, with a warning about reality`),
  'reality.overridden': (log, { decisionId }) => log.warn(`permitted by ${decisionId}, with an overridden check`),
};

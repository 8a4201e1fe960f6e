// Shared by the adapters: asks about a framework's tool call, and runs the tool with the permit.

import {
  Denied, Held, Unavailable, type Authority, type CallOptions, type GuardOptions, type Scope,
} from '../guard.js';

/** A tool call of a model. */
export interface ToolCall {
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

type CallArguments = Record<string, unknown>;

/** Options of every adapter. None of them can take the subject, delegation or purpose from a model. */
export interface ToolGuardOptions extends Pick<
  GuardOptions<CallArguments>, 'wait' | 'watch' | 'obligations' | 'redact' | 'shadow' | 'delegationId' | 'onBehalfOf'
> {
  /** The action of each tool, by the tool's name. By default `tool.<name>`. */
  readonly actions?: Readonly<Record<string, string>> | undefined;
  /** The purpose of all tools, or of each tool by its name. */
  readonly purpose?: string | Readonly<Record<string, string>> | undefined;
  /** Returns the id of the resource of a call. */
  readonly resourceId?: ((call: ToolCall) => string | undefined) | undefined;
  /** Returns facts for policies, such as `amount` and `currency`. All arguments are sent in any case. */
  readonly context?: ((call: ToolCall) => Readonly<Record<string, unknown>>) | undefined;
  /** Tools that run without a permit, also at the model's provider. */
  readonly unguarded?: readonly string[] | undefined;
}

export type ToolBody<T> = (args: CallArguments, scope: Scope) => T | Promise<T>;

/** A permitted call whose tool runs elsewhere. */
export interface OpenCall {
  readonly signal: AbortSignal;
  /** Fails when the permission ends before `finish`. */
  readonly stopped: Promise<never>;
  /** Whether the time is over in which the tool must begin. */
  isLate(): boolean;
  /** Ends the scope, with a problem if the tool failed or did not run. */
  finish(problem?: string): void;
}

export class ToolGuard {
  readonly unguarded: ReadonlySet<string>;
  readonly #authority: Authority;
  readonly #options: ToolGuardOptions;

  constructor(authority: Authority, options: ToolGuardOptions) {
    this.unguarded = new Set(options.unguarded);
    this.#authority = authority;
    this.#options = options;
  }

  /**
   * Runs a tool with a permit for exactly these arguments. The body gets a frozen copy of them, and
   * a signal that also aborts with the caller's.
   *
   * @throws {Denied | Held | Unavailable} The tool did not run, or its permission ended.
   */
  async run<T>(name: string, args: unknown, body: ToolBody<T>, options: CallOptions = {}): Promise<T> {
    const given = members(args);
    if (this.unguarded.has(name)) return body(given, { signal: options.signal ?? new AbortController().signal });
    const { actions = {}, purpose, resourceId, context } = this.#options;
    const { wait, watch, obligations, redact, shadow, delegationId, onBehalfOf } = this.#options;
    const call = (copy: CallArguments): ToolCall => ({ name, arguments: copy });
    let hasStarted = false;
    const guarded = this.#authority.guard<CallArguments, T>({
      action: own(actions, name) ?? `tool.${name}`,
      purpose: typeof purpose === 'string' ? purpose : own(purpose ?? {}, name),
      resourceId: resourceId && ((copy) => resourceId(call(copy))),
      context: context && ((copy) => context(call(copy))),
      wait, watch, obligations, redact, shadow, delegationId, onBehalfOf,
    }, (copy, scope) => {
      hasStarted = true;
      return body(copy, scope);
    });
    try {
      return await guarded(given, options);
    } catch (error) {
      const isFailure = hasStarted && !(error instanceof Denied && error.started);
      if (typeof error === 'object' && error !== null) {
        // An error of the tool may be the refusal of a call within it.
        if (isFailure || options.signal?.aborted) refusals.delete(error);
        else refusals.add(error);
      }
      throw error;
    }
  }

  /** Opens the scope of a call whose tool runs elsewhere. @throws {Denied | Held | Unavailable} */
  open(name: string, args: unknown, options: CallOptions = {}): Promise<OpenCall> {
    return new Promise((resolve, reject) => {
      this.run(name, args, (_copy, { signal, permit }) => new Promise<void>((done, fail) => {
        const stopped = new Promise<never>((_, stop) => {
          signal.addEventListener('abort', () => stop(signal.reason), { once: true });
        });
        stopped.catch(() => {});
        resolve({
          signal, stopped,
          isLate: () => permit?.remaining === 0,
          finish: (problem) => (problem ? fail(new Error(problem)) : done()),
        });
      }), options).catch(reject);
    });
  }

  /** @throws {TypeError} Some of these tools, which no adapter can guard, are not in `unguarded`. */
  requireUnguarded(names: Iterable<string>): void {
    const refused = [...new Set(names)].filter((name) => !this.unguarded.has(name));
    if (refused.length === 0) return;
    throw new TypeError(
      `tools without a guard: ${refused.join(', ')}. Remove them, `
      + 'or list them in `unguarded` to let them run without a permit',
    );
  }
}

const own = <T>(table: Readonly<Record<string, T>>, name: string): T | undefined => (
  Object.hasOwn(table, name) ? table[name] : undefined
);

const members = (args: unknown): CallArguments => (
  typeof args === 'object' && args !== null && !Array.isArray(args) ? args as CallArguments : { input: args }
);

const refusals = new WeakSet<object>();

/** Whether an error of `ToolGuard.run` means that its tool did not run, or was stopped. */
export const isRefusal = (error: unknown): boolean => (
  typeof error === 'object' && error !== null && refusals.has(error)
);

/** What a model reads instead of a tool's result. */
export function refusalText(error: unknown): string {
  if (error instanceof Denied) return `Denied (${error.code}): ${error.message}`;
  if (error instanceof Held) return `Held: ${error.message}. The tool did not run.`;
  if (error instanceof Unavailable) return `Denied (${error.code}): no decision was received. The tool did not run.`;
  return 'Denied: the permission could not be checked. The tool did not run.';
}

/** Whether two values have the same JSON, in any order of members. */
export function isSame(one: unknown, other: unknown): boolean {
  return canonical(one) === canonical(other);
}

const canonical = (value: unknown): string | undefined => JSON.stringify(value, (_name, member: unknown) => (
  typeof member === 'object' && member !== null && !Array.isArray(member)
    ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
    : member
));

// Guards a tool: a function that runs only with a permission for exactly its arguments.

import { canonicalize, type Json } from '../jcs.js';
import type { Authority, PermitOptions } from './authority.js';
import { Denied, Held, type HeldJson } from './failures.js';
import { typeName } from './log.js';
import type { Permit, Scope } from './permit.js';
import { CONTEXT_LEVELS, type Question } from './question.js';
import { serialize, snapshot } from './values.js';

/** A tool: its arguments as one object, and the scope in which it runs. */
export type Tool<A extends object, R> = (args: A, scope: Scope) => R | Promise<R>;

/** What may differ between two calls of a tool. */
export interface CallOptions {
  /** Ends the wait or the tool. */
  signal?: AbortSignal | undefined;
  /** The requester's own reason, shown to approvers. */
  justification?: string | undefined;
}

/** A guarded tool. */
export interface Guarded<A extends object, R> {
  /** @throws {Denied | Held | Unavailable} The tool did not run. */
  (args: A, call?: CallOptions): Promise<R>;
  /**
   * Continues with a held call, also in another process, with the same arguments and facts.
   *
   * @throws {Denied} `arguments_changed`: the question of this call differs from the held one.
   */
  resume(held: Held | HeldJson, args: A, call?: CallOptions): Promise<R>;
}

/** How a tool is guarded. The question has all arguments in `context.arguments`. */
export interface GuardOptions<A extends object>
  extends Omit<Question, 'context' | 'resourceId' | 'supportedObligations'>, Omit<PermitOptions, 'signal'> {
  /** Returns further facts: `amount` (text or an exact number), `currency`, `jurisdiction`, and others. */
  readonly context?: ((args: A) => Readonly<Record<string, unknown>>) | undefined;
  readonly resourceId?: string | ((args: A) => string | undefined) | undefined;
  /** Arguments that are replaced by their HMAC: names, or JSON pointers such as `/customer/iban`. */
  readonly redact?: readonly ((keyof A & string) | `/${string}`)[] | undefined;
  /**
   * Runs the tool whatever the answer, and logs refusals. For trying out policies only.
   * Refused with an API key of a production tenant unless `shadowInProduction` is set.
   */
  readonly shadow?: boolean | undefined;
}

/** @throws {TypeError} An option is invalid. */
export function guard<A extends object, R>(
  authority: Authority, options: GuardOptions<A>, tool: Tool<A, R>,
): Guarded<A, R> {
  const call = new GuardedTool(authority, options, tool);
  const run = options.shadow ? call.shadow : call.run;
  return Object.assign((args: A, given: CallOptions = {}) => run.call(call, args, given), {
    resume: (held: Held | HeldJson, args: A, given: CallOptions = {}) => call.resume(held, args, given),
  });
}

/** A snapshot of a call's arguments, its question, and the text of the arguments in it. */
interface Prepared<A> { args: A; question: Question; text: string }

class GuardedTool<A extends object, R> {
  readonly #authority: Authority;
  readonly #options: GuardOptions<A>;
  readonly #tool: Tool<A, R>;

  constructor(authority: Authority, options: GuardOptions<A>, tool: Tool<A, R>) {
    const { subject, redactKey, apiKey, shadowInProduction } = authority.options;
    if (!options.action) throw new TypeError('a guard needs an action');
    if (!options.subject && !subject) throw new TypeError('a guard needs a subject: AGENT_AUTHORITY_SUBJECT');
    if (options.redact?.length && !redactKey) {
      throw new TypeError('redact needs redactKey');
    }
    if (options.shadow) {
      const isSandbox = typeof apiKey === 'string' && apiKey.startsWith('svc_sandbox_');
      if (!isSandbox && !shadowInProduction) {
        throw new TypeError('shadow mode needs an API key of a sandbox tenant, or shadowInProduction');
      }
      authority.log.warn(`shadow mode: ${options.action} runs whatever the decision`);
    }
    this.#authority = authority;
    this.#options = options;
    this.#tool = tool;
  }

  async run(args: A, call: CallOptions): Promise<R> {
    const prepared = await this.#prepare(args, call);
    return this.#act(prepared, await this.#authority.permit(prepared.question, { ...this.#options, ...call }));
  }

  async resume(held: Held | HeldJson, args: A, call: CallOptions): Promise<R> {
    const prepared = await this.#prepare(args, call);
    const { question, digest } = held instanceof Held ? held.toJSON() : held;
    // The process that asked may have had other handlers.
    const supportedObligations = question?.['supported_obligations'] as readonly string[] | undefined;
    const own = await this.#authority.digest({ ...prepared.question, supportedObligations });
    if (own !== digest) throw new Denied('arguments_changed', 'the question of this call is not the held one');
    return this.#act(prepared, await this.#authority.resume(held, { ...this.#options, ...call }));
  }

  /** Runs the tool whatever the answer. */
  async shadow(args: A, call: CallOptions): Promise<R> {
    let permit: Permit | undefined;
    try {
      const { question } = await this.#prepare(args, call);
      permit = await this.#authority.permit(question, { obligations: this.#options.obligations });
    } catch (refusal) {
      const { code = typeName(refusal) } = refusal as { code?: string };
      const state = refusal instanceof Held ? 'held' : 'refused';
      this.#authority.log.warn(`shadow mode: ${this.#options.action} runs, but would be ${state}: ${code}`);
    }
    const signal = call.signal ?? new AbortController().signal;
    try {
      const result = await this.#tool(args, { signal, permit });
      permit?.end('executed', 'shadow mode');
      return result;
    } catch (error) {
      permit?.end('failed', `shadow mode: ${typeName(error)}`);
      throw error;
    }
  }

  #act({ args, text }: Prepared<A>, permit: Permit): Promise<R> {
    // A Date, bytes or a decimal in the arguments may have been changed in place.
    const isUnchanged = async () => canonicalize(await this.#serialize(args)) === text;
    return permit.run((scope) => this.#tool(args, scope), isUnchanged);
  }

  #serialize(args: A): Promise<Json> {
    const { redact } = this.#options;
    return serialize(args, redact && { names: redact, key: this.#authority.options.redactKey });
  }

  async #prepare(given: A, { justification }: CallOptions): Promise<Prepared<A>> {
    const { context, resourceId, redact, shadow, wait, watch, obligations, ...question } = this.#options;
    let args: A;
    let json: Json;
    try {
      // Before anything is awaited: a later change of the caller's object has no effect.
      args = snapshot(given);
      json = await this.#serialize(args);
    } catch (error) {
      const message = `the arguments of ${question.action}: ${(error as Error).message}`;
      throw new Denied('invalid_question', message, { cause: error });
    }
    try {
      const facts = snapshot(context?.(args) ?? {}, CONTEXT_LEVELS);
      if ('arguments' in facts) throw new TypeError('context.arguments are the arguments of the tool');
      const resource = typeof resourceId === 'function' ? resourceId(args) : resourceId;
      const asked = { ...question, justification: justification ?? question.justification, resourceId: resource };
      return { args, question: { ...asked, context: { ...facts, arguments: json } }, text: canonicalize(json) };
    } catch (error) {
      const message = `the mapping of ${question.action} failed: ${typeName(error)}`;
      throw new Denied('invalid_question', message, { cause: error });
    }
  }
}

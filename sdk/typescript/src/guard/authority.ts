// The library's main class: decides, guards tools, resumes held calls and verifies.

import type { Transport } from '@connectrpc/connect';
import { createClient, type AuthorityClient, type Credential } from '../client.js';
import { verifyEvidence } from '../evidence.js';
import type { EvaluateDecisionResponse } from '../generated/authority/runtime/v1/runtime_service_pb.js';
import { isObject, type JsonObject } from '../jcs.js';
import type { PublicKey } from '../keys.js';
import { toMilliseconds, type Duration } from '../time.js';
import { checked } from '../transport.js';
import type { Jwks } from '../verify-webhook.js';
import { Decider, type Asking } from './decider.js';
import { Denied, Held, type HeldJson } from './failures.js';
import { guard, type Guarded, type GuardOptions, type Tool } from './guard.js';
import { Keyring } from './keyring.js';
import { consoleLogger, type Logger } from './log.js';
import { Permit, type Obligations } from './permit.js';
import { digestQuestion, normalize, tenantOf, type Question } from './question.js';
import { Reporter } from './reporter.js';
import { verifyPermit, type PermitProof, type VerifiedRecord } from './verify-permit.js';

/** Milliseconds for a decision. */
const TIMEOUT = 2000;

export interface AuthorityOptions {
  /** The service's address: `https://authority.example`. */
  baseUrl: string;
  /** An API key with the scopes `runtime:write` and `runtime:read`, bound to the agent. Not in a page. */
  apiKey: Credential;
  /** The agent: `svc:agent:acme:invoice-bot`. A question may name another one. */
  subject?: string | undefined;
  /**
   * The service's public keys: a JWK set, a file, or an https address. By default they are fetched
   * from the service.
   */
  jwks?: Jwks | string | undefined;
  /** The time for a decision, with all its attempts: `2s` by default, in which the service itself answers. */
  timeout?: Duration | undefined;
  /** Whether the signed record of each permit is verified; true by default. */
  verify?: boolean | undefined;
  /** The key that redacted arguments are replaced with. Use the same in every process of the agent. */
  redactKey?: string | Uint8Array | undefined;
  /** Whether reports of failures have the error's message. By default they have only its type. */
  reportMessages?: boolean | undefined;
  /** Allows shadow mode with an API key of a production tenant. */
  shadowInProduction?: boolean | undefined;
  /** By default gRPC-Web over `fetch`; in Node also a transport of `@connectrpc/connect-node`. */
  transport?: Transport | undefined;
  /** By default warnings and errors go to the console. */
  logger?: Logger | undefined;
}

export interface PermitOptions {
  /** How long to wait for people if the action is held: `10m`. By default, `Held` is thrown at once. */
  wait?: Duration | undefined;
  /** Whether stop conditions are watched before the action begins, instead of after a second. */
  watch?: boolean | undefined;
  /** Handlers for obligations, by name. A permission with another obligation is denied. */
  obligations?: Obligations | undefined;
  /** Ends the wait or, later, the action. The call then fails with the signal's reason. */
  signal?: AbortSignal | undefined;
}

/** Guards the tools of an agent: each runs only with a permission for exactly its arguments. */
export class Authority {
  readonly client: AuthorityClient;
  /** The options, for adapters. Not enumerable: logs of this object must not have the API key. */
  declare readonly options: Readonly<AuthorityOptions>;
  readonly log: Logger;
  readonly #keys: Keyring;
  readonly #reporter: Reporter;
  readonly #decider: Decider;

  /** @throws {TypeError} An option is invalid, or an API key is used in a page. */
  constructor(options: AuthorityOptions) {
    const { baseUrl, apiKey, transport, jwks, logger } = options;
    if (!apiKey) throw new TypeError('apiKey is missing');
    if (typeof apiKey === 'string') checked(apiKey);
    Object.defineProperty(this, 'options', { value: Object.freeze({ ...options }), enumerable: false });
    this.log = logger ?? consoleLogger;
    this.client = createClient({ baseUrl, credential: apiKey, transport });
    this.#reporter = new Reporter(this.client.decisions, this.log);
    this.#keys = new Keyring(jwks ?? new URL('/.well-known/jwks.json', baseUrl).href);
    const verifies = options.verify !== false;
    const timeout = toMilliseconds(options.timeout ?? TIMEOUT);
    if (timeout === 0) throw new TypeError('timeout must be more than 0');
    const { client, log } = this;
    this.#decider = new Decider({ client, keys: this.#keys, reporter: this.#reporter, log, verifies, timeout });
    if (!verifies) this.log.warn('permits are not verified: verify is false');
    else this.#keys.ready().catch((error: Error) => this.log.warn(`the keys can't be read: ${error.message}`));
  }

  /**
   * Uses the environment: AGENT_AUTHORITY_URL, AGENT_AUTHORITY_API_KEY, and optionally
   * AGENT_AUTHORITY_SUBJECT and AGENT_AUTHORITY_JWKS (a file or an https address).
   *
   * @throws {TypeError} A variable is missing or invalid.
   */
  static fromEnv(options: Partial<AuthorityOptions> = {}): Authority {
    const { process } = globalThis as { process?: { env: Record<string, string | undefined> } };
    const read = (name: string) => process?.env[`AGENT_AUTHORITY_${name}`] || undefined;
    const [baseUrl, apiKey] = [options.baseUrl ?? read('URL'), options.apiKey ?? read('API_KEY')];
    if (!baseUrl) throw new TypeError('AGENT_AUTHORITY_URL is not set');
    if (!apiKey) throw new TypeError('AGENT_AUTHORITY_API_KEY is not set');
    const [subject, jwks] = [options.subject ?? read('SUBJECT'), options.jwks ?? read('JWKS')];
    return new Authority({ ...options, baseUrl, apiKey, subject, jwks });
  }

  /**
   * Returns the decision that permits the action. The caller begins before `validUntil`, meets the
   * obligations that it names in `supportedObligations`, and reports the outcome. `permit` does all of it.
   *
   * @throws {Denied} The action is not permitted.
   * @throws {Held} The action waits for people.
   * @throws {Unavailable} No decision was received.
   */
  async decide(question: Question): Promise<EvaluateDecisionResponse> {
    const supported = question.supportedObligations ?? [];
    return (await this.#decider.decide({ question: await this.#complete(question), supported })).answer;
  }

  /**
   * Returns a permit, after people have approved the action if it is held.
   *
   * @throws {Denied | Held | Unavailable} As `decide`; `Held` when the wait has ended.
   */
  async permit(question: Question, options: PermitOptions = {}): Promise<Permit> {
    const supportedObligations = Object.keys(options.obligations ?? {});
    const asked = await this.#complete({ ...question, supportedObligations });
    return this.#permit({ question: asked, supported: supportedObligations }, options);
  }

  /**
   * Continues with a held question: the `Held` error, or its JSON from another process. Of several
   * callers with the same approval, at most one gets a permit.
   *
   * @throws {Denied | Held | Unavailable} As `permit`.
   */
  async resume(held: Held | HeldJson, options: PermitOptions = {}): Promise<Permit> {
    const { approval_id: approvalId, question, digest } = held instanceof Held ? held.toJSON() : held;
    if (!isObject(question) || await digestQuestion(question) !== digest) {
      throw new Denied('invalid_question', 'this is not a held question, or it was changed');
    }
    if (approvalId) await this.#decider.checkApproval(approvalId, question, options.signal);
    const supported = Object.keys(options.obligations ?? {});
    return this.#permit({ question, supported, approvalId: approvalId ?? undefined }, options);
  }

  /** Returns the digest that people sign if `permit` is held for this question: `sha256:…`. */
  async digest(question: Question): Promise<string> {
    return digestQuestion(await this.#complete(question));
  }

  /** Guards a tool: the returned function runs it only with a permission. */
  guard<A extends object, R>(options: GuardOptions<A>, tool: Tool<A, R>): Guarded<A, R> {
    return guard(this, options, tool);
  }

  /** Verifies an evidence file with the keys of this authority; see `verifyEvidence`. */
  async verify(evidence: string | Uint8Array): Promise<string>;
  /** Verifies another party's permit for exactly this question; see `verifyPermit`. */
  async verify(permit: PermitProof, question: Question): Promise<VerifiedRecord>;
  async verify(given: string | Uint8Array | PermitProof, question?: Question): Promise<string | VerifiedRecord> {
    const jwks = { keys: [...(await this.#keys.ready()).values()].map(toJwk) };
    if (typeof given === 'string' || given instanceof Uint8Array) return verifyEvidence(given, { jwks });
    const subject = question?.subject ?? this.options.subject;
    if (!question || !subject) throw new TypeError('a permit is verified for a question with a subject');
    return verifyPermit(given, { jwks, tenantId: tenantOf(subject), question });
  }

  /** Waits until every report is sent, or given up after 30 seconds. Call it before the process exits. */
  flush(): Promise<void> {
    return this.#reporter.flush();
  }

  /** Returns the normal form of an own question. */
  async #complete(question: Question): Promise<JsonObject> {
    const { subject } = this.options;
    const asked = await normalize({ supportedObligations: [], ...question, subject: question.subject ?? subject });
    if (typeof asked['subject'] === 'string') return asked;
    throw new Denied('invalid_question', 'a question needs a subject: AGENT_AUTHORITY_SUBJECT');
  }

  async #permit(asking: Asking, { obligations = {}, watch = false, wait = 0, signal }: PermitOptions): Promise<Permit> {
    const { answer, deadline } = await this.#decider.decideWaiting(asking, toMilliseconds(wait), signal);
    return new Permit({
      decision: answer, question: asking.question, proof: proofOf(answer), deadline, watch, obligations, signal,
      runtime: this.client.runtime, reporter: this.#reporter, log: this.log,
      reportMessages: this.options.reportMessages ?? false,
    });
  }
}

const toJwk = ({ kid, x, revokedAt }: PublicKey) => ({
  kty: 'OKP', crv: 'Ed25519', kid, x, ...(revokedAt !== undefined && { revoked_at: revokedAt }),
});

function proofOf({ record, contextSalt, evidencePack }: EvaluateDecisionResponse): PermitProof | undefined {
  if (record === undefined || contextSalt === undefined || !evidencePack?.signature) return undefined;
  const { kid, value } = evidencePack.signature;
  return { record, signature: { kid, value }, context_salt: contextSalt };
}

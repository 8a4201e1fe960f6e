// The service's keys that signed records are checked with.

import { keysOf, type PublicKey } from '../keys.js';
import { Deadline, Timer } from '../time.js';
import type { Jwks } from '../verify-webhook.js';

/** Milliseconds for which keys are used after they were read, at most. A revoked key is not trusted longer. */
const LONGEST = 600_000;
/** The same, at least, if `Cache-Control` has a shorter time; and milliseconds between reads because of an unknown kid. */
const SHORTEST = 60_000;
const TIMEOUT = 10_000;

/** A document, and for how many milliseconds its keys are used. */
interface Read {
  readonly jwks: unknown;
  readonly age: number;
}

/** Keys that are given, or read from a file or an address: again when they are too old, or when a kid is unknown. */
export class Keyring {
  readonly #read: () => Promise<Read>;
  #keys: Map<string, PublicKey> | undefined;
  #end = new Deadline(0);
  #pause = new Deadline(0);
  #reading: Promise<Map<string, PublicKey>> | undefined;

  /**
   * @param source A JWK set, a file, or an https address. http is accepted for this machine only.
   * @throws {TypeError} The address is not secure.
   */
  constructor(source: Jwks | string) {
    this.#read = reader(source);
  }

  /** Returns the keys, and reads them if they are too old. Fails if they can't be read; the next call tries again. */
  async ready(): Promise<Map<string, PublicKey>> {
    return this.#keys && !this.#end.isOver ? this.#keys : this.#again();
  }

  /** Returns a key. Reads the keys again if it is unknown, at most once a minute. */
  async find(kid: string): Promise<PublicKey | undefined> {
    const keys = await this.ready();
    if (keys.has(kid) || !this.#pause.isOver) return keys.get(kid);
    // The present keys stay if they can't be read again.
    return (await this.#again().catch(() => keys)).get(kid);
  }

  /** Reads the keys, once for all calls that wait for them. */
  #again(): Promise<Map<string, PublicKey>> {
    this.#reading ??= this.#load().finally(() => { this.#reading = undefined; });
    return this.#reading;
  }

  async #load(): Promise<Map<string, PublicKey>> {
    const timer = new Timer();
    this.#pause = new Deadline(SHORTEST, timer);
    const { jwks, age } = await this.#read();
    this.#keys = keysOf(jwks);
    this.#end = new Deadline(age, timer);
    return this.#keys;
  }
}

function reader(source: Jwks | string): () => Promise<Read> {
  if (typeof source !== 'string') return async () => ({ jwks: source, age: Infinity });
  if (!/^https?:/.test(source)) return async () => ({ jwks: await readFile(source), age: LONGEST });
  const { protocol, hostname } = new URL(source);
  if (protocol !== 'https:' && !/^(localhost|127\.[0-9.]+|\[::1\])$/.test(hostname)) {
    throw new TypeError(`the keys must be fetched over https, not from ${source}; or pass a file as jwks`);
  }
  return async () => {
    const response = await fetch(source, { signal: AbortSignal.timeout(TIMEOUT), redirect: 'error' });
    if (!response.ok) throw new Error(`${source} returned ${response.status}`);
    return { jwks: await response.json(), age: ageOf(response.headers.get('cache-control') ?? '') };
  };
}

function ageOf(cacheControl: string): number {
  const seconds = /(?:^|[\s,])max-age=([0-9]{1,9})/.exec(cacheControl)?.[1];
  return seconds === undefined ? LONGEST : Math.min(Math.max(Number(seconds) * 1000, SHORTEST), LONGEST);
}

async function readFile(path: string): Promise<unknown> {
  // A bundler must not include this module in pages and workers.
  const name = 'node:fs/promises';
  const files = await import(name) as { readFile(path: string, encoding: 'utf8'): Promise<string> };
  return JSON.parse(await files.readFile(path, 'utf8'));
}

// The service's keys that signed records are checked with.

import { keysOf, type PublicKey } from '../keys.js';
import type { Jwks } from '../verify-webhook.js';

/** Milliseconds between two attempts to read the keys again. */
const PAUSE = 60_000;
const TIMEOUT = 10_000;

/** Keys that are given, or read from a file or an address. They are read again when a kid is unknown. */
export class Keyring {
  readonly #read: () => Promise<unknown>;
  #keys: Promise<Map<string, PublicKey>> | undefined;
  #readAt = -Infinity;

  /**
   * @param source A JWK set, a file, or an https address. http is accepted for this machine only.
   * @throws {TypeError} The address is not secure.
   */
  constructor(source: Jwks | string) {
    this.#read = reader(source);
  }

  /** Reads the keys, once. Fails if they can't be read; the next call tries again. */
  ready(): Promise<Map<string, PublicKey>> {
    this.#keys ??= this.#load();
    return this.#keys;
  }

  #load(): Promise<Map<string, PublicKey>> {
    this.#readAt = performance.now();
    const keys = this.#read().then(keysOf);
    keys.catch(() => { if (this.#keys === keys) this.#keys = undefined; });
    return keys;
  }

  /** Returns a key. Reads the keys again if it is unknown, at most once a minute. */
  async find(kid: string): Promise<PublicKey | undefined> {
    const keys = await this.ready();
    if (keys.has(kid) || performance.now() - this.#readAt < PAUSE) return keys.get(kid);
    // The present keys stay if they can't be read again.
    const newer = await this.#load().catch(() => keys);
    this.#keys = Promise.resolve(newer);
    return newer.get(kid);
  }
}

function reader(source: Jwks | string): () => Promise<unknown> {
  if (typeof source !== 'string') return async () => source;
  if (!/^https?:/.test(source)) return () => readFile(source);
  const { protocol, hostname } = new URL(source);
  if (protocol !== 'https:' && !/^(localhost|127\.[0-9.]+|\[::1\])$/.test(hostname)) {
    throw new TypeError(`the keys must be fetched over https, not from ${source}; or pass a file as jwks`);
  }
  return async () => {
    const response = await fetch(source, { signal: AbortSignal.timeout(TIMEOUT), redirect: 'error' });
    if (!response.ok) throw new Error(`${source} returned ${response.status}`);
    return response.json();
  };
}

async function readFile(path: string): Promise<unknown> {
  // A bundler must not include this module in pages and workers.
  const name = 'node:fs/promises';
  const files = await import(name) as { readFile(path: string, encoding: 'utf8'): Promise<string> };
  return JSON.parse(await files.readFile(path, 'utf8'));
}

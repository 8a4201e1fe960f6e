// Public keys of the service, from its JWK set.

import { fromBase64Url, hex, importKey, sha256, utf8 } from './bytes.js';
import { isObject } from './jcs.js';
import type { Jwks } from './verify-webhook.js';

/** An Ed25519 key of a JWK set. */
export interface PublicKey {
  readonly kid: string;
  /** The key in base64url. */
  readonly x: string;
  /** When the key was revoked, as RFC 3339. In evidence files, signatures that it made before stay valid. */
  readonly revokedAt: string | undefined;
}

/** Returns the SHA-256 thumbprint of an Ed25519 key (RFC 7638). */
export const thumbprint = (x: string) => sha256(utf8(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`));

/**
 * Returns the Ed25519 keys of a JWK set by their kid, without other keys.
 *
 * @throws {TypeError} It is not a JWK set, or two keys have the same kid.
 */
export function keysOf(jwks: unknown): Map<string, PublicKey> {
  if (!isObject(jwks) || !Array.isArray((jwks as unknown as Jwks).keys) || jwks['kind'] != null) {
    throw new TypeError('this is not a JWK set');
  }
  const keys = new Map<string, PublicKey>();
  for (const jwk of (jwks as unknown as Jwks).keys as readonly Record<string, unknown>[]) {
    const { kid, x, kty, crv, revoked_at: revokedAt } = jwk;
    if (crv !== 'Ed25519') continue;
    if (kty !== 'OKP' || typeof kid !== 'string' || typeof x !== 'string' || fromBase64Url(x)?.length !== 32) {
      throw new TypeError('a key of the JWK set is invalid');
    }
    if (keys.has(kid)) throw new TypeError(`two keys of the JWK set have the kid ${kid}`);
    keys.set(kid, { kid, x, revokedAt: revokedAt == null ? undefined : String(revokedAt) });
  }
  return keys;
}

/** The keys as WebCrypto has them, and their thumbprints: made once, not for each signature. */
const imported = new WeakMap<PublicKey, Promise<CryptoKey>>();
const thumbprints = new WeakMap<PublicKey, Promise<string>>();

function once<T>(made: WeakMap<PublicKey, Promise<T>>, key: PublicKey, make: () => Promise<T>): Promise<T> {
  const known = made.get(key) ?? make();
  made.set(key, known);
  return known;
}

/** Whether the kid has this purpose and the key's thumbprint: `svc-evidence-2026-3a35637c`. */
export async function isKeyFor(purpose: string, key: PublicKey): Promise<boolean> {
  const named = /^svc-([a-z]+)-[0-9]{4}-([0-9a-f]{8})$/.exec(key.kid);
  if (named?.[1] !== purpose) return false;
  const print = await once(thumbprints, key, async () => hex(await thumbprint(key.x)));
  return print.slice(0, 8) === named[2];
}

/** Whether the key made this signature over the text. */
export async function hasSigned(
  key: PublicKey, signature: Uint8Array<ArrayBuffer> | null, text: string,
): Promise<boolean> {
  if (signature?.length !== 64) return false;
  try {
    const publicKey = await once(imported, key, () => importKey(fromBase64Url(key.x)!));
    return await crypto.subtle.verify('Ed25519', publicKey, signature, utf8(text));
  } catch {
    return false;
  }
}

// Bytes, their encodings and SHA-256, with WebCrypto alone.

export const utf8 = (text: string) => new TextEncoder().encode(text) as Uint8Array<ArrayBuffer>;

export const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

export async function sha256(...parts: readonly Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', concat(...parts)));
}

/** Returns a digest in the service's form: `sha256:` and 64 lower-case hex digits. */
export async function digestText(...parts: readonly Uint8Array[]): Promise<string> {
  return `sha256:${hex(await sha256(...parts))}`;
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export function equal(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}

/** Decodes base64 with padding; null unless the text is the only encoding of its bytes. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.length % 4) return null;
  const letters = atob(text);
  return btoa(letters) === text ? Uint8Array.from(letters, (letter) => letter.charCodeAt(0)) : null;
}

/** Decodes base64url without padding; null unless the text is the only encoding of its bytes. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | null {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) return null;
  const plain = text.replaceAll('-', '+').replaceAll('_', '/');
  return fromBase64(plain.padEnd(Math.ceil(plain.length / 4) * 4, '='));
}

/** Imports an Ed25519 public key of 32 bytes. */
export function importKey(key: Uint8Array<ArrayBuffer>): Promise<CryptoKey> {
  return crypto.subtle.importKey('raw', key, { name: 'Ed25519' }, false, ['verify']);
}

/** Whether the public key made this Ed25519 signature over the bytes (RFC 8032). */
export async function isSignedBy(
  key: Uint8Array<ArrayBuffer>, signature: Uint8Array<ArrayBuffer>, signed: Uint8Array<ArrayBuffer>,
): Promise<boolean> {
  try {
    return await crypto.subtle.verify('Ed25519', await importKey(key), signature, signed);
  } catch {
    return false;
  }
}

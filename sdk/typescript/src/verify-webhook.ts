// Verifies that a webhook delivery is genuine and addressed to this receiver. It uses only
// WebCrypto and runs in Node, Deno, Bun and workers.

import { concat, fromBase64, fromBase64Url, hex, isSignedBy, sha256, utf8 } from './bytes.js';

/** How a delivery is signed, as in the endpoint's `signing_suites`. */
export type Suite = 'rfc9421' | 'jwt' | 'standard-webhooks/v1';

/** A JSON Web Key Set (RFC 7517), as in `<service>/.well-known/jwks.json`. */
export interface Jwks { keys: readonly object[] }

/** The headers of a request: of `fetch`, of Node's `http`, or as pairs. */
export type WebhookHeaders =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /**
   * For the suites `rfc9421` and `jwt`. Fetch it again when a key is unknown (`unknown_key`), and
   * drop keys that were removed from it.
   */
  jwks?: Jwks | null | undefined;
  /**
   * `whsec_…`, for the suite `standard-webhooks/v1`. During a rotation, the old and the new secret.
   */
  secrets?: readonly string[] | null | undefined;
  /** The suites to accept, the preferred one first. Default: the suites that have keys. */
  accept?: readonly Suite[] | null | undefined;
  /** The endpoint's URL as the service shows it. */
  url: string;
  /**
   * The tenant of the expected events. Other tenants of the same service can also send to any URL.
   */
  tenant_id: string;
  /**
   * The accepted clock difference and delay of a delivery, in seconds; 300 by default. Signatures
   * of the suites `rfc9421` and `jwt` also expire after 300 seconds.
   */
  tolerance?: number | null | undefined;
  /** Seconds since 1970; by default the time of the machine. */
  now?: number | undefined;
}

/** An event's envelope. Fields without a value are absent. */
export interface WebhookEvent {
  event_id: string;
  event_type: string;
  event_version: number;
  occurred_at: string;
  tenant_id: string;
  /** Absent in test deliveries. */
  sequence?: number;
  subject_ref: string;
  actor_entity_id?: string;
  principal_entity_id?: string;
  reason_code?: string;
  correlation_id: string;
  causation_id?: string;
  data: Record<string, unknown>;
  evidence_refs: string[];
}

/**
 * `configuration` is a mistake of the receiver itself. For every other code, do not act on the
 * delivery.
 */
export type WebhookErrorCode =
  | 'configuration' | 'no_signature' | 'malformed' | 'unknown_key' | 'signature' | 'time' | 'digest'
  | 'url' | 'envelope' | 'event_id' | 'tenant_id';

const MESSAGES: Record<Exclude<WebhookErrorCode, 'configuration'>, string> = {
  no_signature: 'no accepted suite has signed the delivery',
  malformed: 'a header of the signature is absent, repeated or unreadable',
  unknown_key: 'the key is not a webhook key of the JWKS; fetch the JWKS again',
  signature: 'the signature does not match the request',
  time: 'the signature is too old, from the future, or has expired',
  digest: 'the body differs from the signed body',
  url: "the delivery is for another URL: url must be the endpoint's URL exactly as the service shows it "
    + '(scheme, host, final slash)',
  envelope: 'the body is not an event',
  event_id: 'the signature is for another event',
  tenant_id: 'the event belongs to another tenant',
};

/** The message for a signature that covers the URL and the content type. */
const NOT_THIS_REQUEST = "the signature does not match the request: url must be the endpoint's URL exactly as the "
  + 'service shows it (scheme, host, final slash), and content-type as it was sent';

/** The reason for rejecting a delivery. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
  readonly code: WebhookErrorCode;

  constructor(code: 'configuration' | 'signature', message: string);
  constructor(code: Exclude<WebhookErrorCode, 'configuration'>);
  constructor(code: WebhookErrorCode, message?: string) {
    super(message ?? MESSAGES[code as keyof typeof MESSAGES]);
    this.code = code;
  }
}

/** Suites with published keys come first: with a leaked secret, anyone could sign. */
const SUITES: Record<Suite, { header: string; verify: Verify }> = {
  rfc9421: { header: 'signature-input', verify: messageSignature },
  jwt: { header: 'webhook-jwt', verify: token },
  'standard-webhooks/v1': { header: 'webhook-signature', verify: standardWebhooks },
};

interface Delivery {
  body: Uint8Array<ArrayBuffer>;
  headers: Map<string, string[]>;
  options: VerifyOptions;
  now: number;
}

/** Verifies the signature and returns the id of the signed event. */
type Verify = (delivery: Delivery) => Promise<string>;

/**
 * Verifies a delivery and returns its event.
 *
 * Only the first suite of `accept` that signed the delivery is verified; other suites are not
 * tried. A delivery can be repeated: store the `event_id`s that you have handled.
 *
 * @param envelope The request's raw body, before any parsing.
 * @throws {WebhookError} The delivery is rejected. For code `configuration`, respond with 5xx, and
 * the delivery is repeated. Respond with 4xx for any other code.
 */
export async function verifyWebhook(
  envelope: Uint8Array | string, headers: WebhookHeaders, options: VerifyOptions,
): Promise<WebhookEvent> {
  const accepted = acceptedSuites(options);
  const body = typeof envelope === 'string' ? utf8(envelope) : new Uint8Array(envelope);
  const now = options.now ?? Math.floor(Date.now() / 1000);
  const delivery = { body, headers: byName(headers), options, now };
  const suite = accepted.find((name) => delivery.headers.has(SUITES[name].header));
  if (!suite) throw new WebhookError('no_signature');
  const eventId = await SUITES[suite].verify(delivery);
  const event = object(body);
  if (!event) throw new WebhookError('envelope');
  if (event.event_id !== eventId) throw new WebhookError('event_id');
  if (event.tenant_id !== options.tenant_id) throw new WebhookError('tenant_id');
  return event as unknown as WebhookEvent;
}

function acceptedSuites({ jwks, secrets, accept, url, tenant_id, tolerance }: VerifyOptions): Suite[] {
  const wrong = (why: string) => new WebhookError('configuration', why);
  if (!url || !tenant_id) throw wrong('url and tenant_id are required');
  if (tolerance != null && !(tolerance >= 0)) throw wrong('tolerance must be a number of seconds, 0 or more');
  const all = Object.keys(SUITES) as Suite[];
  if (accept?.some((suite) => !all.includes(suite))) throw wrong(`accept may only contain ${all.join(', ')}`);
  const hasKeys = (suite: Suite) => (suite === 'standard-webhooks/v1' ? !!secrets?.length : !!jwks);
  if (accept && !accept.every(hasKeys)) {
    throw wrong('accept names a suite without keys: rfc9421 and jwt need jwks, standard-webhooks/v1 needs secrets');
  }
  const accepted = accept?.length ? [...accept] : all.filter(hasKeys);
  if (!accepted.length) throw wrong('give jwks, secrets, or both');
  return accepted;
}

// standard-webhooks/v1

async function standardWebhooks({ body, headers, options, now }: Delivery): Promise<string> {
  const id = one(headers, 'webhook-id');
  const timestamp = one(headers, 'webhook-timestamp');
  const made = seconds(timestamp);
  const signed = concat(utf8(`${id}.${timestamp}.`), body);
  // Versions other than v1 come from other services.
  const codes = one(headers, 'webhook-signature').split(' ')
    .filter((part) => part.startsWith('v1,'))
    .map((part) => base64(part.slice(3)));
  let fits = false;
  for (const secret of options.secrets ?? []) {
    const bytes = secret.startsWith('whsec_') ? fromBase64(secret.slice(6)) : null;
    if (bytes?.length !== 32) {
      throw new WebhookError('configuration', 'a secret is whsec_ and base64 of 32 bytes');
    }
    const key = await crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify']);
    for (const code of codes) fits = await crypto.subtle.verify('HMAC', key, code, signed) || fits;
  }
  if (!fits) throw new WebhookError('signature');
  checkTime(made, options, now);
  return id;
}

// rfc9421

const PARAMETERS = new RegExp(
  '^\\("@method" "@target-uri" "content-digest" "content-type" "webhook-id" "webhook-timestamp"\\)'
  + ';created=([0-9]{1,15});expires=([0-9]{1,15});keyid="([^"]*)";alg="ed25519";tag="svc-webhook-v1"$',
);

async function messageSignature({ body, headers, options, now }: Delivery): Promise<string> {
  const input = member(one(headers, 'signature-input'));
  // The service writes the parameters in one form only.
  const [, created, expires, kid] = PARAMETERS.exec(input) ?? [];
  const [, encoded] = /^:(.*):$/.exec(member(one(headers, 'signature'))) ?? [];
  if (created === undefined || expires === undefined || kid === undefined || encoded === undefined) {
    throw new WebhookError('malformed');
  }
  const signature = base64(encoded);
  const id = one(headers, 'webhook-id');
  const contentDigest = one(headers, 'content-digest');
  const base = [
    '"@method": POST',
    `"@target-uri": ${options.url}`,
    `"content-digest": ${contentDigest}`,
    `"content-type": ${one(headers, 'content-type')}`,
    `"webhook-id": ${id}`,
    `"webhook-timestamp": ${one(headers, 'webhook-timestamp')}`,
    `"@signature-params": ${input}`,
  ].join('\n');
  await checkSignature(options.jwks, kid, utf8(base), signature, NOT_THIS_REQUEST);
  checkTime(Number(created), options, now);
  if (now > Number(expires)) throw new WebhookError('time');
  if (contentDigest !== `sha-256=:${btoa(binary(await sha256(body)))}:`) throw new WebhookError('digest');
  return id;
}

/** Returns the service's only member of a dictionary (RFC 9651, 3.2). */
function member(dictionary: string): string {
  const members: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at <= dictionary.length; at += 1) {
    if (dictionary[at] === '"') quoted = !quoted;
    if (at === dictionary.length || (dictionary[at] === ',' && !quoted)) {
      members.push(trimmed(dictionary.slice(start, at)));
      start = at + 1;
    }
  }
  const ours = members.filter((text) => text.startsWith('svc='));
  if (ours.length !== 1) throw new WebhookError('malformed');
  return ours[0]!.slice(4);
}

// jwt

async function token({ body, headers, options, now }: Delivery): Promise<string> {
  const parts = one(headers, 'webhook-jwt').split('.');
  if (parts.length !== 3) throw new WebhookError('malformed');
  const [header, claims, signature] = parts.map(base64url);
  const { alg, typ, kid, crit } = object(header!) ?? {};
  const { iat, exp, aud, jti, body_sha256: digest } = object(claims!) ?? {};
  const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
  const fits = alg === 'EdDSA' && typ === 'svc-webhook+jwt' && crit === undefined;
  if (!fits || !isText(kid) || !isTime(iat) || !isTime(exp) || !isText(aud) || !isText(jti) || !isText(digest)) {
    throw new WebhookError('malformed');
  }
  await checkSignature(options.jwks, kid, utf8(`${parts[0]}.${parts[1]}`), signature!);
  checkTime(iat, options, now);
  if (now > exp) throw new WebhookError('time');
  if (digest !== hex(await sha256(body))) throw new WebhookError('digest');
  if (aud !== options.url) throw new WebhookError('url');
  return jti;
}

// Shared by the suites

/** Checks that a webhook key of the JWKS signed these bytes (Ed25519, RFC 8032). */
async function checkSignature(
  jwks: Jwks | null | undefined, kid: string, signed: Uint8Array<ArrayBuffer>, signature: Uint8Array<ArrayBuffer>,
  message = MESSAGES.signature,
): Promise<void> {
  const named = (jwks?.keys ?? []).filter((key) => (key as JsonWebKey & { kid?: string }).kid === kid);
  const jwk = named[0] as JsonWebKey | undefined;
  const fits = kid.startsWith('svc-webhook-') && named.length === 1 && jwk
    && jwk.kty === 'OKP' && jwk.crv === 'Ed25519' && isText(jwk.x)
    && (jwk.alg === undefined || jwk.alg === 'EdDSA') && (jwk.use === undefined || jwk.use === 'sig');
  const bytes = fits ? fromBase64Url(jwk.x!) : null;
  if (bytes?.length !== 32) throw new WebhookError('unknown_key');
  if (!await isSignedBy(bytes, signature, signed)) throw new WebhookError('signature', message);
}

function checkTime(made: number, options: VerifyOptions, now: number): void {
  if (Math.abs(made - now) > (options.tolerance ?? 300)) throw new WebhookError('time');
}

function byName(headers: WebhookHeaders): Map<string, string[]> {
  const pairs = Symbol.iterator in headers ? headers as Iterable<readonly [string, string]> : Object.entries(headers);
  const found = new Map<string, string[]>();
  for (const [name, value] of pairs) {
    if (value === undefined) continue;
    const values = Array.isArray(value) ? value as string[] : [value as string];
    found.set(name.toLowerCase(), [...found.get(name.toLowerCase()) ?? [], ...values]);
  }
  return found;
}

/** Returns the value of a header that occurs exactly once. */
function one(headers: Map<string, string[]>, name: string): string {
  const values = headers.get(name);
  if (values?.length !== 1) throw new WebhookError('malformed');
  return trimmed(values[0]!);
}

const trimmed = (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, '');

function seconds(text: string): number {
  if (!/^[0-9]{1,15}$/.test(text)) throw new WebhookError('malformed');
  return Number(text);
}

const isText = (value: unknown): value is string => typeof value === 'string';
const binary = (bytes: Uint8Array) => String.fromCharCode(...bytes);

/** Returns the members of a JSON object; null if the bytes are not one. */
function object(bytes: Uint8Array): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value as Record<string, unknown> : null;
  } catch {
    return null;
  }
}

function base64(text: string): Uint8Array<ArrayBuffer> {
  const bytes = fromBase64(text);
  if (!bytes) throw new WebhookError('malformed');
  return bytes;
}

function base64url(text: string): Uint8Array<ArrayBuffer> {
  const bytes = fromBase64Url(text);
  if (!bytes) throw new WebhookError('malformed');
  return bytes;
}

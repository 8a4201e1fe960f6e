// Arguments of tools and facts of requests as JSON: exact amounts, times, digests of bytes.

import { hex, sha256, utf8 } from '../bytes.js';
import { canonicalize, type Json, type JsonObject } from '../jcs.js';

/** Levels of objects and arrays in arguments. The context of a request, which has them, may have 32. */
const DEEPEST = 31;

/** An instance of decimal.js, big.js or bignumber.js. */
interface Decimal { toFixed(): string; constructor: new (text: string) => object }

/** A plain object with such functions is no decimal, and neither is a `Number`. */
const isDecimal = (value: object): value is Decimal => {
  const prototype = Object.getPrototypeOf(value) as Record<string, unknown> | null;
  const isOfClass = prototype !== null && !(value instanceof Number);
  return isOfClass && ['toFixed', 'plus', 'times'].every((name) => typeof prototype[name] === 'function');
};
const isBytes = (value: object): value is ArrayBufferView | ArrayBuffer =>
  ArrayBuffer.isView(value) || value instanceof ArrayBuffer;

/**
 * Returns an exact amount as the number that the service reads.
 *
 * @throws {TypeError} It is not a plain decimal number, has more than 4 decimals, or would be rounded:
 * `0.1 + 0.2`. Pass amounts as text, `'1200.50'`, or as an instance of decimal.js, big.js or bignumber.js.
 */
export function exactAmount(amount: unknown): number {
  const isText = typeof amount === 'string' || typeof amount === 'number' || typeof amount === 'bigint';
  const text = isText ? String(amount)
    : typeof amount === 'object' && amount !== null && isDecimal(amount) ? amount.toFixed() : '';
  const units = tenThousandths(text);
  if (units === undefined) {
    throw new TypeError(`the amount ${text || typeof amount} is not exact: use text with at most 4 decimals: 1200.50`);
  }
  const number = Number(text);
  if (tenThousandths(String(number)) !== units || Math.abs(number) > Number.MAX_SAFE_INTEGER) {
    throw new TypeError(`the amount ${text} would be rounded to ${number}`);
  }
  return number === 0 ? 0 : number;
}

function tenThousandths(text: string): bigint | undefined {
  const [, sign, whole, part = ''] = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?$/.exec(text) ?? [];
  const decimals = part.replace(/0+$/, '');
  if (whole === undefined || decimals.length > 4) return undefined;
  const units = BigInt(whole + decimals.padEnd(4, '0'));
  return sign ? -units : units;
}

/**
 * Returns a frozen deep copy of arguments. A tool that gets it runs with exactly the asked arguments.
 *
 * @throws {TypeError} A value has no JSON form: a function, a class instance, a circular reference.
 */
export function snapshot<T>(value: T, levels = DEEPEST): T {
  return copied(value, '', levels) as T;
}

function copied(value: unknown, path: string, levels: number): unknown {
  if (typeof value === 'function' || typeof value === 'symbol') throw invalid(path, `is a ${typeof value}`);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof Date) return new Date(value);
  if (isBytes(value)) return bytesOf(value).slice();
  if (isDecimal(value)) return decimalOf(value, path);
  if (levels === 0) throw invalid(path, 'is nested too deeply or refers to itself');
  if (Array.isArray(value)) {
    return Object.freeze(Array.from(value, (item, index) => copied(item, `${path}/${index}`, levels - 1)));
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === null || Object.getPrototypeOf(prototype) === null;
  if (!isPlain) throw invalid(path, `is an instance of ${value.constructor?.name ?? 'a class'}`);
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const copies = members.map(([name, member]) => [name, copied(member, `${path}/${name}`, levels - 1)] as const);
  return Object.freeze(Object.fromEntries(copies));
}

/** Returns a decimal of the text that the question has. Nothing else of the given instance reaches the tool. */
function decimalOf(value: Decimal, path: string): Decimal {
  const text = value.toFixed();
  const copy = new value.constructor(text);
  if (!isDecimal(copy) || copy.toFixed() !== text) throw invalid(path, 'is a decimal that its class does not read again');
  return copy;
}

const invalid = (path: string, problem: string) => new TypeError(`the argument ${path || 'object'} ${problem}`);

/** Replaces values by their HMAC. A name is that of an argument, or a JSON pointer: `/customer/iban`. */
export interface Redaction { readonly names: readonly string[]; readonly key: string | Uint8Array | undefined }

/**
 * Returns the JSON of a snapshot: times as RFC 3339, bytes as `{"sha256": …}`, decimals as numbers.
 *
 * @throws {TypeError} A value has no exact JSON form.
 */
export async function serialize(value: unknown, redaction?: Redaction): Promise<Json> {
  const pointers = new Set(redaction?.names.map((name) => (name.startsWith('/') ? name : `/${escaped(name)}`)));
  const key = pointers.size && redaction?.key ? await hmacKey(redaction.key) : undefined;
  if (pointers.size && !key) throw new TypeError('redact needs redactKey');
  const json = async (item: unknown, path: string): Promise<Json> => {
    const plain = await toJson(item, path);
    if (!key || !pointers.has(path)) return plain;
    const code = await crypto.subtle.sign('HMAC', key, utf8(canonicalize(plain)));
    return { hmac: hex(new Uint8Array(code)) };
  };
  const toJson = async (item: unknown, path: string): Promise<Json> => {
    if (typeof item !== 'object' || item === null) return scalar(item, path);
    if (item instanceof Date) return time(item, path);
    if (isBytes(item)) return { sha256: hex(await sha256(bytesOf(item))) };
    if (isDecimal(item)) return exactAmount(item);
    if (Array.isArray(item)) return Promise.all(item.map((each, index) => json(each, `${path}/${index}`)));
    const members = Object.entries(item).filter(([, member]) => member !== undefined);
    return Object.fromEntries(await Promise.all(members.map(
      async ([name, member]) => [wellFormed(name, path), await json(member, `${path}/${escaped(name)}`)] as const,
    )));
  };
  return json(value, '');
}

const escaped = (name: string) => name.replaceAll('~', '~0').replaceAll('/', '~1');

function scalar(value: unknown, path: string): Json {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'string') return wellFormed(value, path);
  const number = typeof value === 'number' || typeof value === 'bigint' ? Number(value) : NaN;
  const isExact = Math.abs(number) <= Number.MAX_SAFE_INTEGER;
  if (!isExact) throw invalid(path, `is ${String(value)}, which has no exact JSON form; use text`);
  return number === 0 ? 0 : number;
}

function wellFormed(text: string, path: string): string {
  if (/[\p{Surrogate}\0]/u.test(text)) throw invalid(path, 'has a lone surrogate or U+0000');
  return text;
}

/** Writes a time in UTC, with the decimals of the second that are not zero. */
function time(value: Date, path: string): string {
  if (Number.isNaN(Number(value))) throw invalid(path, 'is an invalid Date');
  return value.toISOString().replace(/\.?0+Z$/, 'Z');
}

function bytesOf(value: ArrayBufferView | ArrayBuffer): Uint8Array {
  if (!ArrayBuffer.isView(value)) return new Uint8Array(value);
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

function hmacKey(key: string | Uint8Array): Promise<CryptoKey> {
  const bytes = typeof key === 'string' ? utf8(key) : new Uint8Array(key);
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
}

/** Returns the digest of arguments, to detect that they changed: `sha256:…`. */
export async function digestArguments(value: unknown): Promise<string> {
  return `sha256:${hex(await sha256(utf8(canonicalize(await serialize(snapshot(value))))))}`;
}

/**
 * Returns the context of a request: members that are not null, with an exact `amount`.
 *
 * @throws {TypeError} A value has no exact JSON form.
 */
export async function serializeContext(context: Readonly<Record<string, unknown>>): Promise<JsonObject> {
  const { amount, ...others } = context;
  const facts = await serialize(others) as JsonObject;
  const present = Object.entries(facts).filter(([, value]) => value !== null);
  return Object.fromEntries(amount == null ? present : [...present, ['amount', exactAmount(amount)]]);
}

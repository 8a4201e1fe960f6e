// Canonical JSON (RFC 8785).

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject { readonly [name: string]: Json }

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Returns the canonical text of a value.
 *
 * @throws {TypeError} The value has a number that is not finite, or a lone surrogate.
 */
export function canonicalize(value: Json): string {
  if (typeof value === 'string') return text(value);
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new TypeError(`${value} is not a JSON number`);
    // ECMAScript writes numbers as RFC 8785 requires.
    return JSON.stringify(value);
  }
  if (value === null || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return `[${value.map(canonicalize).join(',')}]`;
  // The default order compares UTF-16 code units, as RFC 8785 requires.
  const names = Object.keys(value).sort();
  const members = names.map((name) => `${text(name)}:${canonicalize((value as JsonObject)[name]!)}`);
  return `{${members.join(',')}}`;
}

function text(value: string): string {
  if (/\p{Surrogate}/u.test(value)) throw new TypeError('a text has a lone surrogate');
  return JSON.stringify(value);
}

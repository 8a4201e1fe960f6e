// Reads the JSON of evidence: texts that two parsers could read differently are refused
// (EVIDENCE.md, "Reading a file").

import type { Json } from './jcs.js';

/** Evidence that is damaged or forged. The message begins with the path of the member. */
export class InvalidEvidence extends Error {
  override readonly name = 'InvalidEvidence';
}

/** A file that is not evidence, or not readable. */
export class UnreadableEvidence extends Error {
  override readonly name = 'UnreadableEvidence';
}

export function need(holds: unknown, path: string, problem: string): asserts holds {
  if (!holds) throw new InvalidEvidence(`${path || 'the file'}: ${problem}`);
}

const DEEPEST = 127;

const escaped = (text: string) => JSON.stringify(text).replace(/[\u007f-\uffff]/g,
  (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Returns a text for a message, without characters that a terminal would interpret. */
export const shown = (text: string) => escaped(text).slice(1, -1);

/** Returns the path of a member. No name can look like a path. */
export function under(path: string, name: string): string {
  if (!/^[A-Za-z0-9_]+$/.test(name)) return `${path}[${escaped(name)}]`;
  return path ? `${path}.${name}` : name;
}

/**
 * Parses a file.
 *
 * @throws {UnreadableEvidence} It is not JSON in UTF-8, or nested too deeply.
 * @throws {InvalidEvidence} Two parsers could read it differently.
 */
export function parseEvidence(file: string | Uint8Array): Json {
  let text: string;
  let value: Json;
  try {
    text = typeof file === 'string' ? file : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(file);
    value = JSON.parse(text) as Json;
  } catch (error) {
    throw new UnreadableEvidence(`not JSON in UTF-8: ${(error as Error).message}`);
  }
  const fault = firstFault(text);
  if (fault) throw fault;
  return value;
}

/** Returns the first fault of a text that is known to be JSON. The parser drops duplicate members. */
function firstFault(text: string): InvalidEvidence | undefined {
  const tokens = text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g);
  const next = () => tokens.next().value![0] as string;
  let fault: InvalidEvidence | undefined;
  const demand = (holds: boolean, path: string, problem: string) => {
    if (!holds) fault ??= new InvalidEvidence(`${path || 'the file'}: ${problem}`);
  };
  const string = (token: string, path: string) => {
    demand(!/\p{Surrogate}/u.test(JSON.parse(token) as string), path, 'holds a lone surrogate');
  };
  const object = (path: string, depth: number) => {
    const seen = new Set<string>();
    for (let name = next(); name !== '}'; name = next()) {
      if (name === ',') name = next();
      const parsed = JSON.parse(name) as string;
      const at = under(path, parsed);
      demand(!seen.has(parsed), at, 'occurs twice');
      seen.add(parsed);
      string(name, at);
      next(); // the colon
      value(next(), at, depth + 1);
    }
  };
  const array = (path: string, depth: number) => {
    let index = 0;
    for (let item = next(); item !== ']'; item = next()) {
      value(item === ',' ? next() : item, `${path}[${index}]`, depth + 1);
      index += 1;
    }
  };
  const value = (token: string, path: string, depth: number) => {
    if ('{['.includes(token) && depth === DEEPEST) throw new UnreadableEvidence('nested too deeply');
    if (token === '{') object(path, depth);
    else if (token === '[') array(path, depth);
    else if (token.startsWith('"')) string(token, path);
    else if (/^[-0-9]/.test(token)) {
      demand(Math.abs(Number(token)) < 2 ** 53, path, 'is beyond 2^53-1');
      const isInteger = /^-?[0-9]+$/.test(token) && token !== '-0';
      demand(isInteger || /^context\.value\b/.test(path), path, 'must be an integer');
    }
  };
  value(next(), '', 0);
  return fault;
}

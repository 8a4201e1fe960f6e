// Guards the tool of each case with the TypeScript library. Reads a case a line from the standard
// input, and writes the outcome of each as a line.

import { appendFileSync, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const offset = Number(process.env.CLOCK_OFFSET ?? 0) * 1000;
if (offset) {
  // Sets the wall clock of this process wrong. The monotonic clock is not changed.
  const Real = Date;
  globalThis.Date = class extends Real {
    constructor(...given) {
      super(...(given.length ? given : [Real.now() + offset]));
    }

    static now() {
      return Real.now() + offset;
    }
  };
}

const { Authority, Denied, Held, Unavailable, serialize, snapshot } = await import('../typescript/dist/guard.js');
const { canonicalize } = await import('../typescript/dist/jcs.js');

const silent = { debug() {}, info() {}, warn() {}, error() {} };
const note = (order, word) => appendFileSync(order.file, `${word}\n`);

function failed(error, hasStarted) {
  const { code, message } = error;
  if (error instanceof Denied) return { outcome: hasStarted && code === 'stopped' ? 'stopped' : 'denied', code, message };
  if (error instanceof Held) return { outcome: 'held', held: JSON.stringify(error) };
  if (error instanceof Unavailable) return { outcome: 'unavailable', code, message };
  return { outcome: message === 'the tool fails' ? 'failed' : 'error', message: String(error?.stack ?? error) };
}

async function call(order) {
  const authority = new Authority({
    baseUrl: order.url, apiKey: order.key, subject: order.subject, jwks: order.jwks, timeout: order.deadline * 1000,
    logger: silent,
  });
  const pay = authority.guard({
    action: order.action,
    purpose: order.purpose,
    context: ({ amount, currency, jurisdiction }) => ({ amount, currency, jurisdiction }),
    wait: order.wait * 1000,
    watch: order.watch,
    obligations: Object.fromEntries(order.handles.map((name) => [name, { before() {} }])),
  }, async (args, { signal }) => {
    note(order, `started ${process.hrtime.bigint()}`);
    if (order.fails) throw new Error('the tool fails');
    try {
      await sleep(order.lasts * 1000, undefined, { signal });
      note(order, 'finished');
    } finally {
      note(order, `ended ${process.hrtime.bigint()}`);
    }
  });
  try {
    await (order.held ? pay.resume(JSON.parse(order.held), order.arguments) : pay(order.arguments));
    return { outcome: 'ran' };
  } catch (error) {
    return failed(error, existsSync(order.file));
  }
}

/** A decimal as the library recognizes it: an instance of a class such as those of decimal.js. */
class Decimal {
  #text;

  constructor(text) {
    this.#text = text;
  }

  toFixed() {
    return this.#text;
  }

  plus() {
    throw new Error('not used');
  }

  times() {
    throw new Error('not used');
  }
}

const MAKE = {
  decimal: (text) => new Decimal(text),
  double: (text) => Number({ nan: 'NaN', inf: 'Infinity' }[text] ?? text),
  integer: BigInt,
  bytes: (text) => new Uint8Array(Buffer.from(text, 'hex')),
  datetime: (text) => new Date(text),
  date: (text) => text,
  surrogate: (text) => String.fromCharCode(Number.parseInt(text, 16)),
};

/** Returns the JavaScript value of a value in arguments.json. */
function valueOf(tagged) {
  if (Array.isArray(tagged)) return tagged.map(valueOf);
  if (typeof tagged !== 'object' || tagged === null) return tagged;
  const [[kind, content]] = Object.entries(tagged);
  return kind === 'object' ? valuesOf(content) : MAKE[kind](content);
}

const valuesOf = (members) => Object.fromEntries(Object.entries(members).map(([name, value]) => [name, valueOf(value)]));

/** Returns the canonical text of a call's arguments as the question has them. */
async function convert({ convert: given, redact_key: key }) {
  try {
    const redaction = given.redact.length ? { names: given.redact, key } : undefined;
    return { text: canonicalize(await serialize(snapshot(valuesOf(given.arguments)), redaction)) };
  } catch (error) {
    return { refused: error.message };
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line);
  void (order.convert ? convert(order) : call(order)).then((answer) => {
    process.stdout.write(`${JSON.stringify({ ...answer, id: order.id })}\n`);
  });
}

// Times of records, and durations.

/**
 * Returns the milliseconds since 1970 of a record's time, rounded down; undefined unless it is RFC
 * 3339 in UTC with `Z`, an existing day from 1970 on, without leap seconds.
 */
export function milliseconds(moment: string): number | undefined {
  const micros = microseconds(moment);
  return micros === undefined ? undefined : Math.floor(micros / 1000);
}

/** Returns the microseconds since 1970 of a record's time; undefined as for `milliseconds`. */
export function microseconds(moment: unknown): number | undefined {
  const found = typeof moment === 'string' ? /^([0-9T:-]{19})(?:\.([0-9]{1,9}))?Z$/.exec(moment) : null;
  if (!found) return undefined;
  const at = new Date(`${found[1]}Z`);
  // Formatting it again detects the 30th of February, which Date reads as a day of March.
  const isSound = Number(at) >= 0 && at.toISOString().startsWith(found[1]!);
  return isSound ? Number(at) * 1000 + Number((found[2] ?? '').padEnd(6, '0').slice(0, 6)) : undefined;
}

const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds, or a text such as `30s`, `10m`, `2h` or `3d`. */
export type Duration = number | `${number}${keyof typeof UNITS}`;

/** @throws {TypeError} It is not a duration. */
export function toMilliseconds(duration: Duration): number {
  const found = typeof duration === 'string' ? /^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)$/.exec(duration) : null;
  const result = found ? Number(found[1]) * UNITS[found[2] as keyof typeof UNITS] : duration;
  if (typeof result !== 'number' || !(result >= 0)) {
    throw new TypeError(`${String(duration)} is not a duration such as 30s, 10m or 2h`);
  }
  return result;
}

/**
 * The time since it was made. The monotonic clock stands still while the machine sleeps, and the wall clock can be set
 * back: the larger of both times counts.
 */
export class Timer {
  readonly #monotonic = performance.now();
  readonly #wall = Date.now();

  /** Milliseconds. */
  get elapsed(): number {
    return Math.max(performance.now() - this.#monotonic, Date.now() - this.#wall);
  }
}

/** The end of a duration that began with a timer, by default now. */
export class Deadline {
  readonly #duration: number;
  readonly #since: Timer;

  constructor(duration: number, since = new Timer()) {
    this.#duration = duration;
    this.#since = since;
  }

  get isOver(): boolean {
    return !(this.#since.elapsed < this.#duration);
  }

  /** Milliseconds; 0 when it is over. */
  get remaining(): number {
    return this.isOver ? 0 : Math.max(0, this.#duration - this.#since.elapsed);
  }
}

/** Waits. Fails with the signal's reason if it is aborted before. */
export function sleep(duration: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    // A longer time would overflow, and the timer would fire at once.
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, Math.min(duration, 2 ** 31 - 1));
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/**
 * Returns a promise's value, or undefined after a time. Fails with the signal's reason if it is
 * aborted before. An abort alone does not end a stream of `fetch` in every version of Node.
 */
export async function within<T>(promise: Promise<T>, duration: number, signal?: AbortSignal): Promise<T | undefined> {
  const left = new AbortController();
  const timer = sleep(duration, left.signal).catch(() => undefined);
  const aborted = new Promise<never>((_, reject) => {
    const fail = () => reject(signal?.reason);
    if (signal?.aborted) fail();
    signal?.addEventListener('abort', fail, { once: true, signal: left.signal });
  });
  try {
    return await Promise.race([promise, timer.then(() => undefined), aborted]);
  } finally {
    left.abort();
  }
}

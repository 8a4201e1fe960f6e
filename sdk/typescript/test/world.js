// The service of each test, and what the tests share.
import { beforeEach } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import assert from 'node:assert/strict';
import { Authority, Denied, Unavailable } from '@agent-authority/sdk/guard';
import { Service, subject } from './service.js';

export let service;
beforeEach(async () => {
  service = await Service.start();
});

export const silent = { debug() {}, info() {}, warn() {}, error() {} };
export const authorityOf = (options = {}) =>
  new Authority({
    baseUrl: service.baseUrl,
    apiKey: 'svc_sandbox_1_2_3',
    subject,
    logger: silent,
    jwks: service.jwks,
    timeout: '20s', // for a busy machine
    ...options,
  });
/** Returns an authority with the time for a decision that applies if none is set. */
export const impatient = (options) => authorityOf({ ...options, timeout: undefined });
export const action = 'payment.execute';
const context = ({ amount, currency }) => ({ amount, currency, jurisdiction: 'DE' });
export const args = { amount: '1200.00', currency: 'EUR', iban: 'DE02120300000000202051' };

/** Returns a guarded payment, and the arguments with which it ran. */
export function guarded({ body, ...options } = {}, authority = authorityOf()) {
  const made = [];
  const pay = authority.guard(
    { action, purpose: 'invoice-settlement', context, ...options },
    async (given, scope) => {
      made.push(given);
      return body ? body(given, scope) : 'paid';
    },
  );
  return { pay, made, authority };
}

export const denied = (code) => (error) =>
  error instanceof Denied && (error.code === code || assert.fail(`${error.code}: ${error.message}`));
export const unavailable = (error) => error instanceof Unavailable || assert.fail(String(error));
/** Runs while a clock is ahead: `Date.now` after the machine slept, `performance.now` after the wall clock was set back. */
export async function ahead(clock, milliseconds, run) {
  const { now } = clock;
  clock.now = () => now.call(clock) + milliseconds;
  try {
    return await run();
  } finally {
    clock.now = now;
  }
}
export const settled = async (holds) => {
  for (let n = 0; n < 300 && !holds(); n += 1) await sleep(10);
  assert.ok(holds());
};

// Starts the system's Chromium with signed-in users. Collects errors of every page, which fail the
// test at its end.
import { strict as assert } from 'node:assert';
import { AsyncLocalStorage } from 'node:async_hooks';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { BASE } from './service.mjs';

/** The users of the development sign-in page, by their displayed names. */
export const APPROVER = 'First approver';
export const OWNING = 'Head of finance';
export const ADMIN = 'Administrator';
export const AUDITOR = 'Auditor';
export const OPERATOR = 'Operator';

// In Chromium without windows, which Debian has, pages load faster.
const program = process.env.CONSOLE_BROWSER
  ?? ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'].find((path) => existsSync(path));
assert.ok(program, 'there is no Chromium: run script/features');
// The sandbox is off, so that Chromium also runs in containers.
const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu'] });
after(() => browser.close());

/** The number of pages that `onPages` opens: one for each processor. */
export const AT_ONCE = availableParallelism();

/** The open contexts and the complaints of the scenario that runs. Several scenarios can run at once. */
const running = new AsyncLocalStorage();

/** A test that closes its contexts at the end and fails if a page has complained. */
export const scenario = (name, run, options) => test(name, { timeout: 120_000, ...options }, async (t) => {
  const open = [];
  const complaints = [];
  try {
    await running.run({ open, complaints }, () => run(t));
  } finally {
    await Promise.all(open.map((context) => context.close()));
  }
  assert.deepEqual(complaints, [], 'no page complains');
});

/** Logs everything that a page's policy blocks, including violations that the browser does not log. */
const POLICY = `addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample));`;

/** A separate browser with its own cookies, without animations: colours must not be measured during a transition. */
export async function opened({ javaScriptEnabled = true, ...options } = {}) {
  const { open, complaints } = running.getStore();
  const context = await browser.newContext({ javaScriptEnabled, baseURL: BASE, locale: 'en-GB', reducedMotion: 'reduce', ...options });
  open.push(context);
  context.setDefaultTimeout(15_000);
  await context.addInitScript(POLICY);
  const documents = new Set();
  context.on('request', (request) => {
    if (request.isNavigationRequest()) documents.add(request.url());
    const { origin, protocol } = new URL(request.url());
    if (origin !== BASE && protocol !== 'data:') complaints.push(`request to ${request.url()}`);
  });
  context.on('requestfailed', (request) => {
    // Leaving a page aborts its pending requests.
    const why = request.failure()?.errorText;
    if (why !== 'net::ERR_ABORTED') complaints.push(`${request.method()} ${request.url()}: ${why}`);
  });
  context.on('console', (message) => {
    if (!['error', 'warning'].includes(message.type())) return;
    // A form that is refused returns a page with an error status, which the browser logs as well.
    const isPage = message.text().startsWith('Failed to load resource') && documents.has(message.location().url);
    if (!isPage) complaints.push(`${message.type()} at ${message.location().url}: ${message.text()}`);
  });
  context.on('weberror', (error) => complaints.push(`script: ${error.error()}`));
  return context;
}

/** A page at `path` on which this user has just signed in, with a session of its own. */
export async function signIn(name, path = '/console/approvals', options = {}) {
  const context = await opened(options);
  const page = await context.newPage();
  await page.goto(path);
  await page.getByRole('button', { name }).click();
  await page.waitForURL((url) => !url.pathname.startsWith('/dev-idp'));
  return page;
}

const sessions = new Map();

/** A page at `path` on which this user is signed in, with a session that all these pages share. */
export async function signedIn(name, path = '/console/approvals', options = {}) {
  if (!sessions.has(name)) sessions.set(name, signIn(name).then((page) => page.context().storageState()));
  const context = await opened({ storageState: await sessions.get(name), ...options });
  const page = await context.newPage();
  await page.goto(path);
  return page;
}

/** Passes each item to `run` with a page of this user. The pages take the items in order, and run at once. */
export async function onPages(name, items, run) {
  const waiting = [...items];
  const work = async () => {
    const page = await signedIn(name);
    while (waiting.length > 0) await run(page, waiting.shift());
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

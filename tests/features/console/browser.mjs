// Starts the system's Chromium with signed-in users. Collects errors of every page, which fail the
// test at its end.
import { strict as assert } from 'node:assert';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { BASE } from './service.mjs';

/** The users of the development sign-in page, by their displayed names. */
export const APPROVER = 'First approver';
export const OWNING = 'Head of finance';
export const ADMIN = 'Administrator';
export const AUDITOR = 'Auditor';
export const OPERATOR = 'Operator';

const program = process.env.CONSOLE_BROWSER ?? '/usr/bin/chromium';
// The sandbox is off, so that Chromium also runs in containers.
const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu'] });
after(() => browser.close());

const complaints = [];
const open = [];

/** A test that closes its browsers at the end and fails if a page has complained. */
export const scenario = (name, run, { timeout = 120_000 } = {}) => test(name, { timeout }, async (t) => {
  try {
    await run(t);
  } finally {
    for (const context of open.splice(0)) await context.close();
  }
  assert.deepEqual(complaints.splice(0), [], 'no page complains');
});

/** Logs everything that a page's policy blocks, including violations that the browser does not log. */
const POLICY = `addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample));`;

/** A separate browser with its own cookies, without animations: colours must not be measured during a transition. */
export async function opened({ javaScriptEnabled = true, ...options } = {}) {
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

/** A page at `path` on which this user is signed in. */
export async function signedIn(name, path = '/console', options = {}) {
  const context = await opened(options);
  const page = await context.newPage();
  await page.goto(path);
  await page.getByRole('button', { name }).click();
  await page.waitForURL((url) => !url.pathname.startsWith('/dev-idp'));
  return page;
}

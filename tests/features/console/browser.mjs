// The system's Chromium, and people in it. Whatever a page complains of is kept, and fails the test at its end.
import { strict as assert } from 'node:assert';
import { after, test } from 'node:test';
import { chromium } from 'playwright-core';
import { BASE } from './service.mjs';

/** Those of the development sign-in page, by the name that it shows. */
export const APPROVER = 'First approver';
export const OWNING = 'Head of finance';
export const ADMIN = 'Administrator';
export const AUDITOR = 'Auditor';
export const OPERATOR = 'Operator';

const program = process.env.CONSOLE_BROWSER ?? '/usr/bin/chromium';
// Without its sandbox Chromium runs in containers, too.
const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox', '--disable-gpu'] });
after(() => browser.close());

const complaints = [];
const open = [];

/** A test whose browsers are closed at its end, and in which no page may have complained. */
export const scenario = (name, run, { timeout = 120_000 } = {}) => test(name, { timeout }, async (t) => {
  try {
    await run(t);
  } finally {
    for (const context of open.splice(0)) await context.close();
  }
  assert.deepEqual(complaints.splice(0), [], 'no page complains');
});

/** What a page's policy blocks is said at the console, also where the browser is silent. */
const POLICY = `addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample));`;

/** A browser of its own, with its own cookies. Nothing moves in it: colours on their way are not measured. */
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
    // A page that is left stops what it still fetches.
    const why = request.failure()?.errorText;
    if (why !== 'net::ERR_ABORTED') complaints.push(`${request.method()} ${request.url()}: ${why}`);
  });
  context.on('console', (message) => {
    if (!['error', 'warning'].includes(message.type())) return;
    // A refused form is a page with its status, which the browser also notes.
    const isPage = message.text().startsWith('Failed to load resource') && documents.has(message.location().url);
    if (!isPage) complaints.push(`${message.type()} at ${message.location().url}: ${message.text()}`);
  });
  context.on('weberror', (error) => complaints.push(`script: ${error.error()}`));
  return context;
}

/** A page on which somebody is signed in, at `path`. */
export async function signedIn(name, path = '/console', options = {}) {
  const context = await opened(options);
  const page = await context.newPage();
  await page.goto(path);
  await page.getByRole('button', { name }).click();
  await page.waitForURL((url) => !url.pathname.startsWith('/dev-idp'));
  return page;
}

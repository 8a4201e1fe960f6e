// The console without a mouse, and what its script adds: shortcut keys, the countdown, the list
// that refreshes.
import { strict as assert } from 'node:assert';
import { APPROVER, opened, scenario, signedIn } from './browser.mjs';
import { faults } from './screen.mjs';
import { approval, held } from './service.mjs';

/** Presses a key until `reached`, at most `most` times. */
async function press(page, key, reached, most = 80) {
  for (let times = 0; times < most; times += 1) {
    if (await page.evaluate(reached)) return;
    await page.keyboard.press(key);
  }
  assert.fail(`${key} does not lead to ${reached}`);
}

const isAt = (id) => `document.activeElement.matches('a.what[href$="${id}"]')`;
const isAtButton = `document.activeElement.matches('main form button.go')`;

scenario('with keys alone a request is approved', async () => {
  const id = await held(25_100);
  const page = await signedIn(APPROVER);
  await press(page, 'j', isAt(id));
  await page.keyboard.press('Enter');
  // The script listens to keys only once it runs.
  await page.locator('html.js').getByRole('link', { name: 'Approve…' }).waitFor();
  await page.keyboard.press('a');
  await page.getByRole('heading', { level: 1, name: 'Approve this payment.execute?' }).waitFor();
  assert.equal((await approval(id)).state, 'pending', 'a key never acts');
  // The focus is in the form, once the browser has scrolled to it.
  await page.locator('#text:focus').waitFor();
  await press(page, 'Tab', isAtButton);
  await page.keyboard.press('Enter');
  await page.getByText('You approved this').waitFor();
  assert.equal((await approval(id)).state, 'approved');
});

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? 'with the keys turned off' : 'without a script';
  scenario(`Tab and Enter alone approve a request, ${how}`, async () => {
    const id = await held(25_101);
    const page = await signedIn(APPROVER, '/console/approvals', { javaScriptEnabled });
    if (javaScriptEnabled) {
      await press(page, 'Tab', `document.activeElement.matches('[data-keys-switch]')`);
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Turn keys on' }).waitFor();
      await page.reload();
      await page.keyboard.press('j');
      assert.ok(!(await page.evaluate(`document.activeElement.matches('a.what')`)), 'j does nothing');
    }
    await press(page, 'Tab', isAt(id));
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Approve…' }).waitFor();
    await press(page, 'Tab', `document.activeElement.matches('.decide a.go')`);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Approve this payment.execute?' }).waitFor();
    await press(page, 'Tab', isAtButton);
    await page.keyboard.press('Enter');
    await page.getByText('You approved this').waitFor();
    assert.equal((await approval(id)).state, 'approved');
  });
}

scenario('the first stop leads past the header', async () => {
  const page = await signedIn(APPROVER);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.locator('#main:focus').waitFor();
});

/** Opens the list with a clock that the test moves, after the page's script has started and read the time. */
async function withClock() {
  const page = await (await opened()).newPage();
  await page.clock.install();
  await page.goto('/console/approvals');
  await page.getByRole('button', { name: APPROVER }).click();
  await page.locator('html.js #inbox').waitFor();
  return page;
}

scenario('the list looks again by itself, and says so once', async () => {
  const page = await withClock();
  const id = await held(25_102);
  await page.clock.runFor(16_000);
  await page.locator(`a.what[href$="${id}"]`).waitFor();
  await page.locator('#live').getByText(/waiting/).waitFor({ state: 'attached' });
});

scenario('a session that ends says so, and is put off', async () => {
  const page = await withClock();
  assert.equal(await page.locator('.ending').count(), 0);
  await page.clock.fastForward('28:30');
  await page.clock.runFor(6000);
  const ending = page.getByRole('status').filter({ hasText: 'Your session ends in two minutes' });
  await ending.waitFor();
  assert.deepEqual(await faults(page), []);
  const answer = page.waitForResponse((response) => response.url().endsWith('/console/session'));
  await ending.getByRole('button', { name: 'Stay signed in' }).click();
  assert.equal((await answer).status(), 200);
});

scenario('another tab that used the session takes the notice away', async () => {
  const page = await withClock();
  const later = new Date(Date.now() + 60 * 60_000).toISOString();
  await page.route('**/console/session', (route) => route.fulfill({ body: later }));
  const answer = page.waitForResponse('**/console/session');
  await page.clock.fastForward('28:30');
  // Until the service has answered, the script only knows the earlier end, and shows the notice.
  await answer;
  await page.clock.runFor(6000);
  await page.locator('.ending').waitFor({ state: 'detached' });
});

scenario('a session that has ended is said in words', async () => {
  const page = await withClock();
  await page.route('**/console/**', (route) => route.fulfill({ status: 401, body: '' }));
  await page.clock.runFor(16_000);
  const ended = page.getByRole('status').filter({ hasText: 'Your session has ended' });
  await ended.waitFor();
  // After signing in again in another tab, the user can continue on this page.
  await page.unroute('**/console/**');
  await page.clock.runFor(26_000);
  await ended.waitFor({ state: 'detached' });
});

scenario('a list that is not up to date says so, until it is', async () => {
  const page = await withClock();
  await page.route('**/console/approvals', (route) => route.abort('aborted'));
  const failed = page.waitForEvent('requestfailed');
  await page.clock.runFor(16_000);
  await failed;
  const stale = page.getByText('This page is not up to date');
  assert.equal(await stale.count(), 0, 'one failure');
  await page.clock.runFor(16_000);
  await stale.first().waitFor();
  assert.deepEqual(await faults(page), []);
  await page.unroute('**/console/approvals');
  await page.clock.runFor(16_000);
  await page.locator('main').getByText('This page is not up to date').waitFor({ state: 'detached' });
});

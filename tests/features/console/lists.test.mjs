// The lists as tables: rows on a screen, cards on a phone, sorting, filters, and the next request
// after an act.
import { strict as assert } from 'node:assert';
import { APPROVER, AUDITOR, scenario, signedIn } from './browser.mjs';
import { faults } from './screen.mjs';
import { approval, held } from './service.mjs';

const DESK = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

/** The number of rows that are wholly on the screen. */
const whole = (page) => page.locator('.list tbody tr').evaluateAll((rows) =>
  rows.filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length);

scenario('15 rows are on a screen, and cards on a phone', async (t) => {
  // Each request has warnings about its document, its payee and its account.
  for (let number = 0; number < 16; number += 1) {
    const context = { payee: `Nordic Data Centers ${number % 3}`, iban: `DE893704004405320130${number % 4}`, invoice: 'RE-2026-0118' };
    await held(21_000 + number, { context });
  }
  for (const [name, path] of [[APPROVER, '/console/approvals'], [AUDITOR, '/console/decisions']]) {
    const page = await signedIn(name, path, { viewport: DESK });
    const rows = await whole(page);
    t.diagnostic(`${path}: ${rows} rows`);
    assert.ok(rows >= 15, `${path}: ${rows} rows`);
    await page.setViewportSize(PHONE);
    const { display, width } = await page.locator('.list tbody tr').first().evaluate((row) => (
      { display: getComputedStyle(row).display, width: document.scrollingElement.scrollWidth }));
    assert.equal(display, 'block', path);
    assert.ok(width <= PHONE.width, `${path}: ${width} px`);
    assert.deepEqual(await faults(page), [], path);
  }
});

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? '' : ' without a script';
  scenario(`the inbox is sorted by amount, filtered and grouped${how}`, async () => {
    const ids = [await held(22_001), await held(23_001)];
    const page = await signedIn(APPROVER, '/console/approvals', { javaScriptEnabled, viewport: DESK });
    await page.getByRole('columnheader').getByRole('link', { name: 'Amount' }).click();
    await page.waitForURL(/[?&]sort=amount/);
    const cells = await page.locator('.list td.num').allTextContents();
    const amounts = cells.map((text) => Number(text.replace(/[^0-9.]/g, '')));
    assert.ok(amounts.length >= 2, cells.join());
    assert.deepEqual(amounts, [...amounts].sort((one, other) => other - one));
    await page.getByRole('link', { name: /^Group alike/ }).click();
    await page.locator('.group').first().getByRole('link', { name: 'Only these' }).click();
    await page.waitForURL(/[?&]action=payment\.execute/);
    assert.match(page.url(), /sort=amount/, 'the order stays');
    for (const id of ids) assert.equal(await page.locator(`a.what[href$="${id}"]`).count(), 1);
    await page.getByRole('link', { name: /^Remove the filter Action: payment\.execute/ }).click();
    await page.getByRole('link', { name: /^Remove the filter Agent:/ }).click();
    await page.waitForURL((url) => !url.search.includes('agent='));
    if (javaScriptEnabled) assert.deepEqual(await faults(page), []);
  });

  scenario(`the next request follows an act${how}`, async () => {
    const id = await held(24_001);
    await held(24_002);
    const page = await signedIn(APPROVER, '/console/approvals?yours=yes', { javaScriptEnabled });
    const [before] = (await page.locator('#count').textContent()).match(/^\d+/);
    await page.locator(`a.what[href$="${id}"]`).click();
    await page.getByRole('link', { name: 'Approve…' }).click();
    await page.getByRole('button', { name: /^Approve/ }).click();
    await page.getByText('You approved this').waitFor();
    if (javaScriptEnabled) assert.deepEqual(await faults(page), []);
    await page.getByRole('link', { name: `${before - 1} yours to decide` }).waitFor();
    await page.getByRole('link', { name: /^Next: / }).click();
    const next = decodeURIComponent(new URL(page.url()).pathname.split('/').pop());
    assert.notEqual(next, id);
    assert.equal((await approval(next)).state, 'pending');
    await page.getByRole('link', { name: 'Approve…' }).waitFor();
  });
}

scenario('decisions are filtered by outcome and exported as CSV', async () => {
  const page = await signedIn(AUDITOR, '/console/decisions', { viewport: DESK });
  await page.getByRole('list', { name: 'Outcomes', exact: true }).getByRole('link', { name: 'Held' }).click();
  await page.waitForURL(/[?&]outcome=require_approval/);
  const outcomes = await page.locator('.list .verdict').allTextContents();
  assert.deepEqual([...new Set(outcomes)], ['held']);
  const [download] = await Promise.all([
    page.waitForEvent('download'), page.getByRole('link', { name: 'as CSV' }).click(),
  ]);
  assert.equal(download.suggestedFilename(), 'decisions.csv');
  await page.getByRole('link', { name: /^Remove the filter Held/ }).click();
  await page.waitForURL((url) => url.search === '');
});

// A request on a phone: the buttons that decide are in view, cover no other stop, and the page updates
// itself.
import { strict as assert } from 'node:assert';
import { APPROVER, scenario, signIn, signedIn } from './browser.mjs';
import { unseenStops } from './screen.mjs';
import { approval, held } from './service.mjs';

const viewport = { width: 390, height: 844 };
const LONG = {
  payee: 'Müller Maschinenbau und Anlagentechnik GmbH & Co. KG', iban: 'DE89370400440532013000', invoice: 'RE-2026-0417',
  note: 'please pay this soon '.repeat(20),
  line_items: Array.from({ length: 12 }, (_, line) => ({ text: `Position ${line}`, quantity: 1, net: 2_000 })),
};

/** Checks that an element is in the first screen, whole, and that nothing covers it. */
async function inView(page, locator) {
  await locator.waitFor();
  assert.equal(await page.evaluate(() => scrollY), 0, 'nothing was scrolled');
  const seen = await locator.evaluate((element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    const above = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return top >= 0 && bottom <= innerHeight && right <= innerWidth && element.contains(above);
  });
  assert.ok(seen, `not in view: ${await locator.textContent()}`);
}

scenario('on a phone the buttons that decide are in the first screen', async () => {
  const id = await held(24_000, { context: LONG });
  const page = await signedIn(APPROVER, `/console/approvals/${id}`, { viewport });
  for (const name of ['Approve…', 'Decline…']) await inView(page, page.getByRole('link', { name }));
  assert.deepEqual(await unseenStops(page), []);
  for (const [step, name] of [['approve', /^Approve/], ['decline', /^Decline/]]) {
    await page.goto(`/console/approvals/${id}/${step}`);
    await inView(page, page.getByRole('button', { name }));
    await inView(page, page.getByRole('link', { name: 'Back', exact: true }));
    assert.deepEqual(await unseenStops(page), []);
  }
});

scenario('several requests are approved with a button in the first screen', async () => {
  const ids = [];
  for (const amount of [24_001, 24_002, 24_003]) ids.push(await held(amount, { context: LONG }));
  const page = await signedIn(APPROVER, '/console/approvals', { viewport });
  for (const id of ids) await page.goto(`/console/approvals/${id}`);
  await page.goto(`/console/approvals/several?id=${ids.join('&id=')}`);
  await inView(page, page.getByRole('button', { name: /^Approve/ }));
  assert.deepEqual(await unseenStops(page), []);
});

scenario('an open request updates itself', async () => {
  const id = await held(24_004);
  const page = await signedIn(APPROVER, `/console/approvals/${id}`);
  const used = await signedIn(APPROVER, `/console/approvals/${id}`);
  const other = await signIn(APPROVER, `/console/approvals/${id}`);
  // Somebody who uses the page is told, and keeps it.
  await used.getByRole('link', { name: 'Approve…' }).focus();
  await other.getByRole('link', { name: 'Approve…' }).click();
  await other.getByRole('button', { name: /^Approve/ }).click();
  await other.getByText('You approved this').waitFor();
  assert.equal((await approval(id)).state, 'approved');
  await page.locator('.status .state').getByText('Approved').waitFor({ timeout: 40_000 });
  assert.equal(await page.getByRole('link', { name: 'Approve…' }).count(), 0);
  await used.getByText('This has changed. Reload the page to see it.').first().waitFor({ timeout: 40_000 });
  assert.equal(await used.getByRole('link', { name: 'Approve…' }).count(), 1);
});

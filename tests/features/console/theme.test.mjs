// The reader's choice of light or dark applies to the console, receipts and documentation, and not to print.
import { strict as assert } from 'node:assert';
import { APPROVER, scenario, signedIn } from './browser.mjs';
import { faults } from './screen.mjs';
import { approval, held } from './service.mjs';

const isDark = (page) => page.evaluate(() => {
  const [red, green, blue] = getComputedStyle(document.documentElement).backgroundColor.match(/\d+/g).map(Number);
  return red + green + blue < 3 * 128;
});

scenario('the choice of a theme applies to all pages', async () => {
  const { decision_id } = await approval(await held(26_000));
  const page = await signedIn(APPROVER, '/console/approvals', { colorScheme: 'light' });
  assert.equal(await isDark(page), false);
  await page.locator('.person > summary').click();
  await page.getByLabel('Theme').selectOption('Dark');
  assert.equal(await isDark(page), true);
  assert.deepEqual(await faults(page), []);
  for (const path of ['/console/decisions', '/docs', '/docs/guides', `/receipts/${decision_id}`]) {
    await page.goto(path);
    assert.equal(await isDark(page), true, path);
    assert.equal(await page.getByLabel('Theme').inputValue(), 'dark', path);
    await page.emulateMedia({ media: 'print' });
    assert.equal(await isDark(page), false, `${path} in print`);
    await page.emulateMedia({ media: 'screen' });
  }
  await page.getByLabel('Theme').selectOption('As the system');
  assert.equal(await isDark(page), false);
  await page.emulateMedia({ colorScheme: 'dark' });
  assert.equal(await isDark(page), true);
  await page.goto('/console/approvals');
  assert.equal(await isDark(page), true);
});

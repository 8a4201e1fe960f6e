// Every screen that a user can reach, for each user of the demonstration: WCAG 2.2 AA, and no
// errors in the browser.
import { strict as assert } from 'node:assert';
import { ADMIN, APPROVER, AT_ONCE, AUDITOR, OPERATOR, onPages, opened, scenario, signedIn } from './browser.mjs';
import { kind, screens } from './found.mjs';
import { faults, unfold, unseenStops } from './screen.mjs';
import { held } from './service.mjs';

async function isGood(page) {
  await unfold(page);
  assert.deepEqual(await faults(page), []);
  assert.deepEqual(await unseenStops(page), []);
}

scenario('screens', async (t) => {
  await held(25_000, { context: { note: `${'a long text '.repeat(40)}${'x'.repeat(400)}` } });
  const looked = new Set();
  for (const name of [APPROVER, ADMIN, AUDITOR, OPERATOR]) {
    await t.test(`of ${name}`, async (t) => {
      const paths = await screens(await signedIn(name));
      await onPages(name, paths, async (page, path) => {
        assert.equal((await page.goto(path)).status(), 200, path);
        if (looked.has(kind(path))) return;
        looked.add(kind(path));
        await t.test(kind(path), () => isGood(page));
      });
    });
  }
  t.diagnostic(`${looked.size} kinds of screens`);
}, { timeout: 1_200_000, concurrency: AT_ONCE });

scenario('the menus, opened', async () => {
  const page = await signedIn(OPERATOR);
  for (const menu of ['.person', '.sections']) {
    await page.goto('/console');
    await page.locator(`${menu} > summary`).click();
    assert.deepEqual(await faults(page), [], menu);
    // The open menu covers the page, but only while the menu has the focus.
    assert.deepEqual(await unseenStops(page), [], menu);
    await page.locator(`${menu} > summary`).press('Enter');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Escape');
    assert.equal(await page.locator(`${menu}[open]`).count(), 0, menu);
    assert.ok(await page.locator(`${menu} > summary`).evaluate((summary) => summary === document.activeElement), menu);
  }
});

scenario('pages without a session', async (t) => {
  const page = await (await opened()).newPage();
  await t.test('the development sign-in', async () => {
    await page.goto('/console');
    await isGood(page);
  });
  await t.test('a sign-in that is not known', async () => {
    await page.goto('/console/sign-in/callback?code=x&state=y');
    assert.deepEqual(await faults(page), []);
  });
});

scenario('a page that is not there', async () => {
  const page = await signedIn(APPROVER);
  for (const path of ['/console/approvals/svc:approval:acme:none', '/console/approvals?state=nonsense']) {
    await page.goto(path);
    assert.deepEqual(await faults(page), [], path);
  }
});

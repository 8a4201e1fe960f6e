// The number of presses that each task of an approver takes, and the time until its pages are painted.
import { strict as assert } from 'node:assert';
import { APPROVER, scenario, signedIn } from './browser.mjs';
import { held } from './service.mjs';

/**
 * The maximum time in milliseconds from the start of a navigation to the first text or image. A page
 * takes a tenth of this on an idle machine; other work on the machine may multiply it.
 */
const FIRST_PAINT = 1_500;

/**
 * A task of `presses` presses of a link or a button. `run` gets the page and a function that presses.
 * The page is measured after each press.
 */
function task(name, { user, presses }, run) {
  scenario(`${name}: ${presses} presses`, async (t) => {
    const page = await signedIn(user, '/console');
    let pressed = 0;
    const painted = [];
    const measure = async () => {
      const entry = await page.waitForFunction(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
      painted.push(Math.round(await entry.jsonValue()));
    };
    await measure();
    const press = async (target) => {
      pressed += 1;
      await target.click();
      await page.waitForLoadState();
      await measure();
    };
    await run(page, press);
    t.diagnostic(`first paint after ${painted.join(', ')} ms`);
    assert.equal(pressed, presses);
    assert.ok(Math.max(...painted) < FIRST_PAINT, `first paint after ${painted.join(', ')} ms`);
  });
}

const link = (page, name) => page.getByRole('link', { name });
const button = (page, name) => page.getByRole('button', { name });
const menu = (page, name) => page.getByRole('navigation').getByRole('link', { name });

task('approve a request', { user: APPROVER, presses: 4 }, async (page, press) => {
  const id = await held(25_401);
  await press(menu(page, 'Approvals'));
  await press(page.locator(`a.what[href$="${id}"]`));
  await press(link(page, 'Approve…'));
  await press(button(page, /^Approve/));
  await page.getByText('You approved this').waitFor();
});

task('approve a request that a message links to', { user: APPROVER, presses: 2 }, async (page, press) => {
  await page.goto(`/console/approvals/${await held(25_402)}`);
  await press(link(page, 'Approve…'));
  await press(button(page, /^Approve/));
  await page.getByText('You approved this').waitFor();
});

task('decline a request', { user: APPROVER, presses: 2 }, async (page, press) => {
  await page.goto(`/console/approvals/${await held(25_403)}`);
  await press(link(page, 'Decline…'));
  await page.getByLabel('Why').fill('invoiced twice');
  await press(button(page, /^Decline/));
  await page.getByText('You declined this').waitFor();
});

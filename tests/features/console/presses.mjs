// Tasks with the number of their presses and the time until their pages are painted.
import { strict as assert } from 'node:assert';
import { scenario } from './browser.mjs';

/**
 * The maximum time in milliseconds from the start of a navigation to the first text or image. A page
 * takes a tenth of this on an idle machine; other work on the machine may multiply it.
 */
const FIRST_PAINT = 1_500;

/** The time of the first paint of a page that was not left yet. */
const firstPaint = () => !globalThis.isLeft && performance.getEntriesByName('first-contentful-paint')[0]?.startTime;

/**
 * A task of `presses` presses of links, buttons or Enter, on a page that `open` returns. `run` gets the
 * page and a function that clicks, or presses a key. Each press leads to another page, which is
 * measured if scripts run.
 */
export function task(name, { open, presses, javaScriptEnabled = true, ...options }, run) {
  scenario(`${name}: ${presses} presses`, async (t) => {
    const page = await open();
    let pressed = 0;
    const painted = [];
    const measure = async () => {
      const entry = await page.waitForFunction(firstPaint);
      painted.push(Math.round(await entry.jsonValue()));
    };
    const press = async (target, key) => {
      pressed += 1;
      if (javaScriptEnabled) await page.evaluate(() => { globalThis.isLeft = true; });
      await (key ? target.press(key) : target.click());
      if (javaScriptEnabled) await measure();
    };
    if (javaScriptEnabled) await measure();
    await run(page, press);
    assert.equal(pressed, presses);
    if (!javaScriptEnabled) return;
    t.diagnostic(`first paint after ${painted.join(', ')} ms`);
    assert.ok(Math.max(...painted) < FIRST_PAINT, `first paint after ${painted.join(', ')} ms`);
  }, options);
}

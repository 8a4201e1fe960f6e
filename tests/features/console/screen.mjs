// The requirements for every screen: WCAG 2.2 AA, in light and dark mode, wide and narrow.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const ALL = { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] };
/** The rules that depend on colours. */
const COLOURS = { type: 'rule', values: ['color-contrast', 'link-in-text-block'] };
const WIDE = { width: 1280, height: 900 };
const NARROW = { width: 320, height: 640 };

/** Returns the faults of the page, one line each. Leaves the page wide and light. */
export async function faults(page) {
  const found = new Set(await page.evaluate(structure));
  // Run with the browser's own tools, because the page's policy would not load it.
  await page.evaluate(axe);
  for (const viewport of [NARROW, WIDE]) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['dark', 'light']) {
      await page.emulateMedia({ colorScheme });
      const how = `${viewport.width} px, ${colorScheme}`;
      // Light and dark mode differ only in colours: the other rules run once in each mode and at each width.
      const rules = (viewport === NARROW) === (colorScheme === 'dark') ? ALL : COLOURS;
      for (const fault of await violations(page, rules)) found.add(`${how}: ${fault}`);
    }
    for (const fault of await page.evaluate(sideways)) found.add(`${viewport.width} px: ${fault}`);
    for (const fault of await page.evaluate(small)) found.add(`${viewport.width} px: ${fault}`);
  }
  return [...found];
}

async function violations(page, rules) {
  const { violations: found } = await page.evaluate((runOnly) => globalThis.axe.run(document, {
    runOnly, rules: { 'target-size': { enabled: true } }, resultTypes: ['violations'],
  }), rules);
  return found.flatMap((rule) => rule.nodes.map((node) =>
    `${rule.id}: ${node.target.join(' ')}: ${(node.any[0] ?? node.all[0] ?? node.none[0])?.message} in ${node.html}`));
}

/** Opens every collapsed section. */
export const unfold = (page) =>
  page.evaluate(() => document.querySelectorAll('main details').forEach((one) => { one.open = true; }));

function structure() {
  const faults = [];
  const one = (what) => {
    const count = document.querySelectorAll(what).length;
    if (count !== 1) faults.push(`${count} times ${what}`);
  };
  ['h1', 'main', 'title'].forEach(one);
  const levels = [...document.querySelectorAll('h1, h2, h3, h4')].map((heading) => Number(heading.tagName[1]));
  if (levels.some((level, at) => level > (levels[at - 1] ?? 0) + 1)) faults.push(`headings are ${levels}`);
  const bare = document.body.classList.contains('bare');
  if (!bare) ['header', 'nav', 'footer', '[aria-live=polite]#live', 'body > .skip:first-child'].forEach(one);
  for (const time of document.querySelectorAll('time')) {
    if (!/T.*Z$/.test(time.dateTime)) faults.push(`a time without its moment: ${time.outerHTML}`);
  }
  return faults;
}

/** Checks that no page needs scrolling in two directions (1.4.10), except tables, which may be wider. */
function sideways() {
  const page = document.scrollingElement;
  const faults = page.scrollWidth > innerWidth ? [`the page is ${page.scrollWidth} px wide`] : [];
  const scrolls = (element) => ['auto', 'scroll'].includes(getComputedStyle(element).overflowX);
  for (const element of document.querySelectorAll('body *:not(textarea, select)')) {
    // Collapsed content can't be scrolled.
    if (!element.checkVisibility()) continue;
    if (element.scrollWidth > element.clientWidth && scrolls(element) && !element.querySelector(':scope > table')) {
      faults.push(`scrolls sideways: ${element.cloneNode().outerHTML}`);
    }
    // Content that is cut off and can't be scrolled to is also a fault.
    const { right, width } = element.getBoundingClientRect();
    const cut = width > 1 && right > innerWidth + 1 && !element.closest('.skip, .hidden, svg') && page.scrollWidth <= innerWidth;
    if (cut && !element.closest(':has(> table)')) faults.push(`is cut off: ${element.cloneNode().outerHTML}`);
  }
  return faults;
}

/** Checks that every target has 24 px in both directions, unless it is inline in a sentence (2.5.8). */
function small() {
  const faults = [];
  for (const target of document.querySelectorAll('button, input:not([type=hidden]), select, summary, nav a, .button')) {
    if (!target.checkVisibility()) continue;
    const { width, height } = target.getBoundingClientRect();
    const inText = target.matches('.link') && getComputedStyle(target).display === 'inline';
    if (Math.min(width, height) < 24 && !inText) {
      faults.push(`a target of ${Math.round(width)} by ${Math.round(height)} px: ${target.outerHTML}`);
    }
  }
  return faults;
}

/** Steps with Tab through the page and back. Each stop must be visible and not covered (2.4.7, 2.4.11). */
export async function unseenStops(page) {
  const found = new Set();
  for (const keys of [['Tab'], ['Shift', 'Tab']]) {
    const how = keys.join('+');
    let stops = 0;
    await page.evaluate(() => document.activeElement?.blur());
    for (; stops < 120; stops += 1) {
      // A held key repeats. Pressed anew for each step, it would take twice as many messages to the browser.
      for (const key of stops === 0 ? keys : ['Tab']) await page.keyboard.down(key);
      const stop = await page.evaluate(unseen);
      if (stop.end) break;
      if (stop.fault) found.add(`${how}: ${stop.fault}`);
    }
    for (const key of keys) await page.keyboard.up(key);
    if (stops === 0) found.add(`${how}: no stop at all`);
  }
  return [...found];
}

function unseen() {
  const at = document.activeElement;
  if (!at || at === document.body) return { end: true };
  const { outlineStyle, outlineWidth } = getComputedStyle(at);
  if (outlineStyle === 'none' || parseFloat(outlineWidth) < 2) return { fault: `no outline: ${at.outerHTML}` };
  const box = at.getClientRects()[0];
  if (!box) return { fault: `not shown: ${at.outerHTML}` };
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  const top = document.elementFromPoint(x, y);
  const seen = top && (at.contains(top) || top.contains(at) || top.closest('label')?.control === at);
  return seen ? {} : { fault: `hidden at ${Math.round(x)}, ${Math.round(y)} by ${top?.cloneNode().outerHTML}: ${at.outerHTML}` };
}
